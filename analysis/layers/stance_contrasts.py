"""Conviction and direction over propositions, and rounds of the stance probe.

Cells are averaged to one value per proposition, every proposition counting the same, before any test or
interval. Receivers are never pooled: margins and shifts of different models have no common scale.
"""

from dataclasses import replace
from math import nan

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis.errors import DataError, choice
from analysis.layers import stance
from analysis.layers.frames import need, single, tally
from analysis.layers.inference import FEW_UNITS, differential_exclusion, holm_results, test_units
from analysis.layers.results import Result
from analysis.layers.stance_reads import N_OPTIONS, logprobs

ON_TOPIC = ("strong", "weak")
BUCKETS = ("mid", "pole", "all")
ENOUGH_PROPOSITIONS = 5  # of each bucket, for a p value
_MATCH = ["proposition_id", "opponent", "stance"]


# --- from cells to propositions -----------------------------------------------------------------------------

def propositions(cells, value, *, kinds=ON_TOPIC, bucket="all"):
    """Mean of a measure in every proposition of one receiver.

    Parameters
    ----------
    cells : DataFrame
        Of one receiver, from `stance.read_cells`.
    value : str
        Column to average.
    kinds : sequence of str
        Kinds of argument that count, equally.
    bucket : {"all", "mid", "pole"}
        Propositions by the prior; one whose cells are of both buckets is in neither.

    Returns
    -------
    Series of float
        By ``proposition_id``. Only valid cells with a value count.

    Raises
    ------
    DataError
        On several receivers.

    Examples
    --------
    >>> cells = pd.DataFrame({"receiver": "m", "valid": True, "kind": "strong", "bucket": "mid",
    ...     "proposition_id": ["p1"] * 4 + ["p2"] * 2 + ["p3"] * 4,
    ...     "conviction_own": [.6, .8, .4, .2, 1.0, 1.2, -.1, .1, .3, .1]})
    >>> propositions(cells, "conviction_own").round(3).tolist()
    [0.5, 1.1, 0.1]
    """
    kept = _scope(cells, kinds, bucket)
    return kept.dropna(subset=[value]).groupby("proposition_id")[value].mean().astype(float)


def _scope(cells, kinds, bucket):
    """Return the valid cells of these kinds and bucket; raise unless they are of one receiver."""
    choice("bucket", bucket, BUCKETS)
    for kind in kinds:
        choice("kinds", kind, stance.KINDS)
    need(cells, "cells", ["receiver", "proposition_id", "kind", "valid"])
    single(cells, "cells", "receiver", "models are never pooled")
    valid = cells[cells["valid"].astype(bool)]
    if bucket != "all":
        valid = valid[valid["proposition_id"].map(_buckets(valid)) == bucket]
    return valid[valid["kind"].isin(kinds)]


def _buckets(valid):
    """Return the bucket of every proposition, "mixed" where its cells disagree."""
    by = valid.groupby("proposition_id")["bucket"]
    return by.first().astype(object).where(by.nunique() == 1, "mixed")


# --- one receiver -------------------------------------------------------------------------------------------

def conviction(cells, *, anchor="own", draws=10_000, seed=0):
    """Change of a receiver's conviction under on-topic arguments, treat minus control.

    Parameters
    ----------
    cells : DataFrame
        All cells of one receiver, from `stance.read_cells`.
    anchor : {"own", "peak"}
        As in `stance.conviction`; the flag ``anchors_differ:n`` counts the cells where the two part.
    draws, seed : int
        Of the proposition bootstrap.

    Returns
    -------
    Result
        Nats; unit the proposition, all buckets. "unmeasurable" for a pinned receiver (see
        `stance.saturation`).

    References
    ----------
    "Layered Analysis of Disagreement", results of the stance probe.

    Examples
    --------
    >>> cells = pd.DataFrame({"receiver": "m", "valid": True, "reason": "", "kind": "weak", "bucket": "mid",
    ...     "proposition_id": ["p1"] * 4 + ["p2"] * 2 + ["p3"] * 4, "prior_margin": 2.0, "largest": 0.8,
    ...     "anchors_differ": False, "conviction_own": [.6, .8, .4, .2, 1.0, 1.2, -.1, .1, .3, .1]})
    >>> result = conviction(cells)
    >>> round(result.estimate, 6), result.p, result.n_units, result.n_rows
    (0.566667, 0.25, 3, 10)
    """
    choice("anchor", anchor, stance.ANCHORS)
    value = f"conviction_{anchor}"
    kept = _scope(cells, ON_TOPIC, "all")
    differ = int(kept["anchors_differ"].astype(bool).sum())
    result = _result(f"conviction_{anchor}_treat_minus_control", cells, kept, propositions(cells, value),
                     "nats",
                     draws, seed)
    return result.with_flags(f"anchors_differ:{differ}") if differ else result


def direction(cells, *, bucket="mid", draws=10_000, seed=0):
    """Heat-free shift of a receiver towards its opponent under on-topic arguments.

    Parameters
    ----------
    cells, draws, seed
        As in `conviction`.
    bucket : {"mid", "pole", "all"}
        A prior at the end of the scale has little room to be seen moving, so "mid" leads.

    Returns
    -------
    Result
        Scale points. Gated by the self-test. Cells that no temperature matches are excluded as
        ``heat_unmatched``, propositions of both buckets as ``mixed_bucket`` (counted in cells);
        ``T_unstable:n`` counts cells whose sign depends on the read temperature.

    References
    ----------
    "Layered Analysis of Disagreement", results of the stance probe (which prints the unit as nats).

    Examples
    --------
    >>> cells = pd.DataFrame({"receiver": "m", "valid": True, "reason": "", "kind": "weak", "bucket": "mid",
    ...     "proposition_id": ["p1", "p2"], "heat_free_shift": [0.2, 0.4], "heat_matched": True,
    ...     "T_unstable": False, "prior_margin": 2.0, "largest": 0.8})
    >>> round(direction(cells).estimate, 3), direction(cells).gates[0].name
    (0.3, 'self_test')
    """
    kept = _scope(cells, ON_TOPIC, bucket)
    units = propositions(cells, "heat_free_shift", bucket=bucket)
    more = {}
    if bucket != "all":
        valid = _scope(cells, ON_TOPIC, "all")
        more["mixed_bucket"] = int((valid["proposition_id"].map(_buckets(valid)) == "mixed").sum())
    name = "heat_free_shift" if bucket == "all" else f"heat_free_shift_{bucket}"
    return _directional(name, cells, kept, units, draws, seed, more)


def gaps(cells, *, value="heat_free_shift", kinds=("strong", "irrelevant")):
    """Difference between two kinds of argument in every proposition, matched on opponent and stance.

    Parameters
    ----------
    cells : DataFrame
        Of one receiver, from `stance.read_cells`.
    value : str
        Column that is compared.
    kinds : (str, str)
        The first minus the second.

    Returns
    -------
    units : Series of float
        By ``proposition_id``, those without a matched pair left out.
    paired : int
        Cells that entered.
    unpaired : int
        Cells with a value but without counterpart.

    Examples
    --------
    >>> cells = pd.DataFrame({"receiver": "m", "opponent": "o", "stance": "hostile", "valid": True,
    ...     "kind": ["strong", "irrelevant", "strong"], "proposition_id": ["p1", "p1", "p2"],
    ...     "heat_free_shift": [0.5, 0.1, 0.9]})
    >>> units, paired, unpaired = gaps(cells)
    >>> units.to_dict(), paired, unpaired
    ({'p1': 0.4}, 2, 1)
    """
    first, second = kinds
    known = _scope(cells, kinds, "all").dropna(subset=[value])
    mean = known.groupby([*_MATCH, "kind"])[value].mean().unstack("kind")
    paired = mean.reindex(columns=[first, second]).astype(float).dropna()
    matched = pd.MultiIndex.from_frame(known[_MATCH]).isin(paired.index)
    units = (paired[first] - paired[second]).groupby("proposition_id").mean()
    return units, int(matched.sum()), int((~matched).sum())


def content_gap(cells, *, value="heat_free_shift", kinds=("strong", "irrelevant"), draws=10_000, seed=0):
    """What an argument moves beyond another kind of argument.

    Parameters
    ----------
    cells, draws, seed
        As in `conviction`.
    value, kinds
        As in `gaps`: ("strong", "irrelevant") asks whether content counts beyond having spoken last,
        ("strong", "weak") whether its quality does.

    Returns
    -------
    Result
        All propositions. Cells without their counterpart are excluded as ``unpaired``.

    References
    ----------
    "Layered Analysis of Disagreement", uptake control.

    Examples
    --------
    >>> cells = pd.DataFrame({"receiver": "m", "opponent": "o", "stance": "hostile", "valid": True,
    ...                       "reason": "",
    ...     "kind": ["strong", "irrelevant", "strong"], "proposition_id": ["p1", "p1", "p2"], "bucket": "mid",
    ...     "heat_free_shift": [0.5, 0.1, 0.9], "heat_matched": True, "T_unstable": False,
    ...     "prior_margin": 2.0, "largest": 0.8})
    >>> result = content_gap(cells)
    >>> result.estimate, result.n_units, result.exclusions
    (0.4, 1, {'unpaired': 1})
    """
    kept = _scope(cells, kinds, "all")
    units, paired, unpaired = gaps(cells, value=value, kinds=kinds)
    name, more = "_minus_".join(kinds), {"unpaired": unpaired}
    if value == "heat_free_shift":
        return _directional(name, cells, kept, units, draws, seed, more, rows=paired)
    unit = "nats" if value.startswith("conviction") else "scale points"
    return _result(f"{name}_{value}", cells, kept, units, unit, draws, seed, more=more, rows=paired)


def mid_minus_pole(cells, *, draws=10_000, seed=0):
    """Heat-free shift of graded priors minus that of priors at an end of the scale, within a receiver.

    Parameters
    ----------
    cells, draws, seed
        As in `conviction`.

    Returns
    -------
    Result
        Scale points, exploratory, flag ``upper_bound``: a prior at an end has less room to move, which is
        part of the gap. Interval: percentile bootstrap within each bucket (NaN where a bucket has one
        proposition). p: permutation test, only with five or more propositions in each bucket. "undefined"
        without both.

    References
    ----------
    "Layered Analysis of Disagreement", within-model headroom contrast. Bootstrap and permutation test: scipy.

    Examples
    --------
    >>> cells = pd.DataFrame({"receiver": "m", "valid": True, "reason": "", "kind": "strong",
    ...     "bucket": ["mid", "mid", "mid", "pole", "pole"], "proposition_id": list("abcde"),
    ...     "heat_free_shift": [1.0, 1.2, 1.4, 0.2, 0.4], "heat_matched": True, "T_unstable": False,
    ...     "prior_margin": 2.0, "largest": 0.8})
    >>> result = mid_minus_pole(cells)
    >>> round(result.estimate, 3), result.p, result.role
    (0.9, nan, 'exploratory')
    """
    kept = _scope(cells, ON_TOPIC, "all")
    mid, pole = (propositions(cells, "heat_free_shift", bucket=bucket).to_numpy() for bucket in ("mid",
                                                                                                 "pole"))
    base = Result("mid_minus_pole", nan, "scale points", n_units=len(mid) + len(pole),
                  unit_name="proposition",
                  n_rows=len(kept), role="exploratory", seed=seed, exclusions=_exclusions(cells, kept, {}),
                  ).with_gates(stance.self_test_gate()).with_flags("upper_bound", f"mid:{len(mid)}",
                                                                   f"pole:{len(pole)}")
    if not len(mid) or not len(pole):
        return replace(base, status="undefined")
    base = _measurable(replace(base, estimate=float(mid.mean() - pole.mean())), cells)

    def gap(x, y, axis):
        return x.mean(axis=axis) - y.mean(axis=axis)

    if min(len(mid), len(pole)) > 1 and np.ptp(mid) + np.ptp(pole) > 0:
        around = sps.bootstrap((mid, pole), gap, paired=False, vectorized=True, n_resamples=draws,
                               method="percentile", rng=np.random.default_rng(seed)).confidence_interval
        base = replace(base, low=float(around.low), high=float(around.high),
                       interval="percentile bootstrap by bucket",
                       n_boot=draws)
    if min(len(mid), len(pole)) < FEW_UNITS:
        base = base.with_flags("few_units")
    if min(len(mid), len(pole)) < ENOUGH_PROPOSITIONS:
        return base.with_flags("no_p_few_propositions")
    test = sps.permutation_test((mid, pole), gap, vectorized=True, n_resamples=9_999,
                                rng=np.random.default_rng(seed))
    return replace(base, p=float(test.pvalue), p_method="permutation of buckets")


def _exclusions(cells, kept, more):
    """Return cells left out by reason, those without a matching temperature among them."""
    out = tally(cells["reason"])
    if "heat_matched" in kept:
        out["heat_unmatched"] = int((~kept["heat_matched"].astype(bool)).sum())
    return {reason: count for reason, count in (out | more).items() if count}


def _measurable(result, cells):
    """Return the result, "unmeasurable" if every read of the receiver is pinned."""
    valid = cells[cells["valid"].astype(bool)]
    if not len(valid):
        return result
    checks = stance.saturation(valid)
    if all(gate.passed for gate in checks):
        return replace(result, gates=(*result.gates, *checks))
    return replace(result, gates=(*result.gates, *checks), status="unmeasurable")


def _result(name, cells, kept, units, unit, draws, seed, *, more=None, rows=None, gates=(), heat=False):
    excluded = _exclusions(cells, kept if heat else kept.drop(columns="heat_matched", errors="ignore"),
                           more or {})
    result = test_units(name, units, unit, unit_name="proposition",
                        n_rows=len(kept) if rows is None else rows,
                        draws=draws, seed=seed, exclusions=excluded, gates=gates)
    return _measurable(result, cells).with_flags(*_arms(cells))


def _directional(name, cells, kept, units, draws, seed, more, rows=None):
    """Return a result on the heat-free shift: gated by the self-test, unstable signs counted."""
    used = int(kept["heat_matched"].astype(bool).sum()) if rows is None else rows
    result = _result(name, cells, kept, units, "scale points", draws, seed, more=more, rows=used,
                     gates=(stance.self_test_gate(),), heat=True)
    unstable = int(kept["T_unstable"].fillna(False).astype(bool).sum())
    return result.with_flags(f"T_unstable:{unstable}") if unstable else result


def _arms(cells):
    """Return the flag of arms (kinds, then stances) that lose different shares of their cells."""
    flags = ()
    for arm in ("kind", "stance"):
        if arm in cells:
            lost = (~cells["valid"].astype(bool)).groupby(cells[arm]).agg(["sum", "size"])
            flags += differential_exclusion(lost["sum"].to_dict(), lost["size"].to_dict())
    return flags


# --- all receivers ------------------------------------------------------------------------------------------

def by_receiver(cells, measure, *, family="", **options):
    """One contrast in every receiver, with Holm's correction over the receivers.

    Parameters
    ----------
    cells : DataFrame
        Cells of all receivers, from `stance.read_cells`.
    measure : callable
        `conviction`, `direction`, `content_gap` or `mid_minus_pole`.
    family : str, optional
        Name of what is corrected together; "<contrast> over receivers" if left out.
    **options
        Passed to `measure`.

    Returns
    -------
    dict of str to Result
        By receiver, in order of first appearance. Unmeasurable receivers keep their p but do not count as
        tests of the family (their corrected p is NaN).

    References
    ----------
    The paper does not say which tests were corrected together; one contrast over the models is our choice.

    Examples
    --------
    >>> cells = pd.DataFrame({"receiver": ["m", "m", "n", "n"], "valid": True, "reason": "", "kind": "weak",
    ...     "bucket": "mid", "proposition_id": list("abab"), "prior_margin": 2.0, "largest": 0.8,
    ...     "anchors_differ": False, "conviction_own": [-1, -2, -1, 1.0]})
    >>> results = by_receiver(cells, conviction)
    >>> [(name, r.p, r.p_holm, r.family) for name, r in results.items()]
    [('m', 0.5, 1.0, 'conviction over receivers'), ('n', 1.0, 1.0, 'conviction over receivers')]
    """
    found = {name: measure(part, **options) for name, part in cells.groupby("receiver", sort=False)}
    family = family or f"{measure.__name__} over receivers"
    testable = {name: result for name, result in found.items() if result.status in ("ok", "gated")}
    corrected = dict(zip(testable, holm_results(list(testable.values()), family),
                         strict=True)) if testable else {}
    return {name: corrected.get(name, result) for name, result in found.items()}


def grid(cells):
    """Cells of every receiver against the full crossing of its propositions, opponents, stances and kinds.

    Parameters
    ----------
    cells : DataFrame

    Returns
    -------
    DataFrame
        By receiver: ``propositions, opponents, stances, kinds, full, cells``; `cells` below `full` means that
        the grid has holes, above it that cells were repeated.

    Examples
    --------
    >>> cells = pd.DataFrame({"receiver": "m", "proposition_id": ["a", "a", "b"], "opponent": "o",
    ...                       "stance": "hostile", "kind": ["strong", "weak", "weak"]})
    >>> grid(cells).loc["m"].tolist()
    [2, 1, 1, 2, 4, 3]
    """
    by = cells.groupby("receiver", sort=False)
    out = by[["proposition_id", "opponent", "stance", "kind"]].nunique()
    out.columns = ["propositions", "opponents", "stances", "kinds"]
    return out.assign(full=out.prod(axis=1), cells=by.size())


# --- rounds -------------------------------------------------------------------------------------------------

def round_margins(reads):
    """Margin on the receiver's first stance after every round.

    Parameters
    ----------
    reads : DataFrame
        ``receiver, opponent, proposition_id, stance, kind, round`` (0: prior) and log-probabilities (see
        `stance_reads.logprobs`) of valid reads: one read a round and exchange.

    Returns
    -------
    DataFrame
        One line an exchange, columns of the key and ``margin_0 .. margin_R`` in nats, by the round they
        follow.

    Raises
    ------
    DataError
        On an exchange without round 0, with a round missing or read twice.

    Examples
    --------
    >>> reads = pd.DataFrame({"receiver": "m", "opponent": "o", "proposition_id": "x", "stance": "hostile",
    ...     "kind": "strong", "round": [0, 1], "logprob": [[-9, -8, -7.2, -5.8, -3.9, -1.5, -.32],
    ...                                                   [-7, -5, -3.5, -2, -1.1, -1.3, -1.9]]})
    >>> round_margins(reads)[["margin_0", "margin_1"]].round(2).values.tolist()
    [[1.18, -0.8]]
    """
    key = ["receiver", "opponent", "proposition_id", "stance", "kind"]
    need(reads, "reads", [*key, "round"])
    last = int(reads["round"].max())
    logprob = logprobs(reads)
    exchange = reads.groupby(key, sort=False).ngroup().to_numpy()
    rounds = reads["round"].to_numpy(dtype=int)
    counts = np.zeros((exchange.max() + 1, last + 1), dtype=int)
    np.add.at(counts, (exchange, rounds), 1)
    if (counts != 1).any():
        at, number = np.argwhere(counts != 1)[0]
        name = tuple(reads[key].to_numpy()[exchange == at][0])
        raise DataError(f"reads of {name}, round {number}: {counts[at, number]} reads, expected one")
    whole = np.empty((*counts.shape, N_OPTIONS))
    whole[exchange, rounds] = logprob
    own = whole[:, 0].argmax(axis=-1)
    margins = stance.own_margin(whole, np.repeat(own[:, None], last + 1, axis=1))
    out = reads[key].drop_duplicates().reset_index(drop=True)
    return out.join(pd.DataFrame(margins, columns=[f"margin_{number}" for number in range(last + 1)]))


def rounds(margins, *, kinds=("strong",), draws=10_000, seed=0):
    """Margins of one receiver by round, the net change and the change after the first round.

    Parameters
    ----------
    margins : DataFrame
        Of one receiver, from `round_margins`.
    kinds : sequence of str
        Kinds of argument that count; with two, the changes are the first kind minus the second, matched on
        opponent and stance.
    draws, seed : int
        Of the proposition bootstrap.

    Returns
    -------
    dict of str to Result
        ``margin_0 .. margin_R`` (descriptive), ``net`` (last minus prior) and ``after_round_1`` (last minus
        round 1; missing with one round only), in nats.

    Raises
    ------
    DataError
        On several receivers.

    References
    ----------
    "Layered Analysis of Disagreement", multi-round check of the stance probe.

    Examples
    --------
    >>> margins = pd.DataFrame({"receiver": "m", "opponent": "o", "proposition_id": ["a", "b"],
    ...                         "kind": "strong",
    ...     "stance": "hostile", "margin_0": [1.6, 2.0], "margin_1": [.5, 1.1], "margin_2": [.6, .9]})
    >>> {name: round(r.estimate, 2) for name, r in rounds(margins).items()}
    {'margin_0': 1.8, 'margin_1': 0.8, 'margin_2': 0.75, 'net': -1.05, 'after_round_1': -0.05}
    """
    single(margins, "margins", "receiver", "models are never pooled")
    for kind in kinds:
        choice("kinds", kind, stance.KINDS)
    columns = sorted((c for c in margins if c.startswith("margin_")), key=lambda c: int(c[7:]))
    kept = margins[margins["kind"].isin(kinds)]
    cells = kept.groupby(["kind", *_MATCH])[columns].mean()
    if len(kinds) == 2:
        first, second = (kept[kept["kind"] == kind].groupby(_MATCH)[columns].mean() for kind in kinds)
        cells = (first - second).dropna()
    units = cells.groupby("proposition_id").mean()
    values = {c: units[c] for c in columns}
    values["net"] = units[columns[-1]] - units[columns[0]]
    if len(columns) > 2:
        values["after_round_1"] = units[columns[-1]] - units[columns[1]]
    # A level has no null hypothesis of 0; the changes (and gaps) have.
    return {name: test_units(name, value, "nats", unit_name="proposition", n_rows=len(kept), draws=draws,
                             seed=seed,
                             test=not name.startswith("margin_"),
                             role="descriptive" if name.startswith("margin_") else "robustness")
            for name, value in values.items()}
