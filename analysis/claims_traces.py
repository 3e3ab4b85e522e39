"""Printed numbers that follow from the later traces of four rounds and from the released Round-1 replay."""

from analysis import data

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
