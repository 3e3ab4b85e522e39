"""Vote-counting cases with known answers, and the same rules on votes counted by hand."""

import json
from collections import Counter

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import records, traces
from analysis.errors import DataError

ledger = pytest.importorskip("analysis.ledger")

ballots = st.lists(st.sampled_from(["A", "B", "C", None]), min_size=1, max_size=7)


def as_frame(lines):
    """Long answers of one debate from (round, agent, vote)."""
    table = pd.DataFrame(lines, columns=["round", "agent", "answer"])
    table["agent"] = records.exact_ids(table["agent"].astype(object))
    return table.assign(row="m", question="q", replicate=0)


def lines_of(spec):
    if "rows" in spec or "results" in spec:
        return [(0, line["agent"], line["vote"]) for line in spec.get("rows", spec.get("results"))]
    if "rounds" in spec:
        return [(int(number), agent, vote) for number, votes in spec["rounds"].items()
                for agent, vote in (votes.items() if isinstance(votes, dict) else enumerate(votes))]
    votes = spec["votes"]
    return [(0, *pair) for pair in (votes.items() if isinstance(votes, dict) else enumerate(votes))]


def answer_case(spec, labels):
    """Translate what a case asks into calls; no rule of voting lives here."""
    answers = as_frame(lines_of(spec))
    raw = answers["answer"].astype(object)
    if spec.get("numeric"):
        answers["answer"] = pd.Series([traces.canonical_number(vote) for vote in raw], dtype="str")
    else:
        answers["answer"] = traces.clean_labels(raw, labels)
    if spec.get("per_agent") == "latest":
        answers = records.latest(answers, ["row", "question", "replicate", "round", "agent"])
    grid = {name: spec[name] for name in ("agents",) if name in spec}
    if "rounds" in spec:
        grid["rounds"] = [int(number) for number in spec["rounds"]]
        fill = traces.carry_forward if spec.get("missing") == "carry_forward" else traces.complete
        answers = fill(answers, **grid)
    if spec.get("ask", "").startswith("vote of "):
        return answers.set_index("agent")["answer"][spec["ask"].removeprefix("vote of ")]
    rule = spec.get("rule", "plurality").removesuffix("_majority")
    votes = ledger.majority(answers, tie=spec.get("tie", "undecided"), rule=rule,
                            denominator=spec.get("denominator", "valid"))
    use = spec.get("use_round", "last")
    elected = votes.loc[votes["round"] == (votes["round"].max() if use == "last" else use), "majority"].item()
    if spec.get("ask") == "credit":
        return int(not pd.isna(elected) and elected == spec["gold"])
    return "NONE" if pd.isna(elected) else elected


def test_shared_vote_cases(shared):
    table = pd.read_csv(shared / "cases" / "answer_cases.csv", dtype=str, keep_default_na=False)
    table = table[table["kind"] == "vote"]
    wrong = {}
    for case in table.itertuples():
        got = answer_case(json.loads(case.text), case.valid_labels)
        if str(got) != case.expected:
            wrong[case.case_id] = (case.expected, got)
    assert len(table) == 35
    assert not wrong


def test_votes_from_a_file_of_mixed_notation(tmp_path):
    path = tmp_path / "x.jsonl"
    votes = [("a", "(b)"), ("b", "B."), ("c", "A"), ("d", None), ("e", "None")]
    lines = [{"q": 7, "round": 0, "agent": agent, "answer": vote, "gold": "b"} for agent, vote in votes]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = ledger.majority(traces.read(path, labels="ABCD"), tie="undecided")
    assert found[["question", "majority", "n_valid"]].values.tolist() == [["7", "B", 3]]


def test_numbers_in_different_notation_are_one_vote(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('q,round,agent,answer,gold\n1,0,a,"1,000",1000\n1,0,b,$1000.0,1000\n'
                    "1,0,c,7,1000\n1,0,d,7.5,1000\n")
    found = ledger.majority(traces.read(path), tie="undecided")
    assert found["majority"].tolist() == ["1000"] and found["n_tied"].tolist() == [1]


def test_two_lines_of_one_agent_are_never_two_votes():
    with pytest.raises(DataError, match="agent 'a'"):
        ledger.majority(as_frame([(0, "a", "A"), (0, "a", "A"), (0, "b", "B")]))


@settings(max_examples=150, deadline=None)
@given(votes=ballots, denominator=st.sampled_from(["valid", "all"]),
       rule=st.sampled_from(["plurality", "strict"]), tie=st.sampled_from(["alphabetic", "undecided"]))
def test_majority_is_what_counting_by_hand_gives(votes, denominator, rule, tie):
    answers = as_frame([(0, f"a{number}", vote) for number, vote in enumerate(votes)])
    answers["answer"] = answers["answer"].astype("str")
    counts = Counter(vote for vote in votes if vote)
    best = max(counts.values(), default=0)
    leaders = sorted(label for label, count in counts.items() if count == best)
    expected = leaders[0] if leaders and (len(leaders) == 1 or tie == "alphabetic") else None
    if rule == "strict" and 2 * best <= (sum(counts.values()) if denominator == "valid" else len(votes)):
        expected = None
    found = ledger.majority(answers, tie=tie, rule=rule, denominator=denominator).iloc[0]
    assert (None if pd.isna(found["majority"]) else found["majority"]) == expected
    assert found["n_valid"] == sum(counts.values())


@settings(max_examples=60, deadline=None)
@given(votes=ballots, seed=st.integers(0, 99))
def test_the_order_of_lines_does_not_matter(votes, seed):
    answers = as_frame([(0, f"a{number}", vote) for number, vote in enumerate(votes)])
    answers["answer"] = answers["answer"].astype("str")
    mixed = answers.sample(frac=1, random_state=seed).reset_index(drop=True)
    pd.testing.assert_frame_equal(ledger.majority(mixed), ledger.majority(answers))
