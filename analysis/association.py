"""Rank association of a predictor with an outcome over families and over model rows.

The two levels of the pre-debate screen; `analysis.screen` offers them together with their sensitivities.
"""

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from analysis import stats
from analysis.errors import DataError, choice

HOW = ("mean", "median")
LEVELS = ("family", "row")
COUNTS = ("n", "init_correct", "init_wrong", "collapse", "correction", "final_correct")


def checked(rows, columns, by):
    """Return row, family and the named columns as floats; derived comparators may be named too."""
    rows = derived(rows)
    for name in ["row", by, *columns]:
        if name not in rows.columns:
            raise DataError(f"rows: no column {name!r}: expected one of {', '.join(map(str, rows.columns))}")
    if rows[by].isna().any():
        lost = rows.loc[rows[by].isna(), "row"].iloc[0]
        raise DataError(f"row {lost!r}, field {by!r}: missing: expected a name")
    out = rows[["row", by]].copy()
    for name in dict.fromkeys(columns):
        try:
            out[name] = stats.floats(rows[name])
        except (TypeError, ValueError) as error:
            raise DataError(f"rows, field {name!r}: {error}: expected numbers") from None
    return out


def derived(rows):
    """Add the comparators that are only another reading of columns already there."""
    if "capability_pressure" not in rows and "init_acc" in rows:
        rows = rows.assign(capability_pressure=1 - rows["init_acc"])
    if "collapse_rate" not in rows and {"collapse", "n"} <= set(rows.columns):
        rows = rows.assign(collapse_rate=rows["collapse"] / rows["n"])
    return rows


def average(rows, columns, by, how):
    """Average within families; one missing value makes the family's missing, never a mean of fewer rows."""
    choice("how", how, HOW)
    groups = rows.groupby(by, sort=True)[list(columns)]
    complete = groups.count().eq(groups.size(), axis=0)
    return groups.agg(how).where(complete)


def rank_test(x, y, exact=True):
    """Spearman of two columns as a dict; what cannot be had is NaN/None with the reason in `note`."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    out = {"rho": np.nan, "p_two_sided": np.nan, "p_one_sided": np.nan, "two_sided_count": None,
           "one_sided_count": None, "n_orders": None, "p_asymptotic": np.nan, "note": ""}
    if len(x) < 3:
        return out | {"note": f"{len(x)} units, expected at least 3"}
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return out | {"note": "all units have the same value: no rank correlation"}
    found = spearmanr(x, y)
    out |= {"rho": float(found.statistic), "p_asymptotic": float(found.pvalue)}
    if exact and len(x) > stats.EXACT_SPEARMAN_MAX:
        return out | {"note": f"{len(x)} units: no exact p above {stats.EXACT_SPEARMAN_MAX}"}
    if exact:
        full = stats.exact_spearman(x, y)._asdict()
        out |= {name: full[name] for name in full if name in out}
    return out


def counted(records):
    """Frame of records with counts that stay whole numbers beside missing ones."""
    out = pd.DataFrame.from_records(records)
    whole = [name for name in out if name.endswith("_count") or name.endswith("n_orders")]
    return out.astype(dict.fromkeys(whole, "Int64"))


def family_means(rows, *, by="family", how="mean", columns=None):
    """One line a family: the simple mean (or median) over its model rows.

    Parameters
    ----------
    rows : DataFrame
        Model rows with `row`, the grouping column and numeric columns.
    by : str
        Grouping column.
    how : {"mean", "median"}
        Over model rows, each weighing the same whatever its number of debates.
    columns : list of str, optional
        Columns to average; all float columns that are not interval ends by default.

    Returns
    -------
    DataFrame
        Sorted by family: the grouping column, ``n_rows``, the averaged columns (a column missing in one row
        of a family is missing for the family), and the sums of the count columns present (`n`,
        `init_correct`, `collapse`, ...). A mean of rates is not the ratio of those sums.

    Raises
    ------
    DataError
        When a column is not there or a row has no family.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.2.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": list("abc"), "family": ["F", "F", "G"], "c_cond": [0.1, 0.3, 0.0],
    ...                      "collapse": [1, 30, 0], "init_correct": [10, 100, 50]})
    >>> family_means(rows)
      family  n_rows  c_cond  init_correct  collapse
    0      F       2     0.2           110        31
    1      G       1     0.0            50         0
    """
    if columns is None:
        columns = [name for name in rows.select_dtypes("float") if not str(name).endswith(("_low", "_high"))
                   and name not in COUNTS]
    known = checked(rows, columns, by)
    out = average(known, columns, by, how)
    out.insert(0, "n_rows", known.groupby(by).size())
    for name in COUNTS:
        if name in rows and name not in columns:
            out[name] = rows.groupby(by)[name].sum()
    return out.reset_index()


def family_association(rows, predictor="alpha_tot", outcome="c_cond", *, how="mean", by="family"):
    """Spearman of family values with its exact permutation p: the primary statistic of the screen.

    Parameters
    ----------
    rows : DataFrame
        Model rows with `row`, the grouping column, predictor and outcome. Rows that lack either value are
        left out and counted.
    predictor, outcome : str
        Columns.
    how : {"mean", "median"}
        How rows of a family become one value.
    by : str
        Grouping column.

    Returns
    -------
    DataFrame
        One line: ``predictor, outcome, how, n_rows, n_missing`` (rows used and left out), ``n_families,
        rho``; exact ``p_two_sided`` and ``p_one_sided`` (positive direction) with ``two_sided_count,
        one_sided_count, n_orders``; ``p_asymptotic`` (t, two-sided); ``note``, the reason where a value is
        missing.

    Raises
    ------
    DataError
        When a column is not there, holds something else than numbers, or a row has no family.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.2, Tables 3 and 23.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": list("abcde"), "family": list("FFGHI"),
    ...                      "alpha_tot": [0.1, 0.3, 0.4, 0.5, 0.7], "c_cond": [0.0, 0.02, 0.05, 0.03, 0.2]})
    >>> family_association(rows)[["n_families", "rho", "two_sided_count", "n_orders"]]
       n_families  rho  two_sided_count  n_orders
    0           4  0.8                8        24
    """
    known = checked(rows, [predictor, outcome], by)
    used = known.dropna()
    values = average(used, [predictor, outcome], by, how)
    return counted([{
        "predictor": predictor, "outcome": outcome, "how": how, "n_rows": len(used),
        "n_missing": len(known) - len(used), "n_families": len(values),
        **rank_test(values[predictor], values[outcome]),
    }])


def row_association(
    rows, predictor="alpha_tot", outcome="c_cond", *, by="family", level=0.95, z=None, exact=False
):
    """Spearman over model rows, a sensitivity: rows of one family are not independent.

    Parameters
    ----------
    rows : DataFrame
        Model rows, as for `family_association`.
    predictor, outcome, by : str
        Columns.
    level : float
        Coverage of the Fisher-z interval.
    z : float, optional
        Critical value instead of the unrounded quantile.
    exact : bool
        Also count all orders of the rows (up to 16 rows).

    Returns
    -------
    DataFrame
        One line: ``predictor, outcome, n_rows, n_missing, n_families, rho, low, high, p_asymptotic`` (t,
        two-sided), ``p_asymptotic_one_sided`` (positive direction), ``note``; with `exact` the exact columns
        of `family_association` before the note.

    Raises
    ------
    DataError
        As `family_association`.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", Table 23.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": list("abcde"), "family": list("FFGHI"),
    ...                      "alpha_tot": [0.1, 0.3, 0.4, 0.5, 0.7], "c_cond": [0.0, 0.02, 0.05, 0.03, 0.2]})
    >>> row_association(rows)[["n_rows", "rho", "low", "high"]].round(3)
       n_rows  rho    low   high
    0       5  0.9  0.086  0.993
    """
    known = checked(rows, [predictor, outcome], by)
    used = known.dropna()
    found = rank_test(used[predictor], used[outcome], exact=exact)
    note, rho, p = found.pop("note"), found.pop("rho"), found.pop("p_asymptotic")
    low, high = stats.fisher_z_interval(rho, len(used), level=level, z=z)
    return counted([{
        "predictor": predictor, "outcome": outcome, "n_rows": len(used),
        "n_missing": len(known) - len(used), "n_families": used[by].nunique(), "rho": rho, "low": low,
        "high": high, "p_asymptotic": p, "p_asymptotic_one_sided": p / 2 if rho >= 0 else 1 - p / 2,
        **(found if exact else {}), "note": note,
    }])


def partial(
    rows, controls=("init_acc",), *, level="family", predictor="alpha_tot", outcome="c_cond", how="mean",
    by="family"
):
    """Partial Spearman of predictor and outcome given controls.

    Parameters
    ----------
    rows : DataFrame
        Model rows with predictor, outcome and controls.
    controls : str or list of str
        Columns; `capability_pressure` and `collapse_rate` are made when absent.
    level : {"family", "row"}
        Over family values or over model rows.
    predictor, outcome, how, by
        As for `family_association`.

    Returns
    -------
    DataFrame
        One line: ``level, predictor, outcome, controls`` (joined by " + "), ``n, n_rows, n_missing, rho, t,
        df, p_t`` (two-sided), exact ``p_two_sided, p_one_sided, two_sided_count, one_sided_count, n_orders``
        (up to 9 units: the outcome is reassigned, predictor and controls stay), ``note``.

    Raises
    ------
    DataError
        As `family_association`.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.3, Tables 4 and 23.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": list("abcde"), "family": list("FGHIJ"), "alpha_tot": [1, 2, 3, 4, 5],
    ...                      "c_cond": [0.02, 0.01, 0.04, 0.03, 0.05], "init_acc": [0.1, 0.1, 0.2, 0.2, 0.1]})
    >>> partial(rows)[["n", "rho", "df", "two_sided_count", "n_orders"]].round(4)
       n     rho  df  two_sided_count  n_orders
    0  5  0.7818   2               26       120
    """
    choice("level", level, LEVELS)
    controls = [controls] if isinstance(controls, str) else list(controls)
    columns = [predictor, outcome, *controls]
    known = checked(rows, columns, by)
    used = known.dropna()
    values = average(used, dict.fromkeys(columns), by, how) if level == "family" else used
    out = {"level": level, "predictor": predictor, "outcome": outcome, "controls": " + ".join(controls),
           "n": len(values), "n_rows": len(used), "n_missing": len(known) - len(used)}
    names = ("rho", "t", "df", "p_t", "p_two_sided", "p_one_sided",
             "two_sided_count", "one_sided_count", "n_orders")
    least = len(controls) + 3
    if len(values) < least:
        found = dict.fromkeys(names, np.nan) | dict.fromkeys(names[-3:])
        note = f"{len(values)} units and {len(controls)} controls: expected at least {least} units"
    else:
        full = stats.partial_spearman(values[predictor], values[outcome], values[controls])
        found = {name: getattr(full, name) for name in names}
        note = "the controls explain predictor or outcome entirely" if np.isnan(full.rho) else ""
        if not note and full.n_orders is None:
            note = f"{full.n} units: no exact p above {stats.EXACT_PARTIAL_MAX}"
    return counted([{**out, **found, "note": note}])


def effective_families(rows, *, by="family"):
    """Effective number of families: the inverse Simpson index of the rows' shares.

    Parameters
    ----------
    rows : DataFrame
        Model rows.
    by : str
        Grouping column.

    Returns
    -------
    DataFrame
        One line: ``n_rows, n_families, effective_families``.

    Raises
    ------
    DataError
        When a row has no family.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.2.

    Examples
    --------
    >>> effective_families(pd.DataFrame({"row": list("abcd"), "family": list("FFGG")}))
       n_rows  n_families  effective_families
    0       4           2                 2.0
    """
    shares = checked(rows, [], by)[by].value_counts(normalize=True)
    return pd.DataFrame({"n_rows": [len(rows)], "n_families": [len(shares)],
                         "effective_families": [1 / (shares**2).sum()]})
