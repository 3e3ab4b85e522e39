"""Tests and intervals of the layered measures: sign flips, bootstraps, bounds over independent units.

Rows are averaged to one value per unit (question, proposition, pair, item) before anything here sees them;
only `stance_null`, whose exchangeable things are debates or chains of turns, takes the turns themselves.
"""

from collections import Counter
from dataclasses import replace
from itertools import combinations_with_replacement
from math import factorial, nan, prod
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis import stats
from analysis.layers import gates
from analysis.layers.relabelling import NOISE, StanceNull, chain_ids, stance_null
from analysis.layers.results import Result
from analysis.ranktests import floats

__all__ = [
    "Equivalence", "Interval", "McNemar", "SignFlip", "StanceNull", "ZeroEvents",
    "chain_ids", "differential_exclusion", "holm_family", "holm_results", "mcnemar", "sign_flip",
    "stance_null", "test_units", "tost", "unit_bootstrap", "wilson", "zero_events",
]

wilson = stats.wilson

FEW_UNITS = 10
ENUMERATED_UNITS = 7
UNDEFINED_SHARE = 0.05
_BLOCK = 4_000_000  # numbers held at once while resampling


class SignFlip(NamedTuple):
    """Result of `sign_flip`; `n_draws` is None for an exact test, `p` is two-sided."""

    mean: float
    p: float
    n: int
    n_nonzero: int
    min_attainable: float
    exact: bool
    n_draws: int | None
    flags: tuple[str, ...]


class Interval(NamedTuple):
    """Result of `unit_bootstrap`; the ends are NaN where no honest interval exists (see `flags`)."""

    low: float
    high: float
    method: str
    n_boot: int
    n_undefined: int
    flags: tuple[str, ...]


class ZeroEvents(NamedTuple):
    """Result of `zero_events`: upper bounds on a rate of which no event was seen."""

    n: int
    rule_of_three: float
    exact: float
    n_clusters: int | None
    cluster_rule_of_three: float
    cluster_exact: float


class McNemar(NamedTuple):
    """Result of `mcnemar`; the bounds on the discordance rate are NaN unless no pair was discordant."""

    b: int
    c: int
    p: float
    rule_of_three: float
    exact_bound: float
    flags: tuple[str, ...]


class Equivalence(NamedTuple):
    """Result of `tost`; `low`, `high` bound the 1 - 2*alpha interval that decides."""

    difference: float
    low: float
    high: float
    p_lower: float
    p_upper: float
    p: float
    margin: float
    equivalent: bool
    n: int
    flags: tuple[str, ...]


def _settled(values):
    """Return values with rounding noise (differences of equal means) set to exactly 0."""
    sizes = np.abs(values)
    return np.where(sizes <= NOISE * max(1.0, sizes[np.isfinite(sizes)].sum()), 0.0, values)


def sign_flip(d, *, exact_up_to=stats.EXACT_SIGN_FLIP_MAX, draws=99_999, seed=0):
    """Two-sided sign-flip test of one value per unit, with the smallest p it could have given.

    Parameters
    ----------
    d : array_like of float, shape (units,)
        One signed value per independent unit. Values below 1e-12 (of the sum of sizes, at least of 1) are
        rounding noise and count as 0.
    exact_up_to : int
        Nonzero units up to which all sign patterns are counted, at most 40.
    draws, seed : int
        Random patterns above that, p = (k + 1) / (draws + 1).

    Returns
    -------
    SignFlip
        ``mean, p, n, n_nonzero, min_attainable, exact, n_draws, flags``. `min_attainable` is 2 / 2**n_nonzero
        (of a sampled test at least 1 / (draws + 1)). Flags: ``no_information`` when all are zero (p = 1),
        ``cannot_reach_0.05`` with five or fewer nonzero units, ``monte_carlo`` when patterns were sampled.

    Raises
    ------
    ValueError
        On no, missing or infinite values.

    References
    ----------
    Fisher (1935); Ernst (2004); Phipson and Smyth (2010). "A Layered Analysis of Disagreement and Answer
    Quality in Multi-Agent LLM Debate", scope decision (i).

    Examples
    --------
    >>> result = sign_flip([0.3, -0.1, 0.2, 0.4])
    >>> round(result.mean, 9), result.p, result.min_attainable, result.flags
    (0.2, 0.25, 0.125, ('cannot_reach_0.05',))
    """
    d = stats.vector(d, "d")
    found = stats.sign_flip(_settled(d), draws=draws, seed=seed, exact_up_to=exact_up_to)
    exact, m = found.method == "exact", found.n_nonzero
    least = min(1.0, 2 / 2**m)
    least = least if exact else max(least, 1 / (draws + 1))
    flags = {"no_information": m == 0, "cannot_reach_0.05": m > 0 and least > 0.05, "monte_carlo": not exact}
    return SignFlip(float(np.mean(d)), found.p_two_sided, found.n, m, least, exact, None if exact else draws,
                    tuple(name for name, holds in flags.items() if holds))


def _mean(resampled):
    return resampled.mean(axis=1)


def _every_resample(values, statistic):
    """Return the statistic of all n**n resamples; equal ones are computed once and repeated."""
    n = len(values)
    rows = np.array(list(combinations_with_replacement(range(n), n)))
    times = [factorial(n) // prod(map(factorial, Counter(row).values())) for row in rows.tolist()]
    return np.repeat(np.asarray(statistic(values[rows]), dtype=float), times)


def _drawn_resamples(values, statistic, draws, seed):
    """Return the statistic of random resamples, in blocks that bound the memory."""
    n, rng = len(values), np.random.default_rng(seed)
    rows = max(1, _BLOCK // values.size)
    out = np.empty(draws)
    for start in range(0, draws, rows):
        stop = min(draws, start + rows)
        picked = rng.integers(0, n, size=(stop - start, n), dtype=np.int32)
        out[start:stop] = statistic(values[picked])
    return out


def unit_bootstrap(values, statistic=None, *, draws=10_000, level=0.95, seed=0, share=False):
    """Percentile bootstrap over independent units.

    Parameters
    ----------
    values : array_like of float, shape (units, ...)
        One value, or a row (table, ...) of values, per unit; a DataFrame counts as (units, columns).
    statistic : callable, optional
        Takes resamples of shape (draws, units, ...) and returns shape (draws,), NaN or infinite where
        undefined. It must not depend on the order of the units. The mean of one value per unit if left out.
        Equal seeds resample equal units, so several statistics of one call each belong together.
    draws : int
        Random resamples. Up to 7 units all n**n resamples are taken instead.
    level : float
        Coverage.
    seed : int
    share : bool
        The values are shares: where all are 0 or all are 1, Wilson's interval on the number of units stands
        in for the bootstrap's interval of no width.

    Returns
    -------
    Interval
        ``low, high, method, n_boot, n_undefined, flags``. Flags: ``few_units`` below 10 (percentile intervals
        cover too little), ``degenerate_bootstrap`` when all resamples agree, ``undefined_bootstrap`` when the
        statistic is undefined in more than 5 % of them. In the last two cases, Wilson's aside, the ends are
        NaN: an interval of no width would claim certainty.

    Raises
    ------
    ValueError
        On no units, missing values, a level outside 0..1, or a statistic that returns another shape.

    References
    ----------
    Efron and Tibshirani (1993), An Introduction to the Bootstrap; quantiles of type 7 (Hyndman and Fan 1996).

    Examples
    --------
    >>> unit_bootstrap([0, 0.25, 0.5, 1])[:4]
    (0.125, 0.8125, 'percentile bootstrap, all resamples', 256)
    >>> ratio = unit_bootstrap([[1, 2], [3, 4], [2, 5]], lambda r: r[..., 0].sum(1) / r[..., 1].sum(1))
    >>> round(ratio.low, 3), round(ratio.high, 3)
    (0.411, 0.717)
    """
    values = np.asarray(values if np.ndim(values) > 1 else floats(values), dtype=float)
    if not values.ndim or not len(values):
        raise ValueError("no units: expected at least one value")
    if not 0 < level < 1:
        raise ValueError(f"level={level}: expected a share between 0 and 1, such as 0.95")
    missing = np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(axis=1))
    if missing.size:
        raise ValueError(f"unit {missing[0]} has a missing or infinite value: expected numbers (leave it out "
                         "first)")
    if draws < 1:
        raise ValueError(f"draws={draws}: expected at least 1")
    if statistic is None:
        if values.ndim != 1:
            raise ValueError(f"values of shape {values.shape}: expected a statistic for more than one column")
        statistic = _mean
    n = len(values)
    flags = ["few_units"] if n < FEW_UNITS else []
    if n <= ENUMERATED_UNITS:
        seen, method = _every_resample(values, statistic), "percentile bootstrap, all resamples"
    else:
        seen, method = _drawn_resamples(values, statistic, draws, seed), "percentile bootstrap"
    known = seen[np.isfinite(seen)]
    n_undefined = len(seen) - len(known)
    low = high = nan
    if n_undefined > UNDEFINED_SHARE * len(seen):
        flags.append("undefined_bootstrap")
    elif np.ptp(known) <= NOISE * max(1.0, np.abs(known).max()):
        flags.append("degenerate_bootstrap")
        if share and statistic is _mean and values[0] in (0, 1):
            (low, high), method = wilson(values.sum(), n, level), "Wilson on units"
    else:
        low, high = map(float, np.quantile(known, [(1 - level) / 2, (1 + level) / 2]))
    return Interval(low, high, method, len(seen), n_undefined, tuple(flags))


def test_units(name, units, unit, *, unit_name="question", n_rows=0, test=True, share=False, level=0.95,
               draws=10_000, seed=0, family="", role="primary", gates=(), exclusions=None, flags=()):
    """One value per unit to a `Result`: mean, sign-flip test and unit bootstrap.

    Parameters
    ----------
    name : str
        Name of the measure, with the sign of a contrast.
    units : Series or array_like of float, shape (units,)
        Missing ones are left out and counted under ``undefined_unit``.
    unit : str
        Unit of measure, such as "share" or "scale points".
    unit_name : str
        What a unit is.
    n_rows : int
        Rows behind the units.
    test : bool
        Whether 0 is a null hypothesis; False for a rate, which then has no p.
    share : bool
        The values are shares (see `unit_bootstrap`), not differences of shares.
    level, draws, seed
        Of the bootstrap; `seed` also serves a sampled sign-flip test.
    family, role, gates, exclusions, flags
        Stored in the result; a failed gate makes it "gated".

    Returns
    -------
    Result
        Without any unit, ``status="undefined"`` and NaN. Flags as in `sign_flip` and `unit_bootstrap`.

    Examples
    --------
    >>> result = test_units("friendly_minus_hostile", [2/3, 0.5, 0.8], "share", n_rows=30)
    >>> round(result.estimate, 6), result.p, result.n_units, round(result.low, 2), round(result.high, 2)
    (0.655556, 0.25, 3, 0.54, 0.77)
    >>> result.flags
    ('few_units', 'cannot_reach_0.05')
    """
    values = floats(units)
    known = values[~np.isnan(values)]
    excluded = dict(exclusions or {})
    if len(known) < len(values):
        excluded["undefined_unit"] = excluded.get("undefined_unit", 0) + len(values) - len(known)
    common = {"unit_name": unit_name, "n_rows": n_rows, "level": level, "family": family, "role": role,
              "exclusions": excluded, "seed": seed}
    if not len(known):
        out = Result(name, nan, unit, status="undefined", **common)
        return out.with_flags("no_units", *flags).with_gates(*gates)
    around = unit_bootstrap(known, draws=draws, level=level, seed=seed, share=share)
    out = Result(name, float(known.mean()), unit, n_units=len(known), low=around.low, high=around.high,
                 interval=around.method, n_boot=around.n_boot, n_undefined=around.n_undefined, **common)
    out = out.with_flags(*around.flags)
    if test:
        flip = sign_flip(known, seed=seed)
        out = replace(out, p=flip.p, p_method="sign flip", exact=flip.exact, n_draws=flip.n_draws,
                      n_nonzero=flip.n_nonzero, min_attainable=flip.min_attainable).with_flags(*flip.flags)
    return out.with_flags(*flags).with_gates(*gates)


test_units.__test__ = False  # its name is that of a test function


def holm_family(p, family):
    """Holm-corrected p values of a named family of tests.

    Parameters
    ----------
    p : mapping of str to float
        Raw p values by test. Missing ones stay missing and do not count as tests.
    family : str
        What was corrected together; it travels with the values.

    Returns
    -------
    DataFrame
        Index the tests; columns ``p, p_holm, family, m`` (number of tests in the family).

    Raises
    ------
    ValueError
        On an empty family name, or a p outside 0..1.

    References
    ----------
    Holm (1979), through statsmodels.

    Examples
    --------
    >>> raw = {"llama": 3/128, "qwen": 9/128, "deepseek": 1/128, "all": 1/128}
    >>> holm_family(raw, "rounds").p_holm.tolist()
    [0.046875, 0.0703125, 0.03125, 0.03125]
    """
    if not family:
        raise ValueError("family='': expected the name of what is corrected together")
    raw = pd.Series(dict(p), dtype=float)
    adjusted = stats.holm(raw.to_numpy()) if len(raw) else raw
    return pd.DataFrame({"p": raw, "p_holm": adjusted, "family": family, "m": int(raw.notna().sum())})


def holm_results(results, family):
    """Results with Holm's correction over all of them.

    Parameters
    ----------
    results : sequence of Result
    family : str

    Returns
    -------
    list of Result
        Copies with `p_holm` and `family` set.

    Examples
    --------
    >>> pair = [Result("a", 0.1, "share", p=0.01), Result("b", 0.2, "share", p=0.04)]
    >>> [result.p_holm for result in holm_results(pair, "two contrasts")]
    [0.02, 0.04]
    """
    adjusted = holm_family({i: result.p for i, result in enumerate(results)}, family).p_holm
    return [replace(result, p_holm=float(p), family=family)
            for result, p in zip(results, adjusted, strict=True)]


def _bound(n, level):
    """Return 3/n and the exact one-sided upper limit of a rate with 0 events in n."""
    return (min(1.0, 3 / n), 1 - (1 - level) ** (1 / n)) if n else (nan, nan)


def zero_events(n, clusters=None, *, level=0.95):
    """How large can a rate be of which none of n trials showed an event?

    Parameters
    ----------
    n : int
        Trials without event.
    clusters : int, optional
        Independent clusters (questions) that the trials come from: trials of one cluster do not count as
        independent, so the bound on clusters is the one to lead with.
    level : float
        One-sided level of the exact bound; the rule of three stands for 0.95.

    Returns
    -------
    ZeroEvents
        ``rule_of_three`` (3 / n) and ``exact`` (one-sided Clopper-Pearson), by trial and by cluster. NaN
        without trials.

    Raises
    ------
    ValueError
        On negative or fractional counts, or more clusters than trials.

    References
    ----------
    Hanley and Lippman-Hand (1983), If nothing goes wrong, is everything all right?

    Examples
    --------
    >>> [round(value, 6) for value in zero_events(299, 50)]
    [299, 0.010033, 0.009969, 50, 0.06, 0.058155]
    """
    for what, count in (("n", n), ("clusters", clusters)):
        if count is not None and (count < 0 or count != int(count)):
            raise ValueError(f"{what}={count}: expected a whole number from 0")
    if clusters is not None and clusters > n:
        raise ValueError(f"clusters={clusters}, n={n}: expected no more clusters than trials")
    return ZeroEvents(int(n), *_bound(n, level), clusters, *_bound(clusters, level))


def mcnemar(b, c, n=None):
    """Exact two-sided McNemar test, with a bound where no pair was discordant.

    Parameters
    ----------
    b, c : int
        Pairs that differ one way and the other way.
    n : int, optional
        All pairs; needed for the bound.

    Returns
    -------
    McNemar
        Without discordant pairs p is 1, flagged ``no_discordant_pairs``, and `rule_of_three`, `exact_bound`
        bound the discordance rate from above (NaN without `n`).

    Raises
    ------
    ValueError
        On negative or fractional counts, or more discordant pairs than pairs.

    References
    ----------
    McNemar (1947); Fagerland, Lydersen and Laake (2013).

    Examples
    --------
    >>> mcnemar(4, 1).p, round(mcnemar(0, 0, 45).exact_bound, 6)
    (0.375, 0.064404)
    """
    found = stats.mcnemar(b, c)
    if n is not None and found.b + found.c > n:
        raise ValueError(f"b + c = {found.b + found.c}, n={n}: expected no more discordant pairs than pairs")
    none = found.b + found.c == 0
    bounds = zero_events(n)[1:3] if none and n is not None else (nan, nan)
    return McNemar(found.b, found.c, found.p_two_sided, *bounds, ("no_discordant_pairs",) if none else ())


def tost(d, margin, *, alpha=0.05):
    """Is the mean of paired differences equivalent to 0, by two one-sided t tests?

    Parameters
    ----------
    d : array_like of float, shape (n,)
        One difference per unit.
    margin : float
        Half width of the equivalence range, fixed before the data were seen.
    alpha : float

    Returns
    -------
    Equivalence
        ``equivalent`` exactly when the 1 - 2*alpha interval lies strictly inside (-margin, margin). Equal
        differences have no spread to judge by: p and interval are NaN, not equivalent, flag ``no_spread``.

    Raises
    ------
    ValueError
        On a margin that is not positive, or fewer than two differences.

    References
    ----------
    Schuirmann (1987); Lakens (2017). Through statsmodels.

    Examples
    --------
    >>> result = tost([1] * 19 + [-1] * 17 + [0] * 199, 0.075)
    >>> round(result.difference, 6), round(result.low, 6), round(result.high, 6), round(result.p, 6)
    (0.008511, -0.033733, 0.050754, 0.004969)
    """
    if not margin > 0:
        raise ValueError(f"margin={margin}: expected a positive number")
    d = stats.vector(d, "d")
    if len(d) > 1 and np.ptp(d) == 0:
        return Equivalence(float(d[0]), nan, nan, nan, nan, nan, margin, False, len(d), ("no_spread",))
    t = stats.tost(d, low=-margin, high=margin, alpha=alpha)
    inside = -margin < t.ci_low and t.ci_high < margin
    return Equivalence(t.difference, t.ci_low, t.ci_high, t.p_above_low, t.p_below_high, t.p, margin, inside,
                       t.n, ())


def differential_exclusion(excluded, total):
    """Flag arms that lost different shares of their rows.

    Parameters
    ----------
    excluded, total : mapping of str to int
        Rows left out and rows, by arm.

    Returns
    -------
    tuple of str
        ``("differential_exclusion",)`` when two arms differ by more than 5 points, else empty.

    Examples
    --------
    >>> differential_exclusion({"hostile": 9, "friendly": 1}, {"hostile": 100, "friendly": 100})
    ('differential_exclusion',)
    """
    shares = [excluded.get(arm, 0) / count for arm, count in total.items() if count]
    apart = max(shares) - min(shares) if shares else 0.0
    return () if apart <= gates.DIFFERENTIAL_EXCLUSION.limit + NOISE else ("differential_exclusion",)
