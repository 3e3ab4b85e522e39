"""The stored notebooks: thin, with outputs that nbval can compare, and without a number typed by hand."""

import ast
import base64
import inspect
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import nbformat
import pytest

from analysis import cli, execute, ledger

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted(ROOT.glob("notebooks/*.ipynb"))
CFG = ROOT / "tests" / "nbval.cfg"
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)

# Digits that a reader sees and nobody computed: names of the protocol's parts and settings that are no results.
TYPED = {
    r"Rounds? \d( to \d| and \d)?": "a round's name",
    r"95% (?=[\w\s-]*interval)": "the level of the intervals",
    r"(Table|Figure) \d+": "a name in the paper",
    r"\(1 − (?=[a-z])": "a complement, in words",
    r"\br = 1\b": "equal weights",
    r"300 steps": "setting of the published fit",
    r"2/720": "arithmetic: an order and its reverse, of the orders of six",
}


def read(path):
    return nbformat.read(path, as_version=4)


def code(path):
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def prose(path):
    return [cell.source for cell in read(path).cells if cell.cell_type == "markdown"]


def parameters(path):
    """Names and values of the parameter cell, read as plain literals."""
    cells = [cell for cell in code(path) if "parameters" in cell.metadata.get("tags", [])]
    assert len(cells) <= 1
    found = {}
    for line in ast.parse(cells[0].source).body if cells else []:
        assert isinstance(line, ast.Assign) and len(line.targets) == 1, f"{path.name}: {ast.unparse(line)}: expected name = value"
        found[line.targets[0].id] = ast.literal_eval(line.value)
    return found


def stripped(notebook):
    """The notebook as an output stripper leaves it."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


def pages_of_make():
    text = (ROOT / "Makefile").read_text()
    return {name: re.search(rf"^{name} := (.*)$", text, re.MULTILINE)[1].split() for name in ("WITH_ROWS", "WITHOUT_ROWS")}


# --- outputs ---------------------------------------------------------------------------------------------------------


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 7


@each
def test_every_code_cell_holds_its_outputs(path):
    assert execute.without_outputs(path) == []


@each
def test_a_stripped_notebook_is_reported_cell_by_cell(path, tmp_path):
    bare = tmp_path / path.name
    nbformat.write(stripped(read(path)), bare)
    reported = execute.without_outputs(bare)
    loud = [cell for cell in code(path) if not {"parameters", "no-output"} & set(cell.metadata.get("tags", []))]
    assert len(reported) == len(loud) > 0
    assert all(line.startswith(f"{path.name}, cell ") for line in reported)


@each
def test_only_cells_that_show_nothing_are_excused(path):
    """The excuse "no-output" must be true, and no tag or comment may keep nbval from comparing."""
    for cell in code(path):
        tags = set(cell.metadata.get("tags", []))
        assert "no-output" not in tags or not cell.outputs
        assert not {tag for tag in tags if tag.startswith("nbval") or tag == "raises-exception"}
        assert not re.search(r"#\s*(NBVAL|PYTEST_VALIDATE)", cell.source)


@each
def test_no_cell_failed_or_complained(path):
    for cell in code(path):
        kinds = {output.output_type for output in cell.outputs}
        assert kinds <= {"execute_result", "display_data"}, f"{path.name}: {kinds}: {cell.source[:60]}"


@cache
def told(path):
    """All that a notebook stores beside its sources, with what is packed in base64 unpacked."""
    notebook = read(path)
    text = json.dumps([notebook.metadata, *[[cell.metadata, cell.get("outputs", [])] for cell in notebook.cells]], ensure_ascii=False)
    packed = re.findall(r"data:(?:image/svg\+xml|text/csv);base64,([A-Za-z0-9+/=]+)", text)
    assert packed or "book.show" not in json.dumps(notebook.cells)
    return "\n".join([text, *[base64.b64decode(part).decode() for part in packed]])


@each
@pytest.mark.parametrize("trace", [
    r"(?<![\w.:/])/(home|Users|root|tmp|var|work|opt|usr|mnt|private)/\w", r"[A-Z]:\\\\", r"file://", r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", r"0x[0-9a-f]{8,}",
    r"site-packages", r"\blocalhost\b", r"127\.0\.0\.1",
])
def test_nothing_tells_of_the_machine(path, trace):
    found = re.search(trace, told(path))
    assert not found, f"{path.name}: {told(path)[max(0, found.start() - 60):found.end() + 60]!r}"


@each
def test_metadata_is_what_the_page_needs(path):
    notebook = read(path)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    assert all(set(cell.metadata) <= {"tags"} for cell in notebook.cells)


# --- nbval -----------------------------------------------------------------------------------------------------------


def cleaned():
    """Pairs of pattern and replacement, as nbval reads them."""
    return re.findall(r"^regex: (.*)$\n^replace: (.*)$", CFG.read_text(), flags=re.MULTILINE)


@each
def test_cleaning_takes_away_drawings_and_nothing_else(path):
    assert len(cleaned()) == 1
    (pattern, replacement), = cleaned()
    for cell in code(path):
        for output in cell.outputs:
            for value in output.get("data", {}).values():
                taken = re.findall(pattern, value)
                drawings = [base64.b64decode(part.partition("base64,")[2]) for part in taken]
                assert all(drawing.lstrip().startswith(b"<?xml") and b"<svg" in drawing for drawing in drawings)
                assert len(re.sub(pattern, replacement, value)) == len(value) - sum(map(len, taken)) + len(taken) * len(replacement)


def beginning(path):
    """Notebook up to its first table."""
    notebook = read(path)
    for i, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and "<td" in json.dumps(cell.outputs):
            notebook.cells = notebook.cells[:i + 1]
            return notebook
    raise AssertionError(f"{path.name}: no table")


def test_nbval_sees_one_digit_and_does_not_see_stripping(tmp_path):
    """One run over three copies: as stored, with one digit of a table changed, and without outputs."""
    source = ROOT / "notebooks" / "row.ipynb"
    nbformat.write(beginning(source), tmp_path / "as_stored.ipynb")
    changed = beginning(source)
    data = changed.cells[-1].outputs[0].data
    digit = re.search(r"<td[^>]*>[^<]*?(\d)", data["text/html"]).span(1)
    data["text/html"] = data["text/html"][:digit[0]] + str((int(data["text/html"][slice(*digit)]) + 1) % 10) + data["text/html"][digit[1]:]
    nbformat.write(changed, tmp_path / "one_digit.ipynb")
    nbformat.write(stripped(beginning(source)), tmp_path / "bare.ipynb")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "--nbval", "--nbval-current-env", "--nbval-sanitize-with", CFG,
         "--rootdir", tmp_path, "--color=no", "-q", "-rA", tmp_path],
        capture_output=True, text=True, timeout=240, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""},
    )
    verdicts = re.findall(r"^(PASSED|FAILED|ERROR) (?:.*/)?(\w+)\.ipynb::(Cell \d+)", done.stdout, re.MULTILINE)
    by_copy = {name: {verdict for verdict, copy, _ in verdicts if copy == name} for name in ("as_stored", "one_digit", "bare")}
    assert by_copy["as_stored"] == {"PASSED"}, done.stdout
    failed = [cell for verdict, copy, cell in verdicts if copy == "one_digit" and verdict == "FAILED"]
    assert failed == [f"Cell {len(code(tmp_path / 'one_digit.ipynb')) - 1}"], done.stdout
    # The trap: nothing stored, nothing compared, all green. Our own check is what reports it.
    assert by_copy["bare"] == {"PASSED"}, done.stdout
    assert len(execute.without_outputs(tmp_path / "bare.ipynb")) == 2
    assert execute.without_outputs(tmp_path / "as_stored.ipynb") == []


# --- numbers ---------------------------------------------------------------------------------------------------------


SHIPPED_ROW = "smollm2-135m"  # the one that comes with the project


def typed_digits(text):
    """Words with digits that neither a role nor a code span nor the list above accounts for."""
    text = re.sub(r"\{[\w:-]+\}`[^`]*`", " ", text)  # roles: glue, doc, cite, term
    text = re.sub(r"`[^`]*[A-Za-z_][^`]*`", " ", text).replace(SHIPPED_ROW, " ")  # names and commands
    for allowed in TYPED:
        text = re.sub(allowed, " ", text)
    return re.findall(r"\S*\d\S*", text)


@each
def test_no_number_is_typed_in_prose(path):
    assert [word for text in prose(path) for word in typed_digits(text)] == []


@each
def test_no_number_is_typed_in_captions_and_texts_for_readers(path):
    found = []
    for cell in code(path):
        tree = ast.parse(cell.source)
        formats = {id(part) for node in ast.walk(tree) if isinstance(node, ast.FormattedValue) and node.format_spec for part in ast.walk(node.format_spec)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value and id(node) not in formats:
                found += typed_digits(node.value)
    assert found == []


def test_the_check_of_prose_bites():
    assert typed_digits("Of {glue:text}`n_1` debates 253 collapse in Round 1, with 95% Wilson intervals, and 95% hold.") == ["253", "95%"]
    assert typed_digits("`r1_n` of `253` and {doc}`row-2`") == ["`253`"]
    assert typed_digits("p = 0.0123, 8.5% of 1,016; 62/5040") == ["0.0123,", "8.5%", "1,016;", "62/5040"]


@each
def test_every_number_in_prose_is_stored(path):
    wanted = {name for text in prose(path) for name in re.findall(r"\{glue:\w+\}`([^`]+)`", text)}
    said = {output.metadata.scrapbook.name for cell in code(path) for output in cell.outputs if "scrapbook" in output.get("metadata", {})}
    assert wanted <= said


# --- parameters ------------------------------------------------------------------------------------------------------


@pytest.fixture
def passed_by_the_build(monkeypatch):
    """Names that `book execute` hands on when every option is given."""
    caught = {}
    monkeypatch.setattr(execute, "execute", lambda source, target, parameters: caught.update(parameters))
    options = {name: "x" for name in inspect.signature(cli.book_execute).parameters if name not in ("source", "target")}
    cli.book_execute(Path("a.ipynb"), Path("b.ipynb"), **options)
    return set(caught)


@each
def test_parameters_are_those_that_the_build_passes(path, passed_by_the_build):
    names = set(parameters(path))
    assert names <= passed_by_the_build
    choices = {"tie", "missing", "interval"}
    expected = {"row": choices | {"row_id"}} | {name: choices | {"added_rows"} for name in pages_of_make()["WITH_ROWS"]}
    assert names == expected.get(path.stem, set())


@each
def test_defaults_are_the_papers_choices_without_added_rows(path):
    paper = {name: value.default for name, value in inspect.signature(ledger.debates).parameters.items() if name in ("tie", "missing")}
    paper |= {"interval": inspect.signature(ledger.summarize).parameters["interval"].default, "added_rows": []}
    assert paper == {"tie": "alphabetic", "missing": "initially_wrong", "interval": "wilson", "added_rows": []}
    found = parameters(path)
    if "row_id" in found:
        assert found.pop("row_id") == SHIPPED_ROW
    assert found == {name: value for name, value in paper.items() if name in found}


def test_every_notebook_is_built_and_in_the_contents():
    contents = (ROOT / "_toc.yml").read_text()
    names = sum(pages_of_make().values(), [])
    assert sorted([*names, "row"]) == [path.stem for path in NOTEBOOKS]
    for name in names:
        assert re.search(rf"(file|root): {name}$", contents, re.MULTILINE), name
    assert "glob: rows/*" in contents


# --- no logic --------------------------------------------------------------------------------------------------------

LOGIC = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.For, ast.AsyncFor, ast.While, ast.If, ast.Try, ast.With, ast.Assert, ast.Global,
    ast.Match, ast.NamedExpr, ast.Delete, ast.Raise,
)


@each
def test_cells_are_short_and_hold_no_logic(path):
    for cell in code(path):
        lines = cell.source.splitlines()
        assert 0 < len(lines) <= 25, f"{path.name}: {len(lines)} lines: {lines[:1]}"
        found = [type(node).__name__ for node in ast.walk(ast.parse(cell.source)) if isinstance(node, LOGIC)]
        assert not found, f"{path.name}: {found}: {lines[0]}"
        assert not re.search(r"^\s*[%!]", cell.source, re.MULTILINE)


@each
def test_inputs_are_folded_and_parameters_out_of_sight(path):
    for cell in code(path):
        tags = set(cell.metadata.get("tags", []))
        assert "remove-cell" in tags if "parameters" in tags else tags & {"hide-input", "remove-input", "remove-cell"}


@each
def test_a_page_opens_with_one_title_and_a_sentence(path):
    first, *_ = prose(path)
    assert re.match(r"# \S.*\n\n\S", first)
    assert sum(len(re.findall(r"^# ", text, re.MULTILINE)) for text in prose(path)) == 1
