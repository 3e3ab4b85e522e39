"""Spread of stated options, on hand-computed distributions."""

from math import isnan, log2

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.errors import DataError
from analysis.layers import pluralism
from analysis.layers.results import Gate

RELIABLE = [Gate("judge_ac1", 0.9, 0.6, True)]
FIRST = [(0.7, 0.2, 0.1, 0, 0), (0.1, 0.8, 0.1, 0, 0), (0, 0.1, 0.2, 0.6, 0.1)]
FINAL = [(0.7, 0.2, 0.1, 0, 0), (0.6, 0.3, 0.1, 0, 0), (0, 0.1, 0.1, 0.3, 0.5)]
HUMAN = [0.30, 0.35, 0.20, 0.15]


def maps(first, final, question="q1", arm="debate"):
    options = list("abcdefg")[:len(first[0]) - 1]
    return pd.DataFrame([
        {"question_id": question, "member_id": f"m{i}", "arm": arm, "stage": stage, "options": options,
         "probs": list(probs)}
        for stage, members in (("first", first), ("final", final)) for i, probs in enumerate(members)])


@pytest.fixture
def example():
    return maps(FIRST, FINAL)


def test_entropies_of_the_worked_example(example):
    found = pluralism.committees(example).set_index("stage").entropy
    assert found.to_dict() == pytest.approx({"first": 2.054773, "final": 2.082394}, abs=5e-7)
    assert pluralism.entropy_change(example).estimate == pytest.approx(0.027621, abs=5e-7)


def test_smoothing_turns_the_sign_of_the_worked_example(example):
    found = pluralism.committees(example, alpha=0.5).set_index("stage").entropy
    assert found.to_dict() == pytest.approx({"first": 2.302792, "final": 2.300908}, abs=5e-7)
    result = pluralism.entropy_change(example, alpha=0.5)
    assert result.estimate == pytest.approx(-0.001884, abs=5e-7) and result.role == "robustness"


@pytest.mark.parametrize("k, bits",
                         [(2, 1.371), (3, 1.7925), (4, 2.1281), (5, 2.4056), (6, 2.6416), (7, 2.8464)])
def test_smoothing_lifts_a_committee_that_fully_agrees(k, bits):
    agreed = [tuple([1] + [0] * k)] * 3
    frame = maps(agreed, agreed)
    assert pluralism.committees(frame, alpha=0.5).entropy[0] == pytest.approx(bits, abs=6e-5)
    assert pluralism.committees(frame).entropy[0] == 0


def test_flips_of_the_worked_example(example):
    moved = pluralism.trajectories(example)
    assert moved["first"].tolist() == ["a", "b", "d"] and moved.final.tolist() == ["a", "a", "no_position"]
    option, full = (pluralism.flip_rate(example, kind=kind) for kind in pluralism.KINDS)
    assert (option.k, full.k, option.n, full.n) == (1, 2, 3, 3)
    assert option.estimate == pytest.approx(1 / 3) and full.estimate == pytest.approx(2 / 3)


def test_human_distances_of_the_worked_example(example):
    human = pd.DataFrame({"question_id": ["q1"], "probs": [HUMAN]})
    for stage, distance, divergence, dropped in (("first", 0.090613, 0.008211, 0.033333),
                                                 ("final", 0.193616, 0.037487, 0.166667)):
        found = pluralism.human_distances(example, human, stage=stage).iloc[0]
        assert found.js_distance == pytest.approx(distance, abs=5e-7)
        assert found.js_distance**2 == pytest.approx(divergence, abs=5e-7)
        assert found.dropped == pytest.approx(dropped, abs=5e-7)


def test_entropy_and_distance_against_plain_sums(example):
    def bits(p):
        return -sum(x * log2(x) for x in p if x > 0)

    first = np.mean(FIRST, axis=0)
    assert pluralism.committees(example).entropy[0] == pytest.approx(bits(first), abs=1e-12)
    kept = first[:-1] / first[:-1].sum()
    middle = [(x + y) / 2 for x, y in zip(kept, HUMAN, strict=True)]
    divergence = bits(middle) - (bits(kept) + bits(HUMAN)) / 2
    human = pd.DataFrame({"question_id": ["q1"], "probs": [HUMAN]})
    found = pluralism.human_distances(example, human, stage="first").js_distance[0]
    assert found == pytest.approx(divergence**0.5, abs=1e-9)


def test_relative_entropy_is_a_share_of_the_question_s_own_width():
    even = [(0.25, 0.25, 0.25, 0.25)]
    row = pluralism.committees(maps(even, even)).iloc[0]
    assert (row.n_options, row.entropy, row.relative_entropy) == (3, 2, 1)
    result = pluralism.entropy_change(maps([(1, 0, 0, 0)], even), relative=True)
    assert result.estimate == 1 and result.unit == "share of log2(K + 1)"


def test_questions_of_different_widths_stay_ragged():
    frame = pd.concat([maps([(1, 0, 0)] * 2, [(0.5, 0.5, 0)] * 2, "narrow"),
                       maps([(1,) + (0,) * 7] * 2, [(1,) + (0,) * 7] * 2, "wide")], ignore_index=True)
    result = pluralism.entropy_change(frame, mapper_gates=RELIABLE)
    assert result.estimate == 0.5 and result.n_units == 2
    assert result.claimable and result.role == "exploratory"
    assert set(pluralism.committees(frame).probs.map(len)) == {3, 8}


def test_a_mapper_with_four_fixed_options_is_gated():
    fixed = maps([(1, 0, 0, 0, 0)], [(0, 1, 0, 0, 0)], "six")
    fixed["options"] = [list("abcdef")] * 2
    frame = pd.concat([maps([(1, 0, 0, 0, 0)], [(0.5, 0.5, 0, 0, 0)], "four"), fixed], ignore_index=True)
    assert pluralism.check_support(frame) == ["six"]
    result = pluralism.entropy_change(frame, mapper_gates=RELIABLE)
    assert result.status == "gated" and result.exclusions == {"wrong_support": 1} and result.n_units == 1
    assert pluralism.flip_rate(frame, mapper_gates=RELIABLE).status == "gated"


def test_an_unchecked_mapper_is_gated(example):
    result = pluralism.entropy_change(example)
    assert result.status == "gated" and "mapper_unchecked" in result.flags
    assert pluralism.entropy_change(example, mapper_gates=RELIABLE).status == "ok"


def test_ties_keep_the_earlier_option():
    frame = maps([(0, 1, 0), (0.5, 0.5, 0), (0, 0, 1)], [(0.5, 0.5, 0), (0, 1, 0), (1 / 3, 1 / 3, 1 / 3)])
    moved = pluralism.trajectories(frame)
    assert moved["first"].tolist() == ["b", "a", "no_position"]
    assert moved.final.tolist() == ["b", "b", "no_position"]
    assert moved.full_flip.tolist() == [False, True, False]


def test_a_dataset_option_like_do_not_know_is_an_option():
    frame = maps([(1, 0, 0)], [(0, 1, 0)])
    frame["options"] = [["yes", "don't know"]] * 2
    assert pluralism.flip_rate(frame).estimate == 1


def test_questions_without_all_members_at_both_stages_are_counted():
    frame = pd.concat([maps([(1, 0, 0)] * 2, [(1, 0, 0)] * 2, "whole"),
                       maps([(1, 0, 0)] * 2, [(0, 1, 0)], "short")])
    result = pluralism.entropy_change(frame)
    assert result.n_units == 1 and result.exclusions == {"committee_incomplete": 1}
    flips = pluralism.flip_rate(frame)
    assert (flips.n, flips.exclusions) == (3, {"stage_missing": 1})
    nothing = pluralism.entropy_change(maps([(1, 0, 0)], []))
    assert nothing.status == "undefined" and isnan(nothing.estimate)


def test_the_no_debate_arm_must_be_read_twice():
    same = maps(FIRST, FIRST, arm="none")
    assert "not_remapped" in pluralism.flip_rate(same, arm="none").flags
    assert "not_remapped" in pluralism.entropy_change(same, arm="none").flags
    assert "not_remapped" not in pluralism.flip_rate(maps(FIRST, FINAL, arm="none"), arm="none").flags


def test_human_contrast_pairs_the_arms():
    frame = pd.concat([maps([(1, 0, 0)], [(0, 1, 0)], "q1"), maps([(1, 0, 0)], [(1, 0, 0)], "q1", "none"),
                       maps([(1, 0, 0)], [(1, 0, 0)], "alone"), maps([(1, 0, 0)], [(1, 0, 0)], "unknown"),
                       maps([(1, 0, 0)], [(0, 0, 1)], "silent"),
                       maps([(1, 0, 0)], [(1, 0, 0)], "silent", "none")])
    human = pd.DataFrame({"question_id": ["q1", "alone", "silent"], "probs": [[1, 0]] * 3})
    result = pluralism.human_contrast(frame, human, mapper_gates=RELIABLE)
    assert result.estimate == 1 and result.n_units == 1  # disjoint with debate, equal without
    assert result.exclusions == {"one_arm": 1, "no_human": 1, "only_no_position": 1}


def test_outcomes_are_corrected_together():
    frame = pd.concat([maps([(0.8, 0.2, 0)] * 2, [(1, 0, 0), (0.9 - i / 50, 0.1 + i / 50, 0)], f"q{i}", arm)
                       for i in range(8) for arm in pluralism.ARMS])
    human = pd.DataFrame({"question_id": [f"q{i}" for i in range(8)], "probs": [[0.6, 0.4]] * 8})
    found = pluralism.outcomes(frame, human, mapper_gates=RELIABLE, draws=200)
    tested = [result for result in found if result.family == "pluralism"]
    assert [result.name for result in tested] == ["final_minus_first_entropy",
                                                  "debate_minus_none_js_distance"]
    assert tested[0].p_holm == min(1, 2 * tested[0].p) and tested[1].p_holm == 1  # both arms alike
    assert len(found) == 6 and len({result.name for result in found}) == 6


def test_50_questions_are_tested_by_sampling():
    rng = np.random.default_rng(5)
    frame = pd.concat([maps(rng.dirichlet([1] * 4, 3), rng.dirichlet([1] * 4, 3),
                            f"q{i}") for i in range(50)])
    result = pluralism.entropy_change(frame, draws=200)
    assert result.exact is False and result.n_draws == 99_999 and "monte_carlo" in result.flags


def test_orders_are_realigned_before_they_are_averaged():
    options, shown = list("abc"), [list("abc"), list("cab"), list("bca")]
    truth = {"a": 0.5, "b": 0.3, "c": 0.1}
    reads = pd.DataFrame({"question_id": "q", "member_id": "m", "arm": "debate", "stage": "first",
                          "options": [options] * 3,
                          "shown": shown, "probs": [[truth[o] for o in order] + [0.1] for order in shown]})
    found = pluralism.average_orders(reads)
    assert found.probs[0] == pytest.approx([0.5, 0.3, 0.1, 0.1]) and found.n_orders[0] == 3
    few = pluralism.average_orders(reads[:2])
    both = pd.concat([few, few.assign(stage="final")])
    assert "few_option_orders" in pluralism.entropy_change(both).flags
    with pytest.raises(DataError, match="field 'shown'"):
        pluralism.average_orders(reads.assign(shown=[list("abd")] * 3))
    with pytest.raises(DataError, match="3 values, expected 4"):
        pluralism.average_orders(reads.assign(probs=[[0.5, 0.3, 0.2]] * 3))


@pytest.mark.parametrize("change, message", [
    ({"probs": [0.5, 0.3, 0.1]}, "expected probabilities that sum to 1"),
    ({"probs": [1.2, -0.2, 0.0]}, "expected probabilities that sum to 1"),
    ({"probs": [float("nan"), 0.5, 0.5]}, "expected probabilities that sum to 1"),
    ({"options": ["a", "c"]}, "as in the question's other rows"),
    ({"arm": "after"}, "field 'arm': 'after', expected one of debate, none"),
    ({"stage": "final"}, "stage='final': 2 rows, expected one"),
    ({"member_id": None}, "field 'member_id': missing"),
])
def test_bad_distributions_are_named(change, message):
    frame = maps([(1, 0, 0)], [(1, 0, 0)]).astype(object)
    for column, value in change.items():
        frame.at[0, column] = value
    with pytest.raises(DataError) as caught:
        pluralism.check_support(frame)
    assert message in str(caught.value)


def test_bad_human_distributions_are_named(example):
    for probs, message in (([0.5, 0.5], "2 values, expected 4"), ([0.5, 0.5, 0.5, 0.5], "sum to 1")):
        with pytest.raises(DataError, match=message):
            pluralism.human_distances(example, pd.DataFrame({"question_id": ["q1"], "probs": [probs]}))
    with pytest.raises(DataError, match="2 rows"):
        pluralism.human_distances(example, pd.DataFrame({"question_id": ["q1"] * 2, "probs": [HUMAN] * 2}))


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 7), st.integers(1, 4), st.integers(0, 10**6))
def test_order_of_options_and_members_changes_nothing(k, members, seed):
    rng = np.random.default_rng(seed)
    first, final = rng.dirichlet([1] * (k + 1), members), rng.dirichlet([1] * (k + 1), members)
    order = np.append(rng.permutation(k), k)
    plain = pluralism.entropy_change(maps(first, final)).estimate
    mixed = pluralism.entropy_change(maps(first[::-1, order], final[::-1, order])).estimate
    assert plain == pytest.approx(mixed, abs=1e-12)
    assert abs(plain) <= log2(k + 1) + 1e-12
