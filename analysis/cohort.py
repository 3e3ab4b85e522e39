"""What the cohort's columns mix: definitions of flip rates, endpoints, interval widths; and a row left out."""

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis import screen, stats
from analysis.association import family_association, row_association
from analysis.errors import DataError
from analysis.sealed import slug

DEFINITIONS = ("released", "default_condition", "all_conditions", "all_replies")


def alpha_definitions(rows, probe_cells, asked):
    """Flip rate of every row under the released mixture and under three definitions that hold for all rows.

    Parameters
    ----------
    rows : DataFrame
        Model rows with `row, family, alpha_tot, alpha_tot_full, alpha_default_condition, alpha_definition,
        c_cond, init_acc`.
    probe_cells : DataFrame
        `model, condition, social, n_probes, n_flip`: readable replies of the rows whose released flip rate
        leaves unreadable ones out.
    asked : Series of int
        Default-condition probes that these models were asked, by model, as `sealed.default_probes_asked`
        returns.

    Returns
    -------
    DataFrame
        The first columns, and ``released`` (as ranked), ``default_condition`` (mean of both arms, over
        readable replies in the older rows and all replies in the later ones), ``all_conditions`` (mean of
        three conditions and two arms, replies as before), ``all_replies`` (default condition, an unreadable
        reply being no flip, in every row).

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. 3.2 and A.3.2.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": ["m"], "family": ["F"], "c_cond": 0.1, "init_acc": 0.5, "alpha_tot": 0.5,
    ...                      "alpha_tot_full": 0.5, "alpha_default_condition": 0.5,
    ...                      "alpha_definition": "default_x"})
    >>> cells = pd.DataFrame({"model": "M", "condition": ["default", "anti_social"], "social": False,
    ...                       "n_probes": 8, "n_flip": [4, 2]})
    >>> alpha_definitions(rows, cells, pd.Series({"M": 10}))[list(DEFINITIONS)].values.tolist()
    [[0.5, 0.5, 0.375, 0.4]]
    """
    rate = probe_cells["n_flip"] / probe_cells["n_probes"]
    cells = probe_cells.assign(row=probe_cells["model"].map(slug), rate=rate)
    older = rows["alpha_definition"].str.startswith("default")
    unknown = rows.loc[older & ~rows["row"].isin(cells["row"]), "row"]
    if len(unknown):
        raise DataError(f"row {unknown.iat[0]!r}: no line in probe_cells; expected its counts by condition")
    default = cells[cells["condition"] == "default"].groupby("row")["n_flip"].sum()
    over_all = default / asked.rename(slug)
    out = rows[["row", "family", "c_cond", "init_acc", "alpha_definition"]].copy()
    out["released"], out["default_condition"] = rows["alpha_tot"], rows["alpha_default_condition"]
    conditions = rows["row"].map(cells.groupby("row")["rate"].mean())
    out["all_conditions"] = conditions.where(older, rows["alpha_tot_full"])
    out["all_replies"] = rows["row"].map(over_all).where(older, rows["alpha_default_condition"])
    return out


def definition_tests(defined):
    """The rank tests under each definition of the flip rate.

    Parameters
    ----------
    defined : DataFrame
        From `alpha_definitions`.

    Returns
    -------
    DataFrame
        One line a definition: ``definition, n_rows, row_rho, n_families, rho, p_two_sided, two_sided_count,
        n_orders`` (family test), ``partial_rho, partial_p`` (family level, initial accuracy taken out, exact
        p), ``moved`` (rows whose rank is not the released one).

    Examples
    --------
    >>> values = {name: [0.1, 0.3, 0.4, 0.5] for name in DEFINITIONS}
    >>> defined = pd.DataFrame({"row": list("abcd"), "family": list("FGHI"), "c_cond": [0, 0.02, 0.05, 0.03],
    ...                         "init_acc": [0.9, 0.8, 0.7, 0.6], **values})
    >>> definition_tests(defined)[["definition", "rho", "moved"]].round(3).values.tolist()[:2]
    [['released', 0.8, 0], ['default_condition', 0.8, 0]]
    """
    lines = []
    usual = defined["released"].rank()
    for name in DEFINITIONS:
        family = family_association(defined, name).iloc[0]
        given = screen.partial(defined, predictor=name).iloc[0]
        lines.append({
            "definition": name, "n_rows": family["n_rows"],
            "row_rho": row_association(defined, name)["rho"].item(),
            **family[["n_families", "rho", "p_two_sided", "two_sided_count", "n_orders"]],
            "partial_rho": given["rho"], "partial_p": given["p_two_sided"],
            "moved": int((defined[name].rank() != usual).sum()),
        })
    return pd.DataFrame(lines)


def unreadable_replies(rows, probe_cells, asked):
    """Replies that the released flip rates of the older rows leave out, and the rate with them as no flip.

    Parameters
    ----------
    rows, probe_cells, asked
        As for `alpha_definitions`.

    Returns
    -------
    DataFrame
        One line a row whose flip rate is over readable replies: ``row, asked, unreadable, share, flips,
        readable_only`` (mean of both arms, as released), ``all_replies``, ``difference``.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": ["m"], "alpha_default_condition": 0.5, "alpha_definition": "default_x"})
    >>> cells = pd.DataFrame({"model": ["M"], "condition": "default", "n_probes": 8, "n_flip": 4})
    >>> found = unreadable_replies(rows, cells, pd.Series({"M": 10}))
    >>> found[["unreadable", "share", "all_replies"]].values.tolist()
    [[2.0, 0.2, 0.4]]
    """
    older = rows[rows["alpha_definition"].str.startswith("default")]
    default = probe_cells[probe_cells["condition"] == "default"]
    sums = default.assign(row=default["model"].map(slug)).groupby("row")[["n_probes", "n_flip"]].sum()
    sums = sums.reindex(older["row"]).reset_index(drop=True)
    total = older["row"].map(asked.rename(slug)).reset_index(drop=True)
    out = pd.DataFrame({
        "row": older["row"].to_numpy(), "asked": total, "unreadable": total - sums["n_probes"],
        "flips": sums["n_flip"],
        "readable_only": older["alpha_default_condition"].to_numpy(), "all_replies": sums["n_flip"] / total,
    })
    out.insert(3, "share", out["unreadable"] / out["asked"])
    return out.assign(difference=out["all_replies"] - out["readable_only"])


def half_widths(rows, released):
    """Half widths released as Wilson's, beside Wilson's and Wald's own.

    Parameters
    ----------
    rows : DataFrame
        Model rows with `row, collapse, init_correct` (counts).
    released : DataFrame
        `row, half_width` (fraction, four decimals).

    Returns
    -------
    DataFrame
        One line a row: ``row, collapse, init_correct, released, wilson, wald`` (half widths of 95% intervals,
        fractions), ``is_wilson, is_wald`` (the released value rounds from it).

    References
    ----------
    Wilson (1927); Wald's interval is p plus or minus 1.96 standard errors, which has no width at 0 of n.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": ["a", "b"], "collapse": [0, 2], "init_correct": [149, 93]})
    >>> found = half_widths(rows, pd.DataFrame({"row": ["a", "b"], "half_width": [0.0, 0.0346]}))
    >>> found[["is_wilson", "is_wald"]].values.tolist()
    [[False, True], [True, False]]
    """
    rate = rows["collapse"] / rows["init_correct"]
    ends = stats.proportion(rows["collapse"], rows["init_correct"])
    out = rows[["row", "collapse", "init_correct"]].reset_index(drop=True)
    out["released"] = out["row"].map(released.set_index("row")["half_width"])
    out["wilson"] = ((ends["high"] - ends["low"]) / 2).to_numpy()
    out["wald"] = (sps.norm.ppf(0.975) * np.sqrt(rate * (1 - rate) / rows["init_correct"])).to_numpy()
    for name in ("wilson", "wald"):
        out[f"is_{name}"] = (out[name] - out["released"]).abs() <= 0.00005 + 1e-9
    return out


def endpoints(rows, four_round_ledger):
    """Rounds in which the cohort's final answers stand, and what the last one adds.

    Parameters
    ----------
    rows : DataFrame
        Model rows with `row, endpoint_round, init_correct, collapse`.
    four_round_ledger : DataFrame
        `row, collapse, onset_4` (counts, a tied majority being undefined) of the rows that end at Round 4.

    Returns
    -------
    DataFrame
        One line an endpoint: ``endpoint_round, n_rows, rows`` (names), ``init_correct, collapse`` (as in the
        cohort), ``ledger_collapse, begin_at_4`` (collapses of the second accounting, and those of them that
        begin only in Round 4; missing where the rows are not in it).

    Examples
    --------
    >>> rows = pd.DataFrame({"row": ["a", "b"], "endpoint_round": [3, 4], "init_correct": 10,
    ...                      "collapse": [1, 3]})
    >>> ledger = pd.DataFrame({"row": ["b"], "collapse": [2], "onset_4": [1]})
    >>> endpoints(rows, ledger)[["endpoint_round", "n_rows", "begin_at_4"]].values.tolist()
    [[3, 1, <NA>], [4, 1, 1]]
    """
    counts = four_round_ledger.dropna(subset="row").set_index("row")
    joined = rows.assign(ledger_collapse=rows["row"].map(counts["collapse"]),
                         begin_at_4=rows["row"].map(counts["onset_4"]))
    groups = joined.groupby("endpoint_round")
    out = groups[["init_correct", "collapse"]].sum()
    out.insert(0, "rows", groups["row"].agg(", ".join))
    out.insert(0, "n_rows", groups.size())
    late = groups[["ledger_collapse", "begin_at_4"]].sum(min_count=1).astype("Int64")
    return out.join(late).reset_index()


def with_left_out_row(rows, line, alphas):
    """The family test with one row that the cohort leaves out, at several flip rates for it.

    Parameters
    ----------
    rows : DataFrame
        Model rows with `row, family, alpha_tot, c_cond, init_acc`.
    line : DataFrame
        The row: one line with `row, family, c_cond, init_acc`.
    alphas : dict of {str: float}
        Flip rates to try, by what they are.

    Returns
    -------
    DataFrame
        One line a flip rate, first the cohort as it is: ``case, alpha, rho, p_two_sided, two_sided_count,
        n_orders`` (family test), ``row_rho, comparator_rho`` (initial inaccuracy over families),
        ``partial_rho, partial_p``.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": list("abcd"), "family": list("FGHI"), "alpha_tot": [0.1, 0.3, 0.4, 0.5],
    ...                      "c_cond": [0.0, 0.02, 0.05, 0.03], "init_acc": [0.9, 0.8, 0.7, 0.6]})
    >>> line = pd.DataFrame({"row": ["x"], "family": ["F"], "c_cond": [0.3], "init_acc": [0.9]})
    >>> with_left_out_row(rows, line, {"low": 0.1, "high": 0.9})[["case", "rho"]].round(3).values.tolist()
    [['without it', 0.8], ['low', -0.4], ['high', 0.632]]
    """
    lines = []
    for case, alpha in {"without it": None, **alphas}.items():
        some = rows if alpha is None else pd.concat([rows, line.assign(alpha_tot=alpha)], ignore_index=True)
        family = family_association(some).iloc[0]
        given = screen.partial(some).iloc[0]
        lines.append({
            "case": case, "alpha": alpha, "n_rows": family["n_rows"],
            **family[["rho", "p_two_sided", "two_sided_count", "n_orders"]],
            "row_rho": row_association(some)["rho"].item(),
            "comparator_rho": -family_association(some, "init_acc")["rho"].item(),
            "partial_rho": given["rho"], "partial_p": given["p_two_sided"],
        })
    return pd.DataFrame(lines).astype({"alpha": float})
