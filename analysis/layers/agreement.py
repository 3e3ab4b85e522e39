"""Agreement between raters, and the small measures on labels, scores and distributions.

Agreement is computed from a square table of counts: rows the first rater's labels, columns the second's, in
the same order. One table gives a number through the libraries; a stack of resampled tables its interval.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis.errors import DataError, choice
from analysis.layers.distributions import SUM_TOLERANCE, entropy, expectation, js_distance, softmax
from analysis.layers.inference import unit_bootstrap
from analysis.ranktests import paired_vectors, vector
from analysis.rounding import possible_counts

__all__ = [
    "Agreement", "Auroc", "RankCorrelation", "SUM_TOLERANCE",
    "ac1", "auroc", "auroc_interval", "cluster_interval", "cluster_tables", "coefficients", "count_table",
    "entropy", "expectation", "grim", "js_distance", "kappa", "softmax", "spearman_with_ties", "top_share",
]

CATEGORIES = ("observed", "legal")
WEIGHTS = (None, "linear", "quadratic")
COEFFICIENTS = ("ac1", "kappa", "linear_kappa", "quadratic_kappa", "spearman")
NOTHING = 1e-12  # what rounding leaves of a spread or a margin that is 0


class Agreement(NamedTuple):
    """A coefficient with what it is made of; NaN where chance agreement leaves nothing to explain."""

    value: float
    observed: float
    chance: float
    n: int
    n_labels: int
    flags: tuple[str, ...]


class Auroc(NamedTuple):
    """Result of `auroc`; NaN with the flag ``one_class`` when a class is empty."""

    value: float
    n_positive: int
    n_negative: int
    flags: tuple[str, ...]


class RankCorrelation(NamedTuple):
    """Result of `spearman_with_ties`; `tie_share` of the pairs are equal to the commonest pair `tie`."""

    rho: float
    n: int
    tie: tuple[float, float]
    tie_share: float
    flags: tuple[str, ...]


# --- two raters -----------------------------------------------------------------------------------

def count_table(a, b, labels):
    """Cross two raters' labels.

    Parameters
    ----------
    a, b : array_like, shape (n,)
        Labels of the same things, in order.
    labels : sequence
        The legal labels in their order; all become rows and columns, used or not.

    Returns
    -------
    DataFrame of int, shape (labels, labels)

    Raises
    ------
    DataError
        On a missing or unknown label, or different lengths.

    Examples
    --------
    >>> count_table(["no", "yes", "yes"], ["no", "yes", "no"], ["no", "yes"]).to_numpy().tolist()
    [[1, 0], [1, 1]]
    """
    labels = list(labels)
    codes = _codes(a, b, labels)
    counts = np.zeros((len(labels), len(labels)), dtype=int)
    np.add.at(counts, codes, 1)
    return pd.DataFrame(counts, index=labels, columns=labels)


def _codes(a, b, labels):
    """Return both raters' labels as positions in `labels`."""
    if len(a) != len(b):
        raise DataError(f"{len(a)} and {len(b)} labels: expected as many of one rater as of the other")
    out = []
    for rater, values in (("first", a), ("second", b)):
        values = pd.Series(np.asarray(values, dtype=object), dtype=object)
        code = pd.Index(labels).get_indexer(values)
        if (code < 0).any():
            at = int(np.flatnonzero(code < 0)[0])
            raise DataError(f"{rater} rater, label {at}: {values[at]!r}, expected one of "
                            f"{', '.join(map(str, labels))} (leave out unread labels and count them)")
        out.append(code)
    return tuple(out)


def _square(table):
    counts = np.asarray(table, dtype=float)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or not counts.size:
        raise ValueError(f"table of shape {counts.shape}: expected as many rows as columns")
    if not (np.isfinite(counts).all() and (counts >= 0).all()):
        raise ValueError("table: expected counts from 0")
    return counts


def _used(counts):
    """Return the table without labels that no rater used."""
    used = counts.sum(axis=0) + counts.sum(axis=1) > 0
    return counts[np.ix_(used, used)]


def ac1(table, *, categories="observed"):
    """Gwet's AC1 of two raters.

    Parameters
    ----------
    table : array_like of int, shape (labels, labels)
        Counts, as from `count_table`.
    categories : {"observed", "legal"}
        Chance agreement over the labels that a rater used (the paper), or over all rows of the table, which
        does not change from sample to sample. Report both.

    Returns
    -------
    Agreement
        Undefined (NaN) with one label only: flag ``one_label``; flag ``no_pairs`` without counts.

    Raises
    ------
    ValueError
        On a table that is not square, negative counts, or an unknown option.

    References
    ----------
    Gwet, K. L. (2008), Computing inter-rater reliability in the presence of high agreement.

    Examples
    --------
    >>> stance = [[11, 0, 0, 0], [1, 8, 0, 0], [0, 0, 20, 0], [0, 0, 0, 0]]
    >>> round(ac1(stance).value, 6), round(ac1(stance, categories="legal").value, 6)
    (0.963711, 0.968458)
    """
    choice("categories", categories, CATEGORIES)
    counts = _square(table)
    n = int(counts.sum())
    if not n:
        return Agreement(np.nan, np.nan, np.nan, 0, len(counts), ("no_pairs",))
    counts = _used(counts) if categories == "observed" else counts
    if len(counts) == 1:
        return Agreement(np.nan, 1.0, np.nan, n, 1, ("one_label",))
    # Written here: irrCAC, the library that has it, only installs beside old releases of pandas and scipy.
    observed = float(np.trace(counts) / n)
    share = (counts.sum(axis=0) + counts.sum(axis=1)) / (2 * n)
    chance = float((share * (1 - share)).sum() / (len(counts) - 1))
    return Agreement((observed - chance) / (1 - chance), observed, chance, n, len(counts), ())


def kappa(table, *, weights=None):
    """Cohen's kappa of two raters, plain or weighted.

    Parameters
    ----------
    table : array_like of int, shape (labels, labels)
        Counts; with weights, in the order of the scale. The distance of two labels is that of their places in
        the table, so labels that nobody used must stay in it.
    weights : {None, "linear", "quadratic"}

    Returns
    -------
    Agreement
        `observed` and `chance` are weighted agreements (1 minus the mean disagreement over the largest
        possible one). NaN with the flag ``one_label`` when both raters used one and the same label only.

    Raises
    ------
    ValueError
        On a table that is not square, negative counts, or unknown weights.

    References
    ----------
    Cohen (1960, 1968), through scikit-learn.

    Examples
    --------
    >>> stance = [[11, 0, 0], [1, 8, 0], [0, 0, 20]]
    >>> [round(kappa(stance, weights=weights).value, 6) for weights in (None, "linear", "quadratic")]
    [0.959839, 0.972527, 0.983165]
    """
    choice("weights", weights, WEIGHTS)
    counts = _square(table)
    n, q = int(counts.sum()), len(counts)
    if not n:
        return Agreement(np.nan, np.nan, np.nan, 0, q, ("no_pairs",))
    agree = _agreement_weights(q, weights)
    observed = float((agree * counts).sum() / n)
    chance = float((agree * np.outer(counts.sum(axis=1), counts.sum(axis=0))).sum() / n**2)
    if len(_used(counts)) == 1:
        return Agreement(np.nan, observed, chance, n, 1, ("one_label",))
    from sklearn.metrics import cohen_kappa_score  # here: it takes long to import

    first, second = np.nonzero(counts)
    value = cohen_kappa_score(first, second, labels=range(q), weights=weights,
                              sample_weight=counts[first, second])
    return Agreement(float(value), observed, chance, n, len(_used(counts)), ())


def _agreement_weights(q, weights):
    if weights is None:
        return np.eye(q)
    apart = np.abs(np.subtract.outer(np.arange(q), np.arange(q))) / max(q - 1, 1)
    return 1 - apart ** {"linear": 1, "quadratic": 2}[weights]


def top_share(labels):
    """Share of the commonest label: a rater near 1 has collapsed onto one class.

    Parameters
    ----------
    labels : array_like, shape (n,)
        Missing ones are left out.

    Returns
    -------
    label, share
        None and NaN without labels. Of equally common labels the one that sorts first.

    Examples
    --------
    >>> top_share(["challenge", "challenge", "concession", None])
    ('challenge', 0.6666666666666666)
    """
    counts = pd.Series(labels).value_counts().sort_index()
    if counts.empty:
        return None, np.nan
    return counts.idxmax(), float(counts.max() / counts.sum())


# --- stacks of tables: the same coefficients for many resamples at once ---------------------------

def coefficients(tables, name):
    """A coefficient for every table of a stack.

    Parameters
    ----------
    tables : array_like, shape (..., labels, labels)
        Counts.
    name : {"ac1", "kappa", "linear_kappa", "quadratic_kappa", "spearman"}
        "ac1" takes every label of the table as a category; "spearman" the places of the labels as ranks.

    Returns
    -------
    ndarray of float, shape (...)
        NaN where the coefficient is undefined.

    Raises
    ------
    ValueError
        On an unknown name or tables that are not square.

    Examples
    --------
    >>> stance = np.array([[11, 0, 0], [1, 8, 0], [0, 0, 20]])
    >>> coefficients([stance, 2 * stance], "ac1").round(6).tolist()
    [0.963711, 0.963711]
    """
    choice("name", name, COEFFICIENTS)
    tables = np.asarray(tables, dtype=float)
    if tables.ndim < 2 or tables.shape[-1] != tables.shape[-2]:
        raise ValueError(f"tables of shape {tables.shape}: expected as many rows as columns")
    q = tables.shape[-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = tables / tables.sum(axis=(-2, -1), keepdims=True)
        rows, columns = share.sum(axis=-1), share.sum(axis=-2)
        if name == "spearman":
            return _spearman(share, rows, columns)
        if name == "ac1":
            observed = np.trace(share, axis1=-2, axis2=-1)
            used = (rows + columns) / 2
            chance = (used * (1 - used)).sum(axis=-1) / (q - 1)
        else:
            agree = _agreement_weights(q, {"kappa": None}.get(name, name.removesuffix("_kappa")))
            observed = (agree * share).sum(axis=(-2, -1))
            chance = (agree * rows[..., :, None] * columns[..., None, :]).sum(axis=(-2, -1))
        left = 1 - chance
        return np.where(left > NOTHING, (observed - chance) / left, np.nan)


def _spearman(share, rows, columns):
    """Return Pearson's correlation of the mid-ranks of the table's rows and columns."""
    def centred(margin):
        return np.cumsum(margin, axis=-1) - margin / 2 - 0.5

    x, y = centred(rows), centred(columns)
    product = (share * x[..., :, None] * y[..., None, :]).sum(axis=(-2, -1))
    spread = (rows * x**2).sum(axis=-1) * (columns * y**2).sum(axis=-1)
    return np.where(spread > NOTHING, product / np.sqrt(spread), np.nan)


def cluster_tables(a, b, clusters, labels):
    """Cross two raters' labels within every cluster.

    Parameters
    ----------
    a, b : array_like, shape (n,)
        Labels of the same things.
    clusters : array_like, shape (n,)
        The question (or other independent unit) of each.
    labels : sequence
        Legal labels in order.

    Returns
    -------
    ndarray of int, shape (clusters, labels, labels)
        In order of first appearance of the clusters.

    Raises
    ------
    DataError
        As `count_table`, and on a missing cluster.

    Examples
    --------
    >>> cluster_tables([0, 1, 1], [0, 1, 0], ["q1", "q1", "q2"], [0, 1]).tolist()
    [[[1, 0], [0, 1]], [[0, 0], [1, 0]]]
    """
    labels = list(labels)
    first, second = _codes(a, b, labels)
    if len(clusters) != len(a):
        raise DataError(f"{len(clusters)} clusters and {len(a)} labels: expected one cluster a label")
    code, names = pd.factorize(np.asarray(clusters, dtype=object))
    if (code < 0).any():
        at = int(np.flatnonzero(code < 0)[0])
        raise DataError(f"cluster {at}: missing, expected the unit that the label belongs to")
    out = np.zeros((len(names), len(labels), len(labels)), dtype=int)
    np.add.at(out, (code, first, second), 1)
    return out


def cluster_interval(tables, name, *, categories="observed", draws=10_000, level=0.95, seed=0):
    """Bootstrap interval of an agreement coefficient over clusters.

    Parameters
    ----------
    tables : array_like, shape (clusters, labels, labels)
        From `cluster_tables`.
    name : {"ac1", "kappa", "linear_kappa", "quadratic_kappa", "spearman"}
    categories : {"observed", "legal"}
        For "ac1": the labels used in the whole sample stay the categories of every resample.
    draws, level, seed
        As in `unit_bootstrap`.

    Returns
    -------
    Interval

    Examples
    --------
    >>> table = [[[3, 0], [1, 2]], [[2, 1], [0, 3]], [[4, 0], [0, 1]]]
    >>> interval = cluster_interval(table, "ac1")
    >>> round(interval.low, 3), round(interval.high, 3), interval.n_boot
    (0.668, 0.932, 27)
    """
    choice("categories", categories, CATEGORIES)
    choice("name", name, COEFFICIENTS)
    tables = np.asarray(tables, dtype=float)
    if name == "ac1" and categories == "observed":
        used = tables.sum(axis=(0, 1)) + tables.sum(axis=(0, 2)) > 0
        tables = tables[:, used][:, :, used]
    return unit_bootstrap(tables, lambda drawn: coefficients(drawn.sum(axis=1), name),
                          draws=draws, level=level, seed=seed)


# --- scores ---------------------------------------------------------------------------------------

def auroc(positive, negative):
    """Chance that a positive scores above a negative, ties counting half.

    Parameters
    ----------
    positive, negative : array_like of float
        Scores of the two classes.

    Returns
    -------
    Auroc

    Raises
    ------
    ValueError
        On missing scores.

    References
    ----------
    Hanley and McNeil (1982), through scikit-learn.

    Examples
    --------
    >>> auroc([2.1, 0.4, 1.3, -0.2], [-1, 0.4, -2.2]).value
    0.875
    """
    positive, negative = vector(positive, "positive"), vector(negative, "negative")
    n_positive, n_negative = len(positive), len(negative)
    if not n_positive or not n_negative:
        return Auroc(np.nan, n_positive, n_negative, ("one_class",))
    from sklearn.metrics import roc_auc_score  # here: it takes long to import

    truth = np.repeat([1, 0], [n_positive, n_negative])
    area = roc_auc_score(truth, np.concatenate([positive, negative]))
    return Auroc(float(area), n_positive, n_negative, ())


def auroc_interval(positive, negative, *, draws=10_000, level=0.95, seed=0):
    """Bootstrap interval of `auroc` over items, each with one score and one class.

    Parameters
    ----------
    positive, negative : array_like of float
    draws, level, seed
        As in `unit_bootstrap`. Resamples of one class only are undefined and counted.

    Returns
    -------
    Interval

    Examples
    --------
    >>> interval = auroc_interval([3, 4, 5, 6, 1], [1, 2, 0, 2, 4])
    >>> 0 < interval.low < 0.84 < interval.high <= 1
    True
    """
    positive, negative = vector(positive, "positive"), vector(negative, "negative")
    items = np.column_stack([np.concatenate([positive, negative]),
                             np.repeat([1.0, 0.0], [len(positive), len(negative)])])
    return unit_bootstrap(items, _aurocs, draws=draws, level=level, seed=seed)


def _aurocs(items):
    """Return the area for every resample, shape (draws, items, 2), from rank sums."""
    score, truth = items[..., 0], items[..., 1]
    n_positive, n_negative = truth.sum(axis=1), (1 - truth).sum(axis=1)
    ranks = (sps.rankdata(score, axis=1) * truth).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (ranks - n_positive * (n_positive + 1) / 2) / np.where(
            n_positive * n_negative > 0, n_positive * n_negative, np.nan)


def spearman_with_ties(x, y):
    """Spearman's rho with the share of pairs that share one value: what ties alone can carry.

    Parameters
    ----------
    x, y : array_like of float, shape (n,)

    Returns
    -------
    RankCorrelation
        ``rho`` is NaN with the flag ``constant`` when x or y does not vary.

    Raises
    ------
    ValueError
        On missing values, unequal lengths or fewer than two pairs.

    References
    ----------
    Spearman's rho with mid-ranks, through scipy.

    Examples
    --------
    >>> result = spearman_with_ties([0, 0, 0, 0, 1, 1, 2, 2, 3, 1], [0, 0, 0, 1, 1, 2, 2, 1, 2, 2])
    >>> round(result.rho, 6), result.tie, result.tie_share
    (0.764349, (0.0, 0.0), 0.3)
    """
    x, y = paired_vectors(x, y)
    pairs, counts = np.unique(np.column_stack([x, y]), axis=0, return_counts=True)
    tie = tuple(pairs[counts.argmax()].tolist())
    share = float(counts.max() / len(x))
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return RankCorrelation(np.nan, len(x), tie, share, ("constant",))
    return RankCorrelation(float(sps.spearmanr(x, y).statistic), len(x), tie, share, ())


# --- printed percentages --------------------------------------------------------------------------

def grim(printed, n, *, unit="percent"):
    """Whether a printed percentage can be a count out of n.

    Parameters
    ----------
    printed : str
        With its decimals, such as "66.3".
    n : int
        Denominator, at least 1.
    unit : {"percent", "pp", "rate"}

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        On a denominator below 1.

    References
    ----------
    Brown and Heathers (2017), The GRIM test. A share half way between two roundings agrees with both.

    Examples
    --------
    >>> grim("66.3", 173), grim("66.5", 173), grim("81.1", 505)
    (False, True, False)
    """
    if n < 1:
        raise ValueError(f"n={n}: expected at least 1")
    return any(0 <= count <= n for count in possible_counts(printed, n, unit=unit))
