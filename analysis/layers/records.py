"""Record files of open-ended debates: one JSON object a line, one file a kind, checked before use.

Unknown fields are kept. Texts may be left out of every kind: the measures need labels, numbers and digests
only.
"""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.errors import DataError, choice
from analysis.layers import frames, judge, selfreport
from analysis.layers.distributions import SUM_TOLERANCE
from analysis.layers.judge import MOVES, SEVERITIES
from analysis.layers.persistence import LEGS
from analysis.layers.selfreport import LEVELS, SHIFTS, STANCES, STATUSES, TIMINGS
from analysis.layers.tokens import ROLES

OPTIONS = 7  # of a Likert read
MODES = ("reasoning_off", "reasoning_on")
LEG = tuple(leg for legs in LEGS.values() for leg in legs)
YES_NO = (True, False)


class Kind(NamedTuple):
    """Fields of a kind of record: `keys` name a record once, `filled` may not be missing, `nullable` may.

    `allowed` holds legal values, `counts` the fields with whole numbers from 0, `lists` those with a list.
    The others are texts.
    """

    keys: tuple
    filled: tuple
    nullable: tuple = ()
    allowed: dict = {}
    counts: tuple = ()
    lists: tuple = ()


_LABEL = {"agreed_level": LEVELS, "agreed_level_explicit": YES_NO}
_JUDGED = {"severity": SEVERITIES, "move_type": MOVES}
_VOTE = {"order": ("AB", "BA"), "verdict": ("first", "second", "tie")}
_TOKENS = ("prompt_tokens", "completion_tokens", "reasoning_tokens")

KINDS = {
    "debates": Kind(("debate_id",),
                    ("question_id", "composition", "stance", "timing", "max_iterations", "status"),
                    allowed={"stance": STANCES, "timing": TIMINGS, "status": STATUSES},
                    counts=("max_iterations",)),
    "turns": Kind(("turn_id",), ("debate_id", "member_id", "iteration", "agreed_level_explicit"),
                  ("parent_id", "agreed_level", "opinion_shift"), _LABEL | {"opinion_shift": SHIFTS},
                  ("iteration",)),
    "judgements": Kind(("turn_id", "judge_model"), ("judge_family", "payload_hash"), tuple(_JUDGED), _JUDGED),
    "judge_battery": Kind(("item_id", "judge_model"), ("known_severity", "known_move_type"), tuple(_JUDGED),
                          _JUDGED | {f"known_{name}": values for name, values in _JUDGED.items()}),
    "requeries": Kind(("turn_id", "leg"),
                      ("question_id", "stance_arm", "iteration", "own_opinion_exact",
                       "agreed_level_explicit"),
                      ("agreed_level",),
                      _LABEL | {"stance_arm": STANCES, "leg": LEG, "own_opinion_exact": YES_NO},
                      ("iteration",)),
    "requery_judgements": Kind(("turn_id", "leg", "judge_model"), ("judge_family", "payload_hash"),
                               tuple(_JUDGED), _JUDGED | {"leg": LEG}),
    "reads": Kind(("read_id",),
                  ("receiver_model", "proposition_id", "phase", "logprob", "generation_mode", "probe_mode"),
                  ("n_prompt_tokens",),
                  {"phase": ("prior", "treat", "control"), "generation_mode": MODES, "probe_mode": MODES},
                  ("n_prompt_tokens",), ("logprob",)),
    "cells": Kind(("receiver", "opponent", "proposition_id", "stance", "kind"),
                  ("pole", "prior", "treat", "control"),
                  allowed={"stance": ("friendly", "hostile"), "kind": ("strong", "weak", "irrelevant"),
                           "pole": (-1, 1)}),
    "votes": Kind(("pair_id", "judge_model", "order"), ("question_id",), ("verdict",), _VOTE),
    "vote_battery": Kind(("pair_id", "judge_model", "order"), ("tier", "original_side"), ("verdict",),
                         _VOTE | {"original_side": ("A", "B")}),
    "option_maps": Kind(("question_id", "member_id", "arm", "stage"), ("options", "probs"),
                        allowed={"arm": ("debate", "none"), "stage": ("first", "final")},
                        lists=("options", "probs")),
    "human_dists": Kind(("question_id",), ("probs",), lists=("probs",)),
    "outcomes": Kind(("item_id", "arm", "judge_model"), ("attempted",), ("correct",),
                     {"attempted": YES_NO, "correct": YES_NO}),
    "ledger": Kind(("run_id", "call_id"), ("item_id", "arm", "model", "role", "status"), _TOKENS,
                   {"role": ROLES}, _TOKENS),
}


def schema(kind):
    """Pandera schema of a kind of record; further fields are allowed.

    Parameters
    ----------
    kind : str
        One of `KINDS`.

    Returns
    -------
    pandera.DataFrameSchema

    Raises
    ------
    ValueError
        On an unknown kind.

    Examples
    --------
    >>> list(schema("human_dists").columns)
    ['question_id', 'probs']
    """
    import pandera.pandas as pa  # slow to import, and only checks need it

    choice("kind", kind, tuple(KINDS))
    told = KINDS[kind]
    columns = {}
    for field in (*told.keys, *told.filled, *told.nullable):
        holds, hope = _rule(told, field)
        check = pa.Check(holds, element_wise=True, error=f"expected {hope}")
        columns[field] = pa.Column(None, check, nullable=field in told.nullable)
    return pa.DataFrameSchema(columns)


def _rule(told, field):
    """What a filled value of a field must satisfy, and how to say so."""
    if field in told.allowed:
        legal = told.allowed[field]
        yes_no = isinstance(legal[0], bool)  # else True would pass for 1
        return (lambda value: not isinstance(value, (list, dict)) and value in legal
                and isinstance(value, (bool, np.bool_)) == yes_no), f"one of {', '.join(map(str, legal))}"
    if field in told.counts:
        return lambda value: _number(value) and value >= 0 and value % 1 == 0, "a whole number from 0"
    if field == "logprob":
        return (lambda value: _numbers(value, missing=True) and len(value) == OPTIONS,
                f"a list of {OPTIONS} numbers, null for an option that the server did not list")
    if field == "probs":
        return lambda value: _numbers(value) and min(value) >= 0, "a list of numbers from 0"
    if field in told.lists:
        return lambda value: isinstance(value, list) and len(value) > 0, "a list"
    return lambda value: isinstance(value, str) and value != "", "a text"


def _number(value):
    return (isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
            and bool(np.isfinite(value)))


def _numbers(values, missing=False):
    return isinstance(values, list) and len(values) > 0 and all(
        (missing and (value is None or value != value)) or _number(value) for value in values)


def validate(frame, kind, *, name=None):
    """Check records of a kind.

    Parameters
    ----------
    frame : DataFrame
    kind : str
        One of `KINDS`.
    name : str, optional
        What the messages call the records; the kind if left out.

    Returns
    -------
    DataFrame
        The same frame.

    Raises
    ------
    DataError
        On a missing field or value, a value of another type or outside its list, a record given twice, a read
        that is not seven numbers (a missing one is left to the measure, which sets the read aside),
        probabilities that do not sum to 1 or do not fit their options, a re-query with a leg that its arm
        does not have.
    ValueError
        On an unknown kind.

    Examples
    --------
    >>> validate(pd.DataFrame({"question_id": ["q"], "probs": [[0.5, 0.4]]}), "human_dists")
    Traceback (most recent call last):
    analysis.errors.DataError: human_dists, row 0, field 'probs': sum 0.9, expected 1
    """
    expected = schema(kind)
    import pandera.errors

    told, name = KINDS[kind], name or kind
    for field in expected.columns:
        if field not in frame:
            raise DataError(f"{name}: no field {field!r}, expected {', '.join(expected.columns)}")
    try:
        expected.validate(frame)
    except pandera.errors.SchemaError as problem:
        field = problem.schema.name
        if problem.reason_code.name == "SERIES_CONTAINS_NULLS":
            at = frame.index[frame[field].isna()].tolist()[0]
            raise DataError(f"{_place(frame, name, at, field)}: missing, expected a value") from None
        holds = _rule(told, field)[0]
        at = next(row for row, value in frame[field].items() if not _missing(value) and not holds(value))
        value = frame.loc[at, field]
        raise DataError(f"{_place(frame, name, at, field)}: {value!r}, {problem.check.error}") from None
    frames.once(frame, name, list(told.keys))
    if "probs" in told.lists:
        for row, values in frame["probs"].items():
            if abs(sum(values) - 1) > SUM_TOLERANCE:
                raise DataError(f"{_place(frame, name, row, 'probs')}: sum {sum(values):.7g}, expected 1")
    if kind == "option_maps":
        _first(frame, name, "probs", frame["probs"].map(len) != frame["options"].map(len) + 1,
               "expected one number an option and one for no position")
    if kind == "requeries":
        fits = [leg in LEGS[arm] for arm, leg in zip(frame["stance_arm"], frame["leg"], strict=True)]
        told = "; ".join(f"{arm} {', '.join(legs)}" for arm, legs in LEGS.items())
        _first(frame, name, "leg", ~pd.Series(fits, index=frame.index), f"expected a leg of its arm: {told}")
    return frame


def _missing(value):
    return not isinstance(value, (list, dict)) and bool(pd.isna(value))


def _place(frame, name, at, field):
    """Where a value stands: the line of a file that was read, else the row."""
    return f"{name}, {'line' if frame.index.name == 'line' else 'row'} {at!r}, field {field!r}"


def _first(frame, name, field, wrong, expected):
    """Raise about the first record that is wrong."""
    if wrong.any():
        at = frame.index[wrong].tolist()[0]
        raise DataError(f"{_place(frame, name, at, field)}: {frame.loc[at, field]!r}, {expected}")


def read(path, kind):
    """Read a file of records.

    Parameters
    ----------
    path : str or Path
        JSON-lines, UTF-8.
    kind : str
        One of `KINDS`.

    Returns
    -------
    DataFrame
        Whole numbers are nullable integers; the index is the line, from 1.

    Raises
    ------
    DataError
        Naming the file and line: no JSON object, and what `validate` refuses.

    Examples
    --------
    >>> read("no/such.jsonl", "turns")
    Traceback (most recent call last):
    analysis.errors.DataError: no/such.jsonl: no such file
    """
    choice("kind", kind, tuple(KINDS))
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    rows, lines = [], []
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as problem:
        raise DataError(f"{path}: {problem}; expected UTF-8") from None
    for number, line in enumerate(text.split("\n"), start=1):  # splitlines would cut inside texts, at U+2028
        if not line.strip():
            continue
        try:
            record = json.loads(line, parse_constant=_no_number)
        except ValueError as problem:
            raise DataError(f"{path}, line {number}: no JSON object ({problem})") from None
        if not isinstance(record, dict):
            raise DataError(f"{path}, line {number}: {type(record).__name__}, expected a JSON object")
        rows.append(record)
        lines.append(number)
    if not rows:
        raise DataError(f"{path}: empty, expected {kind}")
    index = pd.Index(lines, name="line")
    # Column by column and as objects: pandas would make 1.0 of 1 beside a null, and True of 1 beside true.
    fields = dict.fromkeys(field for row in rows for field in row)
    raw = pd.DataFrame({field: pd.Series([row.get(field) for row in rows], index=index, dtype=object)
                        for field in fields})
    validate(raw, kind, name=str(path))
    frame = raw.infer_objects()
    numbers = [field for field, legal in KINDS[kind].allowed.items() if isinstance(legal[0], int)
               and legal != YES_NO]
    return frame.astype(dict.fromkeys((*KINDS[kind].counts, *numbers), "Int64"))


def _no_number(constant):
    raise ValueError(f"{constant} is no JSON number")


def check(folder):
    """Check the files of a folder and that they fit together.

    Parameters
    ----------
    folder : str or Path
        With any of ``debates.jsonl``, ``turns.jsonl``, ...: the names of `KINDS`.

    Returns
    -------
    dict of str to DataFrame
        What is there, by kind.

    Raises
    ------
    DataError
        What `read` refuses; a turn, judgement, re-query or cell that names something which is not there (a
        judgement needs a turn that answers another); what `analysis.layers.selfreport.debate_turns` refuses,
        such as labels on first opinions and debate turns at timing "none"; where there are texts, a judgement
        whose payload is not the parent's text and the reply; no file.

    Examples
    --------
    >>> check("no/such/folder")
    Traceback (most recent call last):
    analysis.errors.DataError: no/such/folder: no record files; expected debates.jsonl, turns.jsonl, ...
    """
    folder = Path(folder)
    paths = {kind: folder / f"{kind}.jsonl" for kind in KINDS}
    found = {kind: read(path, kind) for kind, path in paths.items() if path.is_file()}
    if not found:
        raise DataError(f"{folder}: no record files; expected debates.jsonl, turns.jsonl, ...")
    turns = found.get("turns")
    answering = turns[turns["parent_id"].notna()] if turns is not None else None
    known = {"debate_id": (found.get("debates"), "debate_id"), "parent_id": (turns, "turn_id"),
             "turn_id": (answering, "turn_id"),
             **{phase: (found.get("reads"), "read_id") for phase in ("prior", "treat", "control")}}
    for kind, fields in (("turns", ("debate_id", "parent_id")), ("judgements", ("turn_id",)),
                         ("requeries", ("turn_id",)), ("requery_judgements", ("turn_id",)),
                         ("cells", ("prior", "treat", "control"))):
        for field in fields:
            there, key = known[field]
            if kind in found and there is not None:
                lost = found[kind][field].notna() & ~found[kind][field].isin(there[key])
                what = "turn that answers another" if field == "turn_id" else f"{key} of the other records"
                _first(found[kind], paths[kind], field, lost, f"expected a {what}")
    try:
        if turns is not None and "debates" in found:
            selfreport.debate_turns(found["debates"], turns)
        if turns is not None and "judgements" in found and "text" in turns:
            judge.check_blind(found["judgements"], judge.payload_hashes(turns))
    except DataError as problem:
        raise DataError(f"{folder}: {problem}") from None
    return found


def write(frame, path):
    """Write records as JSON-lines, beside and then renamed.

    Parameters
    ----------
    frame : DataFrame
        Missing values become null.
    path : str or Path

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     write(pd.DataFrame({"a": [1], "b": [None]}), Path(place, "x.jsonl")).read_text()
    '{"a": 1, "b": null}\\n'
    """
    path = Path(path)
    lines = [json.dumps(_plain(record), ensure_ascii=False, allow_nan=False) + "\n"
             for record in frame.to_dict("records")]
    beside = path.with_name(f".{path.name}.new")
    beside.write_text("".join(lines), encoding="utf-8")
    beside.replace(path)
    return path


def _plain(value):
    """A value that JSON has."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(each) for each in value]
    if pd.isna(value):
        return None
    return value.item() if isinstance(value, np.generic) else value
