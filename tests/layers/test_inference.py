"""Sign flips, bootstraps, bounds and relabelled stances of the layered measures."""

from itertools import combinations, product
from math import comb, nan

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as sps

from analysis import stats
from analysis.errors import DataError
from analysis.layers import gates, inference
from analysis.layers.results import Gate, Result, to_frame

# Severities of chains by question: friendly, hostile.
CHAINS = {
    "Q1": ([[0, 0, 0], [0, 1, 0]], [[2, 2, 1], [1, 0, 1]]),
    "Q2": ([[0, 0], [1, 0]], [[2, 2], [0, 1]]),
    "Q3": ([[0, 0, 1], [0, 0]], [[3, 2, 2], [1, 1]]),
}


@pytest.fixture
def turns():
    rows = []
    for question, arms in CHAINS.items():
        for stance, chains in zip(("friendly", "hostile"), arms, strict=True):
            for i, chain in enumerate(chains):
                rows += [{"question_id": question, "debate_id": question + stance, "stance": stance,
                          "chain_id": f"{question}{stance}{i}", "iteration": t, "full": float(severity == 0)}
                         for t, severity in enumerate(chain, start=1)]
    return pd.DataFrame(rows)


# --- sign flips ---


@pytest.mark.parametrize(("d", "mean", "p"), [
    ([-1, -0.5, -0.25, -0.25, -0.25] + [0] * 14, -0.118421, 0.0625),
    ([-1 / 3] * 6 + [-0.3] + [0] * 16, -0.1, 0.015625),
    ([0.3, -0.1, 0.2, 0.4], 0.2, 0.25),
    ([0.1, 0.2, -0.3], 0, 1),
])
def test_sign_flip_worked_examples(d, mean, p):
    got = inference.sign_flip(d)
    assert got.mean == pytest.approx(mean, abs=5e-7)
    assert got.p == p and got.exact and got.n_draws is None and got.n == len(d)


def test_sign_flip_states_the_smallest_p_it_could_give():
    for m, least in ((1, 1), (5, 0.0625), (6, 0.03125), (7, 0.015625)):
        got = inference.sign_flip([0.4] * m + [0] * 10)
        assert got.n_nonzero == m and got.min_attainable == least == got.p
        assert ("cannot_reach_0.05" in got.flags) == (m <= 5)
    none = inference.sign_flip([0.0] * 23)
    assert none.p == 1 and none.n_nonzero == 0 and none.flags == ("no_information",)


def test_rounding_noise_is_not_information():
    noise = (0.1 + 0.2) - 0.3  # 5.6e-17
    assert inference.sign_flip([noise, noise, 0.5]) == (
        pytest.approx(0.5 / 3), 1, 3, 1, 1, True, None, ("cannot_reach_0.05",))
    assert inference.sign_flip([noise] * 8).flags == ("no_information",)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([-0.75, -1 / 3, 0, 0.1, 0.2, 0.3, 1 / 3]), min_size=2, max_size=10))
def test_sign_flip_equals_scipys_permutation_test(d):
    got = inference.sign_flip(d)
    # Ties need the tolerance on both sides, so the sums go into scipy rounded.
    reference = sps.permutation_test(
        (np.asarray(d),), lambda x, axis: np.abs(np.round(x.sum(axis=axis), 9)), permutation_type="samples",
        n_resamples=np.inf, alternative="greater", vectorized=True)
    assert got.p == pytest.approx(reference.pvalue, abs=1e-12)
    zeros = inference.sign_flip([*d, 0, 0])
    assert (zeros.p, zeros.n_nonzero, zeros.min_attainable) == (got.p, got.n_nonzero, got.min_attainable)


def test_all_patterns_of_25_units_ties_included():
    d = np.array([1, 2, 2, -3] * 6 + [0.5]) / 3
    got = stats.sign_flip(d)
    # Whole sixths: the number of patterns by sum, one unit after the other.
    ways = {0: 1}
    for step in np.rint(6 * d).astype(int):
        new = {}
        for total, count in ways.items():
            for sign in (-1, 1):
                new[total + sign * step] = new.get(total + sign * step, 0) + count
        ways = new
    observed = int(np.rint(6 * d).sum())
    assert got.n_patterns == sum(ways.values()) == 2**25
    assert got.two_sided_count == sum(count for total, count in ways.items() if abs(total) >= abs(observed))
    assert got.one_sided_count == sum(count for total, count in ways.items() if total >= observed)


def test_sign_flip_is_exact_to_40_nonzero_units_and_says_when_it_samples():
    d = np.r_[np.ones(28), -np.ones(12), np.zeros(60)]
    exact = inference.sign_flip(d)
    assert exact.exact and exact.p == pytest.approx(sps.binomtest(28, 40).pvalue, abs=1e-12)
    sampled = inference.sign_flip(np.r_[d, 1.0], seed=4)
    assert not sampled.exact and sampled.n_draws == 99_999 and "monte_carlo" in sampled.flags
    assert sampled.p == pytest.approx(sps.binomtest(29, 41).pvalue, abs=0.002)
    assert sampled.min_attainable == 1 / 100_000
    small = inference.sign_flip(d[:30], exact_up_to=20, draws=999)
    assert not small.exact and small.n_draws == 999 and small.p >= 0.001
    assert stats.sign_flip(d).two_sided_count == int(exact.p * 2**40) << 60


def test_bad_differences_are_refused():
    refused = {"empty": [], "missing": [1, nan], "infinite": [1, np.inf], "dimension": [[1, 2]]}
    for message, bad in refused.items():
        with pytest.raises(ValueError, match=message):
            inference.sign_flip(bad)
    with pytest.raises(ValueError, match="exact_up_to=50"):
        inference.sign_flip([1], exact_up_to=50)
    with pytest.raises(ValueError, match="draws=0"):
        inference.sign_flip([1.0] * 50, draws=0)


# --- bootstraps ---


def test_bootstrap_takes_every_resample_of_few_units():
    got = inference.unit_bootstrap([0, 0.25, 0.5, 1])
    assert got[:2] == (0.125, 0.8125) and got.n_boot == 256 and got.flags == ("few_units",)
    means = [np.mean(pick) for pick in product([0.3, 0.1, 0.9, 0.4, 0.2], repeat=5)]
    want = np.quantile(means, [0.05, 0.95], method="linear")
    got = inference.unit_bootstrap([0.3, 0.1, 0.9, 0.4, 0.2], level=0.9)
    assert got[:2] == pytest.approx(want, abs=1e-12) and got.n_boot == 3125


def test_bootstrap_of_seven_and_eight_units():
    d = np.arange(8.0) ** 1.5
    assert inference.unit_bootstrap(d[:7]).n_boot == 7**7
    drawn = inference.unit_bootstrap(d, draws=20_000, seed=1)
    reference = sps.bootstrap((d,), np.mean, n_resamples=20_000, method="percentile", rng=2)
    reference = reference.confidence_interval
    assert drawn.n_boot == 20_000 and drawn.method == "percentile bootstrap"
    assert (drawn.low, drawn.high) == pytest.approx((reference.low, reference.high), abs=0.15)
    assert drawn == inference.unit_bootstrap(d, draws=20_000, seed=1)
    assert drawn != inference.unit_bootstrap(d, draws=20_000, seed=2)


def test_bootstrap_of_a_ratio_takes_both_parts_together():
    drops = np.array([(0.6, 0.6), (0.4, 0.45), (0.6, 0.7), (0.3, 0.2)])  # self, blind

    def ratio(drawn):
        return drawn[..., 1].mean(axis=1) / drawn[..., 0].mean(axis=1)

    got = inference.unit_bootstrap(drops, ratio)
    assert got[:2] == pytest.approx((0.807692, 1.15), abs=5e-7)
    assert inference.unit_bootstrap(drops[:, 0])[:2] == pytest.approx((0.35, 0.6))
    frame = pd.DataFrame(drops, columns=["self", "blind"])
    gap = inference.unit_bootstrap(frame, lambda drawn: (drawn[..., 0] - drawn[..., 1]).mean(axis=1))
    assert gap[:2] == pytest.approx((-0.075, 0.0625))


def test_bootstrap_does_not_depend_on_the_size_of_its_blocks(monkeypatch):
    values = np.random.default_rng(0).normal(size=(30, 2))
    whole = inference.unit_bootstrap(values, lambda drawn: drawn[..., 0].mean(axis=1), draws=500)
    monkeypatch.setattr(inference, "_BLOCK", 30 * 2 * 7)
    assert inference.unit_bootstrap(values, lambda drawn: drawn[..., 0].mean(axis=1), draws=500) == whole


def test_units_that_all_agree_give_no_interval_of_zero_width():
    got = inference.unit_bootstrap([1.0] * 16, share=True)
    assert got[:3] == (pytest.approx(0.806392, abs=5e-7), 1, "Wilson on units")
    assert got.flags == ("degenerate_bootstrap",)
    assert inference.unit_bootstrap([0.0] * 12, share=True)[:2] == (0, pytest.approx(0.242494, abs=5e-7))
    difference = inference.unit_bootstrap([0.0] * 12)
    assert np.isnan(difference[:2]).all() and difference.flags == ("degenerate_bootstrap",)
    one = inference.unit_bootstrap([0.4])
    assert np.isnan(one.low) and set(one.flags) == {"few_units", "degenerate_bootstrap"}


def test_undefined_resamples_are_counted_and_can_undo_the_interval():
    def mean_of_the_positive(drawn):
        with np.errstate(invalid="ignore"):
            return np.where(drawn > 0, drawn, 0).sum(axis=1) / (drawn > 0).sum(axis=1)

    # The lone positive unit is missing from (5/6)**6 of the resamples.
    rare = inference.unit_bootstrap([-1, -1, -1, -1, -1, 2], mean_of_the_positive)
    assert rare.n_undefined == 5**6 and "undefined_bootstrap" in rare.flags and np.isnan(rare.low)
    few = inference.unit_bootstrap([-1, -1, 3, 4, 5, 2], mean_of_the_positive)
    assert few.n_undefined == 2**6 and "undefined_bootstrap" not in few.flags and 2 <= few.low < few.high <= 5


def test_bootstrap_refuses_what_it_cannot_resample():
    for bad, message in (([], "no units"), ([1, nan], "unit 1"), ([[1, 2], [3, 4]], "statistic")):
        with pytest.raises(ValueError, match=message):
            inference.unit_bootstrap(bad)
    with pytest.raises(ValueError, match="level=95"):
        inference.unit_bootstrap([1, 2], level=95)


# --- one value per unit to a result ---


def test_units_of_the_stance_example(turns):
    rates = turns.groupby(["question_id", "stance"]).full.mean().unstack()
    got = inference.test_units("friendly_minus_hostile", rates.friendly - rates.hostile, "share",
                               n_rows=len(turns))
    assert got.estimate == pytest.approx(0.655556, abs=5e-7)
    assert (got.low, got.high) == pytest.approx((0.536111, 0.771111), abs=5e-7)
    assert got.n_boot == 27 and got.p == 0.25 and got.min_attainable == 0.25 and got.exact
    assert got.flags == ("few_units", "cannot_reach_0.05") and got.n_rows == 30 and got.claimable


def test_units_of_the_persistence_example():
    got = inference.test_units("removed_minus_retained", [-0.5, -1, -1 / 3, 1, -1], "share")
    assert got.estimate == pytest.approx(-0.366667, abs=5e-7) and got.p == 0.4375
    assert (got.low, got.high) == pytest.approx((-0.9, 1 / 3), abs=5e-7) and got.n_boot == 3125
    again = inference.test_units("difference_in_differences", [-0.5, -0.5, -4 / 3], "share")
    assert again.estimate == pytest.approx(-0.777778, abs=5e-7) and again.p == 0.25


def test_missing_units_are_counted_and_none_is_undefined():
    got = inference.test_units("shift", pd.Series([0.1, None, 0.3]), "scale points",
                               exclusions={"unparsed": 2})
    assert got.n_units == 2 and got.estimate == pytest.approx(0.2)
    assert got.exclusions == {"unparsed": 2, "undefined_unit": 1}
    none = inference.test_units("shift", [nan], "scale points")
    assert none.status == "undefined" and np.isnan(none.estimate) and np.isnan(none.p) and not none.claimable
    one = inference.test_units("shift", [0.4], "scale points")
    assert one.p == 1 and np.isnan(one.low) and "cannot_reach_0.05" in one.flags


def test_a_rate_has_no_null_of_zero():
    got = inference.test_units("full_agreement", [1.0] * 10, "share", test=False, share=True)
    assert np.isnan(got.p) and got.n_nonzero is None and got.high == 1 and 0.7 < got.low < 0.73


# --- results and gates ---


def test_a_failed_gate_keeps_the_estimate_and_blocks_the_claim():
    result = Result("a", 0.3, "share")
    passed, failed = gates.check(gates.EXPLICIT_SHARE, 0.95), gates.check(gates.EXPLICIT_SHARE, 0.5)
    assert result.with_gates(passed).claimable
    gated = result.with_gates(passed).with_gates(failed)
    assert gated.status == "gated" and gated.estimate == 0.3 and not gated.claimable and len(gated.gates) == 2
    assert Result("a", nan, "share", status="undefined").with_gates(failed).status == "undefined"
    assert not Result("a", nan, "share").claimable
    with pytest.raises(ValueError, match="status='fine': expected one of ok"):
        Result("a", 0.3, "share", status="fine")


def test_results_as_a_table():
    rows = [inference.test_units("a", [0.1, 0.2, 0.3], "share", gates=[Gate("ceiling", 0.95, 0.9, False)]),
            Result("b", 0.5, "share", k=1, n=2, exclusions={"unparsed": 3, "default": 1})]
    table = to_frame(rows)
    assert table.status.tolist() == ["gated", "ok"] and table.claimable.tolist() == [False, True]
    assert table.gates[0] == "ceiling 0.95 (0.9) failed" and table.exclusions[1] == "unparsed: 3; default: 1"
    assert table.k.isna().tolist() == [True, False] and table.n_nonzero[0] == 3
    assert to_frame([]).columns.equals(table.columns)


def test_thresholds_hold_at_their_own_limit():
    assert gates.check(gates.TOP_LABEL_SHARE, 0.95).passed
    assert not gates.check(gates.TOP_LABEL_SHARE, 0.96).passed
    assert gates.check(gates.CEILING, 0.899).passed and not gates.check(gates.CEILING, 0.90).passed
    assert gates.check(gates.RATIO_RANGE, 0.8, 1.25).passed and gates.check(gates.LETTER_MASS, 0.5).passed
    assert gates.check(gates.RATIO_RANGE, 0.9, 1.3) == Gate("ratio_range", 1.3, 1.25, False)
    assert gates.check(gates.RATIO_RANGE, 0.5, 1.2) == Gate("ratio_range", 0.5, 0.8, False)
    assert not gates.check(gates.SWAP_CONSISTENCY, 7 / 9).passed
    for name in ("LETTER_MASS", "RATIO_RANGE", "TOP_LABEL_SHARE", "CEILING", "BLINDNESS"):  # one a rule
        assert not gates.check(getattr(gates, name), nan).passed
    assert set(gates.table().source) == {"paper", "chosen", "arithmetic"} and gates.table().name.is_unique
    assert gates.table().rule.isin(["at least", "at most", "below", "inside", "must hold"]).all()


# --- families, bounds, pairs ---


def test_holm_example_and_its_rule_by_hand():
    raw = {"conviction": 3 / 128, "gap": 9 / 128, "strong": 1 / 128, "weak": 1 / 128}
    got = inference.holm_family(raw, "rounds on the probe")
    assert got.p_holm.tolist() == [0.046875, 0.0703125, 0.03125, 0.03125]
    assert got.family.unique().tolist() == ["rounds on the probe"] and (got.m == 4).all()
    with_missing = inference.holm_family({"a": 0.01, "b": nan, "c": 0.04}, "three")
    assert with_missing.p_holm.round(9).tolist()[::2] == [0.02, 0.04] and (with_missing.m == 2).all()
    with pytest.raises(ValueError, match="family"):
        inference.holm_family(raw, "")
    results = inference.holm_results([Result("a", 1.0, "nats", p=0.01), Result("b", nan, "nats")], "two")
    assert [r.family for r in results] == ["two", "two"]
    assert results[0].p_holm == 0.01 and np.isnan(results[1].p_holm)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_is_monotone_and_never_below_the_raw_p(p):
    got = inference.holm_family(dict(enumerate(p)), "any").sort_values("p")
    step = [min(1, (len(p) - i) * value) for i, value in enumerate(got.p)]
    assert got.p_holm.tolist() == pytest.approx(np.maximum.accumulate(step))


@pytest.mark.parametrize(("k", "n", "low", "high"), [
    (47, 50, 0.837829, 0.979385), (46, 46, 0.922926, 1), (46, 50, 0.811618, 0.968450), (47, 47, 0.924442, 1),
    (37, 38, 0.865051, 0.995339), (16, 16, 0.806392, 1), (36, 38, 0.827145, 0.985446), (0, 12, 0, 0.242494),
])
def test_wilson_table(k, n, low, high):
    assert inference.wilson(k, n) == pytest.approx((low, high), abs=5e-7)
    z, p = sps.norm.ppf(0.975), k / n
    middle, half = p + z * z / 2 / n, z * np.sqrt(p * (1 - p) / n + z * z / 4 / n**2)
    assert inference.wilson(k, n) == pytest.approx(((middle - half) / (1 + z * z / n),
                                                    (middle + half) / (1 + z * z / n)), abs=1e-12)


def test_zero_events():
    got = inference.zero_events(299, 50)
    assert got[1:3] == pytest.approx((0.010033, 0.009969), abs=5e-7)
    assert got[4:] == pytest.approx((0.06, 0.058155), abs=5e-7)
    assert inference.zero_events(30)[1:3] == pytest.approx((0.1, 0.095034), abs=5e-7)
    assert got.exact == pytest.approx(sps.beta.ppf(0.95, 1, 299), abs=1e-12)  # Clopper-Pearson
    assert inference.zero_events(2).rule_of_three == 1 and np.isnan(inference.zero_events(0).exact)
    for bad in ((-1,), (2.5,), (10, 11)):
        with pytest.raises(ValueError, match="expected"):
            inference.zero_events(*bad)


def test_mcnemar_with_and_without_discordant_pairs():
    assert inference.mcnemar(4, 1).p == 0.375 == sps.binomtest(4, 5).pvalue
    none = inference.mcnemar(0, 0, 45)
    assert none.p == 1 and none.flags == ("no_discordant_pairs",)
    assert (none.rule_of_three, none.exact_bound) == pytest.approx((0.0667, 0.064404), abs=5e-5)
    level = inference.mcnemar(3, 3, 45)  # as many one way as the other is not the absence of change
    assert level.p == 1 and level.flags == () and np.isnan(level.exact_bound)
    with pytest.raises(ValueError, match="no more discordant pairs"):
        inference.mcnemar(3, 3, 5)


def test_equivalence_example():
    got = inference.tost([1] * 19 + [-1] * 17 + [0] * 199, 0.075)
    assert got.difference == pytest.approx(0.008511, abs=5e-7)
    assert (got.low, got.high) == pytest.approx((-0.033733, 0.050754), abs=5e-7)
    assert (got.p_lower, got.p_upper, got.p) == pytest.approx((0.000630, 0.004969, 0.004969), abs=5e-7)
    assert got.equivalent and not inference.tost([1] * 19 + [-1] * 17 + [0] * 199, 0.05).equivalent
    flat = inference.tost([0.0] * 20, 0.075)
    assert not flat.equivalent and flat.flags == ("no_spread",) and np.isnan(flat.p)
    with pytest.raises(ValueError, match="margin=0"):
        inference.tost([0.1, 0.2], 0)


def test_arms_that_lose_different_shares():
    assert inference.differential_exclusion({"a": 6}, {"a": 100, "b": 100}) == ("differential_exclusion",)
    assert inference.differential_exclusion({"a": 5}, {"a": 100, "b": 100}) == ()
    assert inference.differential_exclusion({}, {"a": 0}) == ()


# --- relabelled stances ---


def test_record_level_is_the_sign_flip_test(turns):
    got = inference.stance_null(turns, "full")
    assert got.estimate == pytest.approx(0.655556, abs=5e-7)
    assert (got.k, got.n_relabelled, got.p, got.exact) == (2, 8, 0.25, True)
    rates = turns.groupby(["question_id", "stance"]).full.mean().unstack()
    assert got.p == inference.sign_flip(rates.friendly - rates.hostile).p


def test_chain_level_example_and_brute_force(turns):
    got = inference.stance_null(turns, "full", level="chain")
    assert (got.k, got.n_relabelled, got.n_objects, got.n_blocks) == (4, 216, 12, 3)
    assert got.p == pytest.approx(0.018519, abs=5e-7)
    chains = {q: friendly + hostile for q, (friendly, hostile) in CHAINS.items()}
    gaps = []
    for picks in product(combinations(range(4), 2), repeat=3):
        gap = 0
        for pick, of in zip(picks, chains.values(), strict=True):
            friendly = [s == 0 for i in range(4) if i in pick for s in of[i]]
            hostile = [s == 0 for i in range(4) if i not in pick for s in of[i]]
            gap += np.mean(friendly) - np.mean(hostile)
        gaps.append(gap / 3)
    assert got.estimate == pytest.approx(gaps[0])
    assert got.k == sum(abs(gap) >= abs(gaps[0]) - 1e-9 for gap in gaps)


def test_pooled_gap(turns):
    got = inference.stance_null(turns, "full", average="pooled")
    assert got.estimate == pytest.approx(12 / 15 - 2 / 15)
    arms = {q: [[s == 0 for chain in arm for s in chain] for arm in arms] for q, arms in CHAINS.items()}
    gaps = []
    for flips in product((0, 1), repeat=3):
        friendly, hostile = [], []
        for flip, arm in zip(flips, arms.values(), strict=True):
            friendly += arm[flip]
            hostile += arm[1 - flip]
        gaps.append(np.mean(friendly) - np.mean(hostile))
    assert got.k == sum(abs(gap) >= abs(gaps[0]) - 1e-9 for gap in gaps) and got.n_relabelled == 8


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=9))
def test_one_debate_a_stance_always_gives_the_sign_flip_p(units):
    turns = pd.DataFrame([{"question_id": q, "debate_id": 2 * q + arm, "stance": ("friendly", "hostile")[arm],
                           "share": unit[arm] / 4} for q, unit in enumerate(units) for arm in (0, 1)])
    got = inference.stance_null(turns, "share")
    assert got.p == inference.sign_flip([(a - b) / 4 for a, b in units]).p


def big_grid(seed=5, questions=12, chains=6, effect=0.0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame([
        {"question_id": q, "debate_id": f"{q}{timing}{stance}", "stance": stance, "timing": timing,
         "chain_id": f"{q}{timing}{stance}{c}",
         "full": float(rng.random() < 0.5 + effect * (stance == "friendly"))}
        for q in range(questions) for timing in ("after", "per_turn")
        for stance in ("friendly", "hostile", "neutral") for c in range(chains) for _ in range(2)])


def test_random_relabellings_agree_with_all_of_them(monkeypatch):
    turns = big_grid(questions=4, effect=0.12)
    for average in ("question", "pooled"):
        every = inference.stance_null(turns, "full", average=average)
        assert every.exact and every.n_relabelled == 2**8
        with monkeypatch.context() as patched:
            patched.setattr("analysis.layers.relabelling.ENUMERATED_RELABELLINGS", 1)
            drawn = inference.stance_null(turns, "full", average=average, draws=20_000, seed=3)
        assert not drawn.exact and drawn.p == (drawn.k + 1) / 20_001 and drawn.min_attainable == 1 / 20_001
        assert drawn.p == pytest.approx(every.p, abs=0.015) and drawn.estimate == every.estimate


def test_random_relabelling_of_chains_keeps_blocks_and_numbers():
    # Chains differ between questions only: no relabelling within a question can make a gap.
    turns = big_grid()
    turns["full"] = turns.question_id % 2.0
    got = inference.stance_null(turns, "full", level="chain", draws=500)
    assert not got.exact and got.estimate == 0 and got.k == 500 and got.p == 1
    assert got.n_blocks == 24 and got.n_objects == 24 * 12
    noisy = inference.stance_null(big_grid(), "full", level="chain", draws=500, seed=1)
    assert noisy == inference.stance_null(big_grid(), "full", level="chain", draws=500, seed=1)
    # An independent loop over the same null.
    kept = big_grid().query("stance != 'neutral'")
    of = kept.groupby("chain_id").agg(q=("question_id", "first"), t=("timing", "first"),
                                      s=("stance", "first"), total=("full", "sum"), n=("full", "size"))
    rng, reach = np.random.default_rng(9), 0
    for _ in range(500):
        of["new"] = of.groupby(["q", "t"]).s.transform(lambda s: rng.permutation(s.to_numpy()))
        sums = of.groupby(["q", "new"])[["total", "n"]].sum()
        rate = (sums.total / sums.n).unstack()
        reach += abs((rate.friendly - rate.hostile).mean()) >= abs(noisy.estimate) - 1e-9
    assert noisy.p == pytest.approx((reach + 1) / 501, abs=0.1)


def test_the_null_holds_its_level_and_finds_an_effect():
    ps = [inference.stance_null(big_grid(seed, questions=6, chains=3), "full", draws=199, seed=seed).p
          for seed in range(120)]
    assert 0.01 <= np.mean(np.array(ps) <= 0.1) <= 0.19
    assert inference.stance_null(big_grid(effect=0.3), "full", draws=999).p < 0.01


def test_values_that_are_missing_keep_their_place(turns):
    turns["full"] = turns.full.where(turns.debate_id != "Q3friendly")
    question = inference.stance_null(turns, "full")
    assert question.n_objects == 4 and question.estimate == pytest.approx((2 / 3 + 0.5) / 2)
    pooled = inference.stance_null(turns, "full", average="pooled")
    assert pooled.n_objects == 6 and pooled.estimate == pytest.approx(8 / 10 - 2 / 15)
    only = turns.assign(full=turns.full.where(turns.debate_id.isin(["Q1friendly", "Q1hostile"])))
    rare = inference.stance_null(only, "full", average="pooled")
    assert rare.n_relabelled == 8 and rare.p == 1
    friendly = turns.assign(full=turns.full.where(turns.stance == "friendly"))
    assert inference.stance_null(friendly, "full", average="pooled").flags == ("one_stance",)
    nobody = inference.stance_null(turns[turns.stance == "neutral"], "full")
    assert nobody.flags == ("no_shared_question",) and nobody.n_objects == 0
    apart = turns[(turns.question_id == "Q1") == (turns.stance == "hostile")]
    still = inference.stance_null(apart, "full", average="pooled")
    assert still.p == 1 and still.flags == ("no_information",)
    assert still.estimate == pytest.approx(3 / 4 - 1 / 6)  # Q2 friendly, Q1 hostile
    none = inference.stance_null(friendly, "full")
    assert none.flags == ("no_shared_question",) and np.isnan(none.p) and np.isnan(none.estimate)


def test_relabellings_without_values_in_a_stance_are_counted_as_undefined():
    # Two debates of one question with values: dealt to one stance, the other has no mean.
    turns = pd.DataFrame({"question_id": 1, "debate_id": list("abcd"),
                          "stance": ["friendly"] * 2 + ["hostile"] * 2, "held": [1.0, nan, 0.0, nan]})
    got = inference.stance_null(turns, "held", average="pooled")
    assert comb(4, 2) == 6 and got.n_relabelled == 4 and got.n_undefined == 2 and got.p == 1


def test_bad_turns_are_refused(turns):
    for wrong, message in (
        (turns.drop(columns="stance"), "no field 'stance'"),
        (turns.drop(columns="full"), "no field 'full'"),
        (turns.assign(stance=turns.stance.where(turns.index != 3)), "row 3, field 'stance': missing"),
        (turns.assign(composition=["tri3"] * 29 + ["solo"]), "solo, tri3, expected one"),
        (turns.assign(debate_id="d"), "debate_id 'd', field 'question_id'"),
    ):
        with pytest.raises(DataError, match=message):
            inference.stance_null(wrong, "full")
    with pytest.raises(DataError, match="chain_id"):
        inference.stance_null(turns.drop(columns="chain_id"), "full", level="chain")
    with pytest.raises(ValueError, match="level='debate': expected one of record, chain"):
        inference.stance_null(turns, "full", level="debate")
    with pytest.raises(ValueError, match="two different stances"):
        inference.stance_null(turns, "full", stances=("hostile", "hostile"))


def test_chains_are_named_by_debate_member_and_the_member_answered():
    turns = pd.DataFrame({
        "turn_id": ["a0", "b0", "c0", "b1", "a2", "b3", "c1"], "debate_id": "d",
        "member_id": ["a", "b", "c", "b", "a", "b", "c"],
        "parent_id": [None, None, None, "a0", "b1", "a2", "a0"]})
    got = inference.chain_ids(turns)
    assert got.isna().tolist() == [True] * 3 + [False] * 4
    assert got[3:].tolist() == ["d|b|a", "d|a|b", "d|b|a", "d|c|a"]
    with pytest.raises(DataError, match="'b1', field 'parent_id': 'a0' is not a turn of debate 'd'"):
        inference.chain_ids(turns[1:])
    with pytest.raises(DataError, match="'b1' occurs twice"):
        inference.chain_ids(pd.concat([turns, turns[3:4]]))
    elsewhere = turns.assign(debate_id=["e"] + ["d"] * 6)
    with pytest.raises(DataError, match="not a turn of debate 'd'"):
        inference.chain_ids(elsewhere)
