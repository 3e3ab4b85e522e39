"""Claims about the smaller tables: by hand, what the tables must satisfy, and the released results."""

import numpy as np
import pandas as pd
import pytest

from analysis import (
    claims,
    claims_parser,
    claims_traces,
    data,
    screen,
    transfer,
)


@pytest.fixture(scope="module")
def verdicts():
    return claims.verdicts().set_index("id", drop=False)


@pytest.fixture
def reported(shared):
    return lambda name, **kwargs: pd.read_csv(shared / "upstream" / "reported" / f"{name}.csv", **kwargs)


# --- by hand ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "expected"), [
    # other benchmarks: 120 right of 198, 20 lost, 21 won
    ("d3.mistral.neg", 198 - 120), ("d3.deepseek.net", 47 - 10), ("d3.llama.net", 13 - 6),
    ("d3.gemini.init", 100 * 73 / 100), ("d3.gemini.final", 100 * (73 - 1 + 3) / 100),
    ("d3.gemini.coll_pct", 100 / 73), ("d3.gemini.gpqa_pct", 100 / 31), ("d3.gemini.tqa_pos", 42),
    ("d3.gemini.full_pct", 200 / 147), ("d3.gemini.full_corr_pct", 900 / 51), ("s4.4.mistral_missing", 4),
    # held-out rows
    ("d2.den_min", 145), ("d2.den_max", 167), ("d2.coll_max", 1), ("d2.mistral.coll_pct", 100 * 7 / 140),
    ("d2.mistral.corr_pct", 100 * 13 / 60), ("d5.coll_pct", 100 * 8 / 73), ("d5.corr_pct", 100 * 39 / 127),
    ("d5.final", 100 * (73 - 8 + 39) / 200), ("d5.g8_rho", 1 - 6 * 12 / (8 * 63)),
    # ties and parsers, summed over nine files
    ("s3.1.tie_rate", 100 * 298 / 3240), ("a33.cells_pct", 100 * 51 / 966), ("a33.tie_rows", 272),
    ("c1.ds_calls", 200 * 3 * 5),
    # four-round traces
    ("e21.coll_pct", 100 * 75 / 662), ("e21.final", 100 * 731 / 1200), ("e21.r1_pct", 100 * 40 / 75),
    ("e21.pool_coll", 77), ("t2.r1.n", 180 + 79 + 200 + 200 + 199 + 200 + 200), ("e7.sources", 13),
    ("e7.always.prevented", 0 + 1 + 0 + 34 + 36 + 11 + 12), ("a4.oss_models", 9),
    # three families, two of them without a collapse: ranks 1, 2, 3 against 1.5, 1.5, 3
    ("a32.strict_rho", 1.5 / np.sqrt(2 * 1.5)),
    ("g1.ext_rows", 14 + 11), ("g1.ext_G", 11),
    # answer modes
    ("g3.net_strict.1", 24 - 2), ("g3.net_alpha.3", 0), ("g3.gsm_pos", 289),
    ("g3.glm_final", 100 * (152 - 6 + 5) / 200), ("g4.p", 1.0),
    # pilot: 11 refusals of 50 at the top, 1 at the bottom, 11 against 1 discordant
    ("f1.q4_floor", 20), ("f1.q4_p", 13 / 2**12), ("f1.q27_p", 1 / 2**5), ("f1.q9_floor", -0.02),
    ("f1.q9_mcn", 1.0), ("f1.q27_perm", 92408 / 362880), ("f1.q9_perm", 285840 / 362880),
    # repeated probes
    ("c6.r5_none", 100 * 21 / 480), ("c6.r5_instab", 0),
    # sealed rows: squared rank differences of the nine
    ("c6.r2_base_rho", 1 - 6 * 38 / 720), ("c6.r2_drop_rho", 1 - 6 * 24 / 720),
    ("c6.r2_rank", 1 - 6 * 6 / 720),
    ("c6.r3_rho", 1 - 6 * 2 / 720), ("c7.cells", 27),
])
def test_value_by_hand(verdicts, name, expected):
    assert verdicts.loc[name, "computed"] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_exact_p_of_eleven_families(verdicts):
    added = data.table("extension_rows")
    added["c_cond"] = added["collapse"] / added["init_correct"]
    rows = pd.concat([data.model_rows(), added])
    for name, some in (("g1.ext_p", rows), ("g1.noten_p", rows[rows["family"] != "Tencent"])):
        # Doubled, because two families without a collapse share a rank.
        ranks = (2 * some.groupby("family")[["alpha_tot", "c_cond"]].mean().rank()).astype(int)
        x, y = ranks["alpha_tot"].tolist(), ranks["c_cond"].tolist()
        n, observed = len(x), sum(a * b for a, b in zip(x, y, strict=True))
        # Orders by which entries of y are taken, then by sum of products.
        orders = {0: {0: 1}}
        for a in x:
            grown = {}
            for taken, sums in orders.items():
                for at in (at for at in range(n) if not taken >> at & 1):
                    into = grown.setdefault(taken | 1 << at, {})
                    for total, count in sums.items():
                        into[total + a * y[at]] = into.get(total + a * y[at], 0) + count
            orders = grown
        (sums,) = orders.values()
        middle = n * (n + 1) ** 2
        reach = sum(count for total, count in sums.items() if abs(total - middle) >= abs(observed - middle))
        assert verdicts.loc[name, "computed"] == reach / sum(sums.values())


# --- what the tables must satisfy ---------------------------------------------------------------------------


def test_counts_fit_their_denominators():
    for name, start in (("cross_benchmark", "init_correct"), ("holdouts", "init_correct"),
                        ("response_ledgers", "init_correct"), ("four_round_ledger", "init_correct"),
                        ("extension_rows", "init_correct")):
        table = data.table(name)
        assert (table["collapse"] <= table[start]).all() and (table[start] <= table["n"]).all(), name
        if "correction" in table:
            assert (table["correction"] <= table["n"] - table[start]).all(), name


def test_final_majorities_follow_where_every_start_is_defined():
    held = data.table("holdouts").set_index("row")
    undefined = held["n"] - held["init_correct"] - held["init_wrong"]
    assert undefined[undefined > 0].to_dict() == {"gemini-3.1-pro": 17}
    kept = held["final_correct"] - (held["init_correct"] - held["collapse"] + held["correction"])
    assert kept[undefined == 0].eq(0).all() and kept["gemini-3.1-pro"] == 5
    later = data.table("four_round_ledger")
    assert (later["final_correct"] == later["init_correct"] - later["collapse"] + later["correction"]).all()


def test_onsets_add_up_to_the_collapses():
    later = data.table("four_round_ledger")
    onsets = [name for name in later if name.startswith("onset")]
    assert (later[onsets].sum(axis=1) == later["collapse"]).all()


def test_parser_cells_add_up():
    table = data.table("parser_audit")
    cells = ["kept_correct", "collapse", "correction", "remained_wrong"]
    assert (table[cells].sum(axis=1) + table["unlabelled"] == table["n"]).all()
    assert (table[[f"strict_{name}" for name in cells]].sum(axis=1) == table["strict_labelled"]).all()
    assert (table["reductions"] == 2 * table["n"]).all()
    assert (table["tied_reductions"] == table["init_tied"] + table["final_tied"]).all()
    # Two of the six later files keep a final-answer tag in about 6% of their states.
    tagged = data.table("parser_traces").set_index("lane").eval("states_tagged / n_states")
    assert tagged[tagged < 0.1].index.tolist() == ["qwen3.5-4b", "qwen3.5-9b"]


def test_changed_debates_are_cells_that_changed():
    table = data.table("parser_changed_debates")
    for start, end, cell in (("majority_0", "majority_last", "cell"),
                             ("strict_majority_0", "strict_majority_last", "strict_cell")):
        right = (table[start] == table["gold"]), (table[end] == table["gold"])
        names = {(True, True): "preserved", (True, False): "collapse",
                 (False, True): "correction", (False, False): "unrepaired"}
        assert [names[pair] for pair in zip(*right, strict=True)] == table[cell].tolist()
    assert (table["cell"] != table["strict_cell"]).all()


def test_same_rows_in_several_tables_agree():
    held = data.table("holdouts").set_index("row")
    added = data.table("extension_rows").set_index("row")
    both = held.index.intersection(added.index)
    assert len(both) == 5
    # Round 3 here, Round 4 there; one row counts a missing last answer as a collapse, so it has one more.
    more = added.loc[both, "collapse"] - held.loc[both, "collapse_3"].fillna(held["collapse"])
    assert more[more != 0].to_dict() == {"gemini-3.1-pro": 1}
    assert (added.loc[both, "init_correct"] == held.loc[both, "init_correct"]).all()
    probes = data.table("four_round_rows").set_index("row")
    alpha = data.model_rows().set_index("row").loc[probes.index, "alpha_tot"]
    assert (probes["n_flip"] / probes["n_probes"] - alpha).abs().max() < 6e-4
    files = data.table("parser_probes").set_index("file")
    for row, line in probes.iterrows():
        file = files.loc[next(name for name in files.index if name.endswith(f"_{row}.jsonl"))]
        assert (file["n_probes"], file["n_unparsed"]) == (line["n_probes"], line["n_unparsed"])


def test_strongest_probe_counts_are_those_of_the_probe_cells():
    ours = data.table("strongest_probe").query("probe_set == 'all'").set_index("row")
    cells = data.table("probe_cells").query("condition == 'default' and not social").set_index("model")
    shared = ours.index.intersection(cells.index)
    assert len(shared) == 9
    # Flips are the same; probes asked include the unreadable replies.
    assert (ours.loc[shared, "n_flip"] == cells.loc[shared, "n_flip"]).all()
    assert (ours.loc[shared, "n_probes"] >= cells.loc[shared, "n_probes"]).all()
    three = data.table("strongest_probe").query("probe_set == 'no_strongest'").set_index("row")
    assert (4 * three["n_probes"] == 3 * ours["n_probes"]).all()


# --- statistics ---------------------------------------------------------------------------------------------


def test_replay_cohort_takes_the_sources_both_files_have():
    sources = pd.DataFrame({"trace_source": ["a", "b", "c", "openrouter_mistral_small_4_n20"],
                            "primary": [True, True, False, False], "loaded": [60, 70, 5, 20],
                            "usable": [58, 70, 5, 20], "collapse": [1, 2, 4, 8], "correction": [3, 5, 7, 9]})
    found = claims_traces.replay_cohort(sources, pd.DataFrame({"trace_source": ["a", "c"]}))
    assert found == {"e7.sources": 2, "t2.r1.n": 58, "e7.always.prevented": 1, "e7.always.lost": 3,
                     "d4.n": 20}


def test_unreadable_replies_move_only_rows_that_have_them():
    rows, later = data.model_rows(), data.table("four_round_rows")
    none = claims_parser.unreadable_as_flip(rows, later.assign(n_unparsed=0))["a33.none_as_flip"]
    assert none == pytest.approx(screen.row_association(rows)["rho"].item())


# --- the released results -----------------------------------------------------------------------------------


def _close(ours, theirs, atol=1e-6):
    np.testing.assert_allclose(np.asarray(ours, float), np.asarray(theirs, float), rtol=0, atol=atol)


def test_released_four_round_rates(reported):
    ledger = data.table("four_round_ledger")
    stage = {"post_a6_200row": "four_round", "legacy_or_partial": "earlier"}
    told = reported("post_a6_r1_rates").query("scope != 'by_model'")
    assert len(told) == 3
    for line in told.itertuples():
        part = ledger if line.scope == "pooled" else ledger[ledger["stage"] == stage[line.name]]
        ours = transfer.rates(part.select_dtypes("number").sum().to_frame().T).iloc[0]
        _close(100 * ours[["init_acc", "c_cond", "correction_rate", "final_acc"]],
               [line.init_majority_accuracy_pct, line.conditional_collapse_pct,
                line.correction_pct_of_initial_wrong, line.final_accuracy_pct])


def test_released_extension(reported, verdicts):
    told = reported("extension_r3_frozen").dropna(subset=["p_method"])
    told = told[~told["p_method"].str.contains("label")].set_index(["cohort", "statistic"])
    for cohort, stem in (("all", "g1.ext"), ("drop Tencent", "g1.noten")):
        for statistic, part in (("family_marginal", ""), ("family_partial_after_init_acc", "partial")):
            rho, p = told.loc[(cohort, statistic), ["value", "p_value"]]
            names = [f"{stem}_{part or 'rho'}", f"{stem}_{part}_p" if part else f"{stem}_p"]
            _close(verdicts.loc[names[0], "computed"], rho, atol=5e-5)
            _close(verdicts.loc[names[1], "computed"], p, atol=5e-5)


def test_released_robustness(reported, verdicts):
    computed = verdicts["computed"]
    told = reported("t2_robustness").set_index("check")
    for stem, line in (("c6.r2_base", "T2_1_headline_original"), ("c6.r2_drop", "T2_1_headline_dropped")):
        _close(computed[[f"{stem}_rho", f"{stem}_p"]], told.loc[line, ["rho", "p"]])
    _close(computed[["c6.r2_drop_lo", "c6.r2_drop_hi"]],
           told.loc["T2_1_headline_dropped", ["ci_lo", "ci_hi"]])
    _close(computed["c6.r3_rho"], told.loc["T2_4_sa_norm_rank_consistency", "rho"])
    rows = reported("eiv_summary").set_index("cohort").loc["n9_sealed"]
    _close(computed[["c6.eiv9_med", "c6.eiv9_lo", "c6.eiv9_hi", "c6.eiv9_pr"]],
           rows[["median", "ci_lo", "ci_hi", "p_gt_0"]], atol=1e-12)
    _close(computed["c2.eff_n"], reported("leverage_effective_n")["value"].iloc[0])
    told = reported("parse_missing_scenarios").set_index("scenario")
    _close(computed["a33.none_as_flip"], told.loc["new_lanes_none_as_flip", "rho"])


def test_released_rivals(reported, verdicts):
    computed = verdicts["computed"]
    told = reported("predictor_bakeoff").set_index("predictor")
    _close(computed[["c5.social_row", "c5.social_family"]],
           told.loc["social_proxy_alpha_social", ["model_row_rho", "family_rho"]])
    _close(computed["c5.r1_rho"], told.loc["r1_majority_changed_rate", "model_row_rho"])
    told = reported("trace_diversity_spearman_n6").set_index("metric")["rho"]
    _close(computed[["c5.atrisk_rho", "c5.disagree_rho", "c5.entropy_rho"]],
           told[["at_risk_initial_disagreement_rate", "initial_disagreement_rate", "initial_entropy_norm"]])
    told = reported("alpha_lite_spearman").set_index(["check", "unit"])["rho"]
    _close(computed["a32.strict_rho"], told["post_a6_strict_one_agent_default", "family_mean"])
    told = reported("qwen3_32b_sensitivity").set_index("check")["rho"]
    _close(computed[["d5.row_rho", "d5.fam_rho", "d5.g8_rho"]],
           told[["model_row_n15", "family_same_qwen_g7", "family_treat_as_stress_g8"]])


def test_released_replay_totals(reported):
    told = reported("policy_replay_policies")
    told = told.query("cohort == 'eligible_all_primary' and policy == 'standard'").iloc[0]
    sources = data.table("replay_sources").query("primary")
    ours = sources[["usable", "collapse", "correction", "final_correct"]].sum()
    assert ours.iloc[:3].tolist() == told[["n", "standard_collapses", "standard_corrections"]].tolist()
    _close(ours["final_correct"] / ours["usable"], told["standard_acc"])
