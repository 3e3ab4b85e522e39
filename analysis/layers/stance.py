"""A receiver's stance in its own token probabilities: where it stands and how sure it is.

A read holds the log-probabilities of seven option letters at the answer position, at temperature 1. A cell is
a read before (prior), after an opponent's turn (treat) and after filler of the same length (control); all
that is reported is treat minus control. Direction is in scale points, conviction in nats. Contrasts over
propositions are in `analysis.layers.stance_contrasts`, what makes a read valid in `stance_reads`, whose names
are found here too.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import elementwise

from analysis.errors import DataError, choice
from analysis.layers import gates
from analysis.layers.distributions import entropy, expectation, softmax
from analysis.layers.frames import need
from analysis.layers.stance_reads import MODES, N_OPTIONS, option_logprobs  # noqa: F401
from analysis.layers.stance_reads import check_reads, logprobs

MIDDLE = 4
PHASES = ("prior", "treat", "control")
KINDS = ("strong", "weak", "irrelevant")
STANCES = ("friendly", "hostile")
ANCHORS = ("own", "peak")
READ_T = 2.0
SIGN_TEMPERATURES = (1.0, 2.0, 4.0, 8.0)
NO_LEAN = 0.05
SATURATED_READ = 0.9
LENGTH_TOLERANCE = 0.10
HEAT_RANGE = (1e-3, 1e3)
HEAT_TOLERANCE = 1e-10  # bits
STILL = 1e-9  # a movement below this is none


class Direction(NamedTuple):
    """Result of `direction`: arrays over cells, scale points towards the opponent; `heat` is a ratio."""

    raw: np.ndarray
    null: np.ndarray
    heat_free: np.ndarray
    heat: np.ndarray
    matched: np.ndarray


# --- one read or one cell -----------------------------------------------------------------------------------

def opponent_pole(prior, temperature=READ_T):
    """The end that an opponent has to argue for: the other one than the prior leans to.

    Parameters
    ----------
    prior : array_like of float, shape (..., 7)
        Log-probabilities.
    temperature : float

    Returns
    -------
    int or ndarray of int, shape (...)
        1 (towards option 7), -1 (towards option 1), or 0 for a prior without lean: its expectation is within
        0.05 of the middle.

    Examples
    --------
    >>> opponent_pole([-9, -8.2, -7.5, -6, -4, -1.7, -.26]), opponent_pole([-2, -2, -2, -2, -2, -2, -2])
    (-1, 0)
    """
    off = np.asarray(expectation(softmax(prior, temperature))) - MIDDLE
    out = np.where(np.abs(off) < NO_LEAN, 0, -np.sign(off)).astype(int)
    return int(out) if out.ndim == 0 else out


def own_margin(logprob, own):
    """Lead of one option over the best of the others; negative once another leads.

    Parameters
    ----------
    logprob : array_like of float, shape (..., 7)
    own : array_like of int, shape (...)
        Position of the option, counted from 0.

    Returns
    -------
    ndarray of float, shape (...)
        Nats. A constant added to all log-probabilities changes nothing.

    Examples
    --------
    >>> own_margin([[-7, -5, -3.5, -2, -1.1, -1.3, -1.9], [-9, -8, -7.2, -5.8, -3.9, -1.5, -.32]],
    ...            [6, 6]).round(2)
    array([-0.8 ,  1.18])
    """
    logprob = np.asarray(logprob, dtype=float)
    mine = np.arange(logprob.shape[-1]) == np.asarray(own)[..., None]
    lead = np.where(mine, logprob, -np.inf).max(axis=-1)
    return lead - np.where(mine, -np.inf, logprob).max(axis=-1)


def peak_margin(logprob):
    """Gap between the two likeliest options, whichever they are; never negative.

    Parameters
    ----------
    logprob : array_like of float, shape (..., 7)

    Returns
    -------
    ndarray of float, shape (...)
        Nats.

    Examples
    --------
    >>> float(peak_margin([-7, -5, -3.5, -2, -1.1, -1.3, -1.9]).round(2))
    0.2
    """
    ordered = np.sort(np.asarray(logprob, dtype=float), axis=-1)
    return ordered[..., -1] - ordered[..., -2]


def conviction(prior, control, treat, *, anchor="own"):
    """Change of the margin on the receiver's own stance; negative is erosion.

    Parameters
    ----------
    prior, control, treat : array_like of float, shape (..., 7)
        Log-probabilities at temperature 1.
    anchor : {"own", "peak"}
        "own" follows the option that led before; "peak" takes the gap of the two largest of each read, which
        hides a reversal (the authors' toolkit). They agree until another option leads.

    Returns
    -------
    ndarray of float, shape (...)
        Nats, treat minus control. Not comparable across models.

    References
    ----------
    "Layered Analysis of Disagreement", definition of conviction.

    Examples
    --------
    >>> prior, control = [-9, -8.2, -7.5, -6, -4, -1.7, -.26], [-9, -8, -7.2, -5.8, -3.9, -1.5, -.32]
    >>> treat = [-7, -5, -3.5, -2, -1.1, -1.3, -1.9]
    >>> [float(conviction(prior, control, treat, anchor=anchor).round(2)) for anchor in ("own", "peak")]
    [-1.98, -0.98]
    """
    choice("anchor", anchor, ANCHORS)
    if anchor == "peak":
        return peak_margin(treat) - peak_margin(control)
    own = np.asarray(prior, dtype=float).argmax(axis=-1)
    return own_margin(treat, own) - own_margin(control, own)


def heat_match(control, treat, temperature=READ_T):
    """The temperature ratio at which the control is as spread out as the treated read.

    Parameters
    ----------
    control, treat : array_like of float, shape (cells, 7)
        Log-probabilities.
    temperature : float
        Read temperature of both.

    Returns
    -------
    heat, matched : ndarray of float, ndarray of bool, shape (cells,)
        NaN and False where no temperature does it: a control with r tied maxima cannot fall below log2 r bits
        (nor can any reach the spread of a uniform read). A uniform control stays as it is, 1 and True.

    References
    ----------
    "Layered Analysis of Disagreement", heat-matched null. Root by Chandrupatla's bracketing method (scipy).

    Examples
    --------
    >>> heat, matched = heat_match([[0, 1, 2, 3, 2, 1, 0.]], [[0, .5, 1, 1.5, 1, .5, 0]])
    >>> heat.round(9).tolist(), matched.tolist()
    ([2.0], [True])
    """
    control, treat = (np.atleast_2d(np.asarray(x, dtype=float)) / temperature for x in (control, treat))
    target = np.atleast_1d(entropy(softmax(treat)))
    now = np.atleast_1d(entropy(softmax(control)))
    heat = np.full(len(control), np.nan)
    tied = (control >= control.max(axis=1, keepdims=True) - 1e-12).sum(axis=1)
    heat[(tied == N_OPTIONS) | (np.abs(target - now) <= HEAT_TOLERANCE / 10)] = 1.0
    open_ = np.isnan(heat) & (target >= np.log2(tied) - HEAT_TOLERANCE) & (target < np.log2(N_OPTIONS))
    at = np.flatnonzero(open_)
    if at.size:
        def excess(log_heat, i):
            p = softmax(control[i.astype(int)], np.exp(log_heat))
            return entropy(p) - target[i.astype(int)]

        ends = np.log(HEAT_RANGE)
        found = elementwise.find_root(excess, ends, args=(at.astype(float),), maxiter=200, tolerances={
            "xatol": 1e-14, "xrtol": 1e-14, "fatol": HEAT_TOLERANCE / 100, "frtol": 0})
        # Entropies near 0 may not be told from 0 at the cold end, which then is the match.
        cold = np.abs(excess(np.full(len(at), ends[0]), at)) <= HEAT_TOLERANCE
        solved = found.success | (np.abs(found.f_x) <= HEAT_TOLERANCE)
        heat[at] = np.where(solved, np.exp(found.x), np.where(cold, HEAT_RANGE[0], np.nan))
    return heat, ~np.isnan(heat)


def direction(control, treat, pole, *, temperature=READ_T):
    """Shift of the mean stance towards the opponent, with and without what heating alone would shift.

    Parameters
    ----------
    control, treat : array_like of float, shape (cells, 7)
        Log-probabilities.
    pole : array_like of int, shape (cells,)
        1 if the opponent argues towards option 7, -1 towards option 1.
    temperature : float
        Read temperature; magnitudes, and in some cells signs, depend on it.

    Returns
    -------
    Direction
        ``raw`` = pole x (E_treat - E_control); ``null`` the same for the control heated to the entropy of the
        treated read; ``heat_free`` = raw - null, NaN where not ``matched``; ``heat`` the ratio of
        temperatures.

    Notes
    -----
    The unit is scale points (the antisymmetric part of a change of probabilities, weighted by option
    numbers), though the paper prints "nats".

    References
    ----------
    "Layered Analysis of Disagreement", definition of direction.

    Examples
    --------
    >>> control = [[-9, -8, -7.2, -5.8, -3.9, -1.5, -.32]] * 2
    >>> treat = [[-7, -5.5, -4.5, -3, -2.2, -1.4, -.8], [-7, -5, -3.5, -2, -1.1, -1.3, -1.9]]
    >>> found = direction(control, treat, [-1, -1])
    >>> found.raw.round(3).tolist(), found.heat_free.round(3).tolist()
    ([0.679, 1.147], [0.004, 0.258])
    """
    control, treat = (np.atleast_2d(np.asarray(x, dtype=float)) for x in (control, treat))
    pole = np.broadcast_to(np.asarray(pole, dtype=float), len(control))
    before = expectation(softmax(control, temperature))
    after = expectation(softmax(treat, temperature))
    heat, matched = heat_match(control, treat, temperature)
    heated = expectation(softmax(control, temperature * np.where(matched, heat, 1.0)))
    heated = np.where(matched, heated, np.nan)
    raw, null = pole * (after - before), pole * (heated - before)
    return Direction(raw, null, raw - null, heat, matched)


def temperature_signs(control, treat, pole, *, temperatures=SIGN_TEMPERATURES):
    """Signs of the shift at several read temperatures.

    Parameters
    ----------
    control, treat, pole
        As in `direction`.
    temperatures : sequence of float

    Returns
    -------
    DataFrame
        One line a cell: ``raw_1``, ``heat_free_1`` and so on, -1, 0 or 1 (NaN where no heat matches), and
        ``unstable``: the raw or the heat-free sign differs between two temperatures.

    Notes
    -----
    The paper calls signs invariant; that holds for margins and leading options, not for differences of means.

    Examples
    --------
    >>> signs = temperature_signs([[4.4, -5.4, -2.6, 1.9, 3.5, -.4, 2.4]],
    ...                           [[-1.8, -1.8, 3.8, .1, -2.3, -3.1, -3.1]], [1], temperatures=(1, 8))
    >>> signs.astype(int).iloc[0].tolist()
    [1, 1, -1, -1, 1]
    """
    out = {}
    for temperature in temperatures:
        found = direction(control, treat, pole, temperature=temperature)
        for name in ("raw", "heat_free"):
            value = getattr(found, name)
            out[f"{name}_{temperature:g}"] = np.where(np.abs(value) < STILL, 0.0, np.sign(value))
    frame = pd.DataFrame(out)
    several = [frame.filter(regex=f"^{name}_").nunique(axis=1) > 1 for name in ("raw", "heat_free")]
    return frame.assign(unstable=several[0] | several[1])


# --- self-tests ---------------------------------------------------------------------------------------------

_POLE_READS = ([0, 0, 0, 0, 0, 0, 10], [-9, -8, -7.2, -5.8, -3.9, -1.5, -0.32], [6, 2, 1, 0, -1, -2, -4])
_PEAK = [0, 1, 2, 3, 2, 1, 0]
_SHIFTED = [0, 0, 1, 2, 3, 2, 1]
_FLATTER = [0, 0.5, 1, 1.5, 1, 0.5, 0]
_TWO_PEAKS = ([5, 5, 0, 0, 0, 0, 0], [9, 0, 0, 0, 0, 0, 0])


def self_test(measure=direction):
    """Reads of known kind put through the measure of direction.

    Parameters
    ----------
    measure : callable
        `direction`, or another function with its arguments and result.

    Returns
    -------
    DataFrame
        ``test, temperature, raw, heat_free, rule, passed``. The kinds: a pole that is merely heated (raw
        moves, heat-free does not, by construction); a shift without heating (must survive whole, or a measure
        that always returns 0 would pass); a symmetric flattening (moves nothing); a control with two tied
        maxima, which no temperature matches (no value).

    References
    ----------
    "Layered Analysis of Disagreement", definition of direction, gives the first kind.

    Examples
    --------
    >>> self_test().groupby("test", sort=False).passed.all().to_dict()
    {'heated pole': True, 'shift': True, 'flattening': True, 'unmatched': True}
    """
    rows = []

    def run(test, control, treat, pole, temperature, rule, holds):
        found = measure(np.array([control], dtype=float), np.array([treat], dtype=float), [pole],
                        temperature=temperature)
        raw, free = float(found.raw[0]), float(found.heat_free[0])
        rows.append((test, temperature, raw, free, rule, bool(holds(raw, free))))

    for temperature in SIGN_TEMPERATURES:
        for read in _POLE_READS:
            pole = 1 if read[0] > read[-1] else -1
            for heat in (1.7, 3.0):
                run("heated pole", read, np.array(read) / heat, pole, temperature, "raw > 0, heat-free 0",
                    lambda raw, free: raw > STILL and abs(free) < STILL)
        for control, treat, pole in ((_PEAK, _SHIFTED, 1), (_PEAK[::-1], _SHIFTED[::-1], -1)):
            # What is compared is the shift worked out from the two reads alone.
            shift = pole * (expectation(softmax(treat, temperature)) - expectation(softmax(control,
                                                                                           temperature)))
            run("shift", control, treat, pole, temperature, "heat-free = raw > 0",
                lambda raw, free, shift=shift: shift > STILL and abs(raw - shift) + abs(free - shift) < STILL)
        run("flattening", _PEAK, _FLATTER, 1, temperature, "raw 0, heat-free 0",
            lambda raw, free: abs(raw) < STILL and abs(free) < STILL)
    run("unmatched", *_TWO_PEAKS, 1, READ_T, "no heat-free value", lambda raw, free: np.isnan(free))
    return pd.DataFrame(rows, columns=["test", "temperature", "raw", "heat_free", "rule", "passed"])


@cache
def self_test_gate():
    """Gate over all rows of `self_test`, run once a process.

    Returns
    -------
    Gate
        `value` is the share of tests passed; every one must.

    Examples
    --------
    >>> self_test_gate().passed
    True
    """
    return gates.check(gates.SELF_TEST, self_test().passed.mean())


# --- tables of cells ----------------------------------------------------------------------------------------

def read_cells(reads, cells, *, temperature=READ_T, generation="reasoning_off", signs=True):
    """Everything measured in every cell.

    Parameters
    ----------
    reads : DataFrame
        ``read_id, receiver_model, proposition_id, phase, generation_mode, probe_mode``, log-probabilities
        (see `logprobs`), optional ``n_prompt_tokens``.
    cells : DataFrame
        ``receiver, opponent, proposition_id, stance`` (friendly, hostile), ``kind`` (strong, weak,
        irrelevant), ``pole`` (1, -1), ``prior, treat, control`` (read ids). Other columns are kept.
    temperature : float
        Read temperature of everything that goes through probabilities; margins are read at 1.
    generation : {"reasoning_off", "reasoning_on"}
        As in `check_reads`.
    signs : bool
        Whether to look for signs that depend on the temperature (four more heat matches).

    Returns
    -------
    DataFrame
        The cells, in order, with

        - ``valid, reason``: a cell counts only if its three reads do (``treat_letter_mass``, ...), the prior
          leans (else ``no_lean``), the opponent argues the other end (else ``pole_with_lean``) and filler and
          turn differ by at most a tenth in length (else ``control_length``; not checked without tokens).
          The numbers below are missing in cells that are not valid;
        - ``E_prior, E_treat, E_control``: expectation, scale points;
        - ``bucket``: "pole" if the prior's single leading option is 1 or 7, else "mid"; ``saturated``: an
          option holds more than 0.9 of the prior at temperature 1; ``largest``: smallest of the three reads'
          largest shares; ``prior_margin``: nats;
        - ``conviction_own, conviction_peak``: nats; ``anchors_differ``;
        - ``raw_shift, heat_shift, heat_free_shift``: scale points; ``heat``; ``heat_matched``;
          ``T_unstable``;
        - ``argmax_flip`` (bool), ``argmax_shift`` (options towards the opponent).

    Raises
    ------
    DataError
        On missing columns, unknown values, a read that is not there or belongs to another receiver,
        proposition or phase, or an opponent of the receiver's own.

    References
    ----------
    "Layered Analysis of Disagreement", stance probe.

    Examples
    --------
    >>> reads = pd.DataFrame({
    ...     "read_id": list("pct"), "receiver_model": "m", "proposition_id": "x",
    ...     "phase": ["prior", "control", "treat"], "generation_mode": "reasoning_off",
    ...     "probe_mode": "reasoning_off",
    ...     "logprob": [[-9, -8.2, -7.5, -6, -4, -1.7, -.26], [-9, -8, -7.2, -5.8, -3.9, -1.5, -.32],
    ...                 [-7, -5, -3.5, -2, -1.1, -1.3, -1.9]]})
    >>> cells = pd.DataFrame({"receiver": ["m"], "opponent": "o", "proposition_id": "x", "stance": "hostile",
    ...                       "kind": "strong", "pole": -1, "prior": "p", "treat": "t", "control": "c"})
    >>> read_cells(reads, cells)[["bucket", "conviction_own", "heat_free_shift"]].round(3)
      bucket  conviction_own  heat_free_shift
    0   pole           -1.98            0.258
    """
    _check_cells(cells)
    need(reads, "reads", ["read_id", "receiver_model", "proposition_id", "phase"], allowed={"phase": PHASES})
    checked = check_reads(reads, generation=generation)
    every = logprobs(reads)
    rows = _rows_of(reads, cells)
    logprob = {phase: every[at] for phase, at in rows.items()}
    lean = np.zeros(len(cells), dtype=int)
    usable = checked["valid"].to_numpy()[rows["prior"]]
    if usable.any():
        lean[usable] = opponent_pole(logprob["prior"][usable], temperature)
    pole = cells["pole"].to_numpy(dtype=int)
    matched = _length_matched(reads, rows)

    reasons = []
    for phase in PHASES:
        reason = checked["reason"].to_numpy()[rows[phase]]
        reasons.append((reason != "", np.char.add(f"{phase}_", reason.astype(str))))
    reasons += [(lean == 0, "no_lean"), (pole != lean, "pole_with_lean"), (matched == 0, "control_length")]
    reason = np.select([holds for holds, _ in reasons], [name for _, name in reasons], default="")
    valid = reason == ""
    out = cells.assign(valid=valid, reason=pd.Series(reason, cells.index, dtype="str"))
    out["length_matched"] = pd.Series(matched, cells.index).replace(-1, pd.NA).astype("boolean")
    largest = np.min([checked["largest"].to_numpy()[rows[phase]] for phase in PHASES], axis=0)
    measured = _measure(*(logprob[phase][valid] for phase in PHASES), pole[valid], temperature, signs)
    measured.insert(0, "largest", largest[valid])
    measured.index = cells.index[valid] if cells.index.is_unique else np.flatnonzero(valid)
    if not cells.index.is_unique:
        out = out.reset_index(drop=True)
    return out.join(measured)


_MEASURES = ["E_prior", "E_treat", "E_control", "bucket", "saturated", "prior_margin", "conviction_own",
             "conviction_peak", "anchors_differ", "raw_shift", "heat_shift", "heat_free_shift", "heat",
             "heat_matched", "T_unstable", "argmax_flip", "argmax_shift"]


def _measure(prior, treat, control, pole, temperature, signs):
    """Return the measures of valid cells, one line each."""
    if not len(prior):
        return pd.DataFrame(columns=_MEASURES, dtype=float)
    reads = {"prior": prior, "treat": treat, "control": control}
    leader = {phase: read.argmax(axis=-1) for phase, read in reads.items()}
    single = (prior == prior.max(axis=-1, keepdims=True)).sum(axis=-1) == 1
    frame = pd.DataFrame({f"E_{phase}": expectation(softmax(read, temperature)) for phase,
                          read in reads.items()})
    shift = direction(control, treat, pole, temperature=temperature)
    own, peak = (conviction(prior, control, treat, anchor=anchor) for anchor in ANCHORS)
    frame = frame.assign(
        bucket=np.where(single & np.isin(leader["prior"], (0, N_OPTIONS - 1)), "pole", "mid"),
        saturated=softmax(prior).max(axis=-1) > SATURATED_READ,
        prior_margin=own_margin(prior, leader["prior"]),
        conviction_own=own, conviction_peak=peak, anchors_differ=np.abs(own - peak) > STILL,
        raw_shift=shift.raw, heat_shift=shift.null, heat_free_shift=shift.heat_free, heat=shift.heat,
        heat_matched=shift.matched, argmax_flip=leader["treat"] != leader["control"],
        argmax_shift=pole * (leader["treat"] - leader["control"]),
    )
    frame["T_unstable"] = temperature_signs(control, treat, pole)["unstable"].to_numpy() if signs else pd.NA
    return frame[_MEASURES]


def exclusions(cells):
    """Count cells that do not enter, by reason, kind and stance.

    Parameters
    ----------
    cells : DataFrame
        From `read_cells`.

    Returns
    -------
    DataFrame
        ``receiver, reason, kind, stance, n, of``: cells left out and all cells of that receiver, kind and
        stance; empty when none is.

    Examples
    --------
    >>> cells = pd.DataFrame({"receiver": "m", "kind": ["weak", "weak"], "stance": "hostile",
    ...                       "reason": ["", "no_lean"]})
    >>> exclusions(cells).values.tolist()
    [['m', 'no_lean', 'weak', 'hostile', 1, 2]]
    """
    by = ["receiver", "kind", "stance"]
    total = cells.groupby(by).size().rename("of")
    out = cells[cells["reason"] != ""].groupby(["receiver", "reason", "kind", "stance"]).size().rename("n")
    return out.reset_index().join(total, on=by)


def saturation(cells):
    """Gates on a receiver whose reads are pinned so hard that nothing could have shown.

    Parameters
    ----------
    cells : DataFrame
        Valid cells of one receiver, from `read_cells`.

    Returns
    -------
    list of Gate
        The smallest prior margin, at most 20 nats, and the smallest of the reads' largest shares, at most
        0.999: failing one means that every read is beyond it, so the receiver is unmeasurable, not unmoved.

    References
    ----------
    "Layered Analysis of Disagreement", range limit of the margin; the limits are ours.

    Examples
    --------
    >>> [gate.passed for gate in saturation(pd.DataFrame({"prior_margin": [26.0, 25], "largest": [0.99, 1]}))]
    [False, True]
    """
    return [gates.check(gates.SATURATED_MARGIN, cells["prior_margin"].min()),
            gates.check(gates.SATURATED_SHARE, cells["largest"].min())]


# --- checks -------------------------------------------------------------------------------------------------

def _check_cells(cells):
    need(cells, "cells", ["receiver", "opponent", "proposition_id", "stance", "kind", "pole", *PHASES],
         allowed={"stance": STANCES, "kind": KINDS, "pole": (-1, 1)})
    alone = (cells["receiver"] == cells["opponent"]).to_numpy()
    if alone.any():
        at = int(alone.argmax())
        raise DataError(f"cells, row {at}, field 'opponent': {cells['opponent'].iloc[at]!r} is the receiver, "
                        "expected a model of another family")


def _rows_of(reads, cells):
    """Return, for every phase, the row of each cell's read; raise where it is not the cell's own."""
    place, out = pd.Index(reads["read_id"]), {}
    for phase in PHASES:
        at = place.get_indexer(cells[phase])
        if (at < 0).any():
            bad = int((at < 0).argmax())
            raise DataError(f"cells, row {bad}, field {phase!r}: no read {cells[phase].iloc[bad]!r}, "
                            "expected the id of a read")
        own = {"phase": phase, "receiver_model": cells["receiver"], "proposition_id": cells["proposition_id"]}
        for field, expected in own.items():
            has = reads[field].to_numpy()[at]
            wrong = has != np.asarray(expected)
            if np.any(wrong):
                bad = int(np.argmax(wrong))
                wanted = expected if isinstance(expected, str) else expected.iloc[bad]
                raise DataError(f"cells, row {bad}, field {phase!r}: read {cells[phase].iloc[bad]!r} has "
                                f"{field} {has[bad]!r}, expected {wanted!r}")
        out[phase] = at
    return out


def _length_matched(reads, rows):
    """Return 1 or 0 for filler as long as the turn or not, -1 where tokens are not known."""
    if "n_prompt_tokens" not in reads:
        return np.full(len(rows["prior"]), -1)
    tokens = pd.to_numeric(reads["n_prompt_tokens"]).to_numpy(dtype=float, na_value=np.nan)
    turn, filler = (tokens[rows[phase]] - tokens[rows["prior"]] for phase in ("treat", "control"))
    known = turn > 0  # False where a number is missing
    close = np.abs(filler - turn) <= LENGTH_TOLERANCE * turn
    return np.where(known & ~np.isnan(filler), close.astype(int), -1)
