"""Reads of seven option letters: from a server's list of tokens to log-probabilities that may be used."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from analysis.errors import DataError, choice
from analysis.layers import gates
from analysis.layers.distributions import softmax
from analysis.layers.frames import need, once

N_OPTIONS = 7
MODES = ("reasoning_off", "reasoning_on")
SENTINEL = -9990.0  # servers write such a number where they have none
LARGEST_MASS = 1.01  # above 1 by more than rounding: not log-probabilities
_SPACES = " \t\n▁Ġ"  # blanks, and the signs for a leading blank in two common vocabularies


class OptionRead(NamedTuple):
    """Result of `option_logprobs`; `censored` options have NaN, `reason` is empty for a complete read."""

    logprob: np.ndarray
    censored: tuple[str, ...]
    reason: str


def option_logprobs(alternatives, options):
    """Log-probabilities of the option letters from a server's list of likeliest tokens.

    Parameters
    ----------
    alternatives : mapping of str to float, or sequence of (str, float)
        Tokens and their log-probabilities in nats, of the full vocabulary or of the k likeliest.
    options : sequence of str
        The seven letters in the order of the scale. Tokens that differ from a letter only by blanks around it
        are the same option: their probabilities are added.

    Returns
    -------
    OptionRead
        A letter outside the list is ``censored``: no number is made up for it. `reason` is then
        ``censored_top_two`` if one of them could be among the two likeliest options, so that not even the
        margin is known, else ``censored``; neither read is valid.

    Raises
    ------
    DataError
        On an empty list, or log-probabilities that are no numbers or above 0.
    ValueError
        On other than seven different letters.

    Examples
    --------
    >>> tokens = {"A": -0.5, " A": -3.0, "B": -1.5, "C": -3.2, "the": -4.0}
    >>> read = option_logprobs(tokens, "ABCDEFG")
    >>> read.logprob.round(3).tolist()[:3], read.censored, read.reason
    ([-0.421, -1.5, -3.2], ('D', 'E', 'F', 'G'), 'censored')
    """
    options = list(options)
    if len(options) != N_OPTIONS or len(set(options)) != N_OPTIONS:
        raise ValueError(f"options={options!r}: expected {N_OPTIONS} different letters")
    pairs = list(alternatives.items() if hasattr(alternatives, "items") else alternatives)
    if not pairs:
        raise DataError("alternatives: none, expected tokens with their log-probabilities")
    found = {option: [] for option in options}
    for token, value in pairs:
        if not np.isreal(value) or not value <= 0:
            raise DataError(f"alternatives, token {token!r}: {value!r}, expected a log-probability of at "
                            "most 0")
        found.get(token.strip(_SPACES), []).append(value)
    logprob = np.array([logsumexp(found[option]) if found[option] else np.nan for option in options])
    censored = tuple(option for option in options if not found[option])
    if not censored:
        return OptionRead(logprob, censored, "")
    # A letter that is not listed may have two spellings, each just below the last one listed.
    most = min(value for _, value in pairs) + np.log(2)
    seen = np.sort(logprob[~np.isnan(logprob)])
    unknown = len(seen) < 2 or seen[-2] <= most
    return OptionRead(logprob, censored, "censored_top_two" if unknown else "censored")


def logprobs(reads):
    """The seven log-probabilities of every read as an array.

    Parameters
    ----------
    reads : DataFrame
        ``logprob`` (seven numbers a row, missing ones None or NaN) or the columns ``logprob_1`` to
        ``logprob_7``.

    Returns
    -------
    ndarray of float, shape (reads, 7)

    Raises
    ------
    DataError
        On a read with another number of values.

    Examples
    --------
    >>> logprobs(pd.DataFrame({"read_id": ["r"], "logprob": [[-1.0, -2, -2, -3, -4, -5, -6]]})).shape
    (1, 7)
    """
    columns = [f"logprob_{k}" for k in range(1, N_OPTIONS + 1)]
    if set(columns) <= set(reads.columns):
        return reads[columns].to_numpy(dtype=float)
    need(reads, "reads", ["logprob"])
    for i, values in enumerate(reads["logprob"]):
        if np.ndim(values) != 1 or len(values) != N_OPTIONS:
            name = reads["read_id"].iloc[i] if "read_id" in reads else i
            raise DataError(f"reads, read {name!r}, field 'logprob': {values!r}, expected {N_OPTIONS} "
                            "numbers")
    return np.array(reads["logprob"].tolist(), dtype=float).reshape(len(reads), N_OPTIONS)


def check_reads(reads, *, generation="reasoning_off"):
    """Which reads may be used, and why not.

    Parameters
    ----------
    reads : DataFrame
        ``read_id``, log-probabilities (see `logprobs`), ``generation_mode``, ``probe_mode``.
    generation : {"reasoning_off", "reasoning_on"}
        Mode in which the turns were generated. "reasoning_on" is a robustness run; the probe itself is always
        read with reasoning off.

    Returns
    -------
    DataFrame
        On the index of `reads`: ``read_id``; ``mass``, the probability on the seven letters; ``largest``, the
        largest share of one option at temperature 1; ``valid``; ``reason``, empty for valid reads, else
        ``censored`` (a missing value), ``not_finite``, ``sentinel``, ``all_equal``, ``not_log_probabilities``
        (mass above 1), ``letter_mass`` (below 0.5), ``generation_mode`` or ``probe_mode``, the first that
        holds.

    Raises
    ------
    DataError
        On missing columns, an unknown mode or a read id used twice.

    References
    ----------
    "Layered Analysis of Disagreement", instrument of the stance probe.

    Examples
    --------
    >>> reads = pd.DataFrame({"read_id": ["a", "b"], "generation_mode": "reasoning_off",
    ...                       "probe_mode": "reasoning_off",
    ...                       "logprob": [[-9, -8, -7.2, -5.8, -3.9, -1.5, -.32],
    ...                                   [-9, -9, -9, -9, -8, -6, -4]]})
    >>> checked = check_reads(reads)
    >>> checked.mass.round(6).tolist(), checked.reason.tolist()
    ([0.973754, 0.021623], ['', 'letter_mass'])
    """
    choice("generation", generation, MODES)
    modes = {"generation_mode": MODES, "probe_mode": MODES}
    need(reads, "reads", ["read_id", *modes], allowed=modes)
    once(reads, "reads", ["read_id"])
    logprob = logprobs(reads)
    finite = np.isfinite(logprob).all(axis=1)
    sentinel = (logprob <= SENTINEL).any(axis=1)
    mass, largest = np.full((2, len(reads)), np.nan)
    usable = finite & ~sentinel
    with np.errstate(over="ignore"):
        mass[usable] = np.exp(logprob[usable]).sum(axis=1)
    largest[usable] = softmax(logprob[usable]).max(axis=1)
    reasons = [
        ("censored", np.isnan(logprob).any(axis=1)),
        ("not_finite", ~finite),
        ("sentinel", sentinel),
        ("all_equal", usable & (np.ptp(np.where(usable[:, None], logprob, 0.0), axis=1) == 0)),
        ("not_log_probabilities", mass > LARGEST_MASS),
        ("letter_mass", mass < gates.LETTER_MASS.limit),
        ("generation_mode", (reads["generation_mode"] != generation).to_numpy()),
        ("probe_mode", (reads["probe_mode"] != "reasoning_off").to_numpy()),
    ]
    reason = np.select([holds for _, holds in reasons], [name for name, _ in reasons], default="")
    return pd.DataFrame({"read_id": reads["read_id"], "mass": mass, "largest": largest,
                         "valid": reason == "", "reason": pd.Series(reason, reads.index, dtype="str")})
