"""Record files of open-ended debates: one JSON object a line, one file a kind, checked before anything is counted.

Unknown fields are kept. Texts may be left out of every kind: the measures need labels, numbers and digests only.
"""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.errors import DataError, choice
from analysis.layers import frames
from analysis.layers.judge import MOVES, SEVERITIES
from analysis.layers.selfreport import LEVELS, SHIFTS, STANCES, STATUSES, TIMINGS

OPTIONS = 7  # of a Likert read
EPSILON = 1e-6  # how far the sum of probabilities may be from 1


class Kind(NamedTuple):
    """Fields of a kind of record: `keys` name a record once, `filled` may not be missing, `nullable` may."""

    keys: tuple
    filled: tuple
    nullable: tuple = ()
    allowed: dict = {}


KINDS = {
    "debates": Kind(("debate_id",), ("question_id", "composition", "stance", "timing", "max_iterations", "status"),
                    allowed={"stance": STANCES, "timing": TIMINGS, "status": STATUSES}),
    "turns": Kind(("turn_id",), ("debate_id", "member_id", "iteration", "agreed_level_explicit"),
                  ("parent_id", "agreed_level", "opinion_shift"),
                  {"agreed_level": LEVELS, "agreed_level_explicit": (True, False), "opinion_shift": SHIFTS}),
    "judgements": Kind(("turn_id", "judge_model"), ("judge_family", "payload_hash"), ("severity", "move_type"),
                       {"severity": SEVERITIES, "move_type": MOVES}),
    "requeries": Kind(("turn_id", "leg"),
                      ("question_id", "stance_arm", "iteration", "own_opinion_exact", "agreed_level_explicit"),
                      ("agreed_level",),
                      {"stance_arm": STANCES, "leg": ("removed", "retained", "draw1", "draw2"),
                       "agreed_level": LEVELS, "agreed_level_explicit": (True, False)}),
    "reads": Kind(("read_id",), ("receiver_model", "proposition_id", "phase", "logprob", "generation_mode",
                                 "probe_mode"), ("n_prompt_tokens",),
                  {"phase": ("prior", "treat", "control"), "generation_mode": ("reasoning_off", "reasoning_on"),
                   "probe_mode": ("reasoning_off", "reasoning_on")}),
    "cells": Kind(("receiver", "opponent", "proposition_id", "stance", "kind"),
                  ("pole", "prior", "treat", "control"),
                  allowed={"stance": ("friendly", "hostile"), "kind": ("strong", "weak", "irrelevant"),
                           "pole": (-1, 1)}),
    "votes": Kind(("pair_id", "judge_model", "order"), ("question_id", "verdict"), (),
                  {"order": ("AB", "BA"), "verdict": ("first", "second", "tie")}),
    "option_maps": Kind(("question_id", "member_id", "arm", "stage"), ("options", "probs"),
                        allowed={"arm": ("debate", "none"), "stage": ("first", "final")}),
    "human_dists": Kind(("question_id",), ("probs",)),
    "outcomes": Kind(("item_id", "arm", "judge_model"), ("attempted",), ("correct",),
                     {"attempted": (True, False), "correct": (True, False)}),
    "ledger": Kind(("call_id",), ("run_id", "item_id", "arm", "model", "role", "status"),
                   ("prompt_tokens", "completion_tokens", "reasoning_tokens")),
}


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
        On a missing field or value, an unknown value, a record given twice, a read that is not seven finite
        numbers, probabilities that do not sum to 1 or do not fit their options.
    ValueError
        On an unknown kind.

    Examples
    --------
    >>> validate(pd.DataFrame({"question_id": ["q"], "probs": [[0.5, 0.4]]}), "human_dists")
    Traceback (most recent call last):
    analysis.errors.DataError: human_dists, row 0, field 'probs': sum 0.9, expected 1
    """
    choice("kind", kind, tuple(KINDS))
    told, name = KINDS[kind], name or kind
    frames.need(frame, name, (*told.keys, *told.filled), nullable=told.nullable, allowed=told.allowed)
    frames.once(frame, name, list(told.keys))
    if kind == "reads":
        for row, values in frame["logprob"].items():
            if not (isinstance(values, list) and len(values) == OPTIONS and all(map(_number, values))):
                raise DataError(f"{name}, row {row!r}, field 'logprob': {values!r}, expected {OPTIONS} numbers")
    if kind in ("option_maps", "human_dists"):
        for row, values in frame["probs"].items():
            if not (isinstance(values, list) and values and all(_number(value) and value >= 0 for value in values)):
                raise DataError(f"{name}, row {row!r}, field 'probs': {values!r}, expected numbers from 0")
            if abs(sum(values) - 1) > EPSILON:
                raise DataError(f"{name}, row {row!r}, field 'probs': sum {sum(values):.6g}, expected 1")
    if kind == "option_maps":
        wrong = frame["probs"].map(len) != frame["options"].map(len) + 1
        if wrong.any():
            row = frame.index[wrong].tolist()[0]
            raise DataError(f"{name}, row {row!r}, field 'probs': {len(frame.loc[row, 'probs'])} numbers, expected "
                            f"{len(frame.loc[row, 'options']) + 1}, one an option and one for no position")
    return frame


def _number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and np.isfinite(value)


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
        Whole numbers where something may be missing are nullable integers; the index is the line, from 1.

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
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as problem:
            raise DataError(f"{path}, line {number}: no JSON object ({problem})") from None
        if not isinstance(record, dict):
            raise DataError(f"{path}, line {number}: {type(record).__name__}, expected a JSON object")
        rows.append(record)
        lines.append(number)
    if not rows:
        raise DataError(f"{path}: empty, expected {kind}")
    frame = pd.DataFrame(rows, index=pd.Index(lines, name="line"))
    whole = [name for name in ("severity", "opinion_shift", "iteration", "pole") if name in frame]
    for name in whole:
        try:
            frame[name] = frame[name].astype("Int64")
        except (TypeError, ValueError):
            pass  # validate names the value
    return validate(frame, kind, name=str(path))


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
        What `read` refuses; a turn, judgement, re-query or cell that names something which is not there; no file.

    Examples
    --------
    >>> check("no/such/folder")
    Traceback (most recent call last):
    analysis.errors.DataError: no/such/folder: no record files; expected debates.jsonl, turns.jsonl, ...
    """
    folder = Path(folder)
    found = {kind: read(folder / f"{kind}.jsonl", kind) for kind in KINDS if (folder / f"{kind}.jsonl").is_file()}
    if not found:
        raise DataError(f"{folder}: no record files; expected debates.jsonl, turns.jsonl, ...")
    answering = found["turns"][found["turns"]["parent_id"].notna()] if "turns" in found else None
    for kind, field, there in (
        ("turns", "debate_id", found["debates"]["debate_id"] if "debates" in found else None),
        ("turns", "parent_id", found["turns"]["turn_id"] if "turns" in found else None),
        ("judgements", "turn_id", answering["turn_id"] if answering is not None else None),
        ("requeries", "turn_id", answering["turn_id"] if answering is not None else None),
        *(("cells", phase, found["reads"]["read_id"] if "reads" in found else None)
          for phase in ("prior", "treat", "control")),
    ):
        if kind in found and there is not None:
            lost = found[kind][field].notna() & ~found[kind][field].isin(there)
            if lost.any():
                line = found[kind].index[lost].tolist()[0]
                raise DataError(f"{folder / kind}.jsonl, row {line}, field {field!r}: "
                                f"{found[kind].loc[line, field]!r} is not in the other records")
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
    lines = []
    for record in frame.to_dict("records"):
        plain = {name: _plain(value) for name, value in record.items()}
        lines.append(json.dumps(plain, ensure_ascii=False, allow_nan=False) + "\n")
    beside = path.with_name(f".{path.name}.new")
    beside.write_text("".join(lines), encoding="utf-8")
    beside.replace(path)
    return path


def _plain(value):
    """A value that JSON has."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (list, dict)):
        return value
    if pd.isna(value):
        return None
    return value.item() if isinstance(value, np.generic) else value
