"""Small-sample statistics: exact rank tests, intervals for counts, paired tests.

Knows nothing of files, models or families. Exact means enumerated: every p here that is called exact is a
ratio of two whole numbers, and the whole numbers are returned with it.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis.errors import choice
from analysis.ranktests import (
    EXACT_PARTIAL_MAX,
    EXACT_SPEARMAN_MAX,
    TOLERANCE,
    PartialSpearman,
    Spearman,
    floats,
    paired_vectors,
    vector,
    exact_spearman,
    partial_spearman,
    spearman_null,
)

__all__ = [
    "EXACT_PARTIAL_MAX", "EXACT_SIGN_FLIP_MAX", "EXACT_SPEARMAN_MAX", "INTERVALS",
    "McNemar", "PartialSpearman", "SignFlip", "Spearman", "Tost",
    "exact_spearman", "fisher_z_interval", "holm", "jeffreys", "mcnemar", "partial_spearman", "proportion",
    "sign_flip", "spearman_null", "tost", "wilson",
]

INTERVALS = ("wilson", "jeffreys")
EXACT_SIGN_FLIP_MAX = 40


class McNemar(NamedTuple):
    """Result of `mcnemar`; `p_one_sided` is for b larger than c."""

    b: int
    c: int
    p_two_sided: float
    p_one_sided: float


class SignFlip(NamedTuple):
    """Result of `sign_flip`; `method` is "exact" or "monte carlo", counts are out of `n_patterns`.

    `n_nonzero` differences are not zero: an exact two-sided p cannot fall below ``2 / 2**n_nonzero``.
    """

    mean: float
    p_two_sided: float
    p_one_sided: float
    n: int
    n_patterns: int
    two_sided_count: int
    one_sided_count: int
    method: str
    n_nonzero: int


class Tost(NamedTuple):
    """Result of `tost`; `ci_low`, `ci_high` bound the 1 - 2*alpha interval that equivalence is read from."""

    difference: float
    p: float
    p_above_low: float
    p_below_high: float
    ci_low: float
    ci_high: float
    df: float
    n: int


def holm(p):
    """Holm's step-down adjusted p values.

    Parameters
    ----------
    p : array_like of float, shape (m,)
        Raw p values; missing ones stay missing and do not count as tests.

    Returns
    -------
    ndarray of float, shape (m,)

    Raises
    ------
    ValueError
        When a value lies outside 0..1.

    References
    ----------
    Holm, S. (1979), A simple sequentially rejective multiple test procedure (through statsmodels).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(4).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.atleast_1d(np.asarray(p, dtype=float))
    wrong = np.flatnonzero((p < 0) | (p > 1))
    if wrong.size:
        raise ValueError(f"p[{wrong[0]}]={p[wrong[0]]}: expected a value between 0 and 1")
    out, known = p.copy(), ~np.isnan(p)
    if known.any():
        from statsmodels.stats.multitest import multipletests  # here: it takes long to import

        out[known] = multipletests(p[known], method="holm")[1]
    return out


def _counts(k, n, level):
    """Return k and n as float arrays of one shape; missing stays missing, impossible counts raise."""
    if not 0 < level < 1:
        raise ValueError(f"level={level}: expected a share between 0 and 1, such as 0.95")
    k, n = np.broadcast_arrays(floats(k), floats(n))
    for bad, what in ((k < 0, "k is negative"), (n < 0, "n is negative"), (k > n, "k is larger than n")):
        at = np.flatnonzero(bad)
        if at.size:
            raise ValueError(f"k={k.flat[at[0]]:g}, n={n.flat[at[0]]:g} at position {at[0]}: {what}, "
                             "expected 0 <= k <= n")
    return k, n


def _plain(values):
    """Return a float for the array of a scalar call, longer arrays as they are."""
    return values.item() if values.ndim == 0 else values


def _interval(k, n, level, method):
    k, n = _counts(k, n, level)
    low, high = np.full(k.shape, np.nan), np.full(k.shape, np.nan)
    known = (n > 0) & ~np.isnan(k)
    from statsmodels.stats.proportion import proportion_confint  # here: it takes long to import

    low[known], high[known] = proportion_confint(k[known], n[known], alpha=1 - level, method=method)
    if method == "wilson":  # exactly the ends of the scale, where rounding leaves 1e-18
        low[known & (k == 0)], high[known & (k == n)] = 0, 1
    return _plain(low), _plain(high)


def wilson(k, n, level=0.95):
    """Wilson score interval for a proportion.

    Parameters
    ----------
    k, n : float or array_like of float
        Events and trials, 0 <= k <= n; fractional counts (expected credit) are allowed.
    level : float
        Coverage.

    Returns
    -------
    low, high : float or ndarray of float
        Fractions; NaN where n is 0 or a count is missing.

    Raises
    ------
    ValueError
        On negative counts, k > n, or a level outside 0..1.

    References
    ----------
    Wilson, E. B. (1927), Probable inference (through statsmodels, with the normal quantile unrounded).

    Examples
    --------
    >>> low, high = wilson([0, 5], [10, 10])
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0, 0.2366], [0.2775, 0.7634])
    """
    return _interval(k, n, level, "wilson")


def jeffreys(k, n, level=0.95):
    """Jeffreys interval: equal-tailed Beta(k + 1/2, n - k + 1/2), at k = 0 and k = n as everywhere.

    Parameters
    ----------
    k, n : float or array_like of float
        Events and trials, 0 <= k <= n.
    level : float
        Coverage.

    Returns
    -------
    low, high : float or ndarray of float
        Fractions; NaN where n is 0 or a count is missing. The lower end stays above 0 at k = 0, the upper
        below 1 at k = n.

    Raises
    ------
    ValueError
        On negative counts, k > n, or a level outside 0..1.

    References
    ----------
    Brown, Cai and DasGupta (2001), Interval estimation for a binomial proportion (through statsmodels),
    without their adjustment at the ends, as in "Measuring Collapse and Correction in Homogeneous-Panel LLM
    Debate", sec. C.1.

    Examples
    --------
    >>> low, high = jeffreys(0, 149)
    >>> 0 < low < 1e-5, round(high, 4)
    (True, 0.0167)
    """
    return _interval(k, n, level, "jeffreys")


def proportion(k, n, interval="wilson", level=0.95):
    """A rate with everything that must travel with it.

    Parameters
    ----------
    k, n : float or array_like of float
        Events and trials.
    interval : {"wilson", "jeffreys"}
    level : float
        Coverage.

    Returns
    -------
    DataFrame
        ``k, n, rate, low, high`` (fractions), on the index of `k` when that is a Series. With n = 0 rate and
        interval are NaN.

    Raises
    ------
    ValueError
        On impossible counts or an unknown interval.

    Examples
    --------
    >>> proportion([86], [1016]).round(4)
        k     n    rate     low    high
    0  86  1016  0.0846  0.0691  0.1034
    """
    choice("interval", interval, INTERVALS)
    index = k.index if isinstance(k, pd.Series) else None
    low, high = (wilson if interval == "wilson" else jeffreys)(k, n, level)
    k, n = (np.atleast_1d(v) for v in _counts(k, n, level))
    rate = np.divide(k, n, out=np.full(k.shape, np.nan), where=n > 0)
    out = pd.DataFrame({"k": k, "n": n, "rate": rate, "low": low, "high": high}, index=index)
    whole = [name for name in ("k", "n") if (out[name] % 1 == 0).all()]
    return out.astype(dict.fromkeys(whole, "int64"))


def mcnemar(b, c):
    """Exact McNemar test on the discordant pairs.

    Parameters
    ----------
    b, c : int
        Pairs that differ one way and the other way.

    Returns
    -------
    McNemar
        ``p_two_sided``, and ``p_one_sided`` for b larger than c. Without discordant pairs both are 1.

    Raises
    ------
    ValueError
        When a count is negative or not whole.

    References
    ----------
    McNemar, Q. (1947), in its exact binomial form (through scipy).

    Examples
    --------
    >>> mcnemar(5, 1)
    McNemar(b=5, c=1, p_two_sided=0.21875, p_one_sided=0.109375)
    """
    for name, count in (("b", b), ("c", c)):
        if count != int(count) or count < 0:
            raise ValueError(f"{name}={count}: expected a whole number from 0")
    b, c = int(b), int(c)
    if b + c == 0:
        return McNemar(b, c, 1.0, 1.0)
    two = sps.binomtest(b, b + c, 0.5).pvalue
    one = sps.binomtest(b, b + c, 0.5, alternative="greater").pvalue
    return McNemar(b, c, float(two), float(one))


def _signed_sums(d):
    """Return the sums under all 2**len(d) sign patterns, in ascending order."""
    sums = np.zeros(1)
    for step in d:
        sums = np.concatenate([sums + step, sums - step])
    return np.sort(sums)


def _sampled_sums(d, draws, seed):
    """Yield sums under random signs, in blocks that bound the memory."""
    rng, rows = np.random.default_rng(seed), max(1, 2**21 // len(d))
    for start in range(0, draws, rows):
        flips = rng.integers(0, 2, size=(min(rows, draws - start), len(d)), dtype=np.int8)
        yield d.sum() - 2 * (flips @ d)


def sign_flip(d, draws=99_999, seed=0, *, exact_up_to=EXACT_SIGN_FLIP_MAX):
    """Sign-flip test that paired differences are centred on zero.

    Parameters
    ----------
    d : array_like of float, shape (n,)
        One difference per independent unit (family, question, ...).
    draws : int
        Random sign patterns, used only above `exact_up_to` nonzero differences.
    seed : int or numpy.random.Generator
        For the random patterns.
    exact_up_to : int
        Nonzero differences up to which all patterns are counted; at most 40, where the count takes a fraction
        of a second.

    Returns
    -------
    SignFlip
        ``mean``; ``p_two_sided`` and ``p_one_sided`` (positive direction): the share of sign patterns whose
        sum reaches the observed one. Up to `exact_up_to` nonzero differences all 2**n patterns are counted (a
        zero difference has two signs like any other and changes no p); above, ``method`` is "monte carlo" and
        p is (count + 1) / (draws + 1).

    Raises
    ------
    ValueError
        On no, missing or infinite differences, no draws, or `exact_up_to` outside 0..40.

    Notes
    -----
    Sums are floats: two that differ by less than 1e-12 of ``sum(|d|)`` count as tied.

    References
    ----------
    Fisher, R. A. (1935), The Design of Experiments; Ernst, M. D. (2004), Permutation methods; Phipson, B. and
    Smyth, G. K. (2010), Permutation p-values should never be zero.

    Examples
    --------
    >>> result = sign_flip([1, 2, 3, -1])
    >>> result.mean, result.one_sided_count, result.two_sided_count, result.n_patterns, result.method
    (1.25, 3, 6, 16, 'exact')
    """
    d = vector(d, "d")
    if not len(d):
        raise ValueError("d is empty: expected at least one difference")
    if not np.isfinite(d).all():
        raise ValueError(f"d[{np.flatnonzero(~np.isfinite(d))[0]}] is infinite: expected a finite number")
    if not 0 <= exact_up_to <= EXACT_SIGN_FLIP_MAX:
        raise ValueError(f"exact_up_to={exact_up_to}: expected 0..{EXACT_SIGN_FLIP_MAX}")
    n, observed, mean = len(d), d.sum(), float(d.mean())
    slack = TOLERANCE * np.abs(d).sum()
    moving = d[d != 0]
    m = len(moving)
    if m > exact_up_to:
        if draws < 1:
            raise ValueError(f"draws={draws}: expected at least 1")
        two = one = 0
        for sums in _sampled_sums(moving, draws, seed):
            two += int((np.abs(sums) >= abs(observed) - slack).sum())
            one += int((sums >= observed - slack).sum())
        p_two, p_one = (two + 1) / (draws + 1), (one + 1) / (draws + 1)
        return SignFlip(mean, p_two, p_one, n, draws, two, one, "monte carlo", m)
    # Meet in the middle: for each sum of one half, binary search tells how many sums of the other half
    # complete it. Both halves are sorted: neighbouring searches then touch the same memory.
    head, tail = _signed_sums(moving[:m // 2]), _signed_sums(moving[m // 2:])

    def at_least(bound):
        return len(head) * len(tail) - int(np.searchsorted(tail, bound - head, side="left").sum())

    upper = at_least(abs(observed) - slack)
    # The null is symmetric, so the lower tail is as large as the upper; at 0 the two tails are everything.
    two = 2**m if abs(observed) <= slack else 2 * upper
    one = upper if observed >= 0 else at_least(observed - slack)
    zeros = n - m
    return SignFlip(mean, two / 2**m, one / 2**m, n, 2**n, two << zeros, one << zeros, "exact", m)


def tost(x, y=None, low=None, high=None, *, paired=True, alpha=0.05):
    """Two one-sided t tests: is the mean difference inside an equivalence range?

    Parameters
    ----------
    x : array_like of float, shape (n,)
        Differences, or the first sample when `y` is given.
    y : array_like of float, optional
        Second sample; the difference is x - y.
    low, high : float
        Equivalence range, in the units of the difference.
    paired : bool
        With `y`: pair entries in order (default), or treat as independent samples of unequal variance
        (Welch).
    alpha : float
        Level; the interval returned has coverage 1 - 2*alpha and lies inside (low, high) exactly when p <
        alpha.

    Returns
    -------
    Tost
        ``difference``, ``p`` (the larger of the two one-sided p), ``p_above_low``, ``p_below_high``, the
        interval, ``df``, ``n`` (differences, or both samples together).

    Raises
    ------
    ValueError
        When low < high does not hold, on fewer than two values, or on unequal lengths of paired samples.

    References
    ----------
    Schuirmann, D. J. (1987), Two one-sided tests procedure (through statsmodels).

    Examples
    --------
    >>> result = tost([0.1, -0.1, 0.2, 0.0], low=-0.5, high=0.5)
    >>> round(result.difference, 3), round(result.p, 4), result.df
    (0.05, 0.003, 3.0)
    """
    if low is None or high is None or not low < high:
        raise ValueError(f"low={low}, high={high}: expected low < high")
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha={alpha}: expected a value between 0 and 0.5")
    if y is not None and not paired:
        samples = [vector(x, "x"), vector(y, "y")]
    else:
        samples = [vector(x, "x") if y is None else np.subtract(*paired_vectors(x, y))]
    if min(map(len, samples)) < 2:
        raise ValueError(f"{min(map(len, samples))} values: expected at least 2")
    from statsmodels.stats.weightstats import CompareMeans, DescrStatsW  # here: it takes long to import

    described = [DescrStatsW(s) for s in samples]
    if len(samples) == 1:
        one = described[0]
        lower, upper = one.ttest_mean(low, "larger"), one.ttest_mean(high, "smaller")
        ends, difference = one.tconfint_mean(alpha=2 * alpha), one.mean
    else:
        both = CompareMeans(*described)
        lower = both.ttest_ind("larger", "unequal", value=low)
        upper = both.ttest_ind("smaller", "unequal", value=high)
        ends = both.tconfint_diff(alpha=2 * alpha, usevar="unequal")
        difference = described[0].mean - described[1].mean
    p_above_low, p_below_high = float(lower[1]), float(upper[1])
    return Tost(float(difference), max(p_above_low, p_below_high), p_above_low, p_below_high,
                float(ends[0]), float(ends[1]), float(lower[2]), sum(map(len, samples)))


def fisher_z_interval(rho, n, level=0.95, z=None):
    """Fisher-z interval for a correlation.

    Parameters
    ----------
    rho : float or array_like of float
        Correlation, -1..1.
    n : int or array_like of int
        Pairs.
    level : float
        Coverage.
    z : float, optional
        Critical value instead of the unrounded normal quantile of `level` (1.96 is a common rounding at
        0.95).

    Returns
    -------
    low, high : float or ndarray of float
        NaN where n <= 3 or rho is missing.

    Raises
    ------
    ValueError
        When rho lies outside -1..1 or level outside 0..1.

    References
    ----------
    Fisher, R. A. (1921); "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", Table 23.

    Examples
    --------
    >>> low, high = fisher_z_interval(0.5, 28)
    >>> round(low, 4), round(high, 4)
    (0.156, 0.7358)
    """
    if not 0 < level < 1:
        raise ValueError(f"level={level}: expected a share between 0 and 1, such as 0.95")
    rho, n = np.broadcast_arrays(np.asarray(rho, dtype=float), np.asarray(n, dtype=float))
    if (np.abs(rho) > 1 + TOLERANCE).any():
        raise ValueError(f"rho={rho[np.abs(rho) > 1].flat[0]}: expected a correlation between -1 and 1")
    z = sps.norm.ppf(0.5 + level / 2) if z is None else z
    with np.errstate(divide="ignore"):  # rho of 1 maps to infinity and back to 1
        middle = np.arctanh(np.clip(rho, -1, 1))
    half = z / np.sqrt(np.where(n > 3, n - 3, np.nan))
    return _plain(np.tanh(middle - half)), _plain(np.tanh(middle + half))
