"""Reading probe records: one question asked of one agent under one condition, then several counterarguments.

`analysis.probes` offers `read` and `read_stored` together with the measures.

Reference: "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sections 3.1 and A.3.2.
"""

from pathlib import Path

import pandas as pd

from analysis import records as files
from analysis.errors import DataError, choice

CONDITIONS = ("default", "anti_social", "anti_argument")
STRENGTHS = ("weak", "moderate", "strong", "very_strong")
DUPLICATES = ("error", "last", "replicate")
# What names a record.
RECORD = ["row", "question", "replicate", "condition", "agent"]

# Names in the files, where they differ from ours; the first one present counts.
_RECORD_NAMES = {"question": ("question_id",), "gold": ("correct_label",), "agent": ("agent_idx", "agent_id")}
_KEY = ["row", "question", "condition", "agent"]


def read(path, *, row=None, on_duplicate="error"):
    """Read probe records into one line a probe.

    Parameters
    ----------
    path : str or Path
        JSON-lines file, plain or gzipped: one record per question, condition and agent, with `question_id`,
        `initial_answer` and a list `probe_results`. Fields that older sources lack may be absent.
    row : str, optional
        Model-scaffold row of all records; otherwise the record's `model_name` or `model`, else the file's
        name.
    on_duplicate : {"error", "last", "replicate"}
        Two records for one question, condition and agent: refuse, let the later replace the earlier (a
        resumed run), or count them as replicates. Records that tell different replicates are different ones.

    Returns
    -------
    DataFrame
        `row, question, replicate, condition, agent, gold, initial_answer, initial_correct, probe` (number
        within the record), `strength, strength_value, social, alt_answer, post_answer, parsed, revised`, then
        every other field of the record and of the probe (a probe's field that the record has too gets the
        suffix `_probe`). `parsed` says whether an answer was read after the probe. `revised` is the stored
        flag, or recomputed from the two answers where none is stored. A record without a condition is a
        default one.

    Raises
    ------
    DataError
        Malformed or repeated record; the message names file, line, field, value and what is expected.

    References
    ----------
    Sections 3.1 and 3.2.

    Examples
    --------
    >>> import json, tempfile
    >>> record = {"model_name": "m", "question_id": "q1", "correct_label": "A", "initial_answer": "A",
    ...           "probe_results": [{"strength": "weak", "social": False, "post_answer": "B"}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "probes.jsonl")
    ...     _ = file.write_text(json.dumps(record))
    ...     read(file)[["row", "question", "initial_correct", "post_answer", "revised"]].to_dict("records")
    [{'row': 'm', 'question': 'q1', 'initial_correct': True, 'post_answer': 'B', 'revised': True}]
    """
    choice("on_duplicate", on_duplicate, DUPLICATES)
    path = Path(path)
    found, damage = files.records(path)
    if damage:
        raise DataError(damage[0])
    for field in ("initial_answer", "probe_results"):
        if field not in found:
            raise DataError(f"{path}: no field {field!r} in any record; expected probe records")
    stem = path.name.removesuffix(".gz").rsplit(".", 1)[0]
    probes, seen = {}, {}
    for line, record in zip(found.index, found.to_dict("records"), strict=True):
        where = f"{path}, line {line}"
        # What a record lacks is missing in the frame; lists and objects are never missing.
        present = {k: v for k, v in record.items() if isinstance(v, (list, dict)) or not pd.isna(v)}
        head = _head(present, where, row, stem)
        told = _replicate(present.get("replicate"), where)
        key = *(head[name] for name in _KEY), None if on_duplicate == "replicate" else told
        if key in seen and on_duplicate == "error":
            known = f"question {key[1]!r}, condition {key[2]!r}, agent {key[3]!r}"
            raise DataError(
                f"{where}: {known} is on line {seen[key][0]} already; expected one record. "
                "on_duplicate='last' lets the later replace it, 'replicate' keeps both"
            )
        before = seen.get(key, (line, -1))[1]
        replicate = before + 1 if on_duplicate == "replicate" else told
        seen[key] = line, replicate
        probes[*key, replicate] = _probes(present, head | {"replicate": replicate}, where)
    return _typed(pd.DataFrame([probe for record in probes.values() for probe in record]))


_TEXT = ("row", "question", "condition", "agent", "gold", "initial_answer", "strength", "alt_answer",
         "post_answer")
_ORDER = ("row", "question", "replicate", "condition", "agent", "gold", "initial_answer", "initial_correct",
          "probe", "strength", "strength_value", "social", "alt_answer", "post_answer", "parsed", "revised")


def _typed(frame):
    frame = frame[[*_ORDER, *(c for c in frame if c not in _ORDER)]]
    kinds = dict.fromkeys(_TEXT, "str") | dict.fromkeys(["initial_correct", "social", "parsed"], "boolean")
    return frame.astype(kinds | {"strength_value": float, "revised": bool})


def _wrong(where, field, value, expected):
    return DataError(f"{where}, field {field!r}: {files.shown(value, 200)}; expected {expected}")


def _label(value, where, field):
    """An answer: text, or None for no answer."""
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise _wrong(where, field, value, "a label or null")
    return value.strip() or None


def _flag(value, where, field):
    if value is not None and not isinstance(value, bool):
        raise _wrong(where, field, value, "true or false")
    return value


def _replicate(value, where):
    if value is None:
        return 0
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())  # beside missing ones
    if isinstance(value, bool) or not whole or value < 0:
        raise _wrong(where, "replicate", value, "a whole number from 0")
    return int(value)


def _head(record, where, row, stem):
    """What all probes of a record share."""
    known = {}
    for ours, theirs in _RECORD_NAMES.items():
        known[ours] = next((name for name in (*theirs, ours) if name in record), None)
    question = record.get(known["question"])
    if isinstance(question, bool) or not isinstance(question, (str, int)) or question == "":
        raise _wrong(where, "question_id", question, "the question's name")
    condition = record.get("condition") or "default"
    if condition not in CONDITIONS:
        raise _wrong(where, "condition", condition, f"one of {', '.join(CONDITIONS)}")
    agent = record.get(known["agent"])
    if isinstance(agent, (dict, list, bool)):
        raise _wrong(where, "agent_idx", agent, "a number or a name")
    name = row or record.get("model_name") or record.get("model") or stem
    if not isinstance(name, str):
        raise _wrong(where, "model_name", name, "text")
    initial = _label(record.get("initial_answer"), where, "initial_answer")
    gold = _label(record.get(known["gold"]), where, "correct_label")
    if initial is not None and gold is not None:
        correct = initial == gold
    else:
        correct = None if initial is None else _flag(record.get("initial_correct"), where, "initial_correct")
    taken = {*known.values(), "initial_answer", "initial_correct", "condition", "probe_results"}
    return {k: v for k, v in record.items() if k not in taken} | {
        "row": name, "question": str(question), "condition": condition,
        "agent": None if agent is None else str(agent), "gold": gold,
        "initial_answer": initial, "initial_correct": correct,
    }


def _probes(record, head, where):
    results = record.get("probe_results")
    if not isinstance(results, list) or not results:
        raise _wrong(where, "probe_results", results, "a list of at least one probe")
    out = []
    for i, probe in enumerate(results):
        at = f"{where}, probe {i + 1}"
        if not isinstance(probe, dict):
            raise _wrong(at, "probe_results", probe, "an object")
        strength = probe.get("strength")
        if strength is not None and strength not in STRENGTHS:
            raise _wrong(at, "strength", strength, f"one of {', '.join(STRENGTHS)}")
        value = probe.get("strength_value")
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if value is not None and not (number and 0 <= value <= 1):  # NaN is not between them either
            raise _wrong(at, "strength_value", value, "a number from 0 to 1")
        revised = _flag(probe.get("revised"), at, "revised")
        if "post_answer" not in probe and revised is None:
            raise DataError(f"{at}: neither 'post_answer' nor 'revised' is there; expected one of them")
        post = _label(probe.get("post_answer"), at, "post_answer")
        parsed = (post is not None) if "post_answer" in probe else None
        if revised is None:
            revised = None not in (post, head["initial_answer"]) and post != head["initial_answer"]
        ours = {
            "probe": i, "strength": strength, "strength_value": value,
            "social": _flag(probe.get("social"), at, "social"),
            "alt_answer": _label(probe.get("alt_answer"), at, "alt_answer"),
            "post_answer": post, "parsed": parsed, "revised": revised,
        }
        rest = {f"{k}_probe" if k in head else k: v for k, v in probe.items() if k not in ours}
        out.append(head | rest | ours)
    return out


def read_stored(path):
    """Read probes back that were written with `to_csv`, one line a probe.

    Parameters
    ----------
    path : str or Path
        CSV file with the columns of `read`; others are left out.

    Returns
    -------
    DataFrame
        As `read`.

    Raises
    ------
    DataError
        A column is missing.

    Examples
    --------
    >>> import json, tempfile
    >>> record = {"question_id": "q1", "correct_label": "A", "initial_answer": "A",
    ...           "probe_results": [{"social": False, "post_answer": "B"}, {"post_answer": None}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "m.jsonl").write_text(json.dumps(record))
    ...     first = read(Path(folder, "m.jsonl"))
    ...     first.to_csv(Path(folder, "m.csv"), index=False)
    ...     again = read_stored(Path(folder, "m.csv"))
    >>> pd.testing.assert_frame_equal(first, again)
    """
    flags = {"initial_correct", "social", "parsed", "revised"}
    numbers = {"replicate", "probe", "strength_value"}
    text = {name: "str" for name in _ORDER if name not in flags | numbers}
    kinds = text | dict.fromkeys(flags, "boolean")
    frame = pd.read_csv(path, dtype=kinds, keep_default_na=False, na_values=[""])
    lacking = [name for name in _ORDER if name not in frame]
    if lacking:
        raise DataError(f"{path}: columns missing: {', '.join(lacking)}; expected those of stored probes")
    return _typed(frame[list(_ORDER)])


def empty():
    """No probes, in the shape of `read`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> len(empty()), empty().columns[0]
    (0, 'row')
    """
    return _typed(pd.DataFrame(columns=list(_ORDER)))
