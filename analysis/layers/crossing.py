"""Layers meet the ledger: what committees express and how sure they are, by what became of the answer.

Needs questions with a gold answer. The ledger says what a debate did to the majority (preserved, collapse,
correction, unrepaired); the turns say how much its members agreed; stance reads say what happened to
conviction.
"""

from dataclasses import replace
from math import nan

import numpy as np
import pandas as pd

from analysis.errors import DataError, choice
from analysis.layers.frames import need, once, single
from analysis.layers.inference import FEW_UNITS, test_units, unit_bootstrap
from analysis.layers.results import Result
from analysis.layers.stance_contrasts import ON_TOPIC
from analysis.ledger import CELLS

UNDEFINED = "undefined"  # a debate whose cell the ledger leaves open
KEYS = ("row", "question", "replicate", "debate_id")
MEASURES = {"agreement": "share", "conviction": "nats"}
LEVELS = {"conviction": ("eroded", "held", "unmeasured"),
          "agreement": ("agreeing", "contested", "unmeasured")}


# --- what is joined -----------------------------------------------------------------------------------------

def expressed_agreement(turns):
    """Share of a debate's replies that call themselves in full agreement.

    Parameters
    ----------
    turns : DataFrame
        ``debate_id, question_id, iteration, agreed_level, agreed_level_explicit``; optional ``row,
        replicate``.

    Returns
    -------
    DataFrame
        One line a debate with a reply: ``debate_id, question`` (and ``row, replicate``), ``agreement`` (NaN
        without any explicit label), ``n_turns`` explicit labels, ``n_default`` labels left out.

    Raises
    ------
    DataError
        On missing columns or an explicit label that is none of the four.

    Examples
    --------
    >>> turns = pd.DataFrame({"debate_id": "d", "question_id": "q", "iteration": [0, 1, 1, 1],
    ...     "agreed_level": [None, "fully_agreed", "partially_disagreed", "fully_agreed"],
    ...     "agreed_level_explicit": [False, True, True, False]})
    >>> expressed_agreement(turns).to_dict("records")
    [{'debate_id': 'd', 'question': 'q', 'agreement': 0.5, 'n_turns': 2, 'n_default': 1}]
    """
    need(turns, "turns", ["debate_id", "question_id", "iteration", "agreed_level_explicit"],
         nullable=["agreed_level"], allowed={"agreed_level": (
             "fully_agreed", "partially_agreed", "partially_disagreed", "fully_disagreed")})
    replies = turns[turns["iteration"] >= 1]
    explicit = replies["agreed_level_explicit"].astype(bool) & replies["agreed_level"].notna()
    full = (replies["agreed_level"] == "fully_agreed").astype(float).where(explicit)
    by = ["debate_id", "question_id", *(key for key in ("row", "replicate") if key in turns)]
    out = replies.assign(full=full, explicit=explicit).groupby(by, sort=False).agg(
        agreement=("full", "mean"), n_turns=("explicit", "sum"), turns=("explicit", "size")).reset_index()
    out["n_default"] = out.pop("turns") - out["n_turns"]
    return out.rename(columns={"question_id": "question"})


def conviction_change(cells, *, anchor="own"):
    """Change of conviction of every proposition that is also a question of the ledger.

    Parameters
    ----------
    cells : DataFrame
        Of one receiver, from `stance.read_cells`; ``proposition_id`` names the question.
    anchor : {"own", "peak"}
        As in `stance.conviction`.

    Returns
    -------
    DataFrame
        ``question, conviction`` (nats; mean over the valid on-topic cells) and ``n_cells``.

    Raises
    ------
    DataError
        On several receivers.

    Examples
    --------
    >>> cells = pd.DataFrame({"receiver": "m", "proposition_id": ["q", "q"], "kind": ["strong", "weak"],
    ...                       "valid": True, "conviction_own": [-1.0, -2.0]})
    >>> conviction_change(cells).to_dict("records")
    [{'question': 'q', 'conviction': -1.5, 'n_cells': 2}]
    """
    choice("anchor", anchor, ("own", "peak"))
    value = f"conviction_{anchor}"
    need(cells, "cells", ["receiver", "proposition_id", "kind", "valid"], nullable=[value])
    single(cells, "cells", "receiver", "models are never pooled")
    kept = cells[cells["valid"].astype(bool) & cells["kind"].isin(ON_TOPIC)].dropna(subset=[value])
    out = kept.groupby("proposition_id", sort=False)[value].agg(["mean", "size"]).reset_index()
    return out.set_axis(["question", "conviction", "n_cells"], axis=1)


def join(debates, *, agreement=None, conviction=None):
    """Put expressed agreement and conviction beside every debate of the ledger.

    Parameters
    ----------
    debates : DataFrame
        ``question, cell`` (preserved, collapse, correction, unrepaired, missing where undefined); optional
        ``row, replicate, debate_id``: the ledger's table of debates, of one row.
    agreement, conviction : DataFrame, optional
        ``agreement`` or ``conviction``, and those of the columns ``row, question, replicate, debate_id`` that
        say which debates the value belongs to; a value by question alone serves all debates of the question.

    Returns
    -------
    DataFrame
        The debates in order with ``cell`` filled ("undefined" where missing), ``agreement`` and
        ``conviction`` (NaN where there is none).

    Raises
    ------
    DataError
        On missing columns, an unknown cell, several rows, two values for one debate, or no debate in common.

    Examples
    --------
    >>> debates = pd.DataFrame({"question": ["q1", "q2"], "replicate": 0, "cell": ["collapse", "preserved"]})
    >>> joined = join(debates, conviction=pd.DataFrame({"question": ["q1"], "conviction": [-2.0]}))
    >>> joined[["question", "cell", "conviction"]].values.tolist()
    [['q1', 'collapse', -2.0], ['q2', 'preserved', nan]]
    """
    need(debates, "debates", ["question"], nullable=["cell"], allowed={"cell": (*CELLS, UNDEFINED)})
    single(debates, "debates", "row", "models are never pooled")
    out = debates.assign(cell=debates["cell"].astype(object).where(debates["cell"].notna(), UNDEFINED))
    out = out.drop(columns=list(MEASURES), errors="ignore")
    for name, values in (("agreement", agreement), ("conviction", conviction)):
        if values is None:
            out[name] = nan
            continue
        keys = [key for key in KEYS if key in values and key in out]
        if not keys:
            raise DataError(f"{name}: none of the columns {', '.join(KEYS)} that debates have, expected at "
                            "least 'question'")
        need(values, name, keys, nullable=[name])
        once(values, name, keys)
        found = out[keys].merge(values[[*keys, name]], on=keys, how="left")[name]
        if len(values) and found.isna().all() and values[name].notna().any():
            raise DataError(f"{name}: no debate has its {', '.join(keys)}, such as "
                            f"{values[keys].iloc[0].tolist()!r}, expected the names that the ledger uses")
        out[name] = found.to_numpy(dtype=float)
    return out


# --- tables -------------------------------------------------------------------------------------------------

def cells(joined, *, draws=10_000, level=0.95, seed=0):
    """Expressed agreement and conviction change in the four cells of the ledger.

    Parameters
    ----------
    joined : DataFrame
        From `join`.
    draws, level, seed
        Of the bootstrap over questions.

    Returns
    -------
    DataFrame
        One line a cell, an undefined one if there is any, and ``all``: ``cell, debates, questions``,
        ``share`` of the debates, and for either measure its mean, ``_low, _high, _debates, _questions,
        _flags``. All means and shares give every question the same weight: first over its debates (in the
        cell), then over questions.

    Raises
    ------
    DataError
        On a frame that is not from `join`.

    Notes
    -----
    The cells are made by what happened in the debate, so a difference between them is an association. A
    question can be in several cells when it was debated more than once.

    Examples
    --------
    >>> joined = pd.DataFrame({"question": ["q1", "q1", "q2"], "cell": ["collapse", "preserved", "preserved"],
    ...                        "agreement": [1.0, 0.5, 0.8], "conviction": [-2.0, -1.0, np.nan]})
    >>> cells(joined)[["cell", "debates", "questions", "share", "agreement", "conviction"]]
             cell  debates  questions  share  agreement  conviction
    0   preserved        2          2   0.75      0.650        -1.0
    1    collapse        1          1   0.25      1.000        -2.0
    2  correction        0          0   0.00        NaN         NaN
    3  unrepaired        0          0   0.00        NaN         NaN
    4         all        3          2   1.00      0.775        -1.5
    """
    _check(joined)
    rows = []
    for name in (*CELLS, *((UNDEFINED,) if (joined["cell"] == UNDEFINED).any() else ()), "all"):
        part = joined if name == "all" else joined[joined["cell"] == name]
        row = {"cell": name, "debates": len(part), "questions": part["question"].nunique()}
        inside = (joined["cell"] == name) | (name == "all")
        row |= _mean("share", joined.assign(share=inside.astype(float)), draws, level, seed, counts=False)
        for measure in MEASURES:
            row |= _mean(measure, part, draws, level, seed)
        rows.append(row)
    return pd.DataFrame(rows)


def _mean(measure, part, draws, level, seed, counts=True):
    """Return mean and interval over questions, as columns."""
    known = part.dropna(subset=[measure])
    by_question = known.groupby("question", sort=False)[measure].mean()
    found = test_units(measure, by_question, MEASURES.get(measure, "share"), test=False, draws=draws,
                       level=level, seed=seed,
                       share=measure != "conviction")
    out = {measure: found.estimate, f"{measure}_low": found.low, f"{measure}_high": found.high}
    if counts:
        out |= {f"{measure}_debates": len(known), f"{measure}_questions": len(by_question)}
    return out | {f"{measure}_flags": "; ".join(found.flags)}


def cross(joined, *, eroded=0.0, agreeing=0.5, draws=10_000, level=0.95, seed=0):
    """The four cells crossed with conviction change and expressed agreement.

    Parameters
    ----------
    joined : DataFrame
        From `join`.
    eroded : float
        Conviction counts as "eroded" below this change (nats), else as "held".
    agreeing : float
        A debate counts as "agreeing" from this share of fully agreeing replies on, else as "contested".
    draws, level, seed
        Of the bootstrap over questions.

    Returns
    -------
    DataFrame
        One line per cell, conviction and agreement ("unmeasured" where there is no value, listed only if it
        occurs): ``debates, questions``, ``of`` the cell's debates and ``of_questions``; ``share`` of the cell
        with interval, every question with a debate in the cell counting the same.

    Raises
    ------
    DataError
        On a frame that is not from `join`.

    Examples
    --------
    >>> joined = pd.DataFrame({"question": ["q1", "q2", "q3"], "cell": ["collapse", "collapse", "preserved"],
    ...                        "agreement": [1.0, 0.25, 0.8], "conviction": [-2.0, -1.0, 0.3]})
    >>> table = cross(joined)
    >>> table[table.debates > 0][["cell", "conviction", "agreement", "debates", "of",
    ...                           "share"]].values.tolist()
    [['preserved', 'held', 'agreeing', 1, 1, 1.0], ['collapse', 'eroded', 'agreeing', 1, 2, 0.5],
     ['collapse', 'eroded', 'contested', 1, 2, 0.5]]
    """
    _check(joined)
    sorted_ = pd.DataFrame({
        "question": joined["question"], "cell": joined["cell"],
        "conviction": np.select([joined["conviction"].isna(), joined["conviction"] < eroded],
                                ["unmeasured", "eroded"], "held"),
        "agreement": np.select([joined["agreement"].isna(), joined["agreement"] >= agreeing],
                               ["unmeasured", "agreeing"], "contested")})
    columns = {name: [v for v in values if v != "unmeasured" or (sorted_[name] == v).any()]
               for name, values in LEVELS.items()}
    rows = []
    for name in (*CELLS, *((UNDEFINED,) if (sorted_["cell"] == UNDEFINED).any() else ())):
        part = sorted_[sorted_["cell"] == name]
        for change in columns["conviction"]:
            for accord in columns["agreement"]:
                inside = (part["conviction"] == change) & (part["agreement"] == accord)
                by_question = inside.astype(float).groupby(part["question"], sort=False).mean()
                found = test_units("share", by_question, "share", test=False, share=True, draws=draws,
                                   level=level, seed=seed)
                rows.append({"cell": name, "conviction": change, "agreement": accord,
                             "debates": int(inside.sum()),
                             "questions": part["question"][inside].nunique(), "of": len(part),
                             "of_questions": len(by_question), "share": found.estimate, "low": found.low,
                             "high": found.high, "interval": found.interval, "flags": "; ".join(found.flags)})
    return pd.DataFrame(rows)


def difference(joined, measure, *, first="collapse", second="preserved", draws=10_000, level=0.95, seed=0):
    """Mean of a measure in one cell minus its mean in another.

    Parameters
    ----------
    joined : DataFrame
        From `join`.
    measure : {"agreement", "conviction"}
    first, second : str
        Cells of the ledger.
    draws, level, seed
        Of the bootstrap over questions, each with all its debates, so that a question in both cells counts in
        both.

    Returns
    -------
    Result
        Exploratory, without p: which cell a debate falls into is not assigned. "undefined" if a cell is
        empty.

    Raises
    ------
    ValueError
        On an unknown measure or cell, or one cell against itself.

    Examples
    --------
    >>> joined = pd.DataFrame({"question": ["q1", "q2", "q3"], "cell": ["collapse", "preserved", "preserved"],
    ...                        "agreement": [1.0, 0.5, 0.7], "conviction": np.nan})
    >>> result = difference(joined, "agreement")
    >>> result.name, round(result.estimate, 3)
    ('agreement_collapse_minus_preserved', 0.4)
    """
    choice("measure", measure, tuple(MEASURES))
    for name in (first, second):
        choice("cell", name, CELLS)
    if first == second:
        raise ValueError(f"first and second are {first!r}: expected two different cells")
    _check(joined)
    known = joined[joined["cell"].isin((first, second))].dropna(subset=[measure])
    wide = known.pivot_table(index="question", columns="cell", values=measure, aggfunc="mean").reindex(
        columns=[first, second]).astype(float)
    result = Result(f"{measure}_{first}_minus_{second}", nan, MEASURES[measure], n_units=len(wide),
                    level=level,
                    unit_name="question", n_rows=len(known), role="exploratory", seed=seed)
    sizes = wide.notna().sum()
    result = result.with_flags(f"{first}:{sizes[first]}", f"{second}:{sizes[second]}")
    if not sizes.all():
        return replace(result, status="undefined")
    present = wide.notna().to_numpy(dtype=float)
    units = np.stack([wide.fillna(0.0).to_numpy(), present], axis=-1)

    def gap(resampled):
        totals = resampled.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = totals[..., 0] / totals[..., 1]
        return means[:, 0] - means[:, 1]

    around = unit_bootstrap(units, gap, draws=draws, level=level, seed=seed)
    few = ("few_units",) if sizes.min() < FEW_UNITS else ()
    return replace(result, estimate=float(gap(units[None])[0]), low=around.low, high=around.high,
                   interval=around.method,
                   n_boot=around.n_boot, n_undefined=around.n_undefined).with_flags(*around.flags, *few)


def _check(joined):
    need(joined, "joined debates", ["question", "cell"], nullable=list(MEASURES),
         allowed={"cell": (*CELLS, UNDEFINED)})
    single(joined, "joined debates", "row", "models are never pooled")
