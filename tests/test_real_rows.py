"""Debate files that others wrote, each added as a row, seen in the built book, and removed again."""

import base64
import hashlib
import html
import io
import json
import re

import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis import book, cli, ledger, traces

PATTERN = "real/slm_debates/*.json"


def digest(folder):
    return {path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*")) if path.is_file()}


def row_of(i, path):
    """Id, model and coder for a file: its model's name, dots and all, and once the coder of our own."""
    task, model = path.name.split("_")[:2]
    return f"{task}-{model}".lower(), model, "anchored" if i == 0 else "reference"


def command(*words):
    done = CliRunner().invoke(cli.app, [str(word) for word in words])
    assert done.exit_code == 0, f"{words}: {done.output} {done.exception!r}"
    return done.output


@pytest.fixture(scope="module")
def files(shared):
    found = sorted(shared.glob(PATTERN))
    assert len(found) == 7
    return [(path, *row_of(i, path)) for i, path in enumerate(found)]


@pytest.fixture(scope="module")
def project(files, tmp_path_factory, copy_project):
    return copy_project(tmp_path_factory.mktemp("real") / "project")


@pytest.fixture(scope="module")
def history(files, project, run):
    """Add all, build once, remove each: digests of the data before and after, and what the commands said."""
    told = {"before": digest(project / "data")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEBATE_LEDGER_DATA", str(project / "data"))
        for path, id, model, policy in files:
            command("row", "add", path, "--id", id, "--model", model, "--family", model.split("-")[0], "--policy", policy, "--labels", "ABCD")
        told["listed"] = json.loads(command("row", "list", "--json"))
        told["with"] = digest(project / "data")
        told["build"] = run(project, "make", "book")
        for _, id, _, _ in files:
            told[id] = command("row", "remove", id)
        told["after"] = digest(project / "data")
        told["left"] = [str(path) for path in (project / "data" / "rows").iterdir()]
    return told


def direct(path, policy):
    """Ledger of a file without rows, notebooks or pages in between."""
    return ledger.summarize(ledger.debates(traces.read(path, policy=policy, labels="ABCD"))).iloc[0]


def test_the_book_is_built_with_all_of_them(files, history):
    build = history["build"]
    assert build.returncode == 0, build.stdout + build.stderr
    executed = {line.split()[1] for line in build.stdout.splitlines() if line.startswith("executed ")}
    assert {f"book/rows/{id}.ipynb" for _, id, _, _ in files} <= executed


def test_each_has_a_page_with_its_own_numbers(files, history, project):
    assert history["build"].returncode == 0
    for path, id, model, policy in files:
        page = (project / "_build" / "html" / "rows" / f"{id}.html").read_text(encoding="utf-8")
        page = page[page.index("<article"):page.index("</article>")]
        assert re.search(rf"<h1>{re.escape(id)}<", page), id
        told = html.unescape(re.sub(r"<[^>]+>", " ", re.sub(r"data:[^\"]+", "", page)))
        assert model in told and policy in told
        link = re.search(r'download="transitions\.csv" href="data:text/csv;base64,([^"]+)"', page)[1]
        shown = pd.read_csv(io.BytesIO(base64.b64decode(link))).set_index("row")
        assert shown["added"].sum() == 1
        summary, line = direct(path, policy), shown.loc[id]
        assert summary["n"] == 20
        for column in ("n", "preserved", "collapse", "correction", "unrepaired", "init_correct", "init_wrong", "final_correct"):
            assert line[column] == summary[column], f"{id}: {column}"
        for column in ("c_cond", "c_cond_low", "c_cond_high", "correction_rate"):
            assert line[column] == pytest.approx(summary[column], abs=1e-9, nan_ok=True), f"{id}: {column}"
        rate = book.rate(summary["collapse"], summary["init_correct"], summary["c_cond_low"], summary["c_cond_high"])
        assert rate in told, f"{id}: {rate}"


def test_each_stands_marked_beside_the_papers_rows(files, history, project):
    for page in ("transitions", "localisation", "replay"):
        text = html.unescape((project / "_build" / "html" / f"{page}.html").read_text(encoding="utf-8"))
        for _, id, _, _ in files:
            assert f">{id} (added)<" in text, f"{page}: {id}"
    screen = html.unescape((project / "_build" / "html" / "screen.html").read_text(encoding="utf-8"))
    assert all(id in screen for _, id, _, _ in files)  # without probes: named as rows that cannot enter


def test_they_are_listed_with_their_coder(files, history):
    listed = {row["id"]: row for row in history["listed"]}
    for path, id, model, policy in files:
        assert (listed[id]["model"], listed[id]["policy"], listed[id]["layout"], listed[id]["n_debates"]) == (model, policy, "chat", 20)


def test_no_text_of_theirs_is_stored(files, history, project):
    """Rows hold labels; a reply's wording stays in the file it came from."""
    assert set(map(str, set(history["with"]) - set(history["before"]))) == {f"rows/{id}/{name}" for _, id, _, _ in files for name in ("row.json", "answers.csv")}
    for path, id, _, _ in files:
        replies = [message["content"] for contexts, _ in json.loads(path.read_text()).values() for agent in contexts for message in agent if message["role"] == "assistant"]
        page = (project / "_build" / "html" / "rows" / f"{id}.html").read_text(encoding="utf-8")
        assert not any(reply.strip()[:60] in page for reply in replies if len(reply.strip()) >= 60)


def test_removing_them_leaves_the_data_byte_for_byte(files, history):
    assert history["after"] == history["before"] != history["with"]
    assert all(id in history[id] for _, id, _, _ in files)
    assert [path.rpartition("/")[2] for path in history["left"]] == ["smollm2-135m"]
