"""Printed numbers of the robustness checks: pairs, held-out families, noise, the sealed cohort, rivals,
extension.

Each function takes tables of data/ and hands cells of `analysis.pairs`, `analysis.heldout`,
`analysis.latent`, `analysis.sealed`, `analysis.specifications`, `analysis.rivals` and `analysis.extension`
out to the claim ids that print them, in natural units. """

import pandas as pd

from analysis import data, extension, heldout, latent, rivals, screen, sealed, specifications
from analysis.claims_cells import RATES, SEALED, cells
from analysis.pairs import audit_counts


def pairs(model_rows):
    """Pairs of model rows that the screen and initial accuracy order differently.

    Parameters
    ----------
    model_rows : DataFrame
        The realised cohort, from `analysis.data.model_rows`.

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
    audit = screen.pairwise_audit(model_rows)
    counts = audit_counts(audit)
    ids = {"screen": "screen", "comparator": "init"}
    return {
        "s4.2.pairs": len(audit), "s4.2.reordered": counts.loc["all", "reordered"],
        "s4.2.follow_screen": counts.loc["screen", "reordered"],
        "s4.2.follow_initacc": counts.loc["comparator", "reordered"],
        "s4.2.tied": counts.loc["neither", "reordered"],
        "g1.sig": counts.loc["all", "p_below"], "g1.holm": counts.loc["all", "holm_below"],
        **{f"g1.sig_{part}": counts.loc[name, "p_below"] for name, part in ids.items()},
        **{f"g1.holm_{part}": counts.loc[name, "holm_below"] for name, part in ids.items()},
        "g1.fisher_motiv": audit.set_index(["row_a", "row_b"]).loc[("llama-3.1-8b", "qwen3-4b"), "p"],
    }


def held_out_families(model_rows):
    """Collapse of each family predicted from the others, plain and with the noise of the rates carried
    through.

    Parameters
    ----------
    model_rows : DataFrame
        The realised cohort.

    Returns
    -------
    dict of str to float

    References
    ----------
    Section C.4, Tables 25 and 26.

    Examples
    --------
    >>> int(held_out_families(data.model_rows())["c4.cov95"])
    6
    """
    plain = heldout.predict_families(model_rows)
    told, noisy = heldout.prediction_summary(plain).iloc[0], heldout.propagate_families(model_rows)
    return {
        "c4.rho": told["rho"], "c4.p": told["p"], "c4.mare": told["mean_rank_error"],
        "c4.cov80": told["inside_80"], "c4.cov95": told["inside_95"],
        "c4.miss80": (~plain["inside_80"]).sum(),
        "c4.eiv80": noisy["inside_80"].sum(), "c4.eiv95": noisy["inside_95"].sum(),
    }


def noise(model_rows, nine):
    """Rank association of latent flip rates and collapse rates, in the cohort and in the sealed rows.

    Parameters
    ----------
    model_rows, nine : DataFrame
        The realised cohort; `sealed.nine_rows`.

    Returns
    -------
    dict of str to float

    References
    ----------
    Sections 4.3, C.6 (R1) and C.7.

    Examples
    --------
    >>> nine = sealed.nine_rows(data.sealed_rows(), data.table("sealed_vectors"))
    >>> round(float(noise(data.model_rows(), nine)["s4.3.eiv_median"]), 4)
    0.8022
    """
    now = screen.errors_in_variables(model_rows).iloc[0]
    then = screen.errors_in_variables(nine, **latent.SEALED).iloc[0]
    return {
        "s4.3.eiv_median": now["median"], "c6.eiv14_lo": now["low"], "c6.eiv14_hi": now["high"],
        "c6.eiv14_pr": now["share_positive"], "c6.eiv9_med": then["median"], "c6.eiv9_lo": then["low"],
        "c6.eiv9_hi": then["high"], "c6.eiv9_pr": then["share_positive"],
    }


def sealed_cohort(sealed_rows, nine):
    """Rows and rank tests of the sealed cohort.

    Parameters
    ----------
    sealed_rows, nine : DataFrame
        `analysis.data.sealed_rows`; `sealed.nine_rows`.

    Returns
    -------
    dict of str to float

    References
    ----------
    Sections 4.3, A.3.5, C.6 and C.8; Tables 15, 16 and 28.

    Examples
    --------
    >>> nine = sealed.nine_rows(data.sealed_rows(), data.table("sealed_vectors"))
    >>> sealed_cohort(data.sealed_rows(), nine)["a35.n9_rows"]
    9
    """
    table = sealed_rows.set_index("row")
    tests = sealed.rank_tests(nine).set_index("predictor")
    given = screen.partial(nine, level="row", predictor="alpha_adv").iloc[0]
    return {
        **cells("t16", table, SEALED, RATES),
        "s1.ccond.sonnet": table.loc[SEALED["sonnet45"], "c_cond"],
        "a35.n9_rows": len(nine), "c8.families": tests.loc["alpha_tot", "n_families"],
        "s4.3.sealed_rho": tests.loc["alpha_tot", "rho"], "c8.perm_p": tests.loc["alpha_tot", "p_two_sided"],
        "c8.adv_rho": tests.loc["alpha_adv", "rho"], "c8.adv_p": tests.loc["alpha_adv", "p_two_sided"],
        "s4.3.fr_foil_rho": tests.loc["debate_flip_rate", "rho"],
        "s4.3.fr_foil_p": tests.loc["debate_flip_rate", "p_asymptotic"],
        "c6.adv_partial": given["rho"], "c6.adv_partial_p": given["p_t"],
        "c8.adv_init": screen.row_association(nine, "alpha_adv", "init_acc")["rho"].item(),
        "c8.r2_tot": sealed.left_out_r2(nine["alpha_tot"], nine["c_cond"]),
        "c8.r2_adv": sealed.left_out_r2(nine["alpha_adv"], nine["c_cond"]),
        "c8.gee_z": sealed.clustered_logit(nine)["z"].abs().max(),
    }


def curve(rows):
    """Number, signs and median of the specifications.

    Parameters
    ----------
    rows : DataFrame
        From `specifications.predictors`.

    Returns
    -------
    dict of str to float

    References
    ----------
    C.7.

    Examples
    --------
    >>> names = (*specifications.PREDICTORS, *specifications.OUTCOMES)
    >>> rows = pd.DataFrame({name: [0.1, 0.2, 0.3, 0.5] for name in names})
    >>> rows = rows.assign(init_acc=[0.5, 0.6, 0.4, 0.7], sd_alpha=0.01)
    >>> rows = rows.assign(collapse=[1, 2, 3, 5], init_correct=10)
    >>> curve(rows)["c7.cells"]
    27
    """
    rho = specifications.specification_curve(rows)["rho"]
    return {"c7.cells": len(rho), "c7.positive": (rho > 0).sum(), "c7.median": rho.median()}


def other_scores(model_rows, four_round_rows, social_arm):
    """Cheaper and social probes, and first answers, against conditional collapse.

    Parameters
    ----------
    model_rows, four_round_rows, social_arm : DataFrame
        The realised cohort; measures of the six later rows; social-arm flip rates of all rows.

    Returns
    -------
    dict of str to float

    References
    ----------
    A.3.2 and C.5; Tables 4 and 27.

    Examples
    --------
    >>> found = other_scores(data.model_rows(), data.table("four_round_rows"), data.table("social_arm"))
    >>> round(float(found["c5.disagree_rho"]), 3), found["c5.trace_fam"]
    (0.928, 3)
    """
    six = rivals.traced_rows(model_rows, four_round_rows)
    single = rivals.diversity(six).set_index("predictor")
    lighter = rivals.lighter_probes(model_rows, six).iloc[-1]
    social = screen.comparators(rivals.with_social(model_rows, social_arm), ["alpha_social"]).iloc[0]
    return {
        "a32.strict_rho": lighter["family_rho"], "a32.strict_G": lighter["family_n"],
        "a32.strict_lanes": lighter["row_n"],
        "c5.social_row": social["row_rho"], "c5.social_family": social["family_rho"],
        "c5.trace_n": len(six), "c5.trace_fam": six["family"].nunique(),
        "c5.disagree_rho": single.loc["disagreement", "row_rho"],
        "c5.disagree_p": single.loc["disagreement", "row_p_asymptotic"],
        "c5.entropy_rho": single.loc["init_entropy", "row_rho"],
        "c5.atrisk_rho": single.loc["at_risk_disagreement", "row_rho"],
        "c5.r1_rho": single.loc["r1_change", "row_rho"],
        "c5.trace_partial": single.loc["disagreement", "alpha_given"],
        "c5.trace_partial_p": single.loc["disagreement", "alpha_given_p"],
    }


def eleven_families(model_rows, extension_rows):
    """The rank tests over eleven families, and without one.

    Parameters
    ----------
    model_rows, extension_rows : DataFrame
        The realised cohort; the rows run later.

    Returns
    -------
    dict of str to float

    References
    ----------
    G.1.

    Examples
    --------
    >>> int(eleven_families(data.model_rows(), data.table("extension_rows"))["g1.ext_G"])
    11
    """
    rows = extension.extended(model_rows, extension_rows)
    out = {"g1.ext_rows": len(rows), "g1.ext_G": rows["family"].nunique(),
           "g1.g31pro_missing": rows.set_index("row").loc["gemini-3.1-pro", "unparsed_rate"]}
    for stem, some in (("g1.ext", rows), ("g1.noten", rows[rows["family"] != "Tencent"])):
        family, given = screen.family_association(some).iloc[0], screen.partial(some).iloc[0]
        out |= {f"{stem}_rho": family["rho"], f"{stem}_p": family["p_two_sided"],
                f"{stem}_partial": given["rho"], f"{stem}_partial_p": given["p_t"]}
    return out
