"""The eleven-family extension: the same tests with rows run later, and what a single family moves."""

from itertools import combinations, permutations
from math import factorial

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis.association import counted, family_association, family_means, partial, row_association

MOST = 12  # families up to which every order is counted
TOLERANCE = 1e-12
UNCOUNTED = {"p_two_sided": np.nan, "two_sided_count": None}
SOLID = 1e-6  # below it, what a control leaves of ranks is rounding


def extended(rows, extension_rows):
    """The cohort and the rows run later, in one frame.

    Parameters
    ----------
    rows : DataFrame
        Model rows with `row, family, alpha_tot, c_cond, init_acc`.
    extension_rows : DataFrame
        `row, family, alpha_tot, n, init_correct, collapse` (counts at Round 3).

    Returns
    -------
    DataFrame
        All rows with `c_cond` and `init_acc` (fractions); `later` tells the added ones.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", G.1.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": ["a"], "family": ["F"], "c_cond": [0.0], "init_acc": [0.9]})
    >>> later = pd.DataFrame({"row": ["b"], "family": ["G"], "n": 10, "init_correct": 8, "collapse": 2})
    >>> extended(rows, later)[["row", "c_cond", "init_acc", "later"]].values.tolist()
    [['a', 0.0, 0.9, False], ['b', 0.25, 0.8, True]]
    """
    added = extension_rows.assign(init_acc=extension_rows["init_correct"] / extension_rows["n"],
                                  c_cond=extension_rows["collapse"] / extension_rows["init_correct"])
    return pd.concat([rows.assign(later=False), added.assign(later=True)], ignore_index=True)


def label_permutation(x, y, control):
    """Exact two-sided p of a partial rank correlation: the outcome is handed out anew, predictor and control
    stay.

    Parameters
    ----------
    x, y, control : array_like of float, shape (n,)
        Paired values, 4 <= n <= `MOST`.

    Returns
    -------
    dict
        ``rho, p_two_sided, two_sided_count, n_orders`` (all n! orders). Orders that the control explains
        entirely have no partial correlation and count as not reaching rho; if it explains the given one, rho
        and p are NaN.

    Raises
    ------
    ValueError
        With more than `MOST` values.

    Notes
    ----- A partial correlation needs two sums of products for each order, those of `y` with what is left of
    `x` and with the control. Both add up over two halves of the places: for every choice of the values that
    go into the first half, the sums of its orders meet those of the second half, so that 12! orders cost a
    few million products, not half a billion.

    Examples
    --------
    >>> found = label_permutation([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], [1, 1, 2, 2, 1])
    >>> round(found["rho"], 4), found["two_sided_count"], found["n_orders"]
    (0.7818, 26, 120)
    """
    ranks = [sps.rankdata(values) for values in (x, y, control)]
    n = len(ranks[0])
    if n > MOST:
        raise ValueError(f"{n} values: expected at most {MOST} to count every order")
    x, y, z = (values - values.mean() for values in ranks)
    z = z / (np.linalg.norm(z) or 1)
    x = x - x @ z * z
    within_y = y @ y - (y @ z) ** 2
    if np.linalg.norm(x) < SOLID or within_y < SOLID:
        return {"rho": np.nan, "p_two_sided": np.nan, "two_sided_count": None, "n_orders": factorial(n)}
    x = x / np.linalg.norm(x)
    rho = x @ y / np.sqrt(within_y)
    cut, places = n // 2, np.column_stack([x, z])
    within = [np.array(list(permutations(range(size)))) for size in (cut, n - cut)]
    count, orders = 0, 0
    for chosen in combinations(range(n), cut):
        first = np.zeros(n, dtype=bool)
        first[list(chosen)] = True
        head, tail = y[first][within[0]] @ places[:cut], y[~first][within[1]] @ places[cut:]
        with_x, with_z = (head[:, None, k] + tail[None, :, k] for k in (0, 1))
        left = y @ y - with_z**2
        solid = left > SOLID
        count += int((np.abs(with_x[solid]) >= (abs(rho) - TOLERANCE) * np.sqrt(left[solid])).sum())
        orders += with_x.size
    return {"rho": float(rho), "p_two_sided": count / orders, "two_sided_count": count, "n_orders": orders}


def leverage(rows, families=None):
    """The tests over all families and without each of some, with exact p for the partial correlation too.

    Parameters
    ----------
    rows : DataFrame
        Model rows, as `extended` returns them.
    families : sequence of str, optional
        Families to leave out, one at a time; every family unless given.

    Returns
    -------
    DataFrame
        One line for all families (``dropped`` = "") and one a family left out: ``dropped, n_rows, n_families,
        row_rho, rho, p_two_sided, two_sided_count, n_orders`` (family test), ``partial_rho, partial_p_t`` and
        ``partial_p_label, partial_count`` (initial accuracy taken out; t approximation, and every order
        counted, up to `MOST` families).

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", G.1.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": list("abcde"), "family": list("FGHIJ"), "alpha_tot": [1, 2, 3, 4, 5],
    ...                      "c_cond": [2, 1, 4, 3, 5], "init_acc": [1, 1, 2, 2, 1]})
    >>> leverage(rows, [])[["rho", "partial_rho", "partial_count"]].round(3).values.tolist()
    [[0.8, 0.782, 26]]
    """
    lines = []
    for name in ("", *(sorted(set(rows["family"])) if families is None else families)):
        some = rows[rows["family"] != name]
        family, given = family_association(some).iloc[0], partial(some).iloc[0]
        means = family_means(some, columns=["alpha_tot", "c_cond", "init_acc"])
        few = len(means) <= MOST
        columns = (means[column] for column in ("alpha_tot", "c_cond", "init_acc"))
        exact = label_permutation(*columns) if few else UNCOUNTED
        lines.append({
            "dropped": name, "n_rows": len(some), "n_families": family["n_families"],
            "row_rho": row_association(some)["rho"].item(),
            **family[["rho", "p_two_sided", "two_sided_count", "n_orders"]],
            "partial_rho": given["rho"], "partial_p_t": given["p_t"], "partial_p_label": exact["p_two_sided"],
            "partial_count": exact["two_sided_count"],
        })
    return counted(lines)
