"""Printed numbers about other benchmarks, held-out rows, added rows and answer modes.

As `analysis.claims_screen`: each function takes tables of data/ and hands their cells out to the claim ids
that print them, in natural units.
"""

import pandas as pd

from analysis import data, screen, stats
from analysis.claims_cells import cells
from analysis.errors import DataError

# Claim id part -> model of cross_benchmark_runs, in the runs over the full benchmark.
FULL = {"mistral": "mistral-small-4", "gemini": "models/gemini-3.1-flash-lite-preview",
        "deepseek": "deepseek-v4-flash", "llama": "llama-3.3-70b-instruct"}
PANELS = {"1": "mistral+llama3.3+deepseek", "2": "mistral+deepseek+llama4-scout",
          "3": "mistral+deepseek+qwen3-4b"}
EFFORTS = ("low", "medium", "high")


def rates(table):
    """Rates and nets that follow from the counts of a ledger.

    Parameters
    ----------
    table : DataFrame
        Columns `n, init_correct, collapse, correction`; `init_wrong` and `final_correct` are made where
        absent (all other debates; what the transitions leave right).

    Returns
    -------
    DataFrame
        The table with `init_wrong, final_correct, net` (counts) and `init_acc, final_acc, c_cond,
        correction_rate` (fractions).

    Examples
    --------
    >>> counts = pd.DataFrame({"n": [10], "init_correct": [6], "collapse": [1], "correction": [2]})
    >>> rates(counts)[["init_wrong", "final_correct", "net"]].values.tolist()
    [[4, 7, 1]]
    """
    out = table.copy()
    out["net"] = out["correction"] - out["collapse"]
    if "init_wrong" not in out:
        out["init_wrong"] = out["n"] - out["init_correct"]
    if "final_correct" not in out:
        out["final_correct"] = out["init_correct"] + out["net"]
    out["init_acc"], out["final_acc"] = out["init_correct"] / out["n"], out["final_correct"] / out["n"]
    return out.assign(c_cond=out["collapse"] / out["init_correct"],
                      correction_rate=out["correction"] / out["init_wrong"])


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
    ran = runs.set_index("run")
    counts = cross_benchmark.assign(model=cross_benchmark["run"].map(ran["model"]),
                                    full=cross_benchmark["run"].map(ran["in_paper_table"]))
    full = rates(counts[counts["full"]]).set_index("model")
    # The other Gemini 3.1 Flash-Lite run asked two benchmarks.
    small = rates(counts[(counts["model"] == FULL["gemini"]) & ~counts["full"]]).set_index("benchmark")
    both = rates(small[["n", "init_correct", "collapse", "correction"]].sum().to_frame().T).iloc[0]
    only = {name: full.loc[model] for name, model in FULL.items()}
    gemini, mistral, deepseek = only["gemini"], only["mistral"], only["deepseek"]
    return {
        **cells("t2.gpqa", full, {name: FULL[name] for name in ("mistral", "deepseek")},
                {"collapse": "collapse", "correct": "correction"}),
        "t2.gpqa.n": _one(full["n"], "n"), "s4.4.mistral_missing": mistral["init_missing"],
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
    """Rows held out of the cohort, matched or run later.

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
    rows = rates(table).set_index("row")
    matched, qwen = rows[rows["panel"] == "matched"], rows.loc["qwen3-32b"]
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
    added = rates(table).query("row == 'qwen3-32b'")[["row", "family", "alpha_tot", "c_cond"]]
    same = screen.with_added(model_rows, added).set_index("rows").loc["qwen3-32b"]
    own = screen.with_added(model_rows, added.assign(family=added["row"])).set_index("rows").loc["qwen3-32b"]
    return {"d5.row_rho": same["row_rho"], "d5.fam_rho": same["rho"], "d5.g8_rho": own["rho"]}


def extension(model_rows, extension_rows):
    """The rank tests over eleven families, and without one.

    Parameters
    ----------
    model_rows, extension_rows : DataFrame
        The realised cohort; the rows added to it.

    Returns
    -------
    dict of str to float

    References
    ----------
    G.1.

    Examples
    --------
    >>> extension(data.model_rows(), data.table("extension_rows"))["g1.ext_G"]
    11
    """
    added = extension_rows.assign(init_acc=extension_rows["init_correct"] / extension_rows["n"],
                                  c_cond=extension_rows["collapse"] / extension_rows["init_correct"])
    rows = pd.concat([model_rows, added], ignore_index=True)
    out = {"g1.ext_rows": len(rows), "g1.ext_G": rows["family"].nunique(),
           "g1.g31pro_missing": added.set_index("row").loc["gemini-3.1-pro", "unparsed_rate"]}
    for stem, some in (("g1.ext", rows), ("g1.noten", rows[rows["family"] != "Tencent"])):
        family, partial = screen.family_association(some).iloc[0], screen.partial(some).iloc[0]
        out |= {f"{stem}_rho": family["rho"], f"{stem}_p": family["p_two_sided"],
                f"{stem}_partial": partial["rho"], f"{stem}_partial_p": partial["p_t"]}
    return out


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
    ledgers = rates(response_ledgers)
    at_three = ledgers[ledgers["endpoint_round"] == 3]
    mixed = at_three[at_three["group"] == "heterogeneous_panels"]
    net = mixed.set_index(["tie", "row"])["net"]
    gsm = ledgers[ledgers["group"] == "gsm8k"]
    glm = at_three.set_index("row").loc["glm-4.6-reasoning-disabled"]
    effort = at_three.set_index("row")["unparsed_rate"]
    arms = ledgers[ledgers["group"] == "thinking_rerun"].set_index("row")["unclosed_rate"]
    pair = paired_arms.query("analysis == 'peer_vs_self_paired' and arm_a == 'q8b_thinkOFF_peer'").iloc[0]
    return {
        "g3.panels": mixed["row"].nunique(), "g3.q": _one(mixed["n"], "n"),
        "g3.tie_min": mixed["init_tied"].min(), "g3.tie_max": mixed["init_tied"].max(),
        **{f"g3.net_alpha.{k}": net["alphabetic", panel] for k, panel in PANELS.items()},
        **{f"g3.net_strict.{k}": net["undecided", panel] for k, panel in PANELS.items()},
        "g3.none_min": mixed["unparsed_rate"].min(), "g3.none_max": mixed["unparsed_rate"].max(),
        "g3.gsm_coll_min": gsm["collapse"].min(), "g3.gsm_coll_max": gsm["collapse"].max(),
        "g3.gsm_pos": gsm["init_correct"].median(), "g3.gsm_none": gsm["unparsed_rate"].max(),
        "g3.glm_init": glm["init_acc"], "g3.glm_final": glm["final_acc"], "g3.glm_coll": glm["collapse"],
        "g3.glm_pos": glm["init_correct"], "g3.glm_corr": glm["correction"], "g3.glm_neg": glm["init_wrong"],
        "g4.n": pair["n_shared"], "g4.matched": pair["n_compared"],
        "g4.peer_only": pair["only_a"], "g4.self_only": pair["only_b"],
        "g4.p": stats.mcnemar(pair["only_a"], pair["only_b"]).p_two_sided,
        "g4.unclosed_q8_peer": arms["q8b_thinkON_peer"], "g4.unclosed_q8_self": arms["q8b_thinkON_self"],
        "g4.unclosed_q32": arms["q32b_thinkON_peer"],
        **{f"g4.none_{level}": effort[f"gpt-5.4-mini effort {level}"] for level in EFFORTS},
    }
