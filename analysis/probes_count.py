"""Counting probes: flip rates, and flips split by whether the agent started right.

`analysis.probes` offers these together with reading and the other measures.

Reference: "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", section 3.2.
"""

import numpy as np
import pandas as pd

from analysis import stats
from analysis.errors import DataError, choice
from analysis.probes_read import RECORD

UNPARSED = ("no_revision", "drop")
POOLS = ("default", "all")


def pool(probes, unparsed, conditions):
    """The probes that count, whether each is a revision, and whether each has an answer."""
    choice("unparsed", unparsed, UNPARSED)
    choice("conditions", conditions, POOLS)
    if conditions == "default":
        probes = probes[(probes["condition"] == "default").to_numpy(bool)]
    # Where a source stores no answer after the probe, its flag is all there is: the probe counts as parsed.
    parsed = probes["parsed"].astype("boolean").fillna(True).to_numpy(bool)
    if unparsed == "drop":
        probes, parsed = probes[parsed], parsed[parsed]
    return probes, probes["revised"].to_numpy(bool) & parsed, parsed


def rate(each, keys, k, n, interval):
    """Sums of events and trials by keys, with their rate."""
    out = pd.DataFrame({"k": np.asarray(k, dtype=int), "n": np.asarray(n, dtype=int)}, index=each.index)
    if keys:
        out = out.groupby([each[key] for key in keys], sort=False, dropna=False).sum()
    else:
        out = out.sum().to_frame().T
    found = stats.proportion(out["k"], out["n"], interval=interval)
    return out.assign(rate=found["rate"], low=found["low"], high=found["high"])


def named(by):
    """Names of the columns that name a line of the result."""
    return [] if by is None else [by] if isinstance(by, str) else list(by)


def flip_rate(probes, *, by="row", unparsed="no_revision", conditions="default", interval="wilson"):
    """Share of probes after which the agent changed its answer.

    Parameters
    ----------
    probes : DataFrame
        One line a probe, from `read`.
    by : str or list of str or None
        Columns that name a line of the result, such as ["row", "condition"]; None pools everything.
    unparsed : {"no_revision", "drop"}
        A probe without a readable answer is no revision (the paper), or is not counted at all.
    conditions : {"default", "all"}
        Plain probes only, or those under the two manipulated system prompts too.
    interval : {"wilson", "jeffreys"}
        95% interval; it takes probes as independent, although several share a question.

    Returns
    -------
    DataFrame
        `by`, `k` revisions, `n` probes, `rate` (fraction: the paper's alpha) with its interval `low` and
        `high`, and `n_unparsed` among the n.

    Raises
    ------
    ValueError
        An option is not one of those listed.

    References
    ----------
    Equation 1, section 3.2; unparsed answers: section A.3.3.

    Examples
    --------
    >>> asked = pd.DataFrame({"row": "m", "condition": "default", "revised": [True, False, False],
    ...                       "parsed": [True, True, False]})
    >>> flip_rate(asked)[["row", "k", "n", "rate", "n_unparsed"]].round(3).to_dict("records")
    [{'row': 'm', 'k': 1, 'n': 3, 'rate': 0.333, 'n_unparsed': 1}]
    >>> flip_rate(asked, unparsed="drop")["rate"].item()
    0.5
    """
    each, revised, parsed = pool(probes, unparsed, conditions)
    keys = named(by)
    every = np.ones(len(each))
    out = rate(each, keys, revised, every, interval)
    out["n_unparsed"] = rate(each, keys, ~parsed, every, interval)["k"]
    return out.reset_index(drop=not keys)


def decompose(probes, *, by="row", unparsed="no_revision", conditions="default", interval="wilson"):
    """Split the flip rate by where the agent started.

    Parameters
    ----------
    probes : DataFrame
        One line a probe, from `read`, with `gold`.
    by, unparsed, conditions, interval
        As for `flip_rate`.

    Returns
    -------
    DataFrame
        `by`, `channel`, `k` events, `n` trials, `rate` (fraction), `low`, `high`. Channels: "adv" (right to
        wrong, of probes that start right), "cor" (wrong to right) and "neutral" (wrong to another wrong),
        both of probes that start wrong. A probe without an initial answer starts neither right nor wrong.

    Raises
    ------
    DataError
        A probe has no gold label, or no answer after the probe was stored.

    References
    ----------
    Equation 5, section 3.2; Table 19.

    Examples
    --------
    >>> asked = pd.DataFrame({"row": "m", "condition": "default", "gold": "A", "parsed": True,
    ...                       "initial_answer": list("AABB"), "post_answer": list("BAAC"), "revised": True})
    >>> decompose(asked).set_index("channel")["rate"].to_dict()
    {'adv': 0.5, 'cor': 0.5, 'neutral': 0.5}
    """
    each, parsed, right, wrong, moved, hit = _starts(probes, unparsed, conditions)
    keys = named(by)
    other = wrong & moved & ~hit
    channels = {"adv": (right & moved, right), "cor": (wrong & hit, wrong), "neutral": (other, wrong)}
    parts = {channel: rate(each, keys, *counts, interval) for channel, counts in channels.items()}
    out = pd.concat(parts, names=["channel"]).reset_index(level="channel")
    order = [*keys, "channel", "k", "n", "rate", "low", "high"]
    return out.reset_index(drop=not keys)[order]


def _starts(probes, unparsed, conditions):
    """The probes that count; of each whether it is parsed, starts right, starts wrong, moved, ends right."""
    for field, needed in (("gold", "gold"), ("post_answer", "parsed")):
        if probes[needed].isna().any():
            at = probes[probes[needed].isna()].iloc[0]
            where = f"row {at['row']!r}, question {at.get('question')!r}"
            raise DataError(f"{where}, field {field!r}: not stored; the channels need it")
    each, _, parsed = pool(probes, unparsed, conditions)
    start = each["initial_answer"].notna().to_numpy()
    right = start & (each["initial_answer"] == each["gold"]).to_numpy(bool)
    hit = parsed & (each["post_answer"] == each["gold"]).to_numpy(bool)
    moved = parsed & (each["post_answer"] != each["initial_answer"]).to_numpy(bool)
    return each, parsed, right, start & ~right, moved, hit


def tally(probes, *, by=("row", "condition", "social"), unparsed="drop", conditions="all"):
    """Count probes and flips by where the agent started, in the shape of the released counts.

    Parameters
    ----------
    probes : DataFrame
        One line a probe, from `read`, with `gold`.
    by, unparsed, conditions
        As for `flip_rate`; the released counts leave unreadable replies out.

    Returns
    -------
    DataFrame
        `by`, `n_probes`, `n_unparsed` among them, `n_init_right_probes`, `n_init_wrong_probes` (by the first
        answer; one without a first answer is neither), `n_adv` (right answer given up), `n_cor` (wrong answer
        turned right), `n_neutral` (wrong answer turned into another wrong one), `n_flip` (their sum).

    Raises
    ------
    DataError
        As `decompose`.

    References
    ----------
    Equation 5; B.4 and Table 19.

    Examples
    --------
    >>> asked = pd.DataFrame({"row": "m", "condition": "default", "social": False, "gold": "A",
    ...                       "initial_answer": list("AABB"), "post_answer": list("BAAC"), "revised": True,
    ...                       "parsed": True})
    >>> tally(asked)[["n_init_right_probes", "n_adv", "n_cor", "n_neutral", "n_flip"]].values.tolist()
    [[2, 1, 1, 1, 3]]
    """
    each, parsed, right, wrong, moved, hit = _starts(probes, unparsed, conditions)
    counts = pd.DataFrame({
        "n_probes": 1, "n_unparsed": ~parsed, "n_init_right_probes": right, "n_init_wrong_probes": wrong,
        "n_adv": right & moved, "n_cor": wrong & hit, "n_neutral": wrong & moved & ~hit,
    }, index=each.index).astype(int)
    counts["n_flip"] = counts[["n_adv", "n_cor", "n_neutral"]].sum(axis=1)
    return counts.groupby([each[key] for key in named(by)], sort=False, dropna=False).sum().reset_index()


def records(probes, *, by=("row", "condition"), conditions="all"):
    """Count questions and records.

    Parameters
    ----------
    probes : DataFrame
        One line a probe, from `read`.
    by, conditions
        As for `flip_rate`.

    Returns
    -------
    DataFrame
        `by`, `n_questions`, `n_records` (a record is one question, condition and agent), `n_probes`.

    Examples
    --------
    >>> asked = pd.DataFrame({"row": "m", "question": ["q", "q", "p"], "replicate": 0, "condition": "default",
    ...                       "agent": "1", "parsed": True, "revised": False})
    >>> records(asked)[["n_questions", "n_records", "n_probes"]].values.tolist()
    [[2, 2, 3]]
    """
    each, _, _ = pool(probes, "no_revision", conditions)
    keys = named(by)
    groups = each.groupby(keys, sort=False, dropna=False)
    lines = each.drop_duplicates(RECORD).groupby(keys, sort=False, dropna=False).size()
    return pd.DataFrame({
        "n_questions": groups["question"].nunique(), "n_records": lines, "n_probes": groups.size(),
    }).reset_index()
