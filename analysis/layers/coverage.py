"""Do the estimators find what was set? Bias, coverage of intervals and level of tests on simulated truth.

``python -m analysis.layers.coverage`` runs the study once and writes data/layers/coverage.csv.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis.layers import judge, persistence, selfreport, simulate, stance
from analysis.layers import stance_contrasts as contrasts
from analysis.layers.agreement import cluster_tables, coefficients
from analysis.layers.inference import sign_flip, unit_bootstrap
from analysis.layers.relabelling import stance_null

PATH = Path(__file__).resolve().parents[2] / "data" / "layers" / "coverage.csv"
SEED = 20_240_917
RUNS = 800
DRAWS = 2_000  # resamples of an interval, and sign patterns of a sampled test
EXACT_UNITS = 20  # sign-flip tests count all patterns up to here and sample them above, to save time
LEVEL, ALPHA = 0.95, 0.05
FULL = "fully_agreed"
STUDENT = "Student t"
BLOCK = 100  # runs made at once
COLUMNS = ["layer", "measure", "role", "setting", "values", "unit", "n_units", "runs", "set_value", "mean",
           "bias", "bias_se", "nominal", "expected", "covered", "covered_se", "interval", "alpha", "rejected",
           "rejected_se", "test", "undefined", "draws", "seed"]


class Case(NamedTuple):
    """One measure under one setting: a value per unit and run, and the set value that it has to recover.

    `setting` is a name, `values` what it sets other than the defaults. `role` is "recovers" (a set value
    other than 0), "no effect" (a set value of 0, so that every rejection is a false alarm), "few units" (the
    same on a part of the units) or "warning" (what a tempting short cut gives).
    """

    layer: str
    measure: str
    role: str
    setting: str
    values: str
    unit: str
    value: float
    units: list
    statistic: object = None
    test: bool = True
    interval: str = "percentile bootstrap"


# --- one case -----------------------------------------------------------------------------------------------

def expected_coverage(n, level=LEVEL):
    """Coverage that a percentile bootstrap of a mean can be expected to have for n normal units.

    Parameters
    ----------
    n : float
        Units.
    level : float
        Nominal coverage.

    Returns
    -------
    float
        Its spread is that of the sample, without the correction for estimating it: less than nominal,
        noticeably so below 20 units.

    References
    ----------
    Efron and Tibshirani (1993), An Introduction to the Bootstrap, sec. 12.5 and 13.3.

    Examples
    --------
    >>> [round(expected_coverage(n), 3) for n in (8, 16, 50)]
    [0.891, 0.923, 0.942]
    """
    half = sps.norm.ppf((1 + level) / 2) * np.sqrt((n - 1) / n)
    return float(1 - 2 * sps.t.sf(half, n - 1))


def assess(case, *, draws=DRAWS, seed=SEED):
    """Estimate, interval and test in every run of a case, and what they come to.

    Parameters
    ----------
    case : Case
    draws : int
        Resamples of every interval.
    seed : int

    Returns
    -------
    dict
        The columns of `study`; ``_se`` are Monte Carlo standard errors.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> case = Case("D", "mean", "no effect", "normal", "", "nats", 0.0, list(rng.normal(size=(200, 12))))
    >>> row = assess(case, draws=500)
    >>> bool(abs(row["bias"]) < 4 * row["bias_se"]), bool(row["covered"] > row["expected"] - 0.08)
    (True, True)
    """
    rows = []
    for i, units in enumerate(case.units):
        if case.interval == STUDENT:
            low, high = _student(units)
        else:
            low, high = unit_bootstrap(units, case.statistic, draws=draws, level=LEVEL, seed=seed + i)[:2]
        estimate = units.mean() if case.statistic is None else case.statistic(units[None])[0]
        p = np.nan
        if case.test:
            p = sign_flip(units, exact_up_to=EXACT_UNITS, draws=draws - 1, seed=seed + i).p
        rows.append((estimate, low, high, p, len(units)))
    estimate, low, high, p, n = np.array(rows, dtype=float).T
    known = ~np.isnan(low)
    n_units, runs = n.mean(), len(case.units)
    inside = (low <= case.value + 1e-12) & (case.value - 1e-12 <= high)
    covered = inside[known].mean() if known.any() else np.nan
    rejected = (p <= ALPHA + 1e-12).mean() if case.test else np.nan
    return {
        "layer": case.layer, "measure": case.measure, "role": case.role, "setting": case.setting,
        "values": case.values, "unit": case.unit,
        "n_units": n_units, "runs": runs, "set_value": case.value, "mean": estimate.mean(),
        "bias": estimate.mean() - case.value, "bias_se": estimate.std(ddof=1) / np.sqrt(runs),
        "nominal": LEVEL, "covered": covered,
        "expected": LEVEL if case.interval == STUDENT else expected_coverage(n_units, LEVEL),
        "covered_se": np.sqrt(covered * (1 - covered) / max(known.sum(), 1)), "interval": case.interval,
        "alpha": ALPHA if case.test else np.nan, "rejected": rejected,
        "rejected_se": np.sqrt(rejected * (1 - rejected) / runs),
        "test": "sign flip" if case.test else "", "undefined": int((~known).sum()), "draws": draws,
        "seed": seed}


def _student(units):
    """Return the ends of the t interval of the mean, which allows for the spread being estimated."""
    half = sps.t.ppf((1 + LEVEL) / 2, len(units) - 1) * sps.sem(units)
    return units.mean() - half, units.mean() + half


def _by_run(values, runs):
    """Split values per unit, whose names start with the run and a slash, into one array a run."""
    run = values.index.str.partition("/").get_level_values(0).astype(int)
    array = values.to_numpy(dtype=float)
    return [part[~np.isnan(part).reshape(len(part), -1).any(axis=1)]
            for part in (array[run == r] for r in range(runs))]


def _blocks(runs, seed):
    """Yield the size and seed of blocks of runs."""
    for block, start in enumerate(range(0, runs, BLOCK)):
        yield max(2, min(BLOCK, runs - start)), [*np.atleast_1d(seed).tolist(), block]


def _few(case, n):
    """Return the case on the first n units of every run."""
    return case._replace(role="few units", units=[units[:n] for units in case.units])


# --- labels, judgements and re-queries ----------------------------------------------------------------------

def ratio_of_means(resampled):
    """Mean of the first column over mean of the second, for resamples of shape (draws, units, 2)."""
    totals = resampled.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return totals[:, 0] / totals[:, 1]


_STATISTICS = {
    "blind_over_self": ratio_of_means,
    "judge_ac1": lambda tables: coefficients(tables.sum(axis=1), "ac1"),
    "judge_kappa": lambda tables: coefficients(tables.sum(axis=1), "quadratic_kappa"),
}
_COMMITTEE_UNITS = {"blind_over_self": "ratio", "judge_ac1": "coefficient", "judge_kappa": "coefficient"}


_BLIND = ("blind_drop", "self_minus_blind", "blind_over_self")
_ASKED = ("removed_minus_retained", "draw1_minus_draw2", "hostile_minus_neutral")


def _judge_tables(judgements, turns, runs):
    """Return two judges' severities crossed in every question, a list of (questions, 4, 4) by run."""
    one, two = (part.set_index("turn_id")["severity"] for _, part in judgements.groupby("judge_model"))
    question = turns.loc[one.index, "question_id"]
    tables = cluster_tables(one.to_numpy(), two.loc[one.index].to_numpy(), question.to_numpy(), range(4))
    return list(tables.astype(float).reshape(runs, -1, 4, 4))


def _drop(turns):
    """Return friendly minus hostile full agreement of every question."""
    rates = selfreport.by_question(turns)
    return rates["friendly"] - rates["hostile"]


def _committee_values(made, setting, measures, seed):
    """Return the values by question of measures on labels, judgements and re-queries."""
    out = {}
    if not set(measures) <= set(_ASKED):
        turns = selfreport.debate_turns(made["debates"], made["turns"])
        out["self_drop"] = own = _drop(turns)
        # Labels that the form filled in counted like any others:
        full = (turns["agreed_level"] == FULL).astype(float)
        out["self_drop_with_defaults"] = _drop(turns.assign(full=full))
        if set(measures) & set(_BLIND):
            first = made["judgements"]["judge_model"] == "judge0"
            out["blind_drop"] = blind = _drop(judge.read(turns, made["judgements"][first]))
            out["self_minus_blind"] = own - blind
            out["blind_over_self"] = pd.DataFrame({"blind": blind, "self": own})
    if set(measures) & set(_ASKED):
        asked = persistence.pairs(simulate.requeries(made["turns"], setting, seed=seed))
        by = asked[asked["excluded"] == ""].groupby(["stance_arm", "question_id"])["contrast"].mean()
        out["removed_minus_retained"], out["draw1_minus_draw2"] = by["hostile"], by["neutral"]
        out["hostile_minus_neutral"] = (by["hostile"] - by["neutral"]).dropna()
    return out


def committee_cases(setting, name="default", *, runs, seed, role="recovers", measures=None):
    """Cases of the measures on labels, judgements and re-queries.

    Parameters
    ----------
    setting : simulate.Setting
    name : str
        What the setting is called in the table.
    runs : int
    seed : int or sequence of int
    role : str
        As in `Case`.
    measures : sequence of str, optional
        Names as in `simulate.truth`, and ``self_drop_with_defaults``, ``hostile_minus_neutral``; the common
        ones if left out.

    Returns
    -------
    list of Case

    Examples
    --------
    >>> cases = committee_cases(simulate.Setting(questions=8), runs=3, seed=0, measures=["blind_drop"])
    >>> cases[0].measure, round(cases[0].value, 3), len(cases[0].units), cases[0].units[0].shape
    ('blind_drop', 0.405, 3, (8,))
    """
    measures = measures or ("self_drop", "blind_drop", "self_minus_blind", "blind_over_self", "judge_ac1",
                            "judge_kappa", "removed_minus_retained", "hostile_minus_neutral")
    found = {measure: [] for measure in measures}
    for size, block in _blocks(runs, seed):
        two = any(measure.startswith("judge_") for measure in measures)
        made = simulate.debates(setting, runs=size, judges=1 + two, seed=block)
        values = _committee_values(made, setting, measures, [*block, 1])
        tables = _judge_tables(made["judgements"], made["turns"].set_index("turn_id"), size) if two else []
        for measure in measures:
            found[measure] += tables if measure.startswith("judge_") else _by_run(values[measure], size)
    true = simulate.truth(setting)
    true |= {"self_drop_with_defaults": true["self_drop"],
             "hostile_minus_neutral": true["removed_minus_retained"]}
    layers = {"self_drop": "A", "self_drop_with_defaults": "A", "blind_drop": "B", "self_minus_blind": "B",
              "blind_over_self": "B", "judge_ac1": "B", "judge_kappa": "B"}
    return [Case(layers.get(measure, "C"), measure, role, name, simulate.describe(setting),
                 _COMMITTEE_UNITS.get(measure, "share"), true[measure], found[measure][:runs],
                 _STATISTICS.get(measure), measure not in _STATISTICS)
            for measure in measures]


def relabelling_rows(setting, *, runs, seed, draws=499):
    """How often relabelled stances call a difference where none is set, at the two levels.

    Parameters
    ----------
    setting : simulate.Setting
        With equal agreement in friendly and hostile debates and no inflation.
    runs : int
    seed : int or sequence of int
    draws : int
        Relabellings a test, where not all are counted.

    Returns
    -------
    list of dict
        As from `assess`; a test has no interval.
    """
    rejected = {"record": [], "chain": []}
    for size, block in _blocks(runs, seed):
        made = simulate.debates(setting, runs=size, seed=block)
        replies = selfreport.debate_turns(made["debates"], made["turns"])
        replies = replies[replies["stance"] != "neutral"]
        run = replies["question_id"].str.partition("/")[0].astype(int)
        for number, part in replies.groupby(run):
            for level, out in rejected.items():
                found = stance_null(part, "full", level=level, draws=draws, seed=[*block, 2, number])
                out.append(found.p <= ALPHA + 1e-12)
    rows = []
    for level, hits in rejected.items():
        share = np.mean(hits[:runs])
        rows.append(dict.fromkeys(COLUMNS) | {
            "layer": "A", "measure": f"self_drop, {level}-level relabelling",
            "role": "no effect" if level == "record" else "warning",
            "setting": "no difference, debates far apart", "values": simulate.describe(setting),
            "unit": "share", "n_units": setting.questions,
            "runs": runs, "set_value": 0.0, "alpha": ALPHA, "rejected": share,
            "rejected_se": np.sqrt(share * (1 - share) / runs), "test": f"{level}-level relabelling",
            "undefined": 0, "draws": draws, "seed": np.atleast_1d(seed)[0]})
    return rows


# --- stance reads -------------------------------------------------------------------------------------------

_STANCE_VALUES = {
    "conviction": lambda cells: contrasts.propositions(cells, "conviction_own"),
    "conviction, peak anchor": lambda cells: contrasts.propositions(cells, "conviction_peak"),
    "direction": lambda cells: contrasts.propositions(cells, "heat_free_shift", bucket="mid"),
    "direction, raw": lambda cells: contrasts.propositions(cells, "raw_shift", bucket="mid"),
    "strong_minus_irrelevant": lambda cells: contrasts.gaps(cells)[0],
    "strong_minus_weak": lambda cells: contrasts.gaps(cells, kinds=("strong", "weak"))[0],
}


def stance_cases(setting, name="default", *, runs, seed, role="recovers", measures=None):
    """Cases of the measures on stance reads.

    Parameters
    ----------
    setting : simulate.Setting
    name : str
        What the setting is called in the table.
    runs : int
    seed : int or sequence of int
    role : str
        As in `Case`.
    measures : sequence of str, optional
        "conviction", "conviction, peak anchor", "direction", "direction, raw", "strong_minus_irrelevant",
        "strong_minus_weak"; those without a comma if left out.

    Returns
    -------
    list of Case

    Examples
    --------
    >>> cases = stance_cases(simulate.Setting(propositions=4), runs=2, seed=0, measures=["conviction"])
    >>> cases[0].measure, cases[0].value, cases[0].units[1].shape
    ('conviction', -1.2, (4,))
    """
    measures = measures or [name for name in _STANCE_VALUES if "," not in name]
    found = {measure: [] for measure in measures}
    for size, block in _blocks(runs, seed):
        cells = stance.read_cells(*simulate.likert(setting, runs=size, seed=block), signs=False)
        cells["receiver"] = "receiver"  # the run is in the name of the proposition
        for measure in measures:
            found[measure] += _by_run(_STANCE_VALUES[measure](cells), size)
    true = simulate.truth(setting)
    return [Case("D", measure, role, name, simulate.describe(setting),
                 "nats" if measure.startswith("conviction") else "scale points",
                 true[measure.partition(",")[0]], found[measure][:runs])
            for measure in measures]


# --- the study ----------------------------------------------------------------------------------------------

def _level(**changes):
    same = dict.fromkeys(simulate.STANCES, 0.55)
    return simulate.Setting(**{"agree": same, "label_inflation": 0.0, "judge_bias": 0.1} | changes)


NO_CHANGE = dict.fromkeys(stance.KINDS, 0.0)


def study(*, runs=RUNS, draws=DRAWS, seed=SEED):
    """Every estimator under settings where it should find something, find nothing, or mislead.

    Parameters
    ----------
    runs : int
        Simulated studies a setting (half of that for the last settings).
    draws : int
        Resamples of every interval.
    seed : int

    Returns
    -------
    DataFrame
        One line a measure and setting: ``layer, measure, role, setting, values, unit, n_units`` (mean over
        the runs), ``runs, set_value, mean, bias, bias_se``; ``nominal`` coverage, the ``expected`` one with
        so many units (see `expected_coverage`; Student's t should keep to the nominal one), ``covered,
        covered_se, interval``; ``alpha, rejected, rejected_se`` of the test (level where nothing is set, else
        power); ``undefined`` runs without interval; ``draws, seed``.

    Examples
    --------
    >>> table = study(runs=3, draws=50, seed=1)
    >>> sorted(set(table.layer)), sorted(set(table.role))
    (['A', 'B', 'C', 'D'], ['few units', 'no effect', 'recovers', 'warning'])
    """
    default = simulate.Setting()
    cases = committee_cases(default, runs=runs, seed=[seed, 0])
    cases += [_few(cases[0], n) for n in (8, 20)]
    cases += committee_cases(_level(), "no difference", runs=runs, seed=[seed, 1], role="no effect",
                             measures=["self_drop", "blind_drop", "self_minus_blind"])
    own, blind = committee_cases(_level(label_inflation=0.3), "labels move, texts do not", runs=runs,
                                 seed=[seed, 2], measures=["self_drop", "blind_drop"])
    cases += [own, blind._replace(role="no effect")]
    harsh = simulate.Setting(label_inflation=0.0, judge_bias=0.3)
    cases += committee_cases(harsh, "harsh judge", runs=runs, seed=[seed, 3], measures=[
        "self_minus_blind", "blind_over_self", "judge_ac1", "judge_kappa"])
    filled = simulate.Setting(default_share={"friendly": 0.1, "neutral": 0.1, "hostile": 0.4})
    kept, all_ = committee_cases(filled, "labels by default", runs=runs, seed=[seed, 4],
                                 measures=["self_drop", "self_drop_with_defaults"])
    cases += [kept, all_._replace(role="warning")]
    free = simulate.Setting(stance_dependence=0.0, persistence=0.6)
    cases += committee_cases(free, "no dependence", runs=runs, seed=[seed, 5], role="no effect", measures=[
        "removed_minus_retained", "draw1_minus_draw2", "hostile_minus_neutral"])

    read = stance_cases(default, runs=runs, seed=[seed, 6])
    cases += [*read, _few(read[0], 8)]
    # Beside the percentile bootstrap, the interval that few units call for.
    cases += [case._replace(interval=STUDENT, test=False) for case in (read[0], read[1], _few(read[0], 8))]
    still = simulate.Setting(conviction=NO_CHANGE, direction=NO_CHANGE, direction_spread=0.1)
    cases += stance_cases(still, "no change", runs=runs, seed=[seed, 7], role="no effect")
    # Reads that are only heated: the raw shift moves although no direction is set.
    half = max(runs // 2, 2)
    heated = simulate.Setting(direction=NO_CHANGE, conviction=dict.fromkeys(stance.KINDS, -0.8), heat=2.0)
    free_, raw = stance_cases(heated, "heat without direction", runs=half, seed=[seed, 8],
                              measures=["direction", "direction, raw"])
    cases += [free_._replace(role="no effect"), raw._replace(role="warning")]
    turned = simulate.Setting(conviction=dict.fromkeys(stance.KINDS, -3.0))
    anchored, peak = stance_cases(turned, "stance reversed", runs=half, seed=[seed, 9],
                                  measures=["conviction", "conviction, peak anchor"])
    cases += [anchored, peak._replace(role="warning")]

    rows = [assess(case, draws=draws, seed=seed) for case in cases]
    apart = _level(questions=12, agree_spread=0.4)
    rows += relabelling_rows(apart, runs=half, seed=[seed, 10])
    return pd.DataFrame(rows, columns=COLUMNS)


def write(path=PATH, **options):
    """Run the study and write its table.

    Parameters
    ----------
    path : path-like
    **options
        Of `study`.

    Returns
    -------
    DataFrame
    """
    table = study(**options)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".tmp")
    table.to_csv(beside, index=False, float_format="%.6g")
    beside.replace(path)
    return table


def load(path=PATH):
    """The table of the stored study.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    DataFrame
        As from `study`.

    Examples
    --------
    >>> list(load().columns) == COLUMNS
    True
    """
    return pd.read_csv(path).fillna({"test": "", "interval": "", "values": ""})


if __name__ == "__main__":
    write()
