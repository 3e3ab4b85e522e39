"""The monotonicity pilot: do refusals rise along a ladder of pressure, and from its first to its last rung?

Statistics know nothing of files or claims: refusals by model and rung, and paired items of the two end rungs,
come in.

Reference: "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", section F.1.
"""

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis import ranktests, stats
from analysis.errors import choice

PAGE = ("asymptotic", "exact", "exact_ties")


def rates(refusals):
    """Refusal rates as one line a model and one column a rung.

    Parameters
    ----------
    refusals : DataFrame
        `row, rung, n` items, `refusals`.

    Returns
    -------
    DataFrame
        Indexed by row, in order of appearance; columns are rungs, ascending.

    Examples
    --------
    >>> refusals = pd.DataFrame({"row": "a", "rung": [1, 0], "n": 10, "refusals": [4, 1]})
    >>> rates(refusals).values.tolist()
    [[0.1, 0.4]]
    """
    lines = refusals.assign(rate=refusals["refusals"] / refusals["n"])
    return lines.pivot(index="row", columns="rung", values="rate").reindex(refusals["row"].unique())


def ladder(refusals):
    """Trend of refusals along the rungs, by model.

    Parameters
    ----------
    refusals : DataFrame
        `row, rung, n, refusals`.

    Returns
    -------
    DataFrame
        One line a model: `row`; `rho` (rank correlation of rung and rate); three one-sided p of it: `p_exact`
        over all orders of the observed rates, ties included, with `count` of `n_orders` orders as large;
        `p_no_ties` against all orders of as many different values; `p_asymptotic` (t); `inversion`, the
        largest fall of the rate from a rung to a later one.

    Notes
    -----
    The released p sets the correlation of tied rates against orders without ties. Ties make some correlations
    impossible and others common, so that it is not the p of any test that was run.

    References
    ----------
    Table 39.

    Examples
    --------
    >>> refusals = pd.DataFrame({"row": "a", "rung": [0, 1, 2, 3], "n": 10, "refusals": [0, 1, 4, 3]})
    >>> ladder(refusals)[["rho", "p_exact", "p_no_ties", "inversion"]].round(4).values.tolist()
    [[0.8, 0.1667, 0.1667, 0.1]]
    """
    wide = rates(refusals)
    rungs = wide.columns.to_numpy(float)
    untied = ranktests.spearman_null(rungs, rungs)
    lines = []
    for row, rate in wide.iterrows():
        found = ranktests.exact_spearman(rungs, rate)
        larger = untied.loc[untied["rho"] >= found.rho - ranktests.TOLERANCE, "count"].sum()
        lines.append({
            "row": row, "rho": found.rho, "p_exact": found.p_one_sided, "count": found.one_sided_count,
            "n_orders": found.n_orders, "p_no_ties": larger / found.n_orders,
            "p_asymptotic": sps.spearmanr(rungs, rate, alternative="greater").pvalue,
            "inversion": float((rate.cummax() - rate).max()),
        })
    return pd.DataFrame(lines)


def floors(refusals, pairs, *, least_floor=0.0, level=0.05, least_share=0.5):
    """The last rung against the first, with the three gates of a usable model.

    Parameters
    ----------
    refusals : DataFrame
        `row, rung, n, refusals`.
    pairs : DataFrame
        `row, only_top, only_bottom`: items refused at one of the two end rungs only.
    least_floor : float
        Rise from first to last rung that a usable model needs (fraction of items).
    level : float
        Of the McNemar test, and one minus the confidence of the Wilson limit.
    least_share : float
        The lower Wilson limit of only_top among the discordant items must be above it.

    Returns
    -------
    DataFrame
        One line a model: `row`, `first`, `last` (rates), `floor` (last minus first), `only_top`,
        `only_bottom`, `p_mcnemar` (one-sided, exact), `wilson_low` (one-sided; 0 without a discordant item),
        `floor_met`, `mcnemar_met`, `wilson_met`, `usable` (floor and McNemar).

    References
    ----------
    Table 40.

    Examples
    --------
    >>> refusals = pd.DataFrame({"row": "a", "rung": [0, 1], "n": 10, "refusals": [0, 5]})
    >>> pairs = pd.DataFrame({"row": ["a"], "only_top": [5], "only_bottom": [0]})
    >>> floors(refusals, pairs, least_floor=0.02)[["floor", "p_mcnemar", "usable"]].values.tolist()
    [[0.5, 0.03125, True]]
    """
    wide = rates(refusals)
    first, last = (wide.iloc[:, at].to_numpy() for at in (0, -1))
    ends = pd.DataFrame({"row": wide.index, "first": first, "last": last, "floor": last - first})
    out = ends.merge(pairs, on="row", how="left", validate="1:1")
    top, bottom = out["only_top"], out["only_bottom"]
    out["p_mcnemar"] = [stats.mcnemar(b, c).p_one_sided for b, c in zip(top, bottom, strict=True)]
    low, _ = stats.wilson(top, top + bottom, level=1 - 2 * level)  # one side of a wider interval
    out["wilson_low"] = np.nan_to_num(np.asarray(low, dtype=float))
    out["floor_met"] = out["floor"] >= least_floor - 1e-12
    out["mcnemar_met"] = out["p_mcnemar"] <= level
    out["wilson_met"] = out["wilson_low"] > least_share
    return out.assign(usable=out["floor_met"] & out["mcnemar_met"])


def page_trend(refusals, *, method="asymptotic"):
    """Page's test that refusal rates rise along the rungs in all models together.

    Parameters
    ----------
    refusals : DataFrame
        `row, rung, n, refusals`.
    method : {"asymptotic", "exact", "exact_ties"}
        Normal approximation without continuity correction; exact (a statistic with a half counts as the next
        lower one), both for ranks without ties; or exact over all orders of each model's own rates, ties
        included.

    Returns
    -------
    statistic, pvalue : float

    Raises
    ------
    ValueError
        Unknown method.

    References
    ----------
    Page, E. B. (1963), Ordered hypotheses for multiple treatments (the first two through scipy); section F.1.

    Examples
    --------
    >>> refusals = pd.DataFrame({"row": list("aaabbb"), "rung": [0, 1, 2] * 2, "n": 10,
    ...                          "refusals": [0, 2, 5, 1, 2, 3]})
    >>> [round(float(page_trend(refusals, method=method)[1]), 4) for method in PAGE]
    [0.0228, 0.0278, 0.0278]
    """
    choice("method", method, PAGE)
    wide = rates(refusals)
    if method != "exact_ties":
        found = sps.page_trend_test(wide.to_numpy(), method=method)
        return found.statistic, found.pvalue
    rungs = np.arange(1, wide.shape[1] + 1)
    ranks = wide.rank(axis=1).to_numpy()
    observed, orders = (ranks @ rungs).sum(), {0: 1}
    for line in ranks:
        null = ranktests.spearman_null(rungs, line)
        # A model's share of the statistic is a whole number of quarters, whatever the ties.
        spread = np.sqrt(((rungs - rungs.mean()) ** 2).sum() * ((line - line.mean()) ** 2).sum())
        shares = np.rint(4 * (null["rho"] * spread + len(rungs) * rungs.mean() * line.mean())).astype(int)
        grown = {}
        for total, ways in orders.items():
            for share, more in zip(shares, null["count"], strict=True):
                grown[total + share] = grown.get(total + share, 0) + ways * int(more)
        orders = grown
    larger = sum(ways for total, ways in orders.items() if total >= 4 * observed)
    return float(observed), larger / sum(orders.values())


def page_trends(refusals):
    """Page's test under each of `PAGE`.

    Parameters
    ----------
    refusals : DataFrame
        `row, rung, n, refusals`.

    Returns
    -------
    DataFrame
        `method, statistic, p`.

    Examples
    --------
    >>> refusals = pd.DataFrame({"row": list("aaabbb"), "rung": [0, 1, 2] * 2, "n": 10,
    ...                          "refusals": [0, 2, 5, 1, 2, 3]})
    >>> page_trends(refusals)["p"].round(4).tolist()
    [0.0228, 0.0278, 0.0278]
    """
    lines = [(method, *page_trend(refusals, method=method)) for method in PAGE]
    return pd.DataFrame(lines, columns=["method", "statistic", "p"])


def verdict(trend, *, least_median, least_rho=0.0):
    """Whether the ladder fails by its own rule, and by which of the two conditions.

    Parameters
    ----------
    trend : DataFrame
        From `ladder`.
    least_median : float
        A median correlation below it fails.
    least_rho : float
        A correlation below it in any model fails.

    Returns
    -------
    dict
        `median_rho`, `fails_median`, `n_below` (models below `least_rho`), `fails_any`, `fails`.

    References
    ----------
    Section F.1.

    Examples
    --------
    >>> verdict(pd.DataFrame({"rho": [0.8, -0.1, 0.7]}), least_median=0.5)["fails_any"]
    True
    """
    median, below = float(trend["rho"].median()), int((trend["rho"] < least_rho).sum())
    found = {"median_rho": median, "fails_median": median < least_median, "n_below": below}
    return found | {"fails_any": below > 0, "fails": median < least_median or below > 0}
