"""Record files: what is written is read, and whatever is wrong is named with its file and line."""

import json

import pandas as pd
import pytest

from analysis.errors import DataError
from analysis.layers import records, selfreport

GOOD = {
    "debates": [{"debate_id": "d", "question_id": "q", "composition": "c", "stance": "hostile", "timing": "after",
                 "max_iterations": 1, "status": "completed", "more": "kept"}],
    "turns": [{"turn_id": "r", "debate_id": "d", "member_id": "a", "parent_id": None, "iteration": 0,
               "agreed_level": None, "agreed_level_explicit": False, "opinion_shift": None},
              {"turn_id": "t", "debate_id": "d", "member_id": "b", "parent_id": "r", "iteration": 1,
               "agreed_level": "fully_disagreed", "agreed_level_explicit": True, "opinion_shift": 2}],
    "judgements": [{"turn_id": "t", "judge_model": "j", "judge_family": "f", "severity": None, "move_type": None,
                    "payload_hash": "h"}],
    "reads": [{"read_id": f"x{phase}", "receiver_model": "m", "proposition_id": "p", "phase": phase,
               "logprob": [-1.0] * 7, "generation_mode": "reasoning_off", "probe_mode": "reasoning_off",
               "n_prompt_tokens": 3} for phase in ("prior", "treat", "control")],
    "cells": [{"receiver": "m", "opponent": "o", "proposition_id": "p", "stance": "hostile", "kind": "strong",
               "pole": -1, "prior": "xprior", "treat": "xtreat", "control": "xcontrol"}],
    "option_maps": [{"question_id": "q", "member_id": "a", "arm": "debate", "stage": "first", "options": ["y", "n"],
                     "probs": [0.5, 0.25, 0.25]}],
}


@pytest.fixture
def folder(tmp_path):
    for kind, rows in GOOD.items():
        (tmp_path / f"{kind}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return tmp_path


def test_records_come_back_as_they_were_written(folder, tmp_path):
    found = records.check(folder)
    assert set(found) == set(GOOD) and found["debates"]["more"].tolist() == ["kept"]
    read = selfreport.debate_turns(found["debates"], found["turns"])
    assert read[["severity", "opinion_shift"]].values.tolist() == [[3, 2]]
    for kind, frame in found.items():
        again = records.read(records.write(frame, tmp_path / "again.jsonl"), kind)
        pd.testing.assert_frame_equal(again, frame)


@pytest.mark.parametrize(("kind", "line", "field", "value", "message"), [
    ("debates", 1, "stance", "rude", "debates.jsonl, row 1, field 'stance': 'rude', expected one of friendly"),
    ("debates", 1, "stance", None, "row 1, field 'stance': missing"),
    ("turns", 2, "agreed_level", "agreed", "turns.jsonl, row 2, field 'agreed_level': 'agreed'"),
    ("turns", 2, "opinion_shift", 9, "row 2, field 'opinion_shift': 9"),
    ("turns", 2, "debate_id", "e", "row 2, field 'debate_id': 'e' is not in the other records"),
    ("turns", 2, "parent_id", "s", "row 2, field 'parent_id': 's' is not in the other records"),
    ("turns", 2, "turn_id", "r", "turn_id='r': 2 rows, expected one"),
    ("judgements", 1, "turn_id", "r", "row 1, field 'turn_id': 'r' is not in the other records"),
    ("judgements", 1, "severity", 4, "row 1, field 'severity': 4"),
    ("reads", 1, "logprob", [0.0] * 6, "row 1, field 'logprob': .* expected 7 numbers"),
    ("cells", 1, "control", "x", "row 1, field 'control': 'x' is not in the other records"),
    ("cells", 1, "pole", 0, "row 1, field 'pole': 0, expected one of -1, 1"),
    ("option_maps", 1, "probs", [0.5, 0.5], "row 1, field 'probs': 2 numbers, expected 3"),
    ("option_maps", 1, "probs", [0.5, 0.5, 0.5], "field 'probs': sum 1.5, expected 1"),
])
def test_what_is_wrong_is_named(folder, kind, line, field, value, message):
    rows = [dict(row) for row in GOOD[kind]]
    rows[line - 1][field] = value
    (folder / f"{kind}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        records.check(folder)


def test_files_that_are_no_records_are_refused(tmp_path):
    path = tmp_path / "turns.jsonl"
    for text, message in (("", "empty, expected turns"), ('{"turn_id": "a"}\n[1]\n', "line 2: list, expected a JSON object"),
                          ("\n{torn", "line 2: no JSON object"), ('{"turn_id": "a"}', "no field 'debate_id'")):
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            records.read(path, "turns")
    path.write_bytes(b"\xff\xfe{")
    with pytest.raises(DataError, match="expected UTF-8"):
        records.read(path, "turns")
    with pytest.raises(ValueError, match="kind='notes': expected one of debates"):
        records.read(path, "notes")
