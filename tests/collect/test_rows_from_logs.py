"""Rows made from logs: which arm, quality control, tokens, probes, and that no text is stored."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis import cards, cli, export, ledger, rows, tables, tables_cards, traces
from analysis.collect import logs
from analysis.collect.debate import debate
from analysis.collect.probe import probe
from analysis.errors import DataError

NAMED = {"id": "mine", "model": "My model", "family": "Mine"}
SECRET = "marker words of a reply"
GOLDS = {f"q{k}": "B" for k in range(10)}


def says(text, config):
    """Peers turn all of q0 wrong; privately everybody stays right, but q0 says nothing from Round 1 on."""
    if "<<peer" in text and "[q0]" in text:
        return f"{SECRET}\nFinal Answer: A"
    if "<<private" in text and "[q0]" in text:
        return ""
    if "<<social" in text:
        return f"{SECRET}\nFinal Answer: C"
    return f"{SECRET}\nFinal Answer: B"


@pytest.fixture(scope="module")
def made(scripted, card_path, write_pool, tmp_path_factory):
    """Folders of two runs, as `collect` leaves them: debates in two arms, and probes."""
    from inspect_ai import eval

    pool, model = write_pool(GOLDS), scripted(says).model
    folder = tmp_path_factory.mktemp("runs")
    options = {"card": str(card_path), "pool": pool, "cache": False}
    for name, task in [
        ("debate", debate(arms="peer,private", rounds=2, **options)),
        ("probe", probe(agents=2, conditions="default", **options)),
    ]:
        log = eval(task, model=model, log_dir=str(folder / name / "logs"), display="none")[0]
        assert log.status == "success"
    return folder


@pytest.fixture
def root(tmp_path, monkeypatch):
    copy = tmp_path / "data"
    shutil.copytree(Path(__file__).parents[2] / "data", copy, ignore=shutil.ignore_patterns("rows"))
    monkeypatch.setenv("DEBATE_LEDGER_DATA", str(copy))
    return copy


def cells(id):
    return ledger.summarize(rows.debates([id]))[list(ledger.CELLS)].iloc[0].tolist()


def test_an_arm_survives_export(root, made, tmp_path):
    rows.add(made / "debate", arm="private", **NAMED)
    export.write("mine", tmp_path / "out")
    back = rows.add(tmp_path / "out" / "debates.jsonl", **NAMED | {"id": "back"})
    assert (back.arm, back.quality_control) == ("private", "fails") and cells("back") == cells("mine")


def test_a_log_of_another_task_is_refused(root, scripted, tmp_path):
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample

    task = Task(dataset=[Sample(input="1+1?", target="2")], name="sums")
    eval(task, model=scripted(lambda text, config: "2").model, log_dir=str(tmp_path / "sums"), display="none")
    with pytest.raises(DataError, match="a log of another task; expected one of analysis/collect/debate.py"):
        rows.add(tmp_path / "sums", **NAMED)


def test_peer_is_read_unless_another_arm_is_asked_for(root, made):
    row = rows.add(made / "debate", **NAMED)
    assert (row.arm, row.layout, row.n_debates, row.n_answers) == ("peer", "inspect", 10, 90)
    assert cells("mine") == [9, 1, 0, 0]
    other = rows.add(made / "debate", arm="private", **NAMED | {"id": "other"})
    assert other.arm == "private" and cells("other") == [9, 1, 0, 0] and other.n_missing == 6
    told = tables.rows(rows.describe(["mine", "other"]))
    assert told["Read as"].tolist() == ["Inspect log, arm peer", "Inspect log, arm private"]
    with pytest.raises(DataError, match="arm 'shielded': not in this log; expected one of peer, private"):
        rows.check(made / "debate", arm="shielded", **NAMED | {"id": "third"})


def test_a_log_and_its_folders_are_the_same(root, made):
    (log,) = (made / "debate" / "logs").iterdir()
    first = rows.check(log, **NAMED)
    for place in (log.parent, made / "debate"):
        row, frame, _ = rows.check(place, **NAMED)
        assert row == first[0]
        pd.testing.assert_frame_equal(frame, first[1])
    assert [source.name for source in first[0].sources] == [log.name]
    pd.testing.assert_frame_equal(traces.read(log), logs.answers(log))
    assert set(traces.read(log, arm="all")["row"]) == {"mockllm/model (peer)", "mockllm/model (private)"}


def test_probes_of_a_log_count_like_probes_of_a_file(root, made, tmp_path):
    file = logs.write_probes(made / "probe" / "logs", tmp_path / "probes.jsonl")
    told = [
        rows.check([made / "debate", made / "probe"], **NAMED),
        rows.check(made / "debate", probes=made / "probe", **NAMED),
        rows.check(made / "debate", probes=file, **NAMED),
    ]
    # 10 questions, two agents, eight probes of which the four social ones flip.
    assert {(row.n_probes, row.n_flips, row.alpha_tot) for row, _, _ in told} == {(160, 80, 0.5)}
    for _, _, frame in told[1:]:
        pd.testing.assert_frame_equal(frame, told[0][2])


def test_quality_control_is_that_of_the_arm(root, made):
    assert rows.check(made / "debate", **NAMED)[0].quality_control == "passes"
    row = rows.add(made / "debate", arm="private", **NAMED)
    # Silent: three agents in two rounds, of ten debates with Round 0 and two rounds.
    assert row.quality_control == "fails"
    assert rows.checks(row) == "missing 6/90, truncated 0/90, unclosed 0/90 (at most 2% allowed)"
    assert json.loads((rows.folder() / "mine" / "row.json").read_text())["quality"][0] == {
        "check": "missing",
        "k": 6,
        "n": 90,
        "limit": 0.02,
    }


def test_a_row_that_fails_says_so_everywhere(root, made):
    words = ["row", "add", made / "debate", "--id", "mine", "--model", "M", "--family", "F", "--arm", "private"]
    done = CliRunner().invoke(cli.app, list(map(str, words)))
    assert done.exit_code == 0
    assert "quality_control fails: missing 6/90, " in done.output
    assert "This row fails strict quality control; its name says so in every table." in done.output
    summary = rows.summary(["mine"])
    assert tables.transitions(rows.beside(summary, summary))["Row"].tolist() == [
        "mine",
        "mine, fails quality control (added)",
    ]
    assert rows.named(rows.named(summary))["row"].tolist() == ["mine, fails quality control"]
    shown = tables.rows(rows.describe(["mine"]))["Quality control"].item()
    assert shown == "fails: missing 6/90, truncated 0/90, unclosed 0/90 (at most 2% allowed)"
    card = cards.card("mine")
    assert card.quality_control == "fails"
    assert tables_cards.overview(cards.summary([card]))["Row"].item() == "mine, fails quality control (added)"


def test_the_card_takes_from_the_log_what_it_asks_for(root, made):
    rows.add([made / "debate", made / "probe"], **NAMED)
    card = cards.card("mine")
    told, pool = card.model_card.identity, card.model_card.question_pool
    assert (told.backend, told.model_version_or_snapshot) == ("Inspect, mockllm", "model")
    assert told.serving_parameters["arm"] == "peer"
    assert told.serving_parameters["temperatures"] == [0.5, 0.7, 1.0]
    assert told.serving_parameters["prompts"].startswith("marked ")
    # Whose file it is and how its questions were chosen, the log does not know.
    assert (pool.benchmark, pool.pool_selection_rule, pool.outcome_blind_selection) == ("pool.jsonl", None, None)
    assert card.model_card.release.full_transcripts_open_or_gated == "gated"


def test_tokens_are_those_of_the_calls(root, made):
    row = rows.add([made / "debate", made / "probe"], **NAMED)
    steps = {one.step: (one.calls, one.tokens_in, one.tokens_out, one.cost) for one in row.usage}
    # The scripted model reports 10 tokens in and 5 out for each call.
    assert steps == {
        "initial": (30, 300, 150, None),
        "debate": (60, 600, 300, None),
        "probe": (180, 1800, 900, None),
    }


def test_no_text_is_stored(root, made):
    rows.add([made / "debate", made / "probe"], **NAMED)
    for path in (rows.folder() / "mine").iterdir():
        text = path.read_text(encoding="utf-8")
        assert SECRET not in text and "Which one?" not in text and "<<" not in text


def test_ledger_and_replay_read_logs(made):
    words = ["--arm", "private", "--json"]
    for command, more in [("ledger", []), ("replay", ["--gate", "always_freeze"])]:
        done = CliRunner().invoke(cli.app, [command, str(made / "debate"), *more, *words])
        assert done.exit_code == 0, done.output
        assert json.loads(done.output)[0]["n"] == 10


def test_what_is_no_row_is_refused(root, made, tmp_path):
    example = root / "examples" / "synthetic_debates.jsonl"
    with pytest.raises(DataError, match="probes alone; expected debates of the row too"):
        rows.check(made / "probe", **NAMED)
    with pytest.raises(DataError, match="a log of debates; expected probes"):
        rows.check(made / "debate", probes=made / "debate", **NAMED)
    with pytest.raises(DataError, match="a file and a log; expected the debates of a row in one kind of record"):
        rows.check([made / "debate", example], **NAMED)
    probes_file = root / "examples" / "synthetic_probes.jsonl"
    with pytest.raises(DataError, match="probes twice; expected them once"):
        rows.check([made / "debate", made / "probe"], probes=probes_file, **NAMED)
    with pytest.raises(ValueError, match="there is no log of debates"):
        rows.check(example, arm="peer", **NAMED)
    with pytest.raises(DataError, match="is a directory without logs"):
        rows.check(tmp_path, **NAMED)
    (log,) = (made / "debate" / "logs").iterdir()
    cut = tmp_path / "cut.eval"
    cut.write_bytes(log.read_bytes()[:5000])
    with pytest.raises(DataError, match="cut.eval: a zip file but no whole Inspect log"):
        rows.check(cut, **NAMED)
    assert rows.ids() == []


def test_rows_of_other_layouts_do_not_tell(root):
    rows.add(root / "examples" / "synthetic_debates.jsonl", **NAMED)
    assert tables.rows(rows.describe(["mine"]))["Quality control"].item() == "not told"
    assert cards.card("mine").quality_control == "not told"


def test_a_log_that_cannot_be_unpacked_says_what_is_missing(made, monkeypatch):
    import zipfile

    def unpack(*_):
        raise NotImplementedError("compression type 93")

    monkeypatch.setattr(zipfile.ZipFile, "read", unpack)
    with pytest.raises(DataError, match="needs inspect-ai's package zipfile-zstd or Python 3.14"):
        traces.read(made / "debate")


def test_runs_that_are_different_rows_are_refused(root, made, scripted, evaluate, write_pool):
    model = scripted(lambda text, config: "Final Answer: B").model
    other = evaluate(debate(pool=write_pool({"other": "B"}), rounds=2, cache=False), model)
    with pytest.raises(DataError, match="field '(arm|card)': .*; expected .*, as in the debates before"):
        rows.check([made / "debate", other], **NAMED)


def test_an_exported_row_comes_back_without_a_text(root, made, tmp_path):
    rows.add([made / "debate", made / "probe"], **NAMED, arm="private")
    export.write("mine", tmp_path / "out")
    for path in (tmp_path / "out").iterdir():
        text = path.read_text(encoding="utf-8")
        assert SECRET not in text and "Which one?" not in text and "<<" not in text, path.name
        assert not any(wording in text for wording in wordings(made)), path.name
    again = rows.add(tmp_path / "out" / "debates.jsonl", probes=tmp_path / "out" / "probes.jsonl", **NAMED | {"id": "again"})
    first, second = (rows.debates([id]).drop(columns="row") for id in ("mine", "again"))
    pd.testing.assert_frame_equal(first, second)
    assert (again.n_flips, again.n_probes) == (80, 160)
    # The verdict travels with the records; its counts stay in the card of the first.
    assert again.quality_control == "fails" and rows.checks(again) is None
    assert tables.rows(rows.describe(["again"]))["Quality control"].item() == "fails"
    cost = json.loads((tmp_path / "out" / "cost_card.json").read_text())
    assert cost["total"] == {"calls": 270, "told": 270, "tokens_in": 2700, "tokens_out": 1350}
    card = json.loads((tmp_path / "out" / "reuse_card.json").read_text())
    assert card["quality_control"] == "fails" and card["model_card"]["identity"]["backend"] == "Inspect, mockllm"


def wordings(made):
    """Every challenge that was put, and every reply to one."""
    records = logs.probe_records(made / "probe" / "logs", texts=True)
    found = {result[name] for record in records for result in record["probe_results"] for name in ("challenge", "text")}
    assert len(found) > 10
    return found
