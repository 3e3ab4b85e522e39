"""Tables of the sealed cohort as a reader sees them, for the robustness page."""

import pandas as pd

from analysis.book import count, number, p_value, rate
from analysis.figures_screen import ADJUSTED
from analysis.tables_robustness import CHANNELS, MEASURES
from analysis.tables_screen import exact, shares, sized, spans


def rank_tests(found):
    """Rank tests of the nine rows.

    Parameters
    ----------
    found : DataFrame
        `sealed.rank_tests`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, sealed
    >>> nine = sealed.nine_rows(data.sealed_rows(), data.table("sealed_vectors"))
    >>> rank_tests(sealed.rank_tests(nine, ["alpha_tot"])).iloc[0, [1, 4]].tolist()
    ['0.783', '0.0172 (6,250/362,880)']
    """
    return pd.DataFrame({
        "Predictor": found["predictor"].map(MEASURES),
        "ρ": found["rho"].map(number),
        "95% interval (Fisher's z)": spans(found["low"], found["high"]),
        "p (t approximation)": found["p_asymptotic"].map(p_value),
        "Exact p": exact(found),
    })


def released_tests(found):
    """Correlations released for eleven rows.

    Parameters
    ----------
    found : DataFrame
        `sealed.released_tests`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, sealed
    >>> released_tests(sealed.released_tests(data.sealed_rows())).shape
    (7, 5)
    """
    return pd.DataFrame({
        "Predictor": found["predictor"].map(MEASURES),
        "Outcome": found["outcome"].map(MEASURES),
        "Method": found["method"],
        "Coefficient": sized(found["statistic"], found["n_rows"]),
        "p (asymptotic)": found["p"].map(p_value),
    })


def rows(sealed_rows, probe_cells):
    """Rows of the sealed cohort.

    Parameters
    ----------
    sealed_rows : DataFrame
        `data.sealed_rows`.
    probe_cells : DataFrame
        `model, condition, social, n_probes, n_flip`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data
    >>> rows(data.sealed_rows(), data.table("probe_cells"))["Conditional collapse"].iloc[0]
    '2.15% [0.59, 7.51] (2/93)'
    """
    cells = probe_cells[(probe_cells["condition"] == "default") & ~probe_cells["social"]].set_index("model")
    fell = ["collapse", "init_correct", "c_cond_low", "c_cond_high"]
    flips = sealed_rows["row"].str.removeprefix("Claude ").map(cells["n_flip"] / cells["n_probes"])
    return pd.DataFrame({
        "Row": sealed_rows["row"],
        "Debates": sealed_rows["n"].map(count),
        "Right at first": shares(sealed_rows["init_correct"], sealed_rows["n"]),
        "Debate flip rate, as released": sealed_rows["debate_flip_rate"].map(number),
        "Non-social flip rate": flips.map(number),
        "Collapses / debates": shares(sealed_rows["collapse"], sealed_rows["n"], 2),
        "Conditional collapse": [rate(*line, 2) for line in sealed_rows[fell].itertuples(index=False)],
        "S/A, as released": [f"{v:+.2f}".replace("-", "−") for v in sealed_rows["sa_ratio"]],
    })


def flip_rates(found):
    """What is published as a debate flip rate, beside debates and probes.

    Parameters
    ----------
    found : DataFrame
        `sealed.flip_rates`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> line = {"row": "M", "released": 0.5, "any_flip": pd.NA, "majority_change": pd.NA, "n": pd.NA}
    >>> line |= {"probe_flips": 5, "probe_asked": 10, "probe_rate": 0.5, "is_probe_rate": True}
    >>> flip_rates(pd.DataFrame([line])).iloc[0].tolist()
    ['M', '0.500', '–', '–', '0.500 (5/10)', 'the probe rate']
    """
    words = {True: "the probe rate", False: "neither"}
    return pd.DataFrame({
        "Row": found["row"],
        "Published value": found["released"].map(number),
        "Debates with an answer changed in Round 1": _parts(found["any_flip"], found["n"]),
        "Debates with another majority in Round 1": _parts(found["majority_change"], found["n"]),
        "Probe flip rate, default condition": _parts(found["probe_flips"], found["probe_asked"]),
        "It is": ["unknown" if pd.isna(same) else words[bool(same)] for same in found["is_probe_rate"]],
    })


def _parts(k, n):
    return ["–" if pd.isna(a) or pd.isna(b) else f"{number(a / b)} ({count(a)}/{count(b)})"
            for a, b in zip(k, n)]


def partials(found, verdicts):
    """Partial correlations of the nine rows beside the printed ones.

    Parameters
    ----------
    found : DataFrame
        `sealed.partials`.
    verdicts : DataFrame
        `claims.verdicts`; the printed correlation and p are those of `PRINTED`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import claims, data, sealed
    >>> nine = sealed.nine_rows(data.sealed_rows(), data.table("sealed_vectors"))
    >>> partials(sealed.partials(nine), claims.verdicts(page="robustness"))["Printed"].tolist()
    ['–', '0.52 (p 0.148)', '–']
    """
    printed = verdicts.set_index("id")["printed"]
    told = {name: f"{printed[rho]} (p {printed[p]})" for name, (rho, p) in PRINTED.items()}
    return pd.DataFrame({
        "Predictor": found["predictor"].map(CHANNELS),
        "Partial ρ": sized(found["rho"], found["n"]),
        "p (t approximation)": found["p_t"].map(p_value),
        "Exact p": exact(found),
        "p after Holm": found["p_holm"].map(p_value),
        "Printed": found["predictor"].map(told).fillna("–"),
    })


PRINTED = {"alpha_adv": ("c6.adv_partial", "c6.adv_partial_p")}


def curve(found):
    """Cells of the specification curve by what is taken out.

    Parameters
    ----------
    found : DataFrame
        `specifications.by_adjustment`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> line = {"adjusted": "all", "cells": 27, "positive": 27, "low": 0.1, "median": 0.6, "high": 0.8}
    >>> curve(pd.DataFrame([line])).iloc[0].tolist()
    ['all', '27/27', '0.100', '0.600', '0.800']
    """
    return pd.DataFrame({
        "Cells": found["adjusted"].map(lambda name: ADJUSTED.get(name, name)),
        "Above zero": [f"{count(k)}/{count(n)}" for k, n in zip(found["positive"], found["cells"])],
        "Smallest ρ": found["low"].map(number),
        "Median ρ": found["median"].map(number),
        "Largest ρ": found["high"].map(number),
    })


def stated_axes(found):
    """Cells that the paper's wording names, one line a predictor.

    Parameters
    ----------
    found : DataFrame
        `specifications.stated_axes`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> lines = pd.DataFrame({"method": ["Spearman", "Kendall"], "predictor": "alpha_tot", "rho": [0.8, 0.6]})
    >>> stated_axes(lines).iloc[0].tolist()
    ['total flip rate', '0.800', '0.600']
    """
    wide = found.pivot(index="predictor", columns="method", values="rho")
    wide = wide.loc[found["predictor"].unique(), found["method"].unique()].map(number)
    wide.insert(0, "Predictor", wide.index.map(MEASURES))
    return wide.reset_index(drop=True).rename_axis(columns=None)
