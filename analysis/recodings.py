"""The headline association under every other coding that public data allow: does its sign survive?

A recoding changes how rows, flip rates or collapses are counted, one choice at a time, and leaves the test as it is.
"""

import pandas as pd

from analysis import association, clusters, cohort, data, extension, ledger, screen, sealed
from analysis.errors import DataError

FLIP_RATES = {
    "default_condition": "default condition in every row",
    "all_conditions": "all three conditions in every row",
    "all_replies": "default condition, an unreadable reply being no flip, in every row",
}

def recounted(rows, counts):
    """Rows with the collapse counts of another accounting, where it has them.

    Parameters
    ----------
    rows : DataFrame
        Model rows.
    counts : DataFrame
        `row, n, init_correct, collapse` of some of them.

    Returns
    -------
    DataFrame
        The same rows; counts, `c_cond` and `init_acc` of those named in `counts` replaced.

    Raises
    ------
    DataError
        `counts` names a row that is not there.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": ["a", "b"], "n": [10, 10], "init_correct": [5, 8], "collapse": [1, 2]})
    >>> recounted(rows, pd.DataFrame({"row": ["a"], "n": [10], "init_correct": [4], "collapse": [2]}))["c_cond"].tolist()
    [0.5, 0.25]
    """
    out = rows.set_index("row")
    new = counts.set_index("row")[["n", "init_correct", "collapse"]]
    strange = new.index.difference(out.index)
    if len(strange):
        raise DataError(f"counts, field 'row': {strange[0]!r}; expected one of {', '.join(out.index)}")
    out.loc[new.index, new.columns] = new
    return out.assign(c_cond=out["collapse"] / out["init_correct"], init_acc=out["init_correct"] / out["n"]).reset_index()


def pooled(rows):
    """One line a family: its counts added up, its flip rate averaged.

    Parameters
    ----------
    rows : DataFrame
        Model rows.

    Returns
    -------
    DataFrame
        `row, family, n, init_correct, collapse, alpha_tot, c_cond, init_acc`; a family is its own only row.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": ["a", "b"], "family": ["F", "F"], "n": [10, 90], "init_correct": [5, 45], "collapse": [5, 0],
    ...                      "alpha_tot": [0.2, 0.4]})
    >>> pooled(rows)[["alpha_tot", "c_cond"]].round(2).values.tolist()
    [[0.3, 0.1]]
    """
    sums = rows.groupby("family")[["n", "init_correct", "collapse"]].sum()
    means = rows.groupby("family")[["alpha_tot"]].mean()
    out = sums.join(means).reset_index()
    return out.assign(row=out["family"], c_cond=out["collapse"] / out["init_correct"], init_acc=out["init_correct"] / out["n"])


def headline(rows, coding, changed):
    """The family test, the row check and the partial under one coding, as one line.

    Parameters
    ----------
    rows : DataFrame
        Model rows with `row, family, alpha_tot, c_cond, init_acc`.
    coding : str
        What was changed, in words.
    changed : str
        Which part: predictor, outcome, cohort or test.

    Returns
    -------
    dict

    Examples
    --------
    >>> headline(data.model_rows(), "none", "none")["rho"].round(4)
    np.float64(0.8929)
    """
    family, row = association.family_association(rows).iloc[0], association.row_association(rows).iloc[0]
    given = screen.partial(rows).iloc[0]
    return {
        "changed": changed, "coding": coding, "n_rows": family["n_rows"], "n_families": family["n_families"], "rho": family["rho"],
        "p_two_sided": family["p_two_sided"], "two_sided_count": family["two_sided_count"], "n_orders": family["n_orders"],
        "row_rho": row["rho"], "partial_rho": given["rho"], "partial_p": given["p_two_sided"],
    }


def table():
    """The headline association under each coding.

    Returns
    -------
    DataFrame
        One line a coding, the paper's first: `changed, coding, n_rows, n_families, rho, p_two_sided, two_sided_count, n_orders,
        row_rho, partial_rho, partial_p`.

    References
    ----------
    Sections 3.1, 4.2, C.2, G.1.

    Examples
    --------
    >>> found = table()
    >>> found["coding"].iloc[0], bool((found["rho"] > 0).all())
    ('as in the paper', True)
    """
    rows, debates = data.model_rows(), data.debates()
    shared = clusters.shared_questions(debates)
    asked = sealed.default_probes_asked(data.table("strongest_probe"))
    flip_rates = cohort.alpha_definitions(rows, data.table("probe_cells"), asked)
    cases = [
        ("nothing", "as in the paper", rows),
        *[("flip rate", words, rows.assign(alpha_tot=flip_rates[name])) for name, words in FLIP_RATES.items()],
        ("collapse", "ties undecided, counted as wrong, in the six traced rows", recounted(rows, ledger.summarize(data.debates(tie="undecided")))),
        ("collapse", "each question once, in the six traced rows", recounted(rows, ledger.summarize(debates[debates["replicate"] == 0]))),
        ("collapse", "only the questions that all six traced rows share", recounted(rows, ledger.summarize(debates[debates["question"].isin(shared)]))),
        ("collapse", "tie means no majority, in the four-round rows (the released second accounting)", recounted(rows, _second_accounting())),
        ("collapse", "alphabetic rule at both ends, in the four-round rows (the released parser audit)", recounted(rows, _audited())),
        ("collapse", "collapses over all debates", rows.assign(c_cond=rows["collapse"] / rows["n"])),
        ("collapse", "lower Wilson limit of each row", rows.assign(c_cond=rows["c_cond_low"])),
        ("collapse", "posterior mean of each row (Jeffreys)", rows.assign(c_cond=(rows["collapse"] + 0.5) / (rows["init_correct"] + 1))),
        ("family", "counts added up within a family", pooled(rows)),
        ("family", "without rows of fewer than a hundred right starts", rows[rows["init_correct"] >= 100]),
        ("family", "only rows with three rounds", rows[rows["endpoint_round"] == 3]),
        ("family", "with the eleven rows run later", extension.extended(rows, data.table("extension_rows"))),
    ]
    return pd.DataFrame([headline(frame, coding, changed) for changed, coding, frame in cases])


def _second_accounting():
    counts = data.table("four_round_ledger")
    return counts[counts["row"].notna()]


def _audited():
    audit = data.table("parser_audit")
    audit = audit[audit["parser"].eq("no_fallback") & audit["lane"].isin(data.model_rows()["row"])]
    return pd.DataFrame({
        "row": audit["lane"], "n": audit["n"], "init_correct": audit["kept_correct"] + audit["collapse"], "collapse": audit["collapse"],
    })
