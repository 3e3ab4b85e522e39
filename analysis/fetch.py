"""The paper's open tier: download it, check it against the released checksums, read every file into rows.

Files are told apart by name, as they were released; their layout is recognised by content. A file that is
damaged, cut short or has another checksum counts for nothing: it is named with the reason, and the others are
read.
"""

import hashlib
import json
import re
import tempfile
from pathlib import Path

import pandas as pd

from analysis import data, ledger, probes, rows, traces
from analysis.errors import DataError

DATASET = "XINLI1997/DebateLedger"
REVISION = "alpha-tot-v1.0"  # the released version; the checksums hold whatever the name may come to point at

# What a file of the release is, by its name.
KINDS = {
    "debates": re.compile(r"(debate_traces|cross_benchmark)_.+\.jsonl(\.gz)?"),
    "probes": re.compile(r"(sa_causal|r5_gemini_alpha_panel)_.+\.jsonl(\.gz)?"),
    "features": re.compile(r"per_debate_r1_features\.(jsonl|csv)(\.gz)?"),
    "metadata": re.compile(r".*croissant.*\.json(ld)?"),
    "half": re.compile(r".+\.incomplete"),
}
PATTERNS = [
    f"*{name}*"
    for name in (
        "debate_traces_",
        "cross_benchmark_",
        "sa_causal_",
        "r5_gemini_alpha_panel_",
        "per_debate_r1_features.",
        "croissant",
    )
]
STATES = ("read", "empty", "metadata", "other", "missing", "half downloaded", "refused")
FAULTS = ("half downloaded", "refused")
LEDGER = [
    "row",
    "n",
    "preserved",
    "collapse",
    "correction",
    "unrepaired",
    "init_correct",
    "final_correct",
    "c_cond",
    "c_cond_low",
    "c_cond_high",
]
# Families by what a model's name begins with or holds; the paper's spelling where the paper has the family.
FAMILIES = {
    "claude": "Anthropic",
    "sonnet": "Anthropic",
    "deepseek": "DeepSeek",
    "gemini": "Google",
    "gemma": "Google",
    "llama": "Meta",
    "gpt": "OpenAI",
    "phi": "Phi",
    "qwen": "Qwen",
    "qwq": "Qwen",
    "mistral": "Mistral",
    "grok": "xAI",
    "kimi": "Moonshot",
    "glm": "Zhipu",
    "minimax": "MiniMax",
    "step": "StepFun",
    "hy3": "Tencent",
}


# --- the hub ------------------------------------------------------------------------------------------------


def download(*, revision=REVISION, cache=None):
    """Download the open tier, or go on with a download that was interrupted.

    Parameters
    ----------
    revision : str
        Version of the dataset: a tag, a branch or a commit.
    cache : str or Path, optional
        Folder; the hub's own cache on this machine unless given. What is there already is not downloaded
        again, and a file that does not have the hub's checksum is.

    Returns
    -------
    Path
        Folder of the files, named by the commit that the revision stands for.

    Raises
    ------
    DataError
        The hub cannot be reached and the cache does not hold all files, or has no such version.

    Examples
    --------
    >>> download()  # doctest: +SKIP
    """
    import huggingface_hub as hub
    from huggingface_hub import errors

    place = {"repo_type": "dataset", "cache_dir": cache}
    try:
        folder = Path(hub.snapshot_download(DATASET, revision=revision, allow_patterns=PATTERNS, **place))
        for wrong in _mismatches(hub, folder.name, place):
            hub.hf_hub_download(DATASET, wrong, revision=folder.name, force_download=True, **place)
    except errors.RevisionNotFoundError as problem:
        raise DataError(
            f"{DATASET}: no version {revision!r}; expected one that the dataset has, such as main"
        ) from problem
    except errors.RepositoryNotFoundError as problem:
        raise DataError(
            f"{DATASET}: there is no such dataset, or it is not open; expected access to it"
        ) from problem
    except (errors.HfHubHTTPError, errors.HTTPError, OSError) as problem:
        raise DataError(
            f"{DATASET}: not downloaded ({_first_line(problem)}); what is there stays, run the same command "
            "again to go on, or read a folder of its files with --from"
        ) from problem
    return folder


def _mismatches(hub, commit, place):
    """Files of the cache that are not what the hub has; none where it cannot be asked (no network)."""
    from huggingface_hub import errors

    try:
        told = hub.HfApi().verify_repo_checksums(DATASET, revision=commit, **place)
    except (errors.HfHubHTTPError, errors.HTTPError, OSError):
        return []
    return [each["path"] for each in told.mismatches]


def _first_line(problem):
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0][:200]


# --- the files ----------------------------------------------------------------------------------------------


def survey(folder):
    """Check and read every file of the open tier.

    Parameters
    ----------
    folder : str or Path
        Folder of the files, from `download` or copied; searched with its folders.

    Returns
    -------
    files : DataFrame
        One line a file: `file` (path in the folder), `kind` (debates, probes, features, metadata, half,
        other), `bytes`, `records` (lines), `checksum` (agrees, differs, or none released), `state` (one of
        `STATES`), `note`. Files that the metadata name and that are not there have the state "missing".
    ledgers : DataFrame
        One line a row of debates: `file`, `row`, debates `n`, the four cells, rates. The endpoint is each
        row's last round.
    screens : DataFrame
        One line a file and condition of probes: `file`, `row`, `condition`, `n` probes, `k` revisions,
        `rate`, interval.

    Raises
    ------
    DataError
        No such folder, or none of its files is of the release.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", data appendix (released layouts).

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> record = {"question_id": "q", "correct_label": "B", "model": "m", "initial_answers": ["A", "A"],
    ...           "round_traces": [{"round": 1, "answers": ["B", "B"]}]}
    >>> _ = (folder / "debate_traces_mine.jsonl").write_text(json.dumps(record) + "\\n")
    >>> files, ledgers, screens = survey(folder)
    >>> files.loc[0, ["kind", "checksum", "state"]].tolist(), ledgers["correction"].tolist()
    (['debates', 'none released', 'read'], [1])
    """
    found = _found(folder)
    released = _released(found)
    lines, talked, screened = [], [], []
    for name, path in found.items():
        line, frame = _look(name, path, released.get(path.name, {}))
        lines.append(line)
        if frame is None:
            continue
        if line["kind"] == "probes":
            rates = probes.flip_rate(frame, by=["row", "condition"], conditions="all")
            screened.append(rates[["row", "condition", "n", "k", "rate", "low", "high"]].assign(file=name))
        else:
            talked.append(ledger.summarize(ledger.debates(frame))[LEDGER].assign(file=name))
    present = {path.name for path in found.values()}
    for name in sorted(set(released) - present):
        if _kind(name) in ("debates", "probes", "features"):
            lines.append(_line(name, checksum="-", state="missing", note="named in the released metadata"))
    files = pd.DataFrame(lines).astype({"bytes": "Int64", "records": "Int64"})
    return (
        files,
        _together(talked, LEDGER),
        _together(screened, ["row", "condition", "n", "k", "rate", "low", "high"]),
    )


def _found(folder):
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; expected one with files of the open tier")
    found = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in inside.parts) and _kind(path.name) != "half"
        if not hidden and not path.is_dir():
            found[inside.as_posix()] = path
    if not any(_kind(path.name) != "other" for path in found.values()):
        raise DataError(
            f"{folder}: none of {len(found)} files is one of the open tier; expected names such as "
            "debate_traces_....jsonl, sa_causal_....jsonl, per_debate_r1_features.csv"
        )
    return found


def _kind(name):
    return next((kind for kind, pattern in KINDS.items() if pattern.fullmatch(name)), "other")


def _released(found):
    """What metadata say of a file, by its name: the released entries, and Croissant files in the folder."""
    told = {
        line.file: {"sha256": {line.sha256.lower()}, "records": int(line.n_records)}
        for line in data.table("provenance").itertuples()
    }
    for path in found.values():
        if _kind(path.name) == "metadata":
            for name, checksum in _checksums(path):
                told.setdefault(name, {"sha256": set()})["sha256"].add(checksum)
    return told


def _checksums(path):
    """(File name, SHA-256) of every object of a JSON document that tells both."""
    try:
        left = [json.loads(path.read_text(encoding="utf-8"))]
    except (ValueError, OSError):
        return
    while left:
        value = left.pop()
        if isinstance(value, list):
            left += value
        elif isinstance(value, dict):
            left += value.values()
            where = next(
                (
                    value[key]
                    for key in ("contentUrl", "path", "file", "name")
                    if isinstance(value.get(key), str)
                ),
                None,
            )
            checksum = value.get("sha256")
            if where and isinstance(checksum, str) and re.fullmatch("[0-9a-fA-F]{64}", checksum):
                yield where.split("?")[0].rstrip("/").rsplit("/", 1)[-1], checksum.lower()


def _line(name, **told):
    return {
        "file": name,
        "kind": _kind(name.rsplit("/", 1)[-1]),
        "bytes": None,
        "records": None,
        "checksum": "none released",
        "state": "other",
        "note": "",
    } | told


def _look(name, path, released):
    """One line on a file, and its frame where it could be read."""
    line = _line(name)
    if line["kind"] == "half":
        return line | {"state": "half downloaded", "note": "fetch goes on with it"}, None
    if not path.is_file():
        return line | {"state": "refused", "note": "a link to nothing, or no regular file"}, None
    line["bytes"] = path.stat().st_size
    checksums = released.get("sha256", set())
    if checksums:
        line["checksum"] = "agrees" if checksums == {_sha256(path)} else "differs"
    if line["checksum"] == "differs":
        return line | {"state": "refused", "note": _why(path)}, None
    if line["kind"] in ("other", "metadata"):
        return line | {"state": line["kind"]}, None
    if not line["bytes"]:
        return line | {"state": "empty", "records": 0, "note": "this tier leaves its lines out"}, None
    try:
        frame, line["records"] = read(path)
    except (DataError, UnicodeDecodeError) as problem:
        return line | {"state": "refused", "note": str(problem).replace(str(path), path.name)}, None
    expected = released.get("records", line["records"])
    if expected != line["records"]:
        return line | {"state": "refused", "note": f"{line['records']} records; expected {expected}"}, None
    return line | {"state": "read"}, frame


def _why(path):
    with open(path, "rb") as stream:
        if stream.read(40).startswith(b"version https://git-lfs"):
            return "a pointer of Git LFS, not the file itself"
    return "not the released file, or not all of it"


def _sha256(path):
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _together(parts, columns):
    if not parts:
        return pd.DataFrame(columns=["file", *columns])
    out = pd.concat(parts, ignore_index=True)
    return out[["file", *columns]]


def read(path):
    """Read one file of the open tier.

    Parameters
    ----------
    path : str or Path
        Debates, probes or the feature matrix, under its released name.

    Returns
    -------
    frame : DataFrame
        Long answers (debates), a line a probe (probes), or debates (the matrix). A second record of a
        question counts as a further replicate: one released source holds questions twice. Where a file has
        several benchmarks, each is a row.
    n : int
        Records in the file.

    Raises
    ------
    DataError
        The file is not one of the release by its name, or cannot be used; the message says where and why.

    Examples
    --------
    >>> read("notes.txt")
    Traceback (most recent call last):
    analysis.errors.DataError: notes.txt: no trace file of the open tier by its name
    """
    path = Path(path)
    kind = _kind(path.name)
    if kind == "probes":
        frame = probes.read(path, on_duplicate="replicate")
        return frame, len(frame[["row", "question", "condition", "agent", "replicate"]].drop_duplicates())
    if kind == "features":
        frame = traces.read(path, format="features")
        return frame, len(frame)
    if kind != "debates":
        raise DataError(f"{path}: no trace file of the open tier by its name")
    frame = traces.validate(_by_benchmark(traces.read(path, on_duplicate="replicate")))
    return frame, len(frame[["row", "question", "replicate"]].drop_duplicates())


def _by_benchmark(frame):
    """Rows apart by benchmark, where there are several: their questions are not one pool."""
    if "benchmark" not in frame or frame["benchmark"].nunique() < 2:
        return frame
    attrs, named = (
        frame.attrs,
        frame["row"] + " (" + frame["benchmark"].astype("str").fillna("no benchmark") + ")",
    )
    frame = frame.assign(row=named)
    frame.attrs = attrs
    return frame


# --- rows ---------------------------------------------------------------------------------------------------


def add(folder, files):
    """Store every trace of debates as a row, with the probes of its model where one file has them.

    Parameters
    ----------
    folder : str or Path
    files : DataFrame
        From `survey`. Only what was read is stored. The feature matrix is not: the paper's debates are in
        data/debates.csv.

    Returns
    -------
    DataFrame
        `file, id, probes` (file, or missing), `state` (added, or there already).

    Raises
    ------
    DataError
        As `analysis.rows.add`; rows stored before stay, and the next call goes on behind them.

    Examples
    --------
    >>> add("open-tier", survey("open-tier")[0])  # doctest: +SKIP
    """
    folder, done = Path(folder), []
    usable = files[files["state"] == "read"]
    asked = {name: read(folder / name)[0] for name in usable.loc[usable["kind"] == "probes", "file"]}
    for name in usable.loc[usable["kind"] == "debates", "file"]:
        frame, _ = read(folder / name)
        for row, answers in frame.groupby("row", sort=False):
            id = _id(name, row if frame["row"].nunique() > 1 else None)
            partner = _partner(name, row, asked)
            state = _store(answers, id, row, None if partner is None else asked[partner])
            done.append({"file": name, "id": id, "probes": partner, "state": state})
    return pd.DataFrame(done, columns=["file", "id", "probes", "state"])


def _store(answers, id, row, asked):
    """Store one row, unless it is there: the same answers make the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        source = traces.write_open_tier(answers, Path(folder, f"{id}.jsonl"))
        if id in rows.ids() and rows.card(id).sources[0].sha256 == _sha256(source):
            return "there already"
        told = {}
        if asked is not None:
            told["probes"] = _write_probes(asked, Path(folder, f"{id}-probes.jsonl"))
        rows.add(source, id=id, model=row, family=_family(row), **told)
    return "added"


def _write_probes(asked, path):
    """Probes as records again: labels only, replicates as further agents, so that none stands twice."""
    asked = asked.assign(
        agent=asked["agent"].astype("str") + asked["replicate"].map(lambda k: f"-{k}" if k else "")
    )
    with open(path, "w", encoding="utf-8") as out:
        for (question, condition, agent), record in asked.groupby(
            ["question", "condition", "agent"], sort=False, dropna=False
        ):
            head = record.iloc[0]
            fields = ["strength", "strength_value", "social", "alt_answer", "post_answer", "revised"]
            results = record[fields].astype(object).where(record[fields].notna(), None).to_dict("records")
            out.write(
                json.dumps(
                    {
                        "question_id": question,
                        "correct_label": _or_none(head["gold"]),
                        "condition": condition,
                        "agent_idx": agent,
                        "initial_answer": _or_none(head["initial_answer"]),
                        "probe_results": results,
                    }
                )
                + "\n"
            )
    return path


def _or_none(value):
    return None if pd.isna(value) else value


def _stem(name):
    stem = re.sub(r"\.jsonl(\.gz)?$", "", name.rsplit("/", 1)[-1])
    return re.sub(r"^(debate_traces|sa_causal|r5_gemini_alpha_panel)_", "", stem)


def _id(name, row):
    text = _stem(name) if row is None else f"{_stem(name)}-{row}"
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:64]


def _partner(name, row, asked):
    """The probes that belong to debates: of the same name, else the only file of the same model.

    Not for other benchmarks: a model's probes were asked on MMLU-Pro.
    """
    same = [other for other in asked if _stem(other) == _stem(name)]
    if not same and not name.rsplit("/", 1)[-1].startswith("cross_benchmark_"):
        same = [other for other, frame in asked.items() if set(frame["row"]) == {row}]
    return same[0] if len(same) == 1 else None


def _family(model):
    """Family of a model by its name; several families, or a name not known, are a family of their own."""
    name = model.lower()
    found = {family for fragment, family in FAMILIES.items() if re.search(rf"(?<![a-z]){fragment}", name)}
    return found.pop() if len(found) == 1 else model
