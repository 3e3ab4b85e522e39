"""Accuracy by arm and equivalence of two arms, on hand-counted items."""

from math import comb, isnan

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from scipy import stats as sps

from analysis.errors import DataError
from analysis.layers import outcomes, tokens
from analysis.layers.results import Result

TIMINGS = ("none", "after", "per_turn")
ITEMS = "111,111,100,011,110,111,000,111".split(",")


def scored(items, arms=TIMINGS, **extra):
    """Outcomes from a word per item, a digit per arm; "-" is a run without outcome, "." one never tried."""
    return pd.DataFrame([{"item_id": item, "arm": arm, "correct": {"1": True, "0": False}.get(mark),
                          "attempted": mark != "."}
                         | extra for item, word in enumerate(items) for arm,
                         mark in zip(arms, word, strict=True)])


def pair(n, b, c, right=0):
    """Two arms on n items: b only the second has right, c only the first, `right` both."""
    return scored(["01"] * b + ["10"] * c + ["11"] * right + ["00"] * (n - b - c - right), ("I", "D"))


# --- accuracy -----------------------------------------------------------------------------------------------

def test_accuracies_of_the_worked_example():
    found = outcomes.accuracy(scored(ITEMS)).set_index("arm")
    assert found.rate.to_dict() == {"none": 0.75, "after": 0.75, "per_turn": 0.625}


def test_discordant_items_of_the_worked_example():
    found = {(d.first, d.second): (d.b, d.c, d.p) for d in outcomes.discordance(scored(ITEMS))}
    assert found[("none", "after")] == (1, 1, 1) and found[("none", "per_turn")] == (2, 1, 1)


def test_tests_of_the_worked_example():
    *pairs, q = outcomes.compare(scored(ITEMS))
    assert q.name == "cochran_q" and q.estimate == pytest.approx(0.666667, abs=5e-7)
    assert q.p == pytest.approx(0.716531, abs=5e-7)
    assert [(r.name, r.estimate, r.p) for r in pairs] == [
        ("after_minus_none", 0, 1), ("per_turn_minus_none", -0.125, 1), ("per_turn_minus_after", -0.125, 1)]
    assert {r.p_holm for r in pairs} == {1} and pairs[0].family == "accuracy by arm"


def test_cochran_against_its_formula():
    rng = np.random.default_rng(2)
    x = rng.integers(0, 2, (40, 3))
    q = outcomes.compare(scored(["".join(map(str, row)) for row in x]), draws=100)[-1]
    columns, rows = x.sum(axis=0), x.sum(axis=1)
    expected = 2 * (3 * (columns**2).sum() - columns.sum() ** 2) / (3 * rows.sum() - (rows**2).sum())
    assert q.estimate == pytest.approx(expected) and q.p == pytest.approx(sps.chi2.sf(expected, 2))


def test_mcnemar_against_the_binomial_sum():
    result, = outcomes.compare(pair(100, 9, 2, 50), draws=100)
    assert result.p == pytest.approx(2 * sum(comb(11, k) for k in range(3)) / 2**11)
    assert result.estimate == pytest.approx(0.07)


@pytest.mark.parametrize("k, n, low, high", [
    (47, 50, 0.837829, 0.979385), (46, 50, 0.811618, 0.968450), (37, 38, 0.865051, 0.995339),
    (36, 38, 0.827145, 0.985446), (46, 46, 0.922926, 1), (47, 47, 0.924442, 1)])
def test_printed_intervals(k, n, low, high):
    row = outcomes.accuracy(scored(["1"] * k + ["0"] * (n - k), ("none",))).iloc[0]
    assert (row.k, row.n) == (k, n) and (row.low, row.high) == pytest.approx((low, high), abs=5e-7)


def test_one_question_apart_at_the_ceiling():
    # 47/50 and 46/50: one question apart.
    result, = outcomes.compare(scored(["11"] * 46 + ["10"] + ["00"] * 3, ("none", "after")))
    assert result.estimate == pytest.approx(-0.02) and result.p == 1
    assert result.status == "ceiling" and not result.claimable


def test_below_the_ceiling_one_arm_is_enough():
    result, = outcomes.compare(scored(["11"] * 44 + ["10"] * 3 + ["00"] * 3, ("none", "after")))
    assert result.status == "ok" and result.claimable  # .94 and .88


def test_ceiling_with_unequal_items_attempted():
    # 46 and 47 tried, 45 of them in common, all right.
    frame = scored(["11"] * 45 + ["1."] + [".1"] * 2, ("debate", "none"))
    found = outcomes.accuracy(frame).set_index("arm")
    assert found.n.to_dict() == {"debate": 46, "none": 47} and found.not_attempted.to_dict() == {"debate": 2,
                                                                                                 "none": 1}
    result, = outcomes.compare(frame)
    assert result.n_units == 45 and result.exclusions == {"not_in_all_arms": 3}
    assert result.p == 1 and "no_discordant_pairs" in result.flags and result.status == "ceiling"
    assert isnan(result.low)  # all items alike: no interval of no width
    d, = outcomes.discordance(frame)
    assert (d.b, d.c, d.n) == (0, 0, 45)
    assert (d.rule_of_three, d.exact_bound) == pytest.approx((0.066667, 0.064404), abs=5e-7)


def test_zero_difference_is_not_zero_discordance():
    d, = outcomes.discordance(pair(45, 3, 3))
    assert (d.b, d.c) == (3, 3) and isnan(d.exact_bound) and d.flags == ()


def test_contamination_is_suspected_far_above_people():
    frame = scored(["111"] * 36 + ["110"] + ["000"])
    assert all("contamination_suspected" in r.flags for r in outcomes.compare(frame, human_baseline=0.65))
    assert "contamination_suspected" not in outcomes.compare(frame, human_baseline=0.80)[0].flags


def test_release_dates():
    gate = outcomes.released_after(pd.Series(["2026-01-02", None]), "2026-01-01")
    assert gate.value == 0.5 and not gate.passed
    assert outcomes.released_after(pd.Series(["2026-01-02"]), "2026-01-01").passed


def test_runs_without_outcome_are_counted_by_arm():
    frame = scored(["111", "1-1", "10-", "0.1"])
    found = outcomes.accuracy(frame).set_index("arm")
    assert found.n.to_dict() == {"none": 4, "after": 2, "per_turn": 3}
    assert found.no_outcome.to_dict() == {"none": 0, "after": 1, "per_turn": 1}
    assert found.not_attempted.to_dict() == {"none": 0, "after": 1, "per_turn": 0}
    assert "differential_exclusion" in outcomes.compare(frame)[0].flags


def test_repeated_runs_are_averaged_first():
    frame = pd.concat([scored(["11", "10", "00"], ("a", "b")), scored(["10", "10", "00"], ("a", "b"))])
    assert outcomes.item_table(frame).values.tolist() == [[1, 0.5], [1, 0], [0, 0]]
    result, = outcomes.compare(frame)
    assert result.estimate == pytest.approx(-0.5) and result.p_method == "sign flip" and result.p == 0.5
    with pytest.raises(DataError, match="item_id 0: repeated runs disagree"):
        outcomes.discordance(frame)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(["11", "10", "01", "00"]), min_size=1, max_size=12))
def test_sign_flip_of_binary_items_is_mcnemar(items):
    frame = scored(items, ("a", "b"))
    table = outcomes.item_table(frame)
    d = (table.b - table.a).to_numpy()
    result, = outcomes.compare(frame, draws=20)
    moving = d[d != 0]
    sums = np.array([sum(s * x for s, x in zip(signs, moving)) for signs in np.ndindex(*[2] * len(moving))
                     for signs in [[2 * s - 1 for s in signs]]])
    assert result.p == pytest.approx((np.abs(sums) >= abs(moving.sum()) - 1e-9).mean())


def test_no_item_in_common():
    results = outcomes.compare(scored(["1..", ".1.", "..0"]))
    assert [r.status for r in results] == ["undefined"] * 4 and all(isnan(r.p) for r in results)


def test_items_that_never_differ_have_no_cochran():
    q = outcomes.compare(scored(["111", "000", "000"]))[-1]
    assert q.status == "undefined" and isnan(q.estimate) and "no_discordant_items" in q.flags


def test_several_judges_are_not_mixed():
    frame = pd.concat([scored(ITEMS, judge_model="x"), scored(["000"] * 8, judge_model="y")])
    with pytest.raises(DataError, match="x, y, expected one value: name the judge"):
        outcomes.accuracy(frame)
    assert outcomes.accuracy(frame, judge="y").rate.sum() == 0
    with pytest.raises(ValueError, match="judge='z': expected one of x, y"):
        outcomes.compare(frame, judge="z")


def test_bad_outcomes_are_named():
    frame = scored(ITEMS)
    with pytest.raises(DataError, match="row 0, field 'correct': 'yes', expected one of True, False"):
        outcomes.accuracy(frame.assign(correct="yes"))
    with pytest.raises(DataError, match="no field 'attempted'"):
        outcomes.accuracy(frame.drop(columns="attempted"))
    with pytest.raises(ValueError, match="arms='late'"):
        outcomes.compare(frame, arms=["none", "late"])
    with pytest.raises(ValueError, match="two or more different arms"):
        outcomes.compare(frame, arms=["none", "none"])


# --- equivalence --------------------------------------------------------------------------------------------

def exact_bootstrap(n, b, c, ends=(0.05, 0.95)):
    """Quantiles of (plus - minus) of n draws, from the exact distribution of the sum."""
    step = np.array([c, n - b - c, b]) / n
    whole = np.ones(1)
    for _ in range(n):
        whole = np.convolve(whole, step)
    cumulated = np.cumsum(whole)
    return [int(np.searchsorted(cumulated, end)) - n for end in ends]


def test_three_intervals_of_the_worked_example():
    report = outcomes.equivalence(pair(235, 19, 17, 80), 0.075, frozen=True)
    t, score = report.others
    assert (report.n, report.b, report.c) == (235, 19, 17)
    assert report.primary.estimate == pytest.approx(0.008511, abs=5e-7) and report.primary.level == 0.9
    assert (report.primary.low, report.primary.high) == pytest.approx((-8 / 235, 12 / 235), abs=1e-12)
    assert (t.low, t.high) == pytest.approx((-0.033733, 0.050754),
                                            abs=5e-7) and t.p == pytest.approx(0.004969, abs=5e-7)
    assert (score.low, score.high) == pytest.approx((-0.034376, 0.051701), abs=5e-7)
    assert report.equivalent and report.agree and report.primary.claimable
    assert [r.role for r in (report.primary, *report.others)] == ["primary", "robustness", "robustness"]


def test_two_one_sided_p_of_the_worked_example():
    x = np.array([1] * 19 + [-1] * 17 + [0] * 199)
    se = x.std(ddof=1) / 235**0.5
    assert se == pytest.approx(0.025580, abs=5e-7)
    assert sps.t.sf((x.mean() + 0.075) / se, 234) == pytest.approx(0.000630, abs=5e-7)
    assert sps.t.cdf((x.mean() - 0.075) / se, 234) == pytest.approx(0.004969, abs=5e-7)


@pytest.mark.parametrize("total, difference, ends", [
    *[(total, 2, [-8, 12]) for total in (34, 36, 38, 40)],
    *[(total, 1, [-8, 10]) for total in (27, 29, 31, 33)],
    *[(total, 0, [-10, 10]) for total in (34, 36, 38, 40)]])
def test_printed_intervals_lie_on_the_grid_of_items(total, difference, ends):
    b = (total + difference) // 2
    assert exact_bootstrap(235, b, total - b) == ends


@pytest.mark.parametrize("b, c", [(19, 17), (16, 15), (18, 18)])
def test_bootstrap_against_its_exact_distribution(b, c):
    result = outcomes.equivalence(pair(235, b, c), 0.075, frozen=True, seed=4).primary
    assert [round(235 * result.low), round(235 * result.high)] == exact_bootstrap(235, b, c)


def test_no_t_interval_of_one_item_rounds_to_the_second_judge():
    for total in range(1, 235, 2):
        b = (total + 1) // 2
        x = np.array([1] * b + [-1] * (total - b) + [0] * (235 - total))
        half = sps.t.ppf(0.95, 234) * x.std(ddof=1) / 235**0.5
        assert (round(100 * (x.mean() - half), 1), round(100 * (x.mean() + half), 1)) != (-3.4, 4.3)


@pytest.mark.parametrize("b, c, n", [(19, 17, 235), (3, 1, 40), (0, 5, 30), (10, 0, 12), (7, 7, 20)])
def test_score_interval_against_a_constrained_likelihood(b, c, n):
    def score(d):
        # Share of "only the second" that is likeliest when that of b is larger by d.
        def minus_likelihood(q):
            return -(b * np.log(q + d) + c * np.log(q) + (n - b - c) * np.log(1 - 2 * q - d))

        lower, upper = max(0, -d) + 1e-13, (1 - d) / 2 - 1e-13
        q = optimize.minimize_scalar(minus_likelihood, bounds=(lower, upper), method="bounded",
                                     options={"xatol": 1e-13}).x
        return (b - c - n * d) / np.sqrt(n * (2 * q + d - d * d))

    z = sps.norm.ppf(0.95)
    for end, side in zip(outcomes.tango(b, c, n), (1, -1), strict=True):
        assert score(end) == pytest.approx(side * z, abs=2e-4)


def test_score_interval_where_nothing_differs():
    low, high = outcomes.tango(0, 0, 45)
    z2 = sps.norm.ppf(0.95) ** 2
    assert (low, high) == pytest.approx((-z2 / (45 + z2), z2 / (45 + z2)), abs=1e-9)
    assert outcomes.tango(5, 0, 5)[1] == 1 and outcomes.tango(0, 5, 5)[0] == -1
    with pytest.raises(ValueError, match=r"b \+ c <= n"):
        outcomes.tango(3, 3, 5)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 60))
def test_score_interval_mirrors_and_holds_the_estimate(b, c, same):
    n = b + c + same
    if n:
        low, high = outcomes.tango(b, c, n)
        assert -1 <= low <= (b - c) / n + 1e-9 and (b - c) / n - 1e-9 <= high <= 1 and low < high
        mirrored = outcomes.tango(c, b, n)
        assert mirrored == pytest.approx((-high, -low), abs=1e-8)


def test_few_discordant_items_are_left_to_the_score_interval():
    report = outcomes.equivalence(pair(60, 1, 0, 30), 0.075, frozen=True)
    assert report.primary.interval == "Tango score" and {r.interval for r in report.others} == {
        "percentile bootstrap", "Student t"}
    none = outcomes.equivalence(pair(60, 0, 0, 30), 0.075, frozen=True)
    assert none.primary.interval == "Tango score" and none.equivalent
    assert not none.agree  # the others have no width
    small = outcomes.equivalence(pair(10, 0, 0, 5), 0.075, frozen=True)
    assert not small.equivalent


def test_a_margin_set_afterwards_shows_nothing():
    report = outcomes.equivalence(pair(235, 19, 17), 0.075, frozen=False)
    assert report.primary.status == "gated" and not report.equivalent
    assert "inside_margin" in report.primary.flags
    with pytest.raises(ValueError, match="margin=0"):
        outcomes.equivalence(pair(235, 19, 17), 0, frozen=True)


def test_the_limit_itself_is_not_inside():
    report = outcomes.equivalence(pair(235, 19, 17), 12 / 235, frozen=True)
    assert report.primary.high == pytest.approx(12 / 235, abs=1e-12)
    narrow = outcomes.equivalence(pair(235, 19, 17), 0.04, frozen=True)
    assert not narrow.equivalent and "not_inside_margin" in narrow.primary.flags


def test_additional_judges_are_labelled():
    frame = pd.concat([pair(235, 19, 17).assign(judge_model="x"), pair(235, 16, 15).assign(judge_model="y")])
    late = outcomes.equivalence(frame, 0.075, frozen=True, judge="y", judge_label="post_result").primary
    assert late.role == "robustness" and "post_result_judge" in late.flags
    assert outcomes.equivalence(frame, 0.075, frozen=True, judge="x").primary.role == "primary"


def test_token_verdict_travels_with_it():
    frame = pair(235, 19, 17)
    assert "no_token_ledger" in outcomes.equivalence(frame, 0.075, frozen=True).primary.flags
    ledger = pd.DataFrame([{"item_id": i, "arm": arm, "role": "member", "completion_tokens": 100 + i % 3,
                            "reasoning_tokens": 0}
                           for i in range(20) for arm in ("I", "D")])
    match = tokens.token_match(ledger, ("D", "I"))
    assert "tokens_matched" in outcomes.equivalence(frame, 0.075, frozen=True, tokens=match).primary.flags


def test_missing_outcomes_leave_the_pair_or_count_as_wrong():
    frame = scored(["11"] * 20 + ["1-", "-1", "1."], ("I", "D"))
    left_out = outcomes.equivalence(frame, 0.075, frozen=True)
    assert left_out.n == 20 and left_out.primary.exclusions == {"not_in_both_arms": 3}
    wrong = outcomes.equivalence(frame, 0.075, frozen=True, missing="incorrect")
    assert (wrong.n, wrong.b, wrong.c) == (23, 1, 2)


def test_one_item_and_averaged_runs():
    one = outcomes.equivalence(scored(["01"], ("I", "D")), 0.075, frozen=True)
    assert not one.equivalent and "one_item" in one.others[1].flags
    none = outcomes.equivalence(scored(["0-"], ("I", "D")), 0.075, frozen=True)
    assert none.primary.status == "undefined" and not none.equivalent
    averaged = outcomes.equivalence(pd.concat([pair(40, 3, 2), pair(40, 0, 0)]), 0.3, frozen=True)
    assert averaged.b is None and len(averaged.others) == 1
    assert averaged.primary.interval == "percentile bootstrap" and averaged.equivalent


def test_whole_systems_are_described_only():
    found = outcomes.whole_systems(scored(["101", "111", "000", "110"], ("S", "I", "D")))
    assert [(r.name, r.estimate, r.role) for r in found] == [
        ("I_minus_S", -0.25, "descriptive"), ("D_minus_S", -0.25, "descriptive")]
    assert all(isnan(r.p) for r in found)
    assert isinstance(found[0], Result)
