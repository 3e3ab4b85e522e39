"""Printed numbers of the monotonicity pilot: does refusal rise along a ladder of pressure?"""

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis import data, stats

MODELS = {"q4": "qwen3.5-4b", "q9": "qwen3.5-9b", "q27": "qwen3.6-27b-fp8"}


def ladder(pilot_refusals, pilot_pairs):
    """Trend of refusals along the rungs and the top rung against the bottom one, by model.

    Parameters
    ----------
    pilot_refusals : DataFrame
        `row, rung, n, refusals`.
    pilot_pairs : DataFrame
        `row, only_top, only_bottom`: items refused at one of the two end rungs only.

    Returns
    -------
    DataFrame
        One line a model: ``row, rho, p_exact`` (one-sided, all orders of the tied rates), ``floor`` (last
        minus first rate), ``only_top, only_bottom, p_mcnemar`` (one-sided, exact).

    References
    ----------
    Section F.1, Tables 39 and 40.

    Examples
    --------
    >>> refusals = pd.DataFrame({"row": "a", "rung": [0, 1, 2, 3], "n": 10, "refusals": [0, 1, 4, 3]})
    >>> pairs = pd.DataFrame({"row": ["a"], "only_top": [4], "only_bottom": [1]})
    >>> ladder(refusals, pairs)[["rho", "p_exact", "floor", "p_mcnemar"]].round(4).values.tolist()
    [[0.8, 0.1667, 0.3, 0.1875]]
    """
    lines = []
    for row, part in pilot_refusals.groupby("row", sort=False):
        part = part.sort_values("rung")
        rate = (part["refusals"] / part["n"]).to_numpy()
        trend = stats.exact_spearman(part["rung"], rate)
        lines.append({"row": row, "rho": trend.rho, "p_exact": trend.p_one_sided,
                      "floor": rate[-1] - rate[0]})
    out = pd.DataFrame(lines).merge(pilot_pairs, on="row", how="left", validate="1:1")
    p = [stats.mcnemar(top, bottom).p_one_sided
         for top, bottom in zip(out["only_top"], out["only_bottom"], strict=True)]
    return out.assign(p_mcnemar=p)


def page_trend(pilot_refusals, *, method="asymptotic"):
    """Page's test that refusal rates rise along the rungs in all models together.

    Parameters
    ----------
    pilot_refusals : DataFrame
        `row, rung, n, refusals`.
    method : {"asymptotic", "exact"}
        Normal approximation without continuity correction, or exact, both for ranks without ties.

    Returns
    -------
    statistic, pvalue : float

    References
    ----------
    Page, E. B. (1963), Ordered hypotheses for multiple treatments (through scipy); Section F.1.

    Examples
    --------
    >>> statistic, p = page_trend(data.table("pilot_refusals"))
    >>> float(statistic), round(float(p), 4)
    (723.0, 0.0957)
    """
    rates = pilot_refusals.assign(rate=pilot_refusals["refusals"] / pilot_refusals["n"])
    wide = rates.pivot(index="row", columns="rung", values="rate")
    found = sps.page_trend_test(wide.to_numpy(), method=method)
    return found.statistic, found.pvalue


def pilot(pilot_refusals, pilot_pairs, *, least_floor, level=0.05):
    """Numbers of the pilot.

    Parameters
    ----------
    pilot_refusals, pilot_pairs : DataFrame
        As for `ladder`.
    least_floor : float
        Rise from first to last rung that a usable model needs (fraction of items).
    level : float
        Of the McNemar gate.

    Returns
    -------
    dict of str to float

    References
    ----------
    Section F.1, Tables 39 and 40.

    Examples
    --------
    >>> found = pilot(data.table("pilot_refusals"), data.table("pilot_pairs"), least_floor=0.02)
    >>> int(found["f1.f3_usable"]), int(found["f1.anti"])
    (2, 1)
    """
    models = ladder(pilot_refusals, pilot_pairs)
    q4, q9, q27 = (models.set_index("row").loc[row] for row in MODELS.values())
    nine = pilot_refusals[pilot_refusals["row"] == MODELS["q9"]].set_index("rung")
    usable = (models["floor"] >= least_floor) & (models["p_mcnemar"] <= level)
    return {
        "f1.median_rho": np.median(models["rho"]), "f1.anti": (models["rho"] < 0).sum(),
        "f1.page_p": page_trend(pilot_refusals)[1], "f1.f3_usable": usable.sum(),
        "f1.q4_floor": q4["floor"], "f1.q4_p": q4["p_mcnemar"],
        "f1.q27_floor": q27["floor"], "f1.q27_p": q27["p_mcnemar"], "f1.q27_perm": q27["p_exact"],
        **{f"f1.q9_p{rung}": rate for rung, rate in (nine["refusals"] / nine["n"]).items()},
        "f1.q9_rho": q9["rho"], "f1.q9_floor": q9["floor"], "f1.q9_perm": q9["p_exact"],
        "f1.q9_b": q9["only_top"], "f1.q9_c": q9["only_bottom"], "f1.q9_mcn": q9["p_mcnemar"],
        "f1.q9_disc": q9["only_top"] + q9["only_bottom"],
    }
