"""Distributions over answer options: from log-probabilities, their mean, spread and distance."""

import numpy as np
from scipy import special
from scipy import stats as sps
from scipy.spatial.distance import jensenshannon

SUM_TOLERANCE = 1e-6
SMALLEST = 1e-300


def _distribution(p, name):
    p = np.asarray(p, dtype=float)
    if p.ndim == 0 or not p.size:
        raise ValueError(f"{name} of shape {p.shape}: expected probabilities along the last axis")
    if not (p >= 0).all():  # catches missing values too
        raise ValueError(f"{name}: {p[~(p >= 0)].flat[0]}, expected probabilities from 0")
    totals = p.sum(axis=-1)
    off = np.abs(totals - 1) > SUM_TOLERANCE
    if np.any(off):
        raise ValueError(f"{name}: sums to {np.atleast_1d(totals)[np.atleast_1d(off)][0]:g}, expected 1")
    return p


def softmax(logprob, temperature=1.0):
    """Distribution over the options at a read temperature.

    Parameters
    ----------
    logprob : array_like of float, shape (..., options)
        Log-probabilities or logits in nats; a constant added to all changes nothing.
    temperature : float or array_like
        Above 1 flatter, below 1 sharper.

    Returns
    -------
    ndarray of float, shape (..., options)

    Raises
    ------
    ValueError
        On a temperature that is not positive.

    Examples
    --------
    >>> softmax([0, np.log(3)]).tolist(), softmax([0, 2 * np.log(3)], 2).round(6).tolist()
    ([0.25, 0.75], [0.25, 0.75])
    """
    temperature = np.asarray(temperature, dtype=float)
    if not (temperature > 0).all():
        raise ValueError(f"temperature={temperature}: expected a positive number")
    return special.softmax(np.asarray(logprob, dtype=float) / temperature[..., None], axis=-1)


def expectation(p):
    """Mean option number, counted from 1.

    Parameters
    ----------
    p : array_like of float, shape (..., options)

    Returns
    -------
    float or ndarray of float, shape (...)
        Scale points.

    Raises
    ------
    ValueError
        On entries below 0 or a sum other than 1 (within 1e-6).

    Examples
    --------
    >>> expectation([0, 0, 0, 0.5, 0, 0, 0.5])
    5.5
    """
    p = _distribution(p, "p")
    out = p @ np.arange(1.0, p.shape[-1] + 1)
    return float(out) if np.ndim(out) == 0 else out


def entropy(p):
    """Shannon entropy in bits, an empty option counting nothing.

    Parameters
    ----------
    p : array_like of float, shape (..., options)

    Returns
    -------
    float or ndarray of float, shape (...)

    Raises
    ------
    ValueError
        On entries below 0 or a sum other than 1 (within 1e-6).

    Examples
    --------
    >>> entropy([0.5, 0.5, 0]), entropy([[1, 0], [0.5, 0.5]]).tolist()
    (1.0, [0.0, 1.0])
    """
    out = sps.entropy(_distribution(p, "p"), base=2, axis=-1)
    return float(out) if np.ndim(out) == 0 else out


def js_distance(p, q):
    """Jensen-Shannon distance: the square root of the divergence in bits, 0 for equal, 1 for disjoint.

    Parameters
    ----------
    p, q : array_like of float, shape (..., options)

    Returns
    -------
    float or ndarray of float, shape (...)

    Raises
    ------
    ValueError
        On entries below 0, a sum other than 1 (within 1e-6), or different numbers of options.

    References
    ----------
    Lin (1991); Endres and Schindelin (2003). Through scipy.

    Examples
    --------
    >>> js_distance([1, 0], [0, 1]), js_distance([0.5, 0.5], [0.5, 0.5])
    (1.0, 0.0)
    """
    p, q = _distribution(p, "p"), _distribution(q, "q")
    if p.shape[-1] != q.shape[-1]:
        raise ValueError(f"p has {p.shape[-1]} options and q has {q.shape[-1]}: expected the same options")
    # A probability that halves to 0 would lie infinitely far from the midpoint.
    p, q = (np.where(v < SMALLEST, 0, v) for v in (p, q))
    # Rounding can leave the divergence of near equals a hair below 0, where scipy takes the root of it.
    with np.errstate(invalid="ignore"):
        out = jensenshannon(p, q, base=2, axis=-1)
    out = np.where(np.isnan(out), 0.0, out)
    return float(out) if np.ndim(out) == 0 else out
