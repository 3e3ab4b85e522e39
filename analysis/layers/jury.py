"""Is the debated answer better? A jury that reads every pair of answers twice, in both orders.

A judge that changes its mind with the order has judged the position. Its verdict on that pair is a tie, and a
jury below the floor of swap-consistency gives no win rate at all. A judge that always says "tie" passes that
floor, so what the jury can see at all is measured on a battery of pairs with known damage.
"""

from dataclasses import replace
from math import nan
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.layers import frames, gates, inference
from analysis.layers.results import Gate, Result

ORDERS = ("AB", "BA")
VERDICTS = ("first", "second", "tie")
PLACEBO = "placebo"
MIN_FAMILIES = 2


class SwapConsistency(NamedTuple):
    """Result of `swap_consistency`; shares of judge readings that both orders agree on."""

    overall: float
    by_judge: pd.Series
    by_pair: pd.Series
    n_readings: int
    n_pairs: int
    n_stable: int


def readings(votes):
    """Join the two orders of every pair and judge.

    Parameters
    ----------
    votes : DataFrame
        ``pair_id, question_id, judge_model, order, verdict``; ``stance`` and ``timing`` are kept. A is the
        debated answer and B the undebated one of the same committee. ``order`` "AB" shows A first;
        ``verdict`` is by position: "first", "second", "tie", missing if unread. A battery's votes carry
        ``original_side`` ("A" or "B") and ``tier`` instead of the question (see `battery`).

    Returns
    -------
    DataFrame
        One line per pair and judge: the keys; `AB`, `BA`, the preferred answer ("debate", "none", "tie";
        "original", "degraded", "tie" in a battery); `consistent`; `resolved`, the verdict, which is "tie"
        where the orders disagree; `excluded`, ``order_missing`` or ``unread`` where an order lacks, else
        empty.

    Raises
    ------
    DataError
        On missing fields, unknown values, a vote given twice, or a pair with two questions, stances, ...

    References
    ----------
    Wang et al. (2023), Large Language Models are not Fair Evaluators; Zheng et al. (2023), Judging
    LLM-as-a-Judge. "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", sec. 5.

    Examples
    --------
    >>> votes = pd.DataFrame({"pair_id": "p1", "question_id": "q1", "judge_model": ["x", "x", "y", "y"],
    ...                       "order": ["AB", "BA"] * 2, "verdict": ["first", "second", "first", "first"]})
    >>> readings(votes)[["judge_model", "AB", "BA", "consistent", "resolved"]]
      judge_model      AB      BA  consistent resolved
    0           x  debate  debate        True   debate
    1           y  debate    none       False      tie
    """
    of_battery = "original_side" in votes
    key = ["pair_id", *(("tier", "original_side") if of_battery else ("question_id",))]
    frames.need(votes, "votes", (*key, "judge_model", "order"), nullable=("verdict",),
                allowed={"order": ORDERS, "verdict": VERDICTS}
                | ({"original_side": ("A", "B")} if of_battery else {}))
    frames.once(votes, "votes", ["pair_id", "judge_model", "order"])
    kept = [column for column in ("stance", "timing", "composition") if column in votes]
    frames.constant_within(votes, "votes", "pair_id", [*key[1:], *kept])
    frames.single(votes, "votes", "composition",
                  "the two answers of a pair, and all pairs, come from one committee")

    shown_first = votes.order.str[0]
    other = shown_first.map({"A": "B", "B": "A"})
    side = pd.Series(np.select([votes.verdict == "first", votes.verdict == "second"], [shown_first, other],
                               "tie"),
                     index=votes.index)
    if of_battery:
        content = np.where(side == "tie", "tie",
                           np.where(side == votes.original_side, "original", "degraded"))
    else:
        content = side.map({"A": "debate", "B": "none", "tie": "tie"})
    rows = votes.assign(content=pd.Series(content, index=votes.index).where(votes.verdict.notna()))
    index = ["pair_id", "judge_model"]
    out = rows.drop_duplicates(index)[[*index, *key[1:], *kept]].set_index(index)
    both = rows.pivot(index=index, columns="order", values="content")
    both = both.reindex(index=out.index, columns=list(ORDERS))
    present = rows.groupby(index).size().reindex(out.index)
    excluded = np.select([present < 2, both.isna().any(axis=1)], ["order_missing", "unread"], "")
    same = (both.AB == both.BA) & (excluded == "")
    resolved = both.AB.where(same, "tie").where(excluded == "")
    return out.assign(AB=both.AB, BA=both.BA, consistent=same, resolved=resolved,
                      excluded=excluded).reset_index()


def swap_consistency(votes):
    """How often do the two orders of a pair give the same verdict?

    Parameters
    ----------
    votes : DataFrame
        As in `readings`.

    Returns
    -------
    SwapConsistency
        `overall` over all pairs and judges, `by_judge`, `by_pair`; ties count as verdicts. `n_stable` pairs
        are consistent for every judge. NaN without a complete reading.

    Raises
    ------
    DataError
        As `readings`.

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", sec. 5.

    Examples
    --------
    >>> votes = pd.DataFrame({"pair_id": "p1", "question_id": "q1", "judge_model": ["x", "x", "y", "y"],
    ...                       "order": ["AB", "BA"] * 2, "verdict": ["first", "second", "first", "first"]})
    >>> found = swap_consistency(votes)
    >>> found.overall, found.by_judge.to_dict()
    (0.5, {'x': 1.0, 'y': 0.0})
    """
    return _consistency(readings(votes))


def _consistency(read):
    whole = read[read.excluded == ""]
    by_pair = whole.groupby("pair_id", sort=False).consistent.mean()
    return SwapConsistency(float(whole.consistent.mean()) if len(whole) else nan,
                           whole.groupby("judge_model", sort=False).consistent.mean(), by_pair,
                           len(whole), len(by_pair), int((by_pair == 1).sum()))


def verdicts(votes):
    """The jury's verdict on every pair.

    Parameters
    ----------
    votes : DataFrame
        As in `readings`.

    Returns
    -------
    DataFrame
        One line a pair: the keys; `verdict`, held by more than half of the judges that read it in both
        orders, else "tie"; `decisive` (not a tie); `unanimous` (all judges resolved alike); `stable` (all
        judges consistent); `n_judges`. Pairs without any complete reading are left out.

    Raises
    ------
    DataError
        As `readings`.

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", sec. 5.

    Examples
    --------
    >>> votes = pd.DataFrame({"pair_id": "p1", "question_id": "q1", "judge_model": ["x", "x", "y", "y"],
    ...                       "order": ["AB", "BA"] * 2, "verdict": ["first", "second", "first", "first"]})
    >>> verdicts(votes)[["pair_id", "verdict", "decisive", "unanimous", "stable"]]
      pair_id verdict  decisive  unanimous  stable
    0      p1     tie     False      False   False
    """
    return _verdicts(readings(votes))


def _verdicts(read):
    whole = read[read.excluded == ""]
    grouped = whole.groupby("pair_id", sort=False)
    counts = whole.groupby(["pair_id", "resolved"]).size().unstack(fill_value=0)
    counts = counts.reindex(grouped.size().index).drop(columns="tie", errors="ignore")
    n_judges = grouped.size()
    out = whole.drop_duplicates("pair_id").drop(
        columns=["judge_model", "AB", "BA", "consistent", "resolved", "excluded"]).set_index("pair_id")
    majority = counts.gt(n_judges / 2, axis=0)
    verdict = pd.Series("tie", index=out.index, dtype=object)
    for side in counts:
        verdict[majority[side]] = side
    return out.assign(verdict=verdict, decisive=verdict != "tie", unanimous=grouped.resolved.nunique() == 1,
                      stable=grouped.consistent.all(), n_judges=n_judges).reset_index()


def battery(votes, *, level=0.95):
    """What the jury can see: its verdicts on pairs of an original and a damaged copy.

    Parameters
    ----------
    votes : DataFrame
        As in `readings`, with ``tier`` (severity of the damage; "placebo" for identical or lightly reworded
        pairs) and ``original_side`` ("A" or "B").
    level : float

    Returns
    -------
    DataFrame
        One line a tier: ``tier, n`` pairs, `detected` (original preferred), `wrong` (damaged copy preferred),
        `ties`, `rate` = detected / n with Wilson's `low`, `high`; for the placebo `detected` and `wrong` are
        false alarms, and `rate` is the share of both. `in_scope`: the lower limit reaches 0.5, so that a null
        result may be worded about damage of that tier (never for the placebo).

    Raises
    ------
    DataError
        As `readings`.

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", sec. 5 (the battery).

    Examples
    --------
    >>> votes = pd.DataFrame([
    ...     {"pair_id": f"s{i}", "tier": "severe", "original_side": "A", "judge_model": "x", "order": order,
    ...      "verdict": {"AB": "first", "BA": "second"}[order]} for i in range(16) for order in ("AB", "BA")])
    >>> battery(votes).round(4).to_dict("records")[0]
    {'tier': 'severe', 'n': 16, 'detected': 16, 'wrong': 0, 'ties': 0, 'rate': 1.0, 'low': 0.8064,
     'high': 1.0, 'in_scope': True}
    """
    frames.need(votes, "battery votes", ("tier", "original_side"))
    found = _verdicts(readings(votes))
    counts = pd.crosstab(found.tier, found.verdict).reindex(
        index=found.tier.unique(), columns=["original", "degraded", "tie"], fill_value=0)
    n = counts.sum(axis=1)
    placebo = counts.index == PLACEBO
    k = counts.original + counts.degraded.where(placebo, 0)
    low, high = inference.wilson(k.to_numpy(), n.to_numpy(), level)
    reaches = [gates.check(gates.SENSITIVITY_TIER, value).passed for value in low]
    return pd.DataFrame({
        "tier": counts.index, "n": n.to_numpy(), "detected": counts.original.to_numpy(),
        "wrong": counts.degraded.to_numpy(), "ties": counts.tie.to_numpy(), "rate": (k / n).to_numpy(),
        "low": low, "high": high, "in_scope": np.array(reaches, dtype=bool) & ~placebo})


def _jury_gates(read, families, battery_votes, committee):
    """Return gates and flags of the jury as a whole, and whether it passes the floor of consistency."""
    found, judges = _consistency(read), set(read.judge_model)
    jury = {families.get(judge) for judge in judges}
    known = nan if None in jury else len(jury)
    worst = found.by_judge.min() if set(found.by_judge.index) == judges else nan
    floor = (gates.check(gates.SWAP_CONSISTENCY, found.overall),
             replace(gates.check(gates.SWAP_CONSISTENCY, worst), name="swap_consistency_worst_judge"))
    tested = battery_votes is not None and set(battery_votes.judge_model) == judges
    others = (Gate("jury_families", known, MIN_FAMILIES, known >= MIN_FAMILIES),
              Gate("sensitivity_battery", float(tested), 1, tested))
    flags = ["jury_is_committee"] if committee is not None and jury == set(committee) else []
    for column in ("timing", "stance"):
        if column in read and read[column].nunique() > 1:
            flags.append(f"pooled_{column}s")
    if read[read.excluded != ""].pair_id.size:
        flags.append("incomplete_jury")
    return floor, others, flags, all(gate.passed for gate in floor)


def preference(votes, families, *, battery_votes=None, committee=None, draws=10_000, seed=0):
    """Debate wins minus losses per question, from a jury that holds its verdicts when the order is swapped.

    Parameters
    ----------
    votes : DataFrame
        As in `readings`. Rows of several timings or stances are pooled and flagged so.
    families : mapping of str to str
        Provider family of every judge model; a judge that is not in it fails the gate.
    battery_votes : DataFrame, optional
        The same judges on the battery, as in `battery`. The result stays gated without it.
    committee : collection of str, optional
        Families on the committee; a jury of the very same families is flagged ``jury_is_committee``.
    draws, seed : int
        Of the bootstrap over questions.

    Returns
    -------
    Result
        ``debate_minus_none``: (pairs won - pairs lost) / pairs, averaged over questions; exact sign-flip
        test. Gated below 0.80 swap-consistency of the jury or of any judge, and then without any estimate:
        wins that hold in one order only are wins of a position. Gated too with fewer than two families.

    Raises
    ------
    DataError
        As `readings`.

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", sec. 5.

    Examples
    --------
    >>> votes = pd.DataFrame([
    ...     {"pair_id": q, "question_id": q, "judge_model": judge, "order": order, "verdict": "first"}
    ...     for q in ("q1", "q2") for judge in ("x", "y") for order in ("AB", "BA")])
    >>> result = preference(votes, {"x": "one", "y": "two"})
    >>> result.status, result.estimate, result.gates[0].value
    ('gated', nan, 0.0)
    """
    read = readings(votes)
    floor, others, flags, holds = _jury_gates(read, dict(families), battery_votes, committee)
    common = {"n_rows": int((read.excluded == "").sum()), "exclusions": frames.tally(read.excluded),
              "seed": seed}
    found = _verdicts(read)
    if not holds:
        return Result("debate_minus_none", nan, "share", n_units=found.question_id.nunique(),
                      unit_name="question", flags=tuple(flags), **common).with_gates(*floor, *others)
    sign = found.verdict.map({"debate": 1.0, "none": -1.0, "tie": 0.0})
    if not found.decisive.any():
        flags.append("no_decisive_pair")
    return inference.test_units("debate_minus_none", sign.groupby(found.question_id, sort=False).mean(),
                                "share", draws=draws, gates=(*floor, *others), flags=flags, **common)


def decisive_rate(votes, families, *, battery_votes=None, committee=None, draws=10_000, seed=0):
    """How often does the jury see a difference? The result behind "no difference found".

    Parameters
    ----------
    votes, families, battery_votes, committee, draws, seed
        As in `preference`.

    Returns
    -------
    Result
        ``decisive_rate``: share of pairs with a decisive verdict, averaged over questions, with k and n
        pairs. Without one, the interval is [0, 3 / questions] and the flag ``no_decisive_pair``; the bound
        over pairs (`inference.zero_events`) takes the pairs of a question as independent. Gated unless the
        jury passes the gates of `preference` and finds the damage of at least one tier of the battery; the
        tiers that the result speaks about stand in the flags, as ``scope: severe``. It bounds how often this
        jury sees a difference, not how large a difference it can see.

    Raises
    ------
    DataError
        As `readings`.

    References
    ----------
    Hanley and Lippman-Hand (1983), If nothing goes wrong, is everything all right?

    Examples
    --------
    >>> votes = pd.DataFrame([
    ...     {"pair_id": q, "question_id": q, "judge_model": judge, "order": order, "verdict": "tie"}
    ...     for q in ("q1", "q2") for judge in ("x", "y") for order in ("AB", "BA")])
    >>> result = decisive_rate(votes, {"x": "one", "y": "two"})
    >>> result.k, result.n, result.claimable  # an always-tie jury is consistent, but is it able to see?
    (0, 2, False)
    """
    read = readings(votes)
    floor, others, flags, holds = _jury_gates(read, dict(families), battery_votes, committee)
    found = _verdicts(read)
    k, n, questions = int(found.decisive.sum()), len(found), found.question_id.nunique()
    best = nan
    if battery_votes is not None:
        tiers = battery(battery_votes)
        best = tiers[tiers.tier != PLACEBO].low.max()
        flags += [f"scope: {tier}" for tier in tiers.tier[tiers.in_scope]]
    stated = (*floor, *others, gates.check(gates.SENSITIVITY_TIER, best))
    common = {"n_rows": int((read.excluded == "").sum()), "exclusions": frames.tally(read.excluded),
              "seed": seed}
    if not holds:
        return Result("decisive_rate", nan, "share", n_units=questions, unit_name="question",
                      flags=tuple(flags), **common).with_gates(*stated)
    result = inference.test_units("decisive_rate", found.groupby("question_id", sort=False).decisive.mean(),
                                  "share",
                                  test=False, share=True, draws=draws, gates=stated, flags=flags, **common)
    if k == 0 and n:
        bound = inference.zero_events(n, questions)
        result = replace(result, low=0.0, high=bound.cluster_rule_of_three,
                         interval="rule of three on questions", n_boot=0).with_flags("no_decisive_pair")
    return replace(result, k=k, n=n)
