"""The monotonicity pilot: by hand, by counting orders, and against the released results."""

from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from scipy import stats as sps

from analysis import claims, data, pilot, ranktests


@pytest.fixture(scope="module")
def refusals():
    return data.table("pilot_refusals")


@pytest.fixture(scope="module")
def pairs():
    return data.table("pilot_pairs")


@pytest.fixture
def reported(shared):
    return lambda name, **kwargs: pd.read_csv(shared / "upstream" / "reported" / f"{name}.csv", **kwargs)


def lines(*rows):
    return pd.DataFrame([{"row": f"m{i}", "rung": rung, "n": 10, "refusals": k}
                         for i, row in enumerate(rows) for rung, k in enumerate(row)])


def test_ladder_counts_all_orders_of_tied_rates():
    found = pilot.ladder(lines([0, 2, 2, 1, 5])).iloc[0]
    rho = [sps.spearmanr(range(5), order).statistic for order in permutations([0, 2, 2, 1, 5])]
    observed = sps.spearmanr(range(5), [0, 2, 2, 1, 5]).statistic
    assert found["rho"] == pytest.approx(observed)
    assert found["count"] == (np.array(rho) >= observed - 1e-12).sum() and found["n_orders"] == 120
    assert found["p_exact"] == found["count"] / 120
    untied = [sps.spearmanr(range(5), order).statistic for order in permutations(range(5))]
    assert found["p_no_ties"] == pytest.approx(np.mean(np.array(untied) >= observed - 1e-12))
    assert found["p_asymptotic"] == pytest.approx(
        sps.spearmanr(range(5), [0, 2, 2, 1, 5], alternative="greater").pvalue)


def test_without_ties_both_exact_p_are_one():
    found = pilot.ladder(lines([0, 2, 1, 3, 5])).iloc[0]
    assert found["p_exact"] == found["p_no_ties"] == 5 / 120  # the identity and its four swaps of neighbours


def test_inversion_is_the_largest_later_fall():
    assert pilot.ladder(lines([1, 4, 3, 5, 2]))["inversion"].item() == pytest.approx(0.3)
    assert pilot.ladder(lines([0, 1, 2, 3, 4]))["inversion"].item() == 0


def test_floors_and_gates():
    pairs = pd.DataFrame({"row": ["m0", "m1"], "only_top": [6, 0], "only_bottom": 0})
    found = pilot.floors(lines([0, 3, 6], [5, 5, 5]), pairs, least_floor=0.02).set_index("row")
    assert found.loc["m0", ["first", "last", "floor", "p_mcnemar"]].tolist() == [0, 0.6, 0.6, 1 / 64]
    # One-sided 95% Wilson limit of six of six: n / (n + z squared).
    assert found.loc["m0", "wilson_low"] == pytest.approx(6 / (6 + sps.norm.ppf(0.95) ** 2))
    assert found.loc["m1", "wilson_low"] == 0 and found.loc["m1", "p_mcnemar"] == 1
    assert found["usable"].tolist() == [True, False]


def test_unusable_without_floor_or_without_gate(refusals, pairs):
    small = pd.DataFrame({"row": "a", "rung": [0, 1], "n": 100, "refusals": [1, 2]})
    nine = pd.DataFrame({"row": ["a"], "only_top": [9], "only_bottom": [0]})
    found = pilot.floors(small, nine, least_floor=0.02)
    assert found["mcnemar_met"].item() and not found["floor_met"].item() and not found["usable"].item()
    usable = [pilot.floors(refusals, pairs, least_floor=least)["usable"].sum() for least in (0.02, 0.15, 0.5)]
    assert usable == [2, 1, 0]
    assert pilot.floors(refusals, pairs, least_floor=0.02, level=0.01)["usable"].sum() == 1


def test_wilson_and_mcnemar_agree_on_the_released_models(refusals, pairs):
    found = pilot.floors(refusals, pairs, least_floor=0.02)
    assert found["wilson_met"].tolist() == found["mcnemar_met"].tolist() == [True, False, True]


def test_page_trend_by_hand_and_three_p(refusals):
    wide = refusals.pivot(index="row", columns="rung", values="refusals")
    statistic = (wide.rank(axis=1).sum() * np.arange(1, 10)).sum()
    m, k = wide.shape
    mean, variance = m * k * (k + 1) ** 2 / 4, m * k**2 * (k + 1) ** 2 * (k - 1) / 144
    found = pilot.page_trends(refusals).set_index("method")
    assert (found["statistic"] == statistic).all()
    assert found.loc["asymptotic", "p"] == pytest.approx(sps.norm.sf((statistic - mean) / np.sqrt(variance)))
    assert round(found.loc["exact", "p"], 4) == 0.1003
    assert found.loc["exact_ties", "p"] < found.loc["asymptotic", "p"]
    with pytest.raises(ValueError, match="method='sampled': expected one of asymptotic, exact, exact_ties"):
        pilot.page_trend(refusals, method="sampled")


def test_exact_page_with_ties_counts_orders():
    table = lines([0, 1, 1, 3], [2, 2, 0, 4])
    ranks = [sps.rankdata([0, 1, 1, 3]), sps.rankdata([2, 2, 0, 4])]
    totals = [sum(np.dot(order, range(1, 5)) for order in pair)
              for pair in product(*(list(permutations(line)) for line in ranks))]
    observed = sum(line @ np.arange(1, 5) for line in ranks)
    statistic, p = pilot.page_trend(table, method="exact_ties")
    assert statistic == observed
    assert p == pytest.approx(np.mean(np.array(totals) >= observed - 1e-9))


def test_ladder_fails_by_both_of_its_conditions(refusals):
    found = pilot.verdict(pilot.ladder(refusals), least_median=0.5)
    assert found["fails_median"] and found["fails_any"] and found["fails"] and found["n_below"] == 1
    assert not pilot.verdict(pd.DataFrame({"rho": [0.6, 0.7]}), least_median=0.5)["fails"]


def test_printed_permutation_p_uses_a_null_without_ties(refusals):
    trend = pilot.ladder(refusals).set_index("row")
    verdicts = claims.verdicts(page="pilot").set_index("id")
    for name, row in (("f1.q27_perm", "qwen3.6-27b-fp8"), ("f1.q9_perm", "qwen3.5-9b")):
        assert claims.agrees(trend.loc[row, "p_no_ties"], claims.parse_printed(verdicts.loc[name, "printed"]))
        assert verdicts.loc[name, "verdict"] == "differs"
    assert trend["count"].tolist() == [1240, 285840, 92408]
    null = ranktests.spearman_null(range(9), range(9))
    assert null["count"].sum() == trend["n_orders"].iloc[0]


def test_released_pilot(reported, refusals, pairs):
    told = reported("b_pilot_per_model")
    trend, floors = pilot.ladder(refusals), pilot.floors(refusals, pairs)
    for ours, theirs in ((trend["rho"], "spearman_rho_k_p"), (floors["floor"], "f3_floor"),
                         (trend["p_no_ties"], "spearman_exact_perm_p_one_sided"),
                         (trend["inversion"], "max_inversion_drop"),
                         (floors["p_mcnemar"], "mcnemar_p_one_sided")):
        np.testing.assert_allclose(ours, told[theirs], rtol=0, atol=1e-12)
    assert (trend["p_exact"] > told["spearman_exact_perm_p_one_sided"]).all()
    overall = reported("b_pilot_overall", dtype=str).set_index("quantity")["value"]
    told = overall[["page_L", "page_L_p_one_sided"]].astype(float)
    np.testing.assert_allclose(pilot.page_trend(refusals), told)
    assert trend["rho"].median() == pytest.approx(float(overall["median_rho"]))
