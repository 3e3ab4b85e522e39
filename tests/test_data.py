"""The published tables: what they hold, what the paper counts in them, and how a damaged one is named."""

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from analysis import data, ledger
from analysis.errors import DataError

DATA = Path(__file__).resolve().parents[1] / "data"
TABLES = sorted(str(path.relative_to(DATA).with_suffix("")) for path in [*DATA.glob("*.csv"), *DATA.glob("claims/*.csv")]
                if path.name != "dictionary.csv")


@pytest.fixture
def root(tmp_path, monkeypatch):
    copy = tmp_path / "data"
    shutil.copytree(DATA, copy, ignore=shutil.ignore_patterns("rows", "examples"))
    monkeypatch.setenv("DEBATE_LEDGER_DATA", str(copy))
    return copy


# --- dictionary and tables ----------------------------------------------------------------------------------


def test_dictionary_and_tables_name_the_same_columns():
    told = data.dictionary()
    assert sorted(told["table"].unique()) == TABLES
    assert not told.duplicated(["table", "column"]).any()
    for table in TABLES:
        header = (DATA / f"{table}.csv").read_text(encoding="utf-8").split("\n", 1)[0].split(",")
        assert told.loc[told["table"] == table, "column"].tolist() == header


def test_every_column_is_explained():
    told = data.dictionary()
    assert (told["meaning"].str.len() > 5).all()
    assert set(told["nullable"]) == {"yes", "no"} and set(told["dtype"]) <= {"str", "int64", "float64", "bool"}
    numbers = told[told["dtype"].isin(["int64", "float64"])]
    assert (numbers["unit"] != "").all(), "a number without a unit"


@pytest.mark.parametrize("table", TABLES)
def test_every_table_is_as_the_dictionary_says(table):
    frame = data.table(table)
    told = data.dictionary().query("table == @table").set_index("column")
    # Apart from the schema: what the file itself holds.
    raw = pd.read_csv(DATA / f"{table}.csv", dtype=str, keep_default_na=False)
    assert len(frame) == len(raw) > 0
    for column, line in told.iterrows():
        cells = raw[column]
        if line["nullable"] == "no":
            assert (cells != "").all(), column
        cells = cells[cells != ""]
        if line["allowed"]:
            assert set(cells) <= set(line["allowed"].split("|")), column
        for limit, worst in [("min", "min"), ("max", "max")]:
            if line[limit]:
                found = float(getattr(cells.astype(float), worst)())
                assert found >= float(line["min"]) if limit == "min" else found <= float(line["max"]), column
        assert not cells.str.contains("NaN|nan|None|null|NA").where(cells.str.len() < 5, False).any(), column


def test_tables_end_lines_alike_and_hold_no_marks():
    for table in [*TABLES, "dictionary"]:
        content = (DATA / f"{table}.csv").read_bytes()
        assert b"\r" not in content and not content.startswith(b"\xef\xbb\xbf") and content.endswith(b"\n"), table


def test_sources_names_every_file():
    told = (DATA / "SOURCES.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w./-]+)`", told))
    # Rows that were added to this copy are not ours; of a folder that is named, all files are.
    files = [path.relative_to(DATA) for path in DATA.rglob("*") if path.is_file() and path.name != "SOURCES.md"]
    files = [file for file in files if file.parts[0] != "rows" or file.parts[1] == "smollm2-135m"]
    folders = {name.rstrip("/") for name in named}
    assert [str(file) for file in files if not {file.as_posix(), *(p.as_posix() for p in file.parents)} & folders] == []
    for words in ("CC BY 4.0", "2609.35279", "LiXin97/DebateLedger", "cf84b4f4fd31c9888a8b04ac19c2e1749fa8620e"):
        assert words in told


def test_tables_agree_with_each_other():
    rows = data.table("model_rows")
    assert rows["row"].is_unique and len(rows) == 14 and rows["family"].nunique() == 7
    gain = rows["final_correct"] - rows["init_correct"]
    assert (gain == rows["correction"] - rows["collapse"]).all()
    assert (rows["collapse"] <= rows["init_correct"]).all() and (rows["init_correct"] <= rows["n"]).all()
    assert set(data.table("taxonomies")["row"]) <= set(rows["row"])
    assert (data.table("taxonomies").groupby("taxonomy")["row"].nunique() == 14).all()
    cells = data.table("probe_cells")
    assert (cells["n_flip"] == cells["n_adv"] + cells["n_cor"] + cells["n_neutral"]).all()
    assert (cells["n_probes"] == cells["n_init_right_probes"] + cells["n_init_wrong_probes"]).all()
    released = data.table("debates")
    assert (released["init_majority_correct"] == released["init_correct"]).all()
    assert set(data.table("claims/verdicts")["id"]) == set(data.table("claims/paper")["id"])


# --- the paper's debates ------------------------------------------------------------------------------------

ORDER = ["gemini-3-flash", "gpt-5.4-mini", "llama-3.1-8b", "phi-4-mini", "qwen3-4b", "qwen3-8b"]


def test_totals_of_the_debates():
    debates = data.debates()
    assert list(dict.fromkeys(debates["row"])) == ORDER
    assert debates["row"].value_counts(sort=False).tolist() == [200, 200, 2003, 2161, 2161, 200]
    assert (debates["row"] != debates["row"].shift()).sum() == 6  # whole blocks, in the order of release
    cells = debates["cell"].value_counts()
    assert (len(debates), cells["collapse"], cells["correction"]) == (6925, 253, 816)
    assert debates["onset"].value_counts().sort_index().to_dict() == {1: 149, 2: 47, 3: 57}


def test_totals_of_the_local_rows():
    debates = data.debates()
    local = debates[debates["row"].isin(data.LOCAL_ROWS)]
    cells = local["cell"].value_counts()
    assert (len(local), cells["collapse"], cells["correction"]) == (6525, 251, 804)
    right = local[local["correct_0"]]
    # 1,509 are the distinct questions of the debates at risk (right at first), not of all local debates.
    assert (len(right), right["question"].nunique()) == (3145, 1509)
    assert local["question"].nunique() == 2161
    assert local.duplicated(["row", "question"]).sum() == 13 and not local.duplicated(["row", "question", "replicate"]).any()
    assert set(local.loc[local["replicate"] > 0, "row"]) == {"llama-3.1-8b"}


def test_model_rows_are_the_debates_counted():
    counted = ledger.summarize(data.debates()).set_index("row")
    stored = data.model_rows().set_index("row").loc[ORDER]
    assert data.model_rows()["trace_source"].notna().sum() == 6
    for field in ("n", "init_correct", "collapse", "correction", "final_correct", "init_wrong"):
        assert counted[field].tolist() == stored[field].tolist(), field
    for field in ("c_cond", "c_cond_low", "c_cond_high", "correction_rate", "init_acc", "final_acc"):
        assert counted[field].tolist() == pytest.approx(stored[field].tolist()), field
    assert stored["collapse_rate"].tolist() == pytest.approx((counted["collapse"] / counted["n"]).tolist())


def test_stored_outcomes_are_those_the_ledger_derives():
    raw, debates = pd.read_csv(DATA / "debates.csv"), data.debates()
    # Apart from the package: from the majorities of the released matrix alone.
    wrong = raw[["r1_majority_correct", "r2_majority_correct", "r3_majority_correct"]].to_numpy() == 0
    first_wrong = pd.Series(wrong.argmax(axis=1) + 1.0).where(wrong.any(axis=1))
    collapsed = (raw["init_correct"] == 1) & (raw["r3_majority_correct"] == 0)
    corrected = (raw["init_correct"] == 0) & (raw["r3_majority_correct"] == 1)
    assert (raw["collapsed"] == collapsed).all() and (raw["corrected"] == corrected).all()
    pd.testing.assert_series_equal(raw["cascade_round"], first_wrong.where(collapsed), check_names=False)
    assert ((debates["cell"] == "collapse") == (raw["collapsed"] == 1)).all()
    assert ((debates["cell"] == "correction") == (raw["corrected"] == 1)).all()
    assert debates["onset"].astype(float).fillna(0).tolist() == raw["cascade_round"].fillna(0).tolist()
    for ours, theirs in [("agree_0", "init_agree_frac"), ("agree_3", "r3_agree_frac"), ("changed_2", "r2_majority_changed"),
                         ("n_flipped_1", "r1_n_flipped_from_init"), ("unanimous_0", "init_unanimous"), ("correct_3", "final_correct")]:
        assert debates[ours].astype(float).tolist() == raw[theirs].astype(float).tolist(), ours


def test_debates_under_other_choices():
    plain, strict = data.debates(), data.debates(tie="undecided")
    # Only three different answers tie three agents, and a tie can only lose a right majority.
    assert not (strict["correct_0"] & ~plain["correct_0"]).any()
    assert (plain["correct_0"] & ~strict["correct_0"]).sum() == (plain["correct_0"] & (plain["agree_0"] < 0.5)).sum() > 0
    with pytest.raises(ValueError, match="expected alphabetic or undecided"):
        data.debates(tie="expected")
    with pytest.raises(ValueError, match="expected initially_wrong"):
        data.debates(missing="drop")
    plain.loc[0, "cell"] = "collapse"  # what one reader does to its frame must not reach the next
    assert data.debates()["cell"].value_counts()["collapse"] == 253


def test_jeffreys_intervals_of_the_rows():
    wilson, jeffreys = data.model_rows(), data.model_rows(interval="jeffreys")
    assert (wilson["c_cond"] == jeffreys["c_cond"]).all() and (wilson["c_cond_low"] != jeffreys["c_cond_low"]).any()
    with pytest.raises(ValueError, match="expected one of wilson, jeffreys"):
        data.model_rows(interval="wald")


def test_sealed_rows():
    rows = data.sealed_rows()
    assert len(rows) == 11 and (rows["init_wrong"] == rows["n"] - rows["init_correct"]).all()
    assert (rows["c_cond"] == rows["collapse"] / rows["init_correct"]).all()


# --- damage -------------------------------------------------------------------------------------------------


def cell(line, column, value):
    """Change one cell of a table without quoted cells; `line` as an editor counts."""

    def change(text):
        found = text.split("\n")
        cells = found[line - 1].split(",")
        cells[found[0].split(",").index(column)] = value
        found[line - 1] = ",".join(cells)
        return "\n".join(found)

    return change


def each(change):
    return lambda text: "\n".join(change(line) for line in text.strip().split("\n")) + "\n"


DAMAGE = {
    "word for a number": ("model_rows", cell(3, "n", "many"), ["line 3", "'n'", "'many'", "expected int64"]),
    "half a debate": ("model_rows", cell(4, "n", "200.5"), ["line 4", "'n'", "'200.5'", "expected int64"]),
    "no number": ("model_rows", cell(5, "collapse", ""), ["line 5", "'collapse'", "''", "expected"]),
    "NaN": ("model_rows", cell(5, "collapse", "NaN"), ["line 5", "'collapse'", "'NaN'", "expected int64"]),
    "word for a fraction": ("debates", cell(4000, "r2_agree_frac", "high"), ["line 4000", "'r2_agree_frac'", "'high'", "expected float64"]),
    "word for a flag": ("probe_cells", cell(4, "social", "maybe"), ["line 4", "'social'", "'maybe'", "expected bool"]),
    "too large": ("model_rows", cell(7, "alpha_tot", "1.5"), ["line 7", "'alpha_tot'", "'1.5'", "less_than_or_equal_to(1"]),
    "too small": ("model_rows", cell(2, "n", "0"), ["line 2", "'n'", "'0'", "greater_than_or_equal_to(1"]),
    "flag of 2": ("debates", cell(6926, "collapsed", "2"), ["line 6926", "'collapsed'", "'2'"]),
    "unknown family": ("model_rows", cell(4, "family", "Mistral"), ["line 4", "'family'", "'Mistral'", "'Anthropic', 'DeepSeek'"]),
    "unknown label": ("debates", cell(10, "correct_label", "K"), ["line 10", "'correct_label'", "'K'", "'A', 'B'"]),
    "no family": ("model_rows", cell(4, "family", ""), ["line 4", "'family'", "''", "expected"]),
    "column missing": ("model_rows", each(lambda line: line.rsplit(",", 1)[0]), ["line 1", "no 'sd_alpha'", "expected row, family"]),
    "column too many": ("model_rows", each(lambda line: line + ",x"), ["line 1", "unknown 'x'", "expected row, family"]),
    "columns swapped": ("model_rows", lambda text: text.replace("row,family", "family,row", 1), ["line 1", "another order", "expected row, family"]),
    "column twice": ("model_rows", each(lambda line: line + "," + line.split(",")[0]), ["line 1", "unknown 'row.1'"]),
    "line too long": ("model_rows", lambda text: text + "1,2,3" + "," * 20 + "\n", ["not readable as CSV", "line 16", "expected row"]),
    "torn": ("model_rows", lambda text: text[:-60], ["line 15", "expected"]),
    "empty": ("model_rows", lambda text: "", ["not readable as CSV", "expected row"]),
    "header only": ("model_rows", lambda text: text.split("\n")[0] + "\n", ["no lines", "expected at least one"]),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_table_is_named_to_the_cell(root, case):
    name, change, words = DAMAGE[case]
    path = root / f"{name}.csv"
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(DataError) as found:
        data.table(name)
    message = str(found.value)
    assert message.startswith(f"{name}.csv") and "\n" not in message
    for word in words:
        assert word in message


def test_other_faults_are_named(root):
    with pytest.raises(DataError, match="no table 'nothing'; expected one of debates, model_rows"):
        data.table("nothing")
    path = root / "model_rows.csv"
    path.write_bytes(path.read_bytes().replace(b"sonnet", b"sonn\xe9t"))
    with pytest.raises(DataError, match="model_rows.csv: not readable as CSV: 'utf-8'"):
        data.table("model_rows")
    path.unlink()
    with pytest.raises(FileNotFoundError, match="model_rows.csv"):
        data.table("model_rows")


def test_a_source_that_is_no_row_is_named(root):
    path = root / "debates.csv"
    path.write_text(path.read_text().replace("gemini/3-flash", "gemini/4-flash", 1))
    with pytest.raises(DataError, match="debates.csv, line 2, field 'model': 'gemini/4-flash'; expected a trace_source of model_rows.csv"):
        data.debates()


def test_outcomes_that_contradict_the_majorities_are_named(root):
    path = root / "debates.csv"
    path.write_text(cell(2, "collapsed", "1")(path.read_text()))
    with pytest.raises(DataError, match="debates.csv, line 2, field 'collapsed': 1; expected 0"):
        data.debates()


def test_changed_debates_are_read_again(root):
    assert len(data.debates()) == 6925
    path = root / "debates.csv"
    path.write_text("\n".join(path.read_text().split("\n")[:401]) + "\n")
    assert len(data.debates()) == 400
