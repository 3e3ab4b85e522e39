"""What the text does, as a blind judge reads it: stance severity and move type, and how far to trust them.

A judge sees the parent's text and the reply and nothing else. Its severities go through the functions of
`analysis.layers.selfreport`; the gates here decide whether a claim may rest on them.
"""

import hashlib
import json
from dataclasses import replace
from math import nan
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.errors import DataError
from analysis.layers import agreement, frames, gates, inference, selfreport
from analysis.layers.results import Gate, Result

SEVERITIES = (0, 1, 2, 3)
MOVES = ("challenge", "new_argument", "concession", "refinement", "restatement")


def payload_hash(parent, reply):
    """Digest of exactly what a judge may see.

    Parameters
    ----------
    parent, reply : str

    Returns
    -------
    str
        SHA-256 of the two texts as a JSON list.

    Examples
    --------
    >>> payload_hash("a", "b") == payload_hash("a", "b"), payload_hash("ab", "") == payload_hash("a", "b")
    (True, False)
    """
    return hashlib.sha256(json.dumps([parent, reply], ensure_ascii=False).encode()).hexdigest()


def payload_hashes(turns):
    """Digest of what a judge may see of each turn, from the texts.

    Parameters
    ----------
    turns : DataFrame
        ``turn_id, parent_id, text``, first opinions included.

    Returns
    -------
    Series of str, index turn_id
        Missing for first opinions and where one of the two texts is.

    Examples
    --------
    >>> turns = pd.DataFrame({"turn_id": ["r", "t"], "parent_id": [None, "r"], "text": ["a", "b"]})
    >>> payload_hashes(turns)["t"] == payload_hash("a", "b")
    True
    """
    text = turns.set_index("turn_id")["text"]
    parent = turns["parent_id"].map(text)
    digests = [payload_hash(said, reply) if isinstance(said, str) and isinstance(reply, str) else None
               for said, reply in zip(parent, turns["text"], strict=True)]
    return pd.Series(digests, index=text.index, dtype="str")


def check_blind(judgements, shown):
    """Raise about the first judgement whose payload is not what the judge may see.

    Parameters
    ----------
    judgements : DataFrame
        ``turn_id, payload_hash``.
    shown : Series of str, index turn_id
        From `payload_hashes`; turns without a digest are not checked.

    Raises
    ------
    DataError

    Examples
    --------
    >>> check_blind(pd.DataFrame({"turn_id": ["t"], "payload_hash": "0"}), pd.Series({"t": "1"}))
    Traceback (most recent call last):
    analysis.errors.DataError: judgements, turn_id 't', field 'payload_hash': '0', not of the parent's text \
and the reply alone, so nothing shows that the judge was blind
    """
    wanted = judgements["turn_id"].map(shown)
    other = wanted.notna() & (wanted != judgements["payload_hash"])
    if other.any():
        first = judgements[other].iloc[0]
        raise DataError(f"judgements, turn_id {first['turn_id']!r}, field 'payload_hash': "
                        f"{first['payload_hash']!r}, not of the parent's text and the reply alone, so "
                        "nothing shows that the judge was blind")


def read(turns, judgements, *, families=None):
    """Replace the labels of turns by what blind judges read in their texts.

    Parameters
    ----------
    turns : DataFrame
        From `analysis.layers.selfreport.debate_turns`; with ``payload_hash`` (see `payload_hashes`),
        judgements of other texts are refused.
    judgements : DataFrame
        ``turn_id, judge_model, judge_family, severity`` (0..3 or missing: unread), ``move_type`` (or
        missing), ``payload_hash``; one line a turn and judge.
    families : mapping of str to str, optional
        Family of each member's model, by member id; the turns' ``member_family`` if left out. A judge of the
        author's own family is dropped for that turn.

    Returns
    -------
    DataFrame
        The turns, `severity` (lower median of the judges), `move_type` (the move most of them name, missing
        on a tie), `full`, `dissent`, `n_judges`, and `excluded`: ``api_error``, ``not_judged``,
        ``own_family`` (no other judge), ``unread`` or empty. Labels that members gave themselves play no
        part; in `selfreport.collapse` the share of turns that were read takes the place of the share of
        explicit labels.

    Raises
    ------
    DataError
        On missing fields, unknown values, a judge who read a turn twice, a judgement of no debate turn or one
        whose payload is not the turn's, or a member without a family.

    Examples
    --------
    >>> turns = pd.DataFrame({"turn_id": ["t"], "member_id": "a", "excluded": "not_explicit",
    ...                       "status": "completed"})
    >>> votes = pd.DataFrame({"turn_id": "t", "judge_model": ["j", "k"], "judge_family": ["x", "y"],
    ...                       "severity": [1, 3], "move_type": ["challenge", "concession"],
    ...                       "payload_hash": "h"})
    >>> read(turns, votes)[["severity", "move_type", "n_judges", "excluded"]].values.tolist()
    [[1.0, nan, 2, '']]
    """
    frames.need(judgements, "judgements", ("turn_id", "judge_model", "judge_family", "payload_hash"),
                nullable=("severity", "move_type"), allowed={"severity": SEVERITIES, "move_type": MOVES})
    frames.once(judgements, "judgements", ["turn_id", "judge_model"])
    stray = ~judgements["turn_id"].isin(turns["turn_id"])
    if stray.any():
        raise DataError(f"judgements, turn_id {judgements['turn_id'][stray].iloc[0]!r}: "
                        "expected a turn that answers another one")
    if "payload_hash" in turns:
        check_blind(judgements, turns.set_index("turn_id")["payload_hash"])
    author = _authors(turns, judgements["turn_id"], families)
    own = author.notna() & (author == judgements["judge_family"])
    heard = judgements[~own]
    level = heard["severity"].dropna().astype(float).groupby(heard["turn_id"]).quantile(
        0.5, interpolation="lower")
    place = turns["turn_id"]
    judged, others = place.isin(judgements["turn_id"]), place.isin(heard["turn_id"])
    severity = place.map(level)
    excluded = np.select([turns["status"] != "completed", ~judged, ~others, severity.isna()],
                         ["api_error", "not_judged", "own_family", "unread"], "")
    counts = pd.Series(excluded, index=turns.index) == ""
    n_judges = place.map(heard.groupby("turn_id").size()).fillna(0).astype(int)
    out = turns.assign(severity=severity.where(counts), move_type=place.map(_plurality(heard)).where(counts),
                       n_judges=n_judges, excluded=excluded)
    return selfreport.with_shares(out)


def _authors(turns, turn_ids, families):
    """Family of the model that wrote each turn; missing where nobody told any."""
    at = turns.set_index("turn_id")
    if families is None:
        told = at["member_family"] if "member_family" in at else pd.Series(dtype=object)
        return turn_ids.map(told)
    members = turn_ids.map(at["member_id"])
    unknown = ~members.isin(families)
    if unknown.any():
        raise DataError(f"families: no member {members[unknown].iloc[0]!r}, expected the family of every "
                        "member's model (a judge must not read its own family)")
    return members.map(dict(families))


def _plurality(judgements):
    """Move that most judges of a turn name; missing on a tie."""
    named = judgements.dropna(subset=["move_type"])
    votes = named.groupby(["turn_id", "move_type"]).size().rename("n").reset_index()
    top = votes[votes["n"] == votes.groupby("turn_id")["n"].transform("max")]
    return top.drop_duplicates("turn_id", keep=False).set_index("turn_id")["move_type"]


# --- gate A: are the judges reliable? ---------------------------------------------------------------------


class Reliability(NamedTuple):
    """`results`: agreement on each axis as `Result`; `gates`: what a judge's claims rest on."""

    results: list
    gates: tuple


def reliability(sample, judges, *, battery=None, moves=True, draws=10_000, seed=0):
    """Compare two judges on the same turns.

    Parameters
    ----------
    sample : DataFrame
        Judgements as in `read`, with ``question_id``, of the shared turns. With a column ``option`` (the
        option that a reply endorses, missing if unread) there is a third axis.
    judges : tuple of str
        The two values of ``judge_model``.
    battery : DataFrame, optional
        Items written with a known reading: ``item_id, judge_model, severity, move_type, known_severity,
        known_move_type``. Without it that gate fails: nobody knows whether the judges can read at all.
    moves : bool
        Whether the move axis is claimed as well.
    draws, seed : int
        Of the bootstrap over questions.

    Returns
    -------
    Reliability
        Results ``stance_ac1``, ``stance_ac1_legal`` (chance over all four labels),
        ``stance_quadratic_kappa``, ``move_ac1``, ``move_ac1_legal``, ``option_ac1`` (over the options that a
        judge named: questions have different ones); n_rows turns that both judges read, n_units questions.
        Gates of one axis end in its name.

    Raises
    ------
    DataError
        On missing fields, unknown values, or a judge without judgements.

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", Layer B; Gwet (2008).

    Examples
    --------
    >>> sample = pd.DataFrame({"turn_id": list("aabb"), "question_id": list("ppqq"),
    ...                        "judge_model": ["j", "k"] * 2, "severity": [0, 0, 2, 2],
    ...                        "move_type": "challenge"})
    >>> found = reliability(sample, ("j", "k"))
    >>> found.results[0].name, found.results[0].estimate, found.gates[0].name, found.gates[0].passed
    ('stance_ac1', 1.0, 'judge_sample', False)
    """
    frames.need(sample, "judgements", ("turn_id", "question_id", "judge_model"),
                nullable=("severity", "move_type"), allowed={"severity": SEVERITIES, "move_type": MOVES})
    frames.once(sample, "judgements", ["turn_id", "judge_model"])
    for judge in judges:
        if judge not in set(sample["judge_model"]):
            raise DataError(f"judgements, field 'judge_model': no {judge!r}, expected one of "
                            f"{', '.join(sorted(set(sample['judge_model'])))}")
    results, checks, sizes, parsed = [], [], [], []
    axes = [("stance", "severity", SEVERITIES), *([("move", "move_type", MOVES)] if moves else [])]
    if "option" in sample:
        axes.append(("option", "option", sorted(sample["option"].dropna().unique())))
    mine = sample[sample["judge_model"].isin(judges)]
    for axis, field, labels in axes:
        wide = mine.pivot(index="turn_id", columns="judge_model", values=field)
        parsed += [wide[judge].notna().mean() for judge in judges]
        both = wide.dropna(subset=list(judges))
        question = sample.drop_duplicates("turn_id").set_index("turn_id")["question_id"].reindex(both.index)
        found = _axis(axis, both, judges, question, labels, draws, seed)
        results += found
        sizes.append(len(both))
        held = [gates.check(gates.JUDGE_AC1, found[0].estimate),
                gates.check(gates.JUDGE_AC1_LOW, found[0].low)]
        held += [gates.check(gates.TOP_LABEL_SHARE, agreement.top_share(both[judge])[1]) for judge in judges]
        checks += [replace(gate, name=f"{gate.name}[{axis}]") for gate in held]
    checks = [gates.check(gates.JUDGE_SAMPLE, min(sizes)), *checks,
              gates.check(gates.PARSE_RATE, min(parsed)), *_battery(battery, judges, moves)]
    return Reliability(results, tuple(checks))


def _axis(axis, both, judges, question, labels, draws, seed):
    """AC1 over used and over legal labels, for stance the quadratic kappa as well, each with its interval."""
    out = []
    kinds = [("ac1", "observed", f"{axis}_ac1")]
    if axis != "option":
        kinds.append(("ac1", "legal", f"{axis}_ac1_legal"))
    if axis == "stance":
        kinds.append(("quadratic_kappa", "observed", "stance_quadratic_kappa"))
    common = {"n_units": question.nunique(), "unit_name": "question", "n_rows": len(both), "seed": seed,
              "role": "descriptive"}
    if not len(both):
        return [Result(name, nan, "coefficient", status="undefined", **common) for *_, name in kinds]
    first, second = (both[judge].to_numpy() for judge in judges)
    table = agreement.count_table(first, second, labels)
    tables = agreement.cluster_tables(first, second, question.to_numpy(), labels)
    for name, categories, title in kinds:
        point = (agreement.ac1(table, categories=categories) if name == "ac1"
                 else agreement.kappa(table, weights="quadratic"))
        around = agreement.cluster_interval(tables, name, categories=categories, draws=draws, seed=seed)
        out.append(Result(title, point.value, "coefficient", low=around.low, high=around.high,
                          interval=around.method, n_boot=around.n_boot, n_undefined=around.n_undefined,
                          status="undefined" if np.isnan(point.value) else "ok",
                          **common).with_flags(*point.flags, *around.flags))
    return out


def _battery(battery, judges, moves):
    """Worst share of items read as they were written."""
    if battery is None or not len(battery):
        return [gates.check(gates.JUDGE_BATTERY, nan)]
    fields = [("severity", "known_severity"), *([("move_type", "known_move_type")] if moves else [])]
    frames.need(battery, "battery", ("item_id", "judge_model", *(known for _, known in fields)),
                nullable=[said for said, _ in fields])
    mine = [battery[battery["judge_model"] == judge] for judge in judges]
    right = [(part[said] == part[known]).mean() for part in mine for said, known in fields]
    return [gates.check(gates.JUDGE_BATTERY, nan if any(np.isnan(right)) else min(right))]


# --- gate B: against people -------------------------------------------------------------------------------


def benchmark(items, axis="severity", *, draws=10_000, seed=0):
    """Does a judge agree with two people as well as they agree with each other?

    Parameters
    ----------
    items : DataFrame
        ``cluster`` (question), ``human_1, human_2, judge``: severities 0..3 of the same items.
    axis : {"severity", "direction"}
        Quadratic kappa of the severities, or kappa of dissent (severity 2 or more).
    draws, seed : int
        Of the bootstrap over clusters of all three readings together.

    Returns
    -------
    dict
        `human_human`, `judge_human` (mean over the two people), `delta` (Result, judge minus people) and
        `verdict`: "compatible" where the interval of delta holds 0, "below" where it lies under 0, "above",
        or "undefined". Never "equal": a small sample cannot show that.

    Raises
    ------
    DataError
        On missing fields or severities outside 0..3.

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", Layer B; Cohen (1968).

    Examples
    --------
    >>> items = pd.DataFrame({"cluster": list("abcd"), "human_1": [0, 1, 2, 3], "human_2": [0, 1, 2, 2],
    ...                       "judge": [0, 1, 3, 3]})
    >>> benchmark(items)["verdict"]
    'compatible'
    """
    raters = ("human_1", "human_2", "judge")
    frames.need(items, "items", ("cluster", *raters), allowed=dict.fromkeys(raters, SEVERITIES))
    if axis not in ("severity", "direction"):
        raise ValueError(f"axis={axis!r}: expected one of severity, direction")
    levels, name = (SEVERITIES, "quadratic_kappa") if axis == "severity" else ((0, 1), "kappa")
    told = items if axis == "severity" else items.assign(
        **{rater: (items[rater] >= selfreport.DISSENT).astype(int) for rater in raters})
    pairs = [("human_1", "human_2"), ("judge", "human_1"), ("judge", "human_2")]
    cluster, said = told["cluster"].to_numpy(), {rater: told[rater].to_numpy() for rater in raters}
    tables = np.stack([agreement.cluster_tables(said[a], said[b], cluster, levels) for a, b in pairs],
                      axis=1)  # (clusters, pairs, labels, labels)

    def delta(drawn):
        people, first, second = np.moveaxis(agreement.coefficients(drawn.sum(axis=1), name), -1, 0)
        return (first + second) / 2 - people

    point = agreement.coefficients(tables.sum(axis=0), name)
    around = inference.unit_bootstrap(tables, delta, draws=draws, seed=seed)
    estimate = float((point[1] + point[2]) / 2 - point[0])
    verdict = ("undefined" if np.isnan([estimate, around.low]).any() else
               "below" if around.high < 0 else "above" if around.low > 0 else "compatible")
    result = Result(f"{axis}_judge_minus_human", estimate, "coefficient", n_units=len(tables),
                    unit_name="question", n_rows=len(items), low=around.low, high=around.high,
                    interval=around.method, n_boot=around.n_boot, n_undefined=around.n_undefined, seed=seed,
                    status="undefined" if np.isnan(estimate) else "ok").with_flags(*around.flags)
    return {"human_human": float(point[0]), "judge_human": float((point[1] + point[2]) / 2), "delta": result,
            "verdict": verdict}


def _claimed(judge_gates, axis=""):
    """Gates of the judge; one that fails where nobody checked the judge, or not on this axis."""
    if judge_gates and (not axis or any(gate.name.endswith(f"[{axis}]") for gate in judge_gates)):
        return tuple(judge_gates)
    missing = gates.check(gates.JUDGE_AC1, nan)
    return (*judge_gates, replace(missing, name=f"{missing.name}[{axis}]") if axis else missing)


# --- blind against self -----------------------------------------------------------------------------------


class Ratio(NamedTuple):
    """Result of `ratio`: the two falls, their ratio (of means) and gap (self minus blind); `level` 0..2."""

    self_drop: Result
    blind_drop: Result
    ratio: Result
    gap: Result
    mean_of_ratios: float
    level: int


def ratio(own, blind, *, judge_gates=(), draws=10_000, seed=0):
    """Fall of full agreement as the judge reads it over the fall as members report it.

    Parameters
    ----------
    own, blind : Series of float, index question
        Friendly minus hostile full agreement by question, from self-reports and from blind readings of the
        same turns (differences of `analysis.layers.selfreport.by_question`). Questions in both are used.
    judge_gates : sequence of Gate
        From `reliability`; a failed one gates all but the self-report, and so does having none.
    draws, seed : int
        Of the bootstrap over questions, taken together for all three.

    Returns
    -------
    Ratio
        Level 2: the self-reported fall is above 0 and the interval of the ratio lies within 0.80 and 1.25;
        level 1: it only holds 1; level 0 otherwise. The ratio is undefined where the interval of the
        self-reported fall holds 0.

    References ---------- "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate",
    Layer B; Schuirmann (1987) for the range.

    Examples
    --------
    >>> own, blind = pd.Series([0.6, 0.4, 0.6, 0.3]), pd.Series([0.6, 0.45, 0.7, 0.2])
    >>> found = ratio(own, blind)
    >>> round(found.ratio.estimate, 6), found.level
    (1.026316, 2)
    """
    both, judge_gates = pd.concat({"own": own, "blind": blind}, axis=1).dropna(), _claimed(judge_gates)
    common = {"unit_name": "question", "seed": seed, "draws": draws}
    first = inference.test_units("self_drop", both["own"], "share", **common)
    second = inference.test_units("blind_drop", both["blind"], "share", gates=judge_gates, **common)
    gap = inference.test_units("self_minus_blind", both["own"] - both["blind"], "share", gates=judge_gates,
                               **common)
    told = {"n_units": len(both), "unit_name": "question", "n_rows": len(both), "seed": seed}
    if not len(both) or not (first.low > 0 or first.high < 0):
        why = "self_drop_without_interval" if np.isnan(first.low) else "self_drop_holds_0"
        undefined = Result("blind_over_self", nan, "ratio", status="undefined", **told).with_flags(why)
        return Ratio(first, second, undefined, gap, nan, 0)
    around = inference.unit_bootstrap(
        both.to_numpy(), lambda drawn: drawn[..., 1].mean(1) / drawn[..., 0].mean(1), draws=draws, seed=seed)
    estimate = float(both["blind"].mean() / both["own"].mean())
    wording = gates.check(gates.RATIO_RANGE, around.low, around.high)
    level = 2 if first.low > 0 and wording.passed else int(first.low > 0 and around.low <= 1 <= around.high)
    result = Result("blind_over_self", estimate, "ratio", low=around.low, high=around.high,
                    interval=around.method, n_boot=around.n_boot, n_undefined=around.n_undefined, **told)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = float((both["blind"] / both["own"]).mean())
    return Ratio(first, second, result.with_flags(*around.flags).with_gates(*judge_gates), gap, each, level)


class Companion(NamedTuple):
    """Shares of all turns that sum to 1 (`exact, harder, softer`), and what ties make of a correlation."""

    n: int
    exact: float
    harder: float
    softer: float
    unbacked_pushback: float
    both_zero: float
    rho: float
    n_signal: int
    rho_signal: float
    rho_interval: tuple
    rho_signal_interval: tuple
    flags: tuple


def companion(own, blind, *, levels=4, questions=None, draws=10_000, seed=0):
    """Compare the label of each turn with the judge's reading of it; descriptive.

    Parameters
    ----------
    own, blind : array_like of int, shape (turns,)
        Severities 0..3 of the same turns.
    levels : {4, 3}
        3 takes severities 2 and 3 as one.
    questions : array_like, shape (turns,), optional
        Question of each turn, for bootstrap intervals of both correlations; without it they are NaN.
    draws, seed : int

    Returns
    -------
    Companion
        `harder`: the judge is more severe. `unbacked_pushback`: dissent that the judge reads as full
        agreement. `rho` over all turns, of which a share `both_zero` is tied at full agreement, and over the
        turns where at least one of the two is above 0. The cut-points of the two scales are not calibrated to
        each other, so harder against softer says nothing about under-reporting.

    Raises
    ------
    ValueError
        On unequal vectors, missing severities or others than 0..3, or other levels.

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", Layer B.

    Examples
    --------
    >>> found = companion([0, 0, 0, 0, 1, 1, 2, 2, 3, 1], [0, 0, 0, 1, 1, 2, 2, 1, 2, 2])
    >>> found.exact, found.harder, found.softer, found.n_signal
    (0.5, 0.3, 0.2, 7)
    """
    if levels not in (3, 4):
        raise ValueError(f"levels={levels!r}: expected 4 or 3")
    own, blind = np.asarray(own, dtype=float), np.asarray(blind, dtype=float)
    if own.shape != blind.shape or own.ndim != 1 or not np.isin([own, blind], SEVERITIES).all():
        raise ValueError("own, blind: expected severities 0..3 of the same turns, without missing ones")
    if levels == 3:
        own, blind = np.minimum(own, selfreport.DISSENT), np.minimum(blind, selfreport.DISSENT)
    n, signal = len(own), (own > 0) | (blind > 0)
    whole, part = _rho(own, blind), _rho(own[signal], blind[signal])
    around = [(nan, nan)] * 2
    if questions is not None and n:
        tables = agreement.cluster_tables(own, blind, questions, range(levels))
        told = tables.copy()
        told[:, 0, 0] = 0
        around = [agreement.cluster_interval(each, "spearman", draws=draws, seed=seed)[:2]
                  for each in (tables, told)]
    share = (lambda wanted: float(wanted.mean()) if n else nan)
    flags = tuple(name for name, value in (("constant", whole), ("constant_signal", part)) if np.isnan(value))
    unbacked = (own >= selfreport.DISSENT) & (blind == 0)
    return Companion(n, share(own == blind), share(blind > own), share(blind < own), share(unbacked),
                     share(~signal), whole, int(signal.sum()), part, *around, flags)


def _rho(x, y):
    """Spearman's rho, NaN where there are fewer than two turns or one of the two does not vary."""
    return agreement.spearman_with_ties(x, y).rho if len(x) > 1 else nan


def move_shift(turns, *, judge_gates=(), stances=("friendly", "hostile"), draws=10_000, seed=0):
    """Share of each move under the hostile instruction minus its share under the friendly one, by question.

    Parameters
    ----------
    turns : DataFrame
        From `read`, of one composition and timing.
    judge_gates : sequence of Gate
        From `reliability` with the move axis; without gates of that axis the results are gated.
    stances : tuple of str
        Second minus first.
    draws, seed : int

    Returns
    -------
    list of Result
        One a move, with exact sign-flip p and Holm's correction over the five.

    Examples
    --------
    >>> turns = pd.DataFrame({"question_id": ["q1", "q1"], "stance": ["friendly", "hostile"],
    ...                       "composition": "c", "timing": "after",
    ...                       "move_type": ["concession", "challenge"]})
    >>> [(one.name, one.estimate) for one in move_shift(turns)][:2]
    [('hostile_minus_friendly_challenge', 1.0), ('hostile_minus_friendly_new_argument', 0.0)]
    """
    for column in ("composition", "timing"):
        frames.single(turns, "turns", column, "moves are compared within one composition and timing")
    named, judge_gates = turns.dropna(subset=["move_type"]), _claimed(judge_gates, "move")
    lost = {"no_move": len(turns) - len(named)} if len(turns) > len(named) else {}
    found = []
    for move in MOVES:
        is_move = named.assign(share=(named["move_type"] == move).astype(float))
        wide = selfreport.by_question(is_move, "share", stances)
        found.append(inference.test_units(
            f"{stances[1]}_minus_{stances[0]}_{move}", wide[stances[1]] - wide[stances[0]], "share",
            n_rows=len(named), gates=judge_gates, exclusions=lost, draws=draws, seed=seed))
    if not any(result.p == result.p for result in found):
        return found
    return inference.holm_results(found, "five moves of one judge")
