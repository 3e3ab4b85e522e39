"""Does debate narrow the spread of stated options? Distributions over each question's own answer options.

Questions have from two to seven options, so distributions stay ragged: never padded to a common width, and an
opinion that names no option has a place of its own. Exploratory: a narrower spread is neither better nor
worse.
"""

from dataclasses import replace
from math import log2, nan

import numpy as np
import pandas as pd

from analysis.errors import DataError, choice
from analysis.layers import distributions, frames, gates, inference
from analysis.layers.results import Gate

ARMS = ("debate", "none")
STAGES = ("first", "final")
NO_POSITION = "no_position"
KINDS = ("option", "full")
MIN_ORDERS = 3
TIE = 1e-12  # probabilities closer than this are tied
_SUM = distributions.SUM_TOLERANCE


def average_orders(reads):
    """Average a member's distribution over the option orders it was read under.

    Parameters
    ----------
    reads : DataFrame
        One row a read: ``question_id, member_id, arm, stage, options`` (list, in the dataset's order),
        ``shown`` (the same options in the order of this read) and ``probs`` (list in the order of `shown`,
        the share without a position last).

    Returns
    -------
    DataFrame
        ``question_id, member_id, arm, stage, options, probs`` with probs in the dataset's order, and
        `n_orders`, the number of different orders. Fewer than three leave a preference for places in it, and
        the results say so (``few_option_orders``).

    Raises
    ------
    DataError
        On `shown` that is not a reordering of `options`, or a `probs` of another length.

    Examples
    --------
    >>> reads = pd.DataFrame({
    ...     "question_id": "q", "member_id": "a", "arm": "none", "stage": "first",
    ...     "options": [["yes", "no"]] * 2, "shown": [["yes", "no"], ["no", "yes"]],
    ...     "probs": [[0.6, 0.3, 0.1], [0.5, 0.5, 0.0]]})
    >>> found = average_orders(reads)
    >>> np.round(found.probs[0], 6).tolist(), found.n_orders.tolist()
    ([0.55, 0.4, 0.05], [2])
    """
    key = ["question_id", "member_id", "arm", "stage"]
    frames.need(reads, "option reads", (*key, "options", "shown", "probs"))
    aligned = []
    for row in reads.itertuples():
        options, shown = list(row.options), list(row.shown)
        if sorted(map(str, shown)) != sorted(map(str, options)) or len(set(options)) != len(options):
            raise DataError(f"option reads, row {row.Index!r}, field 'shown': {shown!r}, "
                            f"expected an order of {options!r}")
        if len(row.probs) != len(options) + 1:
            raise DataError(f"option reads, row {row.Index!r}, field 'probs': {len(row.probs)} values, "
                            f"expected {len(options) + 1} (one an option, and one without a position)")
        aligned.append(np.append(np.asarray(row.probs, dtype=float)[[shown.index(o) for o in options]],
                                 row.probs[-1]))
    rows = reads.assign(aligned=aligned, order=[tuple(shown) for shown in reads.shown])
    out = []
    for names, group in rows.groupby(key, sort=False):
        if len({tuple(options) for options in group.options}) > 1:
            raise DataError(f"option reads, question_id {names[0]!r}, field 'options': two lists, "
                            "expected one")
        out.append((*names, list(group.options.iloc[0]), np.mean(list(group.aligned), axis=0).tolist(),
                    group.order.nunique()))
    return pd.DataFrame(out, columns=[*key, "options", "probs", "n_orders"])


def check_support(maps):
    """Find the questions whose distributions do not fit their own options.

    Parameters
    ----------
    maps : DataFrame
        ``question_id, member_id, arm`` ("debate", "none"), ``stage`` ("first", "final"), ``options`` (list of
        K in the dataset's order), ``probs`` (list of K + 1, the share without a position last).

    Returns
    -------
    list
        Ids of questions that have a distribution of another length than K + 1: the mapper did not offer the
        options that the question has.

    Raises
    ------
    DataError
        On missing fields, unknown arms or stages, a row given twice, a question with two lists of options,
        with one option only or with one twice, negative entries, or a sum other than 1 (within 1e-6).

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", scope decision (iii).

    Examples
    --------
    >>> maps = pd.DataFrame({"question_id": ["q1", "q2"], "member_id": "a", "arm": "none", "stage": "first",
    ...                      "options": [["yes", "no"], ["a", "b", "c"]], "probs": [[1, 0, 0], [1, 0, 0]]})
    >>> check_support(maps)
    ['q2']
    """
    what = "option distributions"
    frames.need(maps, what, ("question_id", "member_id", "arm", "stage", "options", "probs"),
                allowed={"arm": ARMS, "stage": STAGES})
    frames.once(maps, what, ["question_id", "member_id", "arm", "stage"])
    frames.single(maps, what, "composition", "committees are never mixed")
    offered, wrong = {}, []
    for row in maps.itertuples():
        options, probs = tuple(row.options), np.asarray(row.probs, dtype=float)
        here = f"{what}, question_id {row.question_id!r}, member_id {row.member_id!r}"
        if offered.setdefault(row.question_id, options) != options:
            raise DataError(f"{here}, field 'options': {list(options)!r}, expected "
                            f"{list(offered[row.question_id])!r} as in the question's other rows")
        if len(options) < 2 or len(set(options)) != len(options):
            raise DataError(f"{here}, field 'options': {list(options)!r}, "
                            "expected two or more different options")
        if not (probs >= 0).all() or abs(probs.sum() - 1) > _SUM:
            raise DataError(f"{here}, field 'probs': {probs.tolist()}, expected probabilities that sum to 1")
        if len(probs) != len(options) + 1:
            wrong.append(row.question_id)
    return list(dict.fromkeys(wrong))


def committees(maps, *, alpha=0.0):
    """Pool the members of every question into one distribution, and measure its spread.

    Parameters
    ----------
    maps : DataFrame
        As in `check_support`.
    alpha : float
        Added to every cell of the committee's mean distribution before it is rescaled. 0 takes the
        distribution as it is; 0.5 gives the level of the printed entropies, but holds small changes down and
        can turn their sign.

    Returns
    -------
    DataFrame
        One line per question, arm and stage: `probs` (array of K + 1), `n_members`, `members` (sorted ids),
        `n_options`, `entropy` in bits and `relative_entropy`, its share of log2(K + 1). Questions with a
        wrong support are left out.

    Raises
    ------
    DataError
        As `check_support`.
    ValueError
        On a negative alpha.

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", sec. 5, pluralism.

    Examples
    --------
    >>> maps = pd.DataFrame({"question_id": "q1", "member_id": ["a", "b"], "arm": "none", "stage": "first",
    ...                      "options": [["yes", "no"]] * 2, "probs": [[1, 0, 0], [0, 1, 0]]})
    >>> committees(maps)[["n_members", "entropy"]].values.tolist()
    [[2.0, 1.0]]
    """
    if not alpha >= 0:
        raise ValueError(f"alpha={alpha}: expected a number from 0")
    maps = maps[~maps.question_id.isin(check_support(maps))]
    out = []
    for names, group in maps.groupby(["question_id", "arm", "stage"], sort=False):
        probs = np.mean(np.asarray(group.probs.tolist(), dtype=float), axis=0) + alpha
        probs = probs / probs.sum()
        bits = distributions.entropy(probs)
        out.append((*names, probs, len(group), tuple(sorted(group.member_id)), len(probs) - 1, bits,
                    bits / log2(len(probs))))
    return pd.DataFrame(out,
                        columns=["question_id", "arm", "stage", "probs", "n_members", "members", "n_options",
                                      "entropy", "relative_entropy"])


def _common(maps, mapper_gates):
    """Return gates and flags that every result shares: support of all questions, a reliable mapper."""
    wrong = check_support(maps)
    stated = (gates.check(gates.OPTION_SUPPORT, not wrong),
              *(mapper_gates or (gates.check(gates.JUDGE_AC1, nan),)))
    flags = () if mapper_gates else ("mapper_unchecked",)
    if "n_orders" in maps and (maps.n_orders < MIN_ORDERS).any():
        flags = (*flags, "few_option_orders")
    return len(wrong), stated, flags


def _excluded(**counts):
    return {reason: int(count) for reason, count in counts.items() if count}


def _stages(maps, arm, alpha=0.0):
    """Return first and final committees of an arm, and how many questions a changed committee left out."""
    choice("arm", arm, ARMS)
    pooled = committees(maps, alpha=alpha)
    pooled = pooled[pooled.arm == arm].set_index("question_id")
    first, final = (pooled[pooled.stage == stage] for stage in STAGES)
    every = pooled.index.unique()
    same = [q for q in first.index if q in final.index and first.members[q] == final.members[q]]
    return first.loc[same], final.loc[same], len(every) - len(same)


def entropy_change(maps, *, arm="debate", alpha=0.0, relative=False, mapper_gates=(), draws=10_000, seed=0):
    """Entropy of the committee's final distribution minus that of its first one, on the same question.

    Parameters
    ----------
    maps : DataFrame
        As in `check_support`.
    arm : {"debate", "none"}
    alpha : float
        As in `committees`; anything but 0 is a robustness result.
    relative : bool
        Entropies as shares of log2(K + 1), which compares questions of different widths.
    mapper_gates : sequence of Gate
        Reliability of the mapper (agreement of two judges on the likeliest option). Gated without them.
    draws, seed : int
        Of the bootstrap over questions.

    Returns
    -------
    Result
        ``final_minus_first_entropy``, in bits, averaged over questions; sign-flip test; exploratory.
        Questions that lack a stage for a member are left out and counted (``committee_incomplete``). In the
        "none" arm ``not_remapped`` flags members whose two stages are equal to the digit: nothing was read
        twice, so the arm says nothing about the mapper's noise.

    Raises
    ------
    DataError, ValueError
        As `committees`.

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", sec. 5, pluralism.

    Examples
    --------
    >>> maps = pd.DataFrame({
    ...     "question_id": ["q1"] * 4, "member_id": ["a", "b"] * 2, "arm": "debate",
    ...     "stage": ["first"] * 2 + ["final"] * 2, "options": [["yes", "no"]] * 4,
    ...     "probs": [[1, 0, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0]]})
    >>> result = entropy_change(maps)
    >>> result.estimate, result.role, result.status, result.flags[-1]
    (-1.0, 'exploratory', 'gated', 'mapper_unchecked')
    """
    wrong, stated, flags = _common(maps, mapper_gates)
    first, final, broken = _stages(maps, arm, alpha)
    column = "relative_entropy" if relative else "entropy"
    if arm == "none" and _copied(maps):
        flags = (*flags, "not_remapped")
    return inference.test_units(
        "final_minus_first_entropy", final[column] - first[column],
        "share of log2(K + 1)" if relative else "bits",
        n_rows=int(first.n_members.sum() + final.n_members.sum()), draws=draws, seed=seed,
        role="robustness" if alpha else "exploratory", gates=stated, flags=flags,
        exclusions=_excluded(wrong_support=wrong, committee_incomplete=broken))


def _copied(maps):
    """Whether all members of the no-debate arm have the very same distribution at both stages."""
    rows = maps[maps.arm == "none"]
    both = rows.assign(probs=[tuple(p) for p in rows.probs]).pivot(
        index=["question_id", "member_id"], columns="stage",
        values="probs").reindex(columns=list(STAGES)).dropna()
    return len(both) > 0 and bool((both["first"] == both["final"]).all())


def _top(probs, prefer=None):
    """Return the place of the largest entry; of tied ones `prefer`, else the first."""
    probs = np.asarray(probs, dtype=float)
    tied = np.flatnonzero(probs >= probs.max() - TIE)
    return prefer if prefer in tied else int(tied[0])


def trajectories(maps, *, arm="debate"):
    """Where every member stood first and last.

    Parameters
    ----------
    maps : DataFrame
        As in `check_support`.
    arm : {"debate", "none"}

    Returns
    -------
    DataFrame
        One line per question and member with both stages: `first`, `final`, the likeliest option or
        "no_position"; `option_flip`, from one option of the dataset to another; `full_flip`, any change, into
        and out of "no_position" too. Of tied options the first stage takes the first in the dataset's order,
        the final stage the member's earlier one if it is among them.

    Raises
    ------
    DataError, ValueError
        As `entropy_change`.

    Examples
    --------
    >>> maps = pd.DataFrame({
    ...     "question_id": "q1", "member_id": ["a", "b"] * 2, "arm": "debate",
    ...     "stage": ["first"] * 2 + ["final"] * 2, "options": [["yes", "no"]] * 4,
    ...     "probs": [[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0], [0, 0, 1]]})
    >>> trajectories(maps)[["member_id", "first", "final", "option_flip", "full_flip"]]
      member_id first        final  option_flip  full_flip
    0         a   yes          yes        False      False
    1         b    no  no_position        False       True
    """
    choice("arm", arm, ARMS)
    maps = maps[~maps.question_id.isin(check_support(maps))]
    rows = maps[maps.arm == arm]
    final = rows[rows.stage == "final"].set_index(["question_id", "member_id"]).probs
    out = []
    for row in rows[rows.stage == "first"].itertuples():
        at = (row.question_id, row.member_id)
        if at not in final.index:
            continue
        before = _top(row.probs)
        after = _top(final[at], before)
        silent, names = len(row.options), [*row.options, NO_POSITION]
        out.append((*at, names[before], names[after], before != after and silent not in (before, after),
                    before != after))
    return pd.DataFrame(out,
                        columns=["question_id", "member_id", "first", "final", "option_flip", "full_flip"])


def flip_rate(maps, *, arm="debate", kind="option", mapper_gates=(), draws=10_000, seed=0):
    """Share of members whose likeliest option changed.

    Parameters
    ----------
    maps : DataFrame
        As in `check_support`.
    arm : {"debate", "none"}
    kind : {"option", "full"}
        Changes between options of the dataset only, or those into and out of "no_position" too. Both are
        shares of all members.
    mapper_gates, draws, seed
        As in `entropy_change`.

    Returns
    -------
    Result
        ``option_flip_rate`` or ``full_flip_rate``, averaged over questions, with k and n over members.

    Raises
    ------
    DataError, ValueError
        As `entropy_change`.

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", sec. 5, pluralism.

    Examples
    --------
    >>> maps = pd.DataFrame({
    ...     "question_id": "q1", "member_id": ["a", "b"] * 2, "arm": "debate",
    ...     "stage": ["first"] * 2 + ["final"] * 2, "options": [["yes", "no"]] * 4,
    ...     "probs": [[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0], [0, 0, 1]]})
    >>> result = flip_rate(maps, kind="full")
    >>> result.estimate, result.k, result.n
    (0.5, 1, 2)
    """
    choice("kind", kind, KINDS)
    wrong, stated, flags = _common(maps, mapper_gates)
    moved = trajectories(maps, arm=arm)
    if arm == "none" and _copied(maps):
        flags = (*flags, "not_remapped")
    members = maps[(maps.arm == arm) & ~maps.question_id.isin(check_support(maps))][["question_id",
                                                                                     "member_id"]]
    lost = len(members.drop_duplicates()) - len(moved)
    flips = moved[f"{kind}_flip"].astype(bool)
    result = inference.test_units(
        f"{kind}_flip_rate", flips.groupby(moved.question_id, sort=False).mean(), "share", n_rows=len(moved),
        test=False, share=True, draws=draws, seed=seed, role="exploratory", gates=stated, flags=flags,
        exclusions=_excluded(wrong_support=wrong, stage_missing=lost))
    return replace(result, k=int(flips.sum()), n=len(moved))


def human_distances(maps, human, *, stage="final"):
    """Distance between each committee's distribution and that of human respondents.

    Parameters
    ----------
    maps : DataFrame
        As in `check_support`.
    human : DataFrame
        ``question_id, probs`` (list of K in the order of `options`, summing to 1).
    stage : {"first", "final"}

    Returns
    -------
    DataFrame
        One line per question and arm: `js_distance` (Jensen-Shannon distance, base 2, 0..1), taken after the
        share without a position was dropped and the rest rescaled; `dropped`, that share; `excluded`,
        ``no_human`` or ``only_no_position`` where there is no distance, else empty.

    Raises
    ------
    DataError
        As `check_support`, and on human distributions that are given twice, do not sum to 1 or have another
        number of options.

    References
    ----------
    Lin (1991); Endres and Schindelin (2003).

    Examples
    --------
    >>> maps = pd.DataFrame({"question_id": ["q1"], "member_id": "a", "arm": "none", "stage": "final",
    ...                      "options": [["yes", "no"]], "probs": [[0.4, 0.4, 0.2]]})
    >>> human = pd.DataFrame({"question_id": ["q1"], "probs": [[0.5, 0.5]]})
    >>> human_distances(maps, human)[["js_distance", "dropped"]].round(6).values.tolist()
    [[0.0, 0.2]]
    """
    choice("stage", stage, STAGES)
    frames.need(human, "human distributions", ("question_id", "probs"))
    frames.once(human, "human distributions", ["question_id"])
    known = {}
    for row in human.itertuples():
        probs = np.asarray(row.probs, dtype=float)
        if not (probs >= 0).all() or abs(probs.sum() - 1) > _SUM:
            raise DataError(f"human distributions, question_id {row.question_id!r}, field 'probs': "
                            f"{probs.tolist()}, expected probabilities that sum to 1")
        known[row.question_id] = probs
    pooled = committees(maps)
    out = []
    for row in pooled[pooled.stage == stage].itertuples():
        dropped, kept = row.probs[-1], row.probs[:-1]
        theirs = known.get(row.question_id)
        if theirs is None:
            found, reason = nan, "no_human"
        elif len(theirs) != len(kept):
            raise DataError(f"human distributions, question_id {row.question_id!r}, field 'probs': "
                            f"{len(theirs)} values, expected {len(kept)}, one an option")
        elif kept.sum() <= TIE:
            found, reason = nan, "only_no_position"
        else:
            found, reason = distributions.js_distance(kept / kept.sum(), theirs / theirs.sum()), ""
        out.append((row.question_id, row.arm, found, dropped, reason))
    return pd.DataFrame(out, columns=["question_id", "arm", "js_distance", "dropped", "excluded"])


def human_contrast(maps, human, *, stage="final", mapper_gates=(), draws=10_000, seed=0):
    """Distance to the human distribution with debate minus without, on the same question.

    Parameters
    ----------
    maps, human, stage
        As in `human_distances`.
    mapper_gates, draws, seed
        As in `entropy_change`.

    Returns
    -------
    Result
        ``debate_minus_none_js_distance``, averaged over questions that have both; sign-flip test;
        exploratory. A narrower committee can be further away for that reason alone: it is no measure of
        accuracy.

    Raises
    ------
    DataError, ValueError
        As `human_distances`.

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", sec. 5, pluralism.

    Examples
    --------
    >>> maps = pd.DataFrame({"question_id": "q1", "member_id": "a", "arm": ["debate", "none"],
    ...                      "stage": "final", "options": [["yes", "no"]] * 2,
    ...                      "probs": [[1, 0, 0], [0, 1, 0]]})
    >>> human = pd.DataFrame({"question_id": ["q1"], "probs": [[1, 0]]})
    >>> human_contrast(maps, human).estimate
    -1.0
    """
    wrong, stated, flags = _common(maps, mapper_gates)
    found = human_distances(maps, human, stage=stage)
    wide = found.pivot(index="question_id", columns="arm", values="js_distance").reindex(columns=list(ARMS))
    reasons = found.groupby("question_id", sort=False).excluded.max()
    reason = reasons.reindex(wide.index).mask(lambda s: (s == "") & wide.isna().any(axis=1), "one_arm")
    kept = wide[reason == ""]
    dropped = frames.tally(reason)
    return inference.test_units(
        "debate_minus_none_js_distance", kept.debate - kept.none, "distance", n_rows=2 * len(kept),
        draws=draws, seed=seed,
        role="exploratory", gates=stated, flags=flags, exclusions=_excluded(wrong_support=wrong, **dropped))


def outcomes(maps, human=None, *, mapper_gates=(), draws=10_000, seed=0):
    """All results on the spread of options, the tested ones corrected together.

    Parameters
    ----------
    maps : DataFrame
        As in `check_support`.
    human : DataFrame, optional
        As in `human_distances`.
    mapper_gates, draws, seed
        As in `entropy_change`.

    Returns
    -------
    list of Result
        Entropy change with debate and, with `human`, the contrast of distances, Holm-corrected as the family
        "pluralism"; then the entropy change at alpha 0.5 and that of the no-debate arm, and the flip rates.

    Raises
    ------
    DataError
        As `human_distances`.

    Examples
    --------
    >>> maps = pd.DataFrame({
    ...     "question_id": ["q1"] * 4, "member_id": ["a", "b"] * 2, "arm": "debate",
    ...     "stage": ["first"] * 2 + ["final"] * 2, "options": [["yes", "no"]] * 4,
    ...     "probs": [[1, 0, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0]]})
    >>> found = outcomes(maps, mapper_gates=[Gate("ac1", 0.9, 0.6, True)])
    >>> [(result.name, round(result.estimate, 3)) for result in found[:2]]
    [('final_minus_first_entropy', -1.0), ('final_minus_first_entropy_alpha_0.5', -0.151)]
    """
    settings = {"mapper_gates": mapper_gates, "draws": draws, "seed": seed}
    tested = [entropy_change(maps, **settings)]
    if human is not None:
        tested.append(human_contrast(maps, human, **settings))
    smoothed = entropy_change(maps, alpha=0.5, **settings)
    rest = [replace(smoothed, name=f"{smoothed.name}_alpha_0.5")]
    if (maps.arm == "none").any():
        floor = entropy_change(maps, arm="none", **settings)
        rest.append(replace(floor, name=f"{floor.name}_no_debate"))
    rest += [flip_rate(maps, kind=kind, **settings) for kind in KINDS]
    return [*inference.holm_results(tested, "pluralism"), *rest]
