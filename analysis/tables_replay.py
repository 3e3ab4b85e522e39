"""Tables of the replay and the interventions pages as a reader sees them."""

import pandas as pd

from analysis import replay as signed, tables
from analysis.book import count, number, p_value, percent
from analysis.tables import _name, _worded

GATES = tables.GATES | {
    "probe_gated": "probe-gated freeze", "round1_stump": "Round 1 stump",
    "round1_probe_stump": "Round 1 stump with probe flip rates",
}
FEATURES = {
    "unanimous_0": "Round 0 unanimous", "agree_0": "share of the largest Round 0 answer",
    "changed_1": "Round 1 majority changed", "n_flipped_1": "agents that changed their answer in Round 1",
    "agree_1": "share of the largest Round 1 answer",
}
DIRECTIONS = {"from": "≥", "up to": "≤"}
REBUILD = {
    "rows": "computed here from debates", "counts": "computed here from counts",
    "arithmetic": "follows from other printed numbers", "gated": "nothing public below it",
    "reported": "stored total only", "setting": "choice of the protocol",
}


# --- replay -------------------------------------------------------------------------------------------------


def gates(compared):
    """Gates of every cohort, with what each caught of the collapses and of the corrections.

    Parameters
    ----------
    compared : DataFrame
        `replay_cohorts.compare`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import replay_cohorts
    >>> line = replay_cohorts.printed(["probe_gated"]).reset_index().assign(cohort="four", basis="printed")
    >>> found = gates(replay_cohorts.selectivity(line))
    >>> found[["Prevented of collapses", "Break-even ratio"]].iloc[0].tolist()
    ['11.6% (29/251)', '3.72']
    """
    return pd.DataFrame({
        "Gate": compared["gate"].map(GATES),
        "Cohort (debates)": _cohorts(compared),
        "Prevented of collapses": _shares(compared["prevented"], compared["collapse"]),
        "Lost of corrections": _shares(compared["lost"], compared["correction"]),
        "p, equal shares": compared["p_equal"].map(p_value),
        "Net": compared["net"].map(lambda v: number(v, 0)),
        "Change, points": compared["delta_pp"].map(lambda v: number(v, 2)),
        "Break-even ratio": compared["break_even"].map(lambda v: number(v, 2)),
    })


def _cohorts(compared):
    """Cohort, what its line is computed from, and its debates, in one text."""
    basis = compared["basis"].str.removesuffix(" debates").str.removesuffix(" counts")
    return [f"{cohort}, {how} ({count(n)})"
            for cohort, how, n in zip(compared["cohort"], basis, compared["n"], strict=True)]


def _shares(k, n):
    return [f"{percent(a / b)} ({count(a)}/{count(b)})" if b else "–" for a, b in zip(k, n, strict=True)]


def intervals(results, drawn):
    """Gates on public debates with intervals of what they do per debate.

    Parameters
    ----------
    results : DataFrame
        `replay.replay_gates`.
    drawn : DataFrame
        `clusters.gate_bootstrap` of the same gates.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import clusters, data, replay as signed
    >>> paper = data.debates()
    >>> found = intervals(signed.replay_gates(paper), clusters.gate_bootstrap(paper, n_boot=200))
    >>> found["Accuracy change, points [95% interval]"].iloc[0]
    '−8.13 [−9.09, −7.17]'
    """
    ends = drawn[["net", "net_low", "net_high"]].itertuples(index=False)
    return pd.DataFrame({
        "Gate": [GATES.get(name, name) for name in results.index],
        "Frozen": _shares(results["gated"], results["n"]),
        "Prevented": _shares(results["prevented"], results["collapse"]),
        "Lost": _shares(results["lost"], results["correction"]),
        "Accuracy change, points [95% interval]": [
            f"{_points(v)} [{_points(low)}, {_points(high)}]" for v, low, high in ends
        ],
        "Break-even ratio": results["break_even"].map(lambda v: number(v, 2)),
    })


def _points(share):
    return number(100 * share, 2)


def ladder(compared, ratios):
    """Accuracy-equivalent points as a collapse is worth more corrections.

    Parameters
    ----------
    compared : DataFrame
        `replay_cohorts.compare`.
    ratios : sequence of float
        As for `replay.ladder`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import replay_cohorts
    >>> line = replay_cohorts.printed(["probe_gated"]).reset_index().assign(cohort="four", basis="printed")
    >>> ladder(line, [1, 2])[["r = 1", "r = 2"]].iloc[0].tolist()
    ['−1.21', '−0.77']
    """
    rungs = signed.ladder(compared, ratios)
    return pd.DataFrame({
        "Gate": compared["gate"].map(GATES),
        "Cohort (debates)": _cohorts(compared),
        **{f"r = {ratio:g}": [number(v, 2) for v in rungs[ratio]] for ratio in ratios},
        "Break-even ratio": [number(v, 2) for v in rungs["break_even"]],
    })


def replay_grid(results):
    """Prevented, lost and net of each gate in each row: one line a row, one column a gate.

    Parameters
    ----------
    results : DataFrame
        `sensitivity.gates`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, sensitivity
    >>> replay_grid(sensitivity.gates(data.debates(), data.debates().iloc[:0]))["always freeze"].iloc[2]
    '86 − 98 = −12'
    """
    named = results.assign(
        Row=[_name(r) for r in results.itertuples()],
        gate=results["gate"].map(GATES),
        cell=[f"{count(a)} − {count(b)} = {number(a - b, 0)}"
              for a, b in zip(results["prevented"], results["lost"], strict=True)],
    )
    wide = named.pivot(index="Row", columns="gate", values="cell")
    wide = wide.loc[named["Row"].unique(), list(tables.GATES.values())]
    return wide.reset_index().rename_axis(columns=None)


def points(compared, cohorts):
    """Gates for the figure of prevented against lost: those that do anything.

    Parameters
    ----------
    compared : DataFrame
        `replay_cohorts.compare`.
    cohorts : sequence of str
        Its cohorts to show.

    Returns
    -------
    DataFrame
        `gate` (in words), `cohort`, `n`, `prevented`, `lost`, `break_even`.

    Examples
    --------
    >>> from analysis import replay_cohorts
    >>> line = replay_cohorts.printed(["probe_gated"]).reset_index().assign(cohort="four", basis="printed")
    >>> points(line, ["four"])[["gate", "prevented", "lost"]].values.tolist()
    [['probe-gated freeze', 29, 108]]
    """
    acts = compared[["prevented", "lost"]].sum(axis=1) > 0
    chosen = compared[acts & compared["cohort"].isin(cohorts)]
    printed = chosen["basis"].map({"printed counts": " (printed)"}).fillna("")
    chosen = chosen.assign(gate=chosen["gate"].map(GATES) + printed)
    return chosen[["gate", "cohort", "n", "prevented", "lost", "break_even"]].reset_index(drop=True)


def stumps(found):
    """Learned gates, each row held out.

    Parameters
    ----------
    found : DataFrame
        `stumps.sweep`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, stumps as learned
    >>> stumps(learned.sweep({"six rows": data.debates()}))["Rows with a gate"].tolist()
    ['0/6', '0/6', '0/6', '1/6']
    """
    return pd.DataFrame({
        "Cohort": found["cohort"],
        "Features of": found["features"].map({"Round 0": "Round 0", "Round 1": "Rounds 0 and 1"}),
        "Price of freezing all, points": [number(100 * v, 0) for v in found["penalty"]],
        "Rows with a gate": [f"{k}/{n}" for k, n in zip(found["rules"], found["rows"], strict=True)],
        "Frozen": _shares(found["gated"], found["n"]),
        "Prevented": _shares(found["prevented"], found["collapse"]),
        "Lost": _shares(found["lost"], found["correction"]),
        "Net": found["net"].map(lambda v: number(v, 0)),
    })


def oracle(found):
    """The gate that each row would have chosen with hindsight.

    Parameters
    ----------
    found : DataFrame
        `stumps.oracle`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, stumps as learned
    >>> oracle(learned.oracle(data.debates()))["Freezes where"].iloc[2]
    'Round 1 majority changed ≤ 0'
    """
    own = zip(found["feature"], found["direction"], found["threshold"], strict=True)
    rules = [
        "never" if pd.isna(feature) else f"{FEATURES.get(feature, feature)} {DIRECTIONS[side]} {limit:.3g}"
        for feature, side, limit in own
    ]
    rules[-1] = "each row's own"
    return pd.DataFrame({
        "Row": found["row"].replace(tables.POOLED, "all six"),
        "Freezes where": rules,
        "Frozen": _shares(found["gated"], found["n"]),
        "Prevented": _shares(found["prevented"], found["collapse"]),
        "Lost": _shares(found["lost"], found["correction"]),
        "Accuracy change, points": found["delta_pp"].map(lambda v: number(v, 2)),
        "Perfect gate, points": found["ceiling_pp"].map(lambda v: number(v, 2)),
    })


def released(frozen, printed):
    """Always freezing the released sources, beside what is printed of it.

    Parameters
    ----------
    frozen : DataFrame
        `replay_cohorts.always_frozen`.
    printed : DataFrame
        `replay_cohorts.printed` with the line "always_freeze".

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, replay_cohorts as r
    >>> primary = r.sources(data.table("replay_sources"), data.table("four_round_ledger"))
    >>> released(r.always_frozen(primary), r.printed(["always_freeze"]))["Debates"].tolist()
    ['2,438', '1,258', '1,180', '1,255']
    """
    names = {"all primary sources": "released: all primary sources",
             "replicated": "released: sources the four-round replication reads too",
             "others": "released: the other primary sources"}
    theirs = printed.loc[["always_freeze"]].assign(sources="–")
    theirs = theirs.rename(index={"always_freeze": "printed in the paper"})
    both = pd.concat([frozen.rename(index=names), theirs])
    return pd.DataFrame({
        "Cohort": both.index,
        "Sources": both["sources"].map(str),
        "Debates": both["n"].map(count),
        "Collapses prevented": both["prevented"].map(count),
        "Corrections lost": both["lost"].map(count),
        "Accuracy change, points": both["delta_pp"].map(lambda v: number(v, 2)),
        "Break-even ratio": both["break_even"].map(lambda v: number(v, 2)),
    }).reset_index(drop=True)


# --- what is printed ----------------------------------------------------------------------------------------


def as_printed(registry, places):
    """Numbers that the paper prints first in some places, with what each could be rebuilt from.

    Parameters
    ----------
    registry : DataFrame
        `claims.registry`.
    places : sequence of str
        Such as "E.8".

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import claims
    >>> as_printed(claims.registry(), ["E.8"])["Printed"].tolist()
    ['−1.21', '1', '3', '0.05', '87', '0.80']
    """
    chosen = printed_in(registry, places)
    return pd.DataFrame({
        "Quantity": chosen["quantity"].map(_worded),
        "Of": chosen["scope"].map(_worded),
        "Printed": chosen["printed"].str.replace("-", "−"),
        "Unit": chosen["unit"],
        "Rests on": chosen["rebuild"].map(REBUILD),
    })


def printed_in(registry, places):
    """Lines of the registry that are printed first in one of some places.

    Examples
    --------
    >>> from analysis import claims
    >>> printed_in(claims.registry(), ["E.8"])["id"].tolist()[:2]
    ['e8.pooled', 'e8.n_cross']
    """
    first = registry["paper_location"].str.split("; ").str[0]
    return registry[first.isin(places)].reset_index(drop=True)


def paired(found):
    """Paired tests of which only the result is printed.

    Parameters
    ----------
    found : DataFrame
        `interventions.paired_tests`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import interventions
    >>> paired(interventions.paired_tests())["Cells that give it, exact test"].iloc[4]
    '78 against 88'
    """
    known = found["net"].notna()
    cells = [
        f"{count(a)} against {count(b)}" if pd.notna(a) else pairs
        for pairs, a, b in zip(_pairs(found["exact"]), found["only_a"], found["only_b"], strict=True)
    ]
    return pd.DataFrame({
        "Test": found["test"],
        "Questions": found["n"].map(count),
        "Difference, questions": [number(v, 0) if pd.notna(v) else "not told" for v in found["net"]],
        "Exact p possible": [
            f"{p_value(low)} to {p_value(high)}" if ok else "any"
            for low, high, ok in zip(found["low"], found["high"], known, strict=True)
        ],
        "Printed p": found["p"].map(number),
        "Cells that give it, exact test": cells,
        "With correction": _pairs(found["corrected"]),
        "Without correction": _pairs(found["uncorrected"]),
    })


def _pairs(counts):
    words = {0: "none", 1: "1 pair"}
    return ["–" if pd.isna(k) else words.get(k, f"{count(k)} pairs") for k in counts]


def percentages(found):
    """Printed percentages and the denominators that give them.

    Parameters
    ----------
    found : DataFrame
        `interventions.percentages`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import interventions
    >>> percentages(interventions.percentages())["Denominators that give all"].iloc[1]
    '192'
    """
    sizes = [
        ", ".join(map(count, fit)) if len(fit) < 10 else f"{count(len(fit))} sizes, up to {count(fit[-1])}"
        for fit in found["sizes"]
    ]
    return pd.DataFrame({
        "Percentages of": found["of"],
        "Questions, as printed": found["n"].map(count),
        "Percentages printed": found["percents"].map(count),
        "That a count of these questions gives": found["possible"].map(count),
        "Denominators that give all": sizes,
    })
