"""Rows share questions: intervals that draw questions whole, and the ledger on those that all rows have."""

import numpy as np
import pandas as pd

from analysis import ledger, localize, replay, stats
from analysis.errors import DataError
from analysis.resampling import resamples

MEASURES = ("prevented", "lost", "net")
STEPS = {"r1": "baseline", "full": "r1"}


# --- areas under the curve ----------------------------------------------------------------------------------


def lift_table(debates, *, fits=localize.FITS, units=localize.UNITS, n_boot=1000, seed=20260424):
    """Lift of each feature view over the smaller one, with an interval for each unit of resampling.

    Parameters
    ----------
    debates : DataFrame
        One line a debate, in source order.
    fits, units : sequence of str
        See `localize.oof_scores` and `localize.auc_lift`.
    n_boot, seed : int
        See `localize.auc_lift`.

    Returns
    -------
    DataFrame
        One line a fit, view ("r1" over "baseline", "full" over "r1") and unit: `fit, view, unit, n_units`
        (units drawn from; missing for "two-way"), `lift, low, high, n, n_pos, n_used`.

    References
    ----------
    Section E.1, whose registration called for question and model clusters.

    Examples
    --------
    >>> from analysis import data
    >>> found = lift_table(data.debates(), fits=["published"], units=["debate"])
    >>> found[["lift", "low", "high"]].round(3).values.tolist()
    [[0.099, 0.08, 0.118], [0.077, 0.064, 0.092]]
    """
    sizes = {"debate": len(debates)} | {unit: debates[unit].nunique() for unit in ("question", "row")}
    lines = []
    for fit in fits:
        score = {view: localize.oof_scores(debates, view=view, fit=fit) for view in localize.VIEWS}
        for view, smaller in STEPS.items():
            for unit in units:
                pair = score[smaller], score[view]
                found = localize.auc_lift(debates, *pair, unit=unit, n_boot=n_boot, seed=seed)
                line = {"fit": fit, "view": view, "unit": unit, "n_units": sizes.get(unit)}
                lines.append(line | found._asdict())
    columns = ["fit", "view", "unit", "n_units", "lift", "low", "high", "n", "n_pos", "n_used"]
    return pd.DataFrame(lines)[columns].astype({"n_units": "Int64"})


def lift_by_row(debates, *, least=10, unit="question", **options):
    """The same lifts within each row, fitted on the row's own debates.

    Parameters
    ----------
    debates : DataFrame
        One line a debate, in source order.
    least : int
        Fewest collapses of a row that is told of.
    unit : str
        What is drawn.
    **options
        As for `lift_table`.

    Returns
    -------
    DataFrame
        Lines of `lift_table` with `row` first.

    Raises
    ------
    DataError
        No row has as many collapses.

    Examples
    --------
    >>> from analysis import data
    >>> lift_by_row(data.debates(), fits=["published"], n_boot=20)["row"].unique().tolist()
    ['llama-3.1-8b', 'phi-4-mini', 'qwen3-4b']
    """
    fell = debates["cell"].eq("collapse").groupby(debates["row"], sort=False).sum()
    parts = []
    for row in fell.index[fell >= least]:
        found = lift_table(debates[debates["row"] == row], units=[unit], **options)
        found.insert(0, "row", row)
        parts.append(found)
    if not parts:
        raise DataError(f"debates: no row with {least} collapses or more; expected at least one")
    return pd.concat(parts, ignore_index=True)


# --- gates --------------------------------------------------------------------------------------------------


def gate_bootstrap(debates, gates=tuple(replay.GATES), *, n_boot=2000, seed=20260426, level=0.95):
    """Bootstrap a replay by questions, each drawn with all its debates in every row.

    Parameters
    ----------
    debates : DataFrame
        As for `replay.replay`.
    gates : iterable of str, or mapping of str to a gate
        As for `replay.replay_gates`; all see the same resamples.
    n_boot : int
        Resamples.
    seed : int
        Seed of `random.Random`; questions are numbered as they first appear.
    level : float
        Level of the percentile intervals.

    Returns
    -------
    DataFrame
        Indexed by `gate`: `n` debates, `questions`, then for `prevented`, `lost` and `net` the rate per
        debate with `_low` and `_high` (fractions of the debates drawn).

    Raises
    ------
    DataError
        There are no debates.
    ValueError
        No gate or no resample, or a level outside 0..1.

    References
    ----------
    Section E.7: question clusters, 2,000 resamples.

    Examples
    --------
    >>> seen = pd.DataFrame({"question": ["a", "a", "b"], "cell": ["collapse", "correction", "correction"]})
    >>> found = gate_bootstrap(seen, ["always_freeze"], n_boot=50)
    >>> found[["n", "questions", "net"]].round(3).to_dict("records")
    [{'n': 3, 'questions': 2, 'net': -0.333}]
    """
    if debates.empty:
        raise DataError("no debates: expected at least one")
    chosen = gates if hasattr(gates, "items") else {name: name for name in gates}
    if not chosen or n_boot < 1 or not 0 < level < 1:
        raise ValueError(f"gates={list(chosen)}, n_boot={n_boot}, level={level}: expected at least one gate "
                         "and one resample, and a level between 0 and 1, such as 0.95")
    totals = {name: replay.replay(debates, gate, by="question") for name, gate in chosen.items()}
    first = next(iter(totals.values()))
    # For each question its debates, then prevented, lost and net of each gate.
    table = np.column_stack([first["n"], *(part[list(MEASURES)] for part in totals.values())]).astype(float)
    drawn = np.empty((n_boot, table.shape[1]))
    for i, sample in enumerate(resamples(len(table), n_boot, seed)):
        drawn[i] = np.bincount(sample, minlength=len(table)) @ table
    tail = (1 - level) / 2
    low, high = np.quantile(drawn[:, 1:] / drawn[:, :1], [tail, 1 - tail], axis=0)
    whole = table.sum(axis=0)
    values = np.stack([whole[1:] / whole[0], low, high], axis=1).reshape(len(totals), -1)
    names = [name + end for name in MEASURES for end in ("", "_low", "_high")]
    out = pd.DataFrame(values, columns=names, index=pd.Index(totals, name="gate"))
    out.insert(0, "questions", len(table))
    out.insert(0, "n", int(whole[0]))
    return out


# --- questions ----------------------------------------------------------------------------------------------


def shared_questions(debates):
    """Questions that every row has debated.

    Parameters
    ----------
    debates : DataFrame
        With `row` and `question`.

    Returns
    -------
    Index of str

    Examples
    --------
    >>> shared_questions(pd.DataFrame({"row": ["a", "a", "b"], "question": ["q1", "q2", "q2"]})).tolist()
    ['q2']
    """
    rows = debates.groupby("question")["row"].nunique()
    return rows.index[rows == debates["row"].nunique()]


def repeated_questions(debates):
    """Rows that hold a question more than once.

    Parameters
    ----------
    debates : DataFrame
        With `row, question, gold, cell`.

    Returns
    -------
    DataFrame
        One line a row that repeats questions: `row`, `n` debates, `questions` (distinct), `repeated`
        (questions held more than once), `several_gold` (of these, with more than one right answer, so
        different questions under one name), `several_cells` (of these, with more than one cell).

    Examples
    --------
    >>> seen = pd.DataFrame({"row": "a", "question": ["q1", "q1", "q2"], "gold": ["A", "B", "A"],
    ...                      "cell": ["preserved", "preserved", "collapse"]})
    >>> repeated_questions(seen).to_dict("records")
    [{'row': 'a', 'n': 3, 'questions': 2, 'repeated': 1, 'several_gold': 1, 'several_cells': 0}]
    """
    each = debates.groupby(["row", "question"], sort=False).agg(
        n=("gold", "size"), golds=("gold", "nunique"), cells=("cell", "nunique")
    )
    each["repeated"] = each["n"] > 1
    each["several_gold"] = each["repeated"] & (each["golds"] > 1)
    each["several_cells"] = each["repeated"] & (each["cells"] > 1)
    out = each.groupby("row", sort=False).agg(
        n=("n", "sum"), questions=("n", "size"), repeated=("repeated", "sum"),
        several_gold=("several_gold", "sum"), several_cells=("several_cells", "sum"),
    )
    return out[out["repeated"] > 0].reset_index()


def on_shared_questions(debates, *, interval="wilson"):
    """The ledger of each row on all its questions and on those that every row has.

    Parameters
    ----------
    debates : DataFrame
        One line a debate.
    interval : {"wilson", "jeffreys"}
        95% interval of the rates.

    Returns
    -------
    DataFrame
        Lines of `ledger.summarize` by row with a last one "pooled", for `questions` "all", then "shared".

    Examples
    --------
    >>> from analysis import data
    >>> found = on_shared_questions(data.debates())
    >>> found[found["row"] == "pooled"].set_index("questions")[["n", "collapse"]].to_dict("index")
    {'all': {'n': 6925, 'collapse': 253}, 'shared': {'n': 1200, 'collapse': 33}}
    """
    cohorts = {"all": debates, "shared": debates[debates["question"].isin(shared_questions(debates))]}
    parts = []
    for name, part in cohorts.items():
        whole = ledger.summarize(part, None, interval=interval).assign(row=localize.POOLED)
        each = pd.concat([ledger.summarize(part, interval=interval), whole], ignore_index=True)
        parts.append(each.assign(questions=name))
    return pd.concat(parts, ignore_index=True)


def rank_on_shared_questions(debates, flip_rates):
    """Rank correlation of the rows' flip rate and conditional collapse, on all and on the shared questions.

    Parameters
    ----------
    debates : DataFrame
        One line a debate.
    flip_rates : Series of float
        By row.

    Returns
    -------
    DataFrame
        `questions` ("all", "shared"), `n_rows`, `rho`, `p_two_sided` (exact).

    Examples
    --------
    >>> from analysis import data
    >>> alpha = data.model_rows().set_index("row")["alpha_tot"]
    >>> rank_on_shared_questions(data.debates(), alpha).round(3).to_dict("records")[0]
    {'questions': 'all', 'n_rows': 6, 'rho': 0.657, 'p_two_sided': 0.175}
    """
    found = on_shared_questions(debates)
    lines = []
    for name, part in found[found["row"] != localize.POOLED].groupby("questions", sort=False):
        test = stats.exact_spearman(part["row"].map(flip_rates), part["c_cond"])
        lines.append({"questions": name, "n_rows": test.n, "rho": test.rho, "p_two_sided": test.p_two_sided})
    return pd.DataFrame(lines)
