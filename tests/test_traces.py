"""Reading debate traces: layouts, damage, ids, and the checks before anything is counted."""

import base64
import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import records, traces
from analysis.errors import DataError

COLUMNS = ["row", "question", "replicate", "round", "agent", "answer", "gold"]


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def long_lines(questions=("q1", "q2"), rounds=(0, 1), agents=("a", "b"), **extra):
    return [{"question": q, "round": r, "agent": a, "answer": "A" if a == "a" else "B", "gold": "B"} | extra
            for q in questions for r in rounds for a in agents]


def jsonl(lines):
    return "".join(json.dumps(line) + "\n" for line in lines)


def frame(lines=None, **changes):
    lines = long_lines() if lines is None else lines
    return pd.DataFrame(lines).assign(row="m", replicate=0)[COLUMNS].assign(**changes)


def none_to_na(values):
    return [None if value != value else value for value in values]


# --- shared cases -------------------------------------------------------------------------------------------


def cases(shared, kind):
    table = pd.read_csv(shared / "cases" / "answer_cases.csv", dtype=str, keep_default_na=False)
    return [row for row in table[table["kind"] == kind].itertuples()]


def case_file(spec, folder):
    """Write the file of a case as it is described."""
    if "gz_b64" in spec:
        return write(folder, "case.jsonl", base64.b64decode(spec["gz_b64"]))
    if "build" not in spec:
        return write(folder, "case.jsonl", spec["file"])
    rows = [{k: v["repeat"] * v["times"] if isinstance(v, dict) else v for k, v in row.items()}
            for row in spec["build"]]
    if spec.get("format") == "csv":
        return write(folder, "case.csv", pd.DataFrame(rows).to_csv(index=False))
    return write(folder, "case.jsonl", jsonl(rows))


def answer_case(spec, path, labels):
    """Translate what a case asks into calls; no rule of reading lives here."""
    ask = spec["ask"]
    found, damage = records.records(path)
    if ask == "rows":
        return len(found)
    if ask == "is_damaged":
        return int(bool(damage))
    if ask == "distinct_rows":
        return len(records.latest(found, spec["key"]))
    if ask == "distinct_questions":
        return len(records.latest(found, spec["key"]))
    if ask == "distinct doc_id":
        return records.exact_ids(found["doc_id"]).nunique()
    if ask == "accuracy":
        found = found[found["filter"] == spec["filter"]]
        return (traces.clean_labels(found["answer"], labels) == found["gold"]).mean()
    again = "last" if "key" in spec else "error"
    answers = traces.read(path, labels=labels, on_damage="drop", on_duplicate=again)
    if ask in ("answered", "unanswered"):
        return int((answers["answer"].notna() if ask == "answered" else answers["answer"].isna()).sum())
    if ask in ("missing_cells", "complete_rounds"):
        counts = traces.coverage(answers, agents=spec["agents"], rounds=spec["rounds"])
        lacking = counts["expected"] - counts["present"]
        return int(lacking.sum() if ask == "missing_cells" else (lacking == 0).sum())
    answers["answer"] = traces.clean_labels(answers["answer"], labels)
    if ask == "votes for B":
        return int((answers["answer"] == "B").sum())
    assert ask == "majority"
    ledger = pytest.importorskip("analysis.ledger")
    votes = ledger.majority(answers, tie="undecided").sort_values("round")
    assert "use_round" in spec or len(votes) == 1
    elected = votes["majority"].iloc[-1]
    return "NONE" if pd.isna(elected) else elected


def test_shared_trace_cases(shared, tmp_path):
    wrong, ran = {}, 0
    for case in cases(shared, "trace"):
        spec = json.loads(case.text)
        folder = tmp_path / case.case_id
        folder.mkdir()
        got = answer_case(spec, case_file(spec, folder), case.valid_labels)
        ran += 1
        if str(got) != case.expected:
            wrong[case.case_id] = (case.expected, got)
    assert ran == 40
    assert not wrong


# --- long ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("kind", ["csv", "semicolon", "tab", "jsonl", "array", "parquet"])
def test_long_in_every_container_gives_the_same_frame(tmp_path, kind, zipped):
    lines = long_lines()
    lines[1]["answer"] = None
    path = tmp_path / "some.data"  # the name says nothing: the content decides
    table = pd.DataFrame(lines)
    if kind == "parquet":
        table.to_parquet(path)
    else:
        mark = {"csv": ",", "semicolon": ";", "tab": "\t"}.get(kind)
        as_json = jsonl(lines) if kind == "jsonl" else json.dumps(lines)
        path.write_text(table.to_csv(index=False, sep=mark) if mark else as_json)
    if zipped:
        path.write_bytes(gzip.compress(path.read_bytes()))
    found = traces.read(path)
    assert list(found.columns) == COLUMNS
    assert found["row"].unique().tolist() == ["some"]
    assert none_to_na(found["answer"]) == ["A", None, "A", "B", "A", "B", "A", "B"]
    assert found["round"].tolist() == [0, 0, 1, 1] * 2 and found["round"].dtype == "int64"
    assert found["replicate"].eq(0).all() and found["gold"].eq("B").all()
    for name in ("row", "question", "agent", "answer", "gold"):
        assert isinstance(found[name].dtype, pd.StringDtype)
    assert traces.validate(found, labels="AB")["answer"].isna().sum() == 1


def test_aliases_and_unknown_columns_are_kept(tmp_path):
    head = "QID,Round_Num,agent_idx,Vote,correct_label,seconds,note\n"
    path = write(tmp_path, "x.csv", head + "1,0,0,A,A,1.5,NA\n1,1,0,b,A,2,\n")
    found = traces.read(path, row="mine")
    assert list(found.columns) == [*COLUMNS, "seconds", "note"]
    assert found["answer"].tolist() == ["A", "B"] and found["row"].tolist() == ["mine", "mine"]
    assert found["note"].tolist() == ["NA", ""]


def test_row_comes_from_file_then_argument_then_model_then_stem(tmp_path):
    lines = long_lines()
    assert traces.read(write(tmp_path, "stem.v2.jsonl", jsonl(lines)))["row"].unique().tolist() == ["stem.v2"]
    with_model = write(tmp_path, "b.jsonl", jsonl([line | {"model": "lab/m"} for line in lines]))
    assert traces.read(with_model)["row"].unique().tolist() == ["lab/m"]
    assert traces.read(with_model, row="arg")["row"].unique().tolist() == ["arg"]
    with_row = write(tmp_path, "c.jsonl", jsonl([line | {"row": "own"} for line in lines]))
    assert traces.read(with_row, row="arg")["row"].unique().tolist() == ["own"]


def test_words_for_missing_are_missing_answers_but_real_ids(tmp_path):
    words = "".join(f"null,0,{word},{word},B\n" for word in ("NA", "null", "None", "nan", "N/A"))
    text = "q,round,agent,answer,gold\n" + words + "null,0,x,  ,B\nnull,0,y,,B\n"
    found = traces.read(write(tmp_path, "x.csv", text))
    assert found["answer"].isna().all()
    assert found["agent"].tolist() == ["NA", "null", "None", "nan", "N/A", "x", "y"]
    assert found["question"].unique().tolist() == ["null"]


def test_parquet_ids_keep_their_last_digit_beside_a_missing_side_field(tmp_path):
    lines = long_lines(questions=(2**60 + 1, 2**60 + 2))
    table = pd.DataFrame(lines).assign(count=pd.array([2**60 + 1] * 7 + [None], dtype="Int64"))
    table.to_parquet(tmp_path / "x.parquet")
    found = traces.read(tmp_path / "x.parquet")
    assert found["question"].unique().tolist() == [str(2**60 + 1), str(2**60 + 2)]
    assert found["count"].iloc[0] == 2**60 + 1


def test_parquet_dictionaries_become_strings(tmp_path):
    table = pd.DataFrame(long_lines()).astype(dict.fromkeys(("question", "answer", "agent"), "category"))
    table.loc[1, "answer"] = None
    table.to_parquet(tmp_path / "x.parquet")
    found = traces.read(tmp_path / "x.parquet")
    assert none_to_na(found["answer"]) == ["A", None, "A", "B", "A", "B", "A", "B"]
    assert traces.validate(found, labels="AB").attrs["completed"] == 0


def test_ids_in_batches_of_different_kind_stay_exact(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "BATCH", 1)
    monkeypatch.setattr(records, "BLOCK", 64)
    big = 2**60 + 1
    lines = [{"q": big, "agent": "a", "answer": "A", "n": 3},
             {"q": str(big + 1), "agent": "a", "answer": None, "n": None}] * 2
    path = write(tmp_path, "x.jsonl", jsonl(lines))
    found, damage = records.records(path)
    assert records.exact_ids(found["q"]).tolist() == [str(big), str(big + 1)] * 2
    assert found["n"].tolist()[0] == 3 and isinstance(found["n"].tolist()[0], int)
    assert found.index.tolist() == [1, 2, 3, 4] and not damage


@pytest.mark.parametrize("field, value, hope", [
    ("round", "x", "expected a whole number"), ("round", 1.5, "expected a whole number"),
    ("round", None, "expected a whole number"), ("replicate", "one", "expected a whole number"),
    ("agent", "", "expected a name or id"), ("question", None, "expected a name or id"),
])
def test_a_bad_cell_is_named_with_file_line_and_field(tmp_path, field, value, hope):
    lines = [line | {"replicate": 0} for line in long_lines()]
    lines[2][field] = value
    with pytest.raises(DataError, match=rf"x\.jsonl, line 3, field '{field}': .*{hope}"):
        traces.read(write(tmp_path, "x.jsonl", jsonl(lines)))


@pytest.mark.parametrize("drop", ["question", "agent", "answer"])
def test_a_missing_column_is_named(tmp_path, drop):
    lines = [{k: v for k, v in line.items() if k != drop} for line in long_lines()]
    with pytest.raises(DataError, match=f"columns missing: {drop}.*found: "):
        traces.read(write(tmp_path, "x.jsonl", jsonl(lines)))


def test_missing_round_or_gold_is_read_but_not_validated(tmp_path):
    lines = [{k: v for k, v in line.items() if k != "gold"} for line in long_lines()]
    found = traces.read(write(tmp_path, "x.jsonl", jsonl(lines)))
    with pytest.raises(DataError, match="x.jsonl: column 'gold' is missing"):
        traces.validate(found)
    lines = [{k: v for k, v in line.items() if k != "round"} for line in long_lines(rounds=(0,))]
    found = traces.read(write(tmp_path, "y.jsonl", jsonl(lines)))
    assert found["round"].eq(0).all()
    with pytest.raises(DataError, match="only round 0.*is the column 'round' missing"):
        traces.validate(found)


def test_duplicates_are_refused_or_the_later_wins(tmp_path):
    lines = long_lines()
    path = write(tmp_path, "x.jsonl", jsonl([*lines, lines[3] | {"answer": "A"}]))
    hope = r"x\.jsonl, line 9, field 'agent': a second line for .*question 'q1'.*round 1, agent 'b'"
    with pytest.raises(DataError, match=hope):
        traces.read(path)
    found = traces.read(path, on_duplicate="last")
    assert len(found) == 8 and found["answer"].tolist()[3] == "A" and found["agent"].tolist()[3] == "b"


def test_unfinished_replies_hold_no_answer_even_in_their_text(tmp_path):
    lines = long_lines(questions=("q1",), rounds=(0,), agents=("a", "b", "c", "d"))
    for line, status in zip(lines, ["ok", "error", "stopped", None], strict=True):
        line["status"] = status
    lines[1] |= {"answer": None, "text": "Final Answer: B"}
    found = traces.read(write(tmp_path, "x.jsonl", jsonl(lines)))
    assert none_to_na(found["answer"]) == ["A", None, None, "B"]
    assert found.attrs["unfinished"] == 2 and found.attrs["coded"] == 0


def test_numeric_items_are_compared_by_value(tmp_path):
    text = ('q,round,agent,answer,gold\n1,0,a,"$1,200.00",1200\n1,0,b,1200,1200\n'
            "2,0,a,1/4,0.250\n2,0,b,.25,0.250\n3,0,a,(c),C\n3,0,b,12,C\n")
    found = traces.read(write(tmp_path, "x.csv", text))
    assert found["answer"].tolist() == ["1200", "1200", "0.25", "0.25", "C", "12"]
    assert found["gold"].tolist() == ["1200", "1200", "0.25", "0.25", "C", "C"]


def test_text_is_coded_only_where_the_answer_is_missing(tmp_path):
    pytest.importorskip("analysis.coder")
    lines = long_lines(questions=("q1",), rounds=(0,), agents=("a", "b", "c"))
    lines[0] |= {"text": "Final Answer: D"}
    lines[1] |= {"answer": None, "text": "I am sure.\nFinal Answer: C"}
    lines[2] |= {"answer": None, "text": None}
    found = traces.read(write(tmp_path, "x.jsonl", jsonl(lines)), labels="ABCD")
    assert none_to_na(found["answer"]) == ["A", "C", None]
    assert none_to_na(found["rule"].notna()) == [False, True, False]
    assert found.attrs["coded"] == 1
    narrow = traces.read(write(tmp_path, "x.jsonl", jsonl(lines)), labels="AB", policy="strict")
    assert none_to_na(narrow["answer"]) == ["A", None, None]


# --- damage -------------------------------------------------------------------------------------------------


def test_torn_last_line_is_refused_or_dropped_with_its_place(tmp_path):
    path = write(tmp_path, "x.jsonl", jsonl(long_lines())[:-20])
    with pytest.raises(DataError, match=r"x\.jsonl, line 8: no complete JSON object.*on_damage='drop'"):
        traces.read(path)
    found = traces.read(path, on_damage="drop")
    assert len(found) == 7 and len(found.attrs["damage"]) == 1


@pytest.mark.parametrize("text, line", [
    ("q,agent,answer\n1,a,B\n1,b\n1,c,D\n", 3),
    ("q,agent,answer\n1,a,B\n1,b,A,x\n1,c,D\n", 3),
    ('q,agent,answer\n1,a,"B"\n1,c,D\n1,d,"A\n', 4),
    ('q,agent,answer\n"1",a,"B"\n\n1,c,D\n1,"d', 5),
    ('note,q,agent,answer\n"two\nlines",1,a,B\nx,1,c,D\nx,1,d', 5),
])
def test_csv_damage_names_the_line_and_keeps_the_rest(tmp_path, text, line):
    path = write(tmp_path, "x.csv", text)
    with pytest.raises(DataError, match=rf"x\.csv, line {line}: "):
        traces.read(path)
    found = traces.read(path, on_damage="drop")
    assert found["answer"].tolist() == ["B", "D"] and found["agent"].tolist() == ["a", "c"]


def test_lines_are_counted_past_blank_lines_and_cells_of_several_lines(tmp_path):
    text = '\n\nq,round,agent,answer,note\n1,0,a,B,"two\nlines"\n\n1,0,b,C,x\n1,zero,c,D,y\n'
    with pytest.raises(DataError, match=r"x\.csv, line 8, field 'round': 'zero'"):
        traces.read(write(tmp_path, "x.csv", text))
    with pytest.raises(DataError, match=r"x\.csv, line 4, field 'round': 'zero'"):
        traces.read(write(tmp_path, "x.csv", "\nq,round,agent,answer\n1,0,b,C\n1,zero,c,D\n"))


def test_index_column_without_a_name_is_kept_in_tab_separated_files(tmp_path):
    found = traces.read(write(tmp_path, "x.tsv", "\tq\tagent\tanswer\n0\t1\ta\tB\n"))
    assert found["answer"].tolist() == ["B"] and found[""].tolist() == ["0"]


def test_unicode_line_separators_in_a_csv_before_an_open_quote(tmp_path):
    text = 'q,agent,answer,note\n1,a,B,"x\u2028y\x0bz"\n1,b,C,"open'
    found = traces.read(write(tmp_path, "x.csv", text), on_damage="drop")
    assert found["answer"].tolist() == ["B"] and found["note"].tolist() == ["x\u2028y\x0bz"]


def test_a_quote_sign_inside_an_open_cell_is_no_damage(tmp_path):
    found = traces.read(write(tmp_path, "x.csv", 'q,agent,answer,note\n1,a,B,5" pipe\n1,b,C,x\n'))
    assert found["note"].tolist() == ['5" pipe', "x"] and not found.attrs["damage"]


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_cut_gz_is_refused_or_its_whole_lines_kept(tmp_path, kind):
    rng = np.random.default_rng(1)
    lines = [line | {"note": rng.bytes(30).hex()} for line in long_lines(questions=map(str, range(2000)))]
    text = jsonl(lines) if kind == "jsonl" else pd.DataFrame(lines).to_csv(index=False)
    data = gzip.compress(text.encode())
    path = write(tmp_path, "x.gz", data[: len(data) // 2])
    with pytest.raises(DataError, match="gz stream is cut or faulty"):
        traces.read(path)
    found = traces.read(path, on_damage="drop")
    assert 1000 < len(found) < len(lines)
    whole = traces.read(write(tmp_path, "y.gz", data), row="x")
    pd.testing.assert_frame_equal(found, whole.head(len(found)))
    flipped = bytearray(data)
    flipped[-5] ^= 0xFF  # checksum
    with pytest.raises(DataError, match="gz stream"):
        traces.read(write(tmp_path, "z.gz", bytes(flipped)))


def test_bytes_that_are_not_utf8_are_named(tmp_path):
    good = jsonl(long_lines()).encode()
    path = write(tmp_path, "x.jsonl", good + b'{"q": "\xff"}\n')
    with pytest.raises(DataError, match=r"x\.jsonl, line 9: not UTF-8"):
        traces.read(path)
    assert len(traces.read(path, on_damage="drop")) == 8
    with pytest.raises(DataError, match=r"x\.csv, line 3: not UTF-8"):
        traces.read(write(tmp_path, "x.csv", b"q,agent,answer\n1,a,B\n1,\xe9,B\n"))
    with pytest.raises(DataError, match="NUL"):
        traces.read(write(tmp_path, "utf16.csv", "q,agent,answer\n1,a,B\n".encode("utf-16")))


@pytest.mark.parametrize("line", ["[1, 2]", "5", '"x"', "null", '{"q": 1', "{'q': 1}", '{"q": 1} x'])
def test_a_line_that_is_no_object_is_damage(tmp_path, line):
    path = write(tmp_path, "x.jsonl", jsonl(long_lines()) + line + "\n")
    with pytest.raises(DataError, match=r"x\.jsonl, line 9: "):
        traces.read(path)


def test_nesting_and_number_bombs_are_damage_not_crashes(tmp_path):
    for bomb in ('{"a": ' + "[" * 200_000, '{"a": ' + "9" * 10_000 + "}"):
        path = write(tmp_path, "x.jsonl", jsonl(long_lines()) + bomb + "\n")
        with pytest.raises(DataError, match=r"x\.jsonl, line 9: "):
            traces.read(path)


def test_lone_surrogates_are_replaced_and_can_be_stored(tmp_path):
    lines = long_lines(text="smile \U0001f600")
    raw = jsonl(lines).replace("\\ud83d\\ude00", "\\ud83d", 1)
    found = traces.read(write(tmp_path, "x.jsonl", raw))
    assert found["text"].tolist()[:2] == ["smile \ufffd", "smile \U0001f600"]
    found.to_parquet(tmp_path / "x.parquet")


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv"])
def test_a_line_of_100_mb_is_refused_within_bounded_memory(tmp_path, name):
    path = tmp_path / name
    with open(path, "wb") as out:
        start = b'{"q":"1","agent":"a","answer":"B","text":"'
        out.write(start if name == "x.jsonl" else b"q,agent,answer,text\n1,a,B,")
        for _ in range(100):
            out.write(b"w" * 2**20)
        out.write(b'"}\n' if name == "x.jsonl" else b"\n")
    script = ("import resource, sys\nfrom analysis import traces\nfrom analysis.errors import DataError\n"
              "start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
              "try:\n    traces.read(sys.argv[1])\nexcept DataError as error:\n    print(error)\n"
              "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) // 1024)\n")
    command = [sys.executable, "-c", script, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    message, grown = done.stdout.strip().splitlines()
    line = 1 if name == "x.jsonl" else 2
    assert message == f"{path}, line {line}: longer than 64 MiB; expected one record a line"
    assert int(grown) < 250


def test_odd_paths_have_clear_errors(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.csv: there is no such file"):
        traces.read(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match="is a directory"):
        traces.read(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="not a regular file"):
        traces.read(tmp_path / "pipe")
    for content in (b"", b"\n \n", b"\xef\xbb\xbf", gzip.compress(b"")):
        with pytest.raises(DataError, match="is empty"):
            traces.read(write(tmp_path, "x.csv", content))
    for content in ("q,agent,answer\n", "[]"):
        with pytest.raises(DataError, match="no records"):
            traces.read(write(tmp_path, "x.csv", content))
    with pytest.raises(DataError, match="two columns are named 'q'"):
        traces.read(write(tmp_path, "x.csv", "q,q,agent,answer\n1,2,a,B\n"))
    with pytest.raises(DataError, match="two fields are named 'q'"):
        traces.read(write(tmp_path, "x.jsonl", '{"q": "1", "q ": "2", "agent": "a", "answer": "B"}\n'))
    hope = "no known layout.*Looked for long: .*layout_a: .*layout_b: .*features: .*chat: "
    with pytest.raises(DataError, match=hope):
        traces.read(write(tmp_path, "x.csv", "one,two\n1,2\n"))
    with pytest.raises(DataError, match="not a readable Parquet file"):
        traces.read(write(tmp_path, "x.parquet", b"PAR1 and then nothing"))


def test_column_names_are_shown_on_one_line_and_cut(tmp_path):
    path = write(tmp_path, "x.csv", "a\x1b[2J," + "w" * 5000 + ",b\n1,2,3\n")
    with pytest.raises(DataError) as error:
        traces.read(path)
    message = str(error.value)
    assert message.isprintable() and r"'a\x1b[2j', b, '" + "w" * 36 + "...." in message
    hope = r"columns missing: question, agent; found: 'a\\x1b\[2J', 'w{36}\.\.\., "
    with pytest.raises(DataError, match=hope):
        traces.read(write(tmp_path, "x.csv", "a\x1b[2J," + "w" * 5000 + ",answer\n1,2,3\n"), format="long")


@pytest.mark.parametrize("text, line", [
    ("q,agent,answer\r1,a,B\r", 1), ("\nq,agent\r,answer\n1,a,B\n", 2),
])
def test_bare_carriage_returns_in_the_header_are_named(tmp_path, text, line):
    with pytest.raises(DataError, match=rf"x\.csv, line {line}: no readable header .*LF or CR LF"):
        traces.read(write(tmp_path, "x.csv", text))


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.parquet.gz"])
def test_tables_beyond_the_limit_are_refused_while_they_are_read(tmp_path, monkeypatch, name):
    monkeypatch.setattr(records, "MAX_TABLE", 8 * 2**20)
    taken = []
    blocks = records._blocks
    monkeypatch.setattr(records, "_blocks", lambda *given: (taken.append(b) or b for b in blocks(*given)))
    data = b"q,agent,answer\n" + b"1,a,B\n" * 2**23
    if "parquet" in name:
        data = b"PAR1" + data
    path = write(tmp_path, name, gzip.compress(data, 1) if name.endswith(".gz") else data)
    with pytest.raises(DataError, match=r"of more than 8 MiB; expected a smaller one, or JSON-lines"):
        traces.read(path)
    assert sum(map(len, taken)) < 20 * 2**20 < len(data)


def test_records_without_fields_are_damage_and_floods_of_them_are_refused(tmp_path, monkeypatch):
    good = jsonl(long_lines())
    path = write(tmp_path, "x.jsonl", good + "{}\n")
    with pytest.raises(DataError, match=r"x\.jsonl, line 9: a record without fields"):
        traces.read(path)
    assert len(traces.read(path, on_damage="drop")) == 8
    monkeypatch.setattr(records, "BLOCK", 2**12)
    flood = write(tmp_path, "y.jsonl", good + "{}\n" * 50_000)
    with pytest.raises(DataError, match=r"y\.jsonl, line 9: .*expected at most 10000 damaged lines"):
        traces.read(flood, on_damage="drop")
    blank = traces.read(write(tmp_path, "z.jsonl", good + "\n" * 50_000 + good.splitlines()[0]),
                        on_duplicate="last")
    assert len(blank) == 8


def test_a_key_given_twice_in_a_record_is_damage(tmp_path):
    twice = '{"question": "q3", "round": 0, "agent": "a", "answer": "A", "answer": "B"}\n'
    text = jsonl(long_lines()) + twice
    path = write(tmp_path, "x.jsonl", text)
    with pytest.raises(DataError, match=r"x\.jsonl, line 9: key 'answer' occurs twice in one object"):
        traces.read(path)
    assert len(traces.read(path, on_damage="drop")) == 8
    nested = write(tmp_path, "y.jsonl", '{"q": "1", "more": {"a": 1, "a": 2}}\n')
    with pytest.raises(DataError, match=r"y\.jsonl, line 1: key 'a' occurs twice"):
        traces.read(nested)


@pytest.mark.parametrize("option, value", [
    ("format", "wide"), ("policy", "lenient"), ("on_duplicate", "first"), ("on_damage", "ignore"),
])
def test_unknown_options_list_the_allowed(tmp_path, option, value):
    with pytest.raises(ValueError, match=f"{option}='{value}': expected one of "):
        traces.read(tmp_path / "x", **{option: value})


# --- open tier ----------------------------------------------------------------------------------------------


def record_a(question="q1", **changes):
    return {"question_id": question, "correct_label": "C", "model": "lab/m-1",
            "initial_answers": ["C", None, "A"], "initial_majority": "A", "initial_correct": 0,
            "round_traces": [{"round": 1, "answers": ["C", "C", "A"], "majority": "C"},
                             {"round": 2, "answers": ["C", "C", "C"], "majority": "C"}],
            "final_answers": ["C", "C", "C"], "majority_answer": "C", "final_correct": 1,
            "collapsed": 0, "corrected": 1} | changes


def states(answers, number, order=None, **extra):
    fixed = {"reasoning": None, "round_num": number, "cost": 0.0} | extra
    found = [{"agent_id": agent, "answer": answer} | fixed
             for agent, answer in enumerate(answers)]
    return found if order is None else [found[place] for place in order]


def record_b(question="q1", rounds=3, **changes):
    return {"question_id": question, "correct_label": "C", "model_name": "lab/m-2", "backend": "local",
            "initial_states": states(["A", "", "C"], 0, order=(2, 0, 1)),
            "round_traces": [states(["C", "B", None], number, order=(1, 2, 0))
                             for number in range(1, rounds + 1)],
            "final_states": states(["C", "B", None], rounds),
            "majority_answer": "", "timestamp": "t"} | changes


def without(record, name):
    return {key: value for key, value in record.items() if key != name}


def test_layout_a(tmp_path):
    found = traces.read(write(tmp_path, "x.jsonl", jsonl([record_a("q1"), record_a("007")])))
    assert len(found) == 18 and found["row"].unique().tolist() == ["lab/m-1"]
    one = found[found["question"] == "007"]
    assert none_to_na(one["answer"]) == ["C", None, "A", "C", "C", "A", "C", "C", "C"]
    assert one["round"].tolist() == [0] * 3 + [1] * 3 + [2] * 3
    assert one["agent"].tolist() == ["0", "1", "2"] * 3
    assert found["stored_majority"].unique().tolist() == ["C"]
    assert not {"initial_majority", "final_correct", "collapsed"} & set(found)
    traces.validate(found, labels="ABCD")


@pytest.mark.parametrize("rounds", [1, 3, 4])
def test_layout_b_any_endpoint_agents_ordered(tmp_path, rounds):
    found = traces.read(write(tmp_path, "x.jsonl", jsonl([record_b(rounds=rounds)])))
    assert found["round"].max() == rounds and len(found) == 3 * (rounds + 1)
    assert found["agent"].tolist() == ["0", "1", "2"] * (rounds + 1)
    assert none_to_na(found["answer"])[:6] == ["A", None, "C", "C", "B", None]
    assert found["stored_majority"].isna().all() and found["backend"].eq("local").all()
    assert found["row"].unique().tolist() == ["lab/m-2"]


def test_layout_b_in_parquet_and_nested_fields(tmp_path):
    lines = [record_b(usage={"tokens": 5}), record_b("q2", usage={"tokens": 6})]
    first = traces.read(write(tmp_path, "x.jsonl", jsonl(lines)))
    assert first["usage"].tolist()[0] == {"tokens": 5}
    pd.DataFrame(lines).to_parquet(tmp_path / "x.parquet")
    pd.testing.assert_frame_equal(traces.read(tmp_path / "x.parquet")[COLUMNS], first[COLUMNS])


def test_layout_b_variants(tmp_path):
    other = without(record_b(), "round_traces") | {"round_states": record_b()["round_traces"]}
    first = traces.read(write(tmp_path, "x.jsonl", jsonl([record_b()])))
    pd.testing.assert_frame_equal(traces.read(write(tmp_path, "x.jsonl", jsonl([other]))), first)
    no_final = without(record_b(), "final_states")
    pd.testing.assert_frame_equal(traces.read(write(tmp_path, "x.jsonl", jsonl([no_final]))), first)
    # Final states with the next round number are a round of their own; without others they are the only one.
    more = traces.read(write(tmp_path, "x.jsonl", jsonl([record_b(final_states=states(["C"] * 3, 4))])))
    assert more["round"].max() == 4 and more["answer"].tail(3).tolist() == ["C"] * 3
    alone = record_b(round_traces=[], final_states=states(["C"] * 3, 9))
    only = traces.read(write(tmp_path, "x.jsonl", jsonl([alone])))
    assert only["round"].tolist() == [0] * 3 + [1] * 3


def test_agents_are_ordered_as_numbers(tmp_path):
    many = [{"agent_id": f"agent_{number}", "answer": "A", "round_num": 0} for number in (10, 2, 1)]
    record = record_b(initial_states=many, round_traces=[many], final_states=None)
    found = traces.read(write(tmp_path, "x.jsonl", jsonl([record])))
    assert found["agent"].tolist()[:3] == ["agent_1", "agent_2", "agent_10"]


@pytest.mark.parametrize("told", [[1], {"a": 1}])
def test_layout_b_round_number_that_is_no_number(tmp_path, told):
    record = record_b()
    record["final_states"] = [state | {"round_num": told} for state in record["round_traces"][-1]]
    with pytest.raises(DataError, match=r"x\.jsonl, line 1, .*field 'round_num': .*expected a whole number"):
        traces.read(write(tmp_path, "x.jsonl", jsonl([record])))


def test_layout_a_round_that_only_looks_like_a_number(tmp_path):
    for told in ("\u00b2", "1" * 5000):
        record = record_a()
        record["round_traces"][0]["round"] = told
        with pytest.raises(DataError, match=r"line 1, .*field 'round_traces': round .*whole numbers from 1"):
            traces.read(write(tmp_path, "x.jsonl", jsonl([record])))


def test_labels_in_a_list_are_one_set_for_all_texts(tmp_path):
    lines = long_lines(questions=("q1",), text="The answer is B.")
    path = write(tmp_path, "x.jsonl", jsonl([line | {"answer": None} for line in lines]))
    assert traces.read(path, labels=list("ABCD"))["answer"].tolist() == ["B"] * 4
    with pytest.raises(ValueError, match="expected single letters"):
        traces.read(path, labels=["B", "YES"])


def test_layout_b_text_is_coded(tmp_path):
    pytest.importorskip("analysis.coder")
    first = states([None, "B"], 0)
    first[0]["reasoning"] = "Final Answer: D"
    record = record_b(initial_states=first, round_traces=[first], final_states=None)
    found = traces.read(write(tmp_path, "x.jsonl", jsonl([record])))
    assert found["answer"].tolist() == ["D", "B", "D", "B"]


@pytest.mark.parametrize("record, hope", [
    (record_a(final_answers=["A", "A", "A"]), "field 'final_answers'"),
    (record_a(round_traces=[{"round": 1, "answers": ["C", "C"]}], final_answers=None),
     "round 1 has 2 answers; expected 3"),
    (record_a(round_traces=[{"round": 0, "answers": ["C", "C", "C"]}]),
     "expected whole numbers from 1, each once"),
    (record_a(initial_answers="CCA"), "expected a list"),
    (record_b(final_states=states(["A", "A", "A"], 3)), "field 'final_states': differ"),
    (record_b(round_traces=[["A", "B"]]), "expected a list of states"),
])
def test_a_record_at_odds_with_itself_is_refused_or_dropped(tmp_path, record, hope):
    good = (record_a if "initial_answers" in record else record_b)("q2")
    path = write(tmp_path, "x.jsonl", jsonl([good, record | {"question_id": "odd"}]))
    with pytest.raises(DataError, match=rf"x\.jsonl, line 2, question 'odd': .*{hope}"):
        traces.read(path)
    found = traces.read(path, on_damage="drop")
    assert found["question"].unique().tolist() == ["q2"] and len(found.attrs["damage"]) == 1


def test_repeated_records(tmp_path):
    lines = [record_a("q1"), record_a("q2"), record_a("q1", correct_label="A")]
    path = write(tmp_path, "x.jsonl", jsonl(lines))
    with pytest.raises(DataError, match=r"x\.jsonl, line 3: a second record of question 'q1'"):
        traces.read(path)
    last = traces.read(path, on_duplicate="last")
    assert last.groupby("question")["gold"].first().to_dict() == {"q1": "A", "q2": "C"}
    both = traces.read(path, on_duplicate="replicate")
    assert both.groupby("question")["replicate"].unique().map(list).to_dict() == {"q1": [0, 1], "q2": [0]}


def test_layout_without_gold_fails_in_validate(tmp_path):
    bare = without(record_a(), "correct_label")
    with pytest.raises(DataError, match="column 'gold' is missing or empty"):
        traces.validate(traces.read(write(tmp_path, "x.jsonl", jsonl([bare]))))


names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)
names = names.filter(lambda text: text.strip())


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_written_answers_read_back_the_same(tmp_path_factory, data):
    questions = data.draw(st.lists(names, min_size=1, max_size=3, unique=True))
    in_order = ["0", "1", "2", "10", "a", "b9", "b10"]
    chosen = data.draw(st.sets(st.sampled_from(in_order), min_size=1))
    agents = [name for name in in_order if name in chosen]
    rounds, row = data.draw(st.integers(1, 3)), data.draw(names)
    keys = [(q, p, r, a) for q in questions for p in (0, 1) for r in range(rounds + 1) for a in agents]
    answer = data.draw(st.lists(st.sampled_from(["A", "B", None]), min_size=len(keys), max_size=len(keys)))
    before = pd.DataFrame(keys, columns=["question", "replicate", "round", "agent"])
    before = before.assign(row=row, answer=answer, gold="B")
    before["answer"] = before["answer"].astype("str")
    before = before[COLUMNS]
    path = tmp_path_factory.mktemp("w") / data.draw(st.sampled_from(["x.jsonl", "x.jsonl.gz"]))
    traces.write_open_tier(before.assign(text="secret", question_text="hidden"), path)
    raw = path.read_bytes()
    assert (raw[:2] == b"\x1f\x8b") == path.name.endswith(".gz")
    text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    assert b"secret" not in text and b"hidden" not in text
    pd.testing.assert_frame_equal(traces.read(path)[COLUMNS], before)
    traces.write_open_tier(before, path)
    assert path.read_bytes() == raw


def test_writing_fails_without_leaving_anything(tmp_path, monkeypatch):
    path = write(tmp_path, "x.jsonl", "before")
    with pytest.raises(DataError, match="columns missing: gold"):
        traces.write_open_tier(frame().drop(columns="gold"), path)
    monkeypatch.setattr(traces.os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError, match="disk"):
        traces.write_open_tier(frame(), path)
    assert path.read_text() == "before" and os.listdir(tmp_path) == ["x.jsonl"]


# --- feature matrix -----------------------------------------------------------------------------------------

MATRIX = """model,question_id,correct_label,collapsed,corrected,final_correct,init_correct,init_unanimous,\
init_agree_frac,init_majority_correct,r1_majority_changed,r1_n_flipped_from_init,r1_agree_frac,\
r1_majority_correct,r1_n_disagree_with_correct,r2_majority_changed,r2_agree_frac,r2_majority_correct,\
cascade_round,extra
m,q1,A,1,0,0,1,0,0.6666666666666666,1,0,1,0.3333333333333333,1,2,1,1.0,0,2.0,x
m,q2,B,0,1,1,0,1,1.0,0,1,3,1.0,1,0,0,1.0,1,,y
m,q1,A,0,0,1,1,1,1.0,1,0,0,1.0,1,0,0,1.0,1,,z
solo,q1,A,0,0,0,0,1,1.0,0,0,0,1.0,0,3,0,1.0,0,,w
"""


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_feature_matrix(tmp_path, kind):
    text = MATRIX
    if kind == "jsonl":
        table = pd.read_csv(write(tmp_path, "m.csv", MATRIX))
        lines = table.to_dict("records")
        text = jsonl([{k: None if v != v else v for k, v in line.items()} for line in lines])
    found = traces.read(write(tmp_path, "x", text))
    assert found["cell"].tolist() == ["collapse", "correction", "preserved", "unrepaired"]
    assert found["replicate"].tolist() == [0, 0, 1, 0]
    assert found["onset"].tolist()[0] == 2 and found["onset"].isna().sum() == 3
    assert found["onset"].dtype == "Int64"
    assert found["n_agents"].tolist()[:3] == [3, 3, 3] and found["n_agents"].isna().tolist()[3]
    assert found["correct_0"].tolist() == [True, False, True, False]
    assert found["correct_2"].tolist() == [False, True, True, False]
    assert found["agree_1"].tolist() == pytest.approx([1 / 3, 1, 1, 1])
    assert found["changed_1"].tolist() == [False, True, False, False] and found["changed_2"].dtype == bool
    assert found["n_flipped_1"].tolist() == [1, 3, 0, 0]
    assert found["unanimous_0"].tolist() == [False, True, True, True]
    assert found["extra"].tolist() == list("xyzw") and "answer" not in found and "majority_0" not in found


@pytest.mark.parametrize("old, new, hope", [
    ("m,q2,B,0,1,1,0", "m,q2,B,0,1,0,0", r"line 3, field 'final_correct': 0; expected 1"),
    ("m,q2,B,0,1,1,0", "m,q2,B,1,1,1,0", r"line 3, field 'collapsed': 1; expected 0"),
    ("m,q2,B,0,1,1,0", "m,q2,B,0,0,1,0", r"line 3, field 'corrected': 0; expected 1"),
    ("m,q2,B,0,1,1,0,1,1.0", "m,q2,B,0,1,1,0,1,1.5",
     r"line 3, field 'init_agree_frac': '1.5'; expected a fraction"),
    ("m,q2,B,0,1,1,0", "m,q2,B,0,yes,1,0", r"line 3, field 'corrected': 'yes'; expected 0 or 1"),
    (",init_correct,", ",first_correct,", "columns missing: init_correct"),
])
def test_feature_matrix_faults(tmp_path, old, new, hope):
    path = write(tmp_path, "x.csv", MATRIX.replace(old, new, 1))
    with pytest.raises(DataError, match=hope):
        traces.read(path, format="features")


def test_feature_matrix_takes_the_rounds_that_occur(tmp_path):
    line = {"model": "m", "question_id": "q", "correct_label": "A", "collapsed": 1, "corrected": 0,
            "init_correct": 1, "r1_majority_correct": 0}
    for name in ("r3_majority_correct", "r99999999_majority_correct", f"r{'9' * 5000}_majority_correct",
                 "r01_majority_correct"):
        with pytest.raises(DataError, match=r"field 'r.*: no r2_majority_correct; expected .* without gaps"):
            traces.read(write(tmp_path, "x.jsonl", jsonl([line | {name: 0}])))
    odd = traces.read(write(tmp_path, "x.jsonl", jsonl([line | {"r\u0662_majority_correct": 7}])))
    assert "correct_1" in odd and odd["r\u0662_majority_correct"].tolist() == [7]


def test_released_feature_matrix(shared):
    found = traces.read(shared / "upstream" / "inputs" / "per_debate_r1_features.csv")
    assert len(found) == 6925
    assert found["row"].value_counts(sort=False).tolist() == [200, 200, 2003, 2161, 2161, 200]
    assert found["replicate"].sum() == 13 and found["n_agents"].eq(3).all()
    assert found["cell"].value_counts()[["collapse", "correction"]].tolist() == [253, 816]
    assert found["onset"].value_counts().sort_index().tolist() == [149, 47, 57]


# --- chat ---------------------------------------------------------------------------------------------------


def context(*replies):
    asked = {"role": "user", "content": "?"}
    return [message for reply in replies for message in (asked, {"role": "assistant", "content": reply})]


def test_chat(tmp_path):
    pytest.importorskip("analysis.coder")
    content = {"Which one?": [[context("Final Answer: A", "Final Answer: B"), context("no idea", None)], "B"]}
    path = write(tmp_path, "x.json", json.dumps(content, indent=1))
    found = traces.read(path, labels="AB", policy="strict")
    assert found["round"].tolist() == [0, 0, 1, 1] and found["agent"].tolist() == ["0", "1"] * 2
    assert none_to_na(found["answer"]) == ["A", None, "B", None] and found["gold"].eq("B").all()
    assert found["question_text"].unique().tolist() == ["Which one?"]
    assert found["text"].notna().tolist() == [True, True, True, False]
    # The id follows from the text, wherever the question stands in a file.
    longer = {"Another?": content["Which one?"]} | content
    again = traces.read(write(tmp_path, "y.json", json.dumps(longer)), labels="AB")
    assert again["question"].unique().tolist()[1] == found["question"].iloc[0]
    zipped = write(tmp_path, "x.json", gzip.compress(path.read_bytes()))
    pd.testing.assert_frame_equal(traces.read(zipped, labels="AB", policy="strict"), found)


def test_chat_numeric_gold(tmp_path, monkeypatch):
    from analysis import coder

    seen = []
    monkeypatch.setattr(coder, "code_numbers", lambda texts: seen.append(list(texts)) or pd.DataFrame(
        {"value": ["52.0", "1,000"], "rule": ["last", "last"]}))
    fail = lambda *_, **__: pytest.fail("a numeric item was coded as labels")  # noqa: E731
    monkeypatch.setattr(coder, "code_answers", fail)
    content = {"How many?": [[context("so 52.0", "no, 1,000")], "5*2=10\n#### 1,000"]}
    found = traces.read(write(tmp_path, "x.json", json.dumps(content)), labels="ABCD")
    assert seen == [["so 52.0", "no, 1,000"]]
    assert found["answer"].tolist() == ["52", "1000"] and found["gold"].tolist() == ["1000", "1000"]
    traces.validate(found, labels="ABCD")


REPLY = '[[{"role": "assistant", "content": "x"}]]'


@pytest.mark.parametrize("content, hope", [
    ('{"q": [[[{"role": "user", "content": "x"}]], "A"]}', "no message has the role 'assistant'"),
    (f'{{"q": [{REPLY}, "Z"]}}', "field 'gold': 'Z'; expected one of A, B"),
    (f'{{"q": [{REPLY}]}}', r"expected \[agent contexts, gold\]"),
    ('{"q": [[["x"]], "A"]}', "expected a list of messages"),
    (f'{{"q": [{REPLY}, "A"], "q": [{REPLY}, "B"]}}', "occurs twice"),
    (f'{{"q": [{REPLY}, "A"], "r": [[', "not a complete JSON document"),
])
def test_chat_faults(tmp_path, content, hope):
    with pytest.raises(DataError, match=hope):
        traces.read(write(tmp_path, "x.json", content), labels="AB", format="chat")


REAL = {"gsm_Mistral-7B": (20, 3), "gsm_Qwen3-0.6B": (20, 3), "mmlu_Llama-3.2-3B": (20, 3),
        "mmlu_Mistral-7B": (20, 3), "mmlu_Qwen3-0.6B": (20, 3), "mmlu_Qwen3-14B": (20, 5),
        "mmlu_VibeThinker-1.5B": (20, 3)}


@pytest.mark.parametrize("start", REAL)
def test_real_chat_files(shared, start):
    pytest.importorskip("analysis.coder")
    path = next((shared / "real" / "slm_debates").glob(f"{start}*.json"))
    debates, agents = REAL[start]
    found = traces.validate(traces.read(path, labels="ABCD", policy="anchored"), labels="ABCD")
    assert found["question"].nunique() == debates and found["agent"].nunique() == agents
    assert found["round"].unique().tolist() == [0, 1, 2] and len(found) == debates * agents * 3
    assert found["gold"].notna().all() and found.attrs["completed"] == 0
    if start.startswith("gsm"):
        assert found["gold"].map(traces.canonical_number).eq(found["gold"]).all()
    else:
        assert found["gold"].isin(list("ABCD")).all()
    assert found["answer"].notna().mean() > 0.5


# --- labels and numbers -------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.fractions(min_value=-(10**9), max_value=10**9, max_denominator=1000))
def test_equal_numbers_are_equal_strings(value):
    text = traces.canonical_number(f"{value.numerator}/{value.denominator}")
    assert traces.canonical_number(text) == text
    if "/" not in text:
        from fractions import Fraction

        assert Fraction(text) == value
        assert traces.canonical_number(f"  +{text}0" if "." in text and value > 0 else text) == text


@pytest.mark.parametrize("text", ["", ".", "-", "e5", "1,20", "1/0", "1/2/3", "1 2", "inf", "NaN", "A",
                                  "1_000", "--1", None, True])
def test_what_is_no_number(text):
    assert traces.canonical_number(text) is None


@pytest.mark.parametrize("text, value", [
    ("−3", "-3"), ("-$5", "-5"), ("$-5", "-5"), ("35%", "35"), ("1\u202f000", "1000"), ("0.10", "0.1"),
    ("1e-3", "0.001"), ("-0.0", "0"), (9007199254740993, "9007199254740993"),
])
def test_ways_of_writing_numbers(text, value):
    assert traces.canonical_number(text) == value


def test_clean_labels():
    votes = ["a", " (b). ", "[C]", "**D**", "AB", "", None, float("nan"), "E", "A or B"]
    assert none_to_na(traces.clean_labels(votes, "ABCD")) == ["A", "B", "C", "D"] + [None] * 6
    votes = [1, 2.0, "3.", ".4", -1, "1.5", True]
    assert none_to_na(traces.clean_labels(votes, "1234")) == ["1", "2", "3"] + [None] * 4
    assert none_to_na(traces.clean_labels(["a", "A", "(a)"], "aA")) == ["a", "A", "a"]
    with pytest.raises(ValueError, match="expected distinct labels"):
        traces.clean_labels(["A"], "AA")


# --- grid and checks ----------------------------------------------------------------------------------------


def test_a_whole_frame_comes_back_as_it_is():
    whole = traces.validate(frame(), labels="AB")
    pd.testing.assert_frame_equal(whole, frame())
    assert whole.attrs["completed"] == 0


def test_missing_cells_are_completed_in_place():
    gaps = frame().drop([2, 5]).sample(frac=1, random_state=3).reset_index(drop=True).assign(extra=1)
    whole = traces.validate(gaps, labels="AB")
    assert len(whole) == 8 and whole.attrs["completed"] == 2
    assert whole["answer"].isna().sum() == 2 and whole["extra"].isna().sum() == 2
    assert whole["gold"].eq("B").all()
    lost = whole[whole["answer"].isna()].set_index(["question", "round", "agent"]).index
    assert sorted(lost) == [("q1", 1, "a"), ("q2", 0, "b")]
    assert all(part["round"].is_monotonic_increasing for _, part in whole.groupby("question"))
    assert whole["round"].dtype == "int64" and isinstance(whole["answer"].dtype, pd.StringDtype)


def test_an_agent_silent_throughout_is_completed_from_its_row():
    lines = frame()
    whole = traces.validate(lines[~((lines["question"] == "q2") & (lines["agent"] == "b"))], labels="AB")
    assert whole.attrs["completed"] == 2 and len(whole) == 8


def test_agents_named_anew_in_each_debate_are_completed_within_it():
    lines = frame()
    lines["agent"] = lines["question"] + lines["agent"]
    assert traces.validate(lines)["agent"].nunique() == 4
    whole = traces.validate(lines.drop(7))
    assert whole.attrs["completed"] == 1 and whole["agent"].tolist()[-1] == "q2b"
    third = lines[lines["question"] == "q2"].assign(agent="q2z").drop_duplicates(["round"])
    more = pd.concat([lines, third], ignore_index=True)
    with pytest.raises(DataError, match=r"question 'q1'.*field 'agent': 2 agents.*3 under other names"):
        traces.validate(more)


def test_rows_have_grids_of_their_own():
    other = frame(long_lines(rounds=(0, 1, 2), agents=("x", "y", "z"))).assign(row="n")
    both = pd.concat([frame(), other], ignore_index=True)
    assert traces.validate(both, labels="AB").attrs["completed"] == 0
    assert traces.validate(both.drop(19), labels="AB").attrs["completed"] == 1


@pytest.mark.parametrize("change, hope", [
    (lambda f: f.drop(columns=["agent", "gold"]), "columns missing: agent, gold; found: row, question"),
    (lambda f: f.iloc[:0], "no answers at all"),
    (lambda f: f.assign(answer=f["answer"].where(f.index != 3, "Z")),
     r"question 'q1', replicate 0, round 1, agent 'b': field 'answer': 'Z'; expected one of A, B, C, D"),
    (lambda f: f.assign(answer=f["answer"].where(f.index != 3, "")),
     r"agent 'b': field 'answer': ''; expected a label"),
    (lambda f: f.assign(gold="Z"), r"field 'gold': 'Z'; expected one of A, B, C, D"),
    (lambda f: f.assign(gold=f["gold"].where(f.index != 5, "A")),
     r"question 'q2'.*field 'gold': 'A', but 'B' before"),
    (lambda f: f.assign(gold=f["gold"].where(f.index != 5)),
     r"question 'q2'.*field 'gold': missing; expected a value"),
    (lambda f: f.assign(gold="12"), r"field 'answer': 'A'; expected a number in canonical form"),
    (lambda f: f.assign(round=f["round"] - 1), r"field 'round': -1; expected a whole number, 0 or more"),
    (lambda f: f.assign(round=f["round"] / 2),
     r"question 'q1', replicate 0, round 0.5, agent 'a': field 'round': 0.5; expected a whole number"),
    (lambda f: f.assign(round=f["round"].astype("Int64").where(f.index != 3)),
     r"agent 'b': field 'round': missing; expected a whole number"),
    (lambda f: f.assign(answer=1), r"field 'answer': '1'; expected one of A, B, C, D"),
    (lambda f: f.assign(round=f["round"] + 1), r"question 'q1'.*field 'round': this debate has no round 0"),
    (lambda f: f.assign(round=f["round"] * 2),
     r"row 'm': field 'round': no line has round 1; expected rounds 0 to 2"),
    (lambda f: f.assign(round=0, agent=f["agent"] + f["round"].astype("str")), "only round 0"),
    (lambda f: f[~((f["question"] == "q2") & (f["round"] == 1))],
     r"question 'q2'.*ends in round 0, others of the row in round 1"),
    (lambda f: f[~((f["question"] == "q2") & (f["round"] == 0))], r"question 'q2'.*has no round 0"),
    (lambda f: pd.concat([f, f.iloc[[2]]], ignore_index=True),
     r"round 1, agent 'a': field 'agent': a second line"),
    (lambda f: f.assign(agent=f["agent"].where(f.index != 1, "")),
     r"field 'agent': ''; expected a name that is not empty"),
    (lambda f: f.assign(question_text=["t"] * 3 + ["u"] + ["v"] * 4),
     r"question 'q1'.*field 'question_text': 'u', but 't' before"),
])
def test_validate_refuses(change, hope):
    with pytest.raises(DataError, match=hope):
        traces.validate(change(frame()), labels="ABCD")


def test_validate_takes_frames_of_any_exact_type():
    wanted = traces.validate(frame(), "ABCD")
    assert list(wanted) == COLUMNS
    kinds = [{"answer": "category", "gold": object, "round": "int32"}, {"round": float, "replicate": "Int8"},
             {"round": "str", "agent": "category", "question": object}]
    for kind in kinds:
        pd.testing.assert_frame_equal(traces.validate(frame().astype(kind), "ABCD"), wanted)
    found = traces.validate(frame().drop(columns="replicate"), "ABCD")
    pd.testing.assert_frame_equal(found[COLUMNS], wanted)
    given = frame(question=[7] * 4 + [8] * 4, answer=[1, 2] * 4, gold=2.0)
    found = traces.validate(given, "12")
    assert found["question"].tolist() == ["7"] * 4 + ["8"] * 4 and given["answer"].tolist() == [1, 2] * 4
    assert found["answer"].tolist() == ["1", "2"] * 4 and set(found["gold"]) == {"2"}


def test_validate_names_the_file(tmp_path):
    path = write(tmp_path, "mine.jsonl", jsonl(long_lines()).replace('"A"', '"Q"', 1))
    with pytest.raises(DataError, match="^mine.jsonl: row 'mine', question 'q1'.*'Q'"):
        traces.validate(traces.read(path), labels="AB")


def test_a_far_round_number_costs_no_memory():
    lines = frame()
    lines.loc[lines["round"] == 1, "round"] = 2**50
    with pytest.raises(DataError, match="no line has round 1"):
        traces.validate(lines, labels="AB")


def test_many_agent_names_cost_no_grid_of_all():
    n = 20_000
    own = np.repeat(np.arange(n), 2).astype(str)
    wide = pd.DataFrame({"row": "m", "question": own, "replicate": 0, "round": [0, 1] * n, "agent": own,
                         "answer": "A", "gold": "A"})
    wide = wide.astype({"question": "str", "agent": "str"})
    assert traces.validate(wide, labels="AB").attrs["completed"] == 0


def test_coverage_counts_lines_and_answers():
    lines = frame().drop(3)
    lines.loc[0, "answer"] = None
    counts = traces.coverage(lines)
    assert counts["expected"].tolist() == [2, 2, 2, 2] and counts["present"].tolist() == [2, 1, 2, 2]
    assert counts["answered"].tolist() == [1, 1, 2, 2]
    more = traces.coverage(lines, agents=["a", "b", "c"], rounds=[0, 1, 2])
    assert more["expected"].tolist() == [3] * 6 and more["present"].tolist() == [2, 1, 0, 2, 2, 0]


def test_carry_forward_keeps_order_and_first_gaps():
    lines = frame().drop(3).sample(frac=1, random_state=5).reset_index(drop=True)
    lines.loc[(lines["question"] == "q2") & (lines["round"] == 0) & (lines["agent"] == "a"), "answer"] = None
    kept = traces.carry_forward(lines)
    got = kept.set_index(["question", "round", "agent"])["answer"]
    assert got["q1", 1, "b"] == "B" and got.isna().sum() == 1 and np.isnan(got["q2", 0, "a"])
    assert kept.attrs["carried"] == 1


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_completing_is_idempotent_and_only_adds(data):
    n_questions, n_rounds, n_agents = (data.draw(st.integers(1, 3)) for _ in range(3))
    questions, agents = [f"q{q}" for q in range(n_questions)], [f"a{a}" for a in range(n_agents)]
    full = frame(long_lines(questions, range(n_rounds), agents))
    # One whole debate shows the panel: agents named anew in each debate are another case.
    kept = data.draw(st.lists(st.sampled_from(range(len(full))), unique=True))
    some = full.iloc[list(dict.fromkeys([*range(n_rounds * n_agents), *kept]))].reset_index(drop=True)
    whole = traces.complete(some)
    shape = some["question"].nunique() * some["round"].nunique() * some["agent"].nunique()
    assert len(whole) == shape == len(some) + whole.attrs["completed"]
    assert len(whole.drop_duplicates(["question", "round", "agent"])) == shape
    pd.testing.assert_frame_equal(traces.complete(whole), whole)
    merged = some.merge(whole, on=[name for name in COLUMNS if name != "answer"], suffixes=("", "_whole"))
    assert len(merged) == len(some) and (merged["answer"] == merged["answer_whole"]).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=8), st.integers(), st.none()), min_size=1, max_size=20))
def test_exact_ids_keep_distinct_things_apart(values):
    found = records.exact_ids(pd.Series(values, dtype=object)) if not any(
        isinstance(v, str) and any("\ud800" <= c <= "\udfff" for c in v) for v in values) else None
    if found is not None:
        assert none_to_na(found) == [None if v is None else str(v) for v in values]
