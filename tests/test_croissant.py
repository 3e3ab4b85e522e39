"""Descriptions of data/ for machines: current, complete, and read by the format's own library."""

import hashlib
import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis import cli, croissant, data, schemas
from analysis.errors import DataError

DATA = Path(__file__).resolve().parents[1] / "data"
STALE = "python -m analysis book metadata writes it anew"


def copied(folder):
    """The data without added rows: only the first test below looks at the stored description."""
    return shutil.copytree(DATA, folder / "data", ignore=shutil.ignore_patterns("rows", "multilevel"))


@pytest.fixture
def root(tmp_path, monkeypatch):
    folder = copied(tmp_path)
    monkeypatch.setenv("DEBATE_LEDGER_DATA", str(folder))
    croissant.write()
    return folder


@pytest.fixture(scope="module")
def made():
    return croissant.metadata()


# --- stored files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["croissant.json", *[f"schemas/{name}.schema.json" for name in schemas.SCHEMAS]]
)
def test_the_stored_description_is_what_the_functions_give(name):
    assert (DATA / name).read_text(encoding="utf-8") == croissant.files()[name], STALE


def test_nothing_else_lies_among_the_schemas():
    assert sorted(path.name for path in (DATA / "schemas").iterdir()) == sorted(
        f"{name}.schema.json" for name in schemas.SCHEMAS
    )


def test_the_description_is_the_same_each_time():
    assert croissant.files() == croissant.files()


# --- what it says -------------------------------------------------------------------------------------------


def test_every_table_and_column_of_the_dictionary_is_in_it(made):
    told = [(records["name"], field["name"]) for records in made["recordSet"] for field in records["field"]]
    assert told == list(map(tuple, data.dictionary()[["table", "column"]].values.tolist()))
    for records in made["recordSet"]:
        for field in records["field"]:
            assert field["source"] == {
                "fileObject": {"@id": f"{records['name']}.csv"},
                "extract": {"column": field["name"]},
            }
            assert field["@id"] == f"{records['name']}/{field['name']}" and field["description"]


def test_every_table_on_disk_is_in_it_with_its_checksum(made):
    files = {entry["@id"]: entry for entry in made["distribution"]}
    on_disk = {
        str(path.relative_to(DATA)) for folder in (DATA, DATA / "claims") for path in folder.glob("*.csv")
    }
    assert set(files) == on_disk | {"SOURCES.md"}
    for name, entry in files.items():
        content = (DATA / name).read_bytes()
        assert entry["contentUrl"] == name and entry["sha256"] == hashlib.sha256(content).hexdigest()
        assert entry["contentSize"] == f"{len(content)} B" and len(entry["description"]) > 10


@pytest.mark.parametrize("table", ["model_rows", "debates", "replay_sources"])
def test_types_are_those_that_the_file_is_read_with(made, table):
    frame = data.table(table)
    fields = {
        field["name"]: field["dataType"]
        for records in made["recordSet"]
        if records["name"] == table
        for field in records["field"]
    }
    kinds = {"O": "sc:Text", "i": "sc:Integer", "f": "sc:Float", "b": "sc:Boolean"}
    assert fields == {name: kinds[frame[name].dtype.kind] for name in frame}


def test_responsible_ai_fields_are_filled(made):
    told = {name: value for name, value in made.items() if name.startswith("rai:")}
    assert len(told) >= 14
    assert all(told.values()) and all(len(str(value)) > 15 for value in told.values())


def test_the_time_of_collection_is_that_of_the_provenance_entries(made):
    entries = pd.read_csv(DATA / "provenance.csv")
    first, last = [pd.to_numeric(entries[name], errors="coerce") for name in ("first", "last")]
    days = [pd.Timestamp(value, unit="s").date().isoformat() for value in (*first.dropna(), *last.dropna())]
    days += [value[:10] for name in ("first", "last") for value in entries[name].dropna() if "T" in value]
    assert made["rai:dataCollectionTimeframe"] == [min(days), max(days)]


def test_no_count_is_typed_into_the_description():
    """Counts change with the data; what is written by hand says none."""
    text = json.dumps([croissant._RAI, croissant._ABOUT["description"]])
    assert re.findall(r"(?<![-.\w])\d+(?![\w-])", text) == []


# --- what stops it ------------------------------------------------------------------------------------------


def test_writing_again_changes_nothing(root):
    assert croissant.write() == []


def test_a_changed_table_makes_the_description_stale_until_it_is_written(root):
    path = root / "taxonomies.csv"
    path.write_bytes(path.read_bytes() + b"\n")
    done = CliRunner().invoke(cli.app, ["book", "metadata"])
    assert (done.exit_code, done.stdout) == (0, "wrote data/croissant.json\n")
    assert hashlib.sha256(path.read_bytes()).hexdigest() in (root / "croissant.json").read_text()
    assert CliRunner().invoke(cli.app, ["book", "metadata"]).stdout == "Nothing changed.\n"


def test_a_missing_description_is_written(root, made):
    shutil.rmtree(root / "schemas")
    (root / "croissant.json").unlink()
    assert croissant.write() == list(croissant.files())
    assert json.loads((root / "croissant.json").read_text(encoding="utf-8")) == made


def test_a_table_without_a_source_is_refused(root):
    path = root / "SOURCES.md"
    path.write_text(re.sub(r"^\| `model_rows\.csv`.*\n", "", path.read_text(), flags=re.MULTILINE))
    with pytest.raises(DataError, match=r"SOURCES\.md: no line of its table for model_rows\.csv"):
        croissant.metadata()


def test_a_type_without_a_name_is_refused(root):
    path = root / "dictionary.csv"
    path.write_text(path.read_text().replace("model_rows,row,str,", "model_rows,row,complex,"))
    with pytest.raises(
        DataError, match="table 'model_rows', column 'row', field 'dtype': 'complex'; expected one of str, "
    ):
        croissant.metadata()


# --- the format's own library -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dataset(tmp_path_factory, made):
    library = pytest.importorskip(
        "mlcroissant", reason="mlcroissant, which checks the metadata, is not installed"
    )
    folder = copied(tmp_path_factory.mktemp("described"))
    (folder / "croissant.json").write_text(json.dumps(made))
    return library.Dataset(str(folder / "croissant.json"))


def test_the_library_finds_no_error_and_no_warning(dataset):
    issues = dataset.metadata.ctx.issues
    assert (issues.errors, issues.warnings) == (set(), set())


@pytest.mark.parametrize("table", ["model_rows", "claims/verdicts", "probe_cells"])
def test_the_library_reads_the_tables(dataset, table):
    frame = data.table(table)
    read = pd.DataFrame(list(dataset.records(table)))
    assert read.columns.tolist() == [f"{table}/{name}" for name in frame]
    for name in frame:
        found = read[f"{table}/{name}"].map(
            lambda value: value.decode() if isinstance(value, bytes) else value
        )
        wanted = frame[name].astype(object).where(frame[name].notna(), None)
        assert [None if pd.isna(value) else value for value in found] == wanted.tolist(), name
