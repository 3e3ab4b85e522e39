"""Families drawn again: bootstrap intervals of the association over model rows."""

import numpy as np
import pandas as pd

from analysis.association import checked, row_association
from analysis.errors import DataError

RELEASED_SEED = int("d89781d", 16)  # the registration's commit, as the released script reads it


def family_bootstrap(
    rows, *, predictor="alpha_tot", outcome="c_cond", by="family", resamples=10_000, seed=RELEASED_SEED,
    level=0.95
):
    """Percentile interval of the rank correlation over rows, whole families being drawn with replacement.

    Parameters
    ----------
    rows : DataFrame
        Model rows with `row`, the grouping column, predictor and outcome.
    predictor, outcome, by : str
        Columns.
    resamples, seed : int
        Number of resamples; seed of numpy's default generator.
    level : float
        Coverage.

    Returns
    -------
    DataFrame
        One line: ``n_rows, n_families, rho, low, high, resamples, n_valid, seed``. A resample in which one
        family was drawn every time, or whose rows have no rank correlation, is left out.

    Raises
    ------
    DataError
        A column is missing, or a value in it.

    Notes
    -----
    A family drawn twice enters with all its rows twice. Its rows then tie with their own copies, and the
    interval can end at 1 when few families are left.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", Table 23 (released with the row
    checks).

    Examples
    --------
    >>> rows = pd.DataFrame({"row": list("abcde"), "family": list("FFGHI"),
    ...                      "alpha_tot": [0.1, 0.3, 0.4, 0.5, 0.7], "c_cond": [0.0, 0.02, 0.05, 0.03, 0.2]})
    >>> family_bootstrap(rows, resamples=500)[["rho", "n_families", "n_valid"]].round(3).values.tolist()
    [[0.9, 4.0, 491.0]]
    """
    known = checked(rows, [predictor, outcome], by)
    if known[[predictor, outcome]].isna().any(axis=None):
        raise DataError("rows: a value is missing: expected rows with predictor and outcome")
    families = sorted(known[by].unique())
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(families), (resamples, len(families)))
    times = (drawn[:, :, None] == np.arange(len(families))).sum(axis=1)
    weights = times[:, [families.index(name) for name in known[by]]]
    with np.errstate(invalid="ignore", divide="ignore"):
        rho = weighted_spearman(known[predictor].to_numpy(), known[outcome].to_numpy(), weights)
    rho = rho[((times > 0).sum(axis=1) > 1) & np.isfinite(rho)]
    low, high = np.quantile(rho, [(1 - level) / 2, (1 + level) / 2])
    return pd.DataFrame([{
        "n_rows": len(known), "n_families": len(families),
        "rho": row_association(rows, predictor, outcome, by=by)["rho"].item(),
        "low": low, "high": high, "resamples": resamples, "n_valid": len(rho), "seed": seed,
    }])


def weighted_spearman(x, y, weights):
    """Spearman of vectors whose entries are repeated, many repetitions at once.

    Parameters
    ----------
    x, y : ndarray of float, shape (n,)
    weights : ndarray of int, shape (m, n)
        How often each entry stands there, one line a correlation.

    Returns
    -------
    ndarray of float, shape (m,)
        NaN where the repeated entries are all equal.

    Examples
    --------
    >>> x, y = np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])
    >>> weighted_spearman(x, y, np.array([[1, 1, 1], [2, 1, 0]])).round(6).tolist()
    [0.5, 1.0]
    """
    total = weights.sum(axis=1, keepdims=True)
    left = []
    for values in (x, y):
        below, same = (values[:, None] < values), (values[:, None] == values)
        ranks = weights @ below + (weights @ same + 1) / 2
        left.append(ranks - (weights * ranks).sum(axis=1, keepdims=True) / total)
    a, b = left
    spread = (weights * a**2).sum(axis=1) * (weights * b**2).sum(axis=1)
    return (weights * a * b).sum(axis=1) / np.sqrt(spread)


def bootstraps(rows, without, *, resamples=10_000, seed=RELEASED_SEED):
    """`family_bootstrap` of all rows, without each family, and without named groups of rows.

    Parameters
    ----------
    rows : DataFrame
        Model rows, as for `family_bootstrap`.
    without : DataFrame
        `subgroup, row`: rows that a subgroup leaves out.
    resamples, seed : int

    Returns
    -------
    DataFrame
        The columns of `family_bootstrap` after ``kind`` (all rows, family left out, subgroup) and ``name``.

    Raises
    ------
    DataError
        A subgroup names a row that is not there.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", Table 23.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": list("abcde"), "family": list("FFGHI"),
    ...                      "alpha_tot": [0.1, 0.3, 0.4, 0.5, 0.7], "c_cond": [0.0, 0.02, 0.05, 0.03, 0.2]})
    >>> found = bootstraps(rows, pd.DataFrame({"subgroup": ["without a"], "row": ["a"]}), resamples=100)
    >>> found["name"].tolist(), found["n_rows"].tolist()
    (['', 'F', 'G', 'H', 'I', 'without a'], [5, 3, 4, 4, 4, 4])
    """
    unknown = without.loc[~without["row"].isin(rows["row"]), "row"]
    if len(unknown):
        known = ", ".join(rows["row"])
        raise DataError(f"subgroups, field 'row': {unknown.iat[0]!r}: expected one of {known}")
    cases = [("all rows", "", rows)]
    cases += [("family left out", name, rows[rows["family"] != name]) for name in sorted(set(rows["family"]))]
    cases += [("subgroup", name, rows[~rows["row"].isin(group)])
              for name, group in without.groupby("subgroup", sort=False)["row"]]
    parts = []
    for kind, name, some in cases:
        part = family_bootstrap(some, resamples=resamples, seed=seed)
        part.insert(0, "name", name)
        part.insert(0, "kind", kind)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)
