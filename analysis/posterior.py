"""Posterior draws in numbers: summaries, their Monte Carlo error, convergence of the chains."""

import numpy as np
import pandas as pd

LEVEL = 0.95


def describe(values):
    """Summaries of draws along the last axis.

    Parameters
    ----------
    values : array of float, shape (..., n)

    Returns
    -------
    dict of str to array of float, shape (...)
        ``mean, sd``; ``hdi_low, hdi_high``, the shortest interval with 95% of the draws; ``median``; ``low,
        high``, the 2.5% and 97.5% quantiles.

    Examples
    --------
    >>> found = describe(np.arange(1.0, 101.0))
    >>> found["mean"].item(), found["median"].item(), found["hdi_low"].item(), found["hdi_high"].item()
    (50.5, 50.5, 1.0, 96.0)
    """
    ordered = np.sort(values, axis=-1)
    low, high = _shortest(ordered)
    q_low, median, q_high = np.quantile(ordered, [(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2], axis=-1)
    return {
        "mean": values.mean(axis=-1, dtype=float), "sd": values.std(axis=-1, ddof=1, dtype=float),
        "hdi_low": low, "hdi_high": high, "median": median, "low": q_low, "high": q_high,
    }


def hdi(values, level=LEVEL):
    """Shortest interval that holds a share of the draws.

    Parameters
    ----------
    values : array of float, shape (..., n)
    level : float
        Least share of the draws inside.

    Returns
    -------
    low, high : array of float, shape (...)

    References
    ----------
    Hyndman (1996), Computing and graphing highest density regions.

    Examples
    --------
    >>> [end.item() for end in hdi(np.array([9.0, 1.0, 2.0, 3.0, 5.0]), 0.7)]
    [1.0, 5.0]
    """
    return _shortest(np.sort(values, axis=-1), level)


def _shortest(ordered, level=LEVEL):
    steps = int(level * ordered.shape[-1])  # from the first draw inside to the last
    width = ordered[..., steps:] - ordered[..., : ordered.shape[-1] - steps]
    first = width.argmin(axis=-1)[..., None]
    return tuple(np.take_along_axis(ordered, at, -1)[..., 0] for at in (first, first + steps))


def monte_carlo(columns, *, chains, size, block=500, resamples=200, seed=0):
    """How far summaries move from one fit to the next because the draws are finitely many.

    Fits of `size` draws are put together from blocks of consecutive draws, taken with replacement: long
    blocks keep the dependence between neighbours. This gives an error to the ends of intervals too, which
    have no formula.

    Parameters
    ----------
    columns : dict of str to array of float, shape (chains * draws,)
        Draws, chain after chain.
    chains : int
    size : int
        Draws of such a fit, over all its chains.
    block : int
        Consecutive draws of one chain that stay together; at most a twentieth of a chain.
    resamples : int
    seed : int

    Returns
    -------
    DataFrame
        Standard deviations over the fits, one line a column: ``mean, sd, hdi_low, hdi_high, median, low,
        high``.

    References
    ----------
    Kunsch (1989), The jackknife and the bootstrap for general stationary observations.

    Examples
    --------
    >>> values = np.random.default_rng(1).normal(size=40_000)
    >>> found = monte_carlo({"a": values}, chains=4, size=8000)
    >>> found.loc["a", "mean"].round(3).item()  # 1 / sqrt(8000)
    0.011
    """
    rng = np.random.default_rng(seed)
    length = len(next(iter(columns.values()))) // chains
    block = max(1, min(block, length // 20))
    blocks = chains * (length // block)
    taken = rng.integers(blocks, size=(resamples, max(1, size // block)))
    out = {}
    for name, values in columns.items():
        cut = values.reshape(chains, length)[:, : length // block * block].reshape(blocks, block)
        described = describe(cut[taken].reshape(resamples, -1))
        out[name] = {statistic: found.std(ddof=1) for statistic, found in described.items()}
    return pd.DataFrame(out).T


def diagnose(draws, terms):
    """Convergence: rank-normalized split R-hat and effective sample sizes.

    Parameters
    ----------
    draws : DataFrame
        ``chain``, in order, and a column a term.
    terms : sequence of str

    Returns
    -------
    DataFrame
        Indexed by term: ``rhat, ess_bulk, ess_tail``.

    References
    ----------
    Vehtari et al. (2021), Rank-normalization, folding, and localization: an improved R-hat, through arviz.

    Examples
    --------
    >>> values = np.random.default_rng(1).normal(size=1000)
    >>> noise = pd.DataFrame({"chain": np.repeat([0, 1], 500), "a": values})
    >>> diagnose(noise, ["a"]).loc["a", "rhat"].round(1).item()  # doctest: +SKIP
    1.0
    """
    import arviz  # slow

    chains = draws["chain"].nunique()
    lines = {}
    for term in terms:
        values = draws[term].to_numpy(float).reshape(chains, -1)
        lines[term] = {
            "rhat": arviz.rhat(values), "ess_bulk": arviz.ess(values, method="bulk"),
            "ess_tail": arviz.ess(values, method="tail", prob=(0.05, 0.95)),
        }
    return pd.DataFrame.from_dict(lines, orient="index").astype(float)
