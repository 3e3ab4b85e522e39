"""Tables of the localisation page as a reader sees them."""

import pandas as pd

from analysis import tables
from analysis.book import count, number, p_value, percent, rate

VIEWS = {"baseline": "Round 0 only", "r1": "with Round 1", "full": "with Rounds 1 to 3"}
FITS = {
    "published": "published: 300 gradient steps", "converged": "the same model, to convergence",
    "none": "no fit",
}
UNITS = {
    "debate": "debates (the paper)", "question": "questions", "row": "rows", "two-way": "questions and rows",
}
ACCOUNTINGS = {
    "ties undefined": "a tie elects nobody", "cohort": "the main table's rows",
    "usable only": "debates with both majorities",
}
POOLED = "all six"


def aucs(table):
    """Out-of-fold areas under the curve, one line a row and view.

    Parameters
    ----------
    table : DataFrame
        `localize.auc_table`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, localize
    >>> aucs(localize.auc_table(data.debates(), by=None))["AUC, all folds together"].tolist()
    ['0.6691', '0.7685', '0.8459']
    """
    return pd.DataFrame({
        "Row": table["row"].replace(tables.POOLED, POOLED),
        "Features": table["view"].map(lambda view: VIEWS.get(view, view)),
        "Debates (collapses)": [f"{count(n)} ({count(k)})" for n, k in zip(table["n"], table["n_pos"])],
        "AUC, all folds together": table["auc"].map(lambda v: number(v, 4)),
        "Mean over folds": table["fold_mean"].map(lambda v: number(v, 4)),
        "SD over folds": table["fold_sd"].map(lambda v: number(v, 4)),
        "Folds with both outcomes": table["n_folds"].map(count),
    })


def fits(found):
    """Areas under the curve of both fits, over all debates and over right starts.

    Parameters
    ----------
    found : DataFrame
        `sensitivity.fits`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, sensitivity
    >>> fits(sensitivity.fits(data.debates()))["All debates"].iloc[-1]
    '0.760'
    """
    names = ["fit", "view"]
    wide = found.pivot(index=names, columns="over", values="auc")
    wide = wide.reindex(found.set_index(names).index.unique()).reset_index()
    return pd.DataFrame({
        "Fit": wide["fit"].map(FITS),
        "Features": wide["view"].map(lambda view: VIEWS.get(view, view)),
        "All debates": wide["all debates"].map(number),
        "Right starts only": wide["right starts"].map(number),
    })


def lifts(found):
    """Lift of the area under the curve with an interval for each unit of resampling.

    Parameters
    ----------
    found : DataFrame
        `clusters.lift_table` or `clusters.lift_by_row`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import clusters, data
    >>> found = clusters.lift_table(data.debates(), fits=["published"], units=["question"])
    >>> lifts(found)["Lift [95% interval]"].iloc[0]
    '0.099 [0.080, 0.117]'
    """
    return pd.DataFrame({
        **({"Row": found["row"]} if "row" in found else {}),
        "Fit": found["fit"].map(FITS),
        "Features added": found["view"].map({"r1": "Round 1", "full": "Rounds 2 and 3"}),
        "Drawn with replacement": found["unit"].map(UNITS),
        "Units drawn from": ["–" if pd.isna(n) else count(n) for n in found["n_units"]],
        "Lift [95% interval]": [
            f"{number(lift)} [{number(low)}, {number(high)}]"
            for lift, low, high in zip(found["lift"], found["low"], found["high"], strict=True)
        ],
        "Resamples with both outcomes": found["n_used"].map(count),
    })


def lift_lines(found):
    """Lines of the figure of lifts: what is added and what is drawn, in words.

    Parameters
    ----------
    found : DataFrame
        `clusters.lift_table`.

    Returns
    -------
    DataFrame
        The same with `row` and `fit` in words.

    Examples
    --------
    >>> lift_lines(pd.DataFrame({"fit": ["published"], "view": ["r1"], "unit": ["row"]}))["row"].item()
    'Round 1, by rows'
    """
    added = found["view"].map({"r1": "Round 1", "full": "later rounds"})
    drawn = found["unit"].map({"debate": "debates", "question": "questions", "row": "rows", "two-way": "both"})
    return found.assign(row=added + ", by " + drawn, fit=found["fit"].map(FITS))


def replication(found):
    """Ledger of the four-round traces.

    Parameters
    ----------
    found : DataFrame
        `replication.by_row`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, replication as later
    >>> replication(later.by_row(data.table("four_round_ledger")))["Collapses / right at first"].iloc[6]
    '11.3% [9.1, 14.0] (75/662)'
    """
    def rates(k, n, name):
        return [rate(*line) for line in found[[k, n, f"{name}_low", f"{name}_high"]].itertuples(index=False)]

    return pd.DataFrame({
        "Row": found["row"],
        "Debates": found["n"].map(count),
        "Collapses / right at first": rates("collapse", "init_correct", "c_cond"),
        "Corrections / all others": rates("correction", "init_wrong", "correction_rate"),
        "Right at last": rates("final_correct", "n", "final_acc"),
        "Beginning in Round 1 / collapses": rates("round_1", "collapse", "share_1"),
    })


def accountings(found):
    """Three counts of the same trace files.

    Parameters
    ----------
    found : DataFrame
        `replication.accountings`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, replication as later
    >>> found = later.accountings(*map(data.table, ("four_round_ledger", "model_rows", "replay_sources")))
    >>> accountings(found)["Collapses / right at first"].tolist()[-3:]
    ['11.3% (75/662)', '13.3% (93/697)', '13.3% (93/697)']
    """
    return pd.DataFrame({
        "Row": found["row"],
        "Counted as": found["accounting"].map(ACCOUNTINGS),
        "Debates": found["n"].map(count),
        "Collapses / right at first": _shares(found["collapse"], found["init_correct"]),
        "Corrections / all others": _shares(found["correction"], found["n"] - found["init_correct"]),
        "Right at last": _shares(found["final_correct"], found["n"]),
    })


def _shares(k, n):
    return [f"{percent(a / b)} ({count(a)}/{count(b)})" if b else "–" for a, b in zip(k, n, strict=True)]


def shared_questions(found):
    """Conditional collapse of each row on all its questions and on those that every row has.

    Parameters
    ----------
    found : DataFrame
        `clusters.on_shared_questions`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import clusters, data
    >>> shared_questions(clusters.on_shared_questions(data.debates())).iloc[-1].tolist()[:2]
    ['all six', '7.3% [6.5, 8.2] (253/3,458)']
    """
    limits = ["collapse", "init_correct", "c_cond_low", "c_cond_high"]
    out = {"Row": found["row"].drop_duplicates().replace(tables.POOLED, POOLED)}
    for name, heading in {"all": "on all its questions", "shared": "on the shared questions"}.items():
        part = found[found["questions"] == name]
        rates = [rate(*line) for line in part[limits].itertuples(index=False)]
        out[f"Collapses / right at first, {heading}"] = rates
        out[f"Corrections, {heading}"] = _shares(part["correction"], part["init_wrong"])
    return pd.DataFrame({heading: list(column) for heading, column in out.items()})


def ranks(found):
    """Rank correlation of flip rate and conditional collapse on all and on the shared questions.

    Parameters
    ----------
    found : DataFrame
        `clusters.rank_on_shared_questions`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> found = pd.DataFrame({"questions": ["all"], "n_rows": [6], "rho": [0.5], "p_two_sided": [0.3]})
    >>> ranks(found).iloc[0].tolist()
    ['all', '6', '0.500', '0.3000']
    """
    return pd.DataFrame({
        "Questions": found["questions"],
        "Rows": found["n_rows"].map(count),
        "Spearman ρ": found["rho"].map(number),
        "Exact p (two-sided)": found["p_two_sided"].map(p_value),
    })
