"""Tables of the screen page as a reader sees them.

Each function takes a frame of `association`, `screen` or `rivals` and returns one of the same lines for
display. """

import pandas as pd

from analysis import tables
from analysis.book import count, number, p_value, percent

PREDICTORS = {
    "alpha_tot": "flip rate",
    "alpha_default_condition": "flip rate, default condition in every row",
    "alpha_social": "flip rate of the social probes",
    "lift": "social minus non-social flip rate",
    "init_acc": "initial accuracy",
    "capability_pressure": "1 − initial accuracy",
    "final_acc": "final accuracy (after the debate)",
    "correction_rate": "correction rate (after the debate)",
    "collapse_rate": "collapses over all debates (after the debate)",
    "debate_revision_proxy": "released debate revision proxy",
    "disagreement": "first answers disagree (share of debates)",
    "at_risk_disagreement": "the same among right starts",
    "init_entropy": "entropy of the first answers",
    "unanimity": "first answers unanimous",
    "usable_disagreement": "first answers disagree, of debates with both majorities",
    "r1_change": "Round 1 changes the majority",
    "r1_any_flip": "Round 1 changes any answer",
    "r1_agent_flip": "agents that change in Round 1",
    "one_agent": "flip rate of one agent",
}


def worded(name):
    """Predictor, or several joined by " + ", in words.

    Examples
    --------
    >>> worded("init_acc + final_acc")
    'initial accuracy, final accuracy (after the debate)'
    """
    return ", ".join(PREDICTORS.get(part, part) for part in str(name).split(" + "))


def orders(k, n):
    """Orders at least as extreme, of all.

    Examples
    --------
    >>> orders(62, 5040), orders(None, None)
    ('62/5,040', '–')
    """
    return "–" if pd.isna(k) or pd.isna(n) else f"{count(k)}/{count(n)}"


def exact(found, prefix=""):
    """Exact p with the orders at least as extreme, one text a line.

    Examples
    --------
    >>> exact(pd.DataFrame({"p_two_sided": [0.0123], "two_sided_count": [62], "n_orders": [5040]}))
    ['0.0123 (62/5,040)']
    """
    columns = [f"{prefix}{name}" for name in ("p_two_sided", "two_sided_count", "n_orders")]
    lines = found[columns].itertuples(index=False)
    return ["–" if pd.isna(p) else f"{p_value(p)} ({orders(k, n)})" for p, k, n in lines]


def sized(rho, sizes, letter="n"):
    """Correlations with the number of units each is over.

    Examples
    --------
    >>> sized([0.893], [7], "G")
    ['0.893 (G = 7)']
    """
    return [f"{number(value)} ({letter} = {count(n)})" for value, n in zip(rho, sizes)]


def shares(k, n, digits=1):
    """Percentages with numerator and denominator.

    Examples
    --------
    >>> shares([86], [1016])
    ['8.5% (86/1,016)']
    """
    return [f"{percent(a / b, digits)} ({count(a)}/{count(b)})" for a, b in zip(k, n)]


def spans(low, high, digits=3):
    """Intervals in words.

    Examples
    --------
    >>> spans([-0.1], [0.2], 2)
    ['−0.10 to 0.20']
    """
    return [f"{number(a, digits)} to {number(b, digits)}" for a, b in zip(low, high)]


def families(means):
    """Family means of the screen and of conditional collapse.

    Parameters
    ----------
    means : DataFrame
        `association.family_means`.

    Returns
    -------
    DataFrame
        Sorted by flip rate.

    Examples
    --------
    >>> from analysis import association, data
    >>> families(association.family_means(data.model_rows()))["Family"].iloc[0]
    'DeepSeek'
    """
    means = means.sort_values("alpha_tot")
    return pd.DataFrame({
        "Family": means["family"],
        "Rows": means["n_rows"].map(count),
        "Mean flip rate": means["alpha_tot"].map(lambda v: number(v, 4)),
        "Mean conditional collapse": means["c_cond"].map(lambda v: percent(v, 2)),
        "Mean initial accuracy": means["init_acc"].map(percent),
        "Rank by flip rate": means["alpha_tot"].rank().map(count),
        "Rank by collapse": means["c_cond"].rank().map(count),
    })


def checks(found):
    """The primary test and the checks around it.

    Parameters
    ----------
    found : DataFrame
        `screen.checks`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, screen
    >>> checks(screen.checks(data.model_rows()))["p (two-sided)"].iloc[0]
    '0.0123 (62/5,040)'
    """
    return pd.DataFrame({
        "Check": found["check"],
        "Unit": found["level"],
        "n": found["n"].map(count),
        "ρ": found["rho"].map(lambda v: number(v, 4)),
        "95% interval": [f"{number(low, 3)} to {number(high, 3)} ({name})" if pd.notna(low) else "–"
                         for low, high, name in zip(found["low"], found["high"], found["interval"])],
        "p (two-sided)": [_tested(*line)
                          for line in zip(found["p_two_sided"], found["p_method"], exact(found))],
    })


def _tested(p, method, counted):
    return "–" if pd.isna(p) else counted if method == "exact" else f"{p_value(p)} (t)"


def comparators(tests):
    """Each predictor's rank correlation with conditional collapse, over rows and over families.

    Parameters
    ----------
    tests : DataFrame
        `screen.comparators` or `rivals.bakeoff`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, screen
    >>> comparators(screen.comparators(data.model_rows()))["Predictor"].iloc[0]
    'flip rate'
    """
    return pd.DataFrame({
        "Predictor": tests["predictor"].map(worded),
        "ρ over rows": sized(tests["row_rho"], tests["row_n"]),
        "p (t approximation)": tests["row_p_asymptotic"].map(p_value),
        "ρ over families": sized(tests["family_rho"], tests["family_n"], "G"),
        "Exact p (orders as extreme)": exact(tests, "family_"),
    })


def partials(tests):
    """Rank correlations of flip rate and conditional collapse with a control taken out.

    Parameters
    ----------
    tests : DataFrame
        `association.partial`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, screen
    >>> partials(screen.partial(data.model_rows()))["Exact p (orders as extreme)"].item()
    '0.0877 (442/5,040)'
    """
    return pd.DataFrame({
        "Unit": tests["level"],
        "Control": tests["controls"].map(worded),
        "n": tests["n"].map(count),
        "Partial ρ": tests["rho"].map(number),
        "Exact p (orders as extreme)": exact(tests),
        "p (t approximation)": tests["p_t"].map(p_value),
    })


def regroupings(left_out, regrouped):
    """The family test without families and under other groupings, in one table.

    Parameters
    ----------
    left_out, regrouped : DataFrame
        Lines of `screen.drop_families` and of `screen.taxonomies`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, screen
    >>> rows = data.model_rows()
    >>> other = screen.taxonomies(rows, data.table("taxonomies"))
    >>> found = regroupings(screen.leave_one_family_out(rows), other)
    >>> found["Change"].iloc[[0, -1]].tolist()
    ['without Anthropic', 'both of these']
    """
    changed = left_out.assign(change="without " + left_out["dropped"].str.replace(" + ", " and "))
    both = pd.concat([changed, regrouped.assign(change=regrouped["taxonomy"])], ignore_index=True)
    return tables.association(both, "change", "Change")


def leave_one_row_out(tests):
    """Leave-one-row-out checks at row and family level.

    Parameters
    ----------
    tests : DataFrame
        `screen.leave_one_row_out`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, screen
    >>> leave_one_row_out(screen.leave_one_row_out(data.model_rows())).shape
    (6, 4)
    """
    return pd.DataFrame({
        "Row left out": tests["dropped"],
        "ρ over rows": tests["row_rho"].map(lambda v: number(v, 4)),
        "ρ over families": tests["family_rho"].map(lambda v: number(v, 4)),
        "Exact p over families": tests["family_p_two_sided"].map(p_value),
    })
