"""Gates learned from rows: one feature, one threshold, scored on the row they have not seen.

A stump freezes a debate where one early feature reaches a threshold, from above or from below. `learn`
searches all of them; `folds` holds out one row at a time; `oracle` looks at the very debates it is scored on,
which nobody who has to decide can do.

Reference: "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sections E.7 and E.8.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis import replay
from analysis.errors import DataError
from analysis.ledger import as_float

ROUND_0 = ("unanimous_0", "agree_0")
ROUND_1 = (*ROUND_0, "changed_1", "n_flipped_1", "agree_1")
PENALTY = 0.02
PERCENTILES = range(0, 101, 5)
FEW = 25  # distinct values up to which each is a threshold of its own


class Rule(NamedTuple):
    """A learned gate and what it did where it was learned; without a feature it never freezes."""

    feature: str | None
    direction: str
    threshold: float
    fill: float
    n: int
    gated: float
    prevented: float
    lost: float
    objective: float

    def __call__(self, debates):
        """Actions on debates, True where the gate freezes; a missing value counts as the mean of training."""
        if self.feature is None:
            return pd.Series(False, index=debates.index)
        values = _values(debates, self.feature)
        values = np.where(np.isnan(values), self.fill, values)
        fires = values >= self.threshold if self.direction == "from" else values <= self.threshold
        return pd.Series(fires, index=debates.index)


def _values(debates, feature):
    if feature not in debates:
        raise DataError(f"debates: no column {feature!r}; expected the features that the gate looks at")
    return as_float(debates[feature])


def thresholds(values, *, decimals=12):
    """Thresholds that are tried for one feature.

    Parameters
    ----------
    values : array_like of float, shape (n,)
        Values of the feature, none missing.
    decimals : int or None
        Decimals kept, as in the released search: 2/3 then becomes a number just above it, so that a gate that
        freezes from there on leaves 2/3 alone. None keeps all.

    Returns
    -------
    ndarray of float
        The percentiles from 0 to 100 in steps of 5, then each distinct value where there are at most 25.

    References
    ----------
    E.7, as its released scripts define it.

    Examples
    --------
    >>> thresholds([0, 0, 1])[-4:].tolist()
    [0.9, 1.0, 0.0, 1.0]
    """
    distinct = np.unique(values)
    own = distinct if len(distinct) <= FEW else []
    tried = np.concatenate([np.percentile(values, PERCENTILES), own])
    return tried if decimals is None else tried.round(decimals)


def learn(train, features=ROUND_1, *, penalty=PENALTY, decimals=12):
    """Search the one-feature gate that nets most per debate, less a price for each debate it freezes.

    Parameters
    ----------
    train : DataFrame
        Debates as for `replay.replay`, with the features.
    features : sequence of str
        Columns; a missing value counts as the mean of the others.
    penalty : float
        Price of freezing, times the share of debates frozen.
    decimals : int or None
        See `thresholds`.

    Returns
    -------
    Rule
        The gate with the largest net / n - penalty x gated / n; among equals the one with the larger net,
        then fewer lost, then fewer gated, then the first in the order of features and thresholds ("from" the
        threshold up before "up to" it). Freezing nothing is worth 0 and stays unless a gate is better.

    Raises
    ------
    DataError
        A feature is not a column, or there are no debates.

    References
    ----------
    E.7, as its released scripts define it.

    Examples
    --------
    >>> seen = pd.DataFrame({"cell": ["collapse", "collapse", "correction"], "n_flipped_1": [3, 2, 1]})
    >>> learn(seen, ["n_flipped_1"])[:3]
    ('n_flipped_1', 'from', 1.1)
    """
    if train.empty:
        raise DataError("no debates to learn from: expected at least one")
    n = len(train)
    best, best_rank = Rule(None, "", np.nan, np.nan, n, 0, 0, 0, 0.0), (0.0, 0.0, 0.0, 0.0)
    for feature in features:
        values = _values(train, feature)
        known = ~np.isnan(values)
        if not known.any():
            continue
        fill = float(values[known].mean())
        tried = thresholds(values[known], decimals=decimals)
        above, below = _counts(train, np.where(known, values, fill), tried)
        for threshold, *sides in zip(tried.tolist(), above, below, strict=True):
            for direction, (gated, prevented, lost) in zip(("from", "up to"), sides, strict=True):
                net = (prevented - lost) / n
                rank = (net - penalty * (gated / n), net, -lost, -gated / n)
                if rank > best_rank:
                    best_rank = rank
                    best = Rule(feature, direction, threshold, fill, n, gated, prevented, lost, rank[0])
    return best


def _counts(train, values, tried):
    """Gated, prevented and lost from each threshold up, and up to it: two lists of triples."""
    levels = replay.replay(train.assign(level=values), "always_freeze", by="level").sort_values("level")
    running = np.vstack([np.zeros(3), levels[["n", "prevented", "lost"]].cumsum()])
    at = levels["level"].to_numpy()
    above = running[-1] - running[np.searchsorted(at, tried, "left")]
    return above.tolist(), running[np.searchsorted(at, tried, "right")].tolist()


# --- held out -----------------------------------------------------------------------------------------------


class Stump:
    """Gate for `replay.leave_one_model_out`: learns a rule from each training set and keeps it in `rules`."""

    def __init__(self, features=ROUND_1, *, penalty=PENALTY, decimals=12):
        self.features, self.options, self.rules = features, {"penalty": penalty, "decimals": decimals}, []

    def fit(self, train):
        self.rules.append(learn(train, self.features, **self.options))
        return self.rules[-1]


def folds(debates, features=ROUND_1, *, penalty=PENALTY, decimals=12, by="row", least=4):
    """Hold out one row at a time: the rule learned from the others, and what it does on the row.

    Parameters
    ----------
    debates : DataFrame
        As for `learn`, with the column `by`.
    features, penalty, decimals
        As for `learn`.
    by : str
        Column that is held out, one value at a time.
    least : int
        Fewest rows that this is done with.

    Returns
    -------
    DataFrame
        Lines of `replay.leave_one_model_out` (the last one pooled), then `feature, direction, threshold`
        (missing where nothing is frozen), `train_n, train_gated, train_prevented, train_lost, objective`.

    Raises
    ------
    DataError
        Fewer than `least` rows.

    References
    ----------
    E.7: strict leave-one-model-out, from four sources on.

    Examples
    --------
    >>> from analysis import data
    >>> folds(data.debates())[["row", "gated", "feature"]].to_dict("records")[-1]
    {'row': 'pooled', 'gated': 0, 'feature': nan}
    """
    if by not in debates:
        raise DataError(f"debates: no column {by!r}; expected one that names what is held out")
    rows = debates[by].nunique()
    if rows < least:
        raise DataError(f"field {by!r}: {rows} distinct value(s); expected {least} or more, to hold one out")
    stump = Stump(features, penalty=penalty, decimals=decimals)
    out = replay.leave_one_model_out(debates, stump, by=by)
    return out.join(_lines(stump.rules))


def _lines(rules):
    """Rules as lines, their counts named as those of training."""
    lines = pd.DataFrame([rule._asdict() for rule in rules])
    renamed = {name: f"train_{name}" for name in ("n", "gated", "prevented", "lost")}
    columns = ["feature", "direction", "threshold", *renamed.values(), "objective"]
    return lines.rename(columns=renamed)[columns].astype({"feature": "str"})


def sweep(cohorts, *, penalties=(PENALTY, 0.0)):
    """Held-out stumps of several cohorts, with and without Round 1, with and without a price for freezing.

    Parameters
    ----------
    cohorts : dict of str to DataFrame
        Debates by the cohort's name.
    penalties : sequence of float
        Prices of freezing.

    Returns
    -------
    DataFrame
        One line each: `cohort`, `features` ("Round 0", "Round 1"), `penalty`, `rows` held out, `rules` (rows
        for which a gate was learned at all), and the pooled line of `folds`.

    Examples
    --------
    >>> from analysis import data
    >>> found = sweep({"all": data.debates()})
    >>> found[["features", "penalty", "rules", "prevented", "lost"]].values.tolist()[2:]
    [['Round 1', 0.02, 0, 0, 0], ['Round 1', 0.0, 1, 5, 23]]
    """
    lines = []
    for cohort, debates in cohorts.items():
        for name, features in {"Round 0": ROUND_0, "Round 1": ROUND_1}.items():
            for penalty in penalties:
                found = folds(debates, features, penalty=penalty)
                line = {"cohort": cohort, "features": name, "penalty": penalty, "rows": len(found) - 1}
                line |= {"rules": int(found["feature"].notna().sum())}
                lines.append(line | found.iloc[-1][replay.COLUMNS].to_dict())
    return pd.DataFrame(lines)


def oracle(debates, features=ROUND_1, *, by="row"):
    """What the best rule for each row would have netted, chosen on the row itself.

    Parameters
    ----------
    debates : DataFrame
        As for `learn`, with the column `by`.
    features : sequence of str
        Columns.
    by : str
        Column that names a line.

    Returns
    -------
    DataFrame
        One line a row and a last one "pooled": the columns of `replay.replay`, then `feature, direction,
        threshold` of the row's own rule, learned without a price for freezing and without rounding;
        `ceiling_pp`, the gain of freezing collapses only.

    Raises
    ------
    DataError
        There are no debates, or `by` is not a column.

    References
    ----------
    E.8 and Table 37: a per-model oracle shows how much a sweep within the test rows would flatter a gate.

    Examples
    --------
    >>> from analysis import data
    >>> oracle(data.debates()).set_index("row")["net"].tolist()
    [1.0, 0.0, 16.0, 0.0, 0.0, 0.0, 17.0]
    """
    if debates.empty or by not in debates:
        told = f"{len(debates)} with columns {', '.join(debates)}"
        raise DataError(f"debates: {told}; expected some, with {by!r}")
    parts = [part for _, part in debates.groupby(by, sort=False, observed=True)]
    rules = [learn(part, features, penalty=0.0, decimals=None) for part in parts]
    fires = pd.concat([rule(part) for rule, part in zip(rules, parts, strict=True)])
    each = replay.replay(debates, fires, by=by)
    out = pd.concat([each, replay.replay(debates, fires).assign(**{by: replay.POOLED})], ignore_index=True)
    own = _lines(rules)[["feature", "direction", "threshold"]]
    return out.join(own).assign(ceiling_pp=100 * out["collapse"] / out["n"])
