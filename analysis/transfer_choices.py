"""Choices that the sources of the transfer rows make in two ways, with both outcomes side by side.

A start without a majority counts as wrong or is left out; a debate ends after Round 3 or 4; a tied vote goes
to the alphabetically first answer or to none; the normal quantile of an interval is exact or rounded.
"""

import numpy as np
import pandas as pd

from analysis.errors import DataError
from analysis.transfer import GROUPS, RATES, bounds, holdouts, rates

# Names of one panel or model in the Round-3 and in the Round-4 summaries, where they differ.
SAME = {
    "heterogeneous_pilot_msl4_llama70b_dsv4f": "mistral+llama3.3+deepseek",
    "heterogeneous_pilot2_dsv4f_msl4_llama4scout": "mistral+deepseek+llama4-scout",
    "heterogeneous_pilot3_dsv4f_msl4_local_qwen3_4b": "mistral+deepseek+qwen3-4b",
    "r1-distill-qwen-32b mt8192": "r1-distill-qwen-32b",
}


def codings(ledgers):
    """The net with starts that have no majority counted as wrong, and with them left out.

    Parameters
    ----------
    ledgers : DataFrame
        From `rates`. A line with `init_undefined` left such starts out; any other counted its `init_missing`
        as wrong.

    Returns
    -------
    DataFrame
        The lines with such starts: `row, group, n, coded` (what the source does), `missing` (such starts),
        `ended_right_low` and `_high` (how many of them can end right), `net_wrong` (counted as wrong: the
        accuracy change), `net_out_low` and `_high` (left out).

    Notes
    -----
    A source that counts such starts as wrong hides which corrections begin there: all that bounds them is
    their number, and the number of valid wrong starts. A source that leaves them out gives the final accuracy
    besides, and what the transitions do not explain of it began there; a right start that ends without a
    majority makes it more.

    References
    ----------
    4.4 and G.3, valid-decision sensitivity.

    Examples
    --------
    >>> counts = {"n": 10, "init_correct": 4, "collapse": 1, "correction": 3, "init_missing": 2}
    >>> found = codings(rates(pd.DataFrame([{"row": "m", "group": "g"} | counts])))
    >>> found[["net_wrong", "net_out_low", "net_out_high"]].values.tolist()
    [[2, 0, 2]]
    """
    out = ledgers.assign(left_out=ledgers["init_undefined"] > 0)
    known = out["init_missing"].fillna(0) if "init_missing" in out else 0
    out["missing"] = np.where(out["left_out"], out["init_undefined"], known).astype(int)
    out = out[out["missing"] > 0].reset_index(drop=True)
    outside = out["final_correct"] - out["correction"]  # right ends that are no corrections
    valid_wrong = out["init_wrong"] - out["missing"].where(~out["left_out"], 0)
    unlost = out["init_correct"] - out["collapse"]
    low = np.where(out["left_out"], outside - unlost, out["correction"] - valid_wrong)
    high = np.where(out["left_out"], outside, out["correction"])
    out["ended_right_low"], out["ended_right_high"] = np.maximum(low, 0), np.minimum(high, out["missing"])
    out["net_wrong"] = out["final_correct"] - out["init_correct"]
    for end, other in (("low", "high"), ("high", "low")):
        without = out["net"] - out[f"ended_right_{other}"]
        out[f"net_out_{end}"] = out["net"].where(out["left_out"], without)
    out["coded"] = np.where(out["left_out"], "left out", "as wrong")
    ranges = ["ended_right_low", "ended_right_high", "net_wrong", "net_out_low", "net_out_high"]
    return out[["row", "group", "n", "coded", "missing", *ranges]]


def undefined_ends(
    held_out, replay_sources, extension_rows, *, row="gemini-3.1-pro", source="gemini_3_1_pro_n200"
):
    """Where the final accuracy of a row with undefined majorities comes from, out of three accounts of it.

    Parameters
    ----------
    held_out, replay_sources, extension_rows : DataFrame
        Tables of data/: starts without a majority left out; only debates with both majorities; every debate,
        no majority being wrong.
    row, source : str
        The row's names in them.

    Returns
    -------
    dict of str to int
        `undefined` starts; `right_lost`, right starts that end without a majority; `ended_right`, undefined
        starts that end right; `told`, the accuracy change that corrections minus collapses tell; `change`,
        the change itself.

    Raises
    ------
    DataError
        The accounts do not share their right starts, collapses and corrections, so that they cannot be
        joined.

    References
    ----------
    D.2; Table 29.

    Examples
    --------
    >>> from analysis import data
    >>> undefined_ends(*map(data.table, ("holdouts", "replay_sources", "extension_rows")))
    {'undefined': 17, 'right_lost': 1, 'ended_right': 6, 'told': 7, 'change': 12}
    """
    ours = rates(held_out).set_index("row").loc[row]
    usable = replay_sources.set_index("trace_source").loc[source]
    every = extension_rows.set_index("row").loc[row]
    pairs = [("collapse", ours, usable), ("correction", ours, usable), ("init_correct", ours, every)]
    for field, a, b in pairs:
        if a[field] != b[field]:
            told = f"{a[field]:g} and {b[field]:g}"
            raise DataError(f"row {row!r}, field {field!r}: {told}; expected one value in all accounts")
    kept = usable["final_correct"] - usable["correction"]
    return {
        "undefined": int(ours["init_undefined"]),
        "right_lost": int(ours["init_correct"] - ours["collapse"] - kept),
        "ended_right": int(ours["final_correct"] - ours["correction"] - kept),
        "told": int(ours["net"]), "change": int(ours["final_correct"] - ours["init_correct"]),
    }


def endpoints(held_out, response_ledgers):
    """The same debates ended after Round 3 and after Round 4.

    Parameters
    ----------
    held_out, response_ledgers : DataFrame
        Tables of data/; alphabetic ties.

    Returns
    -------
    DataFrame
        `row, group` and, with `_3` and `_4`, `n, init_correct, init_wrong, collapse, correction, net`.

    References
    ----------
    D.2 (Round 4), G.3 and Table 42 (Round 3).

    Examples
    --------
    >>> from analysis import data
    >>> found = endpoints(data.table("holdouts"), data.table("response_ledgers")).set_index("row")
    >>> found.loc["mistral-small-4", ["collapse_3", "collapse_4"]].tolist()
    [4, 7]
    """
    kept = holdouts(held_out).dropna(subset="endpoint_round").assign(group="MMLU-Pro, held out")
    late = response_ledgers[response_ledgers["tie"] == "alphabetic"].dropna(subset="endpoint_round")
    late = rates(late.assign(row=late["row"].replace(SAME), group=late["group"].map(GROUPS)))
    counts = ["n", "init_correct", "init_wrong", "collapse", "correction", "net"]
    lines = pd.concat([kept, late])[["row", "group", "endpoint_round", *counts]]
    three, four = (lines[lines["endpoint_round"] == k].drop(columns="endpoint_round") for k in (3, 4))
    return three.merge(four, on=["row", "group"], suffixes=("_3", "_4"), validate="1:1")


def mixed_panels(response_ledgers):
    """Mixed-model panels at Round 3 under both tie rules.

    Parameters
    ----------
    response_ledgers : DataFrame
        Table of data/.

    Returns
    -------
    DataFrame
        One line a panel: `row, n, init_tied` (starts without a single leading answer) and, by tie rule
        (`_alphabetic`, `_undecided`), `init_correct, collapse, correction, final_correct, net`.

    References
    ----------
    G.3; Table 42.

    Examples
    --------
    >>> from analysis import data
    >>> mixed_panels(data.table("response_ledgers"))[["net_alphabetic", "net_undecided"]].values.tolist()
    [[14, 22], [6, 8], [0, 7]]
    """
    at_three = rates(response_ledgers).query("group == 'heterogeneous_panels' and endpoint_round == 3")
    arms = [at_three[at_three["tie"] == tie] for tie in ("alphabetic", "undecided")]
    counts = ["row", "init_correct", "collapse", "correction", "final_correct", "net"]
    ends = ("_alphabetic", "_undecided")
    first = arms[0][["n", "init_tied", *counts]]
    both = first.merge(arms[1][counts], on="row", suffixes=ends, validate="1:1")
    return both.astype({"init_tied": int})


def rounded_bounds(ledgers, digits=4):
    """Wilson limits that come out otherwise when the normal quantile is rounded to two decimals.

    Parameters
    ----------
    ledgers : DataFrame
        From `rates`, with `row`.
    digits : int
        Decimals at which limits are compared, as fractions.

    Returns
    -------
    DataFrame
        One line a limit: `row, rate, end` (low or high), `k, n, exact, rounded`. ``attrs["compared"]`` counts
        the limits compared.

    Examples
    --------
    >>> from analysis import data
    >>> rounded_bounds(rates(data.table("response_ledgers")))["n"].tolist()
    [11, 71]
    """
    parts = []
    for rate, (k, n) in RATES.items():
        used = ledgers[ledgers[n] > 0]
        both = [np.round(bounds(used[k], used[n], kind), digits) for kind in ("wilson", "wilson_1.96")]
        told = used[["row", k, n]].set_axis(["row", "k", "n"], axis=1).assign(rate=rate)
        for name, exact, rounded in zip(("low", "high"), *both):
            parts.append(told.assign(end=name, exact=exact, rounded=rounded))
    every = pd.concat(parts, ignore_index=True)
    out = every[every["exact"] != every["rounded"]].reset_index(drop=True)
    out.attrs["compared"] = len(every)
    return out
