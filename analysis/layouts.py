"""The layouts of debate traces: a frame of records in, a frame of answers (of debates, for a matrix) out.

`analysis.traces.read` finds out which layout a file has and tidies the cells; here records are only taken
apart.
"""

import hashlib
import re
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from analysis import answers as frames
from analysis import records as files
from analysis.answers import NO_ANSWER, canonical_number, fold_label, label_names
from analysis.errors import DataError

# Names a column may have, the first found wins. A file that names its ids by an id column may hold the item's
# text in `question`.
ALIASES = {
    "row": ("row", "row_id"),
    "question": ("question_id", "qid", "q", "doc_id", "item_id", "question", "item"),
    "replicate": ("replicate", "rep", "replicate_id"),
    "round": ("round", "round_num", "round_number", "round_id"),
    "agent": ("agent", "agent_id", "agent_idx", "agent_name"),
    "answer": ("answer", "vote", "parsed_answer", "choice"),
    "gold": ("gold", "correct_label", "correct_answer", "gold_answer", "target"),
    "text": ("text", "content", "response", "output", "completion", "reply"),
}

def renamed(frame):
    """Rename columns to the names of the answers frame, by `ALIASES`, whatever their case.

    An item's text beside an id column becomes `question_text`; a column whose name is needed for another one
    is kept as ``<name>_as_found``.

    Examples
    --------
    >>> list(renamed(pd.DataFrame(columns=["q", "Agent_ID", "question", "score"])))
    ['question', 'agent', 'question_text', 'score']
    """
    lower = {}
    for name in frame:
        lower.setdefault(name.lower(), name)
    new = {}
    for field, aliases in ALIASES.items():
        found = next((lower[alias] for alias in aliases if alias in lower), None)
        if found is not None:
            new[found] = field
    if "question" in frame and new.get("question") != "question":
        new["question"] = "question_text"
    taken = set(new.values())
    new |= {name: f"{name}_as_found" for name in frame if name in taken and name not in new}
    return frame.rename(columns=new)


def row_names(frame, path, row):
    """Name the model-scaffold row of each line: its own, else `row`, else its model, else the file's stem.

    Examples
    --------
    >>> row_names(pd.DataFrame({"model": ["m", "m"]}), Path("x.jsonl.gz"), None).tolist()
    ['m', 'm']
    """
    fallback = row if row is not None else Path(path).name.removesuffix(".gz").rsplit(".", 1)[0]
    if "row" in frame:
        named = files.exact_ids(frame["row"])
        return ids(named.fillna(row) if row is not None and named.isna().any() else named, path, "row")
    for name in ("model", "model_name") if row is None else ():
        if name in frame and frame[name].notna().all():
            return ids(frame[name], path, name)
    # Not pd.Series(fallback, ...): that goes through a Python object for every line.
    return pd.Series(pd.array([fallback], dtype="str").take(np.zeros(len(frame), np.int64)), frame.index)


def at_line(path, line):
    """Say where a record is.

    Examples
    --------
    >>> at_line("x.csv", 3)
    'x.csv, line 3'
    """
    return f"{path}, line {line}"


def ids(values, path, field):
    """Return names or ids as exact strings; none may be missing.

    Examples
    --------
    >>> ids(pd.Series(["007", ""]), "x.csv", "question")
    Traceback (most recent call last):
    analysis.errors.DataError: x.csv, line 1, field 'question': missing; expected a name or id
    """
    ids = files.exact_ids(values)
    empty = ids.isna() | (ids == "")
    if empty.any():
        line = ids.index[int(np.argmax(empty))]
        raise DataError(f"{at_line(path, line)}, field {field!r}: missing; expected a name or id")
    return ids


def whole_numbers(values, path, field):
    """Return whole numbers as int64, from integers, integral floats or digits.

    Examples
    --------
    >>> whole_numbers(pd.Series(["10", "9", 2.0], dtype=object), "x.csv", "round").tolist()
    [10, 9, 2]
    """
    if pd.api.types.is_integer_dtype(values.dtype) and not values.hasnans:
        return values.astype("int64")
    texts = files.exact_ids(values)
    codes, distinct = pd.factorize(texts)
    fits = [re.fullmatch(r"\s*[+-]?\d{1,18}(\.0*)?\s*", text) is not None for text in distinct] + [False]
    bad = ~np.array(fits)[codes]
    if bad.any():
        at = int(np.argmax(bad))
        value = "missing" if codes[at] < 0 else repr(texts.iloc[at])
        raise DataError(f"{at_line(path, texts.index[at])}, field {field!r}: {value}; "
                        "expected a whole number")
    numbers = np.array([int(text.split(".")[0]) for text in distinct], dtype=np.int64)
    return pd.Series(numbers[codes], texts.index)


# --- chat ---------------------------------------------------------------------------------------------------


def chat(frame, path, labels):
    """Take chat records apart: one line per reply of an agent; its place among the replies is the round.

    Parameters
    ----------
    frame : DataFrame
        `question_text`, `contexts` (a list of messages for each agent) and `gold`, as
        `analysis.records.records` gives them.
    path : Path
        For messages.
    labels : str or sequence of str

    Returns
    -------
    DataFrame
        `question` (an id made from the text alone), `round`, `agent` (its number), `gold`, `text`,
        `question_text`; no answers yet.

    Raises
    ------
    DataError
        A record has another shape, or a gold that is neither a label nor a number nor a solution ending in
        ``#### number``.

    Examples
    --------
    >>> messages = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "It is 4."}]
    >>> record = {"question_text": "2+2?", "contexts": [messages], "gold": "2+2\\n#### 4"}
    >>> found = chat(pd.DataFrame([record]), "x.json", "ABCD")
    >>> found[["round", "agent", "gold", "text"]].values.tolist()
    [[0, '0', '4', 'It is 4.']]
    """
    names = label_names(labels)
    cells, lines, ids = [], [], {}
    for line, question, contexts, gold in frame[["question_text", "contexts", "gold"]].itertuples():
        at = f"{path}, record {line}"
        # The id follows from the text alone, so that files on the same items can be laid side by side.
        name = "q" + hashlib.sha256(question.encode()).hexdigest()[:10]
        if ids.setdefault(name, question) != question:
            raise DataError(f"{at}: its question id {name} is also that of {ids[name][:60]!r}")
        right = str(gold).rsplit("####", 1)[-1].strip() if gold is not None else ""
        if fold_label(right, names) is None and canonical_number(right) is None:
            allowed = ", ".join(dict.fromkeys(names.values()))
            raise DataError(f"{at}, field 'gold': {str(gold)[-60:]!r}; expected one of {allowed}, a number, "
                            "or a solution that ends in '#### number'")
        if not contexts:
            raise DataError(f"{at}: no agents; expected a list of messages for each agent")
        for agent, messages in enumerate(contexts):
            if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
                raise DataError(f"{at}, agent {agent}: expected a list of messages with role and content")
            replies = [message.get("content") for message in messages if message.get("role") == "assistant"]
            if not replies:
                raise DataError(f"{at}, agent {agent}: no message has the role 'assistant'; "
                                "expected one per round")
            for step, reply in enumerate(replies):
                cells.append({"question": name, "round": step, "agent": str(agent), "gold": right,
                              "text": _content(reply), "question_text": question})
                lines.append(line)
    return files.frame_of(cells, lines).sort_values(["question", "round"], kind="stable", key=_appearance)


def _appearance(values):
    return pd.Series(pd.factorize(values)[0], values.index) if values.name == "question" else values


def _content(reply):
    if isinstance(reply, list):  # content in parts, as chat interfaces also write it
        return "".join(str(part.get("text") or "") if isinstance(part, dict) else str(part) for part in reply)
    return reply if reply is None or isinstance(reply, str) else str(reply)


# --- open tier ----------------------------------------------------------------------------------------------

# Results stored beside the answers; they are computed anew from the answers, never taken over.
_RESULTS = {"initial_majority", "initial_correct", "majority_answer", "final_correct", "collapsed",
            "corrected"}
_NESTED = {"initial_answers", "final_answers", "initial_states", "round_traces", "round_states",
           "final_states"}


class _Odd(Exception):
    """A record that contradicts itself."""


def debate_records(frame, path, layout, row, on_duplicate, odd):
    """Take open-tier records apart: one line per debate, round and agent.

    Parameters
    ----------
    frame : DataFrame
        One record a line.
    path : Path
        For messages and for the row's name.
    layout : {"layout_a", "layout_b"}
    row : str or None
    on_duplicate : {"error", "last", "replicate"}
        What a second record of a question means, as for `analysis.traces.read`.
    odd : list
        Gets a message for each record that contradicts itself; its answers are left out.

    Returns
    -------
    DataFrame
        `row, question, replicate, gold, round, agent, answer`, `text` where stored, `stored_majority` (the
        endpoint's, never used for counting) and the record's and the states' other plain fields.

    Raises
    ------
    DataError
        A second record of a question, or no usable record at all.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", data appendix (released layouts).

    Examples
    --------
    >>> record = {"question_id": "q", "correct_label": "B", "initial_answers": ["A", None],
    ...           "round_traces": [{"round": 1, "answers": ["B", "B"]}], "majority_answer": "B"}
    >>> found = debate_records(pd.DataFrame([record]), Path("m.jsonl"), "layout_a", None, "error", [])
    >>> found[["round", "agent", "answer"]].values.tolist()
    [[0, '0', 'A'], [0, '1', nan], [1, '0', 'B'], [1, '1', 'B']]
    """
    frame = renamed(frame)
    if "question" not in frame:
        raise DataError(f"{path}: columns missing: question_id; found: {files.listed(frame)}")
    frame["row"] = row_names(frame, path, row)
    frame["question"] = ids(frame["question"], path, "question_id")
    frame["replicate"] = _replicates(frame, path, on_duplicate)
    if on_duplicate == "last":
        frame = files.latest(frame, frames.DEBATE)
    unpack = _unpack_a if layout == "layout_a" else _unpack_b
    cells, lines = [], []
    for line, record in zip(frame.index, frame.to_dict("records"), strict=True):
        record = {name: None if isinstance(value, float) and value != value else value
                  for name, value in record.items()}
        whole = {name: value for name, value in record.items() if name not in _RESULTS | _NESTED}
        if "majority_answer" in record:
            whole["stored_majority"] = _vote(record["majority_answer"])
        try:
            found = unpack(record)
        except _Odd as error:
            odd.append(f"{at_line(path, line)}, question {record['question']!r}: {error}")
            continue
        cells += [whole | cell for cell in found]
        lines += [line] * len(found)
    if not cells:
        raise DataError(odd[0] if odd else f"{path}: no answers in any record")
    found = files.frame_of(cells, lines)
    return found if "gold" in found else found.assign(gold=None)


def _replicates(frame, path, on_duplicate):
    number = pd.Series(0, frame.index)
    if "replicate" in frame:
        number = whole_numbers(frame["replicate"], path, "replicate")
    if on_duplicate == "last":
        return number
    groups = frame.assign(replicate=number).groupby(frames.DEBATE, sort=False)
    again = groups.cumcount().to_numpy()
    if on_duplicate == "replicate":
        return frame.groupby(["row", "question"], sort=False).cumcount() if again.any() else number
    if again.any():
        at = int(np.argmax(again > 0))
        question, row = frame["question"].iloc[at], frame["row"].iloc[at]
        raise DataError(f"{at_line(path, frame.index[at])}: a second record of question {question!r} in row "
                        f"{row!r}; expected one. on_duplicate='last' lets it replace the first (a resumed "
                        "run), 'replicate' counts it as a further debate")
    return number


def _vote(value):
    value = files.exact_id(value)
    return None if value is None or value.strip().lower() in NO_ANSWER else value


def _plain(value):
    """Turn the arrays in which a Parquet file's lists come into lists."""
    return [_plain(item) for item in value] if isinstance(value, (np.ndarray, list)) else value


def _list(record, name):
    value = _plain(record.get(name))
    if value is not None and not isinstance(value, list):
        raise _Odd(f"field {name!r}: {str(value)[:60]!r}; expected a list")
    return value


def _unpack_a(record):
    rounds = {0: _list(record, "initial_answers")}
    if rounds[0] is None:
        raise _Odd("field 'initial_answers': missing; expected a list of labels or nulls")
    for place, trace in enumerate(_list(record, "round_traces") or [], 1):
        if not isinstance(trace, dict):
            raise _Odd(f"field 'round_traces': {str(trace)[:60]!r}; expected round, answers, majority")
        number = _vote(trace.get("round", place)) or ""
        if not re.fullmatch("[0-9]{1,9}", number) or int(number) in rounds:
            raise _Odd(f"field 'round_traces': round {number[:60] or 'missing'!r}; "
                       "expected whole numbers from 1, each once")
        rounds[int(number)] = _list(trace, "answers")
    final = _list(record, "final_answers")
    if final is not None and len(rounds) == 1:
        rounds[1] = final
    last = rounds[max(rounds)]
    if final is not None and last is not None and list(map(_vote, final)) != list(map(_vote, last)):
        raise _Odd(f"field 'final_answers': {final}; expected those of the last round, {last}")
    cells = []
    for number in sorted(rounds):
        answers = rounds[number]
        if answers is None or len(answers) != len(rounds[0]):
            raise _Odd(f"round {number} has {len(answers or [])} answers; "
                       f"expected {len(rounds[0])}, one per agent")
        cells += [{"round": number, "agent": str(agent), "answer": _vote(answer)}
                  for agent, answer in enumerate(answers)]
    return cells


def _unpack_b(record):
    rounds = [_list(record, "initial_states")]
    if rounds[0] is None:
        raise _Odd("field 'initial_states': missing; expected a list of states")
    name = "round_traces" if record.get("round_traces") is not None else "round_states"
    rounds += _list(record, name) or []
    final = _list(record, "final_states")
    unpacked = [_states(states, number) for number, states in enumerate(rounds)]
    if final:
        last = _states(final, len(rounds))
        told = {state.get("round_num") for state in final}
        told_before = {state.get("round_num") for state in rounds[-1]}
        # Final states repeat the last round, unless there are no rounds or their round number is the next
        # one.
        if len(rounds) == 1 or (told != told_before and told == {len(rounds)}):
            unpacked.append(last)
        elif _ballots(last) != _ballots(unpacked[-1]):
            raise _Odd("field 'final_states': differ from the last round; expected the same answers")
    return [cell for cells in unpacked for cell in cells]


def _ballots(cells):
    return [(cell["agent"], cell["answer"]) for cell in cells]


def _states(states, number):
    if not isinstance(states, list) or not all(isinstance(state, dict) for state in states):
        raise _Odd(f"round {number}: {str(states)[:60]!r}; "
                   "expected a list of states with agent_id and answer")
    cells = []
    for place, state in enumerate(states):
        agent = _vote(state.get("agent_id"))
        told = state.get("round_num")
        if isinstance(told, (list, dict, np.ndarray)):
            raise _Odd(f"round {number}, field 'round_num': {str(told)[:60]!r}; expected a whole number")
        extra = {name: value for name, value in state.items()
                 if name not in ("agent_id", "answer", "reasoning", "round_num")}
        cell = extra | {"round": number, "agent": str(place) if agent is None else agent,
                        "answer": _vote(state.get("answer"))}
        if state.get("reasoning") is not None:
            cell["text"] = state["reasoning"]
        cells.append(cell)
    return sorted(cells, key=lambda cell: _natural(cell["agent"]))


@lru_cache(maxsize=4096)
def _natural(name):
    """Sort key under which agent_2 comes before agent_10."""
    return [int(part) if place % 2 else part for place, part in enumerate(re.split("([0-9]{1,18})", name))]


# --- feature matrix -----------------------------------------------------------------------------------------


def features(frame, path, row):
    """Rename the released feature columns to those of a debates frame; a matrix holds no answers.

    Parameters
    ----------
    frame : DataFrame
        One debate a line, in the columns of the released per-debate matrix.
    path : Path
    row : str or None
        Name of the row where there is no model column.

    Returns
    -------
    DataFrame
        `row, question, replicate` (running count of a question id within its row), `gold, n_agents` (missing
        where the agreement fractions cannot tell), `agree_k, changed_k, correct_k, n_flipped_1, unanimous_0,
        cell, onset`, then further columns.

    Raises
    ------
    DataError
        A column is missing, a flag is not 0 or 1, or the stored outcome contradicts the first and last
        majority.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. 3 (the four cells and the
    onset).

    Examples
    --------
    >>> line = {"model": "m", "question_id": "q", "correct_label": "A", "collapsed": 1, "corrected": 0,
    ...         "final_correct": 0, "init_correct": 1, "r1_majority_correct": 0, "cascade_round": 1.0}
    >>> features(pd.DataFrame([line]), "m.csv", None)[["row", "question", "cell", "onset"]].values.tolist()
    [['m', 'q', 'collapse', 1]]
    """
    frame = renamed(frame)
    needed = ("question", "gold", "collapsed", "corrected", "init_correct")
    lacking = [name for name in needed if name not in frame]
    if lacking:
        raise DataError(f"{path}: columns missing: {', '.join(lacking)}; found: {files.listed(frame)}")
    told = {found[1]: name for name in frame if (found := re.fullmatch("r([0-9]+)_majority_correct", name))}
    told.pop("0", None)
    endpoint = len(told)  # never a number read from a name: that may be of any size
    beyond = sorted(told.keys() - set(map(str, range(1, endpoint + 1))))
    if beyond:
        lost = next(number for number in range(1, endpoint + 1) if str(number) not in told)
        raise DataError(f"{path}, field {files.shown(told[beyond[0]])}: no r{lost}_majority_correct; "
                        "expected one such column for each round from 1 on, without gaps")
    if not endpoint and "final_correct" not in frame:
        raise DataError(f"{path}: columns missing: r1_majority_correct or final_correct; "
                        f"found: {files.listed(frame)}")
    debates = pd.DataFrame({"row": row_names(frame, path, row),
                            "question": ids(frame["question"], path, "question")})
    debates["replicate"] = debates.groupby(["row", "question"], sort=False).cumcount()
    debates["gold"] = ids(frame["gold"], path, "gold")
    used = {"model", "collapsed", "corrected", "final_correct", "init_majority_correct"}
    take = {"correct_0": ("init_correct", _flag), "agree_0": ("init_agree_frac", _fraction),
            "unanimous_0": ("init_unanimous", _flag),
            "n_flipped_1": ("r1_n_flipped_from_init", whole_numbers),
            "onset": ("cascade_round", _onset)}
    for number in range(1, endpoint + 1):
        take |= {f"correct_{number}": (f"r{number}_majority_correct", _flag),
                 f"agree_{number}": (f"r{number}_agree_frac", _fraction),
                 f"changed_{number}": (f"r{number}_majority_changed", _flag)}
    found = {name: kind(frame[source], path, source)
             for name, (source, kind) in take.items() if source in frame}
    flipped = found.get("n_flipped_1")
    agreements = [found[name] for name in found if name.startswith("agree_")]
    debates["n_agents"] = _panel(agreements, flipped, debates["row"])
    for name in sorted(found.keys() - {"onset"}, key=lambda name: (name.rsplit("_", 1)[0], _natural(name))):
        debates[name] = found[name]
    debates["cell"] = _cells(frame, path, found, endpoint)
    debates["onset"] = found.get("onset", pd.Series(pd.NA, frame.index, dtype="Int64"))
    used |= {source for source, _ in take.values()} | {"question", "gold", "row"}
    for name in frame:
        if name not in used and name not in debates:
            debates[name] = frame[name]
    return debates.reset_index(drop=True)


def _cells(frame, path, found, endpoint):
    first = found["correct_0"]
    if endpoint:
        last = found[f"correct_{endpoint}"]
    else:
        last = _flag(frame["final_correct"], path, "final_correct")
    expected = {"final_correct": last, "collapsed": first & ~last, "corrected": ~first & last}
    for name, computed in expected.items():
        told = _flag(frame[name], path, name) if name in frame else computed
        if (told != computed).any():
            line = told.index[int(np.argmax(told != computed))]
            raise DataError(f"{at_line(path, line)}, field {name!r}: {int(told[line])}; "
                            f"expected {int(computed[line])} from the first and the last majority")
    kinds = [first & last, first & ~last, ~first & last]
    cells = np.select(kinds, ["preserved", "collapse", "correction"], "unrepaired")
    return pd.Series(cells, frame.index, dtype="str")


def _flag(values, path, field):
    texts = files.exact_ids(values)
    flags = {"1": True, "true": True, "1.0": True, "0": False, "false": False, "0.0": False}
    known = texts.str.lower().map(flags)
    if known.isna().any():
        at = int(np.argmax(known.isna()))
        value = repr(texts.iloc[at]) if isinstance(texts.iloc[at], str) else "missing"
        raise DataError(f"{at_line(path, texts.index[at])}, field {field!r}: {value}; expected 0 or 1")
    return known.astype(bool)


def _fraction(values, path, field):
    numbers = pd.to_numeric(values, errors="coerce").astype("float64")
    bad = ~numbers.between(0, 1)
    if bad.any():
        at = int(np.argmax(bad))
        raise DataError(f"{at_line(path, numbers.index[at])}, field {field!r}: {values.iloc[at]!r}; "
                        "expected a fraction from 0 to 1")
    return numbers


def _onset(values, path, field):
    texts = files.exact_ids(values)
    there = texts.notna() & (texts.str.strip() != "")
    onset = pd.Series(pd.NA, values.index, dtype="Int64")
    if there.any():
        onset[there] = whole_numbers(texts[there], path, field)
    return onset


def _panel(fractions, flipped, rows):
    """Number of agents of each row: the smallest panel that can give all its agreement fractions."""
    sizes = pd.Series(pd.NA, rows.index, dtype="Int64")
    for name in rows.unique():
        mine = rows == name
        seen = np.unique(np.concatenate([part[mine] for part in fractions])) if fractions else np.ones(1)
        least = max(2, int(flipped[mine].max()) if flipped is not None else 2)
        if (seen < 1).any():
            fits = (size for size in range(least, 100)
                    if np.allclose(seen * size, np.round(seen * size), atol=0.01))
            sizes[mine] = next(fits, pd.NA)
    return sizes
