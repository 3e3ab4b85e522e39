"""Statements with a known side: the read temperature they call for, and how well they are told apart."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from analysis.errors import DataError
from analysis.layers import stance
from analysis.layers.agreement import auroc, auroc_interval
from analysis.layers.distributions import softmax
from analysis.layers.frames import constant_within, need
from analysis.layers.results import Result
from analysis.layers.stance_reads import N_OPTIONS, logprobs

SIDES = ("agree", "disagree")
FIT_RANGE = (0.25, 16.0)


class TemperatureFit(NamedTuple):
    """Result of `fit_temperature`; flag ``degenerate``: no temperature inside the range is best."""

    temperature: float
    loss: float
    n: int
    flags: tuple[str, ...]


def signed_margin(logprob):
    """Log-odds of the upper against the lower options, the middle one left out.

    Parameters
    ----------
    logprob : array_like of float, shape (..., 7)

    Returns
    -------
    ndarray of float, shape (...)
        Nats; positive towards agreement.

    Examples
    --------
    >>> float(signed_margin([-3, -2.5, -2, -1.5, -1.2, -1.6, -2.2]).round(6))
    0.831797
    """
    logprob = np.asarray(logprob, dtype=float)
    return logsumexp(logprob[..., stance.MIDDLE:], axis=-1) - logsumexp(logprob[..., :stance.MIDDLE - 1],
                                                                        axis=-1)


def _gold(logprob, side):
    logprob = np.asarray(logprob, dtype=float)
    side = pd.Series(np.asarray(side, dtype=object))
    if logprob.ndim != 2 or logprob.shape[1] != N_OPTIONS or len(logprob) != len(side):
        raise DataError(f"gold reads of shape {logprob.shape} with {len(side)} sides: expected (reads, "
                        f"{N_OPTIONS}) and a side for each")
    bad = ~side.isin(SIDES)
    if bad.any():
        at = int(bad.to_numpy().argmax())
        raise DataError(f"gold read {at}, field 'side': {side[at]!r}, expected one of {', '.join(SIDES)}")
    if not np.isfinite(logprob).all():
        at = int((~np.isfinite(logprob)).any(axis=1).argmax())
        raise DataError(f"gold read {at}, field 'logprob': not finite, expected valid reads only (see "
                        "check_reads)")
    return logprob, (side == "agree").to_numpy()


def gold_loss(logprob, side, temperature):
    """Mean negative log-likelihood of the known sides.

    Parameters
    ----------
    logprob : array_like of float, shape (reads, 7)
    side : sequence of {"agree", "disagree"}
    temperature : float

    Returns
    -------
    float
        Nats. The probability of agreement is that of options 5 to 7 and half of option 4.

    Examples
    --------
    >>> round(gold_loss([[-4, -3, -2.5, -1.5, -1, -1.2, -2]], ["agree"], 1.0), 4)
    0.2514
    """
    logprob, agrees = _gold(logprob, side)
    return float(-np.log(_right(softmax(logprob, temperature), agrees)).mean())


def _right(p, agrees):
    """Return the probability of the known side."""
    p = np.where(agrees[:, None], p, p[:, ::-1])
    return np.maximum(p[:, stance.MIDDLE:].sum(axis=1) + p[:, stance.MIDDLE - 1] / 2, np.finfo(float).tiny)


def fit_temperature(logprob, side):
    """Read temperature that makes a model's reads of known stances best calibrated.

    Parameters
    ----------
    logprob : array_like of float, shape (reads, 7)
        Valid reads of statements with a known side, none of them in the study.
    side : sequence of {"agree", "disagree"}

    Returns
    -------
    TemperatureFit
        Least `gold_loss` over temperatures 0.25 to 16. Flags: ``degenerate`` at an end of that range
        (magnitudes at this temperature mean nothing), ``one_class``.

    Raises
    ------
    DataError
        On no reads, an unknown side, or values that are not finite.

    References
    ----------
    Guo et al. (2017), On calibration of modern neural networks. The paper names neither loss nor range.

    Examples
    --------
    >>> reads = [[-4, -3, -2.5, -1.5, -1, -1.2, -2], [-1, -1.2, -2, -2.2, -3, -3.5, -4],
    ...          [-3, -2.8, -1.9, -1.2, -1, -2, -2.5], [-5, -4, -3, -2, -1, -.9, -1.5]]
    >>> fit = fit_temperature(reads, ["agree", "disagree", "disagree", "agree"])
    >>> round(fit.temperature, 4), round(fit.loss, 6), fit.flags
    (0.6502, 0.373606, ())
    """
    logprob, agrees = _gold(logprob, side)
    if not len(logprob):
        raise DataError("gold reads: none, expected reads of statements with a known side")

    def loss(log_t):
        return float(-np.log(_right(softmax(logprob, np.exp(log_t)), agrees)).mean())

    # The loss need not have one minimum only, so a grid finds the lowest valley and Brent its floor.
    low, high = np.log(FIT_RANGE)
    steps = np.linspace(low, high, 200)
    losses = [loss(step) for step in steps]
    best = int(np.argmin(losses))
    found = minimize_scalar(loss, bounds=(steps[max(best - 1, 0)], steps[min(best + 1, len(steps) - 1)]),
                            method="bounded", options={"xatol": 1e-10})
    least, log_temperature = min((found.fun, found.x), (losses[best], steps[best]))
    temperature = np.exp(log_temperature)
    flags = []
    if min(log_temperature - low, high - log_temperature) < 1e-4:
        flags.append("degenerate")
    if agrees.all() or not agrees.any():
        flags.append("one_class")
    return TemperatureFit(float(temperature), float(least), len(logprob), tuple(flags))


def gold_auroc(gold, *, draws=10_000, seed=0):
    """How well each receiver's signed margin separates statements to agree with from those to disagree with.

    Parameters
    ----------
    gold : DataFrame
        ``receiver_model, proposition_id, side`` ("agree", "disagree") and log-probabilities (see
        `stance_reads.logprobs`) of valid reads. Several reads of a statement are averaged first.
    draws, seed : int
        Of the bootstrap over statements.

    Returns
    -------
    dict of str to Result
        By receiver, descriptive: no ranking of models follows. "undefined" with the flag ``one_class`` where
        all statements have one side. This is not the separation of real from irrelevant arguments on debate
        cells.

    Raises
    ------
    DataError
        On a statement with both sides, an unknown side, or values that are not finite.

    References
    ----------
    Hanley and McNeil (1982). "Layered Analysis of Disagreement", limits of stance-change scores.

    Examples
    --------
    >>> gold = pd.DataFrame({"receiver_model": "m", "proposition_id": list("abc"),
    ...     "side": ["agree", "disagree", "agree"], "logprob": [[-4, -3, -2.5, -1.5, -1, -1.2, -2],
    ...     [-1, -1.2, -2, -2.2, -3, -3.5, -4], [-5, -4, -3, -2, -1, -.9, -1.5]]})
    >>> gold_auroc(gold)["m"].estimate
    1.0
    """
    need(gold, "gold reads", ["receiver_model", "proposition_id", "side"], allowed={"side": SIDES})
    constant_within(gold, "gold reads", "proposition_id", ["side"])
    logprob, _ = _gold(logprobs(gold), gold["side"])
    frame = pd.DataFrame({"receiver": gold["receiver_model"].to_numpy(),
                          "item": gold["proposition_id"].to_numpy(),
                          "side": gold["side"].to_numpy(), "margin": signed_margin(logprob)})
    out = {}
    for name, part in frame.groupby("receiver", sort=False):
        items = part.groupby("item").agg(margin=("margin", "mean"), side=("side", "first"))
        scores = {side: items["margin"][items["side"] == side].to_numpy() for side in SIDES}
        found = auroc(*scores.values())
        result = Result("gold_auroc", found.value, "probability", n_units=len(items), unit_name="statement",
                        n_rows=len(part), role="descriptive", seed=seed).with_flags(*found.flags)
        if found.flags:
            out[name] = replace(result, status="undefined")
            continue
        around = auroc_interval(*scores.values(), draws=draws, seed=seed)
        out[name] = replace(result, low=around.low, high=around.high, interval=around.method,
                            n_boot=around.n_boot,
                            n_undefined=around.n_undefined).with_flags(*around.flags)
    return out
