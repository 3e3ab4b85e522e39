"""Reading log files record by record, whatever shape they are in.

JSON-lines, a JSON array, a chat document, CSV and Parquet, each also gzipped, come out as one frame with a
line a record. The container is recognised by its content, never by its name. Nothing is guessed about cells:
words such as "NA" or "null" stay words, ids stay exact, and what cannot be read is reported as damage with
its file and line.

Limits keep memory bounded whatever a file holds. A line may be `MAX_LINE` bytes long: the longest honest
record is a few megabytes of text, and a line of a hundred is a broken writer, so it is refused while it is
being read. A JSON document (an array or a chat file, which has no lines to go by) may be `MAX_DOCUMENT`
bytes, a CSV table or a gzipped Parquet file, unzipped, `MAX_TABLE` bytes. After `MAX_DAMAGE` damaged lines
the rest of a file is not worth reading.
"""

import csv
import gzip
import io
import json
import re
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from analysis.errors import DataError

BLOCK = 4 * 2**20
MAX_LINE = 64 * 2**20
MAX_DOCUMENT = 256 * 2**20
MAX_TABLE = 2 * 2**30
MAX_DAMAGE = 10_000
BATCH = 50_000  # records turned into columns at a time: dictionaries take ten times the memory of columns

_BOM = b"\xef\xbb\xbf"
# question text -> [[[message, ...], ...], gold]: three brackets deep, where a debate record has two at most
_CHAT = re.compile(rb'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\[\s*\[\s*\[', re.DOTALL)


def container(path):
    """Tell what kind of file this is: ``jsonl``, ``array``, ``chat``, ``csv`` or ``parquet``.

    Parameters
    ----------
    path : str or Path
        A regular file; gzip is looked through.

    Returns
    -------
    str

    Raises
    ------
    FileNotFoundError
        There is no such file.
    DataError
        The path is no regular file, or the file is empty or not text.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "answers.txt")
    >>> _ = path.write_text('question,agent,answer')
    >>> container(path)
    'csv'
    """
    path = check_path(path)
    head = next(_blocks(path, []), b"").removeprefix(_BOM)
    if head.startswith(b"PAR1"):
        return "parquet"
    if b"\0" in head[:4096]:
        raise DataError(f"{path}: not UTF-8 text or Parquet (NUL bytes at its start)")
    start = head.lstrip()
    if not start:
        if len(head) == BLOCK:
            raise DataError(f"{path}: starts with {BLOCK >> 20} MiB of blanks; expected records")
        raise DataError(f"{path}: the file is empty")
    if start.startswith(b"["):
        return "array"
    if start.startswith(b"{"):
        return "chat" if _CHAT.match(start) else "jsonl"
    return "csv"


def check_path(path):
    """Return `path` as a ``Path`` if it is a regular file, else raise an error that says what it is.

    Examples
    --------
    >>> check_path("no/such/file.csv")
    Traceback (most recent call last):
    FileNotFoundError: no/such/file.csv: there is no such file
    """
    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path}: is a directory; expected one file")
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file")
    if not path.is_file():  # a pipe or device may never end
        raise DataError(f"{path}: is not a regular file")
    return path


def records(path, *, kind=None):
    """Read the records of a file into a frame.

    Parameters
    ----------
    path : str or Path
        JSON-lines, JSON array, chat document, CSV (comma, semicolon or tab) or Parquet; gzip is looked
        through.
    kind : str, optional
        One of the names `container` gives; found out from the content if left out.

    Returns
    -------
    frame : DataFrame
        One line a record in file order; the index ``line`` holds the 1-based line in the file (of a document
        or Parquet file: the record's number). A column is ``str`` where all its cells are strings or missing,
        ``int64`` where all are integers, otherwise object. CSV cells are strings as they stand.
    damage : list of str
        What could not be read, each with file and line, in file order; empty for an intact file.

    Raises
    ------
    DataError
        The file is empty, holds a line beyond `MAX_LINE`, or cannot be read at all.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "log.jsonl")
    >>> _ = path.write_text('{"q": "007", "answer": "B"}\\n{"q": "007", "ans')
    >>> frame, damage = records(path)
    >>> frame["q"].tolist(), len(damage)
    (['007'], 1)
    """
    path = check_path(path)
    kind = kind or container(path)
    damage = []
    if kind == "parquet":
        frame = _parquet(path, damage)
    elif kind == "csv":
        frame = _csv(path, damage)
    elif kind in ("array", "chat"):
        frame = _document(path, kind, damage)
    else:
        frame = _jsonl(path, damage)
    return frame, damage


def exact_ids(values):
    """Turn ids of any kind into strings that are equal exactly when the ids are.

    Parameters
    ----------
    values : Series
        Strings, integers, or a mixture. An integer and the string of its digits are the same id; "007" and
        "7" are not.

    Returns
    -------
    Series of str
        Missing where the id is missing.

    Examples
    --------
    >>> exact_ids(pd.Series([5, "5", "007", 2**60 + 1, None], dtype=object)).tolist()
    ['5', '5', '007', '1152921504606846977', nan]
    """
    if isinstance(values.dtype, pd.StringDtype):
        return values if values.dtype.na_value is np.nan else values.astype("str")
    if pd.api.types.is_integer_dtype(values.dtype) and not values.hasnans:
        return values.astype("str")
    if isinstance(values.dtype, pd.CategoricalDtype):
        names = exact_ids(pd.Series(values.cat.categories))
        cells = names.array.take(values.cat.codes.to_numpy(), allow_fill=True)
        return pd.Series(cells, values.index, name=values.name)
    return pd.Series([exact_id(v) for v in values], values.index, dtype="str", name=values.name)


def latest(frame, key):
    """Keep the last record of each key, at the place of the first: a resumed run writes again what it had.

    Parameters
    ----------
    frame : DataFrame
    key : list of str
        Columns that name a record; compared as exact ids.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> latest(pd.DataFrame({"q": ["1", "2", "1"], "answer": ["A", "B", "C"]}), ["q"])["answer"].tolist()
    ['C', 'B']
    """
    ids = pd.DataFrame({name: exact_ids(frame[name]) for name in key})
    groups = ids.groupby(key, sort=False, dropna=False).ngroup().to_numpy()
    last = np.zeros(groups.max() + 1 if len(groups) else 0, dtype=np.int64)
    last[groups] = np.arange(len(groups))  # numpy keeps the last of several assignments to one place
    return frame.iloc[last]


def exact_id(value):
    """Turn one id into its string; None where it is missing.

    Examples
    --------
    >>> exact_id(5), exact_id(5.0), exact_id("005"), exact_id(float("nan"))
    ('5', '5', '005', None)
    """
    if isinstance(value, str):
        return value
    if value is None or value is pd.NA or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, (float, np.floating)) and float(value).is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def _blocks(path, damage):
    """Yield the file's bytes, unzipped, in blocks; what a cut or faulty gz stream still gives is given."""
    with open(path, "rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        source = gzip.GzipFile(fileobj=raw) if zipped else raw
        read = source.read1 if zipped else source.read  # read1 hands out what comes before a fault
        total = 0
        while True:
            try:
                block = read(BLOCK)
            except (EOFError, OSError, zlib.error) as error:
                if not zipped:
                    raise
                damage.append(f"{path}: gz stream is cut or faulty after {total} bytes of content ({error}); "
                              "expected a complete gz file")
                return
            if not block:
                return
            total += len(block)
            yield block


def _chunks(path, damage):
    """Yield (number of the first line, bytes of whole lines); refuse an endless line while it grows."""
    rest, line = b"", 1
    for block in _blocks(path, damage):
        cut = block.rfind(b"\n") + 1
        if not cut:
            rest += block
            _check_length(path, line, len(rest))
            continue
        chunk, rest = rest + block[:cut], block[cut:]
        if len(chunk) > MAX_LINE:
            _check_length(path, line, chunk.find(b"\n"))
        yield line, chunk
        line += chunk.count(b"\n")
    if rest:
        yield line, rest


def _check_length(path, line, length):
    if length > MAX_LINE:
        raise DataError(f"{path}, line {line}: longer than {MAX_LINE >> 20} MiB; expected one record a line")


def _jsonl(path, damage):
    frames, found, lines = [], [], []

    def flush():
        if found:
            frames.append(frame_of(found, lines))
            found.clear()
            lines.clear()

    faults = []
    for first, chunk in _chunks(path, faults):
        if len(damage) > MAX_DAMAGE:
            raise DataError(f"{damage[0]} (and {len(damage) - 1} more up to line {first - 1}); "
                            f"expected at most {MAX_DAMAGE} damaged lines")
        if chunk.isspace():
            continue
        texts = _text_lines(path, first, chunk, damage)
        # A lone surrogate may come as an escape only, and no frame or file can hold it.
        scrub = b"\\ud" in chunk or b"\\uD" in chunk
        for number, text in enumerate(texts, first):
            text = text.strip().removeprefix("\ufeff").lstrip()
            while text:
                try:
                    record, end = _decode(text)
                except RecursionError:
                    damage.append(f"{path}, line {number}: nested too deeply")
                    break
                except _Twice as error:
                    damage.append(f"{path}, line {number}: {error}; expected distinct keys")
                    break
                except ValueError as error:
                    damage.append(f"{path}, line {number}: no complete JSON object ({error}): {_short(text)}")
                    break
                if not isinstance(record, dict):
                    damage.append(f"{path}, line {number}: {_short(text)} is not a JSON object")
                    break
                if not record:
                    damage.append(f"{path}, line {number}: a record without fields; expected at least one")
                    break
                found.append(_scrub(record) if scrub else record)
                lines.append(number)
                text = text[end:].lstrip() if end < len(text) else ""
        if len(found) >= BATCH:
            flush()
    flush()
    damage[:0] = faults  # the cause goes before the torn line that it leaves
    return _joined(frames)


def _text_lines(path, first, chunk, damage):
    try:
        return chunk.decode().split("\n")  # not splitlines: U+2028, U+0085 and others are content
    except UnicodeDecodeError:
        texts = []
        for number, line in enumerate(chunk.split(b"\n"), first):
            try:
                texts.append(line.decode())
            except UnicodeDecodeError as error:
                damage.append(f"{path}, line {number}: not UTF-8 ({error.reason} at byte {error.start + 1})")
                texts.append("")
        return texts


def _document(path, kind, damage):
    data = _whole(path, _blocks(path, damage), "a JSON document", MAX_DOCUMENT)
    if damage:  # half a document is no document: there is no intact part to keep
        raise DataError(damage[0])
    data = data.removeprefix(_BOM)
    try:
        found = json.loads(data.decode(), object_pairs_hook=_distinct)
    except RecursionError:
        raise DataError(f"{path}: nested too deeply") from None
    except ValueError as error:
        raise DataError(f"{path}: not a complete JSON document: {error}") from None
    if b"\\ud" in data.lower():
        found = _scrub(found)
    if kind == "array":
        for number, record in enumerate(found if isinstance(found, list) else [], 1):
            if not isinstance(record, dict):
                raise DataError(f"{path}, record {number}: {_short(str(record))} is not a JSON object")
    elif not isinstance(found, dict):
        raise DataError(f"{path}: expected one JSON object, question text -> [agent contexts, gold]")
    else:
        for number, (text, value) in enumerate(found.items(), 1):
            if not (isinstance(value, list) and len(value) == 2 and isinstance(value[0], list)):
                raise DataError(f"{path}, record {number} ({_short(text)}): expected [agent contexts, gold]")
        found = [{"question_text": text, "contexts": contexts, "gold": gold}
                 for text, (contexts, gold) in found.items()]
    return _joined([frame_of(found, range(1, len(found) + 1))] if found else [])


def _whole(path, blocks, what, limit):
    """Join blocks, unless they grow beyond the limit."""
    parts, total = [], 0
    for block in blocks:
        total += len(block)
        if total > limit:
            raise DataError(f"{path}: {what} of more than {limit >> 20} MiB; "
                            "expected a smaller one, or JSON-lines, which have no limit")
        parts.append(block)
    return b"".join(parts)


class _Twice(ValueError):
    """An object that names a key twice."""


def _distinct(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Twice(f"key {_short(twice)} occurs twice in one object")
    return found


_decode = json.JSONDecoder(object_pairs_hook=_distinct).raw_decode


def _parquet(path, damage):
    with open(path, "rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
    source = path
    if zipped:
        source = io.BytesIO(_whole(path, _blocks(path, damage), "a gzipped Parquet file", MAX_TABLE))
    if damage:
        raise DataError(damage[0])
    try:
        table = pyarrow.parquet.ParquetFile(source).read()
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: not a readable Parquet file: {error}") from None
    _check_names(path, table.column_names)
    # The pandas metadata would bring back an index or types of somebody else's frame.
    frame = table.to_pandas(ignore_metadata=True, integer_object_nulls=True,
                            split_blocks=True, self_destruct=True)
    frame.index = pd.RangeIndex(1, len(frame) + 1, name="line")
    return frame


def _csv(path, damage):
    data = _whole(path, (chunk for _, chunk in _chunks(path, damage)), "a CSV table", MAX_TABLE)
    if damage:  # the line at the cut may look whole
        data = data[: data.rfind(b"\n") + 1]
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}, line {line}: not UTF-8 ({error.reason}); expected UTF-8 text") from None
    data = data.removeprefix(_BOM)
    # Line ends only: before a tab the first column may have an empty name.
    begun = len(data) - len(data.lstrip(b"\r\n"))
    skipped, data = data.count(b"\n", 0, begun), data[begun:]
    header = data[: data.find(b"\n")] if b"\n" in data else data
    separator = max(",;\t", key=lambda mark: header.count(mark.encode()))
    try:
        names = [name.strip() for name in next(csv.reader([header.decode()], delimiter=separator))]
    except csv.Error as error:  # a bare carriage return ends no line here
        raise DataError(f"{path}, line {skipped + 1}: no readable header ({error}); expected column names in "
                        "a line that ends in LF or CR LF") from None
    _check_names(path, names)
    if data.count(b'"') % 2:
        data = _without_open_quote(path, data, separator, skipped, damage)
    frame, lines = _parsed_csv(path, data, separator, names, skipped, damage)
    following = pd.RangeIndex(2, len(frame) + 2) + skipped
    frame.index = following if lines is None else pd.Index(lines, dtype="int64")
    return frame.rename_axis(index="line")


def _parsed_csv(path, data, separator, names, skipped, damage):
    """Return the frame and the line of each record (None: they follow each other from line 2 on)."""
    short = []

    def skip(row):
        short.append(row.actual_columns)
        return "skip"

    reading = pyarrow.csv.ReadOptions(column_names=names, skip_rows=1, block_size=MAX_LINE)
    parsing = pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=True, invalid_row_handler=skip)
    cells = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.large_string()),
                                       strings_can_be_null=False)
    try:
        table = pyarrow.csv.read_csv(io.BytesIO(data), reading, parsing, cells)
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: not readable as CSV: {error}") from None
    lines = None
    # Blank lines, cells of several lines, or bad records: find out where each record stands.
    if short or data.rstrip(b"\r\n").count(b"\n") != len(table):
        lines = []
        for line, n_cells in _csv_lines(data, separator, skipped):
            if n_cells == len(names):
                lines.append(line)
            elif short:
                damage.append(f"{path}, line {line}: {n_cells} fields; expected {len(names)}, one per column")
        lines = lines[1:] if len(lines) == len(table) + 1 else None
    return table.to_pandas(), lines


def _csv_lines(data, separator, skipped):
    """Yield (first line, number of cells) of each record, the header first; slow, so for odd files only."""
    csv.field_size_limit(max(csv.field_size_limit(), len(data)))
    reader, line = csv.reader(io.StringIO(data.decode(), newline=""), delimiter=separator), 1
    for row in reader:
        if row:
            yield line + skipped, len(row)
        line = reader.line_num + 1


def _without_open_quote(path, data, separator, skipped, damage):
    """Return `data` up to the record whose quoted cell never ends, if there is one."""
    csv.field_size_limit(max(csv.field_size_limit(), len(data)))
    reader, line = csv.reader(io.StringIO(data.decode(), newline=""), delimiter=separator, strict=True), 1
    while True:
        try:
            next(reader)
        except StopIteration:
            return data
        except csv.Error as error:
            if "unexpected end of data" not in str(error):
                raise DataError(f"{path}, line {line + skipped}: not readable as CSV: {error}") from None
            damage.append(f"{path}, line {line + skipped}: a quoted cell begun in this record never ends")
            return b"".join(data.splitlines(keepends=True)[: line - 1])
        line = reader.line_num + 1


def _check_names(path, names):
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{path}: two columns are named {twice!r}; expected distinct column names")


def frame_of(found, lines):
    """Turn records into a frame with the line numbers as its index, without changing a cell.

    Examples
    --------
    >>> frame_of([{"q": 5, "answer": "A"}, {"q": "5"}], [1, 2])["q"].tolist()
    [5, '5']
    """
    names = dict.fromkeys(name for record in found for name in record)
    columns = {name: _column([record.get(name) for record in found]) for name in names}
    return pd.DataFrame(columns, index=pd.Index(lines, dtype="int64", name="line"))


def _column(values):
    kinds = set(map(type, values))
    if kinds == {int}:
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError:
            pass
    elif kinds <= {str, type(None)}:
        return pd.array(pa.array(values, pa.large_string()).to_pandas(), dtype="str")
    # np.array would make a matrix of equally long lists.
    return np.fromiter(values, dtype=object, count=len(values))


def _joined(frames):
    if not frames:
        return pd.DataFrame(index=pd.Index([], dtype="int64", name="line"))
    if len(frames) == 1:
        return frames[0]
    # Integers beside missing cells must not pass through floating point, where big ids lose their last
    # digits.
    for name in dict.fromkeys(name for frame in frames for name in frame):
        if len({str(frame[name].dtype) if name in frame else "" for frame in frames}) > 1:
            for frame in frames:
                there = frame[name] if name in frame else pd.Series(None, frame.index, dtype=object)
                frame[name] = there.astype(object)
    return pd.concat(frames)


def _scrub(value):
    """Replace lone surrogates by U+FFFD everywhere in a JSON value."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_scrub(item) for item in value]
    if isinstance(value, dict):
        return {_scrub(name): _scrub(item) for name, item in value.items()}
    return value


def shown(value, width=40):
    """Show any value on one line, cut to a width.

    Examples
    --------
    >>> shown("a\\nb"), shown("x" * 50, 12)
    ("'a\\\\nb'", "'xxxxxxxx...")
    """
    text = repr(value)
    return text if len(text) <= width else text[: width - 3] + "..."


def listed(names):
    """Show the first dozen of the column names of a file, quoted and cut where they are no plain words.

    Examples
    --------
    >>> listed(["question", "two\\nlines"])
    "question, 'two\\\\nlines'"
    """
    names = list(names)
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    plain = re.compile(r"\w[\w .:/-]{0,39}")
    return ", ".join(name if plain.fullmatch(name) else shown(name) for name in names[:12]) + more


def _short(text, width=60):
    return repr(text if len(text) <= width else text[: width - 3] + "...")
