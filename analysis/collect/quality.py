"""Strict quality control of a run: missing answers, truncated replies, reasoning that never ended."""

import pandas as pd

from analysis import stats
from analysis.errors import DataError

LIMIT = 0.02
CHECKS = ("missing", "truncated", "unclosed")


def checks(replies, *, limit=LIMIT):
    """Hold each arm against the limit.

    Parameters
    ----------
    replies : DataFrame
        From `analysis.collect.logs.replies`.
    limit : float
        Largest share of planned calls that may fail a check.

    Returns
    -------
    DataFrame
        `arm, check, k, n` (calls planned in the arm, Round 0 included), `rate`, `low`, `high` (95% Wilson),
        `limit`, `passes`. Round 0 belongs to every arm, and stands for itself as arm "initial".

    Raises
    ------
    DataError
        No replies.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. G.5.

    Examples
    --------
    >>> seen = pd.DataFrame({"arm": ["initial", "peer"], "missing": [False, True], "truncated": False,
    ...                      "unclosed": False})
    >>> checks(seen).query("check == 'missing'")[["arm", "k", "n", "passes"]].values.tolist()
    [['initial', 0, 1, True], ['peer', 1, 2, False]]
    """
    if not len(replies):
        raise DataError("no replies: expected at least one call")
    arms = list(dict.fromkeys(["initial", *replies["arm"]]))
    lines = []
    for arm in arms:
        mine = replies[replies["arm"].isin(["initial", arm])]
        lines += [
            {"arm": arm, "check": check, "k": int(mine[check].sum()), "n": len(mine)} for check in CHECKS
        ]
    out = pd.DataFrame(lines)
    found = stats.proportion(out["k"], out["n"], interval="wilson")
    return out.assign(
        rate=found["rate"].to_numpy(),
        low=found["low"].to_numpy(),
        high=found["high"].to_numpy(),
        limit=limit,
        passes=out["k"] <= limit * out["n"],
    )


def verdict(checked):
    """Say in a sentence which arms fail, and why; empty where none does.

    Examples
    --------
    >>> seen = pd.DataFrame({"arm": ["peer"], "missing": [True], "truncated": [False], "unclosed": [False]})
    >>> verdict(checks(seen))
    'Fails strict quality control: peer (missing 1/1, at most 2% allowed).'
    """
    bad = checked[~checked["passes"] & checked["n"].gt(0)]
    if not len(bad):
        return ""
    arms = [
        f"{arm} ({', '.join(f'{line.check} {line.k}/{line.n}' for line in part.itertuples())}, "
        f"at most {part['limit'].iat[0]:.0%} allowed)"
        for arm, part in bad.groupby("arm", sort=False)
    ]
    return f"Fails strict quality control: {'; '.join(arms)}."


def failures(replies):
    """Say which calls failed and how; empty where none did.

    Examples
    --------
    >>> failures(pd.DataFrame({"error": [None, "APITimeoutError", "InternalServerError 500", "APITimeoutError"]}))
    '3 calls failed: APITimeoutError (2), InternalServerError 500 (1).'
    """
    found = replies["error"].dropna().value_counts()
    if not len(found):
        return ""
    kinds = ", ".join(f"{kind} ({k})" for kind, k in found.items())
    return f"{found.sum()} {'call' if found.sum() == 1 else 'calls'} failed: {kinds}."
