"""Persistence without the stance instruction, on hand-computed pairs of re-queries."""

from itertools import product
from math import isnan

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.errors import DataError
from analysis.layers import persistence
from analysis.layers.results import Gate

RELIABLE = [Gate("judge_ac1", 0.8, 0.6, True)]
# (question, second named leg persists, first named leg persists)
HOSTILE = [("q1", 1, 0), ("q1", 1, 1), ("q2", 1, 0), ("q3", 1, 1), ("q3", 0, 0), ("q3", 1, 0), ("q4", 0, 1),
           ("q5", 1, 0)]
NEUTRAL = [("q1", 1, 1), ("q2", 1, 0), ("q2", 1, 1), ("q3", 0, 1), ("q6", 1, 1)]


def requeries(rows, arm="hostile", iteration=1):
    """One pair of re-queries for every (question, second, first); None is a label that was not given."""
    first, second = persistence.LEGS[arm]
    out = []
    for number, (question, kept, removed) in enumerate(rows):
        for leg, persists in ((second, kept), (first, removed)):
            out.append({
                "turn_id": f"{arm}{iteration}.{number}", "question_id": question, "stance_arm": arm,
                "leg": leg, "iteration": iteration, "own_opinion_exact": iteration == 1,
                "agreed_level": {0: "partially_agreed", 1: "partially_disagreed"}.get(persists),
                "agreed_level_explicit": persists is not None})
    return pd.DataFrame(out)


@pytest.fixture
def both():
    return pd.concat([requeries(HOSTILE), requeries(NEUTRAL, "neutral")], ignore_index=True)


def test_contrast_of_the_worked_example(both):
    result = persistence.reversion(both)
    assert result.name == "removed_minus_retained"
    assert result.estimate == pytest.approx(-0.366667, abs=5e-7)
    assert result.p == 0.4375 and result.exact
    assert (result.low, result.high) == pytest.approx((-0.9, 0.333333), abs=5e-7)
    assert (result.n_units, result.n_rows, result.n_boot, result.n_nonzero) == (5, 8, 3125, 5)
    assert result.role == "primary" and "approximate_reconstruction" not in result.flags


def test_question_contrasts_of_the_worked_example(both):
    pairs = persistence.pairs(both)
    found = pairs[pairs.stance_arm == "hostile"].groupby("question_id").contrast.mean()
    assert found.round(6).to_dict() == {"q1": -0.5, "q2": -1, "q3": -0.333333, "q4": 1, "q5": -1}
    neutral = pairs[pairs.stance_arm == "neutral"].groupby("question_id").contrast.mean()
    assert neutral.to_dict() == {"q1": 0, "q2": -0.5, "q3": 1, "q6": 0}


def test_turn_counts_of_the_worked_example(both):
    found = persistence.turn_counts(both)
    assert (found.n, found.n_questions, found.only_retained, found.only_removed) == (8, 5, 4, 1)
    assert found.attributable == 0.375
    pairs = persistence.pairs(both)
    assert pairs[pairs.stance_arm == "hostile"].contrast.mean() == -0.375


def test_difference_in_differences_of_the_worked_example(both):
    result = persistence.difference_in_differences(both)
    assert result.estimate == pytest.approx(-0.777778, abs=5e-7)
    assert result.p == 0.25 and result.n_units == 3
    assert result.role == "robustness"
    assert result.exclusions == {"question_not_shared": 3}  # q4, q5 and the neutral q6


def test_counts_behind_the_printed_shares_of_reversion():
    # 39 pairs: 28 revert without the instruction and 19 with it, so 9 more do without.
    rows = [("q", 1, 0)] * 9 + [("q", 0, 0)] * 19 + [("q", 1, 1)] * 11
    found = persistence.turn_counts(requeries(rows))
    shares = found.attributable, found.reverted_removed, found.reverted_retained
    assert shares == pytest.approx((0.230769, 0.717949, 0.487179), abs=5e-7)


def test_printed_p_values_are_the_floors_of_five_and_seven_questions_that_moved():
    def p(moved, still):
        rows = [(f"m{i}", 1, 0) for i in range(moved)] + [(f"s{i}", 1, 1) for i in range(still)]
        return persistence.reversion(requeries(rows))

    few, enough = p(5, 14), p(7, 16)
    assert few.p == few.min_attainable == 0.0625 and few.status == "gated"
    assert "cannot_reach_0.05" in few.flags
    assert enough.p == enough.min_attainable == 0.015625 and enough.claimable


def test_questions_weigh_alike_however_many_turns_they_have():
    rows = [("talkative", 1, 1)] * 50 + [("brief", 1, 0)]
    assert persistence.reversion(requeries(rows)).estimate == -0.5


def test_all_pairs_alike_give_p_one():
    result = persistence.reversion(requeries([(f"q{i}", 1, 1) for i in range(8)]))
    assert result.estimate == 0 and result.p == 1 and "no_information" in result.flags
    assert not result.claimable


def test_one_question_and_none():
    one = persistence.reversion(requeries([("q", 1, 0)]))
    assert one.estimate == -1 and one.p == 1 and one.status == "gated"
    none = persistence.reversion(requeries([("q", None, 0)]))
    assert none.status == "undefined" and isnan(none.estimate) and isnan(none.p)
    assert none.exclusions == {"second_not_explicit": 1}
    assert isnan(persistence.turn_counts(requeries([("q", None, 0)])).attributable)


def test_later_iterations_never_carry_the_headline():
    frame = pd.concat([requeries(HOSTILE), requeries([(f"q{i}", 1, 0) for i in range(9)], iteration=2)])
    assert persistence.reversion(frame).n_rows == 8
    for stratum, n_rows in (("approximate", 9), ("all", 17)):
        result = persistence.reversion(frame, stratum=stratum)
        assert result.n_rows == n_rows and result.role == "robustness" and not result.claimable
        assert "approximate_reconstruction" in result.flags


def test_friendly_arm_is_descriptive():
    result = persistence.reversion(requeries(HOSTILE, "friendly"), arm="friendly")
    assert result.role == "descriptive" and isnan(result.p)


def test_pairs_that_lack_a_leg_or_a_label_are_counted_not_filled():
    frame = requeries([("q1", 1, 0), ("q2", None, 0), ("q3", 1, None), ("q4", None, None), ("q5", 1, 0)])
    frame = frame[~((frame.question_id == "q5") & (frame.leg == "retained"))]
    result = persistence.reversion(frame)
    assert result.n_rows == 1 and result.n_units == 1
    assert result.exclusions == {"second_not_explicit": 1, "first_not_explicit": 1, "both_not_explicit": 1,
                                 "leg_missing": 1}


def test_a_label_filled_in_by_default_does_not_count():
    frame = requeries([("q1", 1, 0)])
    frame.loc[frame.leg == "removed", ["agreed_level", "agreed_level_explicit"]] = ["fully_agreed", False]
    assert persistence.pairs(frame).excluded.tolist() == ["first_not_explicit"]


def test_legs_with_different_losses_are_flagged():
    rows = [(f"q{i}", 1, 0) for i in range(18)]
    one = persistence.reversion(requeries(rows + [("x", None, 0)]))  # 1 of 19 lost in one leg: 5.3 points
    assert "differential_exclusion" in one.flags
    equal = persistence.reversion(requeries(rows + [("x", None, 0), ("y", 1, None)]))
    assert "differential_exclusion" not in equal.flags


@pytest.mark.parametrize("column, values", [("model", ["m-1", "m-2"]), ("temperature", [1.0, 0.7])])
def test_legs_of_another_model_or_temperature_are_no_pair(column, values):
    frame = requeries([("q1", 1, 0), ("q2", 1, 0)])
    frame[column] = values[:1] * 3 + values[1:]
    assert persistence.reversion(frame).exclusions == {"legs_differ": 1}


@pytest.mark.parametrize("change, message", [
    ({"agreed_level": "disagreed"}, "row 0, field 'agreed_level': 'disagreed', expected one of fully_agreed"),
    ({"stance_arm": None}, "field 'stance_arm': missing"),
    ({"leg": "draw1"}, "field 'leg': 'draw1', expected one of removed, retained in the hostile arm"),
    ({"leg": "removed"}, "leg='removed': 2 rows, expected one"),
    ({"question_id": "elsewhere"}, "field 'question_id': 'elsewhere' and 'q1', expected one value"),
    ({"iteration": 2}, "field 'iteration': 2 and 1, expected one value"),
])
def test_bad_requeries_are_named(change, message):
    frame = requeries([("q1", 1, 0)])
    for column, value in change.items():
        frame[column] = frame[column].astype(object)
        frame.loc[0, column] = value
    with pytest.raises(DataError) as caught:
        persistence.pairs(frame)
    assert message in str(caught.value)


def test_exactness_must_fit_the_iteration():
    frame = requeries([("q1", 1, 0)]).assign(iteration=2)
    with pytest.raises(DataError, match="True at iteration 2, expected True at iteration 1 and False later"):
        persistence.pairs(frame)


def test_timings_are_not_pooled():
    frame = requeries([("q1", 1, 0), ("q2", 1, 0)]).assign(timing=["after"] * 2 + ["per_turn"] * 2)
    with pytest.raises(DataError, match="after, per_turn"):
        persistence.reversion(frame)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcde"), st.booleans(), st.booleans()), min_size=1, max_size=14))
def test_p_counts_the_sign_patterns_of_question_means(rows):
    result = persistence.reversion(requeries([(q, int(kept), int(gone)) for q, kept, gone in rows]), draws=50)
    by_question = {}
    for question, kept, gone in rows:
        by_question.setdefault(question, []).append(gone - kept)
    means = np.array([np.mean(values) for values in by_question.values()])
    reached = [abs(np.dot(signs, means)) >= abs(means.sum()) - 1e-9 for signs in product([-1, 1],
                                                                                         repeat=len(means))]
    assert result.estimate == pytest.approx(means.mean(), abs=1e-12)
    assert result.p == pytest.approx(np.mean(reached), abs=1e-12)


def test_swapping_the_legs_turns_the_sign():
    plain = persistence.reversion(requeries(HOSTILE))
    swapped = persistence.reversion(requeries([(q, gone, kept) for q, kept, gone in HOSTILE]))
    assert swapped.estimate == pytest.approx(-plain.estimate) and swapped.p == plain.p


# --- targets ------------------------------------------------------------------------------------------------

@pytest.fixture
def turns():
    def turn(name, parent, iteration, level, explicit=True, member="b", debate="d"):
        return {"turn_id": name, "debate_id": debate, "question_id": "q", "member_id": member,
                "parent_id": parent, "stance": "hostile", "iteration": iteration, "agreed_level": level,
                "agreed_level_explicit": explicit}

    return pd.DataFrame([
        turn("root", None, 0, None, False, "a"), turn("agrees", "root", 1, "partially_agreed"),
        turn("dissents", "root", 1, "partially_disagreed"),
        turn("default", "root", 1, "fully_disagreed", False),
        turn("later", "dissents", 2, "fully_disagreed"), turn("orphan", "lost", 1, "fully_disagreed"),
        turn("stranger", "root", 1, "fully_disagreed", member="x")])


def test_targets_are_explicit_dissent(turns):
    found = persistence.targets(turns, members=["a", "b"]).set_index("turn_id")
    assert found.excluded.to_dict() == {
        "dissents": "", "later": "", "orphan": "parent_missing", "stranger": "member_unmapped"}
    assert found.own_opinion_exact.to_dict() == {"dissents": True, "later": False, "orphan": True,
                                                 "stranger": True}


def test_targets_refuse_unknown_labels_and_mixed_timings(turns):
    with pytest.raises(DataError, match="'stance': 'angry', expected one of"):
        persistence.targets(turns.assign(stance="angry"))
    with pytest.raises(DataError, match="one composition and timing"):
        persistence.targets(turns.assign(timing=["after"] + ["per_turn"] * 6))
    with pytest.raises(DataError, match="turn_id='root': 7 rows"):
        persistence.targets(turns.assign(turn_id="root"))


# --- confirmation by a blind judge --------------------------------------------------------------------------

def judged(severities, leg="removed", family="google"):
    return pd.DataFrame([{"turn_id": turn, "leg": leg, "judge_family": family, "severity": severity}
                         for turn, severity in severities.items()])


def test_confirmed_share_of_reverted_labels():
    frame = requeries([("q", 1, 0)] * 28 + [("q", 1, 1)] * 11)
    names = frame.turn_id.unique()
    severity = {name: (0 if i < 6 else 1 if i < 11 else 2) for i, name in enumerate(names)}
    result = persistence.confirmed_reversals(frame, judged(severity), dict.fromkeys(names, "openai"),
                                             judge_gates=RELIABLE)
    assert (result.k, result.n) == (11, 28) and round(100 * result.estimate) == 39
    z = 1.959963984540054
    centre = (11 + z * z / 2) / (28 + z * z)
    half = z / (28 + z * z) * (11 * 17 / 28 + z * z / 4) ** 0.5
    assert (result.low, result.high) == pytest.approx((centre - half, centre + half), abs=1e-9)
    assert result.claimable and result.role == "descriptive"


def test_judges_of_the_authors_family_and_unread_texts_are_left_out():
    frame = requeries([("q", 1, 0)] * 3)
    a, b, c = frame.turn_id.unique()
    judgements = pd.concat([
        judged({a: 3, b: 0}, family="anthropic"), judged({a: 1, b: None, c: None}),
        judged({a: 2}, family="mistral"), judged({c: 0}, leg="retained")])
    families = {a: "anthropic", b: "anthropic", c: "openai"}
    result = persistence.confirmed_reversals(frame, judgements, families, judge_gates=RELIABLE)
    assert (result.k, result.n) == (1, 1)  # of a the lower median of 1 and 2
    assert result.exclusions == {"unjudged": 2, "own_family_judgement": 2, "unread_judgement": 2}


def test_an_unchecked_judge_confirms_nothing():
    frame = requeries([("q", 1, 0)])
    name = frame.turn_id[0]
    result = persistence.confirmed_reversals(frame, judged({name: 0}), {name: "openai"})
    assert result.estimate == 1 and result.status == "gated" and "judge_unchecked" in result.flags
    assert persistence.confirmed_reversals(
        requeries([("q", 1, 1)]), judged({name: 0}), {}, judge_gates=RELIABLE).status == "undefined"


def test_bad_judgements_are_named():
    frame = requeries([("q", 1, 0)])
    name = frame.turn_id[0]
    with pytest.raises(DataError, match="'severity': 4, expected one of 0, 1, 2, 3"):
        persistence.confirmed_reversals(frame, judged({name: 4}), {name: "openai"})
    with pytest.raises(DataError, match="no field 'leg'"):
        persistence.confirmed_reversals(frame, judged({name: 1}).drop(columns="leg"), {name: "openai"})
    with pytest.raises(DataError, match="families, turn_id 'hostile1.0'"):
        persistence.confirmed_reversals(frame, judged({name: 1}), {})
