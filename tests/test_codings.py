"""Four codings of a missing majority: on debates composed by hand, and on released counts of the same files."""

import numpy as np
import pandas as pd
import pytest

from analysis import codings, data, ledger, synthetic

CODINGS = list(codings.CODINGS)


def said(**debates):
    """Answers of three agents: question -> rounds from 0 on; "-" is no answer; the right answer is A."""
    lines = [(question, step, str(agent), None if answer == "-" else answer)
             for question, rounds in debates.items() for step, answers in enumerate(rounds)
             for agent, answer in enumerate(answers)]
    out = pd.DataFrame(lines, columns=["question", "round", "agent", "answer"])
    return out.assign(row="m", replicate=0, gold="A")


def counts(answers, **options):
    found = codings.compare(answers, **options).set_index("coding")
    return found.loc[CODINGS, [*codings.COUNTS, "unexplained"]].astype(int)


def test_missing_start_that_ends_right():
    found = counts(said(p=("---", "AAB"), q=("AAB", "AAB")))
    assert found.loc["initially_wrong"].tolist() == [2, 1, 1, 0, 1, 2, 0]
    assert found.loc["outside"].tolist() == [2, 1, 0, 0, 0, 2, 1]
    assert found.loc["dropped"].tolist() == [1, 1, 0, 0, 0, 1, 0]
    assert found.loc["unique"].tolist() == [2, 1, 1, 0, 1, 2, 0]


def test_missing_end_of_a_right_start():
    found = counts(said(p=("AAB", "---"), q=("AAB", "AAB")))
    assert found.loc["initially_wrong"].tolist() == [2, 2, 0, 1, 0, 1, 0]
    # Neither a collapse nor a correction, but still in the denominator.
    assert found.loc["outside"].tolist() == [2, 2, 0, 0, 0, 1, -1]
    assert found.loc["dropped"].tolist() == [1, 1, 0, 0, 0, 1, 0]
    assert found.loc["unique"].tolist() == [2, 2, 0, 1, 0, 1, 0]


def test_tied_start_moves_between_the_denominators():
    # Alphabetic: right and lost, right and kept. No unique majority: wrong and stays so, wrong and corrected.
    found = counts(said(p=("ABC", "BBC"), q=("BAC", "AAB")))
    for coding in ("initially_wrong", "outside", "dropped"):
        assert found.loc[coding].tolist() == [2, 2, 0, 1, 0, 1, 0]
    assert found.loc["unique"].tolist() == [2, 0, 2, 0, 1, 1, 0]


def test_tied_end_falls_back_to_the_tie_rule():
    found = counts(said(p=("AAB", "ABC"), q=("AAB", "CBD")))
    for coding in CODINGS:
        assert found.loc[coding].tolist() == [2, 2, 0, 1, 0, 1, 0]


def test_stored_flags_and_majorities_come_before_the_tie_rule():
    answers = said(p=("ABC", "ABC"), q=("ABC", "BBC"), r=("---", "ABC"), s=("AAB", "AAB"))
    stored = pd.DataFrame({
        "row": "m", "question": list("pqrs"), "replicate": 0, "initial_correct": [True, None, True, False],
        "majority": ["C", "A", None, "B"],
    })
    found = codings.coded(answers, "unique", stored=stored).set_index("question")
    # p: flag right, stored end C; q: no flag, unique end B; r: flag right, alphabetic end; s: own majorities.
    assert found["correct_0"].tolist() == [True, False, True, True]
    assert found["cell"].tolist() == ["collapse", "unrepaired", "preserved", "preserved"]
    assert pd.isna(found.loc["p", "onset"])  # no round has a wrong alphabetic majority
    flags = codings.coded(answers, "unique", stored=stored.drop(columns="majority")).set_index("question")
    assert flags["cell"].tolist() == ["preserved", "unrepaired", "preserved", "preserved"]
    with pytest.raises(ValueError, match="coding='dropped': expected it with coding='unique' only"):
        codings.coded(answers, "dropped", stored=stored)
    with pytest.raises(ValueError, match="coding='lost': expected one of initially_wrong, outside, dropped"):
        codings.coded(answers, "lost")


def test_without_ties_and_gaps_all_codings_agree():
    answers = said(p=("AAB", "AAB"), q=("AAB", "BBB"), r=("BBB", "AAA"), s=("BBA", "BBB"))
    found = counts(answers)
    assert (found == found.iloc[0]).all(axis=None)
    assert found.iloc[0].tolist() == [4, 2, 2, 1, 1, 2, 0]


def test_codings_are_the_ledgers_own_where_it_has_them():
    answers = synthetic.answers(60, silence=0.25, seed=7)
    answers = answers.astype({"question": "str", "agent": "str", "row": "str"})
    same = {"initially_wrong": "initially_wrong", "outside": "undecided", "dropped": "drop"}
    for coding, missing in same.items():
        pd.testing.assert_frame_equal(codings.coded(answers, coding), ledger.debates(answers, missing=missing))
    unique = codings.coded(answers, "unique")
    strict, usual = ledger.debates(answers, tie="undecided"), ledger.debates(answers)
    assert (unique["correct_0"] == strict["correct_0"]).all()
    assert (ledger.final_credit(unique) == ledger.final_credit(usual)).all()
    assert unique["cell"].notna().all()
    fell = unique["cell"] == "collapse"
    assert unique.loc[fell, "onset"].notna().all() and unique.loc[~fell, "onset"].isna().all()
    found = counts(answers)
    assert (found.drop("outside")["unexplained"] == 0).all()


def test_cells_of_the_example():
    found = codings.cells(codings.example()).set_index("question")
    assert found.loc["tied start", CODINGS].tolist() == ["collapse", "collapse", "collapse", "unrepaired"]
    assert found.loc["no first answer", CODINGS].tolist() == ["correction", "none", "left out", "correction"]
    assert found.loc["no last answer", CODINGS].tolist() == ["collapse", "none", "left out", "collapse"]
    assert found.loc["tied start, right end", CODINGS].tolist() == ["preserved"] * 3 + ["correction"]
    assert found.loc["tied end", CODINGS].tolist() == ["preserved"] * 4


def test_no_answers_give_no_lines():
    assert codings.compare(said(p=("AAB", "AAB")).iloc[:0]).empty


# --- the released counts ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lines():
    names = ("four_round_ledger", "replay_sources", "parser_audit", "holdouts")
    return codings.accountings(data.model_rows(), *map(data.table, names))


@pytest.fixture(scope="module")
def six():
    ledger_table = data.table("four_round_ledger")
    return ledger_table.loc[ledger_table["stage"] == "four_round", "row"].tolist()


def test_four_accountings_of_the_same_six_files(lines, six):
    sums = codings.totals(lines, six).set_index("accounting")
    columns = ["n", "init_correct", "collapse", "correction", "final_correct"]
    assert sums.loc["cohort", columns].tolist() == [1200, 697, 93, 127, 731]
    assert sums.loc["replication", columns].tolist() == [1200, 662, 75, 144, 731]
    assert sums.loc["replay", columns].tolist() == [1179, 697, 93, 121, 725]
    assert sums.loc["audit", columns].tolist() == [1179, 697, 95, 121, 723]


def test_deepseek_has_seven_corrections_or_one(lines):
    found = lines[lines["row"] == "deepseek-v4-flash"].set_index("accounting")
    assert found["correction"].to_dict() == {"cohort": 7, "replication": 7, "replay": 1, "audit": 1}
    assert found["n"].to_dict() == {"cohort": 200, "replication": 200, "replay": 180, "audit": 180}


def test_starts_outside_both_denominators_leave_part_of_the_gain_over(lines):
    held = lines[lines["row"] == "gemini-3.1-pro"].set_index("accounting").loc["held out"]
    assert held["init_correct"] + held["init_wrong"] == 182 and held["n"] == 199
    assert held["unexplained"] == 5
    assert (lines.drop(lines[lines["row"] == "gemini-3.1-pro"].index)["unexplained"] == 0).all()


def test_accountings_add_up(lines):
    inside = lines["init_correct"] + lines["init_wrong"]
    assert (inside <= lines["n"]).all()
    assert (inside == lines["n"])[lines["coding"] != "outside"].all()
    assert (lines["collapse"] <= lines["init_correct"]).all()
    assert (lines["correction"] <= lines["init_wrong"]).all()
    assert lines.groupby("row").size().min() == 2


def test_audit_counts_the_cells_it_releases(lines):
    audit = data.table("parser_audit").query("parser == 'no_fallback'").set_index("lane")
    found = lines[lines["accounting"] == "audit"].set_index("row")
    shared = audit.index.intersection(found.index)
    assert len(shared) == 6
    start = audit["kept_correct"] + audit["collapse"]
    assert (found.loc[shared, "init_correct"] == start[shared]).all()


def test_released_four_round_counts(shared, six):
    told = pd.read_csv(shared / "upstream" / "inputs" / "post_a6_r1_counts.csv")
    told = told.query("name == 'post_a6_200row'").iloc[0]
    names = ("four_round_ledger", "replay_sources", "parser_audit", "holdouts")
    sums = codings.totals(codings.accountings(data.model_rows(), *map(data.table, names)), six)
    ours = sums.set_index("accounting").loc["replication"]
    assert ours[["n", "init_correct", "collapse", "correction", "final_correct"]].tolist() == told[
        ["n_debates", "init_majority_correct", "collapses", "corrections", "final_correct"]].tolist()


def test_unread_answers_match_probe_files_to_lanes():
    found = codings.unread(data.table("parser_traces"), data.table("parser_probes")).set_index("lane")
    assert found["probe_file"].notna().all()
    assert found.loc["gemma-4-31b-it-awq", ["n_probes", "n_unparsed"]].tolist() == [14400, 864]
    files = data.table("provenance").set_index("lane")["file"]
    probe_files = files[files.str.startswith("sa_causal")]
    np.testing.assert_array_equal(found.loc[probe_files.index, "probe_file"], probe_files)
