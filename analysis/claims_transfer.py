"""Printed numbers about other benchmarks, held-out rows, added rows and answer modes.

As `analysis.claims_screen`: each function takes tables of data/ and hands cells of `analysis.transfer` out to
the claim ids that print them, in natural units.
"""

from analysis import data, reasoning, transfer, transfer_choices
from analysis.claims_cells import cells
from analysis.errors import DataError

# Claim id part -> row of the runs over the full benchmark.
FULL = {"mistral": "mistral-small-4", "gemini": "gemini-3.1-flash-lite",
        "deepseek": "deepseek-v4-flash", "llama": "llama-3.3-70b-instruct"}
PANELS = {"1": "mistral+llama3.3+deepseek", "2": "mistral+deepseek+llama4-scout",
          "3": "mistral+deepseek+qwen3-4b"}
EFFORTS = ("low", "medium", "high")
# What the paper prints in words of the follow-up, whose tables and debates are not public: which exhibit they
# belong to.
FOLLOW_UP = {
    "Table 43": [
        "s6.settings", "s6.binary_min", "s6.binary_max", "s6.expected_min", "s6.expected_max",
        "g5.pool", "g5.peer_runs", "g5.private_runs", "g5.coll_neg", "g5.coll_ci", "g5.tied_up",
        "g5.corr_down", "g5.exp_ci", "g5.ctrl_models", "g5.ctrl_runs", "g5.ctrl_q3", "g5.ctrl_granite",
        "g5.ctrl_holm",
    ],
    "Table 44": [
        "s6.reason_rows", "s6.reason_negative", "s6.reason_ci_neg", "g5.pool_reason", "g5.pool_math",
        "g5.oss_low", "g5.oss_med", "g5.qc",
    ],
}


def benchmarks(cross_benchmark, runs):
    """Transitions on GPQA and TruthfulQA.

    Parameters
    ----------
    cross_benchmark, runs : DataFrame
        Counts by run and benchmark; what each run is.

    Returns
    -------
    dict of str to float

    References
    ----------
    Table 2; Section 4.4; D.3, Table 30.

    Examples
    --------
    >>> found = benchmarks(data.table("cross_benchmark"), data.table("cross_benchmark_runs"))
    >>> int(found["d3.deepseek.net"])
    37
    """
    counts = transfer.benchmarks(cross_benchmark, runs)
    full = counts[counts["full"]].set_index("row")
    # The other Gemini 3.1 Flash-Lite run asked two benchmarks.
    small = counts[(counts["row"] == FULL["gemini"]) & ~counts["full"]].set_index("benchmark")
    both = transfer.rates(small[["n", "init_correct", "collapse", "correction"]].sum().to_frame().T).iloc[0]
    only = {name: full.loc[model] for name, model in FULL.items()}
    gemini, mistral, deepseek = only["gemini"], only["mistral"], only["deepseek"]
    return {
        **cells("t2.gpqa", full, {name: FULL[name] for name in ("mistral", "deepseek")},
                {"collapse": "collapse", "correct": "correction"}),
        "t2.gpqa.n": _one(full["n"], "n"), "s4.4.mistral_missing": mistral["init_missing"],
        "s4.4.mistral_net": mistral["net"],
        "g3.mistral.neg_valid": mistral["init_wrong"] - mistral["init_missing"],
        "d3.gemini.n_each": _one(small["n"], "n"), "d3.gemini.n": both["n"],
        "d3.gemini.init": both["init_acc"], "d3.gemini.final": both["final_acc"],
        "d3.gemini.coll": both["collapse"], "d3.gemini.coll_pct": both["c_cond"],
        "d3.gemini.n_pos": both["init_correct"], "d3.gemini.corr": both["correction"],
        "d3.gemini.gpqa_pos": small.loc["gpqa", "init_correct"],
        "d3.gemini.gpqa_pct": small.loc["gpqa", "c_cond"],
        **{f"d3.gemini.tqa_{part}": small.loc["truthfulqa", column] for part, column in (
            ("coll", "collapse"), ("pos", "init_correct"), ("corr", "correction"))},
        **{f"d3.gemini.full_{part}": gemini[column] for part, column in (
            ("coll", "collapse"), ("pos", "init_correct"), ("pct", "c_cond"), ("corr", "correction"),
            ("neg", "init_wrong"), ("corr_pct", "correction_rate"))},
        "d3.mistral.pos": mistral["init_correct"], "d3.mistral.neg": mistral["init_wrong"],
        "d3.llama.net": only["llama"]["net"], "d3.deepseek.net": deepseek["net"],
        "d3.deepseek.alpha_valid": deepseek["n_alpha"], "d3.deepseek.init_missing": deepseek["init_missing"],
        "d3.deepseek.final_missing": deepseek["final_missing"],
    }


def _one(column, field):
    """The value that all lines share."""
    values = column.unique()
    if len(values) != 1:
        raise DataError(f"field {field!r}: {', '.join(map(str, values))}; expected one value in all lines")
    return values[0]


def holdouts(table):
    """Rows held out of the cohort, matched or run later, at their last round.

    Parameters
    ----------
    table : DataFrame
        One line a row, from data/holdouts.csv.

    Returns
    -------
    dict of str to float

    References
    ----------
    D.2, Table 29; D.5, Table 31.

    Examples
    --------
    >>> holdouts(data.table("holdouts"))["d2.lanes"]
    5
    """
    rows = transfer.holdouts(table).query("endpoint_round != 3").set_index("row")
    matched, qwen = rows[rows["panel"] == "matched"], rows.loc[transfer.HELD_OUT]
    mistral = matched.loc["mistral-small-4"]
    accurate = matched[matched["family"].isin(["Google", "xAI"])]
    parts = {"coll": "collapse", "corr": "correction", "coll_pct": "c_cond", "corr_pct": "correction_rate"}
    return {
        "d2.lanes": len(matched), "d2.google": (matched["family"] == "Google").sum(),
        "d2.coll_min": accurate["collapse"].min(), "d2.coll_max": accurate["collapse"].max(),
        "d2.den_min": accurate["init_correct"].min(), "d2.den_max": accurate["init_correct"].max(),
        "d2.mistral.alpha": mistral["alpha_tot"],
        **{f"d2.mistral.{part}": mistral[column] for part, column in (parts | {
            "coll_den": "init_correct", "corr_den": "init_wrong"}).items()},
        "d2.g31pro_none": matched.loc["gemini-3.1-pro", "debate_unparsed_rate"],
        "d5.alpha": qwen["alpha_tot"], "d5.alpha_rows": qwen["alpha_records"],
        "d5.init": qwen["init_acc"], "d5.final": qwen["final_acc"],
        **{f"d5.{part}": qwen[column] for part, column in (parts | {
            "pos": "init_correct", "neg": "init_wrong"}).items()},
    }


def with_held_out_row(model_rows, table):
    """The rank tests with Qwen3-32B among the rows.

    Parameters
    ----------
    model_rows, table : DataFrame
        The realised cohort; data/holdouts.csv.

    Returns
    -------
    dict of str to float

    References
    ----------
    D.5.

    Examples
    --------
    >>> round(float(with_held_out_row(data.model_rows(), data.table("holdouts"))["d5.g8_rho"]), 3)
    0.857
    """
    tests = transfer.with_held_out(model_rows, table).set_index("rows")
    same, own = tests.loc["in its family"], tests.loc["as its own family"]
    return {"d5.row_rho": same["row_rho"], "d5.fam_rho": same["rho"], "d5.g8_rho": own["rho"]}


def local_rows(model_rows, four_round_ledger):
    """How many rows of the cohort were served locally.

    Parameters
    ----------
    model_rows, four_round_ledger : DataFrame
        Tables of data/.

    Returns
    -------
    dict of str to float

    References
    ----------
    A.4.

    Examples
    --------
    >>> local_rows(data.model_rows(), data.table("four_round_ledger"))
    {'a4.oss_models': 9}
    """
    return {"a4.oss_models": len(transfer.served_locally(model_rows, four_round_ledger))}


def responses(response_ledgers, paired_arms):
    """Mixed panels, free numbers, and answer modes compared on shared questions.

    Parameters
    ----------
    response_ledgers, paired_arms : DataFrame
        Ledgers of the rows run after review; discordant counts of pairs of them.

    Returns
    -------
    dict of str to float

    References
    ----------
    G.3, G.4; Table 42.

    Examples
    --------
    >>> int(responses(data.table("response_ledgers"), data.table("paired_arms"))["g3.net_strict.1"])
    22
    """
    ledgers = transfer.rates(response_ledgers)
    at_three = ledgers[ledgers["endpoint_round"] == 3].drop_duplicates("row").set_index("row")
    mixed = transfer_choices.mixed_panels(response_ledgers).set_index("row")
    gsm = ledgers[ledgers["group"] == "gsm8k"]
    glm, unread = at_three.loc["glm-4.6-reasoning-disabled"], at_three["unparsed_rate"]
    arms = ledgers[ledgers["group"] == "thinking_rerun"].set_index("row")["unclosed_rate"]
    tests = reasoning.paired(paired_arms).set_index(["analysis", "arm_a"])
    pair = tests.loc[("peer_vs_self_paired", "q8b_thinkOFF_peer")]
    return {
        "g3.panels": len(mixed), "g3.q": _one(mixed["n"], "n"),
        "g3.tie_min": mixed["init_tied"].min(), "g3.tie_max": mixed["init_tied"].max(),
        **{f"g3.net_alpha.{k}": mixed.loc[panel, "net_alphabetic"] for k, panel in PANELS.items()},
        **{f"g3.net_strict.{k}": mixed.loc[panel, "net_undecided"] for k, panel in PANELS.items()},
        "g3.none_min": unread[mixed.index].min(), "g3.none_max": unread[mixed.index].max(),
        "g3.gsm_coll_min": gsm["collapse"].min(), "g3.gsm_coll_max": gsm["collapse"].max(),
        "g3.gsm_pos": gsm["init_correct"].median(), "g3.gsm_none": gsm["unparsed_rate"].max(),
        "g3.glm_init": glm["init_acc"], "g3.glm_final": glm["final_acc"], "g3.glm_coll": glm["collapse"],
        "g3.glm_pos": glm["init_correct"], "g3.glm_corr": glm["correction"], "g3.glm_neg": glm["init_wrong"],
        "g4.n": pair["n_shared"], "g4.matched": pair["n_compared"],
        "g4.peer_only": pair["only_a"], "g4.self_only": pair["only_b"], "g4.p": pair["p"],
        "g4.unclosed_q8_peer": arms["q8b_thinkON_peer"], "g4.unclosed_q8_self": arms["q8b_thinkON_self"],
        "g4.unclosed_q32": arms["q32b_thinkON_peer"],
        **{f"g4.none_{level}": unread[f"gpt-5.4-mini effort {level}"] for level in EFFORTS},
    }
