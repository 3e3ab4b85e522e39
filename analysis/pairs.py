"""What the screen is worth for choosing between two rows, and how many families a test of it would need."""

from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis import stats
from analysis.association import checked
from analysis.errors import DataError

FOLLOWS = ("screen", "comparator", "neither")


def pairwise_audit(rows, *, predictor="alpha_tot", comparator="init_acc", by="family"):
    """Every pair of rows: do the screen and a comparator order it differently, and which one does collapse
    follow?

    Parameters
    ----------
    rows : DataFrame
        Model rows with `row`, the grouping column, both orderings, `collapse` and `init_correct` (counts).
    predictor, comparator : str
        Columns: a higher predictor and a lower comparator mean more risk.
    by : str
        Grouping column.

    Returns
    -------
    DataFrame
        One line a pair, in the order of rows: ``row_a, row_b, same_family, reordered`` (the two orderings
        disagree, or only one of them has a tie), ``screen, comparator, observed`` (sign of a's risk minus
        b's), ``collapse_a, init_correct_a, collapse_b, init_correct_b``, ``follows`` (screen, comparator or
        neither; reordered pairs only), ``p`` (two-sided Fisher exact test of conditional collapse) and
        ``p_holm`` (Holm over the reordered pairs, missing for the others).

    Raises
    ------
    DataError
        A column is missing, or fewer than two rows have everything.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. 4.2 and G.1, Table 41.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": list("abc"), "family": "F", "alpha_tot": [0.1, 0.2, 0.3],
    ...                      "init_acc": [0.5, 0.4, 0.6], "collapse": [0, 9, 5], "init_correct": 20})
    >>> pairwise_audit(rows)[["row_a", "row_b", "reordered", "follows"]].values.tolist()
    [['a', 'b', False, nan], ['a', 'c', True, 'screen'], ['b', 'c', True, 'comparator']]
    """
    known = checked(rows, [predictor, comparator, "collapse", "init_correct"], by).dropna()
    if len(known) < 2:
        raise DataError(f"rows: {len(known)} with flip rate and counts; expected 2 or more, to make a pair")
    lines = []
    for a, b in combinations(known.to_dict("records"), 2):
        fell = [[line["collapse"], line["init_correct"] - line["collapse"]] for line in (a, b)]
        lines.append({
            "row_a": a["row"], "row_b": b["row"], "same_family": a[by] == b[by],
            "screen": np.sign(a[predictor] - b[predictor]),
            "comparator": np.sign(b[comparator] - a[comparator]),
            "observed": np.sign(a["collapse"] * b["init_correct"] - b["collapse"] * a["init_correct"]),
            **{f"{name}_{side}": int(line[name]) for side, line in (("a", a), ("b", b))
               for name in ("collapse", "init_correct")},
            "p": sps.fisher_exact(fell).pvalue,
        })
    audit = pd.DataFrame(lines)
    odd = audit["screen"] != audit["comparator"]
    follows = np.select([audit["observed"] == audit[name] for name in FOLLOWS[:2]], FOLLOWS[:2], FOLLOWS[2])
    audit.insert(3, "reordered", odd)
    audit["follows"] = pd.Series(follows, audit.index).where(odd)
    audit.loc[odd, "p_holm"] = stats.holm(audit.loc[odd, "p"])
    return audit


def audit_counts(audit, *, level=0.05):
    """Count the reordered pairs by what collapse follows.

    Parameters
    ----------
    audit : DataFrame
        From `pairwise_audit`.
    level : float
        Of the tests.

    Returns
    -------
    DataFrame
        Indexed by screen, comparator, neither and all: ``reordered, p_below, holm_below`` (pairs); the number
        of all pairs is ``len(audit)``.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. G.1.

    Examples
    --------
    >>> audit = pd.DataFrame({"reordered": [True, True, False], "follows": ["screen", "neither", None],
    ...                       "p": [0.01, 0.9, 0.9], "p_holm": [0.02, 0.9, None]})
    >>> audit_counts(audit).loc[["screen", "all"]].values.tolist()
    [[1, 1, 1], [2, 1, 1]]
    """
    odd = audit[audit["reordered"]]
    marks = pd.DataFrame({"reordered": True, "p_below": odd["p"] < level,
                          "holm_below": odd["p_holm"] < level})
    counts = marks.groupby(odd["follows"]).sum().reindex(FOLLOWS, fill_value=0)
    counts.loc["all"] = counts.sum()
    return counts.rename_axis(None).astype(int)


def audit_with_added(rows, added, **options):
    """Counts of `pairwise_audit` for the cohort and for the cohort with each outside row.

    Parameters
    ----------
    rows, added : DataFrame
        As for `pairwise_audit`; an outside row without predictor, counts or a right start is
        left out.
    **options
        As for `pairwise_audit`.

    Returns
    -------
    DataFrame
        One line for the cohort (``rows`` = "paper") and one an outside row: ``rows, added, pairs, reordered,
        screen, comparator, neither, p_below, holm_below``.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": list("abc"), "family": "F", "alpha_tot": [0.1, 0.2, 0.3],
    ...                      "init_acc": [0.5, 0.4, 0.6], "collapse": [0, 9, 5], "init_correct": 20})
    >>> audit_with_added(rows, rows.assign(row=["x", "y", "z"]).iloc[:1])[["rows", "pairs"]].values.tolist()
    [['paper', 3], ['x', 6]]
    """
    needed = [options.get("predictor", "alpha_tot"), options.get("comparator", "init_acc"), "init_correct"]
    usable = added.dropna(subset=needed) if set(needed) <= set(added) else added.iloc[:0]
    if len(usable):
        usable = usable[usable["init_correct"] > 0]  # nothing that could collapse, so no rate to compare
    cases = {"paper": rows} | {name: pd.concat([rows, usable[usable["row"] == name]], ignore_index=True)
                               for name in usable.get("row", [])}
    lines = []
    for name, some in cases.items():
        audit = pairwise_audit(some, **options)
        counts = audit_counts(audit)
        lines.append({"rows": name, "added": name != "paper", "pairs": len(audit), **counts.loc["all"],
                      **counts.loc[list(FOLLOWS), "reordered"]})
    return pd.DataFrame(lines)


def family_power(rho, n_families, *, controls=1, level=0.05):
    """Approximate power of a two-sided test of a partial rank correlation over families.

    Parameters
    ----------
    rho : float
        Correlation that is taken to be true, between -1 and 1.
    n_families : int or array_like of int
        At least `controls` + 4.
    controls : int
        Quantities held fixed.
    level : float
        Of the test.

    Returns
    -------
    float or ndarray of float
        By Fisher's z; both tails count.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. G.1.

    Examples
    --------
    >>> family_power(0.767, [7, 12]).round(3).tolist()
    [0.419, 0.817]
    """
    critical = sps.norm.ppf(1 - level / 2)
    z = np.arctanh(rho) * np.sqrt(np.asarray(n_families) - controls - 3)
    return sps.norm.sf(critical - z) + sps.norm.cdf(-critical - z)


def plan_families(rho, *, controls=1, level=0.05, power=0.8, most=1000):
    """Fewest families with which a partial rank correlation would be found often enough.

    Parameters
    ----------
    rho : float or sequence of float
        Correlations that are taken to be true; an observed one is a noisy guess.
    controls : int
        Quantities held fixed.
    level, power : float
        Of the two-sided test; wanted share of studies that find the correlation.
    most : int
        Largest number of families looked at.

    Returns
    -------
    DataFrame
        One line a correlation: ``rho, controls, level, target, n_families`` (missing if more than `most`) and
        ``power`` with that many.

    Raises
    ------
    ValueError
        A correlation outside -1..1, or `level` or `power` outside 0..1.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. G.1: a planning approximation,
    not an exact small-sample calculation.

    Examples
    --------
    >>> plan_families([0.767, 0.597])["n_families"].tolist()
    [12, 21]
    """
    for name, share in (("level", level), ("power", power)):
        if not 0 < share < 1:
            raise ValueError(f"{name}={share}: expected a share between 0 and 1, such as 0.8")
    if not (np.abs(np.atleast_1d(rho).astype(float)) <= 1).all():
        raise ValueError(f"rho={rho}: expected correlations between -1 and 1")
    sizes = np.arange(controls + 4, most + 1)
    lines = []
    for value in np.atleast_1d(rho).astype(float):
        reached = family_power(value, sizes, controls=controls, level=level)
        enough = reached >= power
        at = int(enough.argmax()) if enough.any() else None
        lines.append({"rho": value, "controls": controls, "level": level, "target": power,
                      "n_families": None if at is None else int(sizes[at]),
                      "power": np.nan if at is None else reached[at]})
    return pd.DataFrame(lines).astype({"n_families": "Int64"})


def halves(rows, *, predictor="alpha_tot"):
    """Rows split at the median flip rate, each half's debates put together.

    Parameters
    ----------
    rows : DataFrame
        Model rows with counts and `row`.
    predictor : str
        Column that splits; rows at the median fall into the lower half.

    Returns
    -------
    DataFrame
        Indexed "low" and "high", as far as a half has rows: ``rows`` (names), ``n_rows, predictor`` (mean),
        ``n, init_correct, collapse, correction, final_correct``, ``c_cond, correction_rate,
        final_acc`` (fractions of the summed counts).

    Notes
    -----
    Large rows weigh by their debates here, unlike in the rank tests.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": list("ab"), "alpha_tot": [0.1, 0.3], "n": 10, "init_correct": 5,
    ...                      "collapse": [0, 2], "correction": [1, 2], "final_correct": [6, 5]})
    >>> halves(rows)["c_cond"].to_dict()
    {'low': 0.0, 'high': 0.4}
    """
    rows = rows.dropna(subset=[predictor])
    side = np.where(rows[predictor] <= rows[predictor].median(), "low", "high")
    groups = rows.groupby(side)
    out = groups[["n", "init_correct", "collapse", "correction", "final_correct"]].sum()
    out.insert(0, predictor, groups[predictor].mean())
    out.insert(0, "n_rows", groups.size())
    out.insert(0, "rows", groups["row"].agg(list))
    return out.sort_index(ascending=False).assign(
        c_cond=out["collapse"] / out["init_correct"], final_acc=out["final_correct"] / out["n"],
        correction_rate=out["correction"] / (out["n"] - out["init_correct"]))


def matched_pairs(rows, *, predictor="alpha_tot", window=0.05):
    """Pairs of rows that start about as accurate: does the one with the lower flip rate collapse less?

    Parameters
    ----------
    rows : DataFrame
        Model rows with `row`, the predictor, `init_acc, final_acc, c_cond` (fractions); those that lack one
        are left out.
    predictor : str
        Column that says which row of a pair is the low one.
    window : float
        Largest difference of initial accuracy.

    Returns
    -------
    DataFrame
        One line a pair: ``low, high`` (rows), ``init_acc_gap``, and low minus high ``c_cond, final_acc``.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": list("ab"), "alpha_tot": [0.3, 0.1], "init_acc": [0.5, 0.52],
    ...                      "final_acc": [0.5, 0.6], "c_cond": [0.2, 0.1]})
    >>> matched_pairs(rows)[["low", "high", "c_cond"]].values.tolist()
    [['b', 'a', -0.1]]
    """
    lines = []
    known = rows.dropna(subset=[predictor, "init_acc", "final_acc", "c_cond"])
    for pair in combinations(known.to_dict("records"), 2):
        low, high = sorted(pair, key=lambda line: line[predictor])
        gap = abs(low["init_acc"] - high["init_acc"])
        if gap <= window + 1e-12:
            lines.append({"low": low["row"], "high": high["row"], "init_acc_gap": gap,
                          **{name: low[name] - high[name] for name in ("c_cond", "final_acc")}})
    return pd.DataFrame(lines, columns=["low", "high", "init_acc_gap", "c_cond", "final_acc"])
