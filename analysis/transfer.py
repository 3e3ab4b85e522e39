"""Ledgers of which only counts are public: other benchmarks, held-out models, mixed panels, later rows.

Functions take tables of data/ and return frames, one line a ledger.
"""

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis import screen, stats
from analysis.errors import choice

# Half of the released summaries round the normal quantile before they use it.
ROUNDED_Z = 1.96
INTERVALS = (*stats.INTERVALS, "wilson_1.96")
# Rate -> its numerator and denominator.
RATES = {"c_cond": ("collapse", "init_correct"), "correction_rate": ("correction", "init_wrong")}
PAIRED = ("collapse", "correction", "init_correct", "init_wrong")
N_AGENTS = 3
HELD_OUT = "qwen3-32b"
GROUPS = {
    "heterogeneous_panels": "mixed panel", "gsm8k": "GSM8K", "other_extension_rows": "MMLU-Pro, later",
    "effort_gradient": "MMLU-Pro, later", "reasoning_rows": "MMLU-Pro, later",
}
BENCHMARKS = {"gpqa": "GPQA Diamond", "truthfulqa": "TruthfulQA", "arc": "ARC-Challenge"}
ORDER = [*BENCHMARKS.values(), "GSM8K", "MMLU-Pro, held out", "MMLU-Pro, later", "mixed panel"]


# --- counts to rates ----------------------------------------------------------------------------------------


def bounds(k, n, interval="wilson"):
    """95% interval of a proportion, with the released summaries' rounded quantile as a third choice.

    Parameters
    ----------
    k, n : float or array_like of float
        Events and trials.
    interval : {"wilson", "jeffreys", "wilson_1.96"}

    Returns
    -------
    low, high : float or ndarray of float
        Fractions.

    Examples
    --------
    >>> [round(100 * bounds(3, 11, kind)[1], 2) for kind in ("wilson", "wilson_1.96")]
    [56.56, 56.57]
    """
    match choice("interval", interval, INTERVALS):
        case "wilson":
            return stats.wilson(k, n)
        case "jeffreys":
            return stats.jeffreys(k, n)
    return stats.wilson(k, n, level=2 * sps.norm.cdf(ROUNDED_Z) - 1)


def rates(table, *, interval="wilson"):
    """Rates, intervals and nets that follow from the counts of a ledger.

    Parameters
    ----------
    table : DataFrame
        `n, init_correct, collapse, correction` (debates). `init_wrong` is made where absent (all others), and
        so is `final_correct` (what the transitions leave right).
    interval : {"wilson", "jeffreys", "wilson_1.96"}

    Returns
    -------
    DataFrame
        The table with `init_wrong, final_correct, net` (corrections minus collapses), `init_undefined`
        (starts in neither denominator), `init_acc, final_acc` (over n), `c_cond` (collapses over right
        starts) and `correction_rate` (corrections over wrong starts), the last two with `_low` and `_high`.

    References
    ----------
    Equation 7; Tables 29, 30, 31 and 42.

    Examples
    --------
    >>> counts = pd.DataFrame({"n": [10], "init_correct": [6], "collapse": [1], "correction": [2]})
    >>> rates(counts)[["init_wrong", "final_correct", "net"]].values.tolist()
    [[4, 7, 1]]
    """
    out = table.copy()
    out["net"] = out["correction"] - out["collapse"]
    if "init_wrong" not in out:
        out["init_wrong"] = out["n"] - out["init_correct"]
    out["init_undefined"] = out["n"] - out["init_correct"] - out["init_wrong"]
    if "final_correct" not in out:
        out["final_correct"] = out["init_correct"] + out["net"]
    out["init_acc"], out["final_acc"] = out["init_correct"] / out["n"], out["final_correct"] / out["n"]
    for rate, (k, n) in RATES.items():
        out[rate] = out[k] / out[n]
        out[f"{rate}_low"], out[f"{rate}_high"] = bounds(out[k], out[n], interval)
    return out


def net_interval(collapse, correction, init_correct, init_wrong):
    """95% interval of the accuracy change: a difference of two proportions of the same debates.

    Parameters
    ----------
    collapse, correction, init_correct, init_wrong : array_like of float
        Debates.

    Returns
    -------
    change, low, high : ndarray of float
        Fractions of the debates with a defined start.

    References
    ----------
    Newcombe, R. G. (1998), Improved confidence intervals for the difference between binomial proportions
    based on paired data, method 10 (Wilson limits of both proportions, joined through their correlation).

    Examples
    --------
    >>> [round(float(v), 4) for v in net_interval(12, 2, 48, 2)]
    [-0.2, -0.3404, -0.0569]
    """
    counts = (collapse, correction, init_correct, init_wrong)
    collapse, correction, right, wrong = (np.asarray(values, float) for values in counts)
    kept, left, n = right - collapse, wrong - correction, right + wrong
    end_right = kept + correction
    start, end = right / n, end_right / n
    (start_low, start_high), (end_low, end_high) = stats.wilson(right, n), stats.wilson(end_right, n)
    cross = kept * left - collapse * correction
    # Newcombe's correction takes up to n/2 off a positive association.
    cross = np.where(cross > 0, np.maximum(cross - n / 2, 0), cross)
    scale = np.sqrt(right * wrong * end_right * (n - end_right))
    phi = np.divide(cross, scale, out=np.zeros_like(n), where=scale > 0)

    def reach(a, b):
        return np.sqrt(a**2 - 2 * phi * a * b + b**2)

    change = (correction - collapse) / n
    below, above = reach(end - end_low, start_high - start), reach(end_high - end, start - start_low)
    return change, change - below, change + above


def net_change(ledgers):
    """What debating changed in each line, with its interval.

    Parameters
    ----------
    ledgers : DataFrame
        `init_correct, init_wrong, collapse, correction`, as from `everything`; added rows may stand under
        them, without a group.

    Returns
    -------
    DataFrame
        The lines with `net` (debates) and `change, change_low, change_high` (fractions of the debates with a
        defined start).

    Examples
    --------
    >>> counts = {"init_correct": 6, "init_wrong": 4, "collapse": 1, "correction": 2}
    >>> told = pd.DataFrame([{"group": "g"} | counts])
    >>> net_change(told)[["net", "change"]].values.tolist()
    [[1.0, 0.1]]
    """
    change, low, high = net_interval(*(ledgers[name] for name in PAIRED))
    return ledgers.assign(
        group=ledgers["group"].fillna("added"), net=ledgers["correction"] - ledgers["collapse"],
        change=change, change_low=low, change_high=high,
    )


def whole_counts(rate, n, digits=4):
    """Counts k for which k/n rounds to a released rate.

    Parameters
    ----------
    rate : float
        Fraction.
    n : int
        Trials.
    digits : int
        Decimals of the released fraction.

    Returns
    -------
    list of int
        None, one or several; a count half way between two roundings is in.

    Examples
    --------
    >>> whole_counts(0.0187, 2400), whole_counts(0.7455, 1000), whole_counts(0.7455, 2000)
    ([45], [], [1491])
    """
    half = 0.5 * 10.0**-digits + 1e-12
    k = np.arange(max(0, int(np.floor((rate - half) * n))), min(n, int(np.ceil((rate + half) * n))) + 1)
    return k[np.abs(k / n - rate) <= half].tolist()


# --- the ledgers --------------------------------------------------------------------------------------------


def benchmarks(cross_benchmark, runs, *, interval="wilson"):
    """Ledgers on GPQA, TruthfulQA and ARC, one line a run and benchmark.

    Parameters
    ----------
    cross_benchmark, runs : DataFrame
        Counts by run and benchmark; what each run is.
    interval : str
        As in `rates`.

    Returns
    -------
    DataFrame
        `row` (model), `group` (benchmark), `full` (in the paper's Table 30), and `rates`. A missing first
        majority counts as wrong.

    References
    ----------
    D.3; Table 30.

    Examples
    --------
    >>> from analysis import data
    >>> found = benchmarks(data.table("cross_benchmark"), data.table("cross_benchmark_runs"))
    >>> found.query("full")["net"].tolist()
    [1, 7, 37, 7]
    """
    ran = runs.set_index("run")
    out = cross_benchmark.assign(
        row=cross_benchmark["run"].map(ran["model"]).str.removeprefix("models/").str.removesuffix("-preview"),
        group=cross_benchmark["benchmark"].map(BENCHMARKS),
        full=cross_benchmark["run"].map(ran["in_paper_table"]),
    )
    return rates(out, interval=interval)


def holdouts(table, *, interval="wilson"):
    """Held-out models at both endpoints, one line a model and last round.

    Parameters
    ----------
    table : DataFrame
        data/holdouts.csv.
    interval : str
        As in `rates`.

    Returns
    -------
    DataFrame
        `rates` with `endpoint_round` (3 or 4; missing for the row that has one set of counts only). A start
        without a majority is in neither denominator; an end without one is neither collapse nor correction.

    References
    ----------
    D.2 and D.5; Tables 29 and 31.

    Examples
    --------
    >>> from analysis import data
    >>> found = holdouts(data.table("holdouts")).query("row == 'mistral-small-4'")
    >>> found[["endpoint_round", "collapse", "correction"]].values.tolist()
    [[4.0, 7.0, 13.0], [3.0, 4.0, 11.0]]
    """
    both = table["collapse_3"].notna()
    at_3 = table[both].assign(
        collapse=table["collapse_3"],
        correction=table["correction_3"],
        final_correct=table["correct_3"],
        endpoint_round=3,
    )
    at_4 = table.assign(endpoint_round=np.where(both, 4, np.nan))
    order = table["row"].tolist()
    out = pd.concat([at_4, at_3], ignore_index=True).drop(columns=["collapse_3", "correction_3", "correct_3"])
    counts = ["collapse", "correction", "final_correct"]
    return rates(_ordered(out.astype(dict.fromkeys(counts, "int64")), "row", order), interval=interval)


def _ordered(table, column, order):
    """Lines by the place of one column's value in a list, otherwise as they are."""
    place = table[column].map(order.index).to_numpy()
    return table.iloc[np.argsort(place, kind="stable")].reset_index(drop=True)


def everything(cross_benchmark, runs, held_out, response_ledgers, *, interval="wilson"):
    """Every ledger outside the cohort once, under the paper's own coding and last round.

    Parameters
    ----------
    cross_benchmark, runs, held_out, response_ledgers : DataFrame
        Tables of data/. One-question trials and the arms run with and without thinking are left out.
    interval : str
        As in `rates`.

    Returns
    -------
    DataFrame
        `rates` with `row, group, endpoint_round` and `init_tied` (starts without a single leading answer),
        both missing where not told.

    References
    ----------
    Tables 29, 30, 31 and 42; G.4.

    Examples
    --------
    >>> from analysis import data
    >>> names = ("cross_benchmark", "cross_benchmark_runs", "holdouts", "response_ledgers")
    >>> everything(*map(data.table, names))["group"].nunique()
    7
    """
    other = benchmarks(cross_benchmark, runs)
    other = other[other["n"] > 1].sort_values("full", ascending=False, kind="stable")
    other = other.assign(endpoint_round=other["run"].map(runs.set_index("run")["n_rounds"]))
    kept = holdouts(held_out)
    kept = kept[kept["endpoint_round"] != 3].assign(group="MMLU-Pro, held out")
    late = response_ledgers[response_ledgers["group"].isin(GROUPS) & response_ledgers["endpoint_round"].ne(4)]
    late = late[late["tie"] == "alphabetic"]
    late = late.assign(group=late["group"].map(GROUPS))
    columns = ["group", "row", "endpoint_round", "n", "init_tied", *PAIRED, "final_correct"]
    out = pd.concat([other, kept, rates(late)])[columns]
    return rates(_ordered(out, "group", ORDER), interval=interval)


def costs(cross_benchmark, runs):
    """Cost of the runs on other benchmarks by route to the model, in US dollars.

    Returns
    -------
    Series of float
        By backend.

    Examples
    --------
    >>> from analysis import data
    >>> costs(data.table("cross_benchmark"), data.table("cross_benchmark_runs")).round(2).to_dict()
    {'gemini': 12.91, 'openrouter': 8.5}
    """
    backend = cross_benchmark["run"].map(runs.set_index("run")["backend"]).rename("backend")
    return (cross_benchmark["cost_alpha_usd"] + cross_benchmark["cost_debate_usd"]).groupby(backend).sum()


def rounds(debates):
    """What happens in each round of fully released rows.

    Parameters
    ----------
    debates : DataFrame
        As `analysis.ledger.debates` returns them, with a cell each.

    Returns
    -------
    DataFrame
        One line a row and round: `row, round, n, changed` (majority differs from the round before),
        `unanimous` (all agents give one answer), `collapse` (begin here) and `correction` (first right here),
        in debates, with `collapses` and `corrections` of the row.

    References
    ----------
    D.1.

    Examples
    --------
    >>> from analysis import data
    >>> rounds(data.debates()).query("row == 'gpt-5.4-mini'")["changed"].tolist()
    [12, 1, 1]
    """
    lines = []
    for row, part in debates.groupby("row", sort=False):
        told = [k for k in range(1, int(part["endpoint"].max()) + 1)]
        fell, rose = part["cell"].eq("collapse"), part["cell"].eq("correction")
        right = np.column_stack([part[f"correct_{k}"].fillna(False).astype(float).eq(1) for k in told])
        first_right = np.where(right.any(axis=1), np.array(told)[right.argmax(axis=1)], 0)
        lines += [
            {
                "row": row,
                "round": k,
                "n": len(part),
                "changed": int(part[f"changed_{k}"].fillna(False).sum()),
                "unanimous": int(part[f"agree_{k}"].eq(1).sum()),
                "collapse": int((fell & part["onset"].eq(k)).sum()),
                "correction": int((rose.to_numpy() & (first_right == k)).sum()),
                "collapses": int(fell.sum()),
                "corrections": int(rose.sum()),
            }
            for k in told
        ]
    counts = ["changed", "unanimous", "collapse", "correction", "collapses", "corrections"]
    return pd.DataFrame(lines, columns=["row", "round", "n", *counts])


# --- tests --------------------------------------------------------------------------------------------------


def with_held_out(model_rows, held_out, *, row=HELD_OUT):
    """The rank tests of the cohort, and with a held-out model in its family and as a family of its own.

    Parameters
    ----------
    model_rows, held_out : DataFrame
        The realised cohort; data/holdouts.csv.
    row : str
        The held-out model.

    Returns
    -------
    DataFrame
        `screen.with_added` lines; `rows` is "paper", "in its family" or "as its own family".

    References
    ----------
    D.5.

    Examples
    --------
    >>> from analysis import data
    >>> with_held_out(data.model_rows(), data.table("holdouts"))["rho"].round(3).tolist()
    [0.893, 0.893, 0.857]
    """
    added = rates(held_out)
    added = added[added["row"] == row][["row", "family", "alpha_tot", "c_cond"]]
    within = screen.with_added(model_rows, added)
    apart = screen.with_added(model_rows, added.assign(family=added["row"]))
    names = ["paper", "in its family", "as its own family"]
    return pd.concat([within.iloc[:2], apart.iloc[1:2]], ignore_index=True).assign(rows=names)


def associations(table):
    """Rank correlation over questions of flip rate and outcome, with its p value.

    Parameters
    ----------
    table : DataFrame
        `rho` and `n` (questions), as released.

    Returns
    -------
    DataFrame
        The table with `p` (two-sided, t approximation with n - 2 degrees of freedom; missing where rho is).

    References
    ----------
    D.3.

    Examples
    --------
    >>> associations(pd.DataFrame({"rho": [0.5], "n": [11]}))["p"].round(4).item()
    0.1173
    """
    rho, n = table["rho"].to_numpy(float), table["n"].to_numpy(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(rho) * np.sqrt((n - 2) / (1 - rho**2))
    return table.assign(p=2 * sps.t.sf(t, np.maximum(n - 2, 1)))


def served_locally(model_rows, four_round_ledger):
    """Rows of the cohort whose trace files come from a local server.

    Parameters
    ----------
    model_rows, four_round_ledger : DataFrame
        The realised cohort with `trace_source`; the later trace files with their `row`.

    Returns
    -------
    list of str
        Rows, in the cohort's order.

    References
    ----------
    A.4.

    Examples
    --------
    >>> from analysis import data
    >>> len(served_locally(data.model_rows(), data.table("four_round_ledger")))
    9
    """
    later = four_round_ledger.loc[four_round_ledger["trace_source"].str.startswith("vllm"), "row"]
    local = model_rows["trace_source"].str.startswith("vllm", na=False) | model_rows["row"].isin(later)
    return model_rows.loc[local, "row"].tolist()
