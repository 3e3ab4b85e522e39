"""What members report: agreement level and opinion shift, turn by turn.

The stance instruction moves these labels by itself, so they describe a debate and are never evidence that
anybody reasoned differently. The same functions read a judge's severities (`analysis.layers.judge`).
"""

from dataclasses import replace
from math import nan

import pandas as pd

from analysis.errors import DataError, choice
from analysis.layers import frames, gates, inference
from analysis.layers.results import Result

LEVELS = ("fully_agreed", "partially_agreed", "partially_disagreed", "fully_disagreed")
STANCES = ("friendly", "neutral", "hostile")
TIMINGS = ("none", "after", "per_turn")
STATUSES = ("completed", "api_error")
DISSENT = 2  # lowest severity that is dissent
LARGE = 3  # lowest opinion shift that is large
SHIFTS = (0, 1, 2, 3, 4)
MEASURES = {"full": "full agreement", "dissent": "dissent", "opinion_shift": "opinion shift"}


def severity(labels):
    """Labels as places on the scale of disagreement.

    Parameters
    ----------
    labels : Series of str
        Of `LEVELS`; missing stays missing.

    Returns
    -------
    Series of float
        0 (fully agreed) to 3 (fully disagreed).

    Raises
    ------
    DataError
        On an unknown label.

    Examples
    --------
    >>> severity(pd.Series(["fully_agreed", None, "fully_disagreed"])).tolist()
    [0.0, nan, 3.0]
    """
    frames.need(labels.to_frame("agreed_level"), "labels", (), nullable=("agreed_level",),
                allowed={"agreed_level": LEVELS})
    return labels.map({level: float(place) for place, level in enumerate(LEVELS)}).astype(float)


def debate_turns(debates, turns):
    """Join turns to their debates and read their labels.

    Parameters
    ----------
    debates : DataFrame
        ``debate_id, question_id, composition, stance, timing, status``.
    turns : DataFrame
        ``turn_id, debate_id, member_id, parent_id, iteration, agreed_level, agreed_level_explicit,
        opinion_shift``. Roots (no parent, iteration 0) carry no label.

    Returns
    -------
    DataFrame
        One line a debate turn (iteration 1 and later): the fields of both, `chain_id` (one member answering
        one other member in one debate), `excluded` (``api_error``, ``not_explicit`` or empty), and `severity`
        0..3, `full`, `dissent` (0 or 1), `opinion_shift`, all missing where the turn is excluded.

    Raises
    ------
    DataError
        On missing fields, unknown values, a turn of an unknown debate, a labelled root, a turn without a
        parent after iteration 0 or with one before iteration 1, or debate turns where the timing is "none".

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", Layer A.

    Examples
    --------
    >>> debates = pd.DataFrame([{"debate_id": "d", "question_id": "q", "composition": "c",
    ...                          "stance": "hostile", "timing": "after", "status": "completed"}])
    >>> turns = pd.DataFrame({
    ...     "turn_id": ["r", "t"], "debate_id": "d", "member_id": ["a", "b"], "parent_id": [None, "r"],
    ...     "iteration": [0, 1], "agreed_level": [None, "partially_disagreed"],
    ...     "agreed_level_explicit": [False, True], "opinion_shift": [None, 1]})
    >>> debate_turns(debates, turns)[["stance", "severity", "full", "dissent", "excluded"]].values.tolist()
    [['hostile', 2.0, 0.0, 1.0, '']]
    """
    frames.need(debates, "debates", ("debate_id", "question_id", "composition", "stance", "timing", "status"),
                allowed={"stance": STANCES, "timing": TIMINGS, "status": STATUSES})
    frames.once(debates, "debates", ["debate_id"])
    frames.need(turns, "turns", ("turn_id", "debate_id", "member_id", "iteration", "agreed_level_explicit"),
                nullable=("parent_id", "agreed_level", "opinion_shift"),
                allowed={"agreed_level": LEVELS, "agreed_level_explicit": (True, False),
                         "opinion_shift": SHIFTS})
    frames.once(turns, "turns", ["turn_id"])
    told = debates[["debate_id", "question_id", "composition", "stance", "timing", "status"]]
    joined = turns.drop(columns=[name for name in told if name != "debate_id" and name in turns]).merge(
        told, on="debate_id", how="left")
    _refuse(joined, joined["question_id"].isna(), "debate_id", "expected a debate of the debates' file")
    root = joined["parent_id"].isna()
    _refuse(joined, root & (joined["iteration"] != 0), "parent_id", "expected a parent after iteration 0")
    _refuse(joined, ~root & (joined["iteration"] < 1), "iteration", "expected 1 or more with a parent")
    _refuse(joined, root & joined["agreed_level"].notna(), "agreed_level",
            "expected no label on a first opinion")
    _refuse(joined, ~root & (joined["timing"] == "none"), "timing",
            "expected no debate turns at timing 'none'")
    kept = joined[~root].copy()
    chains = inference.chain_ids(joined) if len(kept) else pd.Series(dtype="str")
    kept["chain_id"] = chains.reindex(kept.index)
    silent = ~kept["agreed_level_explicit"].astype(bool) | kept["agreed_level"].isna()
    kept["excluded"] = silent.map({True: "not_explicit", False: ""}).mask(
        kept["status"] != "completed", "api_error")
    counts = kept["excluded"] == ""
    kept["severity"] = severity(kept["agreed_level"]).where(counts)
    kept["opinion_shift"] = kept["opinion_shift"].astype(float).where(counts)
    return with_shares(kept)


def _refuse(turns, wrong, field, expected):
    """Raise about the first turn that is wrong."""
    if wrong.any():
        name, value = (turns.loc[wrong, column].tolist()[0] for column in ("turn_id", field))
        raise DataError(f"turns, turn_id {name!r}, field {field!r}: {value!r}, {expected}")


def with_shares(turns):
    """Add `full` and `dissent`, 0 or 1, from `severity`; missing where that is.

    Examples
    --------
    >>> with_shares(pd.DataFrame({"severity": [0, 2, None]})).values.tolist()
    [[0.0, 1.0, 0.0], [2.0, 0.0, 1.0], [nan, nan, nan]]
    """
    there, level = turns["severity"].notna(), turns["severity"]
    return turns.assign(full=(level == 0).astype(float).where(there),
                        dissent=(level >= DISSENT).astype(float).where(there))


def explicit_share(turns, by=("stance",)):
    """Share of the turns of completed debates that carry a label of their own.

    Parameters
    ----------
    turns : DataFrame
        From `debate_turns`.
    by : sequence of str
        Such as ``stance, member_id, iteration``.

    Returns
    -------
    DataFrame
        The fields of `by`, `k` explicit of `n` turns, `rate`.

    Examples
    --------
    >>> explicit_share(pd.DataFrame({"stance": "hostile", "excluded": ["", "not_explicit"]})).values.tolist()
    [['hostile', 1, 2, 0.5]]
    """
    kept = turns[turns["excluded"] != "api_error"]
    found = kept.assign(k=kept["excluded"] == "").groupby(list(by), sort=True)["k"].agg(k="sum", n="size")
    return found.assign(rate=found["k"] / found["n"]).reset_index()


def exclusions(turns, by=("stance",)):
    """Count the turns left out, by group and reason.

    Parameters
    ----------
    turns : DataFrame
        From `debate_turns` or `analysis.layers.judge.read`.
    by : sequence of str

    Returns
    -------
    DataFrame
        The fields of `by`, `n` turns, and a count for each reason that occurs.

    Examples
    --------
    >>> exclusions(pd.DataFrame({"stance": "hostile", "excluded": ["", "not_explicit"]})).to_dict("records")
    [{'stance': 'hostile', 'n': 2, 'not_explicit': 1}]
    """
    found = turns.groupby([*by, "excluded"]).size().unstack(fill_value=0)
    return found.assign(n=found.sum(axis=1))[["n", *(one for one in found if one)]].rename_axis(
        columns=None).reset_index()


def _gate(turns):
    """Gate on the arm with the smallest share of explicit labels."""
    shares = explicit_share(turns)["rate"]
    return gates.check(gates.EXPLICIT_SHARE, shares.min() if len(shares) else nan)


def _one_design(turns):
    for column, why in (("composition", "compositions are never mixed in a contrast"),
                        ("timing", "timings are never pooled")):
        frames.single(turns, "turns", column, why)


def rates(turns, measure="full", by=("stance",), *, draws=10_000, seed=0):
    """A measure of each group: mean over questions of the mean over a question's turns.

    Parameters
    ----------
    turns : DataFrame
        From `debate_turns`, of one composition.
    measure : {"full", "dissent", "opinion_shift"}
    by : sequence of str
        Fields that make the groups: ``stance, iteration, timing, member_id``.
    draws, seed : int
        Of the bootstrap over questions.

    Returns
    -------
    list of Result
        One a group, named ``measure[group]``; descriptive, `n_rows` turns, `n_units` questions. Shares also
        have `k` of `n` turns.

    Examples
    --------
    >>> turns = pd.DataFrame({"question_id": ["q1", "q1", "q2"], "stance": "hostile", "composition": "c",
    ...                       "timing": "after", "excluded": "", "full": [1.0, 0.0, 1.0]})
    >>> [(one.name, one.estimate, one.k, one.n) for one in rates(turns)]
    [('full[hostile]', 0.75, 2, 3)]
    """
    choice("measure", measure, tuple(MEASURES))
    frames.single(turns, "turns", "composition", "compositions are never mixed")
    if "timing" not in by:
        frames.single(turns, "turns", "timing", "timings are never pooled; add it to the groups")
    share, found = measure != "opinion_shift", []
    for group, part in turns.groupby(list(by), sort=True):
        values = part.dropna(subset=[measure])
        result = inference.test_units(
            f"{measure}[{', '.join(map(str, group))}]", values.groupby("question_id")[measure].mean(),
            "share" if share else "scale points", n_rows=len(values), test=False, share=share, draws=draws,
            seed=seed, role="descriptive", exclusions=frames.tally(part["excluded"]))
        if share:
            result = replace(result, k=int(values[measure].sum()), n=len(values))
        found.append(result)
    return found


def by_question(turns, measure="full", stances=("friendly", "hostile")):
    """Mean of a measure by question (rows) and stance (columns), questions with both stances only.

    Examples
    --------
    >>> turns = pd.DataFrame({"question_id": ["q1", "q1", "q2"], "stance": ["friendly", "hostile", "hostile"],
    ...                       "full": [1.0, 0.0, 1.0]})
    >>> by_question(turns).reset_index().values.tolist()
    [['q1', 1.0, 0.0]]
    """
    wide = turns.groupby(["question_id", "stance"])[measure].mean().unstack()
    return wide.reindex(columns=list(stances)).dropna()


def collapse(turns, measure="full", *, average="question", stances=("friendly", "hostile"), draws=10_000,
             seed=0):
    """How much lower is full agreement under the hostile instruction than under the friendly one?

    Parameters
    ----------
    turns : DataFrame
        From `debate_turns`, of one composition and one timing. Turns of one member or one iteration alone
        give the member's or the round's view.
    measure : {"full", "dissent", "opinion_shift"}
        For "full" the contrast is friendly minus hostile; for the others as well, so that it is negative
        where hostile members dissent more.
    average : {"question", "pooled"}
        Mean of the differences by question, or difference of the shares of all turns (robustness only: the
        number of turns depends on the stance itself).
    stances : tuple of str
        First minus second.
    draws, seed : int

    Returns
    -------
    Result
        With the exact sign-flip p over questions ("question") and the bootstrap interval over questions.
        Gated where less than nine in ten turns of an arm are explicit. Undefined without debate turns (timing
        "none") or without a question in both stances.

    Raises
    ------
    DataError
        On several compositions or timings.

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", Layer A.

    Examples
    --------
    >>> turns = pd.DataFrame({"question_id": ["q1", "q1", "q2", "q2"], "stance": ["friendly", "hostile"] * 2,
    ...                       "composition": "c", "timing": "after", "excluded": "",
    ...                       "full": [1.0, 0.0, 1.0, 1.0]})
    >>> result = collapse(turns)
    >>> result.name, result.estimate, result.p, result.n_units
    ('friendly_minus_hostile_full', 0.5, 1.0, 2)
    """
    choice("measure", measure, tuple(MEASURES))
    choice("average", average, ("question", "pooled"))
    _one_design(turns)
    first, second = stances
    name = f"{first}_minus_{second}_{measure}"
    unit = "scale points" if measure == "opinion_shift" else "share"
    mine = turns[turns["stance"].isin(stances)]
    by_stance = (mine["excluded"] != "").groupby(mine["stance"])
    flags = inference.differential_exclusion(by_stance.sum().to_dict(), by_stance.size().to_dict())
    wide = by_question(mine, measure, stances)
    stated = (_gate(mine),) if len(mine) else ()
    values = mine[mine["question_id"].isin(wide.index)].dropna(subset=[measure])
    common = {"n_rows": len(values), "draws": draws, "seed": seed, "gates": stated, "flags": flags,
              "exclusions": frames.tally(mine["excluded"])}
    if average == "question" or not len(wide):
        return inference.test_units(name, wide[first] - wide[second], unit, **common)
    sums = values.groupby(["question_id", "stance"])[measure].agg(["sum", "size"]).unstack().to_numpy()
    # Columns: sums of the two stances in alphabetical order, then counts.
    order = sorted(stances)
    at = {stance: place for place, stance in enumerate(order)}

    def gap(resampled):
        total = resampled.sum(axis=1)
        share = total[:, :2] / total[:, 2:]
        return share[:, at[first]] - share[:, at[second]]

    around = inference.unit_bootstrap(sums, gap, draws=draws, seed=seed)
    estimate = float(gap(sums[None])[0])
    result = Result(f"{name}_pooled", estimate, unit, n_units=len(wide), unit_name="question",
                    n_rows=len(values), low=around.low, high=around.high, interval=around.method,
                    n_boot=around.n_boot, n_undefined=around.n_undefined, exclusions=common["exclusions"],
                    role="robustness", seed=seed)
    return result.with_flags(*around.flags, *flags).with_gates(*stated)


def nulls(turns, measure="full", *, average="question", stances=("friendly", "hostile"), draws=9_999, seed=0):
    """Permutation p of the gap between two stances, debates relabelled and chains relabelled.

    Parameters
    ----------
    turns : DataFrame
        From `debate_turns`, of one composition and one timing.
    measure, average, stances, draws, seed
        As in `analysis.layers.inference.stance_null`.

    Returns
    -------
    dict of str to StanceNull
        "record" and "chain", and "decides": the level with the larger p, as chains of one debate share
        context.

    Examples
    --------
    >>> turns = pd.DataFrame({"question_id": ["q1", "q1"], "debate_id": ["a", "b"], "chain_id": ["a1", "b1"],
    ...                       "stance": ["friendly", "hostile"], "full": [1.0, 0.0], "iteration": 1,
    ...                       "parent_id": "r"})
    >>> nulls(turns)["record"].p
    1.0
    """
    _one_design(turns)
    return _both_nulls(turns, measure, average=average, stances=stances, draws=draws, seed=seed)


def _both_nulls(rows, value, **options):
    found = {level: inference.stance_null(rows, value, level=level, **options)
             for level in ("record", "chain")}
    return found | {"decides": max(found.values(), key=lambda null: (null.p == null.p, null.p))}


def bounds(turns):
    """Smallest and largest pooled full agreement that dropped labels leave possible.

    Parameters
    ----------
    turns : DataFrame
        From `debate_turns`.

    Returns
    -------
    DataFrame
        By stance: `k` explicit full agreements, `explicit`, `dropped` turns, `low` (every dropped turn
        dissents) and `high` (every dropped turn agrees).

    References
    ----------
    Manski (1990), Nonparametric Bounds on Treatment Effects.

    Examples
    --------
    >>> turns = pd.DataFrame({"stance": "hostile", "excluded": ["", "", "not_explicit"],
    ...                       "full": [1.0, 0.0, None]})
    >>> bounds(turns).round(3).values.tolist()
    [['hostile', 1, 2, 1, 0.333, 0.667]]
    """
    kept = turns[turns["excluded"] != "api_error"]
    found = kept.groupby("stance").agg(k=("full", "sum"), explicit=("full", "count"), n=("excluded", "size"))
    found["dropped"] = found["n"] - found["explicit"]
    found = found.assign(k=found["k"].astype(int), low=found["k"] / found["n"],
                         high=(found["k"] + found["dropped"]) / found["n"])
    return found[["k", "explicit", "dropped", "low", "high"]].reset_index()


def diagonal(turns, measure="full", stances=("friendly", "hostile")):
    """Count the questions where the second stance lies below the first, of those that have both.

    Returns
    -------
    dict
        `below`, `equal`, `above`, `n`.

    Examples
    --------
    >>> turns = pd.DataFrame({"question_id": "q1", "stance": ["friendly", "hostile"], "full": [1.0, 0.0]})
    >>> diagonal(turns)
    {'below': 1, 'equal': 0, 'above': 0, 'n': 1}
    """
    wide = by_question(turns, measure, stances)
    gap = wide[stances[1]] - wide[stances[0]]
    return {"below": int((gap < 0).sum()), "equal": int((gap == 0).sum()), "above": int((gap > 0).sum()),
            "n": len(gap)}


def large_shifts(turns):
    """Count the large shifts that members report in each debate.

    Parameters
    ----------
    turns : DataFrame
        From `debate_turns`.

    Returns
    -------
    DataFrame
        ``question_id, stance, debate_id``, `large` shifts of 3 or 4 among `n` turns with a shift. Debates in
        which no shift counts are left out.

    Examples
    --------
    >>> large_shifts(pd.DataFrame({"question_id": "q", "stance": "hostile", "debate_id": "d",
    ...                            "opinion_shift": [3, 1, None]})).values.tolist()
    [['q', 'hostile', 'd', 1, 2]]
    """
    told = turns.dropna(subset=["opinion_shift"])
    return told.assign(large=told["opinion_shift"] >= LARGE).groupby(["question_id", "stance", "debate_id"])[
        "large"].agg(large="sum", n="size").reset_index()


def durability(turns):
    """Chains that dissented before their last turn, and whether their last turn still does.

    Parameters
    ----------
    turns : DataFrame
        From `debate_turns`.

    Returns
    -------
    DataFrame
        One line a chain: ``question_id, debate_id, chain_id, stance`` (and composition, timing), and
        `durable`: 1 or 0, missing for a chain that never dissented before its last explicit turn.

    Examples
    --------
    >>> turns = pd.DataFrame({"question_id": "q", "debate_id": "d", "composition": "c", "timing": "after",
    ...                       "chain_id": ["1", "1", "2"], "stance": "hostile", "iteration": [1, 2, 1],
    ...                       "dissent": [1.0, 0.0, 1.0]})
    >>> durability(turns)[["chain_id", "durable"]].values.tolist()
    [['1', 0.0], ['2', nan]]
    """
    keys = ("question_id", "debate_id", "composition", "timing", "chain_id", "stance")
    keys = [name for name in keys if name in turns]
    said = turns.dropna(subset=["dissent"]).sort_values("iteration", kind="stable")
    last = said.groupby(keys)["dissent"].last()
    before = said.groupby(keys)["dissent"].agg(lambda part: part.iloc[:-1].max() if len(part) > 1 else nan)
    return last.where(before == 1).rename("durable").reset_index()


def durability_gap(turns, *, stances=("hostile", "friendly"), draws=9_999, seed=0):
    """Does dissent last longer under one stance than under the other? Shares of chains, pooled.

    Parameters
    ----------
    turns : DataFrame
        From `debate_turns`, of one composition and one timing.
    stances : tuple of str
        First minus second.
    draws, seed : int
        Of the permutation nulls.

    Returns
    -------
    dict
        `rates`: DataFrame by stance with `k` durable of `n` eligible chains and `rate` (missing without one);
        `record` and `chain`: the nulls, `estimate` the gap; `decides`, the one with the larger p.

    References
    ----------
    The paper names a durability gap without defining it; this is our definition.

    Examples
    --------
    >>> turns = pd.DataFrame({"question_id": "q", "debate_id": ["d", "d", "e", "e"], "composition": "c",
    ...                       "timing": "after", "chain_id": ["1", "1", "2", "2"], "iteration": [1, 2, 1, 2],
    ...                       "stance": ["hostile"] * 2 + ["friendly"] * 2, "dissent": [1.0, 1, 1, 0]})
    >>> found = durability_gap(turns)
    >>> found["record"].estimate, found["rates"]["k"].to_dict()
    (1.0, {'hostile': 1, 'friendly': 0})
    """
    _one_design(turns)
    chains = durability(turns)
    found = chains.groupby("stance")["durable"].agg(k="sum", n="count")
    found = found.reindex(list(stances), fill_value=0).astype(int)
    options = {"average": "pooled", "stances": stances, "draws": draws, "seed": seed}
    return {"rates": found.assign(rate=found["k"] / found["n"])} | _both_nulls(chains, "durable", **options)
