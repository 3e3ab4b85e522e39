"""Could a gap between two stances come from relabelling debates or chains of turns? Permutation tests."""

from itertools import combinations
from math import comb, nan, prod
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.errors import DataError, choice
from analysis.ranktests import floats

ENUMERATED_RELABELLINGS = 1_000_000
NOISE = 1e-12  # rounding noise, as a share of the numbers it is held against
_BLOCK = 4_000_000  # numbers held at once while relabelling


class StanceNull(NamedTuple):
    """Result of `stance_null`; `k` of `n_relabelled` relabellings reach the observed gap."""

    estimate: float
    p: float
    k: int
    n_relabelled: int
    exact: bool
    min_attainable: float
    n_objects: int
    n_blocks: int
    level: str
    n_undefined: int
    flags: tuple[str, ...]


def chain_ids(turns):
    """Name the chain of every turn: the turns by one member that answer one other member, in one debate.

    Parameters
    ----------
    turns : DataFrame
        ``turn_id, debate_id, member_id, parent_id``, roots included.

    Returns
    -------
    Series of str
        On the index of `turns`: ``debate|member|answered member``; missing for roots.

    Raises
    ------
    DataError
        On a missing column, a turn id used twice, or a parent that is not among the turns of its debate.

    References
    ----------
    The paper names a chain-level null without defining a chain; this is our definition.

    Examples
    --------
    >>> turns = pd.DataFrame({"turn_id": ["r", "t"], "debate_id": "d", "member_id": ["a", "b"],
    ...                       "parent_id": [None, "r"]})
    >>> chain_ids(turns).tolist()
    [nan, 'd|b|a']
    """
    _need(turns, ("turn_id", "debate_id", "member_id", "parent_id"))
    twice = turns.turn_id[turns.turn_id.duplicated()]
    if len(twice):
        raise DataError(f"turns, field 'turn_id': {twice.iloc[0]!r} occurs twice, expected unique ids")
    answered = turns.parent_id.map(turns.set_index("turn_id").member_id)
    home = turns.parent_id.map(turns.set_index("turn_id").debate_id)
    stray = turns.parent_id.notna() & (answered.isna() | (home != turns.debate_id))
    if stray.any():
        row = turns[stray].iloc[0]
        raise DataError(f"turns, turn {row.turn_id!r}, field 'parent_id': {row.parent_id!r} is not a turn of "
                        f"debate {row.debate_id!r}, expected the id of the turn it answers (keep the roots)")
    names = turns.debate_id.astype(str) + "|" + turns.member_id.astype(str) + "|" + answered.astype(str)
    return names.where(turns.parent_id.notna()).rename("chain_id")


def _need(frame, columns):
    """Raise unless all columns are there and, `parent_id` aside, filled."""
    for column in columns:
        if column not in frame:
            raise DataError(f"turns: no field {column!r}, expected {', '.join(columns)}")
        gap = frame.index[frame[column].isna()]
        if column != "parent_id" and len(gap):
            raise DataError(f"turns, row {gap[0]!r}, field {column!r}: missing, expected a value")


def _gap(first, whole, average):
    """Return the gap between two stances from sums and counts of the first and of both.

    Shapes (..., groups, 2); a mean over groups, or one ratio of the sums over groups.
    """
    if average == "pooled":
        first, whole = first.sum(axis=-2, keepdims=True), whole.sum(axis=-2, keepdims=True)
    second = whole - first
    with np.errstate(invalid="ignore", divide="ignore"):
        return (first[..., 0] / first[..., 1] - second[..., 0] / second[..., 1]).mean(axis=-1)


def _patterns(n, k):
    """Return all ways to mark k of n, shape (ways, n), the first k first."""
    marked = np.zeros((comb(n, k), n))
    for row, places in enumerate(combinations(range(n), k)):
        marked[row, list(places)] = 1
    return marked


def stance_null(turns, value, *, level="record", average="question", stances=("friendly", "hostile"),
                draws=9_999, seed=0):
    """Could the gap between two stances come from relabelling them? Permutation test within blocks.

    A block is one question at one timing. Within it the two stance labels are dealt out again among its
    debates (record level) or among its chains (chain level), as many of each as before.

    Parameters
    ----------
    turns : DataFrame
        One row a turn: ``question_id, debate_id, stance`` and the column `value`; ``timing`` and
        ``composition`` if there are several timings (one composition only); ``chain_id`` for the chain level,
        from `chain_ids`. Rows of other stances, and at the chain level roots, are left aside. For a measure
        of chains pass one row a chain.
    value : str
        Column with the number that is averaged: 0/1 for a share. Missing values (no explicit label, chain not
        eligible) add to no sum, but their debate or chain keeps its place among those that are relabelled.
    level : {"record", "chain"}
        Chains of a debate share their context, so the chain level rejects too easily; report both and decide
        on the larger p.
    average : {"question", "pooled"}
        Gap per question, averaged over the questions that have values in both stances; or one gap between
        pooled means.
    stances : tuple of str
        The gap is the first minus the second.
    draws, seed : int
        Random relabellings. If fewer than a million exist, all are counted instead, the observed included.

    Returns
    -------
    StanceNull
        Two-sided p: k / n_relabelled when exact, else (k + 1) / (n_relabelled + 1). `min_attainable` is the
        resolution of p. Without a gap, estimate and p are NaN and the flag is ``no_shared_question`` or
        ``one_stance``; ``no_information`` (p = 1) when no block holds both stances. Relabellings where a
        pooled mean has no values are left out and counted in `n_undefined`.

    Raises
    ------
    DataError
        On missing columns, keys or stances, several compositions, or a debate with two stances.
    ValueError
        On an unknown level or average.

    References
    ----------
    Good (2005), Permutation, Parametric and Bootstrap Tests of Hypotheses; Phipson and Smyth (2010).

    Examples
    --------
    >>> turns = pd.DataFrame({"question_id": [1, 1, 2, 2, 3, 3], "debate_id": list("abcdef"),
    ...                       "stance": ["friendly", "hostile"] * 3, "full": [0.8, 0.2, 0.7, 0.2, 0.8, 0.0]})
    >>> result = stance_null(turns, "full")
    >>> round(result.estimate, 4), result.p, result.k, result.n_relabelled
    (0.6333, 0.25, 2, 8)
    """
    choice("level", level, ("record", "chain"))
    choice("average", average, ("question", "pooled"))
    if draws < 1:
        raise ValueError(f"draws={draws}: expected at least 1")
    objects = _objects(turns, value, level, stances)
    if average == "question":
        # A question counts only when both stances have values, and things without values cannot move it.
        objects = objects[objects["count"] > 0]
        both = objects.groupby("question_id").stance.transform("nunique") == 2
        objects = objects[both]
    counts = objects[objects["count"] > 0].stance.nunique()
    if counts < 2:
        flag = "no_shared_question" if average == "question" else "one_stance"
        return StanceNull(nan, nan, 0, 0, False, nan, len(objects), 0, level, 0, (flag,))

    group = objects.question_id.factorize()[0] if average == "question" else np.zeros(len(objects), dtype=int)
    block = objects.groupby(["question_id", "timing"], sort=False).ngroup().to_numpy()
    first = (objects.stance == stances[0]).to_numpy()
    sums = objects[["total", "count"]].to_numpy(dtype=float)
    whole = np.zeros((group.max() + 1, 2))
    np.add.at(whole, group, sums)
    seen = np.zeros_like(whole)
    np.add.at(seen, group[first], sums[first])
    observed = float(_gap(seen, whole, average))

    places = [np.flatnonzero(block == b) for b in range(block.max() + 1)]
    ways = [comb(len(at), int(first[at].sum())) for at in places]
    total = prod(ways)
    exact = total < ENUMERATED_RELABELLINGS
    gaps = _relabelled(places, ways, first, sums, group, whole, average, total if exact else draws,
                       None if exact else np.random.default_rng(seed))
    known = gaps[~np.isnan(gaps)]
    k = int((np.abs(known) >= abs(observed) - NOISE * max(1.0, abs(observed))).sum())
    n_relabelled = len(known)
    # The observed labels are one of all relabellings, but not one of the random ones.
    own = 0 if exact else 1
    p, least = (k + own) / (n_relabelled + own), 1 / (n_relabelled + own)
    flags = ("no_information",) if total == 1 else ()
    return StanceNull(observed, p, k, n_relabelled, exact, least, len(objects), len(places), level,
                      len(gaps) - n_relabelled, flags)


def _objects(turns, value, level, stances):
    """Return the exchangeable things, one line each, with the sum and count of their values."""
    key = "debate_id" if level == "record" else "chain_id"
    optional = [column for column in ("composition", "timing") if column in turns]
    _need(turns, ("question_id", "debate_id", "stance", *optional))
    if value not in turns:
        raise DataError(f"turns: no field {value!r}, expected the column to average")
    if key not in turns:
        raise DataError("turns: no field 'chain_id', expected the chain of every turn (see chain_ids)")
    if len(stances) != 2 or stances[0] == stances[1]:
        raise ValueError(f"stances={stances!r}: expected two different stances")
    if "composition" in turns and turns.composition.nunique() > 1:
        names = ", ".join(sorted(map(str, turns.composition.unique())))
        raise DataError(f"turns, field 'composition': {names}, expected one: stances are never compared "
                        "across compositions")
    kept = turns[turns.stance.isin(stances) & turns[key].notna()]
    frame = pd.DataFrame({
        "key": kept[key], "question_id": kept.question_id, "stance": kept.stance,
        "timing": kept.timing if "timing" in kept else "", "value": floats(kept[value]),
    })
    found = frame.groupby("key", sort=False).agg(
        question_id=("question_id", "first"), stance=("stance", "first"), timing=("timing", "first"),
        total=("value", "sum"), count=("value", "count"))
    mixed = frame.groupby("key", sort=False)[["question_id", "stance", "timing"]].nunique().gt(1)
    if mixed.any(axis=None):
        at, field = mixed.stack().pipe(lambda s: s[s]).index[0]
        raise DataError(f"turns, {key} {at!r}, field {field!r}: two values, expected one")
    return found


def _relabelled(places, ways, first, sums, group, whole, average, n, rng):
    """Return the gap under n relabellings: all of them in order without `rng`, random ones with it."""
    out = np.empty(n)
    widest = max(len(at) for at in places)
    rows = max(1, _BLOCK // max(2 * len(whole), widest))
    patterns = [_patterns(len(at), int(first[at].sum())) if rng is None else None for at in places]
    for start in range(0, n, rows):
        size = min(rows, n - start)
        reached = np.zeros((size, *whole.shape))
        number = np.arange(start, start + size)
        for at, count, every in zip(places, ways, patterns, strict=True):
            if rng is None:
                # The relabelling's number, read in mixed radix, tells the pattern of every block.
                number, digit = np.divmod(number, count)
                drawn = (every @ sums[at])[digit]
            else:
                labels = np.broadcast_to(first[at].astype(float), (size, len(at)))
                drawn = rng.permuted(labels, axis=1) @ sums[at]
            reached[:, group[at[0]]] += drawn  # a block lies within one group
        out[start:start + size] = _gap(reached, whole, average)
    return out
