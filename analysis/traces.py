"""Debate traces in, answers frame out: every layout is read by `read` and checked by `validate`.

Layouts, recognised by content: ``long`` (a line per answer), ``layout_a`` and ``layout_b`` (the paper's open
tier, a record per debate), ``chat`` (question text -> chat messages of each agent, and gold), ``features``
(the released matrix, a line per debate without answers). Any of them may be gzipped; tables may be CSV,
JSON-lines, a JSON array or Parquet. ``inspect`` is a log, or a folder of logs, that Inspect wrote of debates run
by `analysis.collect`.
"""

import gzip
import io
import json
import os
import tempfile
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd

from analysis import answers as frames
from analysis import layouts
from analysis import records as files
from analysis.answers import (
    KEY,
    LABELS,
    NO_ANSWER,
    canonical_number,
    carry_forward,
    clean_labels,
    complete,
    coverage,
    fold_label,
    label_names,
    map_distinct,
    validate,
)
from analysis.errors import DataError, choice

__all__ = ["FORMATS", "canonical_number", "carry_forward", "clean_labels", "complete", "coverage", "read",
           "table", "validate", "write_open_tier"]

FORMATS = ("long", "layout_a", "layout_b", "features", "chat", "inspect")
POLICIES = ("reference", "strict", "anchored")

SOUGHT = {
    "long": "columns question, agent, round, gold and answer or text",
    "layout_a": "initial_answers and round_traces",
    "layout_b": "initial_states and round_traces",
    "features": "collapsed, corrected and init_correct",
    "chat": "one JSON object, question text -> [agent contexts, gold]",
    "inspect": "a log of debates that Inspect wrote (.eval)",
}
_DONE = {"ok", "success", "succeeded", "completed", "complete", "done"}


def read(path, format="auto", *, row=None, policy="reference", labels=LABELS, on_duplicate="error",
         on_damage="error", arm=None):
    """Read one file of debate traces.

    Parameters
    ----------
    path : str or Path
        A file in any of `FORMATS`; gzip is looked through.
    format : str
        ``auto`` (by content) or one of `FORMATS`.
    row : str, optional
        Name of the model-scaffold row for lines that name none. If left out: the file's model field, else its
        stem.
    policy : {"reference", "strict", "anchored"}
        How texts are coded where answers are missing (see `analysis.coder.code_answers`).
    labels : str or sequence of str
        The items' labels.
    on_duplicate : {"error", "last", "replicate"}
        Two lines for one cell, or two records for one debate: refuse, let the later replace the earlier (a
        resumed run), or count repeated debates as further replicates (records only; a feature matrix always
        does).
    on_damage : {"error", "drop"}
        A torn line, a cut gz stream or a record at odds with itself: refuse, or keep the rest and list it in
        ``attrs["damage"]``.
    arm : str, optional
        Arm to read from a log; "all" reads each as a row of its own. Left out: peer, else the only one.

    Returns
    -------
    DataFrame
        Long answers: `row, question, replicate, round, agent, answer, gold`, then further columns as found
        (`text`, `rule`, `question_text`, `stored_majority`). Ids are exact strings. An answer is a label, a
        canonical number where the gold is one, missing, or, where it is none of these, as written (`validate`
        refuses it). A missing round is 0, a missing gold missing. ``attrs``: `source` (file name), `format`
        (layout), `damage`, `coded` (answers read from text), `unfinished` (lines whose status is an error,
        which hold no answer). For ``features`` a debates frame instead. A log's answers are those that were
        coded in the run, without texts, with what is known of each call; ``attrs`` says which `arm` it is.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    DataError
        The file is empty, damaged or in no known layout, lacks a column, holds a line beyond 64 MiB or a cell
        that cannot be used.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. 3 and its data appendix
    (released layouts).

    Examples
    --------
    >>> path = Path(tempfile.mkdtemp(), "tiny.csv")
    >>> _ = path.write_text("q,round,agent,answer,gold\\n007,0,a,(b),B\\n007,0,b,NA,B\\n")
    >>> read(path)[["row", "question", "round", "agent", "answer"]].values.tolist()
    [['tiny', '007', 0, 'a', 'B'], ['tiny', '007', 0, 'b', nan]]
    """
    choice("format", format, ("auto", *FORMATS))
    choice("policy", policy, POLICIES)
    choice("on_duplicate", on_duplicate, ("error", "last", "replicate"))
    choice("on_damage", on_damage, ("error", "drop"))
    label_names(labels)
    path = Path(path)
    if (logs := logs_at(path)) or format == "inspect":
        return _log(path, logs, format, row, arm)
    if arm is not None:
        raise ValueError(f"arm={arm!r}: {path} is no log of debates; expected none, other files have no arms")
    path = files.check_path(path)
    kind = files.container(path)
    if format == "chat" and kind == "jsonl":
        kind = "chat"  # asked for by name: let the document reader say what is wrong with it
    frame, damage = files.records(path, kind=kind)
    _refuse(damage, on_damage)
    if not len(frame):
        raise DataError(f"{path}: no records" + (f"; {damage[0]}" if damage else "; expected at least one"))
    frame = _stripped(path, frame)
    layout = _layout(path, frame, kind) if format == "auto" else format
    if (layout == "chat") != (kind == "chat"):
        raise DataError(f"{path}: not in layout {layout!r}; expected {SOUGHT[layout]}")
    if layout == "features":
        found = layouts.features(frame, path, row)
    else:
        odd = []
        if layout == "long":
            found = frame
        elif layout == "chat":
            found = layouts.chat(frame, path, labels)
        else:
            found = layouts.debate_records(frame, path, layout, row, on_duplicate, odd)
        _refuse(odd, on_damage)
        damage += odd
        found = _long(found, path, row, policy, labels, on_duplicate)
    found.attrs = {**found.attrs, "source": path.name, "format": layout, "damage": damage}
    return found


def logs_at(path):
    """Logs at a place: the file itself, or those of a folder of logs or of a run.

    Parameters
    ----------
    path : Path

    Returns
    -------
    list of Path
        Empty for a file of another kind.

    Raises
    ------
    DataError
        A zip file that is no whole log.

    Examples
    --------
    >>> logs_at(Path("debates.csv"))
    []
    """
    # Looks before it imports: most files are none.
    if not path.is_dir():
        if not path.is_file():
            return []
        with open(path, "rb") as stream:
            if stream.read(4) != b"PK\x03\x04":
                return []
    from analysis.collect import logs

    found = logs.found_at(path)
    if not found and path.is_file():
        raise DataError(f"{path}: a zip file but no whole Inspect log; expected one, or a file of another layout")
    return found


def _log(path, found, format, row, arm):
    from analysis.collect import logs

    if format not in ("auto", "inspect") or not found:
        raise DataError(f"{path}: not in layout {format!r}; expected {SOUGHT[format]}")
    frame = logs.answers(found, arm=arm, row=row)
    frame.attrs |= {"source": path.name, "damage": [], "coded": 0, "unfinished": 0}
    return frame


def table(path, *, on_damage="error"):
    """Read any table or record file as it is, with the columns that `read` knows under its names.

    Parameters
    ----------
    path : str or Path
        CSV, JSON-lines, JSON array or Parquet; gzip is looked through.
    on_damage : {"error", "drop"}
        As for `read`.

    Returns
    -------
    DataFrame
        Cells as found, column aliases renamed (`content` to `text`, `qid` to `question`, ...).

    Raises
    ------
    FileNotFoundError, DataError
        As for `read`.

    Examples
    --------
    >>> path = Path(tempfile.mkdtemp(), "replies.csv")
    >>> _ = path.write_text("id,response\\n1,The answer is B\\n")
    >>> table(path)["text"].tolist()
    ['The answer is B']
    """
    choice("on_damage", on_damage, ("error", "drop"))
    frame, damage = files.records(path)
    _refuse(damage, on_damage)
    frame = layouts.renamed(_stripped(path, frame)).reset_index(drop=True)
    frame.attrs = {"source": Path(path).name, "damage": damage}
    return frame


def _stripped(path, frame):
    frame = frame.rename(columns=lambda name: str(name).strip())
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise DataError(f"{path}: two fields are named {twice!r} but for blanks; expected distinct names")
    return frame


def _refuse(damage, on_damage):
    if damage and on_damage == "error":
        more = f" (and {len(damage) - 1} more)" if len(damage) > 1 else ""
        raise DataError(f"{damage[0]}{more}; on_damage='drop' keeps what is intact")


def _layout(path, frame, kind):
    if kind == "chat":
        return "chat"
    names = set(map(str.lower, frame.columns))
    if "initial_answers" in names:
        return "layout_a"
    if "initial_states" in names:
        return "layout_b"
    if {"init_correct", "collapsed"} <= names:
        return "features"
    if sum(any(alias in names for alias in aliases) for aliases in layouts.ALIASES.values()) >= 2:
        return "long"
    sought = "; ".join(f"{name}: {what}" for name, what in SOUGHT.items())
    raise DataError(f"{path}: no known layout. Found {files.listed(sorted(names))}. Looked for {sought}")


# --- long ---------------------------------------------------------------------------------------------------


def _long(frame, path, row, policy, labels, on_duplicate):
    frame = layouts.renamed(frame)
    lacking = [name for name in ("question", "agent") if name not in frame]
    lacking += ["answer (or text)"] if not {"answer", "text"} & set(frame) else []
    if lacking:
        raise DataError(f"{path}: columns missing: {', '.join(lacking)}; found: {files.listed(frame)}")
    found = {"row": layouts.row_names(frame, path, row)}
    for name in ("question", "agent"):
        found[name] = layouts.ids(frame[name], path, name)
    for name in ("replicate", "round"):
        found[name] = pd.Series(0, frame.index, dtype="int64")
        if name in frame:
            found[name] = layouts.whole_numbers(frame[name], path, name)
    for name in ("answer", "gold"):
        there = frame[name] if name in frame else pd.Series(np.nan, frame.index, dtype="str")
        found[name] = files.exact_ids(there)
    extra = {name: frame[name] for name in frame if name not in found}
    found = {name: found[name] for name in frames.COLUMNS} | extra
    tidy = _once(pd.DataFrame(found, copy=False), path, on_duplicate)
    gold, numeric = _golds(tidy["gold"], labels)
    unfinished = _unfinished(tidy)
    answer = _answers(tidy["answer"], numeric, labels)
    tidy = tidy.assign(gold=gold, answer=answer.where(~unfinished) if unfinished.any() else answer)
    tidy, coded = _coded(tidy, numeric, policy, labels, unfinished)
    tidy = tidy.reset_index(drop=True)
    tidy.attrs = {"coded": coded, "unfinished": int(unfinished.sum())}
    return tidy


def _golds(texts, labels):
    """Tidy golds, and tell which are numbers."""
    names = label_names(labels)
    codes, distinct = pd.factorize(texts)

    def number(text):
        return canonical_number(text.rsplit("####", 1)[-1]) if fold_label(text, names) is None else None

    def tidy(text):
        return None if text.strip().lower() in NO_ANSWER else fold_label(text, names) or number(text) or text

    is_number = np.array([number(text) is not None for text in distinct] + [False])

    return map_distinct(texts, tidy), is_number[codes] if is_number.any() else None


def _answers(texts, numeric, labels):
    names = label_names(labels)

    def label(text):
        found = fold_label(text, names)
        return found if found is not None or text.strip().lower() in NO_ANSWER else text

    def number(text):
        found = canonical_number(text)
        return found if found is not None or text.strip().lower() in NO_ANSWER else text

    if numeric is None:
        return map_distinct(texts, label)
    return map_distinct(texts, label).where(~numeric, map_distinct(texts, number))


def _unfinished(tidy):
    """Tell which lines have a status that says that the reply failed or was stopped: they hold no answer."""
    name = next((name for name in tidy if name.lower() == "status"), None)
    if name is None:
        return np.zeros(len(tidy), dtype=bool)
    status = files.exact_ids(tidy[name])
    return (status.notna() & ~status.str.strip().str.lower().isin(_DONE | NO_ANSWER)).to_numpy()


def _once(tidy, path, on_duplicate):
    at = frames.repeated_line(tidy)
    if at is None:
        return tidy
    if on_duplicate == "last":
        return files.latest(tidy, KEY)
    line = tidy.iloc[at]
    cell = ", ".join(f"{name} {str(line[name]) if name in ('replicate', 'round') else repr(line[name])}"
                     for name in KEY)
    hint = " (is the column 'round' missing?)" if (tidy["round"] == 0).all() else ""
    where = layouts.at_line(path, tidy.index[at])
    raise DataError(f"{where}, field 'agent': a second line for {cell}{hint}; "
                    "expected one. on_duplicate='last' lets the later replace the earlier (a resumed run)")


def _coded(tidy, numeric, policy, labels, unfinished):
    """Code the text of lines without an answer; lines that have one keep it, whatever their text says."""
    if "text" not in tidy:
        return tidy, 0
    text = files.exact_ids(tidy["text"])
    wanted = (tidy["answer"].isna() & text.notna()).to_numpy() & ~unfinished
    if not wanted.any():
        return tidy.assign(text=text), 0
    from analysis import coder

    number = np.zeros(len(tidy), dtype=bool) if numeric is None else numeric
    answer = tidy["answer"].astype(object)
    rule = tidy["rule"].astype(object) if "rule" in tidy else pd.Series(None, tidy.index, dtype=object)
    if (mask := wanted & ~number).any():
        if any(len(str(label)) > 1 for label in labels):
            raise ValueError(f"labels={labels!r}: expected single letters, the only labels sought in texts")
        letters = "".join(map(str, labels))
        found = coder.code_answers(text[mask].tolist(), labels=letters, policy=policy)
        answer[mask], rule[mask] = found["label"].to_numpy(dtype=object), found["rule"].to_numpy(dtype=object)
    if (mask := wanted & number).any():
        found = coder.code_numbers(text[mask].tolist())
        values = map_distinct(files.exact_ids(found["value"]), canonical_number)
        answer[mask], rule[mask] = values.to_numpy(dtype=object), found["rule"].to_numpy(dtype=object)
    return tidy.assign(answer=answer.astype("str"), rule=rule.astype("str"), text=text), int(wanted.sum())


def write_open_tier(answers, path, *, more=None):
    """Write answers as JSON-lines in layout B of the open tier: labels only, no text.

    Parameters
    ----------
    answers : DataFrame
        Long answers. Beside the seven columns, `rule` and `stored_majority` are written; text and all other
        columns are left out.
    path : str or Path
        Gzipped if the name ends in ``.gz``. Written beside and renamed, so that a failure leaves what was
        there.
    more : dict, optional
        Further fields that every record gets.

    Returns
    -------
    Path

    Raises
    ------
    DataError
        A column is missing.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", data appendix (released layouts).

    Examples
    --------
    >>> some = pd.DataFrame({"row": "m", "question": "q", "replicate": 0, "round": [0, 1], "agent": "a",
    ...                      "answer": ["A", None], "gold": "A"})
    >>> path = write_open_tier(some, Path(tempfile.mkdtemp(), "rows.jsonl.gz"))
    >>> read(path)[["round", "answer"]].values.tolist()
    [[0, 'A'], [1, nan]]
    """
    lacking = [name for name in frames.COLUMNS if name not in answers]
    if lacking:
        raise DataError(f"columns missing: {', '.join(lacking)}; found: {', '.join(map(str, answers))}")
    path = Path(path)
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as raw:
            # No name and no time in the gzip header: the same answers give the same bytes.
            zipped = None
            if path.name.endswith(".gz"):
                zipped = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
            with io.TextIOWrapper(zipped or raw, encoding="utf-8", newline="\n", write_through=True) as text:
                for record in _open_tier(answers):
                    text.write(json.dumps(record | (more or {}), ensure_ascii=False, separators=(",", ":")) + "\n")
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(beside, 0o666 & ~umask)
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    return path


def _open_tier(answers):
    names = [*frames.COLUMNS, *(name for name in ("rule", "stored_majority") if name in answers)]
    order = answers.groupby(frames.DEBATE, sort=False).ngroup()
    ordered = answers[names].assign(_debate=order).sort_values(["_debate", "round"], kind="stable")
    ordered = ordered.astype(object)
    cells = ordered.where(ordered.notna(), None).to_dict("records")
    for _, debate in groupby(cells, key=lambda cell: cell["_debate"]):
        debate = list(debate)
        head = debate[0]
        rounds = {}
        for cell in debate:
            state = {"agent_id": cell["agent"], "answer": cell["answer"], "reasoning": None,
                     "round_num": cell["round"]}
            if "rule" in cell:
                state["rule"] = cell["rule"]
            rounds.setdefault(cell["round"], []).append(state)
        later = [rounds.get(number, []) for number in range(1, max(rounds) + 1)]
        record = {"question_id": head["question"], "correct_label": head["gold"], "row": head["row"],
                  "replicate": head["replicate"], "initial_states": rounds.get(0, []), "round_traces": later}
        if "stored_majority" in head:
            record["majority_answer"] = head["stored_majority"]
        yield record


