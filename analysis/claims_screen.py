"""Printed numbers that follow from the model rows.

Each function computes its tables once and hands their cells out to the claim ids that print them, in
natural units (see `analysis.recompute`).
"""

from analysis import data, screen
from analysis.claims_cells import TRACED


def association(model_rows, groupings):
    """The rank tests over families and over model rows, with everything dropped or regrouped once.

    Parameters
    ----------
    model_rows : DataFrame
        The realised cohort, from `analysis.data.model_rows`.
    groupings : DataFrame
        Other taxonomies: `taxonomy, row, group`.

    Returns
    -------
    dict of str to float

    References
    ----------
    Sections 4.2 and 4.3; Tables 3, 4, 23 and 24; A.3.2, C.2, C.3, C.5, G.1.

    Examples
    --------
    >>> round(float(association(data.model_rows(), data.table("taxonomies"))["s4.2.family_rho"]), 4)
    0.8929
    """
    rows, qwen = model_rows, model_rows[model_rows["family"] == "Qwen"]
    family = screen.family_association(rows).iloc[0]
    row_rho = screen.row_association(rows)["rho"].item()
    lite = screen.family_association(rows, "alpha_default_condition").iloc[0]
    capability = screen.comparators(rows, ["capability_pressure"]).iloc[0]
    lofo = screen.leave_one_family_out(rows).set_index("dropped")
    lofo_rows = screen.leave_one_family_out(rows, level="row").set_index("dropped")
    two = screen.drop_families(rows, ["Meta", "Qwen"]).iloc[0]
    loqwen = screen.leave_one_row_out(rows, "Qwen").set_index("dropped")
    partial = screen.partial(rows).iloc[0]
    return {
        "s4.N": len(rows), "abs.G": family["n_families"], "t3.qwen_rows": len(qwen),
        "s4.2.qwen_min": qwen["c_cond"].min(), "s4.2.qwen_max": qwen["c_cond"].max(),
        "abs.family_rho": family["rho"], "s4.2.family_rho": family["rho"],
        "abs.family_p": family["p_two_sided"],
        "c2.median_rho": screen.family_association(rows, how="median")["rho"].item(),
        "a32.lite_rho": lite["rho"], "a32.lite_p": lite["p_two_sided"],
        "abs.initacc_rho": capability["family_rho"],
        "abs.partial_rho": partial["rho"], "abs.partial_p": partial["p_two_sided"],
        "s4.3.row_rho": row_rho, "a35.row_rho": row_rho,
        "s4.3.row_lofo_worst": lofo_rows["rho"].min(),
        "c2.lofo_worst": lofo["rho"].min(),
        **{f"c2.lofo.{name}": rho for name, rho in lofo["rho"].drop("Qwen").items()},
        "s4.3.noqwen_rho": lofo.loc["Qwen", "rho"], "s4.3.noqwen_p": lofo.loc["Qwen", "p_two_sided"],
        "c2.drop_meta_qwen": two["rho"], "c2.drop_meta_qwen_p": two["p_two_sided"],
        "s4.3.loqwen_min": loqwen["row_rho"].min(), "s4.3.loqwen_max": loqwen["row_rho"].max(),
        **{f"c2.loqwen.{name}": loqwen.loc[TRACED[name], "row_rho"] for name in ("qwen3_4b", "qwen3_8b")},
        "c2.loqwen_family": loqwen["family_rho"].min(),
        "c2.loqwen_family_p": loqwen["family_p_two_sided"].max(),
        "g1.noqwen_rows_n": len(rows) - len(qwen), "g1.noqwen_rows_rho": lofo_rows.loc["Qwen", "rho"],
        "c2.eff_n": screen.effective_families(rows)["effective_families"].item(),
        **_row_partials(rows), **_taxonomies(rows, groupings),
    }


def _row_partials(rows):
    controls = {
        "s4.3.row_partial_init": "init_acc", "c5.rev": "debate_revision_proxy",
        "s4.3.row_partial_init_rev": ["init_acc", "debate_revision_proxy"],
    }
    out = {}
    for stem, names in controls.items():
        found = screen.partial(rows, names, level="row").iloc[0]
        out |= {stem if stem.startswith("s4") else f"{stem}_rho": found["rho"], f"{stem}_p": found["p_t"]}
    return out


def _taxonomies(rows, groupings):
    found = screen.taxonomies(rows, groupings).set_index("taxonomy")
    named = {"split": "qwen_generations", "merge": "small_dense", "both": "both"}
    return {f"c2.tax.{name}_{part}": found.loc[line, column]
            for name, line in named.items() for part, column in (("rho", "rho"), ("G", "n_families"))}
