"""Executing notebooks: what is refused, what is kept when a cell fails, what is written and how."""

import os
import sys
from pathlib import Path

import nbformat
import papermill
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from analysis import execute as executing
from analysis.execute import execute, prune, without_outputs

PARAMETERS = 'row_id = "standard-row"\ntie = "alphabetic"\nadded_rows = []'


def write(path, *cells, parameters=PARAMETERS):
    """A notebook of a parameter cell (unless None) and more cells; texts that begin with # are prose."""
    made = [new_code_cell(parameters, metadata={"tags": ["parameters", "remove-cell"]}, id="given")] if parameters else []
    made += [new_markdown_cell(text, id=f"c{i}") if text.startswith("# ") else new_code_cell(text, id=f"c{i}") for i, text in enumerate(cells)]
    nbformat.write(new_notebook(cells=made, metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}), path)
    return path


def outputs(path):
    return [output.get("data", {}).get("text/plain", output.get("text")) for cell in nbformat.read(path, as_version=4).cells for output in cell.get("outputs", [])]


# --- refused ---------------------------------------------------------------------------------------------------------


def test_unknown_parameter_is_refused_with_the_known_ones(tmp_path):
    source = write(tmp_path / "a.ipynb", "tie")
    with pytest.raises(ValueError, match=r"a\.ipynb: no parameter 'ti'; .*row_id, tie, added_rows"):
        execute(source, tmp_path / "out" / "a.ipynb", {"tie": "undecided", "ti": "undecided"})
    assert sorted(tmp_path.iterdir()) == [source]


def test_a_notebook_without_parameters_takes_none(tmp_path):
    source = write(tmp_path / "a.ipynb", "1 + 1", parameters=None)
    with pytest.raises(ValueError, match=r"no parameter 'tie'; its parameter cell has none"):
        execute(source, tmp_path / "b.ipynb", {"tie": "undecided"})


def test_the_command_line_refuses_them_with_status_1(tmp_path, run):
    source = write(tmp_path / "a.ipynb", "1", parameters='tie = "alphabetic"')
    done = run(Path(__file__).resolve().parents[1], sys.executable, "-m", "analysis", "book", "execute", source, tmp_path / "b.ipynb", "--missing", "drop")
    assert done.returncode == 1
    assert "no parameter 'missing'" in done.stderr and "Traceback" not in done.stderr
    assert "executed" not in done.stdout
    assert not (tmp_path / "b.ipynb").exists()


# --- failed ----------------------------------------------------------------------------------------------------------


def test_a_failing_cell_leaves_the_page_and_keeps_the_failure(tmp_path):
    source = write(tmp_path / "a.ipynb", "'before'", "raise RuntimeError('the third cell')", "'never'")
    before = source.read_bytes()
    target = tmp_path / "out" / "a.ipynb"
    target.parent.mkdir()
    target.write_bytes(b"the page of yesterday")
    with pytest.raises(papermill.PapermillExecutionError, match="the third cell"):
        execute(source, target, {"tie": "undecided"})
    assert target.read_bytes() == b"the page of yesterday"
    assert source.read_bytes() == before
    assert sorted(path.name for path in target.parent.iterdir()) == ["a.failed.ipynb", "a.ipynb"]
    kept = nbformat.read(target.parent / "a.failed.ipynb", as_version=4)
    errors = [output for cell in kept.cells for output in cell.get("outputs", []) if output.output_type == "error"]
    assert [error.evalue for error in errors] == ["the third cell"]
    assert "'before'" in outputs(target.parent / "a.failed.ipynb") and "'never'" not in outputs(target.parent / "a.failed.ipynb")


def test_the_next_good_run_takes_the_failure_away(tmp_path):
    source, target = write(tmp_path / "a.ipynb", "1 / 0"), tmp_path / "out" / "a.ipynb"
    with pytest.raises(papermill.PapermillExecutionError):
        execute(source, target)
    assert [path.name for path in target.parent.iterdir()] == ["a.failed.ipynb"]
    execute(write(source, "1 / 1"), target)
    assert [path.name for path in target.parent.iterdir()] == ["a.ipynb"]
    assert outputs(target) == ["1.0"]


def test_a_failing_refresh_leaves_the_notebook(tmp_path):
    source = write(tmp_path / "a.ipynb", "1 / 0")
    before = source.read_bytes()
    with pytest.raises(papermill.PapermillExecutionError):
        execute(source, source)
    assert source.read_bytes() == before


# --- written ---------------------------------------------------------------------------------------------------------


def test_the_page_is_put_in_place_by_rename(tmp_path, monkeypatch):
    source, target = write(tmp_path / "a.ipynb", "tie, added_rows"), tmp_path / "b.ipynb"
    target.write_bytes(b"old")
    os.link(target, tmp_path / "reader")  # somebody who has the old page open
    moves = []
    monkeypatch.setattr(executing.os, "replace", lambda a, b, replace=os.replace: (moves.append((a.name, b.name, target.read_bytes())), replace(a, b)))
    execute(source, target, {"tie": "undecided", "added_rows": ["x", "y"]})
    assert moves == [("b.failed.ipynb", "b.ipynb", b"old")]
    assert (tmp_path / "reader").read_bytes() == b"old"
    assert outputs(target) == ["('undecided', ['x', 'y'])"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.ipynb", "b.ipynb", "reader"]


def test_a_page_hides_what_was_injected_and_tells_no_path(tmp_path):
    source, target = write(tmp_path / "a.ipynb", "tie"), tmp_path / "b.ipynb"
    execute(source, target, {"tie": "expected"})
    page = nbformat.read(target, as_version=4)
    injected = [cell for cell in page.cells if "injected-parameters" in cell.metadata.get("tags", [])]
    assert len(injected) == 1 and "remove-cell" in injected[0].metadata.tags
    assert str(tmp_path) not in target.read_text()


def test_cells_run_in_the_notebooks_folder_whatever_the_callers(tmp_path, monkeypatch):
    (tmp_path / "inside").mkdir()
    source = write(tmp_path / "inside" / "a.ipynb", "import os\nos.path.basename(os.getcwd())")
    monkeypatch.chdir(tmp_path)
    execute("inside/a.ipynb", "out/b.ipynb")
    assert outputs(tmp_path / "out" / "b.ipynb") == ["'inside'"]
    assert source.exists()


def test_row_id_replaces_the_default_in_prose_and_nowhere_else(tmp_path):
    source = write(tmp_path / "row.ipynb", "# standard-row\n\nAbout standard-row.", "row_id, 'standard-row'")
    before, target = source.read_bytes(), tmp_path / "rows" / "my-model.v2.ipynb"
    execute(source, target, {"row_id": "my-model.v2"})
    page = nbformat.read(target, as_version=4)
    assert [cell.source for cell in page.cells if cell.cell_type == "markdown"] == ["# my-model.v2\n\nAbout my-model.v2."]
    assert outputs(target) == ["('my-model.v2', 'standard-row')"]
    assert source.read_bytes() == before
    assert [path.name for path in target.parent.iterdir()] == ["my-model.v2.ipynb"]


# --- refreshed -------------------------------------------------------------------------------------------------------


def test_refresh_is_idempotent(tmp_path):
    source = write(tmp_path / "a.ipynb", "# Title\n\nText.", "from IPython.display import display\ndisplay(tie)\n{'n': 6925}", "print('one')\nprint('two')")
    execute(source, source)
    once = source.read_bytes()
    assert outputs(source) == ["'alphabetic'", "{'n': 6925}", "one\ntwo\n"]
    assert without_outputs(source) == []
    execute(source, source)
    assert source.read_bytes() == once
    assert [path.name for path in tmp_path.iterdir()] == ["a.ipynb"]
    for trace in (b"papermill", b"duration", b"start_time", str(tmp_path).encode(), b"injected"):
        assert trace not in once


def test_refresh_keeps_tags(tmp_path):
    source = write(tmp_path / "a.ipynb", "1")
    notebook = nbformat.read(source, as_version=4)
    notebook.cells[1].metadata = {"tags": ["hide-input"], "collapsed": True}
    nbformat.write(notebook, source)
    execute(source, source)
    assert [dict(cell.metadata) for cell in nbformat.read(source, as_version=4).cells] == [{"tags": ["parameters", "remove-cell"]}, {"tags": ["hide-input"]}]


# --- outputs ---------------------------------------------------------------------------------------------------------


def test_without_outputs_names_the_cells_that_nbval_would_pass_over(tmp_path):
    path = write(tmp_path / "a.ipynb", "# Title", "first = 1\nfirst", "second", "")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[3].outputs = [nbformat.v4.new_output("execute_result", {"text/plain": "2"})]
    notebook.cells[3].execution_count = 2
    nbformat.write(notebook, path)
    assert without_outputs(path) == ["a.ipynb, cell 2: no stored output: first = 1"]
    notebook.cells[2].metadata["tags"] = ["no-output"]
    nbformat.write(notebook, path)
    assert without_outputs(path) == []


# --- pruned ----------------------------------------------------------------------------------------------------------


def test_prune_removes_pages_of_rows_that_are_gone_and_nothing_else(tmp_path):
    folder, site = tmp_path / "book", tmp_path / "site"
    kept = ["kept", "kept.v2"]
    stay = [
        *[folder / "rows" / f"{id}.ipynb" for id in kept], *[site / "rows" / f"{id}.html" for id in kept],
        *[site / "_sources" / "rows" / f"{id}.ipynb" for id in kept],
        folder / "gone.ipynb", folder / "rows" / "gone.txt", site / "gone.html", site / "rows.html", site / "_static" / "gone.html",
    ]
    go = [
        folder / "rows" / "gone.ipynb", folder / "rows" / "kept.v3.ipynb", folder / "rows" / "kept.failed.ipynb", folder / "rows" / "gone.failed.ipynb",
        site / "rows" / "gone.html", site / "_sources" / "rows" / "gone.ipynb",
    ]
    for path in [*stay, *go]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)
    prune(kept, folder, site)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(stay)
    prune(kept, folder, site)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(stay)


def test_prune_without_a_book_does_nothing(tmp_path):
    prune(["x"], tmp_path / "none", tmp_path / "neither")
    assert list(tmp_path.iterdir()) == []
