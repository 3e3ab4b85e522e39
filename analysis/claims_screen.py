"""Printed numbers that follow from the model rows, the sealed cohort and the probe counts.

Each function computes its tables once and hands their cells out to the claim ids that print them, in
natural units (see `analysis.recompute`).
"""

from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis import data, screen, stats
from analysis.claims_cells import PROBED, RATES, SEALED, TRACED, Range, cells
from analysis.errors import DataError


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


def pairs(model_rows, *, level=0.05):
    """Pairs of model rows that the screen and initial accuracy order differently.

    Parameters
    ----------
    model_rows : DataFrame
        The realised cohort.
    level : float
        Of the Fisher tests.

    Returns
    -------
    dict of str to float

    References
    ----------
    Section 4.2; G.1 and Table 41.

    Examples
    --------
    >>> pairs(data.model_rows())["s4.2.pairs"]
    91
    """
    lines = model_rows.to_dict("records")
    audit = pd.DataFrame([{
        "screen": np.sign(a["alpha_tot"] - b["alpha_tot"]), "start": np.sign(b["init_acc"] - a["init_acc"]),
        "outcome": np.sign(a["c_cond"] - b["c_cond"]), "p": _fisher(a, b),
    } for a, b in combinations(lines, 2)])
    odd = audit[audit["screen"] != audit["start"]]
    by = {"screen": odd["outcome"] == odd["screen"], "init": odd["outcome"] == odd["start"]}
    out = {
        "s4.2.pairs": len(audit), "s4.2.reordered": len(odd), "s4.2.follow_screen": by["screen"].sum(),
        "s4.2.follow_initacc": by["init"].sum(), "s4.2.tied": (odd["outcome"] == 0).sum(),
    }
    for stem, p in (("g1.sig", odd["p"].to_numpy()), ("g1.holm", stats.holm(odd["p"]))):
        out[stem] = (p < level).sum()
        out |= {f"{stem}_{name}": ((p < level) & follows).sum() for name, follows in by.items()}
    known = {line["row"]: line for line in lines}
    return out | {"g1.fisher_motiv": _fisher(known["llama-3.1-8b"], known["qwen3-4b"])}


def _fisher(a, b):
    table = [[line["collapse"], line["init_correct"] - line["collapse"]] for line in (a, b)]
    return sps.fisher_exact(table).pvalue


def held_out_families(model_rows):
    """Collapse of each family predicted by a line through the other families.

    Parameters
    ----------
    model_rows : DataFrame
        The realised cohort.

    Returns
    -------
    dict of str to float

    References
    ----------
    Section C.4 and Table 25.

    Examples
    --------
    >>> int(held_out_families(data.model_rows())["c4.cov95"])
    6
    """
    means = screen.family_means(model_rows, columns=["alpha_tot", "c_cond"])
    import statsmodels.api as sm  # here: it takes long to import

    design = sm.add_constant(means["alpha_tot"])
    found = []
    for i in means.index:
        fit = sm.OLS(means["c_cond"].drop(i), design.drop(i)).fit().get_prediction(design.loc[[i]])
        ends = {level: fit.conf_int(obs=True, alpha=1 - level / 100)[0] for level in (80, 95)}
        inside = {level: low <= means.at[i, "c_cond"] <= high for level, (low, high) in ends.items()}
        found.append({"predicted": fit.predicted_mean[0], **inside})
    found = pd.DataFrame(found)
    rho = sps.spearmanr(found["predicted"], means["c_cond"])
    return {
        "c4.rho": rho.statistic, "c4.p": rho.pvalue,
        "c4.mare": (found["predicted"].rank() - means["c_cond"].rank()).abs().mean(),
        "c4.cov80": found[80].sum(), "c4.cov95": found[95].sum(), "c4.miss80": (~found[80]).sum(),
    }


# --- the earlier sealed cohort ------------------------------------------------------------------------------


def sealed(sealed_rows, sealed_vectors):
    """Rows and rank tests of the sealed cohort.

    Parameters
    ----------
    sealed_rows, sealed_vectors : DataFrame
        From `analysis.data`; the second has the nine rows of the rank tests.

    Returns
    -------
    dict of str to float

    References
    ----------
    Sections 4.3, A.3.5, C.6 and C.8; Tables 15 and 16.

    Examples
    --------
    >>> sealed(data.sealed_rows(), data.table("sealed_vectors"))["a35.n9_rows"]
    9
    """
    table = sealed_rows.set_index("row")
    rows = _nine(sealed_rows, sealed_vectors)
    total = screen.row_association(rows, "alpha_tot", exact=True).iloc[0]
    adverse = screen.row_association(rows, "alpha_adv", exact=True).iloc[0]
    foil = screen.row_association(rows, "debate_flip_rate").iloc[0]
    partial = screen.partial(rows, level="row", predictor="alpha_adv").iloc[0]
    return {
        **cells("t16", table, SEALED, RATES),
        "s1.ccond.sonnet": table.loc[SEALED["sonnet45"], "c_cond"],
        "a35.n9_rows": len(rows), "c8.families": total["n_families"],
        "s4.3.sealed_rho": total["rho"], "c8.perm_p": total["p_two_sided"],
        "c8.adv_rho": adverse["rho"], "c8.adv_p": adverse["p_two_sided"],
        "s4.3.fr_foil_rho": foil["rho"], "s4.3.fr_foil_p": foil["p_asymptotic"],
        "c6.adv_partial": partial["rho"], "c6.adv_partial_p": partial["p_t"],
        "c8.adv_init": screen.row_association(rows, "alpha_adv", "init_acc")["rho"].item(),
        "c8.r2_tot": _left_out_r2(rows["alpha_tot"], rows["c_cond"]),
        "c8.r2_adv": _left_out_r2(rows["alpha_adv"], rows["c_cond"]),
        "c8.gee_z": _largest_gee_z(rows),
    }


def _nine(sealed_rows, sealed_vectors):
    """The rows of the sealed rank tests, with family and rates."""
    known = sealed_rows.assign(row=sealed_rows["row"].str.removeprefix("Claude "))
    rows = sealed_vectors[["row", "alpha_tot", "alpha_adv"]].merge(known, on="row", validate="1:1")
    if len(rows) != len(sealed_vectors):
        lost = set(sealed_vectors["row"]) - set(rows["row"])
        raise DataError(
            f"sealed_vectors.csv, field 'row': {sorted(lost)[0]!r}; expected a row of sealed_rows.csv"
        )
    return rows


def _left_out_r2(x, y):
    """Share of rank variance that a line through the other rows predicts."""
    x, y = x.rank().to_numpy()[:, None], y.rank().to_numpy()
    from sklearn.linear_model import LinearRegression  # here: it takes long to import
    from sklearn.metrics import r2_score
    from sklearn.model_selection import LeaveOneOut, cross_val_predict

    return r2_score(y, cross_val_predict(LinearRegression(), x, y, cv=LeaveOneOut()))


def _largest_gee_z(rows):
    """Largest |z| of two row-level predictors in a trial-level logistic with family clusters."""
    lines = rows.loc[rows.index.repeat(rows["init_correct"])]
    place = lines.groupby(level=0).cumcount()
    fell = (place < lines["collapse"]).astype(float).to_numpy()
    import statsmodels.api as sm  # here: it takes long to import

    design = sm.add_constant(lines[["alpha_adv", "init_acc"]].to_numpy())
    fit = sm.GEE(fell, design, groups=lines["family"].to_numpy(), family=sm.families.Binomial()).fit()
    return np.abs(fit.tvalues[1:]).max()


# --- probes -------------------------------------------------------------------------------------------------


def probes(probe_cells):
    """Probe flip rates of the default condition, unreadable replies left out.

    Parameters
    ----------
    probe_cells : DataFrame
        Counts by model, condition and arm.

    Returns
    -------
    dict of str to float

    References
    ----------
    Section 4.2; Tables 16 and 19; B.4.

    Examples
    --------
    >>> round(float(probes(data.table("probe_cells"))["t16.llama31_8b.alpha"]), 3)
    0.772
    """
    counts = probe_cells[probe_cells["condition"] == "default"].set_index(["model", "social"])
    rate = (counts["n_flip"] / counts["n_probes"]).unstack("social")
    tabled = {name: PROBED[name] for name in (*TRACED, "sonnet45", "gpt4omini")}
    mini = counts.loc[("GPT-4o-mini", False)]
    return {
        **cells("t16", rate, tabled, {"alpha": False}),
        "s4.2.alpha.llama": rate.loc["Llama-3.1-8B"].mean(),
        "s4.2.alpha.qwen3_4b": rate.loc["Qwen3-4B"].mean(),
        "b4.gpt_adv_sa": mini["n_adv"] / mini["n_init_right_probes"],
    }


def channels(probe_cells, printed):
    """Probe flip rates of the three conditions over all records, an unreadable reply being no flip.

    Parameters
    ----------
    probe_cells : DataFrame
        Counts by model, condition and arm.
    printed : Series of float
        Other printed claims, by id: the protocol's sizes and the valid records of each model.

    Returns
    -------
    dict of str to Range
        The released counts tell readable replies, not records. Where a model lost records only their total
        is printed, so that each condition may have lost none or all of them.

    References
    ----------
    Table 20.

    Examples
    --------
    >>> sizes = {"b8.nominal": 1800, "a2.system_msgs": 3, "abs.n_probes": 8}
    >>> sizes |= {f"t20.{name}.n": 1800 for name in PROBED}
    >>> round(float(channels(data.table("probe_cells"), pd.Series(sizes))["t20.llama31_8b.fr_d"].low), 3)
    0.726
    """
    flips = probe_cells.groupby(["model", "condition"])["n_flip"].sum()
    nominal, conditions, each = (printed[name] for name in ("b8.nominal", "a2.system_msgs", "abs.n_probes"))
    out = {}
    for name, model in PROBED.items():
        most, lost = nominal / conditions, nominal - printed[f"t20.{name}.n"]
        for part, condition in (("d", "default"), ("as", "anti_social"), ("aa", "anti_argument")):
            per_record = flips[model, condition] / each
            out[f"t20.{name}.fr_{part}"] = Range(per_record / most, per_record / (most - lost))
    return out
