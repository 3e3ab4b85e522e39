"""Reading logs: the same as Inspect's own reader gives, with less of the file; damage is named."""

import json
import shutil
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from analysis import ledger, rows_logs
from analysis.collect import logs, quality
from analysis.collect.debate import debate
from analysis.errors import DataError


@pytest.fixture(scope="module")
def path(scripted, tmp_path_factory):
    from inspect_ai import eval

    words = (
        'Long reasons with "quotes", {braces} and a \\ that go on for more than a hundred characters. ' * 3
    )
    model = scripted(lambda text, config: f"{words}\nFinal Answer: {'ABCD'[config.seed % 4]}")
    log = eval(
        debate(n=6, arms="peer,private", rounds=2, cache=False),
        model=model.model,
        epochs=2,
        display="none",
        log_dir=str(tmp_path_factory.mktemp("logs")),
    )[0]
    assert log.status == "success"
    return log.location


def test_what_is_read_is_what_inspects_own_reader_reads(path):
    from inspect_ai.log import read_eval_log_samples

    ours = {(sample["id"], sample["epoch"]): sample for sample in logs.samples(path)}
    for theirs in read_eval_log_samples(path):
        mine = ours.pop((theirs.id, theirs.epoch))
        assert (
            mine["store"] == theirs.store
            and mine["target"] == theirs.target
            and mine["metadata"] == theirs.metadata
        )
    assert not ours


def test_a_store_that_was_lost_in_a_crash_is_rebuilt_from_the_events(path):
    with zipfile.ZipFile(path) as log:
        names = [name for name in log.namelist() if name.startswith("samples/")]
        assert len(names) == 12
        for name in names:
            sample = json.loads(log.read(name))
            assert logs._rebuilt(sample) == sample["store"]


def test_debates_come_in_the_order_of_the_pool(path):
    answers = logs.answers(path, arm="private", texts=True)
    assert answers["question"].drop_duplicates().tolist() == [
        f"{kind}-{1 + place // 2}-0-{place}" for place, kind in enumerate(["arithmetic", "logic"] * 3)
    ]
    assert answers["replicate"].unique().tolist() == [0, 1]
    assert len(answers) == 12 * 3 * 3 and answers["text"].str.len().gt(200).all()
    assert answers.dtypes["round"] == "int64" and answers.dtypes["answer"] == "str"
    assert ledger.debates(answers).shape[0] == 12


def test_attempts_of_one_run_are_read_once_and_two_runs_are_refused(path, tmp_path):
    both = tmp_path / "attempts"
    both.mkdir()
    shutil.copy(path, both / "1.eval")
    shutil.copy(path, both / "2.eval")
    pd.testing.assert_frame_equal(logs.answers(both), logs.answers(path))
    other = tmp_path / "other.eval"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(other, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "header.json":
                data = json.dumps(
                    json.loads(data) | {"eval": json.loads(data)["eval"] | {"task_id": "another"}}
                ).encode()
            target.writestr(name, data)
    with pytest.raises(
        DataError, match="replicate 0 is in .* too, of another run; expected each debate once"
    ):
        logs.answers([path, other])


def test_what_killed_attempts_left_beside_a_finished_log_does_not_count(path, tmp_path):
    """As a folder looks after three kills: a log without samples, one with some, a torn one; then the whole."""
    run = Path(path).stem.rpartition("_")[2]
    with zipfile.ZipFile(path) as source:
        members = {name: source.read(name) for name in source.namelist() if name != "header.json"}
    some = [name for name in members if name.startswith("samples/")][:5]
    for attempt, kept in enumerate((["_journal/start.json"], ["_journal/start.json", *some])):
        with zipfile.ZipFile(tmp_path / f"2026-01-0{attempt + 1}_debate_{run}.eval", "w") as target:
            for name in kept:
                target.writestr(name, members[name])
    (tmp_path / f"2026-01-03_debate_{run}.eval").write_bytes(Path(path).read_bytes()[:5000])
    with pytest.raises(DataError, match="is not finished|no Inspect log"):
        logs.answers(tmp_path)
    shutil.copy(path, tmp_path / f"2026-01-04_debate_{run}.eval")
    pd.testing.assert_frame_equal(logs.answers(tmp_path), logs.answers(path))
    assert [found.name for found in logs.found_at(tmp_path)] == [f"2026-01-04_debate_{run}.eval"]
    assert rows_logs.split([tmp_path])[1] == logs.found_at(tmp_path)
    with pytest.raises(DataError, match="is not finished"):
        logs.answers(tmp_path / f"2026-01-02_debate_{run}.eval")


def test_files_that_cannot_be_read_are_named(path, tmp_path):
    text = tmp_path / "notes.eval"
    text.write_text("not a zip")
    with pytest.raises(DataError, match="notes.eval: no Inspect log"):
        logs.answers(text)
    cut = tmp_path / "cut.eval"
    cut.write_bytes(open(path, "rb").read()[:5000])
    with pytest.raises(DataError, match="cut.eval: no Inspect log"):
        logs.answers(cut)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DataError, match="a folder without a .eval file"):
        logs.answers(empty)
    with pytest.raises(DataError, match="no probes; expected a log of analysis/collect/probe.py"):
        logs.probe_records(path)
    with pytest.raises(DataError, match="arm 'shielded': not in this log; expected one of peer, private"):
        logs.answers(path, arm="shielded")
    with pytest.raises(DataError, match="ran without a gate"):
        logs.actions(path)


def test_quality_limit_is_two_percent_of_what_was_planned():
    def arm(k):
        return pd.DataFrame(
            {
                "arm": ["initial"] * 50 + ["peer"] * 150,
                "missing": [True] * k + [False] * (200 - k),
                "truncated": False,
                "unclosed": False,
            }
        )

    assert quality.checks(arm(4)).set_index(["arm", "check"]).loc[("peer", "missing"), "passes"]
    checked = quality.checks(arm(5))
    assert not checked.set_index(["arm", "check"]).loc[("peer", "missing"), "passes"]
    assert quality.verdict(checked) == (
        "Fails strict quality control: initial (missing 5/50, at most 2% allowed); "
        "peer (missing 5/200, at most 2% allowed)."
    )
    assert quality.verdict(quality.checks(arm(0))) == ""
