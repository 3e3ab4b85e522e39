"""Does dissent outlive the instruction to dissent? Paired re-queries with the instruction and without it.

Every dissenting turn is asked again twice, once without its stance instruction and once unchanged. What the
second call loses is re-sampling noise, so only the difference between the two counts. It measures dependence
on the prompt; it says nothing about beliefs, and calls neither answer the better one.
"""

from dataclasses import replace
from math import nan
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.errors import DataError, choice
from analysis.layers import frames, gates, inference
from analysis.layers.results import Gate, Result
from analysis.layers.selfreport import DISSENT, LEVELS, severity

LEGS = {
    "hostile": ("removed", "retained"),
    "neutral": ("draw1", "draw2"),
    "friendly": ("removed", "retained"),
}
STRATA = ("exact", "approximate", "all")
SAME_IN_BOTH_LEGS = ("model", "temperature")
TURN_FIELDS = ("turn_id", "debate_id", "question_id", "member_id", "stance", "iteration")


class TurnCounts(NamedTuple):
    """Result of `turn_counts`: pairs by what their two legs did; shares are fractions of the `n` pairs."""

    n: int
    n_questions: int
    only_retained: int
    only_removed: int
    attributable: float
    reverted_removed: float
    reverted_retained: float


def targets(turns, *, members=None):
    """Dissenting turns to ask again.

    Parameters
    ----------
    turns : DataFrame
        One row a turn, roots included, of one composition and one timing: ``turn_id, debate_id, question_id,
        member_id, parent_id, stance, iteration, agreed_level, agreed_level_explicit``; other columns are
        ignored. Turns of debates with a ``status`` other than "completed" are left out.
    members : collection of str, optional
        Members that can be asked again. Everybody if left out.

    Returns
    -------
    DataFrame
        ``turn_id, question_id, stance_arm, iteration, own_opinion_exact, excluded``: one line per explicit
        label of dissent (severity 2 or 3). At iteration 1 the member's own opinion is on record, later it has
        to be approximated. `excluded` is empty, or why the turn cannot be asked again: ``parent_missing`` or
        ``member_unmapped``.

    Raises
    ------
    DataError
        On missing fields, unknown labels or stances, a turn id used twice, several compositions or timings.

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", sec. 5.

    Examples
    --------
    >>> turns = pd.DataFrame({
    ...     "turn_id": ["r", "t"], "debate_id": "d", "question_id": "q", "member_id": ["a", "b"],
    ...     "parent_id": [None, "r"], "stance": "hostile", "iteration": [0, 1],
    ...     "agreed_level": [None, "fully_disagreed"], "agreed_level_explicit": [False, True]})
    >>> targets(turns).to_dict("records")
    [{'turn_id': 't', 'question_id': 'q', 'stance_arm': 'hostile', 'iteration': 1, 'own_opinion_exact': True,
      'excluded': ''}]
    """
    frames.need(turns, "turns", (*TURN_FIELDS, "agreed_level_explicit"),
                nullable=("parent_id", "agreed_level"),
                allowed={"agreed_level": LEVELS, "stance": tuple(LEGS),
                         "agreed_level_explicit": (True, False)})
    frames.once(turns, "turns", ["turn_id"])
    for column in ("composition", "timing"):
        frames.single(turns, "turns", column, "persistence is measured within one composition and timing")
    kept = turns[(turns.iteration >= 1) & turns.agreed_level_explicit.astype(bool)]
    if "status" in kept:
        kept = kept[kept.status == "completed"]
    kept = kept[severity(kept.agreed_level) >= DISSENT]
    debate_of = turns.set_index("turn_id").debate_id
    lost = kept.parent_id.map(debate_of) != kept.debate_id
    unmapped = ~kept.member_id.isin(members) if members is not None else pd.Series(False, index=kept.index)
    return pd.DataFrame({
        "turn_id": kept.turn_id, "question_id": kept.question_id, "stance_arm": kept.stance,
        "iteration": kept.iteration, "own_opinion_exact": kept.iteration == 1,
        "excluded": np.select([lost, unmapped], ["parent_missing", "member_unmapped"], ""),
    }).reset_index(drop=True)


def pairs(requeries):
    """Join the two re-queries of every turn.

    Parameters
    ----------
    requeries : DataFrame
        One row a re-query: ``turn_id, question_id, stance_arm, leg, iteration, own_opinion_exact,
        agreed_level, agreed_level_explicit``. Legs are "removed" and "retained" (hostile and friendly arm) or
        "draw1" and "draw2" (neutral arm, two calls of the very same prompt). ``model`` and ``temperature``,
        where given, must agree between the legs.

    Returns
    -------
    DataFrame
        One line a turn: ``turn_id, question_id, stance_arm, iteration, own_opinion_exact``; `first`, `second`
        (1 if the first named leg and the second still dissent, 0 if not, NaN without an explicit label);
        `contrast` = first - second, NaN for a pair that does not count; `excluded`, why not: ``leg_missing``,
        ``legs_differ``, ``first_not_explicit``, ``second_not_explicit``, ``both_not_explicit``.

    Raises
    ------
    DataError
        On missing fields, unknown values, a leg that its arm does not have, a leg given twice, or a turn
        whose rows disagree about its question, arm or iteration; ``own_opinion_exact`` must hold at iteration
        1 only.

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate",
    sec. 5. The label of the original turn plays no part: a fresh call differs from it by chance alone.

    Examples
    --------
    >>> requeries = pd.DataFrame({
    ...     "turn_id": ["t1", "t1", "t2"], "question_id": "q1", "stance_arm": "hostile",
    ...     "leg": ["removed", "retained", "removed"], "iteration": 1, "own_opinion_exact": True,
    ...     "agreed_level": ["fully_agreed", "fully_disagreed", "fully_agreed"],
    ...     "agreed_level_explicit": True})
    >>> pairs(requeries)[["turn_id", "first", "second", "contrast", "excluded"]]
      turn_id  first  second  contrast     excluded
    0      t1    0.0     1.0      -1.0
    1      t2    0.0     NaN       NaN  leg_missing
    """
    what, key = "re-queries", ["question_id", "stance_arm", "iteration", "own_opinion_exact"]
    frames.need(
        requeries, what, ("turn_id", *key, "leg", "agreed_level_explicit"), nullable=("agreed_level",),
        allowed={"stance_arm": tuple(LEGS), "leg": ("removed", "retained", "draw1", "draw2"),
                 "agreed_level": LEVELS,
                 "agreed_level_explicit": (True, False), "own_opinion_exact": (True, False)})
    frames.once(requeries, what, ["turn_id", "leg"])
    frames.constant_within(requeries, what, "turn_id", key)
    for column in ("composition", "timing"):
        frames.single(requeries, what, column, "persistence is measured within one composition and timing")
    for turn, arm, leg in zip(requeries.turn_id, requeries.stance_arm, requeries.leg, strict=True):
        if leg not in LEGS[arm]:
            raise DataError(f"{what}, turn_id {turn!r}, field 'leg': {leg!r}, expected one of "
                            f"{', '.join(LEGS[arm])} in the {arm} arm")
    for turn, exact, iteration in zip(requeries.turn_id, requeries.own_opinion_exact, requeries.iteration,
                                      strict=True):
        if iteration < 1 or bool(exact) != (iteration == 1):
            raise DataError(f"{what}, turn_id {turn!r}, field 'own_opinion_exact': {bool(exact)} "
                            f"at iteration {iteration}, expected True at iteration 1 and False later")

    explicit = requeries.agreed_level_explicit.astype(bool) & requeries.agreed_level.notna()
    persists = (severity(requeries.agreed_level) >= DISSENT).astype(float).where(explicit)
    place = np.where(requeries.leg.isin(("removed", "draw1")), "first", "second")
    rows = requeries.assign(persists=persists, place=place)
    out = rows.drop_duplicates("turn_id")[["turn_id", *key]].set_index("turn_id")
    legs = rows.pivot(index="turn_id", columns="place", values="persists").reindex(
        index=out.index, columns=["first", "second"])
    present = rows.groupby("turn_id").size().reindex(out.index)
    differ = pd.Series(False, index=out.index)
    for column in SAME_IN_BOTH_LEGS:
        if column in rows:
            differ |= rows.groupby("turn_id")[column].nunique(dropna=False).reindex(out.index) > 1
    silent = legs.isna()
    excluded = np.select(
        [present < 2, differ, silent.all(axis=1), silent["first"], silent["second"]],
        ["leg_missing", "legs_differ", "both_not_explicit", "first_not_explicit", "second_not_explicit"], "")
    contrast = (legs["first"] - legs["second"]).where(excluded == "")
    return out.assign(first=legs["first"], second=legs["second"], contrast=contrast,
                      excluded=excluded).reset_index()


def _chosen(requeries, arm, stratum):
    """Return the pairs of an arm and stratum, and the flag about legs that lost different shares."""
    choice("arm", arm, tuple(LEGS))
    choice("stratum", stratum, STRATA)
    found = pairs(requeries)
    found = found[found.stance_arm == arm]
    if stratum != "all":
        found = found[found.own_opinion_exact.astype(bool) == (stratum == "exact")]
    lost = {leg: int(found[leg].isna().sum()) for leg in ("first", "second")}
    return found, inference.differential_exclusion(lost, dict.fromkeys(lost, len(found)))


def _settings(stratum, role):
    """Return role, flags and gates that follow from the stratum."""
    exact = stratum == "exact"
    return (role if exact or role == "descriptive" else "robustness",
            () if exact else ("approximate_reconstruction",),
            (gates.check(gates.EXACT_RECONSTRUCTION, exact),))


def _gated(result):
    """Return the result with the gate on its informative units."""
    if result.n_nonzero is None:
        return result
    return result.with_gates(gates.check(gates.INFORMATIVE_UNITS, result.n_nonzero))


def _per_question(found):
    """Return the mean contrast of every question that has a pair."""
    return found[found.excluded == ""].groupby("question_id", sort=False).contrast.mean()


def reversion(requeries, *, arm="hostile", stratum="exact", draws=10_000, seed=0):
    """Persistence of dissent without the instruction minus persistence with it, averaged over questions.

    Parameters
    ----------
    requeries : DataFrame
        As in `pairs`.
    arm : {"hostile", "neutral", "friendly"}
        "neutral" compares two draws of one prompt, which should differ by nothing; "friendly" is descriptive.
    stratum : {"exact", "approximate", "all"}
        Turns of iteration 1, of later iterations, or both. Only the first can carry a claim: later turns are
        rebuilt from proxies, and the member's own earlier turns still speak in the deleted instruction's
        tone.
    draws, seed : int
        Of the bootstrap over questions.

    Returns
    -------
    Result
        ``removed_minus_retained`` (``draw1_minus_draw2`` in the neutral arm), -1..1; negative is reversion
        that the instruction accounts for. Exact sign-flip test over questions. Gated with fewer than six
        questions that moved, as no p below 0.05 exists then. No pair at all: undefined.

    Raises
    ------
    DataError
        As `pairs`.
    ValueError
        On an unknown arm or stratum.

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate",
    sec. 5; paired ablation as in Lanham et al. (2023), Measuring Faithfulness in Chain-of-Thought Reasoning.

    Examples
    --------
    >>> legs = [("q1", True, False), ("q2", True, True), ("q3", True, False)]
    >>> requeries = pd.DataFrame([
    ...     {"turn_id": q, "question_id": q, "stance_arm": "hostile", "leg": leg, "iteration": 1,
    ...      "own_opinion_exact": True, "agreed_level": "fully_disagreed" if dissents else "fully_agreed",
    ...      "agreed_level_explicit": True}
    ...     for q, retained, removed in legs
    ...     for leg, dissents in (("retained", retained), ("removed", removed))])
    >>> result = reversion(requeries)
    >>> result.name, round(result.estimate, 4), result.p, result.status
    ('removed_minus_retained', -0.6667, 0.5, 'gated')
    """
    found, flags = _chosen(requeries, arm, stratum)
    role, more, stated = _settings(stratum, "descriptive" if arm == "friendly" else "primary")
    result = inference.test_units(
        "_minus_".join(LEGS[arm]), _per_question(found), "share", n_rows=int((found.excluded == "").sum()),
        test=arm != "friendly", draws=draws, seed=seed, role=role, gates=stated,
        exclusions=frames.tally(found.excluded), flags=(*flags, *more))
    return _gated(result)


def difference_in_differences(requeries, *, stratum="exact", draws=10_000, seed=0):
    """Hostile contrast minus neutral contrast, on the questions that have both.

    Parameters
    ----------
    requeries : DataFrame
        As in `pairs`, with both arms.
    stratum : {"exact", "approximate", "all"}
    draws, seed : int

    Returns
    -------
    Result
        ``hostile_minus_neutral``, always ``role="robustness"``: the two neutral draws are exchangeable, so
        the subtraction targets what `reversion` estimates, on fewer questions and with more noise.

    Raises
    ------
    DataError, ValueError
        As `reversion`.

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", sec. 5.

    Examples
    --------
    >>> rows = [("h1", "q1", "hostile", "removed", False), ("h1", "q1", "hostile", "retained", True),
    ...         ("n1", "q1", "neutral", "draw1", True), ("n1", "q1", "neutral", "draw2", True)]
    >>> requeries = pd.DataFrame([
    ...     {"turn_id": t, "question_id": q, "stance_arm": arm, "leg": leg, "iteration": 1,
    ...      "own_opinion_exact": True, "agreed_level": "fully_disagreed" if dissents else "fully_agreed",
    ...      "agreed_level_explicit": True}
    ...     for t, q, arm, leg, dissents in rows])
    >>> result = difference_in_differences(requeries)
    >>> result.estimate, result.n_units, result.n_rows
    (-1.0, 1, 2)
    """
    hostile, first = _chosen(requeries, "hostile", stratum)
    neutral, second = _chosen(requeries, "neutral", stratum)
    contrast = (_per_question(hostile) - _per_question(neutral)).dropna()  # aligned: shared questions only
    both = pd.concat([hostile, neutral])
    unshared = (both.excluded == "") & ~both.question_id.isin(contrast.index)
    reasons = both.excluded.mask(unshared, "question_not_shared")
    role, more, stated = _settings(stratum, "robustness")
    result = inference.test_units(
        "hostile_minus_neutral", contrast, "share", n_rows=int((reasons == "").sum()), draws=draws, seed=seed,
        role=role, gates=stated, exclusions=frames.tally(reasons),
        flags=dict.fromkeys((*first, *second, *more)))
    return _gated(result)


def turn_counts(requeries, *, arm="hostile", stratum="exact"):
    """Count the pairs by what their two legs did; descriptive.

    Parameters
    ----------
    requeries : DataFrame
        As in `pairs`.
    arm : {"hostile", "neutral", "friendly"}
    stratum : {"exact", "approximate", "all"}

    Returns
    -------
    TurnCounts
        `only_retained` and `only_removed` count the discordant pairs ("draw2" and "draw1" in the neutral
        arm). `attributable` is their difference over n, the turn-pooled reversion. There is no p: turns of
        one question are not independent, so a McNemar test on them would be wrong. NaN without pairs.

    Raises
    ------
    DataError, ValueError
        As `reversion`.

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", scope decision (i).

    Examples
    --------
    >>> requeries = pd.DataFrame({
    ...     "turn_id": ["t1", "t1"], "question_id": "q1", "stance_arm": "hostile",
    ...     "leg": ["removed", "retained"], "iteration": 1, "own_opinion_exact": True,
    ...     "agreed_level": ["fully_agreed", "fully_disagreed"], "agreed_level_explicit": True})
    >>> turn_counts(requeries).attributable
    1.0
    """
    found, _ = _chosen(requeries, arm, stratum)
    kept = found[found.excluded == ""]
    n, questions = len(kept), kept.question_id.nunique()
    only_retained, only_removed = int((kept.contrast == -1).sum()), int((kept.contrast == 1).sum())
    if not n:
        return TurnCounts(0, 0, 0, 0, nan, nan, nan)
    return TurnCounts(n, questions, only_retained, only_removed, (only_retained - only_removed) / n,
                      float(1 - kept["first"].mean()), float(1 - kept["second"].mean()))


def confirmed_reversals(requeries, judgements, families, *, stratum="exact", judge_gates=()):
    """Of the labels that reverted without the instruction, how many did so in the text too?

    Parameters
    ----------
    requeries : DataFrame
        As in `pairs`; the hostile arm is used.
    judgements : DataFrame
        Blind judgements of the re-queries' texts: ``turn_id, leg, judge_family, severity`` (0..3, missing if
        unread), one row per judge. Only those of the "removed" leg are used; `leg` is asked for so that
        judgements of the original turns are not taken for them.
    families : mapping of str to str
        Family of the model that wrote the turn, by turn id. Judges of the same family are dropped.
    stratum : {"exact", "approximate", "all"}
    judge_gates : sequence of Gate
        Reliability gates of the judge. Without them the result stays gated.

    Returns
    -------
    Result
        ``confirmed_reversals``: share of the reverted turns whose text the judges put at severity 0 or 1
        (lower median of several judges), with k, n and Wilson's interval over turns; descriptive.

    Raises
    ------
    DataError
        As `pairs`, on a severity outside 0..3, or a reverted turn without family.

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", sec. 5.

    Examples
    --------
    >>> requeries = pd.DataFrame({
    ...     "turn_id": ["t1", "t1"], "question_id": "q1", "stance_arm": "hostile",
    ...     "leg": ["removed", "retained"], "iteration": 1, "own_opinion_exact": True,
    ...     "agreed_level": ["fully_agreed", "fully_disagreed"], "agreed_level_explicit": True})
    >>> judgements = pd.DataFrame({"turn_id": ["t1"], "leg": "removed", "judge_family": "google",
    ...                            "severity": [1]})
    >>> result = confirmed_reversals(requeries, judgements, {"t1": "openai"},
    ...                              judge_gates=[Gate("ac1", 0.8, 0.6, True)])
    >>> result.k, result.n, round(result.low, 3)
    (1, 1, 0.207)
    """
    found, _ = _chosen(requeries, "hostile", stratum)
    frames.need(judgements, "judgements", ("turn_id", "leg", "judge_family"), nullable=("severity",),
                allowed={"leg": ("removed", "retained", "draw1", "draw2"), "severity": range(len(LEVELS))})
    reverted = found[(found.excluded == "") & (found["first"] == 0)]
    author = reverted.turn_id.map(dict(families))
    if author.isna().any():
        raise DataError(f"families, turn_id {reverted.turn_id[author.isna()].tolist()[0]!r}: missing, "
                        "expected the family of the model that wrote the turn")
    heard = judgements[(judgements.leg == "removed") & judgements.turn_id.isin(reverted.turn_id)]
    own = heard.judge_family == heard.turn_id.map(dict(families))
    usable = heard[~own & heard.severity.notna()]
    level = usable.assign(severity=usable.severity.astype(float)).groupby("turn_id").severity.quantile(
        0.5, interpolation="lower")
    read = reverted.turn_id.map(level)
    n, k = int(read.notna().sum()), int((read < DISSENT).sum())
    excluded = {"unjudged": len(reverted) - n, "own_family_judgement": int(own.sum()),
                "unread_judgement": int((~own & heard.severity.isna()).sum())}
    _, flags, stated = _settings(stratum, "descriptive")
    checked = tuple(judge_gates) or (gates.check(gates.JUDGE_AC1, nan),)
    low, high = inference.wilson(k, n)
    result = Result("confirmed_reversals", k / n if n else nan, "share", n_units=n, unit_name="turn",
                    n_rows=len(usable), k=k, n=n, low=low, high=high, interval="Wilson", role="descriptive",
                    exclusions={reason: count for reason, count in excluded.items() if count},
                    flags=flags if judge_gates else (*flags, "judge_unchecked"))
    return replace(result, status="ok" if n else "undefined").with_gates(*stated, *checked)
