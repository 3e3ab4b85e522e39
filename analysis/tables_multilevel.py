"""Tables of the multilevel model as a reader sees them."""

import pandas as pd

from analysis import multilevel, stats
from analysis.book import count, number, rate

TERMS = {
    "intercept": "Intercept",
    "changed_1": "Round 1 changed the majority",
    "n_flipped_1": "Agents that flipped in Round 1",
    "unanimous_1": "Round 1 unanimous",
    "alpha": "Flip rate of the model",
    "sigma_model": "Spread between models (sd)",
    "sigma_question": "Spread between questions (sd)",
}
FITS = {"reported": "as reported", "all-models": "no model left out"}


def _numbers(values, digits):
    return [number(value, digits) for value in values]


def _intervals(lines, low, high, digits):
    return [f"[{number(a, digits)}, {number(b, digits)}]" for a, b in zip(lines[low], lines[high])]


def coefficients(summary):
    """Terms of the model.

    Parameters
    ----------
    summary : DataFrame
        `multilevel.summarize`.

    Returns
    -------
    DataFrame
        Strings.

    Examples
    --------
    >>> coefficients(multilevel.summarize(multilevel.load("reported"))).columns.tolist()
    ['Term', 'Mean', '95% HDI', 'Error of the mean', 'R-hat', 'Bulk ESS', 'Tail ESS']
    """
    chosen = summary.loc[list(TERMS)]
    return pd.DataFrame({
        "Term": list(TERMS.values()), "Mean": _numbers(chosen["mean"], 2),
        "95% HDI": _intervals(chosen, "hdi_low", "hdi_high", 2),
        "Error of the mean": _numbers(chosen["mean_error"], 3), "R-hat": _numbers(chosen["rhat"], 3),
        "Bulk ESS": [count(round(n)) for n in chosen["ess_bulk"]],
        "Tail ESS": [count(round(n)) for n in chosen["ess_tail"]],
    })


def intercepts(summary, design):
    """Deviation of each model's intercept, beside its collapses.

    Parameters
    ----------
    summary : DataFrame
        `multilevel.summarize`.
    design : DataFrame
        `multilevel.design` of the same fit.

    Returns
    -------
    DataFrame
        Strings, in the order of the rows' names.

    Examples
    --------
    >>> shown = intercepts(multilevel.summarize(multilevel.load("reported")), multilevel.paper_design())
    >>> shown["Row"].tolist()
    ['llama-3.1-8b', 'phi-4-mini', 'qwen3-4b', 'qwen3-8b']
    """
    counts = design.groupby("row")["collapse"].agg(["sum", "count"])
    around, chosen = stats.proportion(counts["sum"], counts["count"]), summary.loc[counts.index]
    rates = [rate(line.k, line.n, line.low, line.high) for line in around.itertuples()]
    return pd.DataFrame({
        "Row": counts.index,
        "Collapses / right at first": rates,
        "Mean": _numbers(chosen["mean"], 2), "95% HDI": _intervals(chosen, "hdi_low", "hdi_high", 2),
        "Error of the mean": _numbers(chosen["mean_error"], 3),
    })


def shares(summaries):
    """Where the latent variance lies.

    Parameters
    ----------
    summaries : dict of str to DataFrame
        `multilevel.summarize`, by fit.

    Returns
    -------
    DataFrame
        Strings, one line a fit and kind of group.

    Examples
    --------
    >>> shares({"reported": multilevel.summarize(multilevel.load("reported"))})["Between"].tolist()
    ['models', 'questions']
    """
    parts = []
    for name, summary in summaries.items():
        chosen = summary.loc[["icc_model", "icc_question"]]
        parts.append(pd.DataFrame({
            "Between": ["models", "questions"], "Fit": FITS[name], "Median": _numbers(chosen["median"], 3),
            "95% interval": _intervals(chosen, "low", "high", 3),
            "Error of the median": _numbers(chosen["median_error"], 3),
            "Errors of the limits": [
                f"{number(low)}, {number(high)}" for low, high in zip(chosen["low_error"], chosen["high_error"])
            ],
        }))
    return pd.concat(parts, ignore_index=True)


def fits(overview):
    """Size and convergence of both fits.

    Parameters
    ----------
    overview : DataFrame
        `multilevel.overview`.

    Returns
    -------
    DataFrame
        Strings.

    Examples
    --------
    >>> fits(multilevel.overview({"reported": multilevel.load("reported")}))["Fit"].tolist()
    ['as reported']
    """
    return pd.DataFrame([
        {
            "Fit": FITS[line.fit], "Debates": count(line.debates), "Collapses": count(line.collapses),
            "Models": count(line.models),
            "Questions": count(line.questions),
            "Chains × kept draws": f"{count(line.chains)} × {count(line.draws)}",
            "Divergences": count(line.divergences), "Largest R-hat": number(line.rhat, 3),
            "Least bulk ESS": count(round(line.ess_bulk)), "Its term": TERMS[line.term],
            "Least tail ESS": count(round(line.ess_tail)),
        }
        for line in overview.itertuples()
    ])
