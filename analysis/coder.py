"""Read the answer out of a reply: option labels and numbers, with the rule that gave them.

Three policies for labels. ``reference`` is the paper's chain to the letter, so that published labels can be
rebuilt. ``strict`` is the paper's audit variant. ``anchored`` is ours: what a careful reader calls the
final answer.

The first two work on bytes. Texts are joined into one buffer with a NUL after each, every non-ASCII
character is overwritten by an ASCII stand-in of its kind (word, space, other), and each step of the chain
looks only at the few positions where it could start. No step backtracks, so time is linear in the length of
the text.
"""

import re
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from analysis import anchored, numerals
from analysis.errors import choice

POLICIES = ("reference", "strict", "anchored")

# The chain, in order. Case is ignored except in the last step; a letter counts only if it is a valid label.
# Lines end at "\n" only; strip() and the patterns know all of Unicode's white space and word characters.
CHAIN = (
    # the first match, even if it is no label (strict: the last match that is one)
    ("final_tag", r"Final\s+Answer\s*:\s*([A-J])\b"),
    # the first match
    ("answer_is", r"(?:the\s+)?answer\s+is\s*:?\s*([A-J])\b"),
    ("choose", r"(?:I\s+)?(?:choose|select|pick)\s+(?:option\s+)?([A-J])\b"),
    ("answer_colon", r"(?:correct\s+)?answer\s*:\s*([A-J])\b"),
    # the last line that is a label, each line stripped
    ("letter_line", r"^[\(\*]*([A-J])[\)\.\*]*$"),
    # the last label (strict: left out)
    ("last_letter", r"\b([A-J])\b"),
)
STRICT_LINE = r"^[\(\*]*\s*([A-J])\s*[\)\.\*]*$"
_RULES = np.array([name for name, _ in CHAIN] + ["none", "empty"])
_NONE, _EMPTY = len(CHAIN), len(CHAIN) + 1

_CHUNK = 1 << 20  # bytes worked on at once: keeps the working set in cache and the peak memory flat
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# The only characters outside ASCII that equal a letter of ASCII when case is ignored: no stand-in is exact.
_FOLDING = (0x130, 0x131, 0x17F, 0x212A)


def code_answers(texts, labels="ABCDEFGHIJ", policy="reference"):
    """Code replies to multiple-choice items as option labels.

    Parameters
    ----------
    texts : sequence, Series or pyarrow array of str
        One reply each; None, NaN and NA are missing replies. The index of a Series is kept.
    labels : str or sequence of str
        The valid option letters (A-Z, any case) of all texts: "ABCD" or a list, tuple or set of single
        letters. Or one such string per text: a Series, an array, or a list that holds longer strings. The
        reference chain looks for A-J only, whatever else is listed, save for a line that is nothing but a
        label.
    policy : {"reference", "strict", "anchored"}
        ``reference``: the paper's chain (`CHAIN`). ``strict``: no last-letter step, the last valid "Final
        Answer" tag wins, blanks allowed inside the decoration of a letter line. ``anchored``: the final
        answer as read by a careful reader, rules in `analysis.anchored`.

    Returns
    -------
    DataFrame
        `label` (str, upper case; missing where there is none) and `rule` (str: the rule that fired; ``empty``
        for a missing or blank reply, ``none`` for one without an answer; ``anchored`` also tells ``several``,
        ``outside_labels``, ``abstained`` and ``unfinished_reasoning``).

    Raises
    ------
    ValueError
        Unknown policy, labels that are not letters, or not as many labels as texts.
    TypeError
        Texts that are one string, or hold something that is not a string.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. A.2 and A.3.3.

    Examples
    --------
    >>> replies = ["The answer is (C).", "I choose B", "Final Answer: E", None]
    >>> code_answers(replies, labels="ABCD")
      label         rule
    0     C  last_letter
    1     B       choose
    2   NaN         none
    3   NaN        empty
    >>> code_answers(["The answer is A. Wait, it must be C."], policy="anchored").label[0]
    'C'
    """
    choice("policy", policy, POLICIES)
    array, index = _as_arrow(texts)
    masks = _label_masks(labels, len(array))
    if policy == "anchored":
        codes, rules = anchored.letters(array, masks)
        return _frame(index, label=_letters(codes), rule=rules)
    codes = np.full(len(array), -1, dtype=np.int8)
    rules = np.full(len(array), _NONE, dtype=np.int8)
    for low, high in _chunks(array):
        codes[low:high], rules[low:high] = _chain(array[low:high], masks[low:high], policy == "strict")
    return _frame(index, label=_letters(codes), rule=pa.array(_RULES).take(pa.array(rules)))


def code_numbers(texts):
    """Code replies to items whose answer is a number.

    Parameters
    ----------
    texts : sequence, Series or pyarrow array of str
        One reply each; None, NaN and NA are missing replies. The index of a Series is kept.

    Returns
    -------
    DataFrame
        `value` (float64; NaN where there is none; a percentage as written, so 35% is 35) and `rule` (str).

    Raises
    ------
    TypeError
        Texts that are one string, or hold something that is not a string.

    References
    ----------
    GSM8K's ``#### number`` ending and LaTeX boxes; the other rules are described in `analysis.numerals`.

    Examples
    --------
    >>> code_numbers(["So she pays $1,250.50 in all.", "#### 18", "between 5 and 9"])
        value         rule
    0  1250.5  last_number
    1    18.0       hashes
    2     NaN      several
    """
    array, index = _as_arrow(texts)
    values, rules = numerals.numbers(array)
    return _frame(index, value=values, rule=rules)


def is_revision(before, after):
    """Whether a probe's reply revises the answer given before it.

    Parameters
    ----------
    before, after : str, sequence or Series of str
        Labels, position by position, or one label each; missing or blank where none could be coded.

    Returns
    -------
    Series or ndarray of bool, or bool
        True where both are present and differ: a missing reply counts as no revision. A Series if `before`
        is one; a bool if both are single labels.

    Raises
    ------
    ValueError
        If the two differ in length.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. 3 (probe revision).

    Examples
    --------
    >>> is_revision(["A", "A", "A", None], ["B", "A", None, "C"])
    array([ True, False, False, False])
    >>> is_revision("A", "B"), is_revision("A", "")
    (True, False)
    """
    left, right = (pd.Series(np.atleast_1d(np.asarray(given, dtype=object)), dtype="str")
                   for given in (before, after))
    if len(left) != len(right):
        raise ValueError(f"before and after: expected the same length, got {len(left)} and {len(right)}")
    given = (left.fillna("").str.strip() != "") & (right.fillna("").str.strip() != "")
    result = np.asarray(given & (left != right), dtype=bool)
    if pd.api.types.is_scalar(before) and pd.api.types.is_scalar(after):
        return bool(result[0])
    return pd.Series(result, index=before.index) if isinstance(before, pd.Series) else result


# ---------------------------------------------------------------- input and output


def _as_arrow(texts):
    """Texts as one large_string array, and the index of the result."""
    if isinstance(texts, (str, bytes)):
        raise TypeError("texts is a single string: expected a sequence of strings")
    index = texts.index if isinstance(texts, pd.Series) else None
    if isinstance(texts, (pa.Array, pa.ChunkedArray)):
        array = texts
    else:
        values = texts.array if isinstance(texts, pd.Series) and texts.dtype == "str" else list(texts)
        try:
            array = pa.array(values, pa.large_string(), from_pandas=True)
        except UnicodeEncodeError:
            # A lone surrogate has no UTF-8 form; the replacement character is neither word nor space either.
            values = [re.sub("[\ud800-\udfff]", "\ufffd", v) if isinstance(v, str) else v for v in values]
            array = pa.array(values, pa.large_string(), from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise TypeError(f"texts: expected strings or missing values ({error})") from None
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    textual = (pa.types.is_null, pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    if not any(is_type(array.type) for is_type in textual):
        raise TypeError(f"texts: expected strings or missing values, got {array.type}")
    return array.cast(pa.large_string()), index


def _label_masks(labels, n):
    """One bit mask of valid letters per text."""

    def mask(text):
        if not isinstance(text, str) or not text or not (text.isascii() and text.isalpha()):
            raise ValueError(f"labels={text!r}: expected the letters of the options, such as 'ABCD'")
        return sum(1 << _ALPHABET.index(letter) for letter in set(text.upper()))

    single = isinstance(labels, (list, tuple, set, frozenset)) and len(labels) > 0
    if single and all(isinstance(label, str) and len(label) == 1 for label in labels):
        # Never one per text, even if there are as many: an item with a single option is no item.
        labels = "".join(sorted(labels))
    if isinstance(labels, str):
        return np.full(n, mask(labels), dtype=np.int64)
    labels = list(labels)
    if len(labels) != n:
        raise ValueError(f"labels: expected one string per text ({n}), got {len(labels)}")
    known = {text: mask(text) for text in set(labels)}
    return np.array([known[text] for text in labels], dtype=np.int64)


def _letters(codes):
    """Letter codes (-1 = none) as an Arrow string array."""
    return pa.array(list(_ALPHABET)).take(pa.array(codes, mask=codes < 0))


def _frame(index, **columns):
    as_str = pd.StringDtype("pyarrow", na_value=np.nan)
    made = {name: column if isinstance(column, np.ndarray) else
            pd.array(column.cast(pa.large_string()), dtype=as_str) for name, column in columns.items()}
    return pd.DataFrame(made, index=index)


def _chunks(array):
    """(low, high) row ranges of about `_CHUNK` bytes of text."""
    if not len(array):
        return
    offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset:array.offset + len(array) + 1]
    low = 0
    while low < len(array):
        high = int(np.searchsorted(offsets, offsets[low] + _CHUNK, side="right")) - 1
        high = min(max(high, low + 1), len(array))
        yield low, high
        low = high


# ---------------------------------------------------------------- the paper's chain on bytes


def _table(*members):
    table = np.zeros(256, dtype=bool)
    table[[ord(c) for c in "".join(members)]] = True
    return table


_BLANK = _table("\t\v\f\r \x1c\x1d\x1e\x1f")  # Python's white space in ASCII, without the line end
_SPACE = _BLANK | _table("\n")
_WORD = _table("_0123456789", _ALPHABET, _ALPHABET.lower())
_OPEN, _CLOSE = _table("(*"), _table(").*")


@cache
def _stand_ins():
    """ASCII stand-in for every code point: ``_`` for word characters, blank for space, ``-`` for the rest."""
    everything = np.arange(0x110000, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    table = np.full(0x110000, ord("-"), dtype=np.uint8)
    for pattern, stand_in in ((r"\w+", "_"), (r"\s+", " ")):
        for match in re.finditer(pattern, everything):
            table[match.start():match.end()] = ord(stand_in)
    return table


def _replace_non_ascii(data):
    """Overwrite non-ASCII characters by stand-ins, in place; positions of the letters that fold into ASCII."""
    high = np.flatnonzero(data >= 0x80)
    if not len(high):
        return high
    lead = high[data[high] >= 0xC0]
    first = data[lead].astype(np.int64)
    width = 2 + (first >= 0xE0) + (first >= 0xF0)
    point = first & (0x7F >> width)
    for k in (1, 2, 3):
        longer = width > k
        point[longer] = point[longer] << 6 | data[lead[longer] + k] & 0x3F
    data[high] = np.repeat(_stand_ins()[point], width)
    return lead[np.isin(point, _FOLDING)]


def _buffer(array):
    """Bytes of all texts, a NUL after each; with starts, ends, and the texts that need the plain chain."""
    empty, nul = pa.scalar("", pa.large_string()), pa.scalar("\0", pa.large_string())
    joined = pc.binary_join_element_wise(array, empty, nul, null_handling="replace", null_replacement="")
    offsets = np.frombuffer(joined.buffers()[1], np.int64)[joined.offset:joined.offset + len(array) + 1]
    start, end = offsets[:-1], offsets[1:] - 1
    data = np.zeros(offsets[-1] + 16, dtype=np.uint8)
    data[:offsets[-1]] = np.frombuffer(joined.buffers()[2], np.uint8)[:offsets[-1]]
    folding, low = [], 0
    while low < offsets[-1]:  # in blocks, so that one huge text costs no more memory than many small ones
        high = min(low + _CHUNK, int(offsets[-1]))
        while data[high] & 0xC0 == 0x80:  # not inside a character
            high += 1
        folding.append(low + _replace_non_ascii(data[low:high]))
        low = high
    plain = np.unique(np.searchsorted(start, np.concatenate(folding or [start[:0]]), side="right") - 1)
    return data, start, end, plain


def _skip(data, at, table):
    """First position at or after each `at` whose byte is not in `table`."""
    for _ in range(4):
        inside = table[data[at]]
        if not inside.any():
            return at
        at = at + inside
    # Long runs one by one: the runs asked for are disjoint, so this stays linear.
    rest = re.compile(b"[" + re.escape(bytes(np.flatnonzero(table).astype(np.uint8))) + b"]*")
    for i in np.flatnonzero(table[data[at]]):
        at[i] = rest.match(data, at[i]).end()
    return at


def _spelled(lower, at, word):
    """Those of the positions `at` where `word` starts."""
    for k, letter in enumerate(word):
        at = at[lower[at + k] == ord(letter)]
    return at


def _chain(array, masks, strict):
    """Letter code (-1 = none) and rule number of each text."""
    data, start, end, plain = _buffer(array)
    lower = data | 0x20  # lower case for letters; nothing else becomes a letter
    codes = np.full(len(array), -1, dtype=np.int8)
    rules = np.full(len(array), _NONE, dtype=np.int8)

    def owner(at):
        return np.searchsorted(start, at, side="right") - 1

    def valid(at):
        return (masks[owner(at)] >> (lower[at].astype(np.int64) - 97)) & 1 == 1

    def settle(rule, at, last=False):
        """Give texts without a label the letter at their first (last) position in the sorted `at`."""
        if not len(at):
            return
        if last:
            pick = np.searchsorted(at, end) - 1
            found = (pick >= 0) & (at[pick] >= start)
        else:
            pick = np.minimum(np.searchsorted(at, start), len(at) - 1)
            found = (at[pick] >= start) & (at[pick] < end)
        letter = lower[at[pick]].astype(np.int64) - 97
        found &= (codes < 0) & ((masks >> (letter & 31)) & 1 == 1)
        codes[found] = letter[found]
        rules[found] = rule

    def option(at):
        """Those of the positions `at` that hold a single letter A-J, either case, that ends a word."""
        return at[(lower[at] - ord("a") < 10) & ~_WORD[data[at + 1]]]

    # "answer", found by its rarest letter, then what follows it
    answer = _spelled(lower, np.flatnonzero(lower == ord("w")) - 3, "answer")
    after = _skip(data, answer + 6, _SPACE)
    colon = data[after] == ord(":")
    letter = _skip(data, after[colon] + 1, _SPACE)
    before = answer[colon] - 1
    gap = _skip_back(data, before)
    final = (gap < before) & _ends_with(lower, gap, "final")
    tags, plain_tags = option(letter[final]), option(letter)
    settle(0, tags[valid(tags)] if strict else tags, last=strict)

    is_ = after[after > answer + 6]
    letter = _skip(data, _spelled(lower, is_, "is") + 2, _SPACE)
    letter = np.where(data[letter] == ord(":"), letter + 1, letter)
    settle(1, option(_skip(data, letter, _SPACE)))

    # choose, select, pick: by "c" and the letter after it
    c = np.flatnonzero(lower == ord("c"))
    follows = lower[c + 1]
    verb = np.concatenate([
        _spelled(lower, c[follows == ord("h")], "choose") + 6,
        _spelled(lower, c[follows == ord("t")] - 4, "select") + 6,
        _spelled(lower, c[follows == ord("k")] - 2, "pick") + 4])
    verb.sort()
    letter = _skip(data, verb, _SPACE)
    letter = letter[letter > verb]
    word = letter + 6 * _mask(letter, _spelled(lower, letter, "option"))
    spaced = _skip(data, word, _SPACE)
    settle(2, option(np.where(spaced > word, spaced, letter)))

    settle(3, plain_tags)

    # lines of nothing but a letter
    line_end = data == ord("\n")
    line_end[end] = True
    line_end = np.flatnonzero(line_end)
    line = _skip(data, np.concatenate([[0], line_end[:-1] + 1]), _BLANK)
    close = line_end
    keep = (_OPEN | _WORD)[data[line]]
    line, close = line[keep], close[keep]
    letter = _skip(data, line, _OPEN)
    if strict:
        letter = _skip(data, letter, _BLANK)
    keep = (lower[letter] - ord("a") < 26) & ~_WORD[data[letter + 1]]
    line, letter, close = line[keep], letter[keep], close[keep]
    rest = _skip(data, letter + 1, _BLANK) if strict else letter + 1
    bare = (_skip(data, letter + 1, _BLANK) == close) & (line == letter)  # labels beyond J: only bare
    dressed = (_skip(data, _skip(data, rest, _CLOSE), _BLANK) == close) & (lower[letter] - ord("a") < 10)
    letter = letter[bare | dressed]
    settle(4, letter[valid(letter)], last=True)

    if not strict:
        capital = np.flatnonzero(data - ord("A") < 10)
        capital = capital[~_WORD[data[capital - 1]] & ~_WORD[data[capital + 1]]]
        settle(5, capital[valid(capital)], last=True)

    for i in plain:
        codes[i], rules[i] = _plain_chain(array[int(i)].as_py(), masks[i], strict)
    open_ = np.flatnonzero(codes < 0)
    stripped = pc.utf8_length(pc.fill_null(pc.utf8_trim_whitespace(array.take(pa.array(open_))), ""))
    rules[open_[np.asarray(stripped) == 0]] = _EMPTY
    return codes, rules


def _skip_back(data, at):
    """Last position at or before each `at` that holds no white space."""
    for _ in range(4):
        inside = _SPACE[data[at]]
        if not inside.any():
            return at
        at = at - inside
    for i in np.flatnonzero(_SPACE[data[at]]):
        while _SPACE[data[at[i]]]:
            at[i] -= 1
    return at


def _ends_with(lower, at, word):
    found = np.ones(len(at), dtype=bool)
    for k, letter in enumerate(reversed(word)):
        found &= lower[at - k] == ord(letter)
    return found


def _mask(at, subset):
    """Which of the sorted positions `at` are in the sorted `subset`."""
    return np.isin(at, subset, assume_unique=True)


_COMPILED = [re.compile(pattern, re.IGNORECASE if name != "last_letter" else 0) for name, pattern in CHAIN]
_COMPILED_STRICT_LINE = re.compile(STRICT_LINE, re.IGNORECASE)


def _plain_chain(text, mask, strict):
    """The chain as it reads, for the rare texts whose letters fold outside ASCII."""
    def code(letter):
        place = _ALPHABET.find(letter.upper()) if len(letter.upper()) == 1 else -1
        return place if place >= 0 and mask >> place & 1 else -1

    for rule, pattern in enumerate(_COMPILED[:4]):
        found = [code(m) for m in pattern.findall(text)]
        found = [c for c in found if c >= 0][::-1] if strict and rule == 0 else found
        if found and found[0] >= 0:
            return found[0], rule
    line_pattern = _COMPILED_STRICT_LINE if strict else _COMPILED[4]
    for line in reversed(text.strip().split("\n")):
        line = line.strip()
        match = line_pattern.match(line)
        letter = line if len(line) == 1 else match[1] if match else ""
        if letter and code(letter) >= 0:
            return code(letter), 4
    found = [] if strict else [code(m) for m in _COMPILED[5].findall(text)]
    found = [c for c in found if c >= 0]
    return (found[-1], 5) if found else (-1, _NONE)
