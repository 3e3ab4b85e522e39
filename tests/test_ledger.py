"""The ledger against hand-counted debates and an independent count in plain Python."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import ledger
from analysis.errors import DataError


def said(*debates, gold="A", row="m"):
    """Answers from rounds written as strings, one letter an agent, '-' for none: said("AAB ABB", ...)."""
    lines = []
    for q, rounds in enumerate(debates):
        for r, letters in enumerate(rounds.split()):
            for agent, letter in enumerate(letters):
                lines.append((row, f"q{q}", 0, r, str(agent), None if letter == "-" else letter, gold))
    frame = pd.DataFrame(lines, columns=["row", "question", "replicate", "round", "agent", "answer", "gold"])
    return frame.astype({"answer": "str"})


def plain_majority(letters):
    """Alphabetic plurality, written once more and differently."""
    votes = Counter(letter for letter in letters if letter != "-")
    return min(votes, key=lambda label: (-votes[label], label)) if votes else None


def test_four_cells_and_onset_by_hand():
    out = ledger.debates(said("AAB AAB AAA", "AAB ABB BBB", "ABB BBA AAB", "BBC BBB CCC", "AAA BAA BBA"))
    assert list(out["cell"]) == ["preserved", "collapse", "correction", "unrepaired", "collapse"]
    assert out["onset"].tolist() == [pd.NA, 1, pd.NA, pd.NA, 2]
    assert out["majority_2"].tolist() == ["A", "B", "A", "C", "B"]
    assert out["n_flipped_1"].tolist() == [0, 1, 2, 1, 1]
    assert out["changed_1"].tolist() == [False, True, False, False, False]
    assert out["unanimous_0"].tolist() == [False, False, False, False, True]
    assert out["agree_0"].tolist() == pytest.approx([2 / 3, 2 / 3, 2 / 3, 2 / 3, 1])


def test_rates_by_hand():
    summary = ledger.summarize(ledger.debates(said("AAB AAA", "AAB BBB", "BBA AAA", "BBB BBB"))).iloc[0]
    assert (summary["n"], summary["init_correct"], summary["collapse"], summary["correction"]) == (4, 2, 1, 1)
    assert summary["c_cond"] == 0.5 and summary["correction_rate"] == 0.5
    # Wilson limits of 1/2 at 95%, worked out by hand: (1 + z2/2 -+ z sqrt(1/2 + z2/4)) / (2 + z2) with z = 1.959964.
    assert (summary["c_cond_low"], summary["c_cond_high"]) == pytest.approx((0.0945312, 0.9054688), abs=1e-6)


def test_ties():
    answers = said("BBBC ABAB", "AABB CCAA", "ABCC AAAC")
    assert list(ledger.debates(answers)["cell"]) == ["correction", "preserved", "correction"]
    undecided = ledger.debates(answers, tie="undecided")
    assert list(undecided["cell"]) == ["unrepaired", "unrepaired", "correction"]
    assert undecided["majority_1"].isna().tolist() == [True, True, False]


def test_expected_credit_is_one_over_the_tied_labels():
    out = ledger.debates(said("ABC AAA", "AB- BBB", "AAB ABC", gold="A"), tie="expected")
    assert out["correct_0"].tolist() == pytest.approx([1 / 3, 1 / 2, 1])
    assert out["correct_1"].tolist() == pytest.approx([1, 0, 1 / 3])
    summary = ledger.summarize(out).iloc[0]
    assert summary["collapse"] == pytest.approx(0 + 1 / 2 + 2 / 3)
    assert summary["correction"] == pytest.approx(2 / 3)
    assert summary["final_correct"] - summary["init_correct"] == pytest.approx(summary["correction"] - summary["collapse"])


def test_missing_majorities_under_three_rules():
    answers = said("--- AAA", "AAA ---", "AAB AAA", "BBB ---")
    wrong = ledger.summarize(ledger.debates(answers)).iloc[0]
    assert (wrong["n"], wrong["init_correct"], wrong["collapse"], wrong["correction"], wrong["undefined"]) == (4, 2, 1, 1, 0)
    dropped = ledger.debates(answers, missing="drop")
    assert len(dropped) == 1 and dropped.attrs["dropped"] == 3
    open_ = ledger.summarize(ledger.debates(answers, missing="undecided")).iloc[0]
    # The silent start is in neither denominator; the silent ends stay in theirs but are no collapse.
    assert (open_["n"], open_["init_correct"], open_["init_wrong"], open_["collapse"], open_["correction"], open_["undefined"]) == (4, 2, 1, 0, 0, 3)


def test_no_answer_is_no_vote_and_counts_as_an_answer_in_agreement():
    out = ledger.debates(said("--A AAA", "AB- BBB")).iloc[:]
    assert out["majority_0"].tolist() == ["A", "A"]
    assert out["agree_0"].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert out["unanimous_0"].tolist() == [True, False]
    assert out["n_valid_0"].tolist() == [1, 2]
    assert out["n_flipped_1"].tolist() == [0, 1]


def test_endpoint_is_a_choice():
    answers = said("AAA BBB AAA")
    assert ledger.debates(answers)["cell"].item() == "preserved"
    assert ledger.debates(answers, endpoint=1)["cell"].item() == "collapse"
    with pytest.raises(DataError, match="endpoint=7: expected one of rounds 1, 2"):
        ledger.debates(answers, endpoint=7)


def test_rows_of_different_length_stand_together():
    both = pd.concat([said("AAA BBB", row="short"), said("AAAAA AAAAA AABBB", row="long")])
    out = ledger.debates(both)
    assert list(out["cell"]) == ["collapse", "collapse"] and list(out["n_agents"]) == [3, 5] and list(out["endpoint"]) == [1, 2]
    assert list(ledger.summarize(out)["row"]) == ["short", "long"]
    assert ledger.onset(out).to_dict("records") == [
        {"row": "short", "collapse": 1, "round_1": 1, "round_2": 0},
        {"row": "long", "collapse": 1, "round_1": 0, "round_2": 1},
    ]


def test_order_of_lines_does_not_matter():
    answers = said("ABC AAB", "BBA AAA", "--A AB-")
    mixed = ledger.debates(answers.sample(frac=1, random_state=3)).sort_values("question", ignore_index=True)
    pd.testing.assert_frame_equal(mixed, ledger.debates(answers))


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda a: pd.concat([a, a.iloc[[4]]]), "agent '1' answers twice"),
        (lambda a: a.assign(gold=np.where(a.index == 2, "B", "A")), "'A' and 'B'; expected one label"),
        (lambda a: a.assign(gold=None), "field 'gold': missing"),
        (lambda a: a[a["round"] == 0], "only Round 0"),
        (lambda a: a[a["round"] > 0], "first round is 1; expected Round 0"),
        (lambda a: a.iloc[:0], "no answers"),
    ],
)
def test_bad_answers_are_named(spoil, message):
    with pytest.raises(DataError, match=message):
        ledger.debates(spoil(said("AAB AAA")))


@pytest.mark.parametrize("option, value", [("tie", "alphabetical"), ("missing", "wrong")])
def test_unknown_options_list_the_known(option, value):
    with pytest.raises(ValueError, match=f"{option}='{value}': expected one of "):
        ledger.debates(said("AAB AAA"), **{option: value})


def test_cells_that_contradict_correctness_are_refused():
    out = ledger.debates(said("AAB AAA", "AAB BBB"))
    out.loc[1, "cell"] = "preserved"
    with pytest.raises(DataError, match="disagree"):
        ledger.summarize(out)


letters = st.text("ABC-", min_size=3, max_size=3)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(letters, letters, letters), min_size=1, max_size=6))
def test_against_a_count_in_plain_python(debates):
    out = ledger.debates(said(*(" ".join(rounds) for rounds in debates)))
    for i, rounds in enumerate(debates):
        elected = [plain_majority(r) for r in rounds]
        for r, label in enumerate(elected):
            assert out[f"majority_{r}"].iat[i] == label or (label is None and pd.isna(out[f"majority_{r}"].iat[i]))
        right = [label == "A" for label in elected]
        cell = {(True, True): "preserved", (True, False): "collapse", (False, True): "correction", (False, False): "unrepaired"}
        assert out["cell"].iat[i] == cell[right[0], right[-1]]
        assert out["n_flipped_1"].iat[i] == sum(a != b and "-" not in (a, b) for a, b in zip(*rounds[:2]))
    summary = ledger.summarize(out).iloc[0]
    assert summary["preserved"] + summary["collapse"] + summary["correction"] + summary["unrepaired"] == len(debates)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(letters, letters), min_size=1, max_size=6))
def test_a_feature_matrix_follows_undecided_ties_as_answers_do(debates):
    answers = said(*(" ".join(rounds) for rounds in debates))
    matrix = ledger.debates(answers).drop(columns=["majority_0", "majority_1", "n_valid_0", "n_valid_1"])
    recoded, counted = ledger.debates(matrix, tie="undecided"), ledger.debates(answers, tie="undecided")
    for column in ("correct_0", "correct_1", "changed_1", "cell", "onset"):
        assert recoded[column].tolist() == counted[column].tolist() or recoded[column].astype(str).equals(counted[column].astype(str))


@pytest.mark.parametrize("options", [{"tie": "expected"}, {"missing": "drop"}, {"missing": "undecided"}])
def test_a_feature_matrix_refuses_what_it_cannot_tell(options):
    matrix = ledger.debates(said("AAB AAA")).drop(columns=["majority_0", "majority_1"])
    with pytest.raises(ValueError, match="feature matrix"):
        ledger.debates(matrix, **options)


def test_utility_weights():
    summary = pd.DataFrame({"row": ["m"], "n": [200], "collapse": [10], "correction": [4]})
    assert ledger.utility(summary)["net"].item() == -6
    assert ledger.utility(summary, w_collapse=0.2)["net"].item() == pytest.approx(2)
    assert ledger.utility(summary)["break_even"].item() == pytest.approx(0.4)


def test_strict_majority_and_denominators():
    answers = said("AABCD", "AA---")
    first = answers[answers["round"] == 0]
    plurality = ledger.majority(first, tie="undecided")["majority"].tolist()
    strict = ledger.majority(first, rule="strict")["majority"].tolist()
    of_all = ledger.majority(first, rule="strict", denominator="all")["majority"].tolist()
    assert plurality == ["A", "A"]
    assert pd.isna(strict[0]) and strict[1] == "A"
    assert pd.isna(of_all[0]) and pd.isna(of_all[1])
