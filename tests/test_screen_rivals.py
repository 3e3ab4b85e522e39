"""Cheaper screens, first answers, and the eleven-family extension."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy import stats as sps

from analysis import data, extension, ranktests, rivals, screen


@pytest.fixture(scope="module")
def rows():
    return data.model_rows()


@pytest.fixture(scope="module")
def six(rows):
    return rivals.traced_rows(rows, data.table("four_round_rows"))


@pytest.fixture(scope="module")
def all_rows(rows):
    return extension.extended(rows, data.table("extension_rows"))


def close(ours, theirs, atol=1e-9):
    np.testing.assert_allclose(np.asarray(ours, float), np.asarray(theirs, float), rtol=0, atol=atol)


def test_scores_of_the_six_rows_are_the_released_ones(six, shared):
    told = pd.read_csv(shared / "upstream/inputs/trace_diversity_rows_n6.csv")
    assert six["row"].tolist() == told["model"].tolist()
    close(six[["at_risk_disagreement", "disagreement", "init_entropy", "unanimity"]],
          told[["at_risk_initial_disagreement_rate", "initial_disagreement_rate", "initial_entropy_norm", "initial_unanimity_rate"]])
    told = pd.read_csv(shared / "upstream/inputs/runtime_proxy_rows_n6.csv")
    close(six[["usable_disagreement", "r1_change", "r1_any_flip", "r1_agent_flip"]],
          told[["initial_disagreement_rate", "r1_majority_changed_rate", "any_r1_flip_rate", "r1_flip_frac"]])


def test_diversity_is_the_released_one(six, shared):
    got = rivals.diversity(six).set_index("predictor")
    told = pd.read_csv(shared / "upstream/reported/trace_diversity_spearman_n6.csv").set_index("metric")
    names = {"at_risk_disagreement": "at_risk_initial_disagreement_rate", "disagreement": "initial_disagreement_rate",
             "init_entropy": "initial_entropy_norm", "unanimity": "initial_unanimity_rate"}
    close(got.loc[list(names), ["row_rho", "row_p_asymptotic"]], told.loc[list(names.values()), ["rho", "p_two_sided"]])
    told = pd.read_csv(shared / "upstream/reported/predictor_bakeoff.csv").set_index("predictor").loc["r1_majority_changed_rate"]
    close(got.loc["r1_change", ["row_rho", "row_p_asymptotic", "family_rho"]], told[["model_row_rho", "model_row_p_two_sided", "family_rho"]])
    said = pd.read_csv(shared / "upstream/reported/partial_spearman.csv").query("controls == 'initial_disagreement_rate'").iloc[0]
    close(got.loc["disagreement", ["alpha_given", "alpha_given_p"]], said[["rho", "p_two_sided"]])


def test_lighter_probes_are_the_released_ones(rows, six, shared):
    told = pd.read_csv(shared / "upstream/reported/alpha_lite_spearman.csv").set_index(["check", "unit"])
    got = rivals.lighter_probes(rows, six)
    for line, check in zip(got.itertuples(), ("n14_default_condition_all_agents", "post_a6_strict_one_agent_default"), strict=True):
        family, row = told.loc[(check, "family_mean")], told.loc[(check, "model_row")]
        close([line.family_n, line.family_rho, line.family_p_two_sided], family[["n", "rho", "p_two_sided"]].astype(float))
        close([line.row_n, line.row_rho, line.row_p_asymptotic], row[["n", "rho", "p_two_sided"]].astype(float))


def test_social_proxies_are_the_released_ones(rows, shared):
    told = pd.read_csv(shared / "upstream/reported/predictor_bakeoff.csv").set_index("predictor")
    names = {"alpha_social": "social_proxy_alpha_social", "lift": "social_proxy_lift", "disagreement": "initial_disagreement_rate",
             "r1_change": "r1_majority_changed_rate"}
    got = rivals.bakeoff(rows, data.table("four_round_rows"), data.table("social_arm"), list(names)).set_index("predictor")
    for ours, theirs in names.items():
        close(got.loc[ours, ["row_n", "row_rho", "row_p_asymptotic", "family_n", "family_rho"]],
              told.loc[theirs, ["model_row_n", "model_row_rho", "model_row_p_two_sided", "family_n", "family_rho"]].astype(float))
    close(got.loc[["alpha_social", "lift"], "family_p_two_sided"], told.loc[list(names.values())[:2], "family_p_two_sided_exact"])


def test_lift_depends_on_one_row_from_another_run(rows):
    """With the social arm of its own run for Gemini 3 Flash, the lift ranks collapse better; both are weak."""
    social = rivals.with_social(rows, data.table("social_arm"))
    cells = data.table("probe_cells").query("model == 'Gemini 3-flash' and condition == 'default'").set_index("social")
    rate = cells["n_flip"] / cells["n_probes"]
    own = social.assign(lift=social["lift"].mask(social["row"] == "gemini-3-flash", rate[True] - rate[False]))
    before, after = (screen.comparators(frame, ["lift"]).iloc[0] for frame in (social, own))
    assert (round(before["row_rho"], 3), round(after["row_rho"], 3)) == (0.026, 0.304)
    assert (round(before["family_rho"], 3), round(after["family_rho"], 3)) == (-0.071, 0.286)


# --- extension ---


def test_extension_is_the_released_one(all_rows, shared):
    told = pd.read_csv(shared / "upstream/reported/extension_r3_frozen.csv")
    got = extension.leverage(all_rows, ["Tencent"]).set_index("dropped")
    for cohort, dropped in (("all", ""), ("drop Tencent", "Tencent")):
        said, line = told[told["cohort"] == cohort], got.loc[dropped]
        assert (line["n_rows"], line["n_families"]) == tuple(said[["n_rows", "g_families"]].iloc[0])
        by = said.set_index(["statistic", "p_method"])
        close([line["rho"], line["p_two_sided"]], by.loc[("family_marginal", "exact permutation two-sided"), ["value", "p_value"]].astype(float), 5e-5)
        close([line["partial_rho"], line["partial_p_t"]],
              by.loc[("family_partial_after_init_acc", "t approximation two-sided"), ["value", "p_value"]].astype(float), 5e-5)
        close(line["partial_p_label"], by.loc[("family_partial_after_init_acc", "label permutation two-sided"), "p_value"], 5e-5)
        assert line["n_orders"] == said.set_index("statistic")["value"]["n_permutations"]
    close(got.loc["", "row_rho"], told.set_index("statistic")["value"]["row_marginal_spearman"], 5e-5)


def test_extension_rows_are_the_released_ones(all_rows, shared):
    told = pd.read_csv(shared / "upstream/inputs/extension_r3_frozen_25.csv")
    assert all_rows["row"].tolist() == told["model"].tolist() and all_rows["later"].sum() == 11
    close(100 * all_rows["c_cond"], told["c_cond_pct"], 5.1e-5)
    close(all_rows["init_acc"], told["init_acc"], 5e-5)


@pytest.mark.parametrize("n", [4, 6, 7])
def test_label_permutation_counts_what_enumeration_counts(n):
    rng = np.random.default_rng(n)
    for ties in (False, True):
        x, y, z = (rng.integers(0, 3, n) if ties else rng.standard_normal(n) for _ in range(3))
        if min(np.ptp(x), np.ptp(y), np.ptp(z)) == 0:
            continue
        full = ranktests.partial_spearman(x, y, z)
        if np.isnan(full.rho):
            continue
        got = extension.label_permutation(x, y, z)
        assert (got["two_sided_count"], got["n_orders"]) == (full.two_sided_count, full.n_orders)
        assert got["rho"] == pytest.approx(full.rho)


def test_label_permutation_of_what_the_control_explains():
    found = extension.label_permutation([2, 5, 3, 4, 1], [2, 4, 5, 3, 1], [4, 2, 1, 3, 5])
    assert np.isnan(found["rho"]) and found["two_sided_count"] is None and found["n_orders"] == 120


def test_label_permutation_with_many_values_by_sampling():
    rng = np.random.default_rng(2)
    x, z = rng.standard_normal(10), rng.standard_normal(10)
    y = x + z + rng.standard_normal(10)
    got = extension.label_permutation(x, y, z)
    ranks = [sps.rankdata(values) for values in (x, y, z)]
    left = ranks[0] - np.polyval(np.polyfit(ranks[2], ranks[0], 1), ranks[2])
    hits = 0
    for _ in range(4000):
        other = rng.permutation(ranks[1])
        hits += abs(np.corrcoef(left, other - np.polyval(np.polyfit(ranks[2], other, 1), ranks[2]))[0, 1]) >= abs(got["rho"]) - 1e-12
    assert got["p_two_sided"] == pytest.approx(hits / 4000, abs=0.02) and got["n_orders"] == 3628800
    with pytest.raises(ValueError, match="13 values: expected at most 12"):
        extension.label_permutation(range(13), range(13), range(13))


def test_no_other_family_has_the_leverage_of_tencent(all_rows):
    got = extension.leverage(all_rows).set_index("dropped")
    shift = (got["rho"] - got.loc["", "rho"]).abs().drop("")
    assert len(shift) == 11 and shift.idxmax() == "Tencent" and shift.nlargest(2).iloc[1] < 0.1 < shift.max()
    assert (got["rho"] > 0).all() and (got["partial_rho"] > 0).all()


def test_tests_of_the_extension_are_those_of_the_screen(all_rows):
    got, alone = extension.leverage(all_rows, []).iloc[0], screen.family_association(all_rows).iloc[0]
    assert (got["rho"], got["two_sided_count"]) == (alone["rho"], alone["two_sided_count"])
    small = all_rows[all_rows["family"].isin(["Anthropic", "Meta", "Phi", "xAI", "OpenAI"])]
    means = screen.family_means(small, columns=["alpha_tot", "c_cond", "init_acc"])
    x, y, z = (means[name].rank().to_numpy() for name in ("alpha_tot", "c_cond", "init_acc"))

    def given(order):
        left = [v - np.polyval(np.polyfit(z, v, 1), z) for v in (x, order)]
        return np.corrcoef(*left)[0, 1]

    every = [given(np.array(order)) for order in permutations(y)]
    found = extension.leverage(small, []).iloc[0]
    assert found["partial_count"] == sum(abs(rho) >= abs(given(y)) - 1e-9 for rho in every)
