"""Private revision against peer debate on composed answers whose results are worked out by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as sps

from analysis import followup, ledger
from analysis.errors import DataError


def arm(*runs, row="m", gold="A"):
    """Answers of one arm: for each run a list of "start end" panels, one a question; "-" is no answer."""
    lines = [
        (row, f"q{q}", run, k, str(agent), None if label == "-" else label, gold)
        for run, panels in enumerate(runs)
        for q, pair in enumerate(panels)
        for k, panel in enumerate(pair.split())
        for agent, label in enumerate(panel)
    ]
    columns = ["row", "question", "replicate", "round", "agent", "answer", "gold"]
    return pd.DataFrame(lines, columns=columns).astype({"answer": "str"})


@pytest.fixture
def two_runs():
    """Four questions; two runs of peer debate, one of private revision."""
    peer = arm(["AAB AAA", "AAB BBB", "BBA AAA", "ABC BBB"], ["AAB AAA", "AAB AAA", "BBA BBB", "ABC AAB"])
    private = arm(["AAB AAB", "AAB ABC", "BBA BBA", "ABC ABC"])
    return peer, private


def test_means_over_runs_and_questions(two_runs):
    found = followup.compare(*two_runs, draws=200).set_index(["scoring", "quantity"])
    # Binary: peer is right in 2 of 4 and 3 of 4 debates, private revision in 1 of 4.
    line = found.loc[("binary", "accuracy")]
    assert line[["peer", "private", "difference", "answers"]].tolist() == [62.5, 25.0, -37.5, -1.5]
    # Collapses: peer one of four in its first run, to a wrong answer; private one, to a tie.
    assert found.loc[("binary", "collapse"), ["peer", "private"]].tolist() == [12.5, 25.0]
    assert found.loc[("binary", "to_wrong"), ["peer", "private"]].tolist() == [12.5, 0.0]
    assert found.loc[("binary", "to_undecided"), ["peer", "private"]].tolist() == [0.0, 25.0]
    # Corrections: q2 in run 0; q3 (a tie at first) in run 1; none in private.
    assert found.loc[("binary", "correction"), ["peer", "private"]].tolist() == [25.0, 0.0]
    # Expected: private has 1 + 1/3 + 0 + 1/3.
    assert found.loc[("expected", "accuracy"), "private"] == pytest.approx(100 * (1 + 2 / 3) / 4)
    # q3 starts as a three-way tie: a third of it is right, so a loss is a collapse of 1/3, a gain one of 2/3.
    assert found.loc[("expected", "correction"), "peer"] == pytest.approx(100 * (0.5 + 2 / 3 / 2) / 4)
    assert found.loc[("expected", "collapse"), "peer"] == pytest.approx(100 * (0.5 + 1 / 3 / 2) / 4)
    assert (found[["n_questions", "peer_runs", "private_runs"]] == [4, 2, 1]).all(axis=None)


def test_expected_scoring_tells_no_kinds_of_collapse(two_runs):
    found = followup.compare(*two_runs, draws=50)
    told = found.loc[found["scoring"] == "expected", "quantity"].tolist()
    assert told == ["accuracy", "correction", "collapse"]


def test_an_empty_panel_is_undecided():
    seen = followup.outcomes(arm(["AAB ---", "--- AAA"]))
    told = seen[["start", "accuracy", "to_undecided", "to_wrong", "correction"]].values.tolist()
    assert told == [[1, 0, 1, 0, 0], [0, 1, 0, 0, 1]]
    assert followup.outcomes(arm(["AAB ---"]), "expected")["accuracy"].item() == 0


def test_interval_draws_questions_with_both_arms(two_runs):
    found = followup.compare(*two_runs, draws=20_000, seed=5).iloc[0]
    # Differences of the questions: 0, -1/2, -1/2, -1/2.
    values = np.array([0, -0.5, -0.5, -0.5])
    drawn = sps.bootstrap((values,), np.mean, method="percentile", n_resamples=20_000, rng=1)
    expected = drawn.confidence_interval
    np.testing.assert_allclose([found["low"], found["high"]], 100 * np.array(expected), atol=1e-9)


def test_interval_is_reproducible_and_follows_the_level(two_runs):
    first, again = (followup.compare(*two_runs, draws=300, seed=2) for _ in range(2))
    pd.testing.assert_frame_equal(first, again)
    wide = followup.compare(*two_runs, draws=300, seed=2, level=0.99)
    assert (wide["low"] <= first["low"]).all() and (wide["high"] >= first["high"]).all()


def test_one_question_has_no_interval():
    found = followup.compare(arm(["AAB AAA"]), arm(["AAB BBB"]))
    assert found["low"].isna().all() and found.loc[0, "difference"] == -100


def test_rows_are_kept_apart(two_runs):
    other = followup.example()
    stacked = (pd.concat(pair, ignore_index=True) for pair in zip(two_runs, other))
    together = followup.compare(*stacked, draws=50)
    apart = [followup.compare(*pair, draws=50) for pair in (two_runs, other)]
    key = ["row", "scoring", "quantity"]
    parts = (together, pd.concat(apart))
    both, wanted = (part.set_index(key)[["difference", "low"]].sort_index() for part in parts)
    pd.testing.assert_frame_equal(both, wanted)


def test_endpoint_may_be_an_earlier_round():
    three = arm(["AAB AAA BBB"])
    assert followup.outcomes(three)["accuracy"].item() == 0
    assert followup.outcomes(three, endpoint=1)["accuracy"].item() == 1


PANELS = st.text("ABC-", min_size=3, max_size=3)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(PANELS, PANELS, PANELS), min_size=2, max_size=6))
def test_accuracy_is_corrections_minus_collapses(panels):
    peer, private = (arm([f"{start} {ends[at]}" for start, *ends in panels]) for at in (0, 1))
    found = followup.compare(peer, private, draws=20).set_index(["scoring", "quantity"])["difference"]
    for scoring in followup.SCORINGS:
        told = found[scoring, "correction"] - found[scoring, "collapse"]
        assert found[scoring, "accuracy"] == pytest.approx(told, abs=1e-9)
    both = found["binary", "to_wrong"] + found["binary", "to_undecided"]
    assert found["binary", "collapse"] == pytest.approx(both, abs=1e-9)


@settings(deadline=None, max_examples=25)
@given(st.lists(PANELS, min_size=1, max_size=6))
def test_expected_credit_is_the_mean_over_broken_ties(panels):
    """An independent count: break each tie in every way."""
    credit = followup.outcomes(arm([f"AAA {end}" for end in panels]), "expected")["accuracy"].tolist()
    for end, found in zip(panels, credit):
        votes = {label: end.count(label) for label in set(end) - {"-"}}
        leaders = [label for label, n in votes.items() if n == max(votes.values())]
        assert found == pytest.approx(leaders.count("A") / max(len(leaders), 1))


def test_binary_scoring_is_the_ledger_with_ties_undecided(two_runs):
    ours = followup.outcomes(two_runs[0]).groupby("row")[["collapse", "correction", "accuracy"]].sum().iloc[0]
    theirs = ledger.summarize(ledger.debates(two_runs[0], tie="undecided")).iloc[0]
    assert ours.tolist() == theirs[["collapse", "correction", "final_correct"]].tolist()


# --- what is refused ----------------------------------------------------------------------------------------


def test_another_first_answer_is_named():
    told = "row 'm', question 'q1', agent '2', Round 0: 'B' in peer run 0 and 'C' in private run 0; expected"
    with pytest.raises(DataError, match=told):
        followup.compare(arm(["AAA AAA", "AAB AAA"]), arm(["AAA AAA", "AAC AAA"]))


def test_a_first_answer_in_one_run_only_is_a_difference():
    with pytest.raises(DataError, match="'A' in peer run 0 and '' in private run 0"):
        followup.compare(arm(["AAB AAA"]), arm(["-AB AAA"]))


@pytest.mark.parametrize("gone", ["question", "run"])
def test_what_one_arm_lacks_is_named(gone):
    peer = private = arm(["AAB AAA", "AAA AAA"], ["AAB AAA", "AAA AAA"])
    whole = (private["replicate"] == 0) | (private["round"] > 0)
    private = private[private["question"] != "q1"] if gone == "question" else private[whole]
    with pytest.raises(DataError, match="no line in private run [01]; expected one first answer in all runs"):
        followup.compare(peer, private)


def test_no_round_0_and_missing_columns_are_refused():
    peer = arm(["AAB AAA"])
    with pytest.raises(DataError, match="private arm: no line of Round 0"):
        followup.compare(peer, peer[peer["round"] > 0])
    with pytest.raises(DataError, match="private arm: columns missing: gold"):
        followup.compare(peer, peer.drop(columns="gold"))


def test_a_row_of_one_arm_only_is_refused():
    with pytest.raises(DataError, match="row 'n': not in the peer arm"):
        followup.compare(arm(["AAB AAA"]), pd.concat([arm(["AAB AAA"]), arm(["AAB AAA"], row="n")]))


def test_unknown_scoring_lists_the_known():
    with pytest.raises(ValueError, match="scoring='plurality': expected one of binary, expected"):
        followup.outcomes(arm(["AAB AAA"]), "plurality")


def test_row_and_replicate_may_be_left_out():
    arms = arm(["AAB AAA", "AAA AAA"]), arm(["AAB BBB", "AAA AAA"])
    peer, private = (part.drop(columns=["row", "replicate"]) for part in arms)
    assert followup.compare(peer, private, draws=20)["difference"].iloc[0] == -50


# --- quality control ----------------------------------------------------------------------------------------


@pytest.fixture
def hundred():
    """A hundred answers, three of them missing, one of these an abstention; two truncated."""
    seen = pd.DataFrame({"row": "m", "answer": ["A"] * 97 + [None] * 3}).astype({"answer": "str"})
    seen["abstained"] = [False] * 99 + [True]
    seen["truncated"] = [True] * 2 + [False] * 98
    return seen


def test_quality_by_hand(hundred):
    found = followup.quality(hundred).iloc[0]
    assert found[["n", "missing", "abstained", "truncated"]].tolist() == [100, 3, 1, 2]
    assert pd.isna(found["unclosed"])
    assert not found["strict"] and found["amended"]


def test_quality_limit_is_at_most(hundred):
    assert followup.quality(hundred, limit=0.03)["strict"].item()
    assert not followup.quality(hundred.assign(truncated=[True] * 3 + [False] * 97))["amended"].item()
    assert not followup.quality(hundred.assign(unclosed=True))["amended"].item()


def test_quality_of_each_line(hundred):
    other = hundred.assign(row="n", answer="A", abstained=False)
    both = pd.concat([hundred, other], ignore_index=True).assign(arm="peer")
    found = followup.quality(both, by=["arm", "row"])
    assert found[["row", "missing", "strict"]].values.tolist() == [["m", 3, False], ["n", 0, True]]


# --- printed accuracies -------------------------------------------------------------------------------------


def test_pools_give_whole_numbers_of_right_answers():
    found = followup.pools({"a": 0.7455}, [200, 1000, 2000])
    assert found["correct"].isna().tolist() == [True, True, False]
    assert found["correct"].iat[2] / 2000 == 0.7455


def test_arms_with_different_right_answers_are_refused():
    peer, private = arm(["AAB AAA", "AAB BBB"]), arm(["AAB AAB", "AAB ABC"])
    private.loc[private["question"] == "q1", "gold"] = "B"
    with pytest.raises(DataError, match="question 'q1', field 'gold': 'A', 'B'; expected one right answer in all runs"):
        followup.compare(peer, private)
