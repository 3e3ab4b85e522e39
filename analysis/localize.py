"""Where in a debate collapse shows: onset by round, and how well three views of a debate rank it.

Takes debates as `analysis.ledger.debates` makes them; knows nothing of files.

Reference: "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sections 5.1, E.1 and E.2.
"""

import random
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import rankdata

from analysis import stats
from analysis.errors import DataError, choice
from analysis.ledger import as_float
from analysis.resampling import resamples

VIEWS = ("baseline", "r1", "full")
FITS = ("published", "converged")
UNITS = ("debate", "question", "row", "two-way")
POOLED = "pooled"


# --- onset --------------------------------------------------------------------------------------------------


def onset_table(debates, by="row", *, interval="wilson"):
    """Count collapses by the round in which the majority first goes wrong.

    Parameters
    ----------
    debates : DataFrame
        One line a debate, with `cell` and `onset`.
    by : str or None
        Column that names a line; None gives the pooled line only.
    interval : {"wilson", "jeffreys"}
        95% interval of each share.

    Returns
    -------
    DataFrame
        One line per value of `by`, then one named "pooled": `n` debates, `collapse`, counts `round_1` to
        `round_R`, `unlocalized` collapses, and for each round k its `share_k` of the collapses with
        `share_k_low` and `share_k_high` (fractions). A round that a line's debates do not have is missing,
        not zero.

    References
    ----------
    Sections 5.1 and E.2, Table 6.

    Examples
    --------
    >>> seen = pd.DataFrame({"row": "m", "cell": ["collapse", "collapse", "preserved"], "endpoint": 2,
    ...                      "onset": pd.array([1, 2, None], "Int64")})
    >>> onset_table(seen)[["row", "n", "collapse", "round_1", "round_2", "share_1"]].to_dict("records")[0]
    {'row': 'm', 'n': 3, 'collapse': 2, 'round_1': 1, 'round_2': 1, 'share_1': 0.5}
    """
    end = _endpoints(debates)
    fell = (debates["cell"] == "collapse").to_numpy(bool)
    onset = as_float(debates["onset"])
    rounds = range(1, int(end.max()) + 1)
    first_wrong = {f"round_{k}": fell & (onset == k) for k in rounds}
    each = pd.DataFrame({"n": 1, "collapse": fell, **first_wrong}).astype(int)
    each["end"] = end
    how = {column: "sum" for column in each}
    how["end"] = "max"
    lines = [each.agg(how).to_frame().T.assign(**{by or "row": POOLED})]
    if by is not None:
        key = debates[by].astype(str).to_numpy()
        lines.insert(0, each.groupby(key, sort=False).agg(how).rename_axis(by).reset_index())
    out = pd.concat(lines, ignore_index=True)
    out.insert(0, by or "row", out.pop(by or "row"))
    counts = [f"round_{k}" for k in rounds]
    out["unlocalized"] = out["collapse"] - out[counts].sum(axis=1)
    for k in rounds:
        out[f"round_{k}"] = out[f"round_{k}"].astype("Int64").where(out["end"] >= k)
        share = stats.proportion(out[f"round_{k}"].fillna(0).astype(int), out["collapse"], interval=interval)
        for name in ("rate", "low", "high"):
            column = f"share_{k}" if name == "rate" else f"share_{k}_{name}"
            out[column] = share[name].where((out["end"] >= k).to_numpy()).to_numpy()
    return out.drop(columns="end")


def _endpoints(debates):
    """Last round of each debate; without an `endpoint` column, the last round that the frame tells of."""
    if debates.empty:
        raise DataError("no debates: expected at least one")
    if "endpoint" in debates:
        return debates["endpoint"].to_numpy(int)
    told = [int(c.removeprefix("agree_")) for c in debates if c.startswith("agree_")]
    if "onset" in debates and debates["onset"].notna().any():
        told.append(int(debates["onset"].max()))
    return np.full(len(debates), max(told, default=1))


# --- features and folds -------------------------------------------------------------------------------------


def _feature_names(view, rounds):
    names = ["correct_0", "unanimous_0", "agree_0"]
    if view != "baseline":
        names += ["changed_1", "n_flipped_1", "agree_1"]
    if view == "full":
        names += [f"{what}_{k}" for k in range(2, rounds + 1) for what in ("changed", "agree")]
    return names


def features(debates, *, rounds=None):
    """Matrices of the three nested feature views.

    Parameters
    ----------
    debates : DataFrame
        One line a debate.
    rounds : int, optional
        Last round of the full view; the largest that every debate has unless given.

    Returns
    -------
    dict of str to ndarray of float, shape (debates, features)
        "baseline": `correct_0, unanimous_0, agree_0`; "r1": those and `changed_1, n_flipped_1, agree_1`;
        "full": those and `changed_k, agree_k` for k = 2, 3, ... An undefined entry is NaN. Flags are 0 or 1;
        nothing is scaled.

    Raises
    ------
    DataError
        A column is not there.

    References
    ----------
    Section E.1.

    Examples
    --------
    >>> seen = pd.DataFrame({"correct_0": [True], "unanimous_0": False, "agree_0": 0.5, "changed_1": True,
    ...                      "n_flipped_1": 2, "agree_1": 1.0})
    >>> features(seen)["r1"].tolist()
    [[1.0, 0.0, 0.5, 1.0, 2.0, 1.0]]
    """
    last = int(_endpoints(debates).min()) if rounds is None else rounds
    names = _feature_names("full", last)
    absent = [name for name in names if name not in debates]
    if absent:
        raise DataError(f"debates: no column {absent[0]!r}; the feature views need {', '.join(names)}")
    full = np.column_stack([as_float(debates[name]) for name in names])
    return {view: full[:, : len(_feature_names(view, last))] for view in VIEWS}


def _design(debates):
    """Views, label (1 = collapsed) and the mask of debates with a label and every feature of every view."""
    views = features(debates)
    label = (debates["cell"] == "collapse").to_numpy(float)
    usable = debates["cell"].notna().to_numpy() & ~np.isnan(views["full"]).any(axis=1)
    return views, label, usable


def folds(n, n_folds=5, seed=42):
    """Deal n debates to folds as the paper does: shuffled by Python, every n_folds-th to one fold.

    Parameters
    ----------
    n : int
        Debates, in source order.
    n_folds : int
        Number of folds, at least 2.
    seed : int
        Seed of `random.Random`.

    Returns
    -------
    ndarray of int, shape (n,)
        Fold of each debate, from 0.

    References
    ----------
    Section E.1 (one fixed fold assignment).

    Examples
    --------
    >>> np.bincount(folds(12)).tolist()
    [3, 3, 2, 2, 2]
    """
    if n_folds < 2:
        raise ValueError(f"n_folds={n_folds}: expected at least 2")
    order = list(range(n))
    random.Random(seed).shuffle(order)
    out = np.empty(n, dtype=int)
    out[order] = np.arange(n) % n_folds
    return out


# --- fits ---------------------------------------------------------------------------------------------------


def published_fit(X, y, *, learning_rate=0.1, epochs=300, l2=1e-3):
    """Fit a logistic by full-batch gradient descent from zero, stopped after a fixed number of steps.

    The gradient is that of the mean log loss plus l2/2 times the squared weights; the bias is not penalised,
    features are not scaled and classes not weighted. At the defaults it stops far short of the optimum
    (`oof_scores` offers that too).

    Parameters
    ----------
    X : array_like of float, shape (n, p)
        Features.
    y : array_like of 0 and 1, shape (n,)
        Labels.
    learning_rate, epochs, l2 : float, int, float
        Step size, number of steps, penalty.

    Returns
    -------
    weights : ndarray of float, shape (p,)
    bias : float

    References
    ----------
    The fit behind section E.1's areas under the curve, as its released scripts define it.

    Examples
    --------
    >>> weights, bias = published_fit([[0.0], [1.0]], [0, 1])
    >>> float(weights[0].round(3)), round(bias, 3)
    (3.362, -1.44)
    """
    patterns, code = np.unique(np.asarray(X, dtype=float), axis=0, return_inverse=True)
    total = np.bincount(code, minlength=len(patterns))
    positive = np.bincount(code, weights=np.asarray(y, dtype=float), minlength=len(patterns))
    return _descend(patterns, total, positive, learning_rate, epochs, l2)


def _descend(patterns, total, positive, learning_rate=0.1, epochs=300, l2=1e-3):
    """Gradient descent over distinct feature patterns with counts: the same sums over far fewer rows."""
    n = total.sum()
    weights, bias = np.zeros(patterns.shape[1]), 0.0
    for _ in range(epochs):
        residual = total * expit(patterns @ weights + bias) - positive
        gradient = patterns.T @ residual / n + l2 * weights
        bias -= learning_rate * residual.sum() / n
        weights = weights - learning_rate * gradient
    return weights, float(bias)


def _optimum(patterns, total, positive, l2=1e-3):
    """Where that descent would end; without both classes, the constant they have."""
    n, k = total.sum(), positive.sum()
    if k in (0, n):
        return np.zeros(patterns.shape[1]), np.inf if k else -np.inf
    from sklearn.linear_model import LogisticRegression  # here: it takes long to import

    model = LogisticRegression(C=1 / (l2 * n), solver="newton-cholesky", tol=1e-10, max_iter=1000)
    label = np.repeat([1, 0], len(patterns))
    weight = np.concatenate([positive, total - positive])
    model.fit(np.vstack([patterns, patterns]), label, sample_weight=weight)
    return model.coef_[0], float(model.intercept_[0])


_SOLVERS = {"published": _descend, "converged": _optimum}


# --- out-of-fold scores and AUC -----------------------------------------------------------------------------


def oof_scores(debates, *, view, fit="published", by=None, n_folds=5, seed=42):
    """Score every debate's risk of collapse by a fit that has not seen it.

    Parameters
    ----------
    debates : DataFrame
        One line a debate, in source order: the folds depend on it.
    view : {"baseline", "r1", "full"}
        Features.
    fit : {"published", "converged"}
        The paper's 300 steps of gradient descent, or the same penalised loss at its optimum.
    by : str, optional
        Column; folds and fits are then made within each of its values instead of over all debates.
    n_folds, seed : int
        See `folds`.

    Returns
    -------
    Series of float
        Probability of collapse on the debates' index; NaN where the cell or a feature is undefined.

    References
    ----------
    Section E.1.

    Examples
    --------
    >>> seen = pd.DataFrame({"correct_0": [True, False] * 10, "unanimous_0": True, "agree_0": 1.0,
    ...     "changed_1": False, "n_flipped_1": 0, "agree_1": 1.0, "cell": ["collapse", "unrepaired"] * 10})
    >>> scores = oof_scores(seen, view="baseline")
    >>> bool(scores[::2].min() > scores[1::2].max())
    True
    """
    choice("view", view, VIEWS)
    choice("fit", fit, FITS)
    out = pd.Series(np.nan, index=debates.index, name=view, dtype=float)
    for _, part, at in _parts(debates, by):
        out.iloc[at] = _oof(part, view, fit, n_folds, seed)[0]
    return out


def _parts(debates, by):
    """(name, debates, positions) of each value of `by`, or of everything."""
    if by is None:
        return [(POOLED, debates, np.arange(len(debates)))]
    code, names = pd.factorize(debates[by])
    positions = [np.flatnonzero(code == i) for i in range(len(names))]
    return [(name, debates.iloc[at], at) for name, at in zip(names, positions, strict=True)]


def _oof(debates, view, fit, n_folds, seed):
    """Scores, labels, fold (-1: not usable) and the folds that have both classes on both sides."""
    views, label, usable = _design(debates)
    X, y = views[view][usable], label[usable]
    fold = folds(len(y), n_folds, seed)
    # One score per distinct feature pattern, so that equal features tie exactly on every machine.
    patterns, code = np.unique(X, axis=0, return_inverse=True)
    score = np.empty(len(y))
    both = []
    for i in range(n_folds):
        test = fold == i
        if not test.any() or test.all():
            score[test] = np.nan
            continue
        total = np.bincount(code[~test], minlength=len(patterns))
        positive = np.bincount(code[~test], weights=y[~test], minlength=len(patterns))
        weights, bias = _SOLVERS[fit](patterns, total, positive)
        score[test] = expit(patterns @ weights + bias)[code[test]]
        if 0 < y[test].sum() < test.sum() and 0 < positive.sum() < total.sum():
            both.append(i)
    scores, at = np.full(len(debates), np.nan), np.full(len(debates), -1)
    scores[usable], at[usable] = score, fold
    return scores, label, at, both


def auc(y, score):
    """Area under the ROC curve as the Mann-Whitney statistic with mid-ranks.

    Parameters
    ----------
    y : array_like of 0 and 1, shape (n,)
        Labels.
    score : array_like of float, shape (n,)
        Higher means more likely 1.

    Returns
    -------
    float
        Probability that a random positive outranks a random negative, ties counting half; NaN without both
        classes.

    References
    ----------
    Hanley and McNeil (1982), The meaning and use of the area under a ROC curve, Radiology 143.

    Examples
    --------
    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    0.875
    """
    y = np.asarray(y, dtype=bool)
    n_pos, n_neg = y.sum(), (~y).sum()
    if n_pos == 0 or n_neg == 0:
        return float("nan")
    ranks = rankdata(np.asarray(score, dtype=float))
    return float((ranks[y].sum() - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg))


def auc_table(debates, *, by="row", fit="published", n_folds=5, seed=42, each_fold=False):
    """Out-of-fold area under the curve of each view, pooled and per row.

    Parameters
    ----------
    debates : DataFrame
        One line a debate, in source order.
    by : str or None
        Column that names a line; each line has folds and fits of its own. None gives the pooled lines only.
    fit : {"published", "converged"}
        See `oof_scores`.
    n_folds, seed : int
        See `folds`.
    each_fold : bool
        Give one line a fold instead: `row`, `view`, `fold` (from 1), `n`, `n_pos`, `auc`.

    Returns
    -------
    DataFrame
        `row` (or `by`; "pooled" last), `view`, `n` debates scored, `n_pos` collapses, `auc` of all
        out-of-fold scores together, `fold_mean` and `fold_sd` (population) of the areas within folds,
        `n_folds` used. A fold is used if it and its complement have both classes; with none the areas are
        NaN.

    References
    ----------
    Sections 5.1 and E.1.

    Examples
    --------
    >>> seen = pd.DataFrame({"row": "m", "correct_0": [True, False] * 10, "unanimous_0": True, "agree_0": 1.0,
    ...     "changed_1": False, "n_flipped_1": 0, "agree_1": 1.0, "cell": ["collapse", "unrepaired"] * 10})
    >>> auc_table(seen, by=None)[["view", "n", "n_pos", "auc"]].to_dict("records")[0]
    {'view': 'baseline', 'n': 20, 'n_pos': 10, 'auc': 1.0}
    """
    choice("fit", fit, FITS)
    name = by or "row"
    lines, single = [], []
    for group, part, _ in ([] if by is None else _parts(debates, by)) + _parts(debates, None):
        for view in VIEWS:
            score, label, fold, both = _oof(part, view, fit, n_folds, seed)
            scored = ~np.isnan(score)
            areas = [auc(label[fold == i], score[fold == i]) for i in both]
            lines.append({
                name: group, "view": view, "n": int(scored.sum()), "n_pos": int(label[scored].sum()),
                "auc": auc(label[scored], score[scored]) if both else np.nan,
                "fold_mean": np.mean(areas) if both else np.nan, "fold_sd": np.std(areas) if both else np.nan,
                "n_folds": len(both),
            })
            for i, area in zip(both, areas, strict=True):
                inside = fold == i
                single.append({name: group, "view": view, "fold": i + 1, "n": int(inside.sum()),
                               "n_pos": int(label[inside].sum()), "auc": area})
    columns = [name, "view", "fold", "n", "n_pos", "auc"]
    return pd.DataFrame(single, columns=columns) if each_fold else pd.DataFrame(lines)


def roc(y, score):
    """Points of the ROC curve, corners only.

    Parameters
    ----------
    y : array_like of 0 and 1, shape (n,)
        Labels, both present.
    score : array_like of float, shape (n,)
        Higher means more likely 1.

    Returns
    -------
    DataFrame
        `fpr`, `tpr` (fractions of the negatives and positives) and the `threshold` at and above which a
        debate is flagged; from (0, 0) to (1, 1).

    Raises
    ------
    ValueError
        Only one class.

    References
    ----------
    scikit-learn's roc_curve.

    Examples
    --------
    >>> roc([0, 1, 0, 1], [0.1, 0.9, 0.4, 0.4])[["fpr", "tpr"]].values.tolist()
    [[0.0, 0.0], [0.0, 0.5], [0.5, 1.0], [1.0, 1.0]]
    """
    y = np.asarray(y, dtype=int)
    if y.min() == y.max():
        raise ValueError("roc: only one class among the labels; expected both")
    from sklearn.metrics import roc_curve  # here: it takes long to import

    fpr, tpr, threshold = roc_curve(y, np.asarray(score, dtype=float))
    return pd.DataFrame({"fpr": fpr, "tpr": tpr, "threshold": threshold})


# --- paired bootstrap ---------------------------------------------------------------------------------------


class Lift(NamedTuple):
    """What `auc_lift` found: the observed lift, its percentile interval and median, and what it rests on."""

    lift: float
    low: float
    high: float
    median: float
    auc_a: float
    auc_b: float
    n: int
    n_pos: int
    n_boot: int
    n_used: int


def auc_lift(debates, scores_a, scores_b, *, n_boot=1000, seed=20260424, level=0.95, unit="debate"):
    """Paired bootstrap of the difference between two scores' areas under the curve.

    The scores stay fixed; only the debates are resampled. Python's own generator is followed draw for draw,
    so equal seeds give equal resamples to every pair of scores.

    Parameters
    ----------
    debates : DataFrame
        One line a debate, in source order, with `cell`.
    scores_a, scores_b : array_like of float, shape (debates,)
        Scores of the smaller and of the larger view, from `oof_scores`; a debate with a NaN in either is left
        out.
    n_boot : int
        Resamples.
    seed : int
        Seed of `random.Random`.
    level : float
        Level of the percentile interval.
    unit : {"debate", "question", "row", "two-way"}
        What is drawn with replacement: debates (the paper), questions or rows with all their debates
        (clustered), or questions and rows both, each debate counting the product of its two counts. Rows are
        drawn with the next seed.

    Returns
    -------
    Lift
        `lift` = `auc_b` - `auc_a`, `low`, `high`, `median` of the resampled lifts, `n` debates, `n_pos`
        collapses, `n_boot`, and `n_used` resamples with both classes.

    References
    ----------
    Section E.1. Two-way: Owen (2007), The pigeonhole bootstrap, Annals of Applied Statistics 1.

    Examples
    --------
    >>> seen = pd.DataFrame({"cell": ["collapse", "preserved"] * 20})
    >>> found = auc_lift(seen, [0.5] * 40, [1.0, 0.0] * 20, n_boot=50)
    >>> found.lift, found.low, found.high
    (0.5, 0.5, 0.5)
    """
    choice("unit", unit, UNITS)
    a, b = np.asarray(scores_a, dtype=float), np.asarray(scores_b, dtype=float)
    if not len(a) == len(b) == len(debates):
        raise ValueError(f"scores: {len(a)} and {len(b)} for {len(debates)} debates; expected one each")
    keep = ~(np.isnan(a) | np.isnan(b)) & debates["cell"].notna().to_numpy()
    a, b = a[keep], b[keep]
    y = (debates["cell"] == "collapse").to_numpy()[keep]
    ranked = [_tie_groups(y, score) for score in (a, b)]
    lifts = np.full(n_boot, np.nan)
    for i, weight in enumerate(_weights(debates[keep], unit, n_boot, seed) if len(y) else ()):
        areas = [_weighted_auc(code, n_groups, weight) for code, n_groups in ranked]
        lifts[i] = areas[1] - areas[0]
    used = lifts[~np.isnan(lifts)]
    tail = (1 - level) / 2
    low, median, high = np.quantile(used, [tail, 0.5, 1 - tail]) if len(used) else [np.nan] * 3
    auc_a, auc_b = auc(y, a), auc(y, b)
    counts = len(y), int(y.sum()), n_boot, len(used)
    return Lift(auc_b - auc_a, float(low), float(high), float(median), auc_a, auc_b, *counts)


def _weights(debates, unit, n_boot, seed):
    """Yield how often each debate counts in each resample."""
    if unit == "debate":
        n = len(debates)
        yield from (np.bincount(drawn, minlength=n) for drawn in resamples(n, n_boot, seed))
    elif unit == "two-way":
        pairs = zip(_weights(debates, "question", n_boot, seed), _weights(debates, "row", n_boot, seed + 1))
        yield from (by_question * by_row for by_question, by_row in pairs)
    else:
        member, names = pd.factorize(debates[unit].to_numpy())
        for drawn in resamples(len(names), n_boot, seed):
            yield np.bincount(drawn, minlength=len(names))[member]


def _tie_groups(y, score):
    """Each debate's tie group in ascending score, doubled, plus its label; and the number of groups."""
    distinct, group = np.unique(score, return_inverse=True)
    return 2 * group + y, len(distinct)


def _weighted_auc(code, n_groups, weight):
    count = np.bincount(code, weights=weight, minlength=2 * n_groups)
    negative, positive = count[::2], count[1::2]
    pairs = positive.sum() * negative.sum()
    if pairs == 0:
        return np.nan
    return positive @ (np.cumsum(negative) - negative / 2) / pairs
