"""Rows added beside the paper's: check debates of a new model, keep them under data/rows/<id>/, load them again.

A row folder holds row.json (what it is and where it came from), answers.csv (labels only, no model text) or debates.csv (a feature
matrix), and probes.csv if there were probes. Nothing is half-written: a row is made beside its place and renamed into it.
"""

import hashlib
import os
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import Literal

import pandas as pd
import pydantic

from analysis import data, ledger, probes as probe_records, rows_logs, traces
from analysis.errors import DataError

DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{k}" for port in ("com", "lpt") for k in range(1, 10))}  # names that Windows keeps
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# Columns that are kept: what is counted, and nothing that could hold a text.
OPEN_ANSWERS = re.compile(r"row|question|replicate|round|agent|answer|gold|rule")
OPEN_MATRIX = re.compile(r"row|question|replicate|gold|n_agents|unanimous_0|cell|onset|(correct|agree|changed|n_flipped)_\d+")
OPEN_PROBES = re.compile(
    r"row|question|replicate|condition|agent|gold|initial_answer|initial_correct|probe|strength|strength_value|social|alt_answer|post_answer|parsed|revised"
)
# A question's id or a rule's name; anything else may be a text.
NAME = re.compile(r"[!-~]{1,120}")
STALE = 3600  # seconds after which a folder left by a killed run is cleared


class Source(pydantic.BaseModel):
    """One file a row was made from."""

    name: str
    sha256: str
    bytes: int


class Check(pydantic.BaseModel):
    """One check of quality control: calls that fail it, of all that were planned, and the largest share allowed."""

    check: str
    k: int
    n: int
    limit: float


class Usage(pydantic.BaseModel):
    """What one step of a run took; tokens and cost over the calls that tell them."""

    step: str
    calls: int
    told: int
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_reasoning: int | None = None
    cost: float | None = None


class Row(pydantic.BaseModel):
    """What row.json holds."""

    model_config = pydantic.ConfigDict(extra="allow")

    schema_version: int = 1
    id: str
    model: str
    family: str
    synthetic: bool = False
    policy: str
    labels: str
    layout: str
    n_debates: int
    n_agents: int | None = None
    n_rounds: int
    n_answers: int | None = None
    n_missing: int | None = None
    alpha_tot: float | None = None
    n_probes: int | None = None
    n_flips: int | None = None
    arm: str | None = None
    quality_control: Literal["passes", "fails"] | None = None
    quality: list[Check] | None = None
    usage: list[Usage] | None = None
    sources: list[Source]


def folder():
    """Folder of the added rows.

    Examples
    --------
    >>> folder().name
    'rows'
    """
    return data.root() / "rows"


def ids():
    """Ids of the added rows, sorted.

    Examples
    --------
    >>> isinstance(ids(), list)
    True
    """
    return sorted(path.parent.name for path in folder().glob("*/row.json") if not path.parent.name.startswith("."))


def check(paths, *, id, model, family, policy="reference", labels="ABCDEFGHIJ", probes=None, synthetic=False, arm=None):
    """Read debates of one model and say what would be stored, storing nothing.

    Parameters
    ----------
    paths : path or list of paths
        Files in any layout that `analysis.traces.read` knows, all of one row; logs of its debates and probes, or folders of them.
    id : str
        Name of the row: letters, digits, dot, dash, underscore; not taken.
    model, family : str
        As shown to readers; rows of one family are averaged in the family analyses.
    policy : str
        Answer coder for texts without a stored answer; a log's answers are those of the coder that its run had.
    labels : str
        Valid labels.
    probes : path, optional
        Probe records of the same model, or the log or folder of its probes.
    synthetic : bool
        Whether the row is made up.
    arm : str, optional
        Arm of the debates to read from logs; peer, else the only one, unless given.

    Returns
    -------
    (Row, DataFrame, DataFrame or None)
        The row's description, its answers (or debates, from a feature matrix), its probes.

    Raises
    ------
    DataError
        The files cannot be used, or the id is not allowed or taken; the message says where and what was expected.

    Examples
    --------
    >>> made = data.root() / "examples" / "synthetic_debates.jsonl"
    >>> row, answers, _ = check(made, id="try-it", model="None", family="None")
    >>> row.n_agents, row.layout
    (3, 'layout_b')
    """
    paths = [Path(paths)] if isinstance(paths, (str, Path)) else [Path(path) for path in paths]
    if not paths:
        raise DataError("no files; expected at least one file of debates")
    _check_names(id, model, family, labels)
    plain, logged, probed = rows_logs.split(paths)
    plain_probes, misplaced, more = rows_logs.split([Path(probes)] if probes else [])
    if misplaced:
        raise DataError(f"{misplaced[0].name}: a log of debates; expected probes")
    probed += more
    if not plain and not logged:
        raise DataError(f"{', '.join(path.name for path in paths)}: probes alone; expected debates of the row too")
    if plain and logged:
        raise DataError(f"{plain[0].name}, {logged[0].name}: a file and a log; expected the debates of a row in one kind of record")
    if plain_probes and probed:
        raise DataError(f"{plain_probes[0].name}, {probed[0].name}: probes twice; expected them once")
    if arm is not None and not logged:
        raise ValueError(f"arm={arm!r}: there is no log of debates; expected none, other files have no arms")
    frames, run = [_read(path, id, policy, labels) for path in plain], {"policy": policy}
    # What exported records tell of the row they were.
    quality = rows_logs.passed(frames)
    arms = {value for frame in frames for value in (frame["arm"].unique() if "arm" in frame else [None])}
    if len(arms) == 1 and isinstance(*arms, str):
        run["arm"] = arms.pop()
    synthetic = synthetic or any("synthetic" in frame and frame["synthetic"].eq(True).any() for frame in frames)
    if logged:
        frame, run = rows_logs.debates(logged, arm=arm)
        frames = [frame.assign(row=pd.Series(id, index=frame.index, dtype="str"))]
    names = ", ".join(path.name for path in (*plain, *logged))
    if len({("answer" in frame) for frame in frames}) > 1:
        raise DataError(f"{names}: answers and a feature matrix; expected one kind for one row")
    layouts = {frame.attrs["format"] for frame in frames}
    has_answers = "answer" in frames[0]
    if has_answers:
        frame = pd.concat(frames, ignore_index=True)
        frame.attrs["source"] = names
        frame = traces.validate(frame, labels=labels)
        if "rule" in frame:
            frame["rule"] = frame["rule"].where(frame["rule"].astype("str").str.fullmatch(NAME.pattern).fillna(False))
    else:
        frame = _matrix(frames, names, labels)
    frame = _open(frame, OPEN_ANSWERS if has_answers else OPEN_MATRIX)
    if has_answers and frame["answer"].isna().all():
        raise DataError(f"{names}, field 'answer': none of {len(frame)} could be read; expected labels, or texts that hold one")
    debates = ledger.debates(frame)
    n_agents = debates["n_agents"].max()
    probe_frame, told, spent = _probes(plain_probes, probed, id, labels)
    row = Row(
        id=id,
        model=model,
        family=family,
        synthetic=synthetic,
        labels=labels,
        layout=", ".join(sorted(layouts)),
        n_debates=len(debates),
        n_agents=None if pd.isna(n_agents) else int(n_agents),
        n_rounds=int(debates["endpoint"].max()),
        n_answers=len(frame) if has_answers else None,
        n_missing=int(frame["answer"].isna().sum()) if has_answers else None,
        sources=[_source(path) for path in (*plain, *logged, *plain_probes, *probed)],
        **told,
        **({"quality_control": quality} | run | {"usage": [*run.get("usage", []), *spent] or None}),
    )
    return row, frame, probe_frame


def _probes(plain, logged, id, labels):
    """Probe records, what the card tells of them, and what asking them took."""
    if not plain and not logged:
        return None, {}, []
    frame, spent = (probe_records.read(plain[0], row=id), []) if plain else rows_logs.probes(logged, id)
    frame, name = _open(frame, OPEN_PROBES), (plain or logged)[0].name
    _check_labels(frame, ("gold", "initial_answer", "alt_answer", "post_answer"), labels, name)
    found = probe_records.flip_rate(frame, by=None)
    if not found["n"].item():
        raise DataError(f"{name}, field 'condition': no probe of the default condition; expected at least one")
    told = {"n_flips": int(found["k"].item()), "n_probes": int(found["n"].item()), "alpha_tot": float(found["rate"].item())}
    return frame, told, spent


def _check_names(id, model, family, labels):
    if not ID.fullmatch(id):
        raise DataError(f"id {id!r}: expected 1 to 64 letters, digits, '.', '-' or '_', the first a letter or digit")
    cohort = data.table("model_rows")
    if id.lower() in {"paper", "pooled", *cohort["row"].str.lower()}:
        raise DataError(f"id {id!r}: is a name of the paper's or of its tables; expected one of your own")
    if id.endswith(".") or id.split(".")[0].lower() in DEVICES:
        raise DataError(f"id {id!r}: cannot be a folder everywhere; expected another name")
    # Not every file system tells capitals apart.
    taken = [path.name for path in folder().glob("*") if path.name.lower() == id.lower()]
    if taken:
        raise DataError(f"id {id!r}: already taken; expected a new one, or remove it first: row remove {taken[0]}")
    for field, value in [("model", model), ("family", family)]:
        if not value.strip() or value != value.strip() or not value.isprintable() or value[0] in "=+-@":
            raise DataError(f"{field} {value!r}: expected a printable name, without blanks at its ends, not beginning with = + - or @")
    # Another spelling would stand as a family of its own in the family analyses.
    meant = [name for name in cohort["family"].unique() if name.lower() == family.lower() and name != family]
    if meant:
        raise DataError(f"family {family!r}: expected the paper's spelling, {meant[0]!r}")
    if not (labels.isascii() and labels.isalnum() and len(set(labels)) == len(labels)):
        raise DataError(f"labels {labels!r}: expected distinct letters or digits, such as 'ABCD'")


def _read(path, id, policy, labels):
    frame = traces.read(path, policy=policy, labels=labels)
    if frame["row"].nunique() > 1:
        raise DataError(f"{path.name}, field 'row': {', '.join(sorted(frame['row'].unique()))}; expected one model-scaffold row a file")
    frame["row"] = pd.Series(id, index=frame.index, dtype="str")
    return frame


def _matrix(frames, names, labels):
    """One feature matrix from one or several, with all that the book's pages need."""
    frames = [_open(frame, OPEN_MATRIX) for frame in frames]
    rounds = {max(int(c.split("_")[1]) for c in frame if c.startswith("correct_")) for frame in frames}
    if len(rounds) > 1:
        raise DataError(f"{names}: {' and '.join(map(str, sorted(rounds)))} rounds; expected the same number in all debates of a row")
    needed = ["correct_1", "n_flipped_1", "unanimous_0", "agree_0"]
    needed += [f"{kind}_{k}" for k in range(1, rounds.pop() + 1) for kind in ("correct", "agree", "changed")]
    for frame in frames:
        lacking = [name for name in needed if name not in frame]
        if lacking:
            raise DataError(f"{names}: columns missing for {', '.join(lacking)}; expected all columns of the released feature matrix")
    frame = pd.concat(frames, ignore_index=True)
    again = frame.duplicated(["question", "replicate"])
    if again.any():
        raise DataError(f"{names}: question {frame.loc[again, 'question'].iat[0]!r} is in two files; expected it in one")
    _check_labels(frame, ("gold",), labels, names)
    return frame


def _check_labels(frame, fields, labels, source):
    """Refuse what is neither a label nor a number: it may be a text."""
    for field in fields:
        odd = [v for v in frame[field].dropna().unique() if v not in set(labels) and traces.canonical_number(v) is None]
        if odd:
            question = frame.loc[frame[field] == odd[0], "question"].iat[0]
            raise DataError(
                f"{source}: question {question[:60]!r}, field {field!r}: {odd[0][:60]!r}; expected one of {', '.join(labels)}, a number, or none"
            )


def _open(frame, columns):
    """Keep the columns that may be stored, and name questions by a digest where their id is a text."""
    frame = frame[[c for c in frame if columns.fullmatch(c)]].copy()
    names = {q: q if NAME.fullmatch(q) else "q" + hashlib.sha256(q.encode()).hexdigest()[:10] for q in frame["question"].unique()}
    frame["question"] = frame["question"].map(names).astype("str")
    if "agent" in frame:
        # An agent's name may be a sentence: what is no name becomes its number.
        called = sorted(frame["agent"].dropna().unique())
        frame["agent"] = frame["agent"].map({a: a if NAME.fullmatch(a) else f"agent-{i + 1}" for i, a in enumerate(called)}).astype("str")
    return frame


def _source(path):
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return Source(name=path.name, sha256=digest.hexdigest(), bytes=path.stat().st_size)


def add(paths, **options):
    """Check debates as `check` does and store them as a row.

    Parameters
    ----------
    paths, **options
        As in `check`.

    Returns
    -------
    Row

    Raises
    ------
    DataError
        As in `check`; the data folder is then as it was.

    Examples
    --------
    >>> add("debates.jsonl", id="mine", model="My model", family="Mine")  # doctest: +SKIP
    """
    row, frame, probe_frame = check(paths, **options)
    folder().mkdir(parents=True, exist_ok=True)
    _sweep()
    made = Path(tempfile.mkdtemp(prefix=".adding-", dir=folder()))
    try:
        frame.to_csv(made / ("answers.csv" if "answer" in frame else "debates.csv"), index=False, lineterminator="\n")
        if probe_frame is not None:
            probe_frame.to_csv(made / "probes.csv", index=False, lineterminator="\n")
        (made / "row.json").write_text(row.model_dump_json(indent=2, exclude_none=True) + "\n", encoding="utf-8")
        made.chmod(0o755)
        os.rename(made, folder() / row.id)
    except OSError as problem:
        if (folder() / row.id).exists():
            raise DataError(f"id {row.id!r}: was taken while this row was being added") from problem
        raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return row


def _sweep():
    """Clear what a killed run left behind, not what another one is making now."""
    for path in [*folder().glob(".adding-*"), *folder().glob(".removing-*")]:
        if time.time() - path.stat().st_mtime > STALE:
            shutil.rmtree(path, ignore_errors=True)


def remove(id):
    """Remove an added row.

    Parameters
    ----------
    id : str

    Raises
    ------
    DataError
        There is no such row.

    Examples
    --------
    >>> remove("no-such-row")
    Traceback (most recent call last):
    analysis.errors.DataError: ...
    """
    if not ID.fullmatch(id) or not (folder() / id).is_dir():
        raise DataError(f"id {id!r}: no such row; expected one of {', '.join(ids()) or 'none (there are no added rows)'}")
    gone = Path(tempfile.mkdtemp(prefix=".removing-", dir=folder()))
    os.rename(folder() / id, gone / id)
    shutil.rmtree(gone)


def describe(chosen=None):
    """Descriptions of added rows.

    Parameters
    ----------
    chosen : sequence of str, optional
        Ids; all rows unless given.

    Returns
    -------
    DataFrame
        One line a row: `id, model, family, synthetic, policy, layout, n_debates, n_agents, n_rounds, n_answers, n_missing, alpha_tot,
        n_flips, n_probes, arm, quality_control, quality`; missing where a feature matrix, a row without probes or without logs does not
        tell.

    Raises
    ------
    DataError
        An id is unknown or its row.json is not one.

    Examples
    --------
    >>> describe([]).columns[0]
    'id'
    """
    chosen = ids() if chosen is None else chosen
    columns = ["id", "model", "family", "synthetic", "policy", "layout", "n_debates", "n_agents", "n_rounds", "n_answers", "n_missing", "alpha_tot", "n_flips", "n_probes"]
    words = ["arm", "quality_control", "quality"]
    told = pd.DataFrame([card(id).model_dump() | {"quality": checks(card(id))} for id in chosen], columns=[*columns, *words])
    return told.astype({name: "Int64" for name in columns if name.startswith("n_")} | {"alpha_tot": float} | dict.fromkeys(words, "str"))


def checks(row):
    """Say what quality control counted.

    Parameters
    ----------
    row : Row

    Returns
    -------
    str or None
        Failed calls over planned ones, by check; None where nothing was counted.

    Examples
    --------
    >>> told = Row(id="m", model="M", family="F", policy="reference", labels="AB", layout="inspect", n_debates=1, n_rounds=1, sources=[],
    ...            quality=[Check(check="missing", k=3, n=10, limit=0.02)])
    >>> checks(told)
    'missing 3/10 (at most 2% allowed)'
    """
    if not row.quality:
        return None
    counted = ", ".join(f"{one.check} {one.k}/{one.n}" for one in row.quality)
    return f"{counted} (at most {row.quality[0].limit:.0%} allowed)"


def card(id):
    """Read row.json of one added row.

    Parameters
    ----------
    id : str

    Returns
    -------
    Row

    Raises
    ------
    DataError
        There is no such row, or the file is not as expected.

    Examples
    --------
    >>> card("no-such-row")
    Traceback (most recent call last):
    analysis.errors.DataError: ...
    """
    path = folder() / id / "row.json"
    if not ID.fullmatch(id) or not path.is_file():
        raise DataError(f"id {id!r}: no such row; expected one of {', '.join(ids()) or 'none (there are no added rows)'}")
    try:
        return Row.model_validate_json(path.read_text(encoding="utf-8"))
    except pydantic.ValidationError as problem:
        first = problem.errors()[0]
        raise DataError(f"{id}/row.json, field {'.'.join(map(str, first['loc']))!r}: {repr(first['input'])[:60]}; {first['msg']}") from None


def debates(chosen, *, tie="alphabetic", missing="initially_wrong"):
    """Debates of added rows under the given choices.

    Parameters
    ----------
    chosen : sequence of str
        Ids under data/rows.
    tie, missing : str
        As in `analysis.ledger.debates`. A row that came as a feature matrix keeps alphabetic ties and initially wrong missing
        majorities where it cannot follow.

    Returns
    -------
    DataFrame
        Empty if no id is given.

    Examples
    --------
    >>> len(debates([]))
    0
    """
    parts = []
    for id in chosen:
        labels = card(id).labels
        if (folder() / id / "answers.csv").is_file():
            parts.append(ledger.debates(_answers(id, labels), tie=tie, missing=missing))
        else:
            parts.append(_stored_matrix(id, tie))
    return together(parts) if parts else data.debates().iloc[:0]


def _answers(id, labels):
    return traces.read(folder() / id / "answers.csv", format="long", labels=labels)


def _stored_matrix(id, tie):
    text = dict.fromkeys(["row", "question", "gold"], "str")
    matrix = pd.read_csv(folder() / id / "debates.csv", dtype=text, keep_default_na=False, na_values=[""])
    matrix = matrix.astype({"n_agents": "Int64"} | ({"onset": "Int64"} if "onset" in matrix else {}))
    out = ledger.debates(matrix, tie="undecided" if tie == "undecided" and (matrix["n_agents"] == 3).all() else "alphabetic")
    # Beside rows with tie credit, right and wrong are credit too.
    return out.astype({c: float for c in out if c.startswith("correct_")}) if tie == "expected" else out


def together(parts):
    """Stack debates of several rows, which may differ in their number of rounds.

    Parameters
    ----------
    parts : list of DataFrame
        Debates, as `analysis.ledger.debates` returns them.

    Returns
    -------
    DataFrame
        Rounds that a row does not have are missing.

    Examples
    --------
    >>> short = pd.DataFrame({"row": ["a"], "correct_1": [True], "cell": ["preserved"]})
    >>> together([short, short.assign(row="b", correct_2=False)])["correct_2"].tolist()
    [<NA>, False]
    """
    out = pd.concat(parts, ignore_index=True)
    for column in out.columns[out.dtypes == object]:
        if column.startswith(("correct_", "changed_")):
            out[column] = out[column].astype("boolean")
    out["cell"] = pd.Categorical(out["cell"], categories=ledger.CELLS)
    return out


def summary(chosen, *, tie="alphabetic", missing="initially_wrong", interval="wilson"):
    """One line an added row, in the shape of the paper's model rows.

    Parameters
    ----------
    chosen : sequence of str
        Ids under data/rows.
    tie, missing, interval : str
        As in `analysis.ledger`.

    Returns
    -------
    DataFrame
        `ledger.summarize` with `family`, `model`, `synthetic`, `endpoint_round` and `alpha_tot` (missing without probes).

    Examples
    --------
    >>> len(summary([]))
    0
    """
    if not len(chosen):
        return ledger.summarize(debates([]), interval=interval).assign(family="", model="", synthetic=False, alpha_tot=float("nan"), endpoint_round=0)
    told = describe(chosen).rename(columns={"id": "row", "n_rounds": "endpoint_round"})[["row", "family", "model", "synthetic", "alpha_tot", "endpoint_round"]]
    return ledger.summarize(debates(chosen, tie=tie, missing=missing), interval=interval).merge(told, on="row", how="left", validate="1:1")


def beside(paper, added):
    """Put added rows under the paper's, marked; rows that are made up or fail quality control say so in their name.

    Parameters
    ----------
    paper, added : DataFrame
        Lines of one kind; `added` may be None or empty.

    Returns
    -------
    DataFrame
        The paper's columns and `added` (bool).

    Examples
    --------
    >>> beside(pd.DataFrame({"row": ["m"]}), pd.DataFrame({"row": ["mine"], "other": [1]})).to_dict("records")
    [{'row': 'm', 'added': False}, {'row': 'mine', 'added': True}]
    """
    parts = [paper.assign(added=False)]
    if added is not None and len(added):
        # Rounds beyond the paper's last one stay; whatever else only the added rows have does not.
        later = [name for name in added if re.fullmatch(r"round_\d+", name) and name not in paper]
        parts.append(named(added).assign(added=True).reindex(columns=[*parts[0].columns, *later]))
    return pd.concat(parts, ignore_index=True)


def named(lines):
    """Mark in their names rows that are made up or fail quality control.

    Parameters
    ----------
    lines : DataFrame
        With `row`, ids of added rows.

    Returns
    -------
    DataFrame
        The same lines; another name than a stored id stays as it is.

    Examples
    --------
    >>> named(pd.DataFrame({"row": ["not-a-stored-row"]}))["row"].tolist()
    ['not-a-stored-row']
    """
    stored = {id: card(id) for id in set(lines["row"]) & set(ids())}
    marks = {
        id: f"{id}{', made up' if told.synthetic else ''}{', fails quality control' if told.quality_control == 'fails' else ''}"
        for id, told in stored.items()
    }
    return lines.assign(row=lines["row"].map(lambda id: marks.get(id, id)))


def real(chosen):
    """Ids without those of made-up rows.

    Parameters
    ----------
    chosen : iterable of str

    Returns
    -------
    list of str

    Examples
    --------
    >>> real(["not-a-stored-row"])
    ['not-a-stored-row']
    """
    stored = set(ids())
    return [id for id in chosen if id not in stored or not card(id).synthetic]


def coding(id):
    """Count how a row's answers were read, by round.

    Parameters
    ----------
    id : str

    Returns
    -------
    DataFrame
        `round, rule, n, of`: answers read by a rule of the coder, given as labels, or missing, of all answers of the round. Empty for a
        row that came as a feature matrix.

    Examples
    --------
    >>> coding("no-such-row")
    Traceback (most recent call last):
    analysis.errors.DataError: ...
    """
    labels = card(id).labels
    if not (folder() / id / "answers.csv").is_file():
        return pd.DataFrame(columns=["round", "rule", "n", "of"])
    answers = _answers(id, labels)
    rule = answers["rule"].astype("str") if "rule" in answers else pd.Series(index=answers.index, dtype="str")
    rule = rule.fillna(answers["answer"].isna().map({True: "missing", False: "given"}))
    counts = answers.groupby(["round", rule.rename("rule")], observed=True).size().rename("n").reset_index()
    return counts.assign(of=counts.groupby("round")["n"].transform("sum")).sort_values(["round", "n"], ascending=[True, False], ignore_index=True)
