"""What more rounds of debate add in reported shifts, turns and tokens: descriptive, question by question."""

from dataclasses import replace
from math import nan

import numpy as np
import pandas as pd

from analysis.errors import DataError, choice
from analysis.layers import frames, inference
from analysis.layers.results import Result
from analysis.layers.tokens import spend

LARGE_SHIFT = 3
MEASURES = ("large_shifts", "sum_of_shifts", "n_shifts", "n_nodes", "tokens")
UNITS = {"sum_of_shifts": "shift points per debate", "tokens": "tokens per debate"}


def debate_totals(debates, turns, ledger=None):
    """Reported shifts, nodes and tokens of every debate.

    Parameters
    ----------
    debates : DataFrame
        ``debate_id, question_id, max_iterations, status``; ``composition`` and ``timing`` may not vary.
        Debates that are not completed are left out.
    turns : DataFrame
        ``debate_id, iteration, opinion_shift`` (0..4, missing in roots), roots included.
    ledger : DataFrame, optional
        One row a model call, as in `tokens.spend`; ``run_id`` is the id of the debate.

    Returns
    -------
    DataFrame
        One line a debate: ``debate_id, question_id, max_iterations``; `large_shifts`, turns with a shift of 3
        or 4; `sum_of_shifts`, the scores added up, and `n_shifts`, turns with any shift: "total shifts" can
        mean either; `n_nodes`, turns with the roots; `n_unlabelled`, debate turns without a score; `tokens`,
        NaN without ledger.

    Raises
    ------
    DataError
        On missing fields, several compositions or timings, a shift outside 0..4, or turns of an unknown
        debate.

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", sec. 5, rounds sweep.

    Examples
    --------
    >>> debates = pd.DataFrame({"debate_id": ["d"], "question_id": "q", "max_iterations": 1,
    ...                         "status": "completed"})
    >>> turns = pd.DataFrame({"debate_id": "d", "iteration": [0, 1, 1], "opinion_shift": [None, 3, 1]})
    >>> totals = debate_totals(debates, turns)
    >>> totals[["large_shifts", "sum_of_shifts", "n_shifts", "n_nodes"]].values.tolist()
    [[1, 4, 2, 3]]
    """
    frames.need(debates, "debates", ("debate_id", "question_id", "max_iterations", "status"))
    frames.once(debates, "debates", ["debate_id"])
    for column in ("composition", "timing"):
        frames.single(debates, "debates", column, "they are never pooled in a sweep")
    frames.need(turns, "turns", ("debate_id", "iteration"), nullable=("opinion_shift",),
                allowed={"opinion_shift": range(5)})
    stray = ~turns.debate_id.isin(debates.debate_id)
    if stray.any():
        raise DataError(f"turns, row {turns.index[stray].tolist()[0]!r}, field 'debate_id': "
                        f"{turns.debate_id[stray].tolist()[0]!r}, expected the id of a debate")
    shift = turns.opinion_shift.astype("Float64").astype(float)
    debated = turns.iteration >= 1
    rows = pd.DataFrame({
        "debate_id": turns.debate_id, "large_shifts": (shift >= LARGE_SHIFT) & debated,
        "sum_of_shifts": shift.where(debated, 0).fillna(0), "n_shifts": (shift > 0) & debated, "n_nodes": 1,
        "n_unlabelled": debated & shift.isna()})
    kept = debates[debates.status == "completed"].set_index("debate_id")
    totals = rows.groupby("debate_id").sum().reindex(kept.index, fill_value=0).astype("int64")
    out = kept[["question_id", "max_iterations"]].join(totals).assign(tokens=nan)
    if ledger is not None:
        out["tokens"] = spend(ledger.assign(item_id=ledger["run_id"], arm="")).set_index("item_id").spend
    return out.reset_index()


def rounds_sweep(totals, measure="large_shifts", *, draws=10_000, seed=0):
    """Mean of a measure at every number of rounds, averaged over questions.

    Parameters
    ----------
    totals : DataFrame
        From `debate_totals`.
    measure : {"large_shifts", "sum_of_shifts", "n_shifts", "n_nodes", "tokens"}
    draws, seed : int
        Of the bootstrap over questions.

    Returns
    -------
    list of Result
        One per number of rounds, named ``<measure>_at_<rounds>``, per debate; descriptive: a self-report
        cannot show that positions stayed where they were. For `large_shifts`, k of n debates have any; where
        none has, the interval is [0, 3 / questions].

    Raises
    ------
    ValueError
        On an unknown measure.

    References
    ----------
    Hanley and Lippman-Hand (1983) for the bound.

    Examples
    --------
    >>> totals = pd.DataFrame({"question_id": ["a", "b"] * 2, "max_iterations": [1, 1, 2, 2],
    ...                        "large_shifts": [0, 0, 1, 0]})
    >>> [(result.name, result.estimate, result.k, round(result.high, 4)) for result in rounds_sweep(totals)]
    [('large_shifts_at_1', 0.0, 0, 1.0), ('large_shifts_at_2', 0.5, 1, 0.9625)]
    """
    choice("measure", measure, MEASURES)
    out = []
    for rounds, group in totals.groupby("max_iterations"):
        result = inference.test_units(
            f"{measure}_at_{rounds}", group.groupby("question_id", sort=False)[measure].mean(),
            UNITS.get(measure, "turns per debate"),
            n_rows=len(group), test=False, draws=draws, seed=seed, role="descriptive")
        if measure == "large_shifts":
            k = int((group[measure] > 0).sum())
            if k == 0:
                bound = inference.zero_events(len(group), group.question_id.nunique())
                result = replace(result, low=0.0, high=bound.cluster_rule_of_three, n_boot=0,
                                 interval="rule of three on questions")
            result = replace(result, k=k, n=len(group))
        out.append(result)
    return out


def _by_question(totals, measure):
    choice("measure", measure, MEASURES)
    return totals.pivot_table(index="question_id", columns="max_iterations", values=measure, aggfunc="mean",
                              sort=False)


def rounds_difference(totals, measure, fewer, more, *, draws=10_000, seed=0):
    """Change of a measure from fewer to more rounds, on the questions that have both.

    Parameters
    ----------
    totals, measure, draws, seed
        As in `rounds_sweep`.
    fewer, more : int
        Numbers of rounds.

    Returns
    -------
    Result
        ``<measure>_<more>_minus_<fewer>``; descriptive, without p.

    Raises
    ------
    ValueError
        On an unknown measure, or a number of rounds that was not run.

    Examples
    --------
    >>> totals = pd.DataFrame({"question_id": ["a", "b", "a", "b", "c"], "max_iterations": [1, 1, 2, 2, 2],
    ...                        "n_nodes": [9, 9, 14, 16, 90]})
    >>> result = rounds_difference(totals, "n_nodes", 1, 2)
    >>> result.estimate, result.n_units, result.exclusions
    (6.0, 2, {'question_not_shared': 1})
    """
    wide = _by_question(totals, measure)
    for rounds in (fewer, more):
        choice("rounds", rounds, tuple(wide.columns))
    change = (wide[more] - wide[fewer]).dropna()
    lost = len(wide[[fewer, more]].dropna(how="all")) - len(change)
    return inference.test_units(
        f"{measure}_{more}_minus_{fewer}", change, UNITS.get(measure, "turns per debate"),
        n_rows=2 * len(change), test=False, draws=draws,
        seed=seed, role="descriptive", exclusions={"question_not_shared": lost} if lost else {})


def rounds_slope(totals, measure, *, shared=True, draws=10_000, seed=0):
    """Change of a measure per added round, by least squares over the questions' means.

    Parameters
    ----------
    totals, measure, draws, seed
        As in `rounds_sweep`; whole questions are resampled.
    shared : bool
        Only questions that were run at every number of rounds, so that the slope cannot come from another mix
        of questions; else all.

    Returns
    -------
    Result
        ``<measure>_per_round``; descriptive. Undefined without questions or with one number of rounds.

    Raises
    ------
    ValueError
        On an unknown measure.

    Examples
    --------
    >>> totals = pd.DataFrame({"question_id": ["a", "b"] * 3, "max_iterations": [1, 1, 2, 2, 3, 3],
    ...                        "n_nodes": [9, 9, 14, 12, 19, 15]})
    >>> result = rounds_slope(totals, "n_nodes")
    >>> result.estimate, result.low, result.high
    (4.0, 3.075, 4.925)
    """
    wide = _by_question(totals, measure)
    kept = wide.dropna() if shared else wide.dropna(how="all")
    lost = len(wide) - len(kept)
    common = {"unit_name": "question", "role": "descriptive", "seed": seed,
              "exclusions": {"question_not_shared": lost} if lost else {}}
    name, unit = f"{measure}_per_round", UNITS.get(measure, "turns per debate") + " and round"
    if not len(kept) or (kept.notna().any()).sum() < 2:
        return Result(name, nan, unit, n_units=len(kept), status="undefined", **common)
    x = np.broadcast_to(kept.columns.to_numpy(dtype=float), kept.shape)
    y, known = np.nan_to_num(kept.to_numpy(dtype=float)), kept.notna().to_numpy(dtype=float)
    # Least squares needs five sums only, and those of a resample are the sums of its questions'.
    sums = np.stack([(known * part).sum(axis=1) for part in (np.ones_like(y), x, y, x * x, x * y)], axis=1)

    def slope(resampled):
        n, sx, sy, sxx, sxy = np.moveaxis(resampled.sum(axis=1), -1, 0)
        spread = n * sxx - sx**2
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(spread > 0, (n * sxy - sx * sy) / spread, np.nan)

    around = inference.unit_bootstrap(sums, slope, draws=draws, seed=seed)
    return Result(name, float(slope(sums[None])[0]), unit, n_units=len(kept), n_rows=int(known.sum()),
                  low=around.low, high=around.high, interval=around.method, n_boot=around.n_boot,
                  n_undefined=around.n_undefined, flags=around.flags, **common)
