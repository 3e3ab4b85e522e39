"""Added rows: what is stored for every layout, what is refused, and that a refusal leaves the data as they were."""

import gzip
import hashlib
import io
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from analysis import data, figures, ledger, localize, rows, screen, synthetic, tables, traces
from analysis.errors import DataError

DATA = Path(__file__).resolve().parents[1] / "data"
NAMED = {"model": "My Model 7B", "family": "Mine"}
SECRET = "marker sentence that nobody may find in a stored row."  # holds no label, so it codes as no answer


@pytest.fixture
def root(tmp_path, monkeypatch):
    """The data of the project without any added row."""
    copy = tmp_path / "data"
    shutil.copytree(DATA, copy, ignore=shutil.ignore_patterns("rows"))
    (copy / "rows").mkdir()
    monkeypatch.setenv("DEBATE_LEDGER_DATA", str(copy))
    return copy


@pytest.fixture
def made(tmp_path):
    """Folder of files to add."""
    folder = tmp_path / "made"
    folder.mkdir()
    return folder


def state(folder):
    """Every path below a folder, with the digest of what it holds."""
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
            for path in sorted(folder.rglob("*"))}


def jsonl(records):
    return "".join(json.dumps(record) + "\n" for record in records)


def answers(n=12, n_rounds=3, **options):
    """Long answers of made-up debates, as plain strings."""
    said = synthetic.answers(n, n_rounds=n_rounds, silence=0.05, seed=n, **options)
    return said.astype(dict.fromkeys(["row", "question", "agent", "answer", "gold"], "str"))


def records_of(said, layout):
    """The same answers as records of an open-tier layout, with text in every field that could hold some."""
    out = []
    for question, debate in said.groupby("question", sort=False):
        none = debate["answer"].astype(object).where(debate["answer"].notna(), None)
        rounds = [list(zip(part["agent"], none[part.index])) for _, part in debate.groupby("round")]
        record = {"question_id": question, "correct_label": debate["gold"].iat[0], "question": SECRET, "note": SECRET}
        if layout == "layout_a":
            labels = [[answer for _, answer in part] for part in rounds]
            record |= {"model": "m", "initial_answers": labels[0], "final_answers": labels[-1]}
            record["round_traces"] = [{"round": k, "answers": part, "majority": ""} for k, part in enumerate(labels[1:], 1)]
        else:
            states = [[{"agent_id": agent, "answer": answer, "reasoning": SECRET, "round_num": k, "cost": 0.1} for agent, answer in part]
                      for k, part in enumerate(rounds)]
            record |= {"model_name": "m", "initial_states": states[0], "round_traces": states[1:], "final_states": states[-1]}
        out.append(record)
    return out


def matrix(said=None):
    """Released feature columns of debates, computed apart from the reader."""
    seen = ledger.debates(answers(20) if said is None else said)
    out = pd.DataFrame({"model": "m", "question_id": seen["question"], "correct_label": seen["gold"]})
    out["collapsed"] = (seen["cell"] == "collapse").astype(int)
    out["corrected"] = (seen["cell"] == "correction").astype(int)
    for new, old in [("final_correct", "correct_3"), ("init_correct", "correct_0"), ("init_unanimous", "unanimous_0"),
                     ("r1_n_flipped_from_init", "n_flipped_1")]:
        out[new] = seen[old].astype(int)
    out["init_agree_frac"] = seen["agree_0"].round(4)
    for k in (1, 2, 3):
        out[f"r{k}_majority_changed"] = seen[f"changed_{k}"].astype(int)
        out[f"r{k}_majority_correct"] = seen[f"correct_{k}"].astype(int)
        out[f"r{k}_agree_frac"] = seen[f"agree_{k}"].round(4)
    out["cascade_round"] = seen["onset"]
    return out.assign(question_text=SECRET, r1_n_disagree_with_correct=1)


CHAT_SAID = {"How many legs has a spider? " + SECRET: (["A", "A"], ["A", "B"], "A"),
             "And a bee?": (["C", "B"], ["C", "C"], "C")}


def chat():
    def messages(replies):
        return [part for reply in replies for part in
                ({"role": "user", "content": SECRET}, {"role": "assistant", "content": f"I say so. {SECRET} The answer is {reply}."})]

    return {question: [[messages(one), messages(two)], gold] for question, (one, two, gold) in CHAT_SAID.items()}


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def long_lines():
    return answers().assign(text=SECRET, reasoning=SECRET, question_text=SECRET, rule=SECRET)


def replies():
    """Text in place of answers."""
    said = answers()
    texts = [f"{SECRET} Final Answer: {a}" if a == a else SECRET for a in said["answer"]]
    return said.assign(answer=None, text=texts)


def parquet(frame):
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    return buffer.getvalue()


def by_line(frame):
    return frame.to_json(orient="records", lines=True)


# layout: name and content of a file with the answers (the matrix: the debates) of one row
LAYOUTS = {
    "long csv": ("long.csv", lambda: long_lines().to_csv(index=False)),
    "long jsonl": ("long.jsonl", lambda: by_line(long_lines())),
    "long parquet": ("long.parquet", lambda: parquet(long_lines())),
    "long gz": ("long.csv.gz", lambda: gzip.compress(long_lines().to_csv(index=False).encode())),
    "text only": ("text.jsonl", lambda: by_line(replies())),
    "layout a": ("a.jsonl", lambda: jsonl(records_of(answers(), "layout_a"))),
    "layout b": ("b.jsonl", lambda: jsonl(records_of(answers(), "layout_b"))),
    "layout b gz": ("b.jsonl.gz", lambda: gzip.compress(jsonl(records_of(answers(), "layout_b")).encode())),
    "matrix": ("matrix.csv", lambda: matrix().to_csv(index=False)),
    "matrix jsonl": ("matrix.jsonl", lambda: by_line(matrix())),
}


def file(folder, layout="long csv"):
    name, content = LAYOUTS[layout]
    return write(folder, name, content())


COUNTS = ["n", *ledger.CELLS, "undefined", "init_correct", "init_wrong", "final_correct"]
RATES = ["c_cond", "c_cond_low", "c_cond_high", "correction_rate"]


# --- adding -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_added_row_counts_as_the_ledger_does(root, made, layout):
    path, said = file(made, layout), answers(20) if "matrix" in layout else answers()
    labelled = write(made, "probes.jsonl", jsonl(synthetic.probes(4, seed=3)))
    row = rows.add(path, id="mine", probes=labelled, **NAMED)
    expected = ledger.summarize(ledger.debates(said)).iloc[0]
    assert expected["collapse"] > 0 and expected["correction"] > 0
    for found in (rows.summary(["mine"]).iloc[0], ledger.summarize(rows.debates(["mine"])).iloc[0]):
        assert found[COUNTS].tolist() == expected[COUNTS].tolist()
        assert found[RATES].tolist() == pytest.approx(expected[RATES].tolist(), nan_ok=True)
    assert rows.debates(["mine"])["onset"].tolist() == ledger.debates(said)["onset"].tolist()
    assert rows.debates(["mine"])["question"].tolist() == ledger.debates(said)["question"].tolist()
    assert row == rows.card("mine") and rows.ids() == ["mine"]
    assert (row.n_debates, row.n_agents, row.n_rounds) == (said["question"].nunique(), 3, 3)
    if "matrix" in layout:
        assert row.n_answers is None and rows.coding("mine").empty
    else:
        assert (row.n_answers, row.n_missing) == (len(said), said["answer"].isna().sum())
        counted = rows.coding("mine")
        assert counted.groupby("round")["n"].sum().tolist() == [36, 36, 36, 36] and (counted["of"] == 36).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_text_is_stored(root, made, layout):
    path = file(made, layout)
    probes = [record | {"question_text": SECRET, "system_prompt": SECRET} for record in synthetic.probes(2)]
    for record in probes:
        record["probe_results"] = [probe | {"argument": SECRET, "response": SECRET} for probe in record["probe_results"]]
    assert SECRET.encode() in gzip.open(path).read() if path.suffix == ".gz" else True
    rows.add(path, id="mine", probes=write(made, "probes.jsonl", jsonl(probes)), **NAMED)
    stored = [path for path in (root / "rows").rglob("*") if path.is_file()]
    assert len(stored) == 3
    for each in stored:
        assert b"marker" not in each.read_bytes().lower(), each.name


def test_a_question_that_is_its_own_text_is_stored_as_a_digest(root, made):
    said = answers(4)
    asked = said.assign(question=SECRET + " " + said["question"])
    rows.add(write(made, "long.csv", asked.to_csv(index=False)), id="mine", **NAMED)
    assert "marker" not in (root / "rows/mine/answers.csv").read_text()
    kept = rows.debates(["mine"])
    first = "q" + hashlib.sha256(asked["question"].iat[0].encode()).hexdigest()[:10]  # as the chat layout names it
    assert kept["question"].iat[0] == first and kept["question"].nunique() == 4
    assert kept["cell"].tolist() == ledger.debates(said)["cell"].tolist()


def test_chat(root, made):
    row = rows.add(write(made, "chat.json", json.dumps(chat())), id="mine", labels="ABCD", **NAMED)
    # Hand-counted. Spider: A, A then A, B (a tie for A). Bee: C, C then B, C (a tie for B).
    summary = rows.summary(["mine"]).iloc[0]
    assert summary[["n", "preserved", "collapse", "correction", "unrepaired"]].tolist() == [2, 1, 1, 0, 0]
    undecided = rows.summary(["mine"], tie="undecided").iloc[0]
    assert undecided[["n", "preserved", "collapse"]].tolist() == [2, 0, 2]
    assert (row.layout, row.n_agents, row.n_rounds, row.labels) == ("chat", 2, 1, "ABCD")
    assert "marker" not in (root / "rows/mine/answers.csv").read_text()
    assert rows.coding("mine")["rule"].unique().tolist() == ["answer_is"]


def test_the_card_says_where_the_row_came_from(root, made):
    path = write(made, "long.csv", answers().to_csv(index=False))
    asked = write(made, "probes.jsonl", jsonl(synthetic.probes(5, seed=1)))
    rows.add([path], id="mine", probes=asked, policy="anchored", synthetic=True, **NAMED)
    card = json.loads((root / "rows/mine/row.json").read_text())
    records = synthetic.probes(5, seed=1)
    flips = [probe["revised"] for record in records if record["condition"] == "default" for probe in record["probe_results"]]
    assert card == {
        "schema_version": 1, "id": "mine", "model": "My Model 7B", "family": "Mine", "synthetic": True, "policy": "anchored",
        "labels": "ABCDEFGHIJ", "layout": "long", "n_debates": 12, "n_agents": 3, "n_rounds": 3, "n_answers": 144,
        "n_missing": int(answers()["answer"].isna().sum()), "alpha_tot": sum(flips) / len(flips), "n_probes": len(flips),
        "n_flips": sum(flips),
        "sources": [{"name": p.name, "sha256": hashlib.sha256(p.read_bytes()).hexdigest(), "bytes": p.stat().st_size} for p in (path, asked)],
    }
    assert len(flips) == 5 * 3 * 8


def test_several_files_make_one_row(root, made):
    said = answers()
    halves = [said[said["question"] <= "q0000005"], said[said["question"] > "q0000005"]]
    paths = [write(made, f"{k}.csv", part.to_csv(index=False)) for k, part in enumerate(halves)]
    rows.add(paths, id="mine", **NAMED)
    assert rows.summary(["mine"])[COUNTS].iloc[0].tolist() == ledger.summarize(ledger.debates(said))[COUNTS].iloc[0].tolist()
    assert [source.name for source in rows.card("mine").sources] == ["0.csv", "1.csv"]


def test_a_byte_order_mark_costs_no_line(root, made):
    said = answers()
    for name, text in [("bom.csv", said.to_csv(index=False)), ("bom.jsonl", said.to_json(orient="records", lines=True))]:
        row, _, _ = rows.check(write(made, name, "\ufeff" + text), id="mine", **NAMED)
        assert row.n_answers == len(said)


@pytest.mark.parametrize("word", ["", "NaN", "nan", "NA", "null"])
def test_nan_is_a_missing_answer(root, made, word):
    text = "question,round,agent,answer,gold\nq,0,a,B,B\nq,0,b,{0},B\nq,1,a,{0},B\nq,1,b,{0},B\np,0,a,B,B\np,1,a,B,B\n".format(word)
    row = rows.add(write(made, "nan.csv", text), id="mine", **NAMED)
    assert (row.n_answers, row.n_missing) == (8, 5)  # agent b of question p has no line
    assert rows.summary(["mine"])[["n", "collapse", "init_correct"]].iloc[0].tolist() == [2, 1, 2]
    assert rows.summary(["mine"], missing="drop")[["n", "collapse"]].iloc[0].tolist() == [1, 0]
    assert rows.summary(["mine"], missing="undecided")[["n", "collapse", "undefined"]].iloc[0].tolist() == [2, 0, 1]


def test_ids_and_questions_that_look_like_numbers_stay_as_they_are(root, made):
    seen = matrix().assign(question_id=[f"{k:03d}" for k in range(20)])
    rows.add(write(made, "m.csv", seen.to_csv(index=False)), id="0123", **NAMED)
    kept = rows.debates(["0123"])
    assert kept["row"].unique().tolist() == ["0123"] and kept["question"].tolist() == seen["question_id"].tolist()
    assert rows.summary(["0123"])["family"].item() == "Mine"


def test_a_matrix_of_unanimous_debates_does_not_tell_its_panel(root, made):
    seen = matrix().iloc[:3].assign(collapsed=0, corrected=0, init_correct=1, final_correct=1, init_unanimous=1, init_agree_frac=1.0,
                                    r1_n_flipped_from_init=0, cascade_round=None)
    for k in (1, 2, 3):
        seen = seen.assign(**{f"r{k}_majority_changed": 0, f"r{k}_majority_correct": 1, f"r{k}_agree_frac": 1.0})
    row = rows.add(write(made, "m.csv", seen.to_csv(index=False)), id="mine", **NAMED)
    assert row.n_agents is None and rows.card("mine").n_agents is None
    for tie in ledger.TIES:
        assert rows.summary(["mine"], tie=tie)["preserved"].item() == 3


@pytest.mark.parametrize("tie", ledger.TIES)
@pytest.mark.parametrize("missing", ledger.MISSING)
def test_rows_of_all_kinds_stand_together_under_every_choice(root, made, tie, missing):
    said = {"three": answers(), "five": answers(9, n_rounds=5), "two-agents": answers(8, n_agents=2)}
    for id, each in said.items():
        rows.add(write(made, f"{id}.csv", each.to_csv(index=False)), id=id, **NAMED)
    rows.add(write(made, "m.csv", matrix().to_csv(index=False)), id="matrix", **NAMED)
    found = rows.summary([*said, "matrix"], tie=tie, missing=missing).set_index("row")
    for id, each in said.items():
        alone = ledger.summarize(ledger.debates(each.assign(row=id), tie=tie, missing=missing)).iloc[0]
        assert found.loc[id, COUNTS].tolist() == pytest.approx(alone[COUNTS].tolist())
    known = ledger.summarize(ledger.debates(answers(20), tie="undecided" if tie == "undecided" else "alphabetic")).iloc[0]
    assert found.loc["matrix", COUNTS].tolist() == known[COUNTS].tolist()
    starts = ledger.onset(rows.debates([*said, "matrix"], tie=tie, missing=missing)).set_index("row")
    assert starts.loc["three", ["round_4", "round_5"]].tolist() == [0, 0]


def test_labels_of_another_alphabet_come_back(root, made):
    said = answers(6)
    other = dict(zip("ABCDEFGHIJ", "abcdefghij"))
    moved = said.assign(answer=said["answer"].map(other), gold=said["gold"].map(other))
    rows.add(write(made, "small.csv", moved.to_csv(index=False)), id="mine", labels="abcdefghij", **NAMED)
    assert rows.debates(["mine"])["gold"].tolist() == ledger.debates(moved)["gold"].tolist()
    assert rows.summary(["mine"])[COUNTS].iloc[0].tolist() == ledger.summarize(ledger.debates(said))[COUNTS].iloc[0].tolist()


def test_a_check_stores_nothing(root, made):
    before = state(root)
    path, said = file(made, "layout b"), answers()
    row, frame, probes = rows.check(path, id="mine", **NAMED)
    assert (row.id, len(frame), probes) == ("mine", len(said), None)
    assert state(root) == before


def test_remove_leaves_nothing_behind(root, made):
    before = state(root)
    path = file(made)
    rows.add(path, id="mine", **NAMED)
    rows.add(path, id="other", **NAMED)
    rows.remove("mine")
    assert rows.ids() == ["other"]
    rows.remove("other")
    assert state(root) == before
    assert rows.describe().empty and rows.summary([]).empty and rows.debates([]).empty


@pytest.mark.parametrize("id", ["none-such", "..", ".", "", "../claims", "/etc", "OTHER"])
def test_remove_takes_only_a_row(root, made, id):
    rows.add(file(made), id="other", **NAMED)
    before = state(root)
    with pytest.raises(DataError, match=r"no such row; expected one of other"):
        rows.remove(id)
    with pytest.raises(DataError, match=r"no such row; expected one of other"):
        rows.card(id)
    assert state(root) == before


def test_a_broken_row_folder_is_named_and_can_be_removed(root, made):
    path = file(made)
    rows.add(path, id="mine", **NAMED)
    (root / "rows/mine/row.json").write_text('{"id": "mine", "model": 3}')
    with pytest.raises(DataError, match=r"mine/row.json, field 'model': 3; "):
        rows.describe()
    (root / "rows/mine/row.json").unlink()
    assert rows.ids() == []
    with pytest.raises(DataError, match="already taken"):
        rows.add(path, id="mine", **NAMED)
    rows.remove("mine")
    rows.add(path, id="mine", **NAMED)


def test_the_first_row_of_a_copy_without_a_rows_folder(root, made):
    (root / "rows").rmdir()
    assert rows.ids() == []
    with pytest.raises(DataError):
        rows.add(write(made, "empty.csv", ""), id="mine", **NAMED)
    assert not (root / "rows").exists()
    rows.add(file(made), id="mine", **NAMED)
    assert rows.ids() == ["mine"]


# --- in the rank analysis -----------------------------------------------------------------------------------


def test_an_added_row_is_a_sensitivity_of_the_screen(root, made):
    path = file(made)
    cohort = data.model_rows()
    alone = screen.with_added(cohort, rows.summary([]))
    probes = write(made, "probes.jsonl", jsonl(synthetic.probes(6, seed=2)))
    rows.add(path, id="probed", model="M", family="Qwen", probes=probes)
    rows.add(path, id="new-family", model="M", family="Mine", probes=probes)
    rows.add(path, id="bare", model="M", family="Mine")
    both = screen.with_added(cohort, rows.summary(rows.ids()))
    assert both["rows"].tolist() == ["paper", "bare", "new-family", "probed", "all added"]
    first = both.head(1)[alone.columns].to_csv(index=False)
    assert first == alone.to_csv(index=False)
    lines = both.set_index("rows")
    assert lines.loc["bare", "note"] == "alpha_tot is missing: cannot enter" and pd.isna(lines.loc["bare", "rho"])
    assert lines.loc[["probed", "new-family", "all added"], "n_families"].tolist() == [7, 8, 8]
    # The Qwen mean moves with the new row: computed here from the counts alone.
    summary = rows.summary(["probed"]).iloc[0]
    assert summary["alpha_tot"] == rows.card("probed").alpha_tot
    moved = pd.concat([cohort[["family", "alpha_tot", "c_cond"]], summary[["family", "alpha_tot", "c_cond"]].to_frame().T])
    means = moved.astype({"alpha_tot": float, "c_cond": float}).groupby("family").mean().rank()
    assert lines.loc["probed", "rho"] == pytest.approx(means["alpha_tot"].corr(means["c_cond"]))


def test_rows_stand_beside_the_papers(root, made):
    rows.add(file(made), id="mine", **NAMED)
    paper = ledger.summarize(data.debates())
    both = rows.beside(paper, rows.summary(["mine"]))
    assert both["added"].tolist() == [False] * 6 + [True] and both["row"].iat[-1] == "mine"
    pd.testing.assert_frame_equal(both.iloc[:6][list(paper)], paper, check_dtype=False)
    assert both[both["added"]]["n"].item() == 12


def test_describe_keeps_whole_numbers_beside_what_is_not_told(root, made):
    rows.add(file(made, "matrix"), id="matrix", **NAMED)
    rows.add(file(made), id="long", probes=write(made, "p.jsonl", jsonl(synthetic.probes(2))), **NAMED)
    told = rows.describe().set_index("id")
    assert told.loc["long", ["n_answers", "n_probes"]].tolist() == [144, 48]
    assert told.loc["matrix", ["n_answers", "n_missing", "alpha_tot", "n_probes"]].isna().all()
    assert str(told["n_probes"].dtype) == "Int64"


# --- bad input ----------------------------------------------------------------------------------------------


def lines(**changes):
    """Long lines of two questions, two rounds, two agents, with one cell changed: `at=3, answer="?"`."""
    at = changes.pop("at", None)
    out = [{"question": q, "round": r, "agent": a, "answer": "A", "gold": "A"} for q in ("q1", "q2") for r in (0, 1) for a in ("a", "b")]
    if at is not None:
        out[at] |= changes
    return out


def without(field):
    return [{name: value for name, value in line.items() if name != field} for line in lines()]


def csv_text(records):
    return pd.DataFrame(records).to_csv(index=False)


# name of the case: (content of the file, or several; words of the message)
BAD = {
    "no question": (csv_text(without("question")), ["bad.csv", "missing: question", "found: round"]),
    "no agent": (csv_text(without("agent")), ["bad.csv", "missing: agent"]),
    "no answer": (csv_text(without("answer")), ["bad.csv", "answer (or text)"]),
    "no gold": (csv_text(without("gold")), ["bad.csv", "'gold'", "expected the right answer"]),
    "no round": (csv_text(without("round")), ["bad.csv, line 4", "'agent'", "is the column 'round' missing?"]),
    "another table": ("x,y\n1,2\n", ["bad.csv", "no known layout", "question"]),
    "unknown label": (csv_text(lines(at=5, answer="Q")), ["bad.csv", "question 'q2'", "round 0", "agent 'b'", "'answer'", "'Q'", "expected one of A, B"]),
    "text as answer": (csv_text(lines(at=0, answer="I think it is A")), ["question 'q1'", "'I think it is A'", "expected one of"]),
    "unknown gold": (csv_text([line | {"gold": "Z"} for line in lines()]), ["question 'q1'", "'gold'", "'Z'", "expected one of A"]),
    "two golds": (csv_text(lines(at=3, gold="B")), ["question 'q1'", "'gold'", "'B'", "'A'", "expected one gold"]),
    "twice in a round": (csv_text([*lines(), lines()[0]]), ["bad.csv, line 10", "'agent'", "'q1'", "expected one"]),
    "twice in a round, jsonl": (jsonl([*lines(), lines()[0]]), ["bad.csv, line 9", "'agent'", "'q1'", "expected one"]),
    "mixed rounds": (csv_text(lines()[:6]), ["bad.csv", "question 'q2'", "'round'", "ends in round 0", "expected the same number"]),
    "no round 0": (csv_text([line | {"round": line["round"] + 1} for line in lines()]), ["question 'q1'", "'round'", "no round 0"]),
    "round is a word": (csv_text(lines(at=2, round="first")), ["bad.csv, line 4", "'round'", "'first'", "expected a whole number"]),
    "negative round": (csv_text(lines(at=2, round=-1)), ["'round'", "-1", "expected"]),
    "torn jsonl": (jsonl(lines())[:-14], ["bad.csv, line 8", "no complete JSON"]),
    "torn csv": (csv_text(lines())[:-5], ["bad.csv, line 9", "3 fields", "expected 5"]),
    "torn within the last cell": (csv_text(lines())[:-2], ["question 'q2'", "round 1", "agent 'b'", "'gold'", "missing"]),
    "torn layout b": (jsonl(records_of(answers(3), "layout_b"))[:-200], ["bad.csv, line 3", "no complete JSON"]),
    "torn chat": (json.dumps(chat())[:-30], ["bad.csv", "JSON"]),
    "cut gz": (gzip.compress(csv_text(lines()).encode())[:-12], ["bad.csv", "gz", "expected a complete gz file"]),
    "empty": ("", ["bad.csv", "empty"]),
    "blank": ("\n\n  \n", ["bad.csv", "empty"]),
    "no answer at all": (csv_text([line | {"answer": None} for line in lines()]), ["bad.csv", "'answer'", "none of 8", "expected labels"]),
    "header only": ("question,round,agent,answer,gold\n", ["bad.csv", "no records"]),
    "not text": (b"\x00\x01\x02" * 50, ["bad.csv", "NUL"]),
    "not utf-8": (csv_text(lines()).encode() + b"q3,0,\xe9,A,A\n", ["bad.csv, line 10", "UTF-8"]),
    "two rows": (csv_text([line | {"row": line["question"]} for line in lines()]), ["bad.csv", "'row'", "q1, q2", "expected one model-scaffold row"]),
    "states at odds": (jsonl([records_of(answers(1), "layout_a")[0] | {"final_answers": ["J", "J", "I"]}]), ["bad.csv, line 1", "final_answers"]),
    "a record twice": (jsonl(records_of(answers(1), "layout_b") * 2), ["bad.csv, line 2", "q0000000", "expected one"]),
    "matrix, flag": (matrix().replace({"collapsed": {1: 2}}).to_csv(index=False), ["bad.csv, line", "'collapsed'", "'2'", "expected 0 or 1"]),
    "matrix, at odds": (matrix().assign(collapsed=0).to_csv(index=False), ["bad.csv, line", "'collapsed'", "expected 1"]),
    "matrix, fraction": (matrix().assign(r2_agree_frac=1.5).to_csv(index=False), ["bad.csv, line 2", "'r2_agree_frac'", "1.5"]),
    "matrix, no column": (matrix().drop(columns="corrected").to_csv(index=False), ["bad.csv", "missing: corrected"]),
    "matrix, no feature": (matrix().drop(columns="r2_majority_changed").to_csv(index=False), ["bad.csv", "changed_2", "expected all columns"]),
    "matrix, label": (matrix().assign(correct_label=SECRET).to_csv(index=False), ["bad.csv", "q0000000", "'gold'", "'marker", "expected one of A"]),
    "two files, one twice": ([csv_text(lines()), csv_text(lines())], ["bad.csv", "question 'q1'", "expected one"]),
    "two files, kinds": ([csv_text(lines()), matrix().to_csv(index=False)], ["bad.csv, bad1.csv", "expected one kind"]),
    "two files, rounds": ([csv_text(lines()), answers(2).to_csv(index=False)], ["expected the same number"]),
    "two matrices, one twice": ([matrix().to_csv(index=False)] * 2, ["bad.csv, bad1.csv", "'q0000000'", "in two files"]),
    "two matrices, rounds": (
        [matrix().to_csv(index=False),
         matrix().drop(columns=["r3_majority_changed", "r3_majority_correct", "r3_agree_frac"]).assign(
             question_id=lambda x: "x" + x["question_id"], final_correct=lambda x: x["r2_majority_correct"],
             collapsed=lambda x: ((x["init_correct"] == 1) & (x["r2_majority_correct"] == 0)).astype(int),
             corrected=lambda x: ((x["init_correct"] == 0) & (x["r2_majority_correct"] == 1)).astype(int)).to_csv(index=False)],
        ["bad.csv, bad1.csv", "2 and 3 rounds", "expected the same number"]),
}


def refused(root, words, paths, **options):
    before = state(root)
    for act in (rows.check, rows.add):
        with pytest.raises((DataError, OSError)) as found:
            act(paths, **({"id": "mine"} | NAMED | options))
        message = str(found.value)
        assert "\n" not in message
        for word in words:
            assert word in message
    assert state(root) == before


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_and_leave_the_data_alone(root, made, case):
    content, words = BAD[case]
    parts = content if isinstance(content, list) else [content]
    refused(root, words, [write(made, f"bad{k or ''}.csv", part) for k, part in enumerate(parts)])


def test_a_line_of_100_mb_is_refused(root, made):
    path = made / "long.jsonl"
    with open(path, "wb") as stream:
        stream.write(jsonl(lines()).encode())
        stream.write(b'{"question": "')
        for _ in range(100):
            stream.write(b"x" * 2**20)
        stream.write(b'"}\n')
    refused(root, ["long.jsonl, line 9", "longer than", "expected one record a line"], path)


@pytest.mark.parametrize("id, words", [
    ("../x", ["'../x'", "expected 1 to 64"]), ("/tmp/x", ["expected 1 to 64"]), ("", ["''", "expected 1 to 64"]),
    ("a/b", ["expected 1 to 64"]), (".", ["expected 1 to 64"]), ("..", ["expected 1 to 64"]), (".hidden", ["expected 1 to 64"]),
    ("a\\b", ["expected 1 to 64"]), ("x\n", ["expected 1 to 64"]), ("a b", ["expected 1 to 64"]), ("x" * 65, ["expected 1 to 64"]),
    ("taken", ["'taken'", "already taken", "row remove taken"]), ("TAKEN", ["'TAKEN'", "already taken", "row remove taken"]),
    ("qwen3-8b", ["'qwen3-8b'", "the paper's"]), ("Sonnet-4.5", ["the paper's"]), ("paper", ["the paper's"]),
])
def test_bad_ids_are_refused(root, made, id, words):
    path = write(made, "long.csv", csv_text(lines()))
    rows.add(path, id="taken", **NAMED)
    refused(root, ["id ", *words], path, id=id)


@pytest.mark.parametrize("options, words", [
    ({"model": ""}, ["model ''", "expected"]), ({"model": "two\nlines"}, ["model", "expected"]), ({"family": "  "}, ["family", "expected"]),
    ({"family": " Mine"}, ["family ' Mine'", "blanks"]), ({"family": "qwen"}, ["family 'qwen'", "'Qwen'"]), ({"family": "openai"}, ["'OpenAI'"]),
    ({"labels": ""}, ["labels ''", "expected distinct"]), ({"labels": "ABA"}, ["labels 'ABA'", "expected distinct"]),
    ({"labels": "A,B"}, ["labels 'A,B'", "expected distinct"]), ({"labels": "BCD"}, ["'A'", "expected one of B, C, D"]),
])
def test_bad_names_and_labels_are_refused(root, made, options, words):
    refused(root, words, write(made, "long.csv", csv_text(lines())), **options)


def test_bad_paths_are_refused(root, made):
    refused(root, ["none.csv", "no such file"], made / "none.csv")
    refused(root, ["made", "is a directory"], made)
    refused(root, ["no files"], [])
    os.mkfifo(made / "pipe")
    refused(root, ["pipe", "not a regular file"], made / "pipe")
    path = write(made, "long.csv", csv_text(lines()))
    refused(root, ["none.jsonl", "no such file"], path, probes=made / "none.jsonl")
    refused(root, ["made", "is a directory"], path, probes=made)


PROBE = synthetic.probes(1)[0]


@pytest.mark.parametrize("records, words", [
    ("", ["probes.jsonl", "empty"]),
    (jsonl([PROBE])[:-9], ["probes.jsonl, line 1", "no complete JSON"]),
    (jsonl([{"question_id": "q"}]), ["probes.jsonl", "'initial_answer'"]),
    (jsonl([PROBE, PROBE]), ["probes.jsonl, line 2", "expected one record"]),
    (jsonl([PROBE | {"condition": "odd"}]), ["probes.jsonl, line 1", "'condition'", "'odd'", "expected one of default"]),
    (jsonl([PROBE | {"condition": "anti_social"}]), ["probes.jsonl", "'condition'", "no probe of the default condition"]),
    (jsonl([PROBE | {"probe_results": []}]), ["probes.jsonl, line 1", "'probe_results'", "expected"]),
    (jsonl([PROBE | {"probe_results": [{"strength": "huge", "post_answer": "A"}]}]), ["line 1, probe 1", "'strength'", "'huge'", "expected one of weak"]),
    (jsonl([PROBE | {"probe_results": [{"strength": "weak", "post_answer": SECRET}]}]), ["probes.jsonl", "q0000000", "'post_answer'", "expected one of A"]),
    (jsonl([PROBE | {"initial_answer": SECRET}]), ["probes.jsonl", "q0000000", "'initial_answer'", "expected one of A"]),
])
def test_bad_probes_are_refused(root, made, records, words):
    refused(root, words, write(made, "long.csv", csv_text(lines())), probes=write(made, "probes.jsonl", records))


# --- breaking off -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where, kind", [
    ("rename", OSError("not permitted")), ("rename", KeyboardInterrupt()), ("to_csv", OSError("disk full")), ("to_csv", MemoryError()),
    ("second to_csv", OSError("disk full")), ("write_text", OSError("disk full")), ("chmod", KeyboardInterrupt()),
])
def test_a_crash_in_the_middle_leaves_the_data_alone(root, made, monkeypatch, where, kind):
    path = file(made)
    probes = write(made, "probes.jsonl", jsonl([PROBE]))
    before = state(root)
    owner, name = {"rename": (os, "rename"), "write_text": (Path, "write_text"), "chmod": (Path, "chmod")}.get(where, (pd.DataFrame, "to_csv"))
    real, calls = getattr(owner, name), itertools.count()

    def broken(*args, **options):
        if where == "second to_csv" and next(calls) == 0:
            return real(*args, **options)
        raise kind

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, broken)
        with pytest.raises(type(kind)):
            rows.add(path, id="mine", probes=probes, **NAMED)
    assert state(root) == before
    rows.add(path, id="mine", probes=probes, **NAMED)
    assert rows.ids() == ["mine"]


def test_an_id_taken_in_the_meantime_is_not_overwritten(root, made, monkeypatch):
    path = file(made)
    real = os.rename

    def overtaken(source, target):
        monkeypatch.setattr(os, "rename", real)
        rows.add(path, id="mine", model="Faster", family="Other")
        return real(source, target)

    monkeypatch.setattr(os, "rename", overtaken)
    with pytest.raises(DataError, match="'mine': was taken while"):
        rows.add(path, id="mine", **NAMED)
    assert rows.card("mine").model == "Faster"
    assert [p.name for p in (root / "rows").iterdir()] == ["mine"]


KILLED = """
import os, pathlib, signal, sys
from analysis import rows
pathlib.Path.chmod = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # everything written, not yet in place
rows.add(sys.argv[1], id="mine", model="M", family="F")
"""


def test_a_killed_run_leaves_a_hidden_folder_that_is_cleared_later(root, made):
    path = file(made)
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], cwd=DATA.parent, env=os.environ, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    (left,) = (root / "rows").iterdir()
    assert left.name.startswith(".adding-") and (left / "row.json").is_file()
    assert rows.ids() == [] and rows.describe().empty
    rows.add(path, id="mine", **NAMED)
    assert rows.ids() == ["mine"] and left.is_dir()  # it could be another run that is still at work
    old = time.time() - 2 * rows.STALE
    os.utime(left, (old, old))
    rows.add(path, id="other", **NAMED)
    assert sorted(p.name for p in (root / "rows").iterdir()) == ["mine", "other"]


# --- files of others ----------------------------------------------------------------------------------------


def test_real_chat_files_are_added_and_removed(root, shared):
    before = state(root)
    found = sorted((shared / "real" / "slm_debates").glob("*.json"))
    assert len(found) == 7
    for k, path in enumerate(found):
        row = rows.add(path, id=f"real-{k}", labels="ABCD", **NAMED)
        direct = traces.validate(traces.read(path, labels="ABCD"), labels="ABCD")
        expected = ledger.summarize(ledger.debates(direct))[COUNTS].iloc[0].tolist()
        assert rows.summary([row.id])[COUNTS].iloc[0].tolist() == expected
        assert "content" not in (root / "rows" / row.id / "answers.csv").read_text()
    for id in rows.ids():
        rows.remove(id)
    assert state(root) == before


def test_onsets_later_than_the_papers_rounds_are_kept_beside_it():
    """Four collapses in Round 4 of an added row, beside a paper of three rounds."""
    lines = [("m", f"q{q}", 0, r, str(a), "B" if r == 4 else "A", "A") for q in range(4) for r in range(5) for a in range(3)]
    late = ledger.debates(pd.DataFrame(lines, columns="row question replicate round agent answer gold".split()))
    shown = rows.beside(localize.onset_table(data.debates()), localize.onset_table(late).iloc[:-1])
    assert shown.iloc[-1][["round_1", "round_3", "round_4"]].tolist() == [0, 0, 4]
    assert shown["round_4"].isna().sum() == len(shown) - 1
    table = tables.onset(shown)
    assert table["Round 4"].tolist() == ["–"] * 7 + ["100.0% (4/4)"]
    figures.onset(shown, pooled=localize.POOLED)
