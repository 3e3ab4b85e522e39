"""Reuse cards: what is known of one model-scaffold row, with denominators, reasons for gaps and tiers.

A card is computed from data/ when it is asked for; nothing of it is stored. `analysis.rows.card` is something
else: it reads row.json, which says how an added row was read.

Reference: "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", section A.3.2 and Table 12.
"""

import os
import tempfile
from pathlib import Path

import pandas as pd

from analysis import cards_rows, data, ledger, rows, schemas, stats
from analysis.errors import DataError, choice
from analysis.validation import validate

__all__ = ["card", "ids", "put", "summary", "to_json", "validate", "write"]


# --- which rows ---------------------------------------------------------------------------------------------


def ids(added=None):
    """Rows that have a card: the paper's in its own order, then the added ones.

    Parameters
    ----------
    added : sequence of str, optional
        Ids of added rows; all unless given.

    Returns
    -------
    list of str

    Examples
    --------
    >>> ids([])[:2]
    ['sonnet-4.5', 'deepseek-v4-flash']
    """
    return [*data.table("model_rows")["row"], *(rows.ids() if added is None else added)]


def card(
    row_id,
    *,
    tie="alphabetic",
    missing="initially_wrong",
    interval="wilson",
    w_collapse=1.0,
    w_correction=1.0,
):
    """Fill in the reuse card of one row.

    Parameters
    ----------
    row_id : str
        One of `ids`.
    tie, missing : str
        As in `analysis.ledger.debates`. Rows of which only counts are public keep the released choices, a
        feature matrix follows as far as it can; `choices` of the card says what was done.
    interval : {"wilson", "jeffreys"}
        95% interval of each rate.
    w_collapse, w_correction : float
        Weights of the replayed gates.

    Returns
    -------
    schemas.ReuseCard

    Raises
    ------
    DataError
        There is no such row.
    ValueError
        An option is not one of those allowed.

    References
    ----------
    Section A.3.2, Table 12.

    Examples
    --------
    >>> fell = card("llama-3.1-8b").model_card.debate_outcome_accounting.conditional_collapse_rate
    >>> fell.k, fell.n
    (86, 1016)
    """
    if row_id not in ids():
        raise DataError(f"row {str(row_id)[:80]!r}: no such row; expected one of {', '.join(ids())}")
    for name, value, allowed in [
        ("tie", tie, ledger.TIES),
        ("missing", missing, ledger.MISSING),
        ("interval", interval, stats.INTERVALS),
    ]:
        choice(name, value, allowed)
    weights = {"w_coll": float(w_collapse), "w_corr": float(w_correction)}
    if row_id in rows.ids():
        return cards_rows.added(row_id, tie=tie, missing=missing, interval=interval, weights=weights)
    return cards_rows.paper(row_id, tie=tie, interval=interval, weights=weights)


def summary(cards):
    """One line a card: what is compared between rows.

    Parameters
    ----------
    cards : list of schemas.ReuseCard

    Returns
    -------
    DataFrame
        `row, kind, synthetic, quality_control, model, family, endpoint_round, n, alpha_tot`, k and n of the four rates,
        `onsets` (counts by round, missing where not public), `n_null` (fields without a value), `n_fields`.

    Examples
    --------
    >>> summary([card("sonnet-4.5")])[["row", "collapse", "init_correct", "n_null"]].to_dict("records")
    [{'row': 'sonnet-4.5', 'collapse': 2, 'init_correct': 93, 'n_null': 8}]
    """
    lines = []
    for one in cards:
        told, ended = one.model_card, one.model_card.debate_outcome_accounting
        onsets, alpha = ended.collapse_onset_distribution, told.selection_time_fingerprint.alpha_tot
        lines.append(
            {
                "row": one.row_id,
                "kind": one.kind,
                "synthetic": one.synthetic,
                "quality_control": one.quality_control,
                "model": told.identity.model_name,
                "family": told.identity.model_family,
                "endpoint_round": one.choices.endpoint_round,
                "n": ended.n_debates,
                "alpha_tot": alpha.rate if alpha else None,
                "init_correct": ended.initial_majority_accuracy.k,
                "final_correct": ended.final_majority_accuracy.k,
                "collapse": ended.conditional_collapse_rate.k,
                "correction": ended.conditional_correction_rate.k,
                "init_wrong": ended.conditional_correction_rate.n,
                "onsets": "/".join(map(str, onsets.values())) if onsets else None,
                "n_null": len(schemas.nulls(told)),
                "n_fields": len(schemas.fields_of_card()),
            }
        )
    return pd.DataFrame(lines)


def write(one, path):
    """Write a card as JSON, beside its place and then into it.

    Parameters
    ----------
    one : schemas.ReuseCard
    path : path

    Raises
    ------
    DataError
        The path is a folder, or its folder is not there.
    OSError
        The folder cannot be written to.

    Examples
    --------
    >>> folder = tempfile.mkdtemp()
    >>> write(card("sonnet-4.5"), Path(folder, "card.json"))
    >>> os.listdir(folder)
    ['card.json']
    """
    put(to_json(one), path)


def put(text, path):
    """Write a text beside its place and rename it into it, so that nobody sees half of it.

    Examples
    --------
    >>> put("{}", tempfile.gettempdir())
    Traceback (most recent call last):
    analysis.errors.DataError: ...
    """
    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path}: is a folder; expected the name of a file")
    if not path.parent.is_dir():
        raise DataError(f"{path}: there is no folder {path.parent}; expected one")
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, prefix=f".{path.name}-", encoding="utf-8", newline="\n", delete=False
    ) as beside:
        try:
            beside.write(text)
            beside.close()
            os.chmod(beside.name, 0o644)
            os.replace(beside.name, path)
        except BaseException:
            os.unlink(beside.name)
            raise


def to_json(one):
    """Card as JSON text.

    Examples
    --------
    >>> to_json(card("sonnet-4.5")).splitlines()[1]
    '  "schema_version": "reuse_card.v1",'
    """
    return one.model_dump_json(indent=2) + "\n"


