"""Check a card or a file of records against its schema, and say field by field what does not fit.

Reading for analysis (`analysis.traces`, `analysis.probes`) is lenient where layouts vary; this is strict.
"""

import csv
import gzip
import io
import json
from collections.abc import Mapping
from typing import get_args

import pandas as pd
import pydantic

from analysis import records, schemas
from analysis.errors import DataError, choice

COLUMNS = ["file", "line", "field", "value", "expected", "lines"]
LISTED = 1000  # problems beyond which a file is not worth telling


def validate(source, *, schema=None):
    """Check a card, or records, against a schema.

    Parameters
    ----------
    source : path or mapping
        A JSON document, JSON-lines or CSV (also gzipped), or the object itself.
    schema : str, optional
        One of `schemas.SCHEMAS`; found out from the fields unless given.

    Returns
    -------
    DataFrame
        One line a problem: `file`, `line` (of its first occurrence; 1 for a document), `field`, `value`,
        `expected`, `lines` (how many lines have it). Empty when all is as expected. A CSV cell is read as
        JSON where the schema wants no text, an empty one is null.

    Raises
    ------
    DataError
        There is no readable file, or nothing tells which schema is meant.
    ValueError
        Unknown schema.

    Examples
    --------
    >>> validate({"question_id": "q", "correct_label": "A", "initial_answers": ["A", 2], "round_traces": []})[
    ...     ["field", "value", "expected"]].to_dict("records")
    [{'field': 'initial_answers[1]', 'value': '2', 'expected': 'a valid string'}]
    """
    if schema is not None:
        choice("schema", schema, tuple(schemas.SCHEMAS))
    found = {}
    if isinstance(source, Mapping):
        name, objects = "(object)", [(1, dict(source))]
    else:
        name = str(source)
        objects = _objects(records.check_path(source), schema)
    seen = 0
    for line, value in objects:
        seen += 1
        for field, shown, expected in (
            [value] if isinstance(value, tuple) else _problems(value, schema, f"{name}, line {line}")
        ):
            first = found.setdefault((field, expected), [line, shown, 0])
            first[2] += 1
        if len(found) > LISTED:
            break
    if not seen:
        raise DataError(f"{name}: the file is empty; expected a card or records")
    lines = [(name, line, field, shown, expected, n) for (field, expected), (line, shown, n) in found.items()]
    return pd.DataFrame(lines, columns=COLUMNS)


def kind(record):
    """Schema that a record is meant for, by its fields; none where they do not tell.

    Examples
    --------
    >>> kind({"question_id": "q", "probe_results": []})
    'probe_record'
    """
    telling = [
        ("model_card", "reuse_card"),
        ("tiers", "reuse_card"),
        ("probe_results", "probe_record"),
        ("initial_states", "debate_layout_b"),
        ("initial_answers", "debate_layout_a"),
        ("r1_flip_frac", "feature_minimum"),
        ("r1_majority_changed", "feature_line"),
        ("r1_agree_frac", "feature_line"),
    ]
    return next((schema for field, schema in telling if field in record), None)


# --- one object ---------------------------------------------------------------------------------------------


def _problems(value, schema, where):
    if not isinstance(value, dict):
        return [("(document)", records.shown(value), "an object")]
    schema = schema or kind(value)
    if schema is None:
        raise DataError(
            f"{where}: fields {records.listed(value) or '(none)'}; expected those of one of {', '.join(schemas.SCHEMAS)}"
        )
    try:
        schemas.SCHEMAS[schema].model_validate(value)
    except pydantic.ValidationError as problem:
        return _told(problem.errors(include_url=False, include_context=False))
    return []


def _told(errors):
    """Field, value and expectation of each error; the branches of a union are one error."""
    found = {}
    for error in errors:
        field, value = _path(error["loc"]), error["input"]
        expected = error["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
        if error["type"] == "missing":
            value, expected = "(missing)", "a value"
        elif error["type"] == "extra_forbidden":
            expected = "no such field"
        value = value if error["type"] == "missing" else _shown(value)
        found.setdefault((field, value), []).append(expected)
    return [
        (field, value, " or ".join(dict.fromkeys(expected))) for (field, value), expected in found.items()
    ]


def _shown(value):
    try:
        return records.shown(value, 60)
    except ValueError:  # a whole number of thousands of digits, which no file can hold, has no decimal text
        return "(a number too long to show)"


def _path(loc):
    """Place of an error, without the names of a union's branches."""
    path = ""
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        elif not _is_branch(part):
            part = part if part.isprintable() else records.shown(part)
            path += f".{part}" if path else part
    return path if len(path) <= 120 else path[:117] + "..." if path else "(whole)"


def _is_branch(part):
    return part in ("int", "float", "str", "bool") or part.startswith(("constrained-", "list[", "dict["))


# --- files --------------------------------------------------------------------------------------------------


def _objects(path, schema):
    """Yield (line, object), or (line, problem) where there is none to read."""
    with open(path, "rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path) if zipped else open(path, "rb") as stream:
            data = stream.read(records.MAX_DOCUMENT + 1)
    except (EOFError, gzip.BadGzipFile) as problem:
        raise DataError(f"{path}: gz stream is cut or faulty ({problem})") from None
    if len(data) > records.MAX_DOCUMENT:
        raise DataError(f"{path}: more than {records.MAX_DOCUMENT >> 20} MiB; expected a smaller file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise DataError(f"{path}, line {line}: not UTF-8 ({problem.reason}); expected UTF-8 text") from None
    start = text.lstrip()[:1]
    if start not in ("{", "["):
        return _cells(path, text, schema) if start else []
    try:
        whole = _json(text)
    except json.JSONDecodeError as problem:
        if problem.msg == "Extra data" and start == "{":  # a document has ended and another begins: lines
            return _lines(text)
        return [(problem.lineno, ("(document)", f"column {problem.colno}", f"JSON: {problem.msg}"))]
    except (ValueError, RecursionError) as problem:
        return [(1, ("(document)", "", f"JSON: {_reason(problem)}"))]
    return list(enumerate(whole, 1)) if isinstance(whole, list) else [(1, whole)]


def _lines(text):
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield number, _json(line)
            except (ValueError, RecursionError) as problem:
                yield number, ("(line)", records.shown(line), f"one JSON object a line: {_reason(problem)}")


def _reason(problem):
    return "nested too deeply" if isinstance(problem, RecursionError) else str(problem)


def _json(text):
    """JSON without NaN, infinity or a key that is there twice."""
    return json.loads(text, parse_constant=_refuse, parse_float=_float, object_pairs_hook=_distinct)


def _refuse(name):
    raise ValueError(f"{name} is no number of JSON")


def _float(text):
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:40]} is beyond the numbers that can be held")
    return value


def _distinct(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(
            f"key {records.shown(next(name for name in names if names.count(name) > 1))} is there twice"
        )
    return found


def _cells(path, text, schema):
    """Lines of a CSV file as objects."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader)
        model = schemas.SCHEMAS.get(schema or kind(header))
        if model is None:
            raise DataError(
                f"{path}, line 1: columns {records.listed(header)}; expected those of one of"
                f" {', '.join(schemas.SCHEMAS)}"
            )
        texts = {
            name
            for name in header
            if name not in model.model_fields or _is_text(model.model_fields[name].annotation)
        }
        for cells in reader:
            if len(cells) != len(header):
                if cells:
                    yield reader.line_num, ("(line)", f"{len(cells)} cells", f"{len(header)}, one a column")
                continue
            yield reader.line_num, {name: _cell(cell, name in texts) for name, cell in zip(header, cells)}
    except csv.Error as problem:
        yield reader.line_num, ("(line)", "", f"CSV: {problem}")


def _is_text(annotation):
    return (
        annotation is str
        or str in get_args(annotation)
        or any(_is_text(part) or isinstance(part, str) for part in get_args(annotation))
    )


def _cell(cell, text):
    if cell == "":
        return None
    if text:
        return cell
    try:
        return _json(cell)
    except (ValueError, RecursionError):
        return cell
