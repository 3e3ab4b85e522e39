"""Exact rank correlation tests: every order of the outcome is counted, none is sampled.

`analysis.stats` offers these names together with the other statistics.
"""

from itertools import permutations
from math import factorial, gcd, isqrt, prod, sqrt
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats as sps

EXACT_SPEARMAN_MAX = 16
EXACT_PARTIAL_MAX = 9
TOLERANCE = 1e-12


class Spearman(NamedTuple):
    """Result of `exact_spearman`; counts are out of `n_orders`, and None where rho is undefined."""

    rho: float
    p_two_sided: float
    p_one_sided: float
    n: int
    n_orders: int
    two_sided_count: int | None
    one_sided_count: int | None


class PartialSpearman(NamedTuple):
    """Result of `partial_spearman`; the exact part is NaN/None above `EXACT_PARTIAL_MAX` observations."""

    rho: float
    t: float
    df: int
    p_t: float
    p_two_sided: float
    p_one_sided: float
    n: int
    n_orders: int | None
    two_sided_count: int | None
    one_sided_count: int | None


def floats(values):
    """Return floats; pandas' own missing marker becomes NaN."""
    if isinstance(values, (pd.Series, pd.api.extensions.ExtensionArray)):
        return pd.array(values, dtype="Float64").to_numpy(dtype=float, na_value=np.nan)
    return np.asarray(values, dtype=float)


def vector(values, name):
    """Return `values` as a float vector without missing entries."""
    out = floats(values)
    if out.ndim != 1:
        raise ValueError(f"{name}: shape {out.shape}: expected one dimension")
    missing = np.flatnonzero(np.isnan(out))
    if missing.size:
        raise ValueError(f"{name}[{missing[0]}] is missing: expected a number (drop incomplete pairs first)")
    return out


def paired_vectors(x, y, least=2):
    """Return `x` and `y` as float vectors of one length, at least `least` long."""
    x, y = vector(x, "x"), vector(y, "y")
    if len(x) != len(y):
        raise ValueError(f"x has {len(x)} values and y has {len(y)}: expected the same number")
    if len(x) < least:
        raise ValueError(f"{len(x)} pairs: expected at least {least}")
    return x, y


def _whole_ranks(values):
    """Return mid-ranks as whole numbers from 0 with the common factor taken out (all zero for a constant)."""
    doubled = np.rint(2 * sps.rankdata(values)).astype(np.int64)
    doubled -= doubled.min()
    return doubled // max(gcd(*doubled.tolist()), 1)


def _sum_counts(a, b):
    """Count, for every s, the orders of `b` with ``sum(a * b_reordered) == s``; all n! orders are counted.

    Dynamic programme over how much of `b` has been handed to the first k entries of `a`. Equal entries of `b`
    are interchangeable, so a state holds how many of each distinct value are used, and a step weighs by how
    many remain.
    """
    states = [prod(np.unique(v, return_counts=True)[1] + 1) for v in (a, b)]
    if states[0] < states[1]:  # the null is the same whichever side is reordered
        a, b = b, a
    a, b = np.sort(a), np.sort(b)
    values, held = np.unique(b, return_counts=True)
    radix = np.cumprod(np.append(1, held + 1))
    used = np.arange(radix[-1])[:, None] // radix[:-1] % (held + 1)
    level = used.sum(axis=1)
    by_level = np.argsort(level, kind="stable")
    start = np.searchsorted(level[by_level], np.arange(len(a) + 2))
    place = np.empty_like(by_level)
    place[by_level] = np.arange(len(by_level)) - start[level[by_level]]

    layer = np.ones((1, 1), dtype=np.int64)
    for k in range(len(a)):
        now = by_level[start[k]:start[k + 1]]
        # No sum of k + 1 products can pass this one (rearrangement inequality): wider would stay empty.
        width = int(a[:k + 1] @ b[-(k + 1):]) + 1
        grown = np.zeros((start[k + 2] - start[k + 1], width), dtype=np.int64)
        for j, value in enumerate(values):
            left = held[j] - used[now, j]
            source = np.flatnonzero(left)
            shift = int(a[k] * value)
            span = min(layer.shape[1], width - shift)
            block = layer[source, :span]
            if held[j] > 1:
                block = block * left[source, None]
            grown[place[now[source] + radix[j]], shift:shift + span] += block
        layer = grown
    return layer[0]


def _null(x, y):
    """Return observed and possible centred sums, orders per sum, product of squared norms (all whole)."""
    if len(x) > EXACT_SPEARMAN_MAX:
        raise ValueError(
            f"{len(x)} pairs: expected at most {EXACT_SPEARMAN_MAX} for an exact p; beyond, an asymptotic "
            "p (scipy.stats.spearmanr) or a sampled one (scipy.stats.permutation_test)"
        )
    a, b, n = _whole_ranks(x), _whole_ranks(y), len(x)
    counts = _sum_counts(a, b)
    # n * covariance in whole numbers: two orders compare as equal exactly when their rho is equal.
    shift = int(a.sum()) * int(b.sum())
    possible = n * np.arange(len(counts)) - shift
    scale = prod(int(n * (v @ v) - v.sum() ** 2) for v in (a, b))
    return n * int(a @ b) - shift, possible, counts, scale


def _root(scale):
    """Square root, exact for a perfect square (no ties): a perfect rho is then 1.0 and not nearly 1."""
    root = isqrt(scale)
    return root if root * root == scale else sqrt(scale)


def exact_spearman(x, y):
    """Spearman rank correlation with its exact permutation p, ties included.

    Parameters
    ----------
    x, y : array_like of float, shape (n,)
        Paired values, 2 <= n <= `EXACT_SPEARMAN_MAX` (16). Equal values get their mean rank.

    Returns
    -------
    Spearman
        ``rho``; ``p_two_sided``, the share of all n! orders of `y` with ``|rho*| >= |rho|``; ``p_one_sided``,
        the share with ``rho* >= rho``; ``n``; ``n_orders`` = n!; the two counts. With ties every one of the
        n! orders counts, also those that look alike: each distinct arrangement is met equally often, so p is
        the same as over distinct arrangements. A constant `x` or `y` has no rank correlation: rho and p are
        NaN, the counts None.

    Raises
    ------
    ValueError
        On missing values, unequal lengths, fewer than 2 or more than 16 pairs.

    Notes
    -----
    Sums of rank products are whole numbers (doubled mid-ranks), so "at least as large" is decided in whole
    numbers: the same as comparing rho with a tolerance of 1e-12, without needing one. Counts are int64 and
    cannot overflow (16! < 2**63).

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.2.

    Examples
    --------
    >>> result = exact_spearman([1, 2, 3, 4], [1, 2, 4, 3])
    >>> round(result.rho, 4), result.two_sided_count, result.one_sided_count, result.n_orders
    (0.8, 8, 4, 24)
    """
    x, y = paired_vectors(x, y)
    n, orders = len(x), factorial(len(x))
    observed, possible, counts, scale = _null(x, y)
    if scale == 0:
        return Spearman(np.nan, np.nan, np.nan, n, orders, None, None)
    two = int(counts[np.abs(possible) >= abs(observed)].sum())
    one = int(counts[possible >= observed].sum())
    return Spearman(observed / _root(scale), two / orders, one / orders, n, orders, two, one)


def spearman_null(x, y):
    """Exact permutation distribution of Spearman's rho for these ranks.

    Parameters
    ----------
    x, y : array_like of float, shape (n,)
        Paired values, 2 <= n <= `EXACT_SPEARMAN_MAX`, neither constant.

    Returns
    -------
    DataFrame
        One line per attainable value, ascending: ``rho``, ``count`` (orders of `y` that give it; they add up
        to n!).

    Raises
    ------
    ValueError
        As `exact_spearman`, and when `x` or `y` is constant.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.2.

    Examples
    --------
    >>> spearman_null([1, 2, 3], [1, 2, 3])
       rho  count
    0 -1.0      1
    1 -0.5      2
    2  0.5      2
    3  1.0      1
    """
    x, y = paired_vectors(x, y)
    _, possible, counts, scale = _null(x, y)
    if scale == 0:
        raise ValueError("x or y is constant: expected at least two different values in each")
    met = counts > 0
    return pd.DataFrame({"rho": possible[met] / _root(scale), "count": counts[met]})


def partial_spearman(x, y, controls):
    """Partial Spearman correlation given ranked controls, with t and exact permutation p.

    Ranks everything, takes out of the ranks of `x` and `y` what least squares on the ranked controls and an
    intercept explains, and correlates what is left.

    Parameters
    ----------
    x, y : array_like of float, shape (n,)
        Paired values, n >= 3.
    controls : array_like of float, shape (n,) or (n, k)
        One column per control.

    Returns
    -------
    PartialSpearman
        ``rho``; ``t``, ``df`` = n - k - 2 (k independent controls) and two-sided ``p_t`` (NaN when df < 1);
        and, for n <= `EXACT_PARTIAL_MAX` (9), ``p_two_sided`` and ``p_one_sided`` (positive direction) over
        all n! reassignments of the ranks of `y` with `x` and controls held fixed, with their counts. Orders
        whose `y` ranks the controls explain entirely have no partial correlation and count as not reaching
        rho. rho is NaN when the controls explain `x` or `y`.

    Raises
    ------
    ValueError
        On missing values or unequal lengths.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.3.

    Examples
    --------
    >>> result = partial_spearman([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], controls=[1, 1, 2, 2, 1])
    >>> round(result.rho, 4), result.df, result.two_sided_count, result.n_orders
    (0.7818, 2, 26, 120)
    """
    x, y = paired_vectors(x, y, least=3)
    given = np.asarray(controls, dtype=float)
    given = given[:, None] if given.ndim == 1 else given
    if given.ndim != 2 or len(given) != len(x):
        raise ValueError(f"controls: shape {np.shape(controls)}: expected ({len(x)},) or ({len(x)}, k)")
    for column in range(given.shape[1]):
        vector(given[:, column], f"controls[:, {column}]")
    n = len(x)
    rank_x, rank_y = sps.rankdata(x), sps.rankdata(y)
    design = np.column_stack([np.ones(n), sps.rankdata(given, axis=0)])
    left, singular, _ = np.linalg.svd(design, full_matrices=False)
    basis = left[:, singular > singular[0] * 1e-10]  # repeated or constant controls add no direction

    left_x = rank_x - basis @ (basis.T @ rank_x)
    left_y = rank_y - basis @ (basis.T @ rank_y)
    norm_x, norm_y = np.linalg.norm(left_x), np.linalg.norm(left_y)
    defined = norm_x > 1e-6 and norm_y > 1e-6
    rho = float(np.clip(left_x @ left_y / (norm_x * norm_y), -1, 1)) if defined else np.nan
    df = n - basis.shape[1] - 1
    t = p_t = np.nan
    if defined and df > 0:
        t = rho * sqrt(df / (1 - rho**2)) if abs(rho) < 1 else np.copysign(np.inf, rho)
        p_t = float(2 * sps.t.sf(abs(t), df))
    if not defined or n > EXACT_PARTIAL_MAX:
        orders = factorial(n) if n <= EXACT_PARTIAL_MAX else None
        return PartialSpearman(rho, t, df, p_t, np.nan, np.nan, n, orders, None, None)

    every = rank_y[np.fromiter(permutations(range(n)), dtype=(np.intp, n), count=factorial(n))]
    rest = every - (every @ basis) @ basis.T
    norms = np.linalg.norm(rest, axis=1)
    solid = norms > 1e-6
    drawn = (rest @ left_x)[solid] / (norm_x * norms[solid])
    two = int((np.abs(drawn) >= abs(rho) - TOLERANCE).sum())
    one = int((drawn >= rho - TOLERANCE).sum())
    orders = factorial(n)
    return PartialSpearman(rho, t, df, p_t, two / orders, one / orders, n, orders, two, one)
