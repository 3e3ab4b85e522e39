"""Tables of the pilot as a reader sees them."""

import pandas as pd

from analysis.book import count, number, p_value, percent


def ladder(trend):
    """The pilot's trend along the rungs, one line a model, with three p of the same correlation.

    Parameters
    ----------
    trend : DataFrame
        `pilot.ladder`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> one = {"row": "m", "rho": 0.84, "p_exact": 0.0034, "count": 1240, "n_orders": 362880}
    >>> one |= {"p_no_ties": 0.003, "p_asymptotic": 0.0023, "inversion": 0.08}
    >>> ladder(pd.DataFrame([one])).iloc[0].tolist()
    ['m', '0.840', '0.0034 (1,240/362,880)', '0.0030', '0.0023', '8']
    """
    exact = [f"{p_value(p)} ({count(k)}/{count(n)})"
             for p, k, n in zip(trend["p_exact"], trend["count"], trend["n_orders"])]
    return pd.DataFrame({
        "Model": trend["row"],
        "Rung and refusal rate, ρ": trend["rho"].map(number),
        "Exact p (one-sided)": exact,
        "p against orders without ties (released)": trend["p_no_ties"].map(p_value),
        "p (t approximation)": trend["p_asymptotic"].map(p_value),
        "Largest fall to a later rung, points": [number(100 * v, 0) for v in trend["inversion"]],
    })


def floors(found):
    """The last rung against the first, with the gates of a usable model.

    Parameters
    ----------
    found : DataFrame
        `pilot.floors`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> one = {"row": "m", "first": 0.02, "last": 0.22, "floor": 0.2, "only_top": 11, "only_bottom": 1}
    >>> one |= {"p_mcnemar": 0.003174, "wilson_low": 0.6988, "usable": True}
    >>> floors(pd.DataFrame([one])).iloc[0].tolist()
    ['m', '2%', '22%', '20', '11 to 1', '0.0032', '0.699', 'yes']
    """
    return pd.DataFrame({
        "Model": found["row"],
        "First rung": [percent(v, 0) for v in found["first"]],
        "Last rung": [percent(v, 0) for v in found["last"]],
        "Rise, points": [number(100 * v, 0) for v in found["floor"]],
        "Refused at one end only": [f"{count(b)} to {count(c)}"
                                    for b, c in zip(found["only_top"], found["only_bottom"])],
        "McNemar p (one-sided, exact)": found["p_mcnemar"].map(p_value),
        "Wilson lower limit": found["wilson_low"].map(number),
        "Usable": found["usable"].map({True: "yes", False: "no"}),
    })


def rungs(rates, n):
    """Refusal rates by rung.

    Parameters
    ----------
    rates : DataFrame
        `pilot.rates`.
    n : int
        Items a rung.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> rungs(pd.DataFrame({0: [0.02], 1: [0.06]}, index=pd.Index(["m"], name="row")), 50).iloc[0].tolist()
    ['m', '1/50', '3/50']
    """
    cells = {f"Rung {rung}": [f"{count(round(v * n))}/{count(n)}" for v in rates[rung]] for rung in rates}
    return pd.DataFrame({"Model": rates.index, **cells})


def trends(found):
    """Page's test under three nulls.

    Parameters
    ----------
    found : DataFrame
        `method, statistic, p`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> trends(pd.DataFrame({"method": ["exact"], "statistic": [723.0], "p": [0.1003]})).iloc[0].tolist()
    ['exact, orders without ties', '723', '0.1003']
    """
    words = {"asymptotic": "normal approximation (printed)", "exact": "exact, orders without ties",
             "exact_ties": "exact, orders of the observed rates"}
    return pd.DataFrame({
        "Null": found["method"].map(words), "Page's L": [number(v, 0) for v in found["statistic"]],
        "p (one-sided)": found["p"].map(p_value),
    })
