"""What every arm spent: tokens by item, and whether two arms spent alike.

A claim that one committee, or one model, does better needs arms that spent the same.
"""

from dataclasses import replace
from math import exp, nan

import numpy as np
import pandas as pd

from analysis.errors import DataError, choice
from analysis.layers import frames, gates, inference
from analysis.layers.results import Gate

OUTSIDE_BUDGET = ("judge", "probe")
ROLES = ("member", "chairman", *OUTSIDE_BUDGET)
MATCHES = ("matched", "unmatched", "undetermined")


def spend(ledger):
    """Tokens that every arm spent on every item.

    Parameters
    ----------
    ledger : DataFrame
        One row a model call, failed and repeated ones too: ``item_id, arm, role`` ("member", "chairman",
        "judge", "probe"), ``prompt_tokens, completion_tokens, reasoning_tokens``, and ``run_id, call_id``
        where calls are numbered. Reasoning tokens are those that the completion does not count yet.

    Returns
    -------
    DataFrame
        One line per arm and item: `spend` (completion and reasoning), `prompt_tokens`, `n_calls`. Calls of
        judges and probes are no part of an arm's budget. Unknown where a call's tokens are missing (NaN).

    Raises
    ------
    DataError
        On missing fields, unknown roles, negative tokens, or a call given twice.

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", scope decision (ii).

    Examples
    --------
    >>> ledger = pd.DataFrame({"item_id": 1, "arm": "D", "role": ["member", "chairman", "judge"],
    ...                        "prompt_tokens": 10, "completion_tokens": [200, 50, 999],
    ...                        "reasoning_tokens": [5, 0, 0]})
    >>> spend(ledger).values.tolist()
    [['D', 1, 255.0, 20.0, 2]]
    """
    tokens = ["completion_tokens", "reasoning_tokens"]
    if "prompt_tokens" not in ledger:
        ledger = ledger.assign(prompt_tokens=nan)
    frames.need(ledger, "ledger", ("item_id", "arm", "role"), nullable=[*tokens, "prompt_tokens"],
                allowed={"role": ROLES})
    if {"run_id", "call_id"} <= set(ledger):
        frames.once(ledger, "ledger", ["run_id", "call_id"])
    counts = ledger[[*tokens, "prompt_tokens"]].astype("Float64").astype(float)
    negative = (counts < 0).any(axis=1)
    if negative.any():
        column = counts.columns[(counts[negative].iloc[0] < 0)][0]
        raise DataError(f"ledger, row {ledger.index[negative].tolist()[0]!r}, field {column!r}: "
                        f"{counts[column][negative].iloc[0]:g}, expected a number of tokens from 0")
    rows = pd.DataFrame({"arm": ledger.arm, "item_id": ledger.item_id,
                         "spend": counts[tokens].sum(axis=1, skipna=False),
                         "prompt_tokens": counts.prompt_tokens})[~ledger.role.isin(OUTSIDE_BUDGET)]
    grouped = rows.groupby(["arm", "item_id"], sort=False)
    known = rows[["spend", "prompt_tokens"]].notna().groupby([rows.arm, rows.item_id], sort=False).all()
    sums = grouped[["spend", "prompt_tokens"]].sum().where(known)
    return sums.assign(n_calls=grouped.size()).reset_index()


def token_match(ledger, arms, *, draws=10_000, seed=0):
    """Did two arms spend the same, item by item, within 10 %?

    Parameters
    ----------
    ledger : DataFrame
        As in `spend`. Committees that debate and committees that are only sampled again are different arms.
    arms : tuple of str
        Spend of the first over spend of the second.
    draws, seed : int
        Of the bootstrap over items.

    Returns
    -------
    Result
        ``<first>_over_<second>_tokens``: exp of the mean log ratio, with a 90 % interval. The first flag is
        the verdict: ``matched`` if the interval lies inside [1/1.10, 1.10], ``unmatched`` if outside,
        ``undetermined`` otherwise and below ten items, where the interval covers too little. Only "matched"
        passes the gate that claims about compositions or a best model need. Items that one arm lacks, with
        unknown tokens or none at all are left out and counted.

    Raises
    ------
    DataError
        As `spend`.
    ValueError
        On unknown arms.

    References
    ----------
    Schuirmann (1987) for the logic of the interval.

    Examples
    --------
    >>> ledger = pd.DataFrame({"item_id": [1, 2] * 2, "arm": ["I", "I", "D", "D"], "role": "member",
    ...                        "completion_tokens": [2600, 2900, 2700, 2650], "reasoning_tokens": 0})
    >>> result = token_match(ledger, ("D", "I"))
    >>> round(result.estimate, 6), result.flags[0], result.claimable
    (0.974135, 'undetermined', False)
    """
    spent = spend(ledger)
    for arm in arms:
        choice("arms", arm, tuple(spent.arm.unique()))
    first, second = arms
    wide = spent[spent.arm.isin(arms)].pivot(index="item_id", columns="arm", values="spend")[[first, second]]
    present = spent[spent.arm.isin(arms)].groupby("item_id").arm.nunique().reindex(wide.index)
    reason = pd.Series(np.select([present < 2, wide.isna().any(axis=1), (wide <= 0).any(axis=1)],
                                 ["one_arm", "unknown_tokens", "no_tokens"], ""), index=wide.index)
    kept = wide[reason == ""]
    ratio = np.log(kept[first] / kept[second])
    result = inference.test_units(
        f"{first}_over_{second}_tokens", ratio, "ratio", unit_name="item", n_rows=2 * len(kept), test=False,
        level=0.90, draws=draws, seed=seed, exclusions=frames.tally(reason))
    low, high = gates.TOKEN_MATCH.limit
    if "degenerate_bootstrap" in result.flags:  # all items alike: nothing is left to estimate
        result = replace(result, low=result.estimate, high=result.estimate, interval="all items alike")
    ends = exp(result.low), exp(result.high)
    if len(ratio) < inference.FEW_UNITS or np.isnan(ends).any():
        verdict = "undetermined"
    elif low <= ends[0] and ends[1] <= high:
        verdict = "matched"
    else:
        verdict = "unmatched" if ends[1] < low or ends[0] > high else "undetermined"
    gate = replace(gates.check(gates.TOKEN_MATCH, *ends), passed=verdict == "matched")
    return replace(result, estimate=exp(result.estimate), low=ends[0], high=ends[1],
                   flags=(verdict, *result.flags)).with_gates(gate)


def budgets(ledger):
    """All tokens and calls of every arm and role.

    Parameters
    ----------
    ledger : DataFrame
        As in `spend`, with ``status`` of every call.

    Returns
    -------
    DataFrame
        One line per arm and role: `prompt_tokens`, `completion_tokens`, `reasoning_tokens` (missing ones are
        left out of the sums), `n_calls`, `n_failed` (status other than "ok"), `n_unknown` (calls with missing
        tokens), and `in_budget`.

    Raises
    ------
    DataError
        As `spend`.

    Examples
    --------
    >>> ledger = pd.DataFrame({"item_id": [1, 1], "arm": "D", "role": "member", "prompt_tokens": [10, 12],
    ...                        "completion_tokens": [7, None], "reasoning_tokens": 0,
    ...                        "status": ["ok", "error"]})
    >>> budgets(ledger).drop(columns=["reasoning_tokens", "in_budget"])
      arm    role  prompt_tokens  completion_tokens  n_calls  n_failed  n_unknown
    0   D  member           22.0                7.0        2         1          1
    """
    spend(ledger)  # the same checks
    frames.need(ledger, "ledger", ("status",), nullable=("prompt_tokens",))
    names = ["prompt_tokens", "completion_tokens", "reasoning_tokens"]
    counts = ledger[names].astype("Float64").astype(float)
    rows = ledger[["arm", "role"]].assign(
        **counts, n_calls=1, n_failed=(ledger.status != "ok").astype(int),
        n_unknown=counts[names[1:]].isna().any(axis=1).astype(int))
    out = rows.groupby(["arm", "role"], sort=False).sum().reset_index()
    return out.assign(in_budget=~out.role.isin(OUTSIDE_BUDGET))


def outside_jury(ledger, families):
    """Does the scoring jury share no model family with any arm that it scores?

    Parameters
    ----------
    ledger : DataFrame
        ``model, role`` of every call.
    families : mapping of str to str
        Family of every model.

    Returns
    -------
    Gate
        Its value is the number of shared families; NaN and not passed if a family is unknown or nobody
        judged.

    Raises
    ------
    DataError
        On missing fields or unknown roles.

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", scope decision (ii).

    Examples
    --------
    >>> ledger = pd.DataFrame({"model": ["a1", "a2"], "role": ["member", "judge"]})
    >>> outside_jury(ledger, {"a1": "a", "a2": "a"})
    Gate(name='outside_jury', value=1.0, threshold=0, passed=False)
    """
    frames.need(ledger, "ledger", ("model", "role"), allowed={"role": ROLES})
    family = ledger.model.map(dict(families))
    judges = family[ledger.role == "judge"]
    relevant = family[ledger.role != "probe"]
    if relevant.isna().any() or not len(judges):
        return Gate("outside_jury", nan, 0, False)
    shared = len(set(judges) & set(family[~ledger.role.isin(OUTSIDE_BUDGET)]))
    return Gate("outside_jury", float(shared), 0, shared == 0)
