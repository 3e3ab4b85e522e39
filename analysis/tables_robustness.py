"""Tables of the robustness page as a reader sees them.

Each function takes a frame of the module named in its docstring and returns one of the same lines for
display. """

import pandas as pd

from analysis.book import count, number, p_value, percent
from analysis.tables_screen import exact, shares, sized, spans, worded

CHANNELS = {
    "alpha_tot": "total flip rate", "alpha_adv": "flips away from right answers",
    "alpha_cor": "flips to right answers",
}
MEASURES = CHANNELS | {
    "debate_flip_rate": "released debate flip rate", "sa_ratio": "released social to argument ratio",
    "init_acc": "initial accuracy", "c_cond": "conditional collapse",
    "collapse_rate": "collapses over all debates", "correction_rate": "correction rate",
    "alpha_tot | init_acc": "total flip rate, initial accuracy taken out",
}
DEFINITIONS = {
    "released": "as released: two definitions mixed",
    "default_condition": "default condition in every row",
    "all_conditions": "all three conditions in every row",
    "all_replies": "default condition, an unreadable reply as no flip",
}
FOLLOWS = {"screen": "the screen", "comparator": "accuracy", "neither": "neither"}


def _between(low, high, digits=1):
    return f"{percent(low, digits)} to {percent(high, digits)}".replace("-", "−")


def _inside(narrow, wide):
    return "both" if narrow else "95% only" if wide else "neither"


# --- held-out families --------------------------------------------------------------------------------------


def predictions(found, added):
    """Each family predicted from the others, and outside rows from all families.

    Parameters
    ----------
    found, added : DataFrame
        `heldout.predict_families`, `heldout.predict_rows`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, heldout
    >>> found = heldout.predict_families(data.model_rows())
    >>> predictions(found, found.iloc[:0].rename(columns={"family": "row"})).iloc[3, [0, 4]].tolist()
    ['Meta', '10.0% to 27.9%']
    """
    named = [found.assign(name=found["family"]), added.assign(name=added["row"] + " (added)")]
    both = pd.concat(named, ignore_index=True)
    return pd.DataFrame({
        "Family": both["name"],
        "Flip rate": both["alpha_tot"].map(lambda v: number(v, 4)),
        "Observed": both["observed"].map(lambda v: percent(v, 2)),
        "Predicted": [percent(v, 2).replace("-", "−") for v in both["predicted"]],
        "80% interval": [_between(*ends) for ends in zip(both["low_80"], both["high_80"])],
        "95% interval": [_between(*ends) for ends in zip(both["low_95"], both["high_95"])],
        "Inside": [_inside(*pair) for pair in zip(both["inside_80"], both["inside_95"])],
    })


def propagated(found):
    """Each family predicted from the others with the noise of the rates carried through, limits clipped.

    Parameters
    ----------
    found : DataFrame
        `heldout.propagate_families`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> ends = {"low_80": -0.1, "high_80": 0.2, "low_95": -0.2, "high_95": 0.4}
    >>> line = {"family": "F", "observed": 0.1, "inside_80": True, "inside_95": True}
    >>> propagated(pd.DataFrame([line | ends])).iloc[0, 2]
    '0.00% to 20.00%'
    """
    ends = found[["low_80", "high_80", "low_95", "high_95"]].clip(0, 1)
    return pd.DataFrame({
        "Family": found["family"],
        "Observed": found["observed"].map(lambda v: percent(v, 2)),
        "80% interval": [_between(*pair, 2) for pair in zip(ends["low_80"], ends["high_80"])],
        "95% interval": [_between(*pair, 2) for pair in zip(ends["low_95"], ends["high_95"])],
        "Inside": [_inside(*pair) for pair in zip(found["inside_80"], found["inside_95"])],
    })


def seeds(found):
    """Coverage under other seeds.

    Parameters
    ----------
    found : DataFrame
        `heldout.coverage_by_seed`, optionally with `label`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> seeds(pd.DataFrame({"label": ["seed 1"], "inside_80": [5], "inside_95": [6], "outside_95": ["Qwen"],
    ...                     "high_95": [0.195], "observed": [0.1975]})).iloc[0, 3]
    'Qwen'
    """
    return pd.DataFrame({
        "Draws": found["label"],
        "Families inside 80%": found["inside_80"].map(count),
        "Families inside 95%": found["inside_95"].map(count),
        "Outside 95%": found["outside_95"].replace("", "none"),
        "Upper 95% limit": found["high_95"].map(lambda v: percent(v, 3)),
        "Observed": found["observed"].map(lambda v: percent(v, 3)),
    })


# --- noise, families drawn again ----------------------------------------------------------------------------


def noise(found):
    """Latent rank correlations.

    Parameters
    ----------
    found : DataFrame
        Lines of `latent.errors_in_variables` with `cohort` in words.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> line = {"cohort": "a", "n_rows": 9, "rho": 0.8, "median": 0.75, "low": 0.5, "high": 0.9}
    >>> line |= {"share_positive": 1.0, "draws": 100, "seed": 1}
    >>> noise(pd.DataFrame([line]))["Median of draws"].item()
    '0.7500'
    """
    return pd.DataFrame({
        "Cohort": found["cohort"],
        "Rows": found["n_rows"].map(count),
        "ρ of the estimates": found["rho"].map(lambda v: number(v, 4)),
        "Median of draws": found["median"].map(lambda v: number(v, 4)),
        "Middle 95% of draws": spans(found["low"], found["high"], 4),
        "Draws above zero": found["share_positive"].map(percent),
        "Draws (seed)": [f"{count(n)} ({seed})" for n, seed in zip(found["draws"], found["seed"])],
    })


def bootstraps(found):
    """Intervals over rows with families drawn again.

    Parameters
    ----------
    found : DataFrame
        `family_draws.bootstraps`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> line = {"kind": "family left out", "name": "F", "n_rows": 9, "n_families": 4, "rho": 0.8, "low": 0.1,
    ...         "high": 1.0, "n_valid": 99, "resamples": 100}
    >>> bootstraps(pd.DataFrame([line])).iloc[0, 0]
    'without the family F'
    """
    words = {"all rows": "all rows", "family left out": "without the family {}",
             "subgroup": "released subgroup: {}"}
    names = [words[kind].format(name) for kind, name in zip(found["kind"], found["name"])]
    return pd.DataFrame({
        "Rows kept": names,
        "Rows (families)": [f"{count(n)} ({count(g)})" for n, g in zip(found["n_rows"], found["n_families"])],
        "ρ over rows": found["rho"].map(lambda v: number(v, 4)),
        "95% interval": spans(found["low"], found["high"]),
        "Usable resamples": [f"{count(n)}/{count(m)}" for n, m in zip(found["n_valid"], found["resamples"])],
    })


# --- pairs and planning -------------------------------------------------------------------------------------


def pairs(audit):
    """Pairs that the screen and initial accuracy order differently.

    Parameters
    ----------
    audit : DataFrame
        `pairs.pairwise_audit`; the reordered pairs are shown, the least likely first.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, screen
    >>> len(pairs(screen.pairwise_audit(data.model_rows())))
    26
    """
    odd = audit[audit["reordered"]].sort_values("p", kind="stable")
    return pd.DataFrame({
        "Row a": odd["row_a"],
        "Row b": odd["row_b"],
        "Collapse of a": shares(odd["collapse_a"], odd["init_correct_a"], 2),
        "Collapse of b": shares(odd["collapse_b"], odd["init_correct_b"], 2),
        "p (after Holm)": [f"{p_value(p)} ({p_value(holm)})" for p, holm in zip(odd["p"], odd["p_holm"])],
        "Follows": odd["follows"].map(FOLLOWS),
    })


def pair_counts(found):
    """How the pairs divide, for the cohort and with outside rows.

    Parameters
    ----------
    found : DataFrame
        `pairs.audit_with_added`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data
    >>> from analysis.pairs import audit_with_added
    >>> pair_counts(audit_with_added(data.model_rows(), data.model_rows().iloc[:0])).iloc[0, :3].tolist()
    ["the paper's rows", '91', '26 (28.6%)']
    """
    return pd.DataFrame({
        "Rows": ("with " + found["rows"]).where(found["added"], "the paper's rows"),
        "Pairs": found["pairs"].map(count),
        "Ordered differently": [f"{count(k)} ({percent(k / n)})"
                                for k, n in zip(found["reordered"], found["pairs"])],
        "Collapse follows the screen": found["screen"].map(count),
        "Follows initial accuracy": found["comparator"].map(count),
        "Neither": found["neither"].map(count),
        "Fisher p below 5%": found["p_below"].map(count),
        "After Holm": found["holm_below"].map(count),
    })


def planning(found):
    """Families needed.

    Parameters
    ----------
    found : DataFrame
        `pairs.plan_families` with `effect` in words.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import screen
    >>> planning(screen.plan_families([0.767]).assign(effect="as observed")).iloc[0, 2:].tolist()
    ['12', '81.7%']
    """
    return pd.DataFrame({
        "Partial ρ taken as true": found["effect"],
        "ρ": found["rho"].map(number),
        "Families needed": found["n_families"].map(count),
        "Power with that many": found["power"].map(percent),
    })


def halves(found):
    """Debates of the rows below and above the median flip rate.

    Parameters
    ----------
    found : DataFrame
        `pairs.halves`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data
    >>> from analysis.pairs import halves as split
    >>> halves(split(data.model_rows()))["Collapses / right at first"].iloc[0]
    '5.77% (124/2,150)'
    """
    wrong = found["n"] - found["init_correct"]
    return pd.DataFrame({
        "Flip rate": found.index.map({"low": "at or below the median", "high": "above it"}),
        "Rows": found["n_rows"].map(count),
        "Mean flip rate": found["alpha_tot"].map(lambda v: number(v, 4)),
        "Collapses / right at first": shares(found["collapse"], found["init_correct"], 2),
        "Corrections / wrong at first": shares(found["correction"], wrong, 2),
        "Right at last": shares(found["final_correct"], found["n"], 2),
    })


def extension(found):
    """The tests over eleven families and without each.

    Parameters
    ----------
    found : DataFrame
        `extension.leverage`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, extension as later
    >>> rows = later.extended(data.model_rows(), data.table("extension_rows"))
    >>> extension(later.leverage(rows, ["Tencent"]))["Families left out"].tolist()
    ['none', 'Tencent']
    """
    return pd.DataFrame({
        "Families left out": found["dropped"].replace("", "none"),
        "Rows (families)": [f"{count(n)} ({count(g)})" for n, g in zip(found["n_rows"], found["n_families"])],
        "ρ over rows": found["row_rho"].map(number),
        "ρ over families": found["rho"].map(number),
        "Exact p": exact(found),
        "Partial ρ given initial accuracy": found["partial_rho"].map(number),
        "Its p: t / all orders": [f"{_small(t)} / {_small(p)}"
                                  for t, p in zip(found["partial_p_t"], found["partial_p_label"])],
    })


def _small(p):
    return p_value(p) if pd.isna(p) or p >= 0.001 else f"{p:.6f}"


# --- what the columns mix -----------------------------------------------------------------------------------


def definitions(found):
    """The tests under each definition of the flip rate.

    Parameters
    ----------
    found : DataFrame
        `cohort.definition_tests`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> line = {"definition": "released", "row_rho": 0.8, "rho": 0.9, "p_two_sided": 0.01,
    ...         "two_sided_count": 5, "n_orders": 24, "partial_rho": 0.7, "partial_p": 0.1, "moved": 0}
    >>> definitions(pd.DataFrame([line]))["Exact p"].item()
    '0.0100 (5/24)'
    """
    return pd.DataFrame({
        "Flip rate": found["definition"].map(DEFINITIONS),
        "ρ over families": found["rho"].map(lambda v: number(v, 4)),
        "Exact p": exact(found),
        "ρ over rows": found["row_rho"].map(lambda v: number(v, 4)),
        "Partial ρ given initial accuracy": found["partial_rho"].map(lambda v: number(v, 4)),
        "Its exact p": found["partial_p"].map(p_value),
        "Rows whose rank moves": found["moved"].map(count),
    })


def unreadable(found):
    """Replies left out of the flip rate.

    Parameters
    ----------
    found : DataFrame
        `cohort.unreadable_replies`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> line = {"row": "m", "unreadable": 2, "asked": 10, "readable_only": 0.5, "all_replies": 0.4,
    ...         "difference": -0.1}
    >>> unreadable(pd.DataFrame([line])).iloc[0].tolist()
    ['m', '20.0% (2/10)', '0.5000', '0.4000', '−0.1000']
    """
    return pd.DataFrame({
        "Row": found["row"],
        "Unreadable replies": shares(found["unreadable"], found["asked"]),
        "Flip rate without them (released)": found["readable_only"].map(lambda v: number(v, 4)),
        "With them as no flip": found["all_replies"].map(lambda v: number(v, 4)),
        "Difference": found["difference"].map(lambda v: number(v, 4)),
    })


def left_out_row(found):
    """The family test with a row that the cohort leaves out.

    Parameters
    ----------
    found : DataFrame
        `cohort.with_left_out_row`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> line = {"case": "without it", "alpha": None, "rho": 0.9, "p_two_sided": 0.01, "two_sided_count": 5,
    ...         "n_orders": 24, "row_rho": 0.8, "comparator_rho": 0.8, "partial_rho": 0.7, "partial_p": 0.1}
    >>> left_out_row(pd.DataFrame([line]))["Its flip rate"].item()
    '–'
    """
    return pd.DataFrame({
        "Case": found["case"],
        "Its flip rate": found["alpha"].map(number),
        "ρ over families": found["rho"].map(number),
        "Exact p": exact(found),
        "ρ over rows": found["row_rho"].map(number),
        "1 − initial accuracy, ρ over families": found["comparator_rho"].map(number),
        "Partial ρ (exact p)": [f"{number(v)} ({p_value(p)})"
                                for v, p in zip(found["partial_rho"], found["partial_p"])],
    })


def half_widths(found):
    """Released half widths beside those of both intervals.

    Parameters
    ----------
    found : DataFrame
        `cohort.half_widths`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> line = {"row": "m", "collapse": 0, "init_correct": 149, "released": 0.0, "wilson": 0.0126,
    ...         "wald": 0.0, "is_wilson": False, "is_wald": True}
    >>> half_widths(pd.DataFrame([line]))["Released value is"].item()
    "Wald's"
    """
    kinds = {(True, True): "both", (True, False): "Wilson's", (False, True): "Wald's",
             (False, False): "neither"}
    return pd.DataFrame({
        "Row": found["row"],
        "Collapses / right at first": found["collapse"].map(count) + "/" + found["init_correct"].map(count),
        "Released half width": found["released"].map(lambda v: number(v, 4)),
        "Wilson": found["wilson"].map(lambda v: number(v, 4)),
        "Wald": found["wald"].map(lambda v: number(v, 4)),
        "Released value is": [kinds[pair] for pair in zip(found["is_wilson"], found["is_wald"])],
    })


def diversity(found):
    """First answers and Round 1 as predictors in the six rows that tell them.

    Parameters
    ----------
    found : DataFrame
        `rivals.diversity`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> line = {"predictor": "disagreement", "row_rho": 0.9, "row_n": 6, "row_p_asymptotic": 0.01,
    ...         "family_rho": 0.8, "family_n": 3, "alpha_given": 0.2, "alpha_given_p": 0.7}
    >>> diversity(pd.DataFrame([line])).iloc[0, 0]
    'first answers disagree (share of debates)'
    """
    return pd.DataFrame({
        "Measure": found["predictor"].map(worded),
        "ρ over rows": sized(found["row_rho"], found["row_n"]),
        "p (t approximation)": found["row_p_asymptotic"].map(p_value),
        "ρ over families": sized(found["family_rho"], found["family_n"], "G"),
        "Flip rate, this taken out: partial ρ (p)": [
            f"{number(v)} ({p_value(p)})" for v, p in zip(found["alpha_given"], found["alpha_given_p"])],
    })


def lighter(found):
    """The tests with fewer probes a row.

    Parameters
    ----------
    found : DataFrame
        `rivals.lighter_probes`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> line = {"probes": "default condition", "row_rho": 0.9, "row_n": 14, "row_p_asymptotic": 0.01,
    ...         "family_rho": 0.8, "family_n": 7, "family_p_two_sided": 0.02, "family_two_sided_count": 5,
    ...         "family_n_orders": 24}
    >>> lighter(pd.DataFrame([line])).iloc[0, 0]
    'default condition'
    """
    return pd.DataFrame({
        "Probes": found["probes"],
        "ρ over rows": sized(found["row_rho"], found["row_n"]),
        "p (t approximation)": found["row_p_asymptotic"].map(p_value),
        "ρ over families": sized(found["family_rho"], found["family_n"], "G"),
        "Exact p": exact(found, "family_"),
    })
