"""The answers frame: what its cells may hold, which cells it must have, and the checks before it is counted.

One line per row, question, replicate, round and agent; `answer` is a label, a number in canonical form, or
missing.
"""

import re
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd

from analysis.errors import DataError
from analysis.records import exact_ids

DEBATE = ["row", "question", "replicate"]
KEY = [*DEBATE, "round", "agent"]
COLUMNS = [*KEY, "answer", "gold"]
LABELS = "ABCDEFGHIJ"

# Words by which writers of logs say that there is no answer; none of them could be a label or a number.
NO_ANSWER = {"", "na", "n/a", "nan", "<na>", "none", "null", "nil"}

_CURRENCY = "$€£¥₹"
_GROUPING = "[,\u00a0\u2009\u202f]"
_NUMBER = re.compile(rf"[+-]?(?:\d{{1,3}}(?:{_GROUPING}\d{{3}})+|\d+)?(?:\.\d*)?(?:[eE][+-]?\d{{1,3}})?")


def canonical_number(value):
    """Write a number so that equal values are equal strings.

    Parameters
    ----------
    value : str, int, float or None
        Grouping commas, a currency sign, a percent sign (35% is 35), a simple fraction and an exponent are
        understood.

    Returns
    -------
    str or None
        Plain decimal digits without needless zeros; a reduced fraction where the decimals never end; None for
        no number.

    Examples
    --------
    >>> [canonical_number(value) for value in ("$1,200.00", ".250", "1/4", "2/6", "-0", 52.0, "a dozen")]
    ['1200', '0.25', '0.25', '1/3', '0', '52', None]
    """
    if value is None or isinstance(value, (bool, np.bool_)):
        return None
    text = str(value).strip().replace("−", "-").rstrip("%").strip()
    sign = "-" if text.startswith("-") else ""
    text = sign + text.removeprefix(sign).strip(_CURRENCY + " ")
    parts = text.split("/")
    if len(parts) > 2:
        return None
    found = [_fraction(part) for part in parts]
    if None in found or (len(found) == 2 and found[1] == 0):
        return None
    number = found[0] if len(found) == 1 else found[0] / found[1]
    bottom = number.denominator
    twos = (bottom & -bottom).bit_length() - 1
    fives, rest = 0, bottom >> twos
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest > 1:
        return f"{number.numerator}/{bottom}"
    places = max(twos, fives)
    digits = str(abs(number.numerator) * 10**places // bottom).rjust(places + 1, "0")
    whole, decimals = digits[: len(digits) - places], digits[len(digits) - places :]
    return ("-" if number < 0 else "") + whole + ("." + decimals if decimals else "")


def _fraction(text):
    text = text.strip()
    if len(text) > 400 or not _NUMBER.fullmatch(text) or not re.search(r"\d", text.lower().split("e")[0]):
        return None
    return Fraction(re.sub(_GROUPING, "", text))


def clean_labels(values, labels=LABELS):
    """Fold ways of writing a label into the label, and make everything else missing.

    Parameters
    ----------
    values : Series or sequence
        Votes as they came: strings, integers, None, NaN.
    labels : str or sequence of str
        The item's labels.

    Returns
    -------
    Series of str
        Same index; case, blanks, parentheses, brackets, asterisks and a trailing dot or colon do not matter.

    Examples
    --------
    >>> clean_labels(["b", "(B) ", "B.", "[invalid]", None, "E"], "ABCD").tolist()
    ['B', 'B', 'B', nan, nan, nan]
    >>> clean_labels([1, "1.", 2.0, 5], "1234").tolist()
    ['1', '1', '2', nan]
    """
    names = label_names(labels)
    texts = exact_ids(values if isinstance(values, pd.Series) else pd.Series(list(values), dtype=object))
    return map_distinct(texts, lambda text: fold_label(text, names))


def label_names(labels):
    """Map each way of writing a label that is unambiguous once folded to the label itself.

    Examples
    --------
    >>> label_names("ab")
    {'a': 'a', 'A': 'a', 'b': 'b', 'B': 'b'}
    """
    names = [str(label) for label in labels]
    if not names or len(set(names)) < len(names) or "" in names:
        raise ValueError(f"labels={labels!r}: expected distinct labels, such as 'ABCD'")
    folded = [name.upper() for name in names]
    table = {}
    for name, big in zip(names, folded, strict=True):
        table[name] = name
        if folded.count(big) == 1:
            table.setdefault(big, name)
    return table


def fold_label(text, names):
    """Return the label that `text` writes, or None.

    Examples
    --------
    >>> fold_label(" (c). ", label_names("ABCD"))
    'C'
    """
    found = names.get(text)
    if found is None:
        bare = text.strip().rstrip(".:").strip("()[]{}* \t").rstrip(".:")
        found = names.get(bare) or names.get(bare.upper())
    return found


def map_distinct(texts, function):
    """Apply `function` to the distinct strings of a Series; None gives a missing value.

    Examples
    --------
    >>> map_distinct(pd.Series(["a", "b", "a"]), str.upper).tolist()
    ['A', 'B', 'A']
    """
    codes, distinct = pd.factorize(texts)
    before = list(distinct)
    after = [function(text) for text in before]
    if after == before:
        return texts
    found = pd.array([*after, None], dtype="str").take(np.where(codes < 0, len(after), codes))
    return pd.Series(found, index=texts.index, name=texts.name)


# --- the grid of cells --------------------------------------------------------------------------------------


def _place(answers):
    """Number what names a cell, once: a million debates make this the dearest step of every check."""
    row, row_names = pd.factorize(answers["row"])
    question, questions = pd.factorize(answers["question"])
    replicate, replicates = _numbered(answers["replicate"].to_numpy())
    item, debate = question, question
    if len(row_names) > 1:
        item = debate = pd.factorize(row.astype(np.int64) * len(questions) + question)[0]
    if len(replicates) > 1:
        debate = pd.factorize(item.astype(np.int64) * len(replicates) + replicate)[0]
    first = np.full(debate.max() + 1 if len(debate) else 0, -1, dtype=np.int64)
    first[debate[::-1]] = np.arange(len(debate), dtype=np.int64)[::-1]
    step, steps = _numbered(answers["round"].to_numpy())
    agent, agents = pd.factorize(answers["agent"])
    return SimpleNamespace(
        item=item,  # of each line: its question within its row
        debate=debate,  # of each line, in order of appearance
        first=first,  # of each debate: its first line
        row=row[first],  # of each debate
        rows=list(row_names),
        step=step, steps=steps, agent=agent, agents=list(agents),
    )


def _numbered(values):
    """Codes in ascending order, and the sorted distinct integers."""
    if len(values) and 0 <= values.min() and values.max() < 2**16:
        distinct = np.flatnonzero(np.bincount(values))
        code = np.zeros(distinct[-1] + 1, dtype=np.int64)
        code[distinct] = np.arange(len(distinct))
        return code[values], distinct
    distinct, code = np.unique(values, return_inverse=True)
    return code, distinct.astype(np.int64)


def _cell_ids(debate, step, agent, n_steps, n_agents):
    return (debate.astype(np.int64) * n_steps + step) * n_agents + agent


def _first_repeat(cells, size):
    """Position of the first line whose cell came before, or None."""
    if size <= 8 * len(cells) + 2**20:  # counting is far cheaper than hashing where the grid is nearly full
        if (np.bincount(cells, minlength=size) <= 1).all():
            return None
    repeats = pd.Series(cells).duplicated().to_numpy()
    return int(np.argmax(repeats)) if repeats.any() else None


def repeated_line(answers):
    """Return the position of the first line that names the same cell as an earlier one, or None.

    Examples
    --------
    >>> line = {"row": "m", "question": "q", "replicate": 0, "round": 0, "agent": "a"}
    >>> repeated_line(pd.DataFrame([line, line]))
    1
    """
    return _repeated(_place(answers))


def _repeated(place):
    n_steps, n_agents = len(place.steps), len(place.agents)
    return _first_repeat(_cell_ids(place.debate, place.step, place.agent, n_steps, n_agents),
                         len(place.first) * n_steps * n_agents)


def _expected(answers, place, agents, rounds):
    """Cells there are and cells there should be (None: the same), as ids, with what decodes them."""
    debate, first, row = place.debate, place.first, place.row
    steps, step, names = place.steps, place.step, place.agents
    if rounds is not None:
        steps = np.union1d(steps, np.asarray(list(rounds), dtype=np.int64))
        step = np.searchsorted(steps, place.steps)[step]
    if agents is not None:
        names = list(dict.fromkeys([*names, *map(str, agents)]))
    n_rows, n_steps, n_agents = len(place.rows), len(steps), len(names)
    have = _cell_ids(debate, step, place.agent, n_steps, n_agents)

    in_row = np.zeros((n_rows, n_steps), dtype=bool)
    in_row[row[debate], step] = True
    if rounds is not None:
        in_row[:] = np.isin(steps, list(rounds))
    if agents is not None:
        seats = np.zeros((n_rows, n_agents), dtype=bool)
        seats[:, [names.index(str(name)) for name in agents]] = True
        seat_debate, seat_agent = np.nonzero(seats[row])
    else:
        if n_rows * n_agents <= 2**26:
            seats = np.zeros((n_rows, n_agents), dtype=bool)
            seats[row[debate], place.agent] = True
            full = seats.sum(1) * in_row.sum(1)
            counts = np.bincount(debate, minlength=len(first))
            if (counts == full[row]).all() and _first_repeat(have, len(first) * n_steps * n_agents) is None:
                return have, None, steps, names
        seat_debate, seat_agent = _seats(answers, place)
    parts = [np.zeros(0, dtype=np.int64)]
    for number in range(n_rows):
        mine, wanted = row[seat_debate] == number, np.flatnonzero(in_row[number])
        parts.append(_cell_ids(np.repeat(seat_debate[mine], len(wanted)), np.tile(wanted, mine.sum()),
                               np.repeat(seat_agent[mine], len(wanted)), n_steps, n_agents))
    return have, np.concatenate(parts), steps, names


def _seats(answers, place):
    """Agents of each debate: those of its row, or its own where a row names agents anew in every debate."""
    n_agents, row, first = len(place.agents), place.row, place.first
    pairs = np.unique(place.debate.astype(np.int64) * n_agents + place.agent)
    own_debate, own_agent = np.divmod(pairs, n_agents)
    sizes = np.bincount(own_debate, minlength=len(first))
    found_debate, found_agent = [], []
    for number, name in enumerate(place.rows):
        debates = np.flatnonzero(row == number)
        mine = row[own_debate] == number
        everyone = np.unique(own_agent[mine])
        if len(everyone) == sizes[debates].max():
            found_debate.append(np.repeat(debates, len(everyone)))
            found_agent.append(np.tile(everyone, len(debates)))
        elif (sizes[debates] == sizes[debates[0]]).all():
            found_debate.append(own_debate[mine])
            found_agent.append(own_agent[mine])
        else:
            odd = debates[np.argmin(sizes[debates])]
            line = answers.iloc[first[odd]]
            raise DataError(
                f"{_where(answers, line)}: field 'agent': {sizes[odd]} agents, while other debates of row "
                f"{name!r} have {sizes[debates].max()} under other names; expected the same number of agents "
                "in all debates of a row")
    return np.concatenate(found_debate), np.concatenate(found_agent)


def complete(answers, *, agents=None, rounds=None):
    """Add a line with a missing answer for every cell of the grid that has none.

    Parameters
    ----------
    answers : DataFrame
        Long answers with `row, question, replicate, round, agent, answer`.
    agents : sequence of str, optional
        Who should answer in every debate. If left out: all agents of the row.
    rounds : sequence of int, optional
        Rounds every debate should have. If left out: all rounds of the row.

    Returns
    -------
    DataFrame
        The same frame if nothing is missing; else debates in order of first appearance, rounds ascending.
        ``attrs["completed"]`` counts the cells added. `gold`, `question_text` and `stored_majority` are
        carried into added lines.

    Raises
    ------
    DataError
        Debates of one row have different numbers of agents under different names.

    Examples
    --------
    >>> some = pd.DataFrame({"row": "m", "question": "q", "replicate": 0, "round": [0, 0, 1],
    ...                      "agent": ["a", "b", "a"], "answer": ["A", "B", "A"]})
    >>> whole = complete(some)
    >>> whole["answer"].tolist(), whole.attrs["completed"]
    (['A', 'B', 'A', nan], 1)
    """
    return _complete(answers, _place(answers), agents, rounds)


def _complete(answers, place, agents=None, rounds=None):
    have, want, steps, agent_names = _expected(answers, place, agents, rounds)
    lost = np.zeros(0, dtype=np.int64) if want is None else np.setdiff1d(want, have)
    if not len(lost):
        whole = answers.copy(deep=False)
        whole.attrs = {**answers.attrs, "completed": 0}
        return whole
    n_steps, n_agents = len(steps), len(agent_names)
    from_line = place.first[lost // (n_steps * n_agents)]
    carried = [*DEBATE, *(name for name in ("gold", "question_text", "stored_majority") if name in answers)]
    added = answers[carried].iloc[from_line].reset_index(drop=True)
    added["round"] = steps[lost // n_agents % n_steps]
    added["agent"] = pd.array([agent_names[code] for code in lost % n_agents], dtype="str")
    added["answer"] = pd.array([None] * len(lost), dtype="str")
    whole = pd.concat([answers, added], ignore_index=True)[list(answers.columns)]
    # Within a round agents keep the order of their first line anywhere.
    whole = whole.iloc[np.argsort(np.concatenate([have, lost]), kind="stable")].reset_index(drop=True)
    whole.attrs = {**answers.attrs, "completed": len(lost)}
    return whole


def coverage(answers, *, agents=None, rounds=None):
    """Count what is there against what should be there, debate by debate and round by round.

    Parameters
    ----------
    answers : DataFrame
    agents, rounds : sequence, optional
        As for `complete`.

    Returns
    -------
    DataFrame
        `row, question, replicate, round, expected` (agents), `present` (agents with a line) and `answered`
        (agents with an answer).

    Examples
    --------
    >>> some = pd.DataFrame({"row": "m", "question": "q", "replicate": 0, "round": [0, 0, 1],
    ...                      "agent": ["a", "b", "a"], "answer": ["A", None, "A"]})
    >>> coverage(some)[["round", "expected", "present", "answered"]].values.tolist()
    [[0, 2, 2, 1], [1, 2, 1, 1]]
    """
    whole = complete(answers.assign(present=True), agents=agents, rounds=rounds)
    whole = whole.assign(present=whole["present"].notna(), answered=whole["answer"].notna(), expected=1)
    counts = whole.groupby([*DEBATE, "round"], sort=False)[["expected", "present", "answered"]].sum()
    return counts.astype("int64").reset_index()


def carry_forward(answers, *, agents=None, rounds=None):
    """Give an agent without an answer the last answer it gave before in the same debate.

    Parameters
    ----------
    answers : DataFrame
    agents, rounds : sequence, optional
        As for `complete`, which is applied first: an agent without a line keeps its vote as well.

    Returns
    -------
    DataFrame
        The completed frame; ``attrs["carried"]`` counts the answers filled in.

    Examples
    --------
    >>> some = pd.DataFrame({"row": "m", "question": "q", "replicate": 0, "round": [0, 0, 1],
    ...                      "agent": ["a", "b", "a"], "answer": ["A", "B", "C"]})
    >>> carry_forward(some)["answer"].tolist()
    ['A', 'B', 'C', 'B']
    """
    whole = complete(answers, agents=agents, rounds=rounds)
    in_order = whole.sort_values("round", kind="stable")
    filled = in_order.groupby([*DEBATE, "agent"], sort=False)["answer"].ffill()
    before = whole["answer"].notna().sum()
    attrs = whole.attrs
    whole = whole.assign(answer=filled)  # aligned by line, so the order stays
    whole.attrs = {**attrs, "carried": int(whole["answer"].notna().sum() - before)}
    return whole


# --- checks -------------------------------------------------------------------------------------------------


def schema():
    """Return the pandera schema of an answers frame; unknown further columns are allowed.

    Examples
    --------
    >>> list(schema().columns)
    ['row', 'question', 'replicate', 'round', 'agent', 'answer', 'gold']
    """
    import pandera.pandas as pa  # slow to import, and only checks need it

    name = pa.Column(str, pa.Check(lambda cells: cells != "", error="expected a name that is not empty"))
    number = pa.Column("int64", pa.Check.ge(0, error="expected a whole number, 0 or more"))
    label = pa.Check(lambda cells: cells != "", error="expected a label, or a missing value")
    answer = pa.Column(str, label, nullable=True)
    return pa.DataFrameSchema({"row": name, "question": name, "replicate": number, "round": number,
                               "agent": name, "answer": answer, "gold": name})


def validate(answers, labels=None):
    """Check an answers frame before it is counted, and complete its grid of cells.

    Parameters
    ----------
    answers : DataFrame
        Long answers, of one row or several. Names, answers and golds may be strings, integers or categories,
        rounds and replicates any whole numbers; without a column `replicate` all are replicate 0.
    labels : str or sequence of str, optional
        The items' labels. If left out, a label is any single letter A-Z. An item whose gold is no label but a
        number in canonical form takes numbers as answers.

    Returns
    -------
    DataFrame
        The frame with a missing answer for each cell that had no line (see `complete`);
        ``attrs["completed"]`` counts them.

    Raises
    ------
    DataError
        Missing columns, wrong types, unknown labels, two lines for one cell, several golds for one question,
        a round that is absent, debates of one row that end in different rounds. The message names place,
        field, value and what is expected.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. 3 (debates of n agents, Round 0
    to the endpoint).

    Examples
    --------
    >>> good = pd.DataFrame({"row": "m", "question": "q", "replicate": 0, "round": [0, 0, 1, 1],
    ...                      "agent": ["a", "b"] * 2, "answer": ["A", "B", "A", None], "gold": "A"})
    >>> len(validate(good, labels="ABCD"))
    4
    >>> validate(good.assign(round=1), labels="ABCD")
    Traceback (most recent call last):
    analysis.errors.DataError: row 'm', question 'q', replicate 0, round 1, agent 'a': field 'agent': ...
    """
    if "replicate" not in answers:
        answers = answers.assign(replicate=np.int64(0))
    _check_columns(answers)
    answers = _of_kind(answers)
    _check_schema(answers)
    _check_cells(answers, labels)
    place = _place(answers)
    _check_golds(answers, place)
    _check_rounds(answers, place)
    return _complete(answers, place)


def _where(answers, line):
    source = f"{answers.attrs['source']}: " if "source" in answers.attrs else ""
    cell = ", ".join(f"{name} {_show(line[name])}" for name in KEY if name in line.index)
    return source + cell


def _brief(text):
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _show(value):
    return repr(value) if isinstance(value, str) else str(value)


def _check_columns(answers):
    source = answers.attrs.get("source", "answers")
    lacking = [name for name in COLUMNS if name not in answers]
    if lacking:
        raise DataError(f"{source}: columns missing: {', '.join(lacking)}; "
                        f"found: {', '.join(map(str, answers))}")
    if not len(answers):
        raise DataError(f"{source}: no answers at all; expected one line per question, round and agent")
    if answers["gold"].isna().all():
        raise DataError(f"{source}: column 'gold' is missing or empty; "
                        "expected the right answer of each question")


def _of_kind(answers):
    """Turn ids into strings and counts into int64, whatever type they came in; no value changes."""
    made = {}
    for name in COLUMNS:
        values = answers[name]
        if name not in ("replicate", "round"):
            found = exact_ids(values)
        elif values.dtype == "int64":
            found = values
        elif pd.api.types.is_integer_dtype(values.dtype) and not values.hasnans:
            found = values.astype("int64")
        else:
            texts = exact_ids(values)
            bad = ~texts.str.fullmatch(r"[+-]?[0-9]{1,18}").fillna(False).to_numpy(dtype=bool)
            if bad.any():
                line = answers.iloc[int(np.argmax(bad))]
                value = "missing" if pd.isna(texts.iloc[int(np.argmax(bad))]) else _show(line[name])
                raise DataError(f"{_where(answers, line)}: field {name!r}: {value}; expected a whole number")
            found = texts.astype("int64")
        if found is not values:
            made[name] = found
    return answers.assign(**made) if made else answers


def _check_schema(answers):
    import pandera.errors

    try:
        schema().validate(answers, inplace=True)
    except pandera.errors.SchemaError as error:
        field = error.schema.name
        cases = error.failure_cases
        code = error.reason_code.name if error.reason_code else ""
        if code == "WRONG_DATATYPE":
            kind = "whole numbers (int64)" if field in ("replicate", "round") else "strings (str)"
            source = answers.attrs.get("source", "answers")
            raise DataError(
                f"{source}: field {field!r}: type {answers[field].dtype}; expected {kind}") from None
        at = cases["index"].iloc[0] if isinstance(cases, pd.DataFrame) and "index" in cases else None
        line = answers.loc[at] if at is not None else None
        if isinstance(line, pd.DataFrame):
            line = line.iloc[0]
        where = _where(answers, line) if line is not None else answers.attrs.get("source", "answers")
        if code == "SERIES_CONTAINS_NULLS":
            value, hope = "missing", "expected a value"
        else:
            value, hope = _show(cases["failure_case"].iloc[0]), error.check.error or str(error.check)
        raise DataError(f"{where}: field {field!r}: {value}; {hope}") from None


def _check_cells(answers, labels):
    allowed = set(map(str, labels)) if labels is not None else set("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    hope = "expected one letter A-Z" if labels is None else f"expected one of {', '.join(map(str, labels))}"
    gold, golds = pd.factorize(answers["gold"])
    numeric = np.array([name not in allowed and canonical_number(name) == name for name in golds], dtype=bool)
    for code, name in enumerate(golds):
        if name not in allowed and not numeric[code]:
            line = answers.iloc[int(np.argmax(gold == code))]
            raise DataError(f"{_where(answers, line)}: field 'gold': {_brief(name)}; {hope}, or a number in "
                            "canonical form")
    answer, names = pd.factorize(answers["answer"])
    # The last place is for missing answers, whose code is -1.
    is_label = np.array([name in allowed for name in names] + [True])
    bad = ~is_label[answer]
    if numeric.any():
        is_number = np.array([canonical_number(name) == name for name in names] + [True])
        bad = np.where(numeric[gold], ~is_number[answer], bad)
    if bad.any():
        at = int(np.argmax(bad))
        if numeric[gold[at]]:
            hope = f"expected a number in canonical form, as the gold {golds[gold[at]]!r} is"
        value = names[answer[at]]
        hint = " (whole replies belong into a column 'text')" if len(value) > 20 else ""
        raise DataError(f"{_where(answers, answers.iloc[at])}: field 'answer': {_brief(value)}; {hope}, "
                        f"or a missing value{hint}")


def _check_golds(answers, place):
    gold, golds = pd.factorize(answers["gold"])
    _check_one(answers, place.item, gold, golds, "gold", "one gold per question")
    if "question_text" in answers:
        text, texts = pd.factorize(exact_ids(answers["question_text"]))
        _check_one(answers, place.item, text, texts, "question_text", "one text per question id")


def _check_one(answers, item, code, names, field, hope):
    first = np.zeros(item.max() + 1, dtype=code.dtype)
    first[item[::-1]] = code[::-1]
    differs = first[item] != code
    if differs.any():
        at = int(np.argmax(differs))
        line = answers.iloc[at]
        now, before = (_brief(names[one]) if one >= 0 else "missing" for one in (code[at], first[item[at]]))
        raise DataError(f"{_where(answers, line)}: field {field!r}: {now}, but {before} before; "
                        f"expected {hope}")


def _check_rounds(answers, place):
    at = _repeated(place)
    if at is not None:
        raise DataError(f"{_where(answers, answers.iloc[at])}: field 'agent': a second line for this agent "
                        "in this round; expected one line per row, question, replicate, round and agent")
    debate, first, row, row_names = place.debate, place.first, place.row, place.rows
    steps = answers["round"].to_numpy()
    begun = np.zeros(len(first), dtype=bool)
    begun[debate[steps == 0]] = True
    if not begun.all():
        line = answers.iloc[first[int(np.argmin(begun))]]
        raise DataError(f"{_where(answers, line)}: field 'round': this debate has no round 0; expected the "
                        "independent answers as round 0 and the debate rounds from 1")
    last = pd.Series(steps).groupby(debate).max().to_numpy()
    for number, name in enumerate(row_names):
        mine = np.flatnonzero(row == number)
        ends = last[mine]
        if (ends != ends[0]).any():
            odd = mine[int(np.argmin(ends))]
            line = answers.iloc[first[odd]].drop(["round", "agent"])
            raise DataError(f"{_where(answers, line)}: field 'round': the debate ends in round {ends.min()}, "
                            f"others of the row in round {ends.max()}; expected the same number of rounds "
                            "in all debates of a row")
        source = f"{answers.attrs['source']}: " if "source" in answers.attrs else ""
        if ends[0] == 0:
            raise DataError(f"{source}row {name!r}: field 'round': only round 0; expected at least one "
                            "debate round after it (is the column 'round' missing?)")
        seen = np.unique(steps[row[debate] == number]) if len(row_names) > 1 else np.unique(steps)
        if len(seen) != ends[0] + 1:
            gap = int(np.argmax(seen != np.arange(len(seen))))
            raise DataError(f"{source}row {name!r}: field 'round': no line has round {gap}; "
                            f"expected rounds 0 to {ends[0]}")
