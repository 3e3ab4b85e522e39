"""Ledgers outside the cohort: by hand, by other means, and against the released results."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as sps

from analysis import (
    claims,
    claims_transfer,
    data,
    drawing,
    figures_transfer,
    reasoning,
    rows,
    stats,
    tables_transfer,
    transfer,
    transfer_choices,
)
from analysis.errors import DataError

SUBGROUP = ("holdouts", "response_ledgers", "extension_rows")
OF = {"collapse": ("init_correct", "c_cond"), "correction": ("init_wrong", "correction_rate")}
TABLES = ("cross_benchmark", "cross_benchmark_runs", "holdouts", "response_ledgers")


@pytest.fixture
def reported(shared):
    return lambda name, **kwargs: pd.read_csv(shared / "upstream" / "reported" / f"{name}.csv", **kwargs)


@pytest.fixture(scope="module")
def benchmarks():
    return transfer.benchmarks(data.table("cross_benchmark"), data.table("cross_benchmark_runs"))


def close(ours, theirs, atol=1e-6):
    np.testing.assert_allclose(np.asarray(ours, float), np.asarray(theirs, float), rtol=0, atol=atol)


# --- by hand ------------------------------------------------------------------------------------------------


def test_rates_with_starts_left_out():
    counts = {"n": 20, "init_correct": 10, "init_wrong": 6, "collapse": 2, "correction": 3}
    line = transfer.rates(pd.DataFrame([counts | {"final_correct": 13}])).iloc[0]
    assert (line["init_undefined"], line["net"], line["c_cond"], line["correction_rate"]) == (4, 1, 0.2, 0.5)
    assert (line["init_acc"], line["final_acc"]) == (0.5, 0.65)
    low, high = sps.binomtest(2, 10).proportion_ci(method="wilson")
    close(line[["c_cond_low", "c_cond_high"]], [low, high], 1e-12)


def test_the_three_intervals_differ_only_in_what_they_are():
    z = 1.96
    centre = (3 / 11 + z**2 / 22) / (1 + z**2 / 11)
    half = z * np.sqrt(3 / 11 * 8 / 11 / 11 + z**2 / (4 * 121)) / (1 + z**2 / 11)
    close(transfer.bounds(3, 11, "wilson_1.96"), [centre - half, centre + half], 1e-12)
    close(transfer.bounds(3, 11), sps.binomtest(3, 11).proportion_ci(method="wilson"), 1e-12)
    close(transfer.bounds(3, 11, "jeffreys"), sps.beta.ppf([0.025, 0.975], 3.5, 8.5), 1e-12)
    with pytest.raises(ValueError, match="interval='wald': expected one of wilson, jeffreys, wilson_1.96"):
        transfer.bounds(3, 11, "wald")


def test_starts_counted_as_wrong_bound_what_they_hide():
    told = transfer.rates(pd.DataFrame({
        "row": ["a", "b", "c"],
        "group": "g",
        "n": [10, 10, 10],
        "init_correct": [4, 4, 4],
        "collapse": [1, 1, 1],
        "correction": [3, 5, 3], "init_missing": [2, 4, 0],
    }))
    found = transfer_choices.codings(told)
    # b: six wrong starts, four of them undefined: of five corrections at least three began there.
    assert found["row"].tolist() == ["a", "b"]
    assert found[["ended_right_low", "ended_right_high"]].values.tolist() == [[0, 2], [3, 4]]
    assert found["net_wrong"].tolist() == [2, 4]
    assert found[["net_out_low", "net_out_high"]].values.tolist() == [[0, 2], [0, 1]]


def test_starts_left_out_show_in_the_final_accuracy():
    told = transfer.rates(pd.DataFrame({
        "row": ["a"],
        "group": ["g"],
        "n": [20],
        "init_correct": [10],
        "init_wrong": [4],
        "collapse": [1],
        "correction": [2],
        "final_correct": [14],
    }))
    found = transfer_choices.codings(told).iloc[0]
    # Nine right starts kept and two corrections leave three right ends, more if a right start ended so.
    assert (found["missing"], found["ended_right_low"], found["ended_right_high"]) == (6, 3, 6)
    assert (found["net_wrong"], found["net_out_low"], found["net_out_high"]) == (4, 1, 1)


def test_three_accounts_of_one_row_must_agree_before_they_are_joined():
    frames = [data.table(name) for name in ("holdouts", "replay_sources", "extension_rows")]
    frames[2].loc[frames[2]["row"] == "gemini-3.1-pro", "init_correct"] = 146
    with pytest.raises(DataError, match="field 'init_correct': 145 and 146"):
        transfer_choices.undefined_ends(*frames)


def test_accounts_of_the_undefined_row_by_hand():
    names = ("holdouts", "replay_sources", "extension_rows")
    found = transfer_choices.undefined_ends(*map(data.table, names))
    kept = 151 - 7  # right ends among debates with both majorities, less the corrections
    assert found == {
        "undefined": 199 - 145 - 37, "right_lost": 145 - kept, "ended_right": 157 - 7 - kept,
        "told": 7 - 0, "change": 157 - 145,
    }
    # All right ends are accounted for.
    assert kept + 7 + found["ended_right"] == 157


def test_mixed_panels_gain_because_fewer_starts_are_right():
    found = transfer_choices.mixed_panels(data.table("response_ledgers"))
    for rule in ("alphabetic", "undecided"):
        assert (found[f"final_correct_{rule}"] - found[f"init_correct_{rule}"] == found[f"net_{rule}"]).all()
    assert (found["init_correct_alphabetic"] > found["init_correct_undecided"]).all()
    assert (found["final_correct_alphabetic"] >= found["final_correct_undecided"]).all()


def test_endpoints_keep_the_starts():
    found = transfer_choices.endpoints(data.table("holdouts"), data.table("response_ledgers"))
    assert len(found) == 13
    assert (found["init_correct_3"] == found["init_correct_4"]).all()
    assert found.loc[found["n_3"] != found["n_4"], "row"].tolist() == ["mistral+deepseek+qwen3-4b"]


def test_each_ledger_stands_once():
    every = transfer.everything(*map(data.table, TABLES))
    assert not every.duplicated(["group", "row", "n"]).any()
    assert every["group"].map(transfer.ORDER.index).is_monotonic_increasing
    assert (every["n"] > 1).all() and len(every) == 11 + 6 + 9 + 3


def test_rounds_by_hand():
    seen = pd.DataFrame({
        "row": "m",
        "endpoint": 2,
        "cell": ["collapse", "correction", "correction", "preserved"],
        "onset": pd.array([2, None, None, None], "Int64"),
        "correct_1": [True, True, False, True],
        "correct_2": [False, True, True, True],
        "changed_1": [False, True, False, False],
        "changed_2": [True, False, True, False], "agree_1": [1, 1, 0.5, 1], "agree_2": [1, 1, 1, 1],
    })
    found = transfer.rounds(seen)
    counts = found[["changed", "unanimous", "collapse", "correction"]].values.tolist()
    assert counts == [[1, 3, 0, 1], [2, 4, 1, 1]]
    assert found[["collapses", "corrections"]].values.tolist() == [[1, 2]] * 2


@pytest.mark.parametrize(("tie", "missing"), [
    ("alphabetic", "initially_wrong"), ("undecided", "undecided"), ("expected", "drop"),
])
def test_rounds_and_changes_take_added_rows(tie, missing):
    added = rows.debates(["smollm2-135m"], tie=tie, missing=missing)
    found = transfer.rounds(added)
    assert found["round"].tolist() == [1, 2, 3] and found["collapse"].sum() == found["collapses"].iat[0]
    outside = rows.summary(["smollm2-135m"], tie=tie, missing=missing)
    both = rows.beside(transfer.everything(*map(data.table, TABLES)), outside)
    last = transfer.net_change(both).iloc[-1]
    assert last["group"] == "added" and last["change_low"] < last["change"] < last["change_high"]
    assert tables_transfer.everything(transfer.net_change(both)).iloc[-1]["Last round"] == "3"


def test_rounds_of_nothing():
    assert transfer.rounds(data.debates().iloc[:0]).empty


def test_rows_that_must_share_a_size_are_refused_when_they_do_not():
    runs, counts = data.table("cross_benchmark_runs"), data.table("cross_benchmark")
    counts.loc[0, "n"] = 197
    with pytest.raises(DataError, match="'n': 197, 198; expected one value"):
        claims_transfer.benchmarks(counts, runs)


# --- interval of a change -----------------------------------------------------------------------------------


def test_interval_of_a_change_by_hand():
    """Right at first 3 of 4, at last 2 of 4; one kept, two lost, one won, none left wrong."""
    _, low, high = transfer.net_interval(2, 1, 3, 1)
    start, end = 0.75, 0.5
    (l1, u1), (l2, u2) = (sps.binomtest(k, 4).proportion_ci(method="wilson") for k in (3, 2))
    phi = (1 * 0 - 2 * 1) / np.sqrt(3 * 1 * 2 * 2)
    below = np.sqrt((end - l2) ** 2 - 2 * phi * (end - l2) * (u1 - start) + (u1 - start) ** 2)
    above = np.sqrt((u2 - end) ** 2 - 2 * phi * (u2 - end) * (start - l1) + (start - l1) ** 2)
    close([low, high], [-0.25 - below, -0.25 + above], 1e-12)


@pytest.mark.parametrize("cells", [(0.4, 0.05, 0.1, 0.45), (0.5, 0.15, 0.16, 0.19), (0.75, 0.02, 0.03, 0.2)])
def test_interval_of_a_change_covers(cells):
    kept, lost, won, left = np.random.default_rng(1).multinomial(200, cells, size=20_000).T
    _, low, high = transfer.net_interval(lost, won, kept + lost, won + left)
    truth = cells[2] - cells[1]
    assert 0.94 < ((low <= truth) & (truth <= high)).mean() < 0.98


@given(st.lists(st.integers(0, 60), min_size=4, max_size=4).filter(sum))
def test_interval_of_a_change_turns_with_the_sign(cells):
    kept, lost, won, left = cells
    change, low, high = transfer.net_interval(lost, won, kept + lost, won + left)
    again, other_low, other_high = transfer.net_interval(won, lost, kept + won, lost + left)
    close([change, low, high], [-again, -other_high, -other_low], 1e-9)
    assert -1 - 1e-9 <= low <= change <= high <= 1 + 1e-9


# --- counts behind rates ------------------------------------------------------------------------------------


@given(st.integers(1, 3000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_a_rounded_rate_gives_its_count_back(pair):
    n, k = pair
    assert k in transfer.whole_counts(round(k / n, 4), n)


def test_every_released_share_of_unread_answers_is_some_count():
    found = reasoning.unread_answers(data.table("response_ledgers"))
    assert found["unread"].notna().all()
    close(found["unread"].astype(float) / found["answers"], found["unparsed_rate"], 5.001e-5)


# --- the released results -----------------------------------------------------------------------------------


def test_released_benchmark_intervals(reported, benchmarks):
    one = benchmarks.groupby("run").filter(lambda part: len(part) == 1).assign(benchmark="all")
    several = benchmarks[~benchmarks["run"].isin(one["run"])]
    counts = ["n", "init_correct", "collapse", "correction"]
    sums = transfer.rates(several.groupby("run", as_index=False)[counts].sum().assign(benchmark="all"))
    told = reported("crossbench_rates_ci")
    assert len(told) == 30
    for interval in ("wilson", "jeffreys"):
        every = pd.concat([one, several, sums])[["run", "benchmark", *counts]]
        table = transfer.rates(every, interval=interval).set_index(["run", "benchmark"])
        for line in told.itertuples():
            ours = table.loc[(line.run, line.benchmark)]
            k, (n, rate) = line.transition, OF[line.transition]
            assert (ours[k], ours[n]) == (line.k, line.n)
            theirs = [line.rate, getattr(line, f"{interval}95_low"), getattr(line, f"{interval}95_high")]
            close(ours[[rate, f"{rate}_low", f"{rate}_high"]], theirs, 1e-12)


def test_released_stored_summaries(reported, benchmarks):
    told = reported("crossbench_stored_summaries").query("benchmark != 'overall'")
    table = benchmarks.set_index(["run", "benchmark"])
    names = {
        "n": "n", "initial_accuracy": "init_acc", "final_accuracy": "final_acc", "n_collapses": "collapse",
        "n_init_majority_correct": "init_correct", "n_corrections": "correction", "mean_alpha": "alpha_mean",
    }
    for _, line in told.iterrows():
        ours = table.loc[(line["source"].removesuffix(".json"), line["benchmark"])]
        close(ours[list(names.values())], line[list(names)], 1e-12)
    assert len(told) == 6


def test_released_associations(reported):
    told = reported("crossbench_spearman")
    names = {
        "alpha_vs_collapse_all_rows": ("collapse", "all"),
        "alpha_vs_collapse_initial_correct_only": ("collapse", "right_starts"),
        "alpha_vs_correction_initial_wrong_only": ("correction", "wrong_starts"),
        "alpha_vs_final_wrong_all_rows": ("final_wrong", "all"),
    }
    ours = transfer.associations(data.table("cross_benchmark_associations"))
    ours = ours.set_index(["run", "benchmark", "outcome", "starts"])
    single = data.table("cross_benchmark").groupby("run")["benchmark"].agg(["first", "size"])
    compared = 0
    for line in told.itertuples():
        benchmark = line.benchmark
        if benchmark == "all":
            if single.loc[line.run, "size"] > 1:
                continue
            benchmark = single.loc[line.run, "first"]
        found = ours.loc[(line.run, benchmark, *names[line.association])]
        close(found[["n", "rho", "p"]], [line.n, line.rho, line.p_two_sided], 1e-12)
        compared += 1
    assert compared == len(ours) == 48


def test_p_of_an_association_is_that_of_the_test():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 40))
    found = sps.spearmanr(x, y)
    ours = transfer.associations(pd.DataFrame({"rho": [found.statistic], "n": [40]}))
    close(ours["p"], [found.pvalue], 1e-12)


def test_released_costs(reported):
    told = reported("crossbench_cost_totals").set_index("backend")["cost_usd"]
    ours = transfer.costs(data.table("cross_benchmark"), data.table("cross_benchmark_runs"))
    close(ours[told.index], told, 1e-9)


def test_released_holdout_intervals(reported):
    table = transfer.holdouts(data.table("holdouts")).set_index(["row", "endpoint_round"])
    told = reported("posthoc_holdout_rates_wilson")
    assert len(told) == 20
    for line in told.itertuples():
        ours = table.loc[(line.key, int(line.endpoint[1]))]
        n, rate = OF[line.transition]
        theirs = [line.k, line.n, line.rate, line.wilson_low, line.wilson_high]
        close(ours[[line.transition, n, rate, f"{rate}_low", f"{rate}_high"]], theirs, 1e-9)


@pytest.mark.parametrize(("name", "first"), [("r3_response_rates", True), ("rebuttal_ledger_rates", False)])
def test_released_response_rates(reported, name, first):
    told = reported(name).rename(columns={
        "initial_accuracy_pct": "init_acc_pct", "final_accuracy_pct": "final_acc_pct",
        "conditional_collapse_pct": "c_cond_pct", "conditional_correction_pct": "correction_pct",
        "c_cond_wilson95_low_pct": "collapse_wilson95_low_pct",
        "c_cond_wilson95_high_pct": "collapse_wilson95_high_pct",
    })
    ours = transfer.rates(data.table("response_ledgers"), interval="wilson_1.96")
    ours = ours.iloc[:12] if first else ours.iloc[12:]
    assert len(ours) == len(told)
    pairs = {
        "init_acc_pct": "init_acc", "final_acc_pct": "final_acc", "c_cond_pct": "c_cond",
        "correction_pct": "correction_rate",
        "collapse_wilson95_low_pct": "c_cond_low", "collapse_wilson95_high_pct": "c_cond_high",
        "correction_wilson95_low_pct": "correction_rate_low",
        "correction_wilson95_high_pct": "correction_rate_high",
    }
    for theirs, name in pairs.items():
        known = told[theirs].notna().to_numpy()
        # Stored in percent with two decimals.
        close(100 * ours[name].to_numpy()[known], told[theirs].to_numpy()[known], 0.00501)
    exact = transfer_choices.rounded_bounds(ours)
    assert len(exact) == (0 if first else 2)


def test_released_tie_sensitivity(reported):
    told = reported("hetero_tie_sensitivity")
    ours = transfer_choices.mixed_panels(data.table("response_ledgers"))
    nets = told[["alphabetic_tie_rule_net", "strict_plurality_net"]]
    close(ours[["net_alphabetic", "net_undecided"]], nets, 0)
    tied = [f"{k}/{n}" for k, n in zip(ours["init_tied"], ours["n"])]
    assert tied == told["initial_no_unique_plurality"].tolist()


def test_released_reasoning_tests(reported):
    told = reported("reasoning_subgroup_tests").set_index("quantity")["value"]
    found = reasoning.subgroup(data.model_rows(), *map(data.table, SUBGROUP))
    names = ["mannwhitney_p_one_sided", "mannwhitney_p_one_sided_final", "clean5_mannwhitney_one_sided_p"]
    close(found["p"].iloc[:3], told[names], 5.001e-5)


def test_exact_p_counts_all_assignments():
    """Five values against twelve, with ties: every way to choose which five are first."""
    from itertools import combinations

    rows_ = data.model_rows().set_index("row")["c_cond"]
    found = reasoning.subgroup(data.model_rows(), *map(data.table, SUBGROUP)).iloc[2]
    first = [*rows_[["deepseek-v4-flash", "gpt-5.4-mini"]], 0.0, 1 / 167, 4 / 120]
    pool = np.array([*first, *rows_.drop(["deepseek-v4-flash", "gpt-5.4-mini"])])
    ranks = sps.rankdata(pool)
    sums = np.array([ranks[list(chosen)].sum() for chosen in combinations(range(17), 5)])
    assert found["p_exact"] == pytest.approx((sums <= ranks[:5].sum() + 1e-9).mean())
    assert found["u"] == pytest.approx(ranks[:5].sum() - 15)


def test_released_paired_tests(shared):
    folder = shared / "upstream" / "inputs"
    answers = pd.read_csv(folder / "redo_paired_peer_self.csv")["mcnemar_exact_p"]
    thinking = pd.read_csv(folder / "redo_paired_thinking.csv")
    told = [*answers, *thinking["correction_mcnemar_exact_p"], *thinking["collapse_mcnemar_exact_p"]]
    ours = reasoning.paired(data.table("paired_arms"))
    assert len(told) == 15
    close(ours["p"], told, 5e-5)
    close(ours["p_holm"], stats.holm(ours["p"].to_numpy()), 1e-12)


def test_released_quality(shared):
    told = pd.read_csv(shared / "upstream" / "inputs" / "redo_paired_qc.csv").set_index("cell")
    limit = claims.printed_values(claims.registry())["g4.qc"]
    ours = reasoning.quality(data.table("response_ledgers"), limit).set_index("row")
    assert ours["passes"].to_dict() == told["qc_pass"].to_dict()


def test_released_held_out_row(reported):
    told = reported("qwen3_32b_sensitivity").set_index("check")
    ours = transfer.with_held_out(data.model_rows(), data.table("holdouts")).set_index("rows")
    close(ours.loc["in its family", "row_rho"], told.loc["model_row_n15", "rho"], 1e-12)
    lines = {"family_same_qwen_g7": "in its family", "family_treat_as_stress_g8": "as its own family"}
    theirs = ["rho", "p_two_sided", "p_one_sided_exact", "p_two_sided_scipy", "n_permutations"]
    for line, name in lines.items():
        found = ours.loc[name, ["rho", "p_two_sided", "p_one_sided", "p_asymptotic", "n_orders"]]
        close(found, told.loc[line, theirs], 1e-12)


# --- what readers see ---------------------------------------------------------------------------------------


def test_ranges_and_missing_values_in_words(benchmarks):
    shown = tables_transfer.codings(transfer_choices.codings(benchmarks))
    assert shown.loc[shown["Row"] == "deepseek-v4-flash", "Net, left out"].item() == "−3 to 37"
    found = transfer.associations(data.table("cross_benchmark_associations"))
    shown = tables_transfer.associations(found, benchmarks)
    assert shown["Flip rate and collapse, right starts"].iloc[-1] == "– (n = 16)"


def test_figure_colours_only_what_is_clear():
    lines = pd.DataFrame({
        "row": ["a", "b", "c"], "group": "g", "n": 10, "collapse": 1, "correction": 1,
        "change": [0.2, 0, -0.2], "change_low": [0.1, -0.1, -0.3], "change_high": [0.3, 0.1, -0.1],
        "added": [False, False, True],
    })

    axes = figures_transfer.net(lines).axes[0]
    points = [line for line in axes.lines if line.get_linestyle() == "None"]
    colors = [drawing.CELL_COLORS[name] for name in ("correction", "unrepaired", "collapse")]
    assert [line.get_markeredgecolor() for line in points] == colors
    assert [line.get_marker() for line in points] == ["o", "o", "D"]


def test_claims_of_the_follow_up_stand_where_they_are_said_to():
    registry = claims.registry().set_index("id")
    listed = [name for names in claims_transfer.FOLLOW_UP.values() for name in names]
    told = registry[registry["paper_location"].str.contains("G.5|Table 43|Table 44", regex=True)].index
    assert sorted(listed) == sorted(set(told) - {"g5.ci"})
