"""Pairs of rows and planning, by hand and against the released enumeration."""

from math import comb

import numpy as np
import pandas as pd
import pytest
from scipy import stats as sps

from analysis import data, pairs, screen
from analysis.errors import DataError


@pytest.fixture(scope="module")
def rows():
    return data.model_rows()


@pytest.fixture(scope="module")
def audit(rows):
    return screen.pairwise_audit(rows)


def test_pairs_are_the_released_ones(audit, shared):
    told = pd.read_csv(shared / "upstream/reported/pairwise_91.csv")
    assert audit[["row_a", "row_b"]].to_numpy().tolist() == told[["model_a", "model_b"]].to_numpy().tolist()
    assert audit["reordered"].tolist() == told["reordered"].tolist()
    odd, said = audit[audit["reordered"]], told[told["reordered"]]
    np.testing.assert_allclose(odd["p"], said["fisher_p_two_sided_ccond_diff"], atol=1e-9)
    np.testing.assert_allclose(odd["p_holm"], said["holm_p_over_26_reordered"], atol=1e-9)
    assert ((odd["p_holm"] < 0.05).tolist()) == said["holm_reject_0_05"].tolist()
    words = {"screen": "alpha", "comparator": "init_acc", "neither": "tie"}
    named = said["confirmed_by_observed_ccond"].str.replace("ccond_tied", "tie").str.replace("tied", "tie")
    assert odd["follows"].map(words).tolist() == named.tolist()
    summary = pd.read_csv(shared / "upstream/reported/pairwise_summary.csv").set_index("quantity")["value"].astype(float)
    counts = pairs.audit_counts(audit)
    assert counts.loc["all"].tolist() == summary[["n_reordered", "n_fisher_significant", "n_holm_significant"]].tolist()
    for name, stem in (("screen", "alpha_confirmed"), ("comparator", "init_acc_confirmed"), ("neither", "ccond_tied")):
        assert counts.loc[name].tolist() == summary[[stem, f"fisher_sig_{stem}", f"holm_sig_{stem}"]].tolist()


def test_fisher_by_hand():
    # 0 of 3 against 3 of 3: of the C(6, 3) ways to place three collapses, two are as extreme.
    rows = pd.DataFrame({"row": ["a", "b"], "family": "F", "alpha_tot": [0.1, 0.2], "init_acc": [0.4, 0.5], "collapse": [0, 3], "init_correct": 3})
    line = screen.pairwise_audit(rows).iloc[0]
    assert line["p"] == pytest.approx(2 / comb(6, 3)) and line["p_holm"] == line["p"]
    assert (line["reordered"], line["follows"], line["observed"]) == (True, "screen", -1)


def test_equal_rates_of_different_sizes_tie():
    rows = pd.DataFrame({"row": list("ab"), "family": "F", "alpha_tot": [0.1, 0.2], "init_acc": [0.4, 0.5], "collapse": [1, 3], "init_correct": [7, 21]})
    assert screen.pairwise_audit(rows)["follows"].item() == "neither"


def test_holm_over_the_reordered_alone(audit):
    odd = audit[audit["reordered"]]
    assert audit["p_holm"].notna().sum() == len(odd) == 26
    p = np.sort(odd["p"].to_numpy())
    assert odd["p_holm"].min() == pytest.approx(26 * p[0])
    motive = audit.set_index(["row_a", "row_b"]).loc[("llama-3.1-8b", "qwen3-4b")]
    assert motive["reordered"] and motive["p"] < 0.05 < motive["p_holm"]


def test_most_pairs_that_survive_are_within_one_family(audit):
    kept = audit[audit["p_holm"] < 0.05]
    assert len(kept) == 8 and kept["same_family"].sum() == 6


def test_added_rows_bring_their_own_pairs(rows):
    added = pd.DataFrame({"row": ["x", "y"], "family": ["New", "New"], "alpha_tot": [0.9, None], "init_acc": [0.95, 0.5], "collapse": [30, 1],
                          "init_correct": [190, 100]})
    found = pairs.audit_with_added(rows, added).set_index("rows")
    assert found.index.tolist() == ["paper", "x"] and found["pairs"].tolist() == [91, 91 + 14]
    assert found.loc["paper", ["reordered", "screen", "comparator", "neither"]].tolist() == [26, 13, 12, 1]
    # The new row is last by either order, from opposite ends: all of its pairs are reordered.
    assert found.loc["x", "reordered"] == 26 + 14
    assert pairs.audit_with_added(rows, pd.DataFrame({"row": []}))["rows"].tolist() == ["paper"]


def test_an_added_row_without_a_right_start_has_no_pairs(rows):
    added = pd.DataFrame({"row": ["x"], "family": "New", "alpha_tot": 0.5, "init_acc": 0.0, "collapse": 0, "init_correct": 0})
    assert pairs.audit_with_added(rows, added)["rows"].tolist() == ["paper"]


def test_a_pair_takes_two_rows(rows):
    with pytest.raises(DataError, match="rows: 1 with flip rate and counts; expected 2 or more"):
        pairs.pairwise_audit(rows.iloc[:1])


def test_rows_without_a_flip_rate_are_in_no_half_and_no_matched_pair(rows):
    some = rows.iloc[:3].assign(alpha_tot=[0.2, np.nan, 0.2], init_acc=0.5)
    assert pairs.halves(some)["n_rows"].to_dict() == {"low": 2}
    assert len(pairs.matched_pairs(some)) == 1


@pytest.mark.parametrize("rho, options, said", [
    (2, {}, "rho=2: expected correlations"), (np.nan, {}, "rho=nan"), (0.7, {"power": 80}, "power=80: expected a share"),
    (0.7, {"level": 5}, "level=5: expected a share"),
])
def test_planning_refuses_percentages_and_impossible_correlations(rho, options, said):
    with pytest.raises(ValueError, match=said):
        pairs.plan_families(rho, **options)


# --- planning ---


def test_power_is_the_released_one(shared):
    told = pd.read_csv(shared / "upstream/reported/power_by_g.csv")
    assert len(told) == 48
    for (rho, least), part in told.groupby(["rho", "minimum_g_for_target_power"]):
        power = pairs.family_power(rho, part["g_families"])
        np.testing.assert_allclose(power, part["power"], atol=5.01e-4)
        assert screen.plan_families(rho)["n_families"].item() == least


def test_power_by_simulation():
    # Partial correlation of normals with one control: Fisher's z has variance 1 / (n - 1 - 3).
    rng = np.random.default_rng(0)
    n, rho, draws = 40, 0.4, 20_000
    z = rng.standard_normal((draws, n))
    x = rng.standard_normal((draws, n))
    y = rho * x + np.sqrt(1 - rho**2) * rng.standard_normal((draws, n))
    centred = [values - values.mean(axis=1, keepdims=True) for values in (x + z, y + z, z)]
    norm = [np.sqrt((values**2).sum(axis=1)) for values in centred]
    r = {(i, j): (centred[i] * centred[j]).sum(axis=1) / norm[i] / norm[j] for i, j in ((0, 1), (0, 2), (1, 2))}
    given = (r[0, 1] - r[0, 2] * r[1, 2]) / np.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2))
    found = (np.abs(np.arctanh(given)) * np.sqrt(n - 4) > sps.norm.ppf(0.975)).mean()
    assert float(pairs.family_power(rho, n)) == pytest.approx(found, abs=0.02)


def test_planning_bounds():
    assert float(pairs.family_power(0.0, 10)) == pytest.approx(0.05)
    found = screen.plan_families([0.767, 0.0], most=50)
    assert found["n_families"].isna().tolist() == [False, True]
    assert found["power"].iloc[0] >= 0.8 > float(pairs.family_power(0.767, 11))
    assert screen.plan_families(0.767, controls=0)["n_families"].item() == 11


# --- selection ---


def test_halves_and_matched_pairs_are_the_released_ones(rows, shared):
    told = pd.read_csv(shared / "upstream/reported/selection_utility_groups.csv").set_index("group")
    ours = pairs.halves(rows).rename("{}_alpha".format)
    for name, line in ours.iterrows():
        said = told.loc[name]
        assert set(line["rows"]) == set(said["models"].split("|"))
        got = [line["n_rows"], line["n"], line["alpha_tot"], 100 * line["c_cond"], 100 * line["correction_rate"], line["final_acc"]]
        want = said[["n_models", "n_debates", "mean_alpha", "conditional_collapse_pct", "correction_pct", "final_acc"]].astype(float)
        assert got == pytest.approx(want.tolist(), abs=1e-9)
    told = pd.read_csv(shared / "upstream/reported/selection_utility_pairs.csv")
    ours = pairs.matched_pairs(rows)
    got = {frozenset(pair): line for *pair, line in zip(ours["low"], ours["high"], ours.itertuples(), strict=True)}
    assert set(got) == {frozenset(pair) for pair in zip(told["low_alpha_model"], told["high_alpha_model"], strict=True)}
    for line in told.itertuples():
        mine = got[frozenset((line.low_alpha_model, line.high_alpha_model))]
        assert mine.low == line.low_alpha_model
        assert [mine.init_acc_gap, mine.final_acc] == pytest.approx([line.init_acc_gap, line.delta_final_acc_low_minus_high], abs=1e-9)
        assert 100 * mine.c_cond == pytest.approx(line.delta_ccond_low_minus_high, abs=2e-4)  # released from rates of four decimals
    summary = pd.read_csv(shared / "upstream/reported/selection_utility_summary.csv").set_index("quantity")["value"]
    assert (ours["c_cond"] < 0).sum() == summary["low_alpha_lower_collapse_pairs"]
    assert 100 * ours["c_cond"].mean() == pytest.approx(summary["mean_delta_ccond_low_minus_high"], abs=5e-5)
