"""Export of a row: what is read back is the same row; nothing but the open tier; nothing half-written."""

import hashlib
import json
import shutil
from datetime import date
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis import cli, export, ledger, localize, probes, replay, rows, stored, traces, validation
from analysis.errors import DataError

DATA = Path(__file__).resolve().parents[1] / "data"
MADE = "example-synthetic"
NAMED = {"model": "Made-up agents", "family": "Synthetic"}


@pytest.fixture
def root(tmp_path, monkeypatch):
    copy = tmp_path / "data"
    shutil.copytree(DATA, copy, ignore=shutil.ignore_patterns("multilevel"))
    monkeypatch.setenv("DEBATE_LEDGER_DATA", str(copy))
    examples = copy / "examples"
    rows.add(examples / "synthetic_debates.jsonl", probes=examples / "synthetic_probes.jsonl", id=MADE, synthetic=True, **NAMED)
    return copy


def same(one, other):
    """Two rows have the same ledger, onsets, gates and flip rate."""
    unnamed = [rows.debates([id]).drop(columns="row") for id in (one, other)]
    pd.testing.assert_frame_equal(*unnamed)
    for measure in (ledger.summarize, ledger.onset, localize.onset_table, replay.replay_gates):
        pd.testing.assert_frame_equal(*[measure(debates.assign(row="r")) for debates in unnamed])
    asked = [stored.probes([id]).assign(row="r") for id in (one, other)]
    pd.testing.assert_frame_equal(*asked)
    first, second = (rows.card(id) for id in (one, other))
    assert (first.alpha_tot, first.n_flips, first.n_probes) == (second.alpha_tot, second.n_flips, second.n_probes)


def test_a_row_comes_back_as_it_was(root, tmp_path):
    out = tmp_path / "out"
    told = export.write(MADE, out)
    assert told["file"].tolist() == ["debates.jsonl", "probes.jsonl", "reuse_card.json", "cost_card.json", "croissant.json"]
    row = rows.add(out / "debates.jsonl", probes=out / "probes.jsonl", id="again", **NAMED)
    same(MADE, "again")
    assert row.synthetic and row.quality_control is None and len(rows.debates(["again"])) == 120
    # Once more: what was imported exports to the same records.
    export.write("again", tmp_path / "twice")
    for name in ("debates.jsonl", "probes.jsonl"):
        texts = [(folder / name).read_text().replace(MADE, "again") for folder in (out, tmp_path / "twice")]
        assert texts[0] == texts[1]


def test_a_row_that_fails_quality_control_comes_back_as_one(root, tmp_path):
    shipped = "smollm2-135m"
    assert rows.card(shipped).quality_control == "fails"
    export.write(shipped, tmp_path / "out")
    back = rows.add(tmp_path / "out" / "debates.jsonl", probes=tmp_path / "out" / "probes.jsonl", id="again", model="M", family="F")
    same(shipped, "again")
    assert (back.quality_control, back.synthetic) == ("fails", False)
    assert "fails quality control" in rows.named(pd.DataFrame({"row": ["again"]}))["row"].item()
    cost = json.loads((tmp_path / "out" / "cost_card.json").read_text())
    calls = {step["step"]: step["calls"] for step in cost["steps"]}
    assert cost["generations"]["approx_debate_completions"] == len(stored.answers([shipped])) == calls["initial"] + calls["debate"]
    assert calls["probe"] >= cost["generations"]["initial_answer_rows"] + cost["generations"]["probe_completions"]


def test_missing_answers_replicates_numbers_and_names_come_back(root, tmp_path):
    cells = [("007", 0, "B"), ("007", 1, "B"), ("frage ü", 0, "12.5")]
    said = ["B", None, "A", "A", "A", "B", None, None, "B", "A", "B", "B", "12.5", "3", None, "12.5", "12.5", "3"]
    lines = [
        {"question": question, "replicate": replicate, "round": number, "agent": agent, "gold": gold}
        for question, replicate, gold in cells
        for number in (0, 1)
        for agent in ("a 1", "b", "c")
    ]
    path = tmp_path / "odd.csv"
    pd.DataFrame(lines).assign(answer=said).to_csv(path, index=False)
    rows.add(path, id="odd", **NAMED)
    export.write("odd", tmp_path / "out")
    assert not (tmp_path / "out" / "probes.jsonl").exists()
    rows.add(tmp_path / "out" / "debates.jsonl", id="again", **NAMED)
    answers = [stored.answers([id]).drop(columns="row") for id in ("odd", "again")]
    key = ["question", "replicate", "round", "agent"]
    pd.testing.assert_frame_equal(*[frame[[*key, "answer", "gold"]].sort_values(key, ignore_index=True) for frame in answers])
    assert rows.card("again").n_missing == 4
    same("odd", "again")


def test_a_feature_matrix_comes_back(root, tmp_path):
    debates = rows.debates([MADE])
    names = {"model": "m", "question_id": debates["question"], "correct_label": debates["gold"]}
    flags = {
        "collapsed": debates["cell"] == "collapse",
        "corrected": debates["cell"] == "correction",
        "final_correct": debates["correct_3"],
        "init_correct": debates["correct_0"],
        "init_unanimous": debates["unanimous_0"],
        "r1_n_flipped_from_init": debates["n_flipped_1"],
    }
    for k in (1, 2, 3):
        flags |= {f"r{k}_majority_changed": debates[f"changed_{k}"], f"r{k}_majority_correct": debates[f"correct_{k}"]}
    shares = {f"r{k}_agree_frac": debates[f"agree_{k}"].round(4) for k in (1, 2, 3)}
    shares |= {"init_agree_frac": debates["agree_0"].round(4), "cascade_round": debates["onset"]}
    path = tmp_path / "matrix.csv"
    pd.DataFrame(names | {name: values.astype(int) for name, values in flags.items()} | shares).to_csv(path, index=False)
    rows.add(path, id="matrix", **NAMED)
    told = export.write("matrix", tmp_path / "out")
    assert told["file"].tolist()[0] == "debates.csv"
    rows.add(tmp_path / "out" / "debates.csv", id="again", **NAMED)
    same("matrix", "again")
    assert ledger.summarize(rows.debates(["again"]))["collapse"].item() == (debates["cell"] == "collapse").sum()


def test_probes_that_tell_little_come_back(root, tmp_path):
    records = [
        {"question_id": "q", "correct_label": "A", "initial_answer": None, "initial_correct": False, "probe_results": [{"revised": True}]},
        {"question_id": "q", "replicate": 1, "initial_answer": "A", "probe_results": [{"post_answer": None}, {"post_answer": "B", "social": True}]},
        {"question_id": "q", "agent_idx": 2, "initial_answer": "A", "probe_results": [{"strength_value": 0.3, "post_answer": "A"}]},
    ]
    path = tmp_path / "probes.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    debates = root / "examples" / "synthetic_debates.jsonl"
    rows.add(debates, probes=path, id="sparse", **NAMED)
    assert stored.probes(["sparse"])["replicate"].tolist() == [0, 1, 1, 0]
    export.write("sparse", tmp_path / "out")
    rows.add(debates, probes=tmp_path / "out" / "probes.jsonl", id="again", **NAMED)
    same("sparse", "again")


def test_a_replicate_that_is_none_is_refused(tmp_path):
    path = tmp_path / "probes.jsonl"
    record = {"question_id": "q", "replicate": -1, "initial_answer": "A", "probe_results": [{"post_answer": "A"}]}
    path.write_text(json.dumps(record))
    with pytest.raises(DataError, match="line 1, field 'replicate': -1; expected a whole number from 0"):
        probes.read(path)


def test_the_cards_are_filled_and_valid(root, tmp_path):
    export.write(MADE, tmp_path / "out")
    for name in ("debates.jsonl", "probes.jsonl", "reuse_card.json"):
        assert not len(validation.validate(tmp_path / "out" / name)), name
    card = json.loads((tmp_path / "out" / "reuse_card.json").read_text())
    assert card["model_card"]["release"]["metadata_file"] == "croissant.json"
    assert "release.metadata_file" not in card["absent"]
    ended = card["model_card"]["debate_outcome_accounting"]["conditional_collapse_rate"]
    assert (ended["k"], ended["n"]) == tuple(ledger.summarize(rows.debates([MADE])).loc[0, ["collapse", "init_correct"]])
    cost = json.loads((tmp_path / "out" / "cost_card.json").read_text())
    # 120 debates, 3 agents, 4 rounds; 20 questions, 3 conditions, 3 agents, 8 probes.
    assert cost["generations"] == {"approx_debate_completions": 1440, "initial_answer_rows": 180, "probe_completions": 1440}
    assert cost["steps"] is None and "not made from logs" in cost["note"]


def test_no_text_is_in_any_record(root, tmp_path):
    export.write(MADE, tmp_path / "out")
    for line in (tmp_path / "out" / "debates.jsonl").read_text().splitlines():
        record = json.loads(line)
        states = [*record["initial_states"], *(state for part in record["round_traces"] for state in part)]
        assert {state["reasoning"] for state in states} == {None} and record["release_tier"] == "open"
        assert set(states[0]) == {"agent_id", "answer", "reasoning", "round_num"}
    allowed = {"strength", "strength_value", "social", "alt_answer", "post_answer", "revised"}
    for line in (tmp_path / "out" / "probes.jsonl").read_text().splitlines():
        assert all(set(result) == allowed for result in json.loads(line)["probe_results"])


# --- metadata -----------------------------------------------------------------------------------------------


def test_metadata_name_every_file_with_its_checksum(root, tmp_path):
    told = export.write(MADE, tmp_path / "out", published=date(2026, 5, 1)).set_index("file")
    made = json.loads((tmp_path / "out" / "croissant.json").read_text())
    files = {entry["@id"]: entry for entry in made["distribution"]}
    assert set(files) == {path.name for path in (tmp_path / "out").iterdir()} - {"croissant.json"}
    for name, entry in files.items():
        content = (tmp_path / "out" / name).read_bytes()
        assert entry["sha256"] == told.loc[name, "sha256"] == hashlib.sha256(content).hexdigest()
    assert made["datePublished"] == "2026-05-01" and "license" not in made
    assert made["description"].startswith("Made-up debates")


def test_the_formats_own_library_reads_the_folder(root, tmp_path):
    library = pytest.importorskip("mlcroissant", reason="mlcroissant, which checks the metadata, is not installed")
    export.write(MADE, tmp_path / "out", license="https://creativecommons.org/licenses/by/4.0/", creator="A lab")
    dataset = library.Dataset(str(tmp_path / "out" / "croissant.json"))
    issues = dataset.metadata.ctx.issues
    assert (issues.errors, issues.warnings) == (set(), set())
    found = pd.DataFrame(list(dataset.records("debates")))
    assert found["debates/question_id"].map(bytes.decode).tolist() == rows.debates([MADE])["question"].tolist()
    assert len(list(dataset.records("probes"))) == 180


# --- what is refused, and what a failure leaves -------------------------------------------------------------


def test_a_folder_that_holds_something_is_refused_and_stays(root, tmp_path):
    full, file = tmp_path / "full", tmp_path / "file"
    full.mkdir()
    (full / "mine.txt").write_text("mine")
    file.write_text("mine")
    for target in (full, file):
        with pytest.raises(DataError, match="is there already; expected a new or an empty folder"):
            export.write(MADE, target)
    assert [path.name for path in full.iterdir()] == ["mine.txt"] and file.read_text() == "mine"
    with pytest.raises(DataError, match="there is no folder"):
        export.write(MADE, tmp_path / "no" / "where")
    with pytest.raises(DataError, match="no such row"):
        export.write("nobody", tmp_path / "out")
    with pytest.raises(ValueError, match="tier='gated': expected one of open"):
        export.write(MADE, tmp_path / "out", tier="gated")
    assert not (tmp_path / "out").exists()


def test_an_empty_folder_is_filled(root, tmp_path):
    (tmp_path / "out").mkdir()
    export.write(MADE, tmp_path / "out")
    assert len(list((tmp_path / "out").iterdir())) == 5


@pytest.mark.parametrize("where", ["cost_card", "metadata", "_records"])
def test_a_crash_leaves_nothing(root, tmp_path, monkeypatch, where):
    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(export, where, fail)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(OSError, match="disk full"):
        export.write(MADE, tmp_path / "out")
    assert sorted(tmp_path.iterdir()) == before


def test_the_command(root, tmp_path):
    done = CliRunner().invoke(cli.app, ["row", "export", MADE, "--tier", "open", "--out", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    assert [one["file"] for one in json.loads(done.output)][0] == "debates.jsonl"
    assert len(traces.read(tmp_path / "out" / "debates.jsonl")) == 1440
    done = CliRunner().invoke(cli.app, ["row", "export", MADE, "--out", str(tmp_path / "plain")])
    assert "name no licence: give its address with --license" in done.output
    done = CliRunner().invoke(cli.app, ["row", "export", MADE, "--tier", "gated", "--out", str(tmp_path / "more")])
    assert done.exit_code == 2
