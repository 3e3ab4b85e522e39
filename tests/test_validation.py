"""Checking cards and records: what a faulty one is told, field by field, and that the schemas agree."""

import copy
import gzip
import json
import re
from pathlib import Path

import jsonschema
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from analysis import cards, data, schemas, synthetic, validation
from analysis.errors import DataError

DATA = Path(__file__).resolve().parents[1] / "data"


def plain(one):
    """A card as a file would give it."""
    return json.loads(cards.to_json(one))


def checker(name):
    return jsonschema.Draft202012Validator(schemas.schema(name))


@pytest.fixture(scope="module")
def made():
    """A card with a reason for each gap and several gates."""
    return {"qwen3-8b": cards.card("qwen3-8b")}


# --- validation: a card -------------------------------------------------------------------------------------

FAULTS = {
    # what is done to the card -> field, value, expected
    "wrong type": (
        ("model_card", "debate_outcome_accounting", "n_debates"),
        "200",
        ("model_card.debate_outcome_accounting.n_debates", "'200'", "a valid integer"),
    ),
    "true for one": (
        ("model_card", "debate_outcome_accounting", "n_debates"),
        True,
        ("model_card.debate_outcome_accounting.n_debates", "True", "a valid integer"),
    ),
    "one for true": (("synthetic",), 1, ("synthetic", "1", "a valid boolean")),
    "negative": (
        ("model_card", "question_pool", "n_questions"),
        -1,
        ("model_card.question_pool.n_questions", "-1", "greater than or equal to 0"),
    ),
    "huge": (
        ("model_card", "question_pool", "n_questions"),
        10**30,
        ("model_card.question_pool.n_questions", "1" + "0" * 30, "less than or equal to 9007199254740991"),
    ),
    "rate above one": (
        ("model_card", "debate_outcome_accounting", "conditional_collapse_rate", "rate"),
        1.5,
        (
            "model_card.debate_outcome_accounting.conditional_collapse_rate.rate",
            "1.5",
            "less than or equal to 1",
        ),
    ),
    "unknown tier": (
        ("tiers", "identity.backend"),
        "closed",
        ("tiers.identity.backend", "'closed'", "'open', 'gated' or 'omitted'"),
    ),
    "unknown version": (("schema_version",), "2", ("schema_version", "'2'", "'reuse_card.v1'")),
    "empty name": (("row_id",), "", ("row_id", "''", "String should have at least 1 character")),
    "no list": (("model_card", "signed_utility"), {}, ("model_card.signed_utility", "{}", "a valid list")),
    "null group": (
        ("model_card", "release"),
        None,
        ("model_card.release", "None", "a valid dictionary or instance of Release"),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_is_one_problem_with_its_field_value_and_expectation(made, fault):
    place, value, wanted = FAULTS[fault]
    told = plain(made["qwen3-8b"])
    at = told
    for name in place[:-1]:
        at = at[name]
    at[place[-1]] = value
    found = cards.validate(told)
    assert found[["field", "value", "expected"]].values.tolist() == [list(wanted)]
    assert found[["file", "line", "lines"]].values.tolist() == [["(object)", 1, 1]]


@pytest.mark.parametrize("path", schemas.fields_of_card())
def test_every_field_of_a_card_must_be_there(made, path):
    told, (group, name) = plain(made["qwen3-8b"]), path.split(".")
    at = told["model_card"][group]
    for part in at if isinstance(at, list) else [at]:
        del part[name]
    found = cards.validate(told)
    assert len(found) == (len(at) if isinstance(at, list) else 1)
    assert set(found["value"]) == {"(missing)"} and set(found["expected"]) == {"a value"}
    assert set(found["field"].str.replace(r"\[\d+\]", "", regex=True)) == {f"model_card.{path}"}


def nested(told, place, value):
    told = copy.deepcopy(told)
    at = told
    for name in place[:-1]:
        at = at[name]
    at[place[-1]] = value
    return told


@pytest.mark.parametrize(
    "place, value, expected",
    [
        (("model_card", "debate_outcome_accounting", "conditional_collapse_rate", "k"), 4, "rate 0.0714"),
        (
            ("model_card", "debate_outcome_accounting", "conditional_collapse_rate", "k"),
            57,
            "k at most n, 56",
        ),
        (
            ("model_card", "debate_outcome_accounting", "conditional_collapse_rate", "low"),
            0.5,
            "low at most high, 0.14",
        ),
        (
            ("model_card", "debate_outcome_accounting", "collapse_onset_distribution", "2"),
            1,
            "at most as many onsets as collapses",
        ),
        (("model_card", "signed_utility", 0, "net_utility"), -67.0, "net_utility -68.0"),
        (
            ("model_card", "selection_time_fingerprint", "alpha_tot", "rate"),
            0.62,
            "the mean of the arms' rates",
        ),
        (("model_card", "identity", "backend"), None, "a reason under absent, for identity.backend"),
        (("absent",), {}, "for identity.model_version_or_snapshot, selection_time_fingerprint.n_probe_rows"),
        (("tiers",), {}, "a tier for each field; none for identity.model_name"),
        (("probe_jsonl_minimum",), {}, "none for probe_jsonl_minimum.schema_version"),
    ],
)
def test_numbers_and_reasons_that_contradict_each_other_are_told(made, place, value, expected):
    found = cards.validate(nested(plain(made["qwen3-8b"]), place, value))
    assert len(found) == 1 and expected in found["expected"].item()


def test_unknown_fields_are_kept(made):
    told = plain(made["qwen3-8b"])
    told["extra"] = {"a": [1, None]}
    told["model_card"]["debate_outcome_accounting"]["conditional_collapse_rate"]["remark"] = "mine"
    assert cards.validate(told).empty
    assert plain(schemas.ReuseCard.model_validate(told)) == told


def places(value, at=()):
    yield at
    for name, item in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from places(item, (*at, name))


EXAMPLE = plain(cards.card("qwen3-8b"))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda v: not v.is_integer())
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([place for place in places(EXAMPLE) if place]), JSON)
def test_the_stored_schema_and_the_model_agree(place, value):
    """With any part of a card replaced, the model refuses what the schema refuses, and contradictions."""
    told = nested(EXAMPLE, place, value)
    refused = not checker("reuse_card").is_valid(told)
    try:
        schemas.ReuseCard.model_validate(told)
        found = []
    except ValueError as problem:
        found = problem.errors()
    assert refused <= bool(found)
    if found and not refused:
        assert {error["type"] for error in found} == {"value_error"}


# --- validation: records ------------------------------------------------------------------------------------

LAYOUT_A = {
    "question_id": "q1",
    "correct_label": "A",
    "model": "m",
    "initial_answers": ["A", None, "B"],
    "initial_majority": "A",
    "initial_correct": True,
    "round_traces": [{"round": 1, "answers": ["A", "A", None], "majority": "A"}],
    "final_answers": ["A", "A", None],
    "majority_answer": "A",
    "final_correct": True,
    "collapsed": False,
    "corrected": False,
}
STATE = {"agent_id": "agent_1", "answer": "A", "reasoning": None, "round_num": 0, "cost": 0.001}
LAYOUT_B = {
    "question_id": 17,
    "correct_label": "A",
    "model_name": "m",
    "backend": "vllm",
    "initial_states": [STATE, STATE | {"agent_id": 2, "answer": None}],
    "round_traces": [[STATE | {"round_num": 1}], [STATE | {"round_num": 2}]],
    "majority_answer": "",
    "usage": {"prompt_tokens": 5},
    "timestamp": 1777344002.0,
}
PROBE = synthetic.probes(1)[0]
LINE = {
    "schema_version": "per_debate_r1_features.v1",
    "row_id": "r1",
    "model_id": "m",
    "benchmark": "b",
    "question_id": "q",
    "initial_majority_correct": True,
    "final_majority_correct": False,
    "collapsed": True,
    "corrected": False,
    "collapse_onset_round": 1,
    "init_unanimous": None,
    "r1_majority_changed": True,
    "r1_n_flipped_from_initial": 2,
    "r1_agree_frac": 1,
    "release_tier": "open_derived",
    "provenance": {"seed": 1, "note": None},
}
SHORT = {
    "schema_version": "1",
    "question_id": "q",
    "source": "m",
    "initial_majority_correct": True,
    "final_majority_correct": False,
    "collapsed": True,
    "corrected": False,
    "init_unanimous": True,
    "r1_majority_changed": True,
    "r1_n_flipped": 2,
    "r1_flip_frac": 0.5,
    "release_tier": "open",
}
RECORDS = {
    "debate_layout_a": LAYOUT_A,
    "debate_layout_b": LAYOUT_B,
    "probe_record": PROBE,
    "feature_line": LINE,
    "feature_minimum": SHORT,
}


@pytest.mark.parametrize("name", RECORDS)
def test_records_of_every_layout_are_known_and_accepted(name):
    assert validation.kind(RECORDS[name]) == name
    assert cards.validate(RECORDS[name]).empty
    assert checker(name).is_valid(RECORDS[name])


@pytest.mark.parametrize(
    "name, change, wanted",
    [
        ("debate_layout_a", {"initial_answers": ["A", 1]}, ("initial_answers[1]", "1", "a valid string")),
        (
            "debate_layout_a",
            {"initial_answers": []},
            ("initial_answers", "[]", "List should have at least 1 item after validation, not 0"),
        ),
        (
            "debate_layout_a",
            {"round_traces": [{"round": 0, "answers": []}]},
            ("round_traces[0].round", "0", "greater than or equal to 1"),
        ),
        (
            "debate_layout_a",
            {"question_id": None},
            ("question_id", "None", "a valid string or a valid integer"),
        ),
        (
            "debate_layout_b",
            {"initial_states": [{"answer": "A"}]},
            ("initial_states[0].agent_id", "(missing)", "a value"),
        ),
        (
            "debate_layout_b",
            {"round_traces": [[STATE], [STATE | {"answer": 5}]]},
            ("round_traces[1][0].answer", "5", "a valid string"),
        ),
        (
            "probe_record",
            {"condition": "social"},
            ("condition", "'social'", "'default', 'anti_social' or 'anti_argument'"),
        ),
        ("probe_record", {"alpha_total": 1.2}, ("alpha_total", "1.2", "less than or equal to 1")),
        (
            "probe_record",
            {"probe_results": [{"revised": 1}]},
            ("probe_results[0].revised", "1", "a valid boolean"),
        ),
        ("feature_line", {"collapsed": 1}, ("collapsed", "1", "a valid boolean")),
        ("feature_line", {"text": "a reply"}, ("text", "'a reply'", "no such field")),
        (
            "feature_line",
            {"release_tier": "open"},
            ("release_tier", "'open'", "'open_derived' or 'gated_trace_derived'"),
        ),
        (
            "feature_line",
            {"collapse_onset_round": 0},
            ("collapse_onset_round", "0", "greater than or equal to 1"),
        ),
    ],
)
def test_a_fault_in_a_record_is_told(name, change, wanted):
    found = cards.validate(RECORDS[name] | change, schema=name)
    assert [tuple(line) for line in found[["field", "value", "expected"]].values.tolist()] == [wanted]
    assert not checker(name).is_valid(RECORDS[name] | change)


@pytest.mark.parametrize("name", RECORDS)
def test_other_fields_are_kept_except_in_a_feature_line(name):
    told = RECORDS[name] | {"mine": [1]}
    assert len(cards.validate(told, schema=name)) == (name == "feature_line")
    if name != "feature_line":
        assert schemas.SCHEMAS[name].model_validate(told).model_extra == {"mine": [1]}


def test_the_shipped_examples_are_as_they_should_be():
    for file in ("synthetic_debates.jsonl", "synthetic_probes.jsonl"):
        assert cards.validate(DATA / "examples" / file).empty


def test_the_released_matrix_is_told_field_by_field():
    """Required and not there, there and unknown, flags stored as numbers: told by names and cells alone."""
    found = cards.validate(DATA / "debates.csv")
    columns = pd.read_csv(DATA / "debates.csv", nrows=1).columns
    listed = data.table("released_layouts").query("layout == 'per_debate_r1_features'").set_index("field")
    gone = {name for name in listed.index[listed["required"] == "true"] if name not in columns}
    new = {name for name in columns if name not in listed.index}
    flags = {name for name in columns if name in listed.index and "boolean" in listed.loc[name, "type"]}
    told = found.set_index("field")
    assert set(told.index[told["value"] == "(missing)"]) == gone
    assert set(told.index[told["expected"] == "no such field"]) == new
    assert set(told.index[told["expected"] == "a valid boolean"]) == flags
    assert len(told) == len(gone) + len(new) + len(flags) == 25
    assert set(told["lines"]) == {len(data.debates())} and set(told["line"]) == {2}


# --- validation: files --------------------------------------------------------------------------------------


def put(tmp_path, content, name="file.json"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


GOOD = json.dumps(EXAMPLE)


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        json.dumps(EXAMPLE, indent=2),
        "\ufeff" + GOOD,
        f"[{GOOD}, {GOOD}]",
        GOOD + "\n" + GOOD + "\n\n",
        gzip.compress(GOOD.encode()),
    ],
)
def test_a_card_is_read_from_every_kind_of_file(tmp_path, content):
    assert cards.validate(put(tmp_path, content)).empty


@pytest.mark.parametrize(
    "content, line, expected",
    [
        (GOOD[:-1], 1, "JSON: "),
        (json.dumps(EXAMPLE, indent=1).replace('"kind"', "kind"), 4, "JSON: Expecting property name"),
        (GOOD.replace("0.0", "NaN", 1), 1, "JSON: NaN is no number of JSON"),
        (re.sub(r'"n_debates": \d+', '"n_debates": 1e999', GOOD), 1, "JSON: 1e999 is beyond the numbers"),
        (re.sub(r'"n_debates": \d+', '"n_debates": ' + "9" * 5000, GOOD), 1, "JSON: Exceeds the limit"),
        (GOOD.replace('"kind": "paper"', '"kind": "paper", "kind": "added"'), 1, "key 'kind' is there twice"),
        ("[" * 100_000, 1, "JSON: "),
        ('{"a":' * 100_000, 1, "JSON: "),
        ("[1]", 1, "an object"),
        (GOOD + "\n" + GOOD[:50], 2, "one JSON object a line"),
    ],
)
def test_what_is_no_json_is_told_with_its_line(tmp_path, content, line, expected):
    path = put(tmp_path, content)
    found = cards.validate(path)
    assert len(found) == 1 and found["file"].item() == str(path)
    assert found["line"].item() == line and expected in found["expected"].item()
    assert len(found["value"].item()) < 100


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "the file is empty"),
        ("  \n", "the file is empty"),
        (b"\xff\xfe\x00", "line 1: not UTF-8"),
        ("[]", "the file is empty"),
        ("a,b\n1,2\n", "line 1: columns a, b; expected those of one of reuse_card, "),
        ("{}", "line 1: fields (none); expected those of one of reuse_card, "),
        ('{"a": 1}', "line 1: fields a; expected those of one of reuse_card, "),
        ("hello", "line 1: columns hello; expected"),
        (gzip.compress(GOOD.encode())[:-9], "cut or faulty"),
    ],
)
def test_what_cannot_be_checked_is_refused(tmp_path, content, message):
    with pytest.raises(DataError, match=re.escape(message)):
        cards.validate(put(tmp_path, content))


def test_a_folder_a_missing_file_and_an_unknown_schema_are_refused(tmp_path):
    with pytest.raises(DataError, match="is a directory; expected one file"):
        cards.validate(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        cards.validate(tmp_path / "none.json")
    with pytest.raises(ValueError, match="schema='x': expected one of reuse_card, "):
        cards.validate(EXAMPLE, schema="x")


def test_lines_of_a_file_are_counted_and_the_first_is_named(tmp_path):
    good, bad = json.dumps(LAYOUT_A), json.dumps(LAYOUT_A | {"collapsed": 0})
    found = cards.validate(put(tmp_path, "\n".join([good, "", bad, good, bad, bad]), "debates.jsonl"))
    assert found[["line", "field", "value", "lines"]].values.tolist() == [[3, "collapsed", "0", 3]]


def test_cells_of_a_csv_file_are_read_by_the_type_that_is_wanted(tmp_path):
    told = {name: value for name, value in LINE.items() if name != "provenance"} | {"question_id": "17"}
    cells = {
        name: "" if value is None else json.dumps(value) if not isinstance(value, str) else value
        for name, value in told.items()
    }
    header, line = ",".join(cells), ",".join(cells.values())
    good = put(tmp_path, f"{header}\n{line}\n", "good.csv")
    assert cards.validate(good).empty
    odd = put(tmp_path, f"{header}\n{line},x\n{line.replace('true', 'yes', 1)}\n", "odd.csv")
    found = cards.validate(odd)
    assert found[["line", "field", "value"]].values.tolist() == [
        [2, "(line)", f"{len(told) + 1} cells"],
        [3, "initial_majority_correct", "'yes'"],
    ]
    assert (
        cards.validate(put(tmp_path, f'{header}\n"{line}\n', "open.csv"))["expected"]
        .str.startswith("CSV: ")
        .all()
    )


def test_a_file_full_of_faults_is_told_in_bounded_length(tmp_path):
    lines = "\n".join(json.dumps(LINE | {f"new_{i}_{k}": 1 for k in range(40)}) for i in range(200))
    found = cards.validate(put(tmp_path, lines, "lines.jsonl"))
    assert validation.LISTED < len(found) < 2 * validation.LISTED


def test_names_of_fields_cannot_write_over_lines():
    found = cards.validate(LINE | {"a\x1b[2J\nb": 1, "x" * 1000: 1})
    assert all(field.isprintable() and len(field) <= 120 for field in found["field"])


def test_an_object_with_a_number_that_has_no_text_is_told():
    found = cards.validate(nested(EXAMPLE, ("model_card", "question_pool", "n_questions"), 10**5000))
    assert found["value"].item() == "(a number too long to show)"


