"""Printed numbers about reading answers: ties, stricter parsers, unreadable replies, logged calls."""

from analysis import data, screen


def audit(parser_audit):
    """Majorities that the tie rule decides, and transitions that a stricter parser moves.

    Parameters
    ----------
    parser_audit : DataFrame
        Counts by strict parser and trace file.

    Returns
    -------
    dict of str to float

    References
    ----------
    Section 3.1; A.3.3.

    Examples
    --------
    >>> int(audit(data.table("parser_audit"))["s3.1.tie_fired"])
    298
    """
    total = parser_audit[parser_audit["parser"] == "no_fallback"].drop(columns=["parser", "lane"]).sum()
    changed = total["cell_changed"] / total["strict_labelled"]
    return {
        "s3.1.tie_fired": total["tied_reductions"], "s3.1.reductions": total["reductions"],
        "s3.1.tie_rate": total["tied_reductions"] / total["reductions"],
        "s3.1.cells_changed": total["cell_changed"], "s3.1.strict_labeled": total["strict_labelled"],
        "a33.tie_rows": total["any_tied"], "a33.rows": total["n"], "a33.cells_pct": changed,
        "a33.coll_changed": total["collapse_changed"], "a33.corr_changed": total["correction_changed"],
    }


def calls(parser_traces):
    """Logged debate calls.

    Parameters
    ----------
    parser_traces : DataFrame
        Logged answers by trace file.

    Returns
    -------
    dict of str to float

    References
    ----------
    Note of Table 22; G.4.

    Examples
    --------
    >>> int(calls(data.table("parser_traces"))["c1.ds_calls"])
    3000
    """
    return {"c1.ds_calls": parser_traces.set_index("lane")["n_states"]["deepseek-v4-flash"]}


def unreadable_as_flip(model_rows, four_round_rows):
    """The row-level association when unreadable replies of the later rows count as flips.

    Parameters
    ----------
    model_rows, four_round_rows : DataFrame
        The realised cohort; probe counts of the six later rows.

    Returns
    -------
    dict of str to float

    References
    ----------
    A.3.3.

    Examples
    --------
    >>> found = unreadable_as_flip(data.model_rows(), data.table("four_round_rows"))
    >>> round(float(found["a33.none_as_flip"]), 4)
    0.8119
    """
    later = four_round_rows.set_index("row")
    worst = (later["n_flip"] + later["n_unparsed"]) / later["n_probes"]
    alpha = model_rows["row"].map(worst).fillna(model_rows["alpha_tot"])
    rho = screen.row_association(model_rows.assign(alpha_tot=alpha))["rho"].item()
    return {"a33.none_as_flip": rho}
