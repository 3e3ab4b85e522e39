"""The published tables under data/, checked against data/dictionary.csv when they are read.

The dictionary is the one place that says what a column holds; the pandera schemas are made from it.
"""

import os
from functools import cache
from pathlib import Path

import pandas as pd
import pandera.pandas as pa

from analysis import ledger, stats, traces
from analysis.errors import DataError

LOCAL_ROWS = ("llama-3.1-8b", "phi-4-mini", "qwen3-4b", "qwen3-8b")


def root():
    """Folder of the data: ``$DEBATE_LEDGER_DATA`` if set, else data/ beside the package.

    Examples
    --------
    >>> (root() / "dictionary.csv").is_file()
    True
    """
    return Path(os.environ.get("DEBATE_LEDGER_DATA") or Path(__file__).resolve().parents[1] / "data")


def dictionary():
    """Data dictionary, one line a column of a table.

    Returns
    -------
    DataFrame
        `table, column, dtype, nullable, min, max, allowed, unit, meaning`.

    Examples
    --------
    >>> dictionary().query("table == 'model_rows' and column == 'collapse'")["unit"].item()
    'debates'
    """
    return pd.read_csv(root() / "dictionary.csv", dtype=str, keep_default_na=False)


def schema(table):
    """Pandera schema of one table, from the dictionary.

    Parameters
    ----------
    table : str
        Name of a table, the file's stem.

    Raises
    ------
    DataError
        The dictionary does not know the table.

    Examples
    --------
    >>> "alpha_tot" in schema("model_rows").columns
    True
    """
    lines = dictionary().query("table == @table")
    if lines.empty:
        raise DataError(f"dictionary.csv: no table {table!r}; expected one of {', '.join(dictionary()['table'].unique())}")
    columns = {}
    for line in lines.itertuples():
        checks = []
        if line.min:
            checks.append(pa.Check.ge(float(line.min)))
        if line.max:
            checks.append(pa.Check.le(float(line.max)))
        if line.allowed:
            checks.append(pa.Check.isin(line.allowed.split("|")))
        columns[line.column] = pa.Column(line.dtype, checks, nullable=line.nullable == "yes")
    return pa.DataFrameSchema(columns, strict=True, ordered=True)


def table(name):
    """Read one table of data/ and check it.

    Parameters
    ----------
    name : str
        File stem, such as "model_rows".

    Returns
    -------
    DataFrame

    Raises
    ------
    DataError
        A column is missing, unknown or of another type, or a value is out of its range; the message names file, line, field and value.

    Examples
    --------
    >>> len(table("model_rows"))
    14
    """
    path = root() / f"{name}.csv"
    expected = schema(name)
    text = {column: "str" for column, spec in expected.columns.items() if str(spec.dtype) == "str"}
    try:
        frame = pd.read_csv(path, dtype=text, keep_default_na=False, na_values=[""])
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as problem:
        raise DataError(f"{path.name}: not readable as CSV: {str(problem).strip()}; expected {', '.join(expected.columns)}") from None
    if list(frame) != list(expected.columns):
        odd = [f"no {c!r}" for c in expected.columns if c not in frame] + [f"unknown {c!r}" for c in frame if c not in expected.columns]
        raise DataError(f"{path.name}, line 1, fields: {', '.join(odd) or 'in another order'}; expected {', '.join(expected.columns)}")
    if frame.empty:
        raise DataError(f"{path.name}: no lines below the header; expected at least one")
    try:
        return expected.validate(frame, lazy=True)
    except pa.errors.SchemaErrors as problems:
        raise _first(problems.failure_cases, path, expected) from None


def _first(cases, path, expected):
    """The first failure, with the cell as it stands in the file."""
    cases = cases[cases["column"] == cases["column"].iat[0]]
    field, check = cases["column"].iat[0], str(cases["check"].iat[0])
    as_found = pd.read_csv(path, dtype="str", keep_default_na=False)[field]
    if cases["index"].isna().any():  # the column as a whole has another type: find the cell that caused it
        kind = str(expected.columns[field].dtype)
        numbers = pd.to_numeric(as_found, errors="coerce")
        bad = ~as_found.isin(["true", "false", "True", "False"]) if kind == "bool" else numbers.isna()
        if kind == "int64":
            bad |= numbers % 1 != 0
        line, check = int(bad.to_numpy().argmax()), kind
    else:
        line = int(cases["index"].iat[0])
    return DataError(f"{path.name}, line {line + 2}, field {field!r}: {as_found.iat[line]!r}; expected {check}")


def model_rows(*, interval="wilson"):
    """The realised cohort: fourteen model-scaffold rows with their denominators and rates.

    Parameters
    ----------
    interval : {"wilson", "jeffreys"}

    Returns
    -------
    DataFrame
        As data/model_rows.csv, with `init_wrong`, `init_acc`, `final_acc`, `c_cond`, `correction_rate`, `collapse_rate` (collapses over all
        debates) as fractions of the counts beside them, and 95% limits `c_cond_low`, `c_cond_high`.

    References
    ----------
    Tables 3, 4 and 22.

    Examples
    --------
    >>> model_rows().query("row == 'llama-3.1-8b'")[["collapse", "init_correct"]].to_dict("records")
    [{'collapse': 86, 'init_correct': 1016}]
    """
    return _rates(table("model_rows"), interval)


def sealed_rows():
    """The earlier sealed cohort, with the same rates as `model_rows`.

    Examples
    --------
    >>> len(sealed_rows())
    11
    """
    rows = table("sealed_rows")
    rows["final_correct"] = rows["init_correct"] - rows["collapse"] + rows["correction"]
    return _rates(rows, "wilson")


def _rates(rows, interval):
    rows["init_wrong"] = rows["n"] - rows["init_correct"]
    rows["init_acc"] = rows["init_correct"] / rows["n"]
    rows["final_acc"] = rows["final_correct"] / rows["n"]
    rows["c_cond"] = rows["collapse"] / rows["init_correct"]
    rows["correction_rate"] = rows["correction"] / rows["init_wrong"]
    rows["collapse_rate"] = rows["collapse"] / rows["n"]
    found = stats.proportion(rows["collapse"], rows["init_correct"], interval=interval)
    return rows.assign(c_cond_low=found["low"].to_numpy(), c_cond_high=found["high"].to_numpy())


@cache
def _debates(path, changed):
    table("debates")
    names = table("model_rows").dropna(subset="trace_source").set_index("trace_source")["row"]
    frame = traces.read(path, format="features")
    unknown = frame.loc[~frame["row"].isin(names.index), "row"]
    if len(unknown):
        raise DataError(
            f"debates.csv, line {unknown.index[0] + 2}, field 'model': {unknown.iat[0]!r}; expected a trace_source of model_rows.csv"
        )
    frame["row"] = frame["row"].map(names).astype("str")
    return frame


def debates(*, tie="alphabetic", missing="initially_wrong"):
    """The paper's row-level debates, in the order of release.

    Parameters
    ----------
    tie, missing : str
        As in `analysis.ledger.debates`; a feature matrix can answer alphabetic and undecided ties only.

    Returns
    -------
    DataFrame
        One line a debate, rows `gemini-3-flash, gpt-5.4-mini, llama-3.1-8b, phi-4-mini, qwen3-4b, qwen3-8b`.

    References
    ----------
    Section 5.1; released as per_debate_r1_features.

    Examples
    --------
    >>> debates()["cell"].value_counts()["collapse"]
    np.int64(253)
    """
    path = root() / "debates.csv"
    return ledger.debates(_debates(path, path.stat().st_mtime_ns), tie=tie, missing=missing)
