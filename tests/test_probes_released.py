"""What released probe tables say about how they were made, against the released results."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats as sps

from analysis import claims, claims_cells, claims_probe, data, probes, probes_released, rows, sealed, stored


@pytest.fixture(scope="module")
def registry():
    return claims.registry()


@pytest.fixture
def reported(shared):
    return lambda name, **kwargs: pd.read_csv(shared / "upstream" / "reported" / f"{name}.csv", **kwargs)


# --- ratios -------------------------------------------------------------------------------------------------


def test_order_is_the_same_under_the_printed_constant_and_not_under_the_released_one():
    found = probes_released.log_ratio_orders(data.table("channel_contrasts")).set_index("constant")
    assert found["rho"].to_dict() == pytest.approx({1e-2: 59 / 60, 1e-3: 59 / 60, 1e-4: 1, 1e-5: 1, 1e-6: 1})
    assert found.loc[probes.LOG_CONSTANT, "n_moved"] == 2
    # Of nine social contrasts one is negative, and the printed formula has no logarithm for it.
    assert found["n_negative"].unique().tolist() == [1]


def test_released_argument_contrasts_are_not_those_of_equation_3():
    asked = sealed.default_probes_asked(data.table("strongest_probe")) / 2
    found = probes_released.argument_readings(data.table("channel_contrasts"), asked).set_index("row")
    assert found.index[~found["halves"]].tolist() == ["Qwen3-4B", "Llama-3.1-8B", "Qwen3-32B"]
    assert found.index[~found["extremes"]].tolist() == ["Qwen3-32B"]
    # The social contrasts are those of the released counts, flip for flip.
    cells = data.table("probe_cells").query("condition == 'default'")
    flips = cells.pivot(index="model", columns="social", values="n_flip")
    assert (flips[True] - flips[False]).loc[found.index].tolist() == found["social_flips"].tolist()


def test_parity_decides_between_halves_and_quarters():
    rng = np.random.default_rng(0)
    for _ in range(50):
        flips = rng.integers(0, 11, (4, 2))  # strength by social level, of ten probes each
        social, n = (flips[:, 1].sum() - flips[:, 0].sum()) / 40, pd.Series({"m": 40})
        halves = (flips[2:].sum() - flips[:2].sum()) / 40
        quarters = (flips[3].sum() - flips[0].sum()) / 20
        told = pd.DataFrame({"row": ["m"], "social": [social], "argument": [halves]})
        assert probes_released.argument_readings(told, n)["halves"].item()
        assert probes_released.argument_readings(told.assign(argument=quarters), n)["extremes"].item()


def test_released_ratios(shared):
    told = pd.read_csv(shared / "upstream" / "inputs" / "t2_4_log_ratio_models.csv")
    contrasts = data.table("channel_contrasts")
    ours = probes_released.social_to_argument(contrasts, epsilon=1e-3, constant=1e-3)
    assert ours["row"].tolist() == told["model"].tolist()
    np.testing.assert_allclose(ours[["ratio", "log_ratio"]], told[["sa_orig", "sa_log"]], rtol=0, atol=1e-12)


# --- channels -----------------------------------------------------------------------------------------------


def test_no_printed_effect_size_is_over_the_spread_of_the_differences(registry):
    found = probes_released.effect_readings(claims_probe.effects(registry))
    assert len(found) == 16
    assert not found[["paired_records", "paired_questions", "two_samples"]].any(axis=None)


def test_effect_readings_find_what_was_made():
    rng = np.random.default_rng(4)
    x, y = rng.random(90), rng.random(90) - 0.1
    paired, apart = sps.ttest_rel(x, y), sps.ttest_ind(x, y)
    d_paired = (x - y).mean() / (x - y).std(ddof=1)
    d_pooled = (x - y).mean() / np.sqrt((x.var(ddof=1) + y.var(ddof=1)) / 2)
    made = pd.DataFrame({"n": 90, "d": [d_paired, d_pooled], "p": [paired.pvalue, apart.pvalue]})
    made = made.assign(d_step=1e-6, p_step=1e-6)
    found = probes_released.effect_readings(made)
    assert found[["paired_records", "two_samples"]].to_numpy().tolist() == [[True, False], [False, True]]


def test_flip_rates_by_condition_bound_what_lost_records_leave_open(registry):
    rates = claims_probe.released_rates(data.table("probe_cells"), claims.printed_values(registry))
    assert rates["model"].nunique() == 15 and len(rates) == 45
    whole = rates[rates["model"].map(claims_probe.kept_records(claims.printed_values(registry))) == 1800]
    assert (whole["rate_low"] == whole["rate_high"]).all() and (whole["n"] == 4800).all()
    assert (rates["rate_low"] <= rates["rate_high"]).all()
    llama = rates.set_index(["model", "condition"]).loc[("Llama-3.1-8B", "default")]
    assert llama["k"] == 1706 + 1779


def test_anti_argument_is_above_anti_social_in_all_released_models(registry):
    rates = claims_probe.released_rates(data.table("probe_cells"), claims.printed_values(registry))
    found = claims_probe.manipulated(rates, registry)
    assert found["source"].value_counts().to_dict() == {"counts": 15, "printed": 1}
    counted = found[found["source"] == "counts"]
    assert (counted["anti_argument"] > counted["anti_social_high"]).all()
    # Which orders hold wherever the lost records lay, and that they are those printed.
    strict = (found["order"] == "strict").to_numpy()
    lines = registry.set_index("id")
    names = {model: name for name, model in claims_cells.PROBED.items()} | {"Haiku 4.5": "haiku45"}
    assert strict.tolist() == [lines.loc[f"t20.{names[row]}.strict", "value"] == 1 for row in found["row"]]
    assert (found["p_holm"] <= 0.05).sum() == 12


# --- the other tables ---------------------------------------------------------------------------------------


def test_strongest_check_counts_solo_probes_only():
    counts = data.table("strongest_probe").query("probe_set == 'all'").set_index("row")
    cells = data.table("probe_cells").query("condition == 'default'")
    cells = cells.pivot(index="model", columns="social", values="n_flip")
    assert (counts["n_flip"] == cells.loc[counts.index, False]).all()
    assert (counts["n_flip"] != cells.loc[counts.index].sum(axis=1)).all()


def test_places_that_change_without_the_strongest():
    change = probes.strongest_change(data.table("strongest_probe")).set_index("row")
    moved = change.index[change["rank"] != change["rank_dropped"]]
    assert set(moved) == {"Sonnet 4.5", "Phi-4-mini", "GPT-4o-mini", "GPT-5.4-mini", "Qwen3-4B", "Qwen3-8B"}


def test_released_strongest_check(reported):
    told = reported("t2_robustness").set_index("check")
    change = probes.strongest_change(data.table("strongest_probe"))
    found = probes.strongest_association(change, claims_probe.outcome(data.sealed_rows()))
    found = found.set_index("probe_set")
    for ours, theirs in (("all", "T2_1_headline_original"), ("no_strongest", "T2_1_headline_dropped")):
        np.testing.assert_allclose(found.loc[ours, ["rho", "p", "low", "high"]].astype(float),
                                   told.loc[theirs, ["rho", "p", "ci_lo", "ci_hi"]].astype(float), atol=1e-9)


def test_day_of_a_panel_repeats_the_day_before():
    pairs = probes.session_pairs(claims_probe.panel(data.table("repeat_panel")))
    assert len(pairs) == 3
    assert (pairs["same"] == pairs["n_questions"]).all()


def test_released_panels(reported):
    lines = claims_probe.panel(data.table("repeat_panel"))
    days, told = probes.sessions(lines), reported("r5_panels")
    pairs = {"n_questions": "n_questions", "n_repeats": "n_records",
             "unstable": "questions_with_initial_answer_instability",
             "range_mean": "mean_alpha_range_within_question", "range_max": "max_alpha_range_within_question"}
    for ours, theirs in pairs.items():
        np.testing.assert_allclose(days[ours], told[theirs], atol=1e-12)
    np.testing.assert_allclose(days["n_unparsed"] / days["n_probes"], told["probe_post_answer_none_rate"])
    found, told = probes.session_pairs(lines), reported("r5_pairwise")
    columns = {"n_questions": "shared_questions", "rho": "alpha_mean_spearman",
               "answer_changes": "initial_answer_majority_changes",
               "mean_difference": "mean_abs_alpha_mean_delta", "max_difference": "max_abs_alpha_mean_delta"}
    for ours, theirs in columns.items():
        np.testing.assert_allclose(found[ours], told[theirs], atol=1e-12)


def test_released_split(reported):
    told = reported("alpha_split_per_model").set_index("model")
    cells = data.table("probe_cells").query("condition == 'default'").set_index(["model", "social"])
    rates = pd.DataFrame({
        "total": cells["n_flip"] / cells["n_probes"], "adv": cells["n_adv"] / cells["n_init_right_probes"],
        "cor": cells["n_cor"] / cells["n_init_wrong_probes"],
        "neutral": cells["n_neutral"] / cells["n_init_wrong_probes"],
    })
    assert (cells[["n_adv", "n_cor", "n_neutral"]].sum(axis=1) == cells["n_flip"]).all()
    for social, arm in ((False, "nonsocial"), (True, "social")):
        ours = rates.xs(social, level="social")
        for name in ("total", "adv", "cor", "neutral"):
            column = f"alpha_{name}_{arm}"
            if column in told:
                np.testing.assert_allclose(ours.loc[told.index, name], told[column], atol=1e-12)


def test_released_reply_temperatures(reported):
    told = reported("replytemp_summary").set_index("quantity")["value"]
    arms = probes_released.two_arms(data.table("reply_temperature"))
    rho = sps.spearmanr(arms["greedy"], arms["matched_temperature"]).statistic
    assert rho == pytest.approx(told["rank_stability_spearman"], abs=5e-4)
    assert arms["difference"].abs().max() == pytest.approx(told["max_abs_alpha_delta"], abs=1e-9)
    assert arms["unparsed_rate"].max() == told["max_observed_post_none_rate_in_detailed_rows"]


def test_later_lanes_by_hand():
    found = probes_released.later_lanes(data.table("parser_probes"), data.table("holdouts"), nominal=1800)
    assert len(found) == 11 and found["near_complete"].sum() == 6
    near = found[found["near_complete"]].set_index("lane")
    assert near.index[near["order"] != ""].tolist() == ["mistral-small-4", "grok-4.1-fast"]
    assert (near.loc[near["order"] != "", "order"] == "strict").all()
    stopped = found.set_index("lane").loc["step-3-5-flash", ["n_records", "n_probes", "n_unparsed"]]
    assert stopped.tolist() == [103, 824, 772]


def test_probes_of_the_shipped_row_pass_through_every_measure():
    frame = stored.probes(["smollm2-135m"])
    assert len(stored.with_starts(frame)) == len(frame) > 0
    assert stored.with_starts(frame.assign(gold=None)).empty
    counts = probes.tally(frame)
    assert counts["n_flip"].sum() == probes.flip_rate(frame, conditions="all", unparsed="drop")["k"].item()
    told = rows.card("smollm2-135m")
    assert len(stored.answers(["smollm2-135m"])) == told.n_debates * told.n_agents * (told.n_rounds + 1)
    assert stored.probes(["no-such-row"]).empty
