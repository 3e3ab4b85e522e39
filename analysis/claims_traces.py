"""Printed numbers that follow from the later traces of four rounds and from the released Round-1 replay."""

from analysis import data, screen

ROUNDS = (1, 2, 3, 4)


def replication(four_round_ledger):
    """Onset of collapse in the four-round traces, alone and pooled with the older ones.

    Parameters
    ----------
    four_round_ledger : DataFrame
        Counts by trace file, a tied majority being undefined.

    Returns
    -------
    dict of str to float

    References
    ----------
    Sections 5.1 and E.2.1.

    Examples
    --------
    >>> int(replication(data.table("four_round_ledger"))["e21.pool_coll"])
    77
    """
    counts = four_round_ledger.select_dtypes("number")
    pool, main = counts.sum(), counts[four_round_ledger["stage"] == "four_round"].sum()
    return {
        "s5.1.postA6_r1": main["onset_1"], "s5.1.postA6_coll": main["collapse"],
        "e21.n": main["n"], "e21.pos": main["init_correct"],
        "e21.coll_pct": main["collapse"] / main["init_correct"], "e21.corr": main["correction"],
        "e21.final": main["final_correct"] / main["n"], "e21.r1_pct": main["onset_1"] / main["collapse"],
        **{f"e21.r{k}": main[f"onset_{k}"] for k in ROUNDS[1:]},
        "e21.pool_coll": pool["collapse"], "e21.pool_r4": pool["onset_4"],
        "e21.pool_unloc": pool["onset_unknown"],
    }


def replay_cohort(replay_sources, four_round_ledger):
    """The cohort of the Round-1 replay, as far as the released sources tell.

    Parameters
    ----------
    replay_sources, four_round_ledger : DataFrame
        Counts by trace file; the second says which files the four-round replication reads.

    Returns
    -------
    dict of str to float
        Debates, collapses and corrections of the primary sources that the replication reads too; the
        number of sources is that of the whole released primary cohort.

    Notes
    -----
    The paper does not list its seven sources. The two released files share seven primary ones, and these
    have the printed collapses and corrections.

    References
    ----------
    Table 2; E.7; D.4.

    Examples
    --------
    >>> found = replay_cohort(data.table("replay_sources"), data.table("four_round_ledger"))
    >>> int(found["e7.always.prevented"]), int(found["e7.sources"])
    (94, 13)
    """
    primary = replay_sources[replay_sources["primary"]]
    shared = primary[primary["trace_source"].isin(four_round_ledger["trace_source"])]
    loaded = replay_sources.set_index("trace_source")["loaded"]
    return {
        "e7.sources": len(primary), "t2.r1.n": shared["usable"].sum(),
        "e7.always.prevented": shared["collapse"].sum(), "e7.always.lost": shared["correction"].sum(),
        "d4.n": loaded["openrouter_mistral_small_4_n20"],
    }


def served_locally(model_rows, four_round_ledger):
    """Rows of the cohort whose trace files come from a local server.

    Parameters
    ----------
    model_rows, four_round_ledger : DataFrame
        The realised cohort with `trace_source`; the later trace files with their `row`.

    Returns
    -------
    dict of str to float

    References
    ----------
    A.4.

    Examples
    --------
    >>> served_locally(data.model_rows(), data.table("four_round_ledger"))
    {'a4.oss_models': 9}
    """
    later = four_round_ledger.loc[four_round_ledger["trace_source"].str.startswith("vllm"), "row"]
    local = model_rows["trace_source"].str.startswith("vllm", na=False) | model_rows["row"].isin(later)
    return {"a4.oss_models": int(local.sum())}


def rivals(model_rows, four_round_rows, social_arm):
    """Other scores against conditional collapse: one agent's probes, social probes, first answers.

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
    >>> found = rivals(data.model_rows(), data.table("four_round_rows"), data.table("social_arm"))
    >>> round(float(found["c5.disagree_rho"]), 3), found["c5.trace_fam"]
    (0.928, 3)
    """
    social = model_rows.merge(social_arm, on="row", validate="1:1")
    six = model_rows.merge(four_round_rows.rename(columns={"n": "n_traced"}), on="row", validate="1:1")
    six["one_agent"] = six["one_agent_flips"] / six["one_agent_probes"]
    six["disagreement"] = six["init_disagree"] / six["n_traced"]
    six["at_risk_disagreement"] = six["at_risk_disagree"] / six["init_correct"]
    six["r1_change"] = six["r1_majority_changed"] / six["usable"]
    single = {name: screen.row_association(six, name).iloc[0]
              for name in ("disagreement", "init_entropy", "at_risk_disagreement", "r1_change")}
    strict = screen.family_association(six, "one_agent").iloc[0]
    partial = screen.partial(six, "disagreement", level="row").iloc[0]
    return {
        "a32.strict_rho": strict["rho"], "a32.strict_G": strict["n_families"], "a32.strict_lanes": len(six),
        "c5.social_row": screen.row_association(social, "alpha_social")["rho"].item(),
        "c5.social_family": screen.family_association(social, "alpha_social")["rho"].item(),
        "c5.trace_n": len(six), "c5.trace_fam": six["family"].nunique(),
        "c5.disagree_rho": single["disagreement"]["rho"],
        "c5.disagree_p": single["disagreement"]["p_asymptotic"],
        "c5.entropy_rho": single["init_entropy"]["rho"],
        "c5.atrisk_rho": single["at_risk_disagreement"]["rho"], "c5.r1_rho": single["r1_change"]["rho"],
        "c5.trace_partial": partial["rho"], "c5.trace_partial_p": partial["p_t"],
    }
