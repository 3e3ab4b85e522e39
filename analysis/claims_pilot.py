"""Printed numbers of the monotonicity pilot: which result of `analysis.pilot` stands for which claim."""

from analysis import data, pilot

MODELS = {"q4": "qwen3.5-4b", "q9": "qwen3.5-9b", "q27": "qwen3.6-27b-fp8"}


def ladder(pilot_refusals, pilot_pairs, *, least_floor):
    """Numbers of the pilot by claim.

    Parameters
    ----------
    pilot_refusals, pilot_pairs : DataFrame
        As for `pilot.floors`.
    least_floor : float
        Rise from first to last rung that a usable model needs (fraction of items).

    Returns
    -------
    dict of str to float

    References
    ----------
    Section F.1, Tables 39 and 40.

    Examples
    --------
    >>> found = ladder(data.table("pilot_refusals"), data.table("pilot_pairs"), least_floor=0.02)
    >>> int(found["f1.f3_usable"]), int(found["f1.anti"])
    (2, 1)
    """
    trend = pilot.ladder(pilot_refusals).set_index("row")
    floors = pilot.floors(pilot_refusals, pilot_pairs, least_floor=least_floor).set_index("row")
    nine = pilot.rates(pilot_refusals).loc[MODELS["q9"]]
    q4, q9, q27 = (floors.loc[row] for row in MODELS.values())
    return {
        "f1.median_rho": trend["rho"].median(), "f1.anti": (trend["rho"] < 0).sum(),
        "f1.page_p": pilot.page_trend(pilot_refusals)[1], "f1.f3_usable": floors["usable"].sum(),
        "f1.q4_floor": q4["floor"], "f1.q4_p": q4["p_mcnemar"],
        "f1.q27_floor": q27["floor"], "f1.q27_p": q27["p_mcnemar"],
        "f1.q27_perm": trend.loc[MODELS["q27"], "p_exact"],
        **{f"f1.q9_p{rung}": rate for rung, rate in nine.items()},
        "f1.q9_rho": trend.loc[MODELS["q9"], "rho"], "f1.q9_perm": trend.loc[MODELS["q9"], "p_exact"],
        "f1.q9_floor": q9["floor"], "f1.q9_b": q9["only_top"], "f1.q9_c": q9["only_bottom"],
        "f1.q9_mcn": q9["p_mcnemar"], "f1.q9_disc": q9["only_top"] + q9["only_bottom"],
    }
