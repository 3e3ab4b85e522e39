"""Record files: what is written is read, and whatever is wrong is named with its file and line."""

import json

import pandas as pd
import pytest

from analysis import data
from analysis.errors import DataError
from analysis.layers import judge, records, selfreport

GOOD = {
    "debates": [{"debate_id": "d", "question_id": "q", "composition": "c", "stance": "hostile",
                 "timing": "after", "max_iterations": 1, "status": "completed", "more": "kept"}],
    "turns": [{"turn_id": "r", "debate_id": "d", "member_id": "a", "parent_id": None, "iteration": 0,
               "agreed_level": None, "agreed_level_explicit": False, "opinion_shift": None},
              {"turn_id": "t", "debate_id": "d", "member_id": "b", "parent_id": "r", "iteration": 1,
               "agreed_level": "fully_disagreed", "agreed_level_explicit": True, "opinion_shift": 2}],
    "judgements": [{"turn_id": "t", "judge_model": "j", "judge_family": "f", "severity": None,
                    "move_type": None, "payload_hash": "h"}],
    "requeries": [{"turn_id": "t", "question_id": "q", "stance_arm": "hostile", "leg": leg, "iteration": 1,
                   "own_opinion_exact": True, "agreed_level": None, "agreed_level_explicit": False}
                  for leg in ("removed", "retained")],
    "votes": [{"pair_id": "d", "question_id": "q", "judge_model": "j", "order": "AB", "verdict": None}],
    "outcomes": [{"item_id": "i", "arm": arm, "judge_model": "j", "attempted": right is not None,
                  "correct": right} for arm, right in (("none", True), ("after", None))],
    "ledger": [{"run_id": "r", "call_id": "c", "item_id": "i", "arm": "none", "model": "m", "role": "member",
                "status": "ok", "prompt_tokens": 3, "completion_tokens": 0, "reasoning_tokens": None}],
    "reads": [{"read_id": f"x{phase}", "receiver_model": "m", "proposition_id": "p", "phase": phase,
               "logprob": [-1.0] * 6 + [None],
               "generation_mode": "reasoning_off", "probe_mode": "reasoning_off",
               "n_prompt_tokens": 3} for phase in ("prior", "treat", "control")],
    "cells": [{"receiver": "m", "opponent": "o", "proposition_id": "p", "stance": "hostile", "kind": "strong",
               "pole": -1, "prior": "xprior", "treat": "xtreat", "control": "xcontrol"}],
    "option_maps": [{"question_id": "q", "member_id": "a", "arm": "debate", "stage": "first",
                     "options": ["y", "n"], "probs": [0.5, 0.25, 0.25]}],
}


def put(folder, kind, rows):
    (folder / f"{kind}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    for kind, rows in GOOD.items():
        put(tmp_path, kind, rows)
    return tmp_path


def test_records_come_back_as_they_were_written(folder, tmp_path):
    found = records.check(folder)
    assert set(found) == set(GOOD) and found["debates"]["more"].tolist() == ["kept"]
    read = selfreport.debate_turns(found["debates"], found["turns"])
    assert read[["severity", "opinion_shift"]].values.tolist() == [[3, 2]]
    # A yes beside a null stays a yes, and a whole number whole.
    assert found["outcomes"]["correct"].tolist() == [True, None]
    assert found["ledger"]["completion_tokens"].tolist() == [0]
    for kind, frame in found.items():
        again = records.read(records.write(frame, tmp_path / "again.jsonl"), kind)
        pd.testing.assert_frame_equal(again, frame)


@pytest.mark.parametrize(("kind", "line", "field", "value", "message"), [
    ("debates", 1, "stance", "rude", "debates.jsonl, line 1, field 'stance': 'rude', expected one of friend"),
    ("debates", 1, "stance", None, "line 1, field 'stance': missing"),
    ("turns", 2, "agreed_level", "agreed", "turns.jsonl, line 2, field 'agreed_level': 'agreed'"),
    ("turns", 2, "opinion_shift", 9, "line 2, field 'opinion_shift': 9"),
    ("turns", 2, "debate_id", "e", "line 2, field 'debate_id': 'e', expected a debate_id of the other"),
    ("turns", 2, "parent_id", "s", "line 2, field 'parent_id': 's', expected a turn_id of the other"),
    ("turns", 2, "turn_id", "r", "turn_id='r': 2 rows, expected one"),
    ("judgements", 1, "turn_id", "r", "line 1, field 'turn_id': 'r', expected a turn that answers"),
    ("judgements", 1, "severity", 4, "line 1, field 'severity': 4"),
    ("debates", 1, "max_iterations", -1, "field 'max_iterations': -1, expected a whole number from 0"),
    ("turns", 2, "iteration", 1.5, "line 2, field 'iteration': 1.5, expected a whole number"),
    ("turns", 2, "iteration", 0, "turn_id 't', field 'iteration': 0, expected 1 or more with a parent"),
    ("turns", 2, "debate_id", 7, "line 2, field 'debate_id': 7, expected a text"),
    ("turns", 2, "agreed_level_explicit", 1, "field 'agreed_level_explicit': 1, expected one of True, False"),
    ("turns", 1, "agreed_level", "fully_agreed", "turn_id 'r', .*expected no label on a first opinion"),
    ("debates", 1, "timing", "none", "turn_id 't', .*expected no debate turns at timing 'none'"),
    ("judgements", 1, "severity", True, "line 1, field 'severity': True, expected one of 0, 1, 2, 3"),
    ("requeries", 1, "leg", "draw1", "field 'leg': 'draw1', expected a leg of its arm: hostile removed"),
    ("requeries", 2, "turn_id", "r", "line 2, field 'turn_id': 'r', expected a turn that answers another"),
    ("votes", 1, "verdict", "A", "line 1, field 'verdict': 'A', expected one of first, second, tie"),
    ("ledger", 1, "role", "cook", "line 1, field 'role': 'cook', expected one of member"),
    ("reads", 1, "logprob", [0.0] * 6, r"line 1, field 'logprob': \[.* expected a list of 7 numbers"),
    ("reads", 1, "logprob", {"a": 1}, r"line 1, field 'logprob': \{"),
    ("debates", 1, "stance", ["hostile"], r"line 1, field 'stance': \['hostile'\], expected one of"),
    ("cells", 1, "control", "x", "line 1, field 'control': 'x', expected a read_id of the other"),
    ("cells", 1, "pole", 0, "line 1, field 'pole': 0, expected one of -1, 1"),
    ("option_maps", 1, "probs", [0.5, 0.5], "field 'probs': .*, expected one number an option and one for"),
    ("option_maps", 1, "probs", [1.5, -0.25, -0.25], "field 'probs': .*, expected a list of numbers from 0"),
    ("option_maps", 1, "probs", [0.5, 0.5, 0.5], "field 'probs': sum 1.5, expected 1"),
])
def test_what_is_wrong_is_named(folder, kind, line, field, value, message):
    rows = [dict(row) for row in GOOD[kind]]
    rows[line - 1][field] = value
    put(folder, kind, rows)
    with pytest.raises(DataError, match=message):
        records.check(folder)


def test_files_that_are_no_records_are_refused(tmp_path):
    path = tmp_path / "turns.jsonl"
    for text, message in (("", "empty, expected turns"),
                          ('{"turn_id": "a"}\n[1]\n', "line 2: list, expected a JSON object"),
                          ("\n{torn", "line 2: no JSON object"),
                          ('{"iteration": NaN}', "line 1: no JSON object .NaN is no JSON number"),
                          ('{"turn_id": "a"}', "no field 'debate_id'")):
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            records.read(path, "turns")
    path.write_bytes(b"\xff\xfe{")
    with pytest.raises(DataError, match="expected UTF-8"):
        records.read(path, "turns")
    with pytest.raises(ValueError, match="kind='notes': expected one of debates"):
        records.read(path, "notes")


def test_a_text_with_an_odd_line_break_stays_one_record(folder):
    text = "first\u2028second\x85third"
    records.write(pd.DataFrame(GOOD["debates"]).assign(synthesis_text=text), folder / "debates.jsonl")
    assert records.read(folder / "debates.jsonl", "debates")["synthesis_text"].tolist() == [text]


def test_where_there_are_texts_a_judge_must_have_seen_them_alone(folder):
    root, reply = GOOD["turns"]
    put(folder, "turns", [root | {"text": "parent"}, reply | {"text": "reply"}])
    for seen, blind in ((("parent", "reply"), True), (("parent, hostile", "reply"), False)):
        put(folder, "judgements", [GOOD["judgements"][0] | {"payload_hash": judge.payload_hash(*seen)}])
        if blind:
            records.check(folder)
        else:
            with pytest.raises(DataError, match="turn_id 't', field 'payload_hash'.* the judge was blind"):
                records.check(folder)


def test_a_single_kind_may_stand_alone(tmp_path):
    put(tmp_path, "judgements", GOOD["judgements"])
    assert list(records.check(tmp_path)) == ["judgements"]


def test_the_records_of_our_own_run_are_sound():
    folders = sorted(path for path in (data.root() / "layers" / "demo").glob("*") if path.is_dir())
    if not folders:
        pytest.skip("no records of a run of our own under data/layers/demo")
    for folder in folders:
        assert records.check(folder)
