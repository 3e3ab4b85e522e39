"""Printed numbers that follow from the released debates.

Each function computes its tables once and hands their cells out to the claim ids that print them, in
natural units (see `analysis.recompute`).
"""

from analysis import data, ledger, localize, replay
from analysis.claims_cells import RATES, TRACED, cells


def _summary(debates):
    rows = ledger.summarize(debates).set_index("row")
    return rows.assign(collapse_rate=rows["collapse"] / rows["n"])


def transitions(debates):
    """Counts and rates of the traced rows.

    Parameters
    ----------
    debates : DataFrame
        The paper's debates, from `analysis.data.debates`.

    Returns
    -------
    dict of str to float

    References
    ----------
    Sections 1, 4.2 and 5.1; Tables 2 and 16; C.2, D.1, E.4.

    Examples
    --------
    >>> int(transitions(data.debates())["abs.collapses"])
    253
    """
    rows = _summary(debates)
    local = rows.loc[list(data.LOCAL_ROWS)]
    remote = rows.drop(index=local.index)
    fitted = rows[rows["collapse"] > 1]
    at_risk = debates[debates["row"].isin(local.index) & debates["correct_0"]]
    gemini = ledger.utility(rows.loc[["gemini-3-flash"]])
    return {
        "abs.n_debates": rows["n"].sum(),
        "abs.collapses": rows["collapse"].sum(),
        "s1.susceptible_share": rows["c_cond"].max(),
        "s1.ccond.llama": rows.loc["llama-3.1-8b", "c_cond"],
        "s4.2.initacc.llama": rows.loc["llama-3.1-8b", "init_acc"],
        "s4.2.initacc.qwen3_4b": rows.loc["qwen3-4b", "init_acc"],
        "s4.2.ccond.qwen3_4b": rows.loc["qwen3-4b", "c_cond"],
        "c2.phi": rows.loc["phi-4-mini", "c_cond"],
        "t2.freeze.n": local["n"].sum(),
        "s5.1.oss_collapses": local["collapse"].sum(),
        "s5.1.api_collapses": remote["collapse"].sum(),
        "s6.freeze.corrections": local["correction"].sum(),
        "d1.g3f_coll": rows.loc["gemini-3-flash", "collapse_rate"],
        "d1.g3f_ratio": gemini["break_even"].item(),
        "e2.models": len(rows),
        "e4.n": local["init_correct"].sum(),
        "e4.rate": local["collapse"].sum() / local["init_correct"].sum(),
        "e4.models": len(fitted),
        "e4.questions": at_risk["question"].nunique(),
        "e4.dropped_coll": rows.drop(index=fitted.index)["collapse"].max(),
        **cells("t16", rows, TRACED, RATES),
        **_holdout(debates[debates["row"] == "gpt-5.4-mini"]),
    }


def _holdout(debates):
    """Section D.1: one row, round by round."""
    row = ledger.summarize(debates).iloc[0]
    corrected = debates[debates["cell"] == "correction"]
    return {
        "d1.n": row["n"], "d1.init": row["init_acc"], "d1.final": row["final_acc"],
        "d1.delta": row["final_acc"] - row["init_acc"],
        "d1.coll": row["collapse"], "d1.coll_pct": row["collapse"] / row["n"],
        "d1.corr": row["correction"], "d1.corr_pct": row["correction"] / row["n"],
        "d1.ratio": row["correction"] / row["collapse"],
        **{f"d1.r{k}": debates[f"changed_{k}"].sum() for k in (1, 2, 3)},
        **{f"d1.r{k}_pct": debates[f"changed_{k}"].mean() for k in (1, 2, 3)},
        **{f"d1.un{k}": (debates[f"agree_{k}"] == 1).mean() for k in (1, 2, 3)},
        "d1.coll_round": debates["onset"].dropna().item(),
        "d1.corr_r1": corrected["correct_1"].sum(),
    }


def flips(debates):
    """Debate flip rates: the share of debates in which any agent has changed its answer after Round 1.

    Parameters
    ----------
    debates : DataFrame
        The paper's debates.

    Returns
    -------
    dict of str to float

    References
    ----------
    Section 1 and Table 16, column "Debate FR".

    Examples
    --------
    >>> float(flips(data.debates())["s1.fr.llama"].round(2))
    0.32
    """
    share = replay.replay(debates, "round1_any_flip", by="row").set_index("row")
    share["any_flip"] = share["gated"] / share["n"]
    return {
        "s1.fr.llama": share.loc["llama-3.1-8b", "any_flip"],
        **cells("t16", share, TRACED, {"fr": "any_flip"}),
    }


def localisation(debates):
    """Onset, and how well three views of a debate rank collapse under the published fit.

    Parameters
    ----------
    debates : DataFrame
        The paper's debates, in source order.

    Returns
    -------
    dict of str to float

    References
    ----------
    Sections 5.1, E.1 and E.2; Table 6.

    Examples
    --------
    >>> int(localisation(data.debates())["s1.onset.r1"])
    149
    """
    onset = localize.onset_table(debates, by=None).iloc[-1]
    score = {view: localize.oof_scores(debates, view=view) for view in localize.VIEWS}
    first = localize.auc_lift(debates, score["baseline"], score["r1"])
    later = localize.auc_lift(debates, score["r1"], score["full"])
    return {
        "s1.onset.r1": onset["round_1"], "s5.1.onset.r2": onset["round_2"], "s5.1.onset.r3": onset["round_3"],
        **{f"t2.onset.r{k}_pct": onset[f"share_{k}"] for k in (1, 2, 3)},
        "e2.late_share": 10 * (1 - onset["share_1"]),
        "s1.auc.base": first.auc_a, "s1.auc.r1": first.auc_b, "t2.auc.full": later.auc_b,
        "s5.1.dr1": first.lift, "s5.1.dr1_lo": first.low, "s5.1.dr1_hi": first.high,
        "s5.1.dfull": later.lift, "s5.1.dfull_lo": later.low, "s5.1.dfull_hi": later.high,
    }
