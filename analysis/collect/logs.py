"""Read Inspect logs of debates and probes: answers, replies, probe records, gate actions.

A log is a zip of JSON, a member a sample. Only the part of a member up to its store is parsed: what comes
after are the events, most of the file, which nothing here needs. Inspect itself is not imported.
"""

import contextlib
import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

from analysis import probes as probe_frames
from analysis.answers import COLUMNS
from analysis.collect import saved
from analysis.errors import DataError, choice

if not hasattr(zipfile, "ZIP_ZSTANDARD"):  # part of Python from 3.14 on
    with contextlib.suppress(ImportError):
        import zipfile_zstd  # noqa: F401  comes with inspect-ai; teaches zipfile the compression of its logs

UNFINISHED = ("error", "keep")
_SAMPLE = re.compile(r"samples/.*_epoch_\d+\.json")
_BLANK = re.compile(r"[\s,:]*")
_decode = json.JSONDecoder().raw_decode
_STATE = (
    "truncated",
    "unclosed",
    "error",
    "stop",
    "tokens_in",
    "tokens_out",
    "tokens_reasoning",
    "cost",
    "seconds",
    "model",
    "temperature",
    "confidence",
)


def is_log(path):
    """Tell whether a file is an Inspect log.

    Examples
    --------
    >>> is_log("no/such.eval")
    False
    """
    path = Path(path)
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as log:
        return "_journal/start.json" in log.NameToInfo or "header.json" in log.NameToInfo


def found_at(path):
    """Logs at a place: the file itself, or those of a folder of logs or of a run.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    list of Path
        The latest attempt first; empty where there is none.

    Examples
    --------
    >>> found_at("no/such/place")
    []
    """
    path = Path(path)
    if path.is_dir():
        inner = path / "logs"
        return current(sorted((inner if inner.is_dir() else path).glob("*.eval"), reverse=True))
    return [path] if is_log(path) else []


def current(paths):
    """Leave out what killed attempts left behind where a later attempt finished the run.

    Every attempt takes over what the one before it had, so that the finished log holds all of it.

    Parameters
    ----------
    paths : list of Path
        Logs.

    Returns
    -------
    list of Path
        As given, without unfinished or torn logs of a run that has a finished one among them.

    Examples
    --------
    >>> [path.name for path in current([Path("no/such.eval")])]
    ['such.eval']
    """
    if len(paths) < 2:
        return paths
    state = {path: _attempt(path) for path in paths}
    finished = {run for run, status in state.values() if status == "success"}

    def left_behind(path):
        run, status = state[path]
        if run is None:  # torn: Inspect puts the run's id at the end of the name
            return path.stem.rpartition("_")[2] in finished
        return status != "success" and run in finished

    return [path for path in paths if not left_behind(path)]


def _attempt(path):
    """Id of the run and status of a log; None where it cannot be read."""
    if not is_log(path):
        return None, None
    with zipfile.ZipFile(path) as log:
        head = _header(log, path, "keep")
    return head["eval"]["task_id"], _status(head)


def _status(head):
    """Status of a run; one whose failed calls are being asked again is none that ended well."""
    return "started" if head.get("invalidated") else head.get("status", "started")


def samples(path, *, unfinished="error"):
    """Yield the samples of a log, in the order of its dataset, without their events.

    Parameters
    ----------
    path : str or Path
    unfinished : {"error", "keep"}
        A log of a run that did not end well: refuse, or yield what is there.

    Yields
    ------
    dict
        `id`, `epoch`, `target`, `metadata`, `store`, and `log`, the log's header.

    Raises
    ------
    DataError
        No log, a damaged one, or an unfinished one.

    Examples
    --------
    >>> next(samples("no/such.eval"))
    Traceback (most recent call last):
    analysis.errors.DataError: no/such.eval: no Inspect log; expected a file that ends in .eval
    """
    choice("unfinished", unfinished, UNFINISHED)
    if not is_log(path):
        raise DataError(f"{path}: no Inspect log; expected a file that ends in .eval")
    with zipfile.ZipFile(path) as log:
        head = _header(log, path, unfinished)
        names = [name for name in log.NameToInfo if _SAMPLE.fullmatch(name)]
        if not names:
            raise DataError(f"{path}: a log without samples; expected at least one")
        place = {str(id): at for at, id in enumerate(head["eval"].get("dataset", {}).get("sample_ids") or [])}

        def order(name):
            id, _, epoch = name.removeprefix("samples/").removesuffix(".json").rpartition("_epoch_")
            return place.get(id, len(place)), int(epoch), id

        for name in sorted(names, key=order):
            text = _read(log, name, path)
            try:
                found = _fields(text, ("id", "epoch", "target", "metadata", "store"))
                if not found.get("store"):
                    found["store"] = _rebuilt(json.loads(text))
            except (ValueError, IndexError) as problem:
                if isinstance(problem, DataError):
                    raise
                raise DataError(f"{path}, member {name!r}: no JSON object ({problem})") from None
            yield {"log": head} | found


def kind(path):
    """Tell what a log holds.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    str
        "debate" or "probe".

    Raises
    ------
    DataError
        No log, or one of something else.

    Examples
    --------
    >>> kind("logs/debate.eval")  # doctest: +SKIP
    'debate'
    """
    for sample in samples(path, unfinished="keep"):
        found = [name for name in ("debate", "probe") if name in (sample.get("store") or {})]
        if found:
            return found[0]
    raise DataError(
        f"{path}: a log of another task; expected one of analysis/collect/debate.py or analysis/collect/probe.py"
    )


def _read(log, name, path):
    try:
        return log.read(name).decode()
    except NotImplementedError:
        raise DataError(
            f"{path}: packed with zstandard, which needs inspect-ai's package zipfile-zstd or Python 3.14; "
            "expected one of them: pip install inspect-ai"
        ) from None
    except (ValueError, zipfile.BadZipFile) as problem:
        raise DataError(f"{path}, member {name!r}: cannot be read ({problem})") from None


def _header(log, path, unfinished):
    name = "header.json" if "header.json" in log.NameToInfo else "_journal/start.json"
    head = json.loads(_read(log, name, path))
    status = _status(head)
    if status != "success" and unfinished == "error":
        raise DataError(
            f"{path}: the run is not finished (status {status!r}); run the same command again, "
            "it goes on where it stopped"
        )
    return head


def _fields(text, wanted):
    """Parse an object member by member until all wanted ones are there."""
    found, at = {}, _BLANK.match(text, text.index("{") + 1).end()
    while len(found) < len(wanted) and text[at] != "}":
        key, at = _decode(text, at)
        value, at = _decode(text, _BLANK.match(text, at).end())
        if key in wanted:
            found[key] = value
        at = _BLANK.match(text, at).end()
    return found


def _rebuilt(sample):
    """The store of a sample that Inspect recovered from a crash: it keeps the events and leaves the store
    empty.

    A store event is a JSON patch; those of outermost spans hold the changes of all spans within.
    """
    import jsonpatch

    outermost = {
        event["id"]
        for event in sample.get("events") or []
        if event["event"] == "span_begin" and event.get("parent_id") is None
    }
    store = {}
    for event in sample.get("events") or []:
        if event["event"] == "store" and event.get("span_id") in outermost:
            store = jsonpatch.apply_patch(store, event["changes"])
    return _attached(store, sample.get("attachments") or {})


def _attached(value, attachments):
    """Put long texts back where an event holds only their digest."""
    if isinstance(value, dict):
        return {name: _attached(item, attachments) for name, item in value.items()}
    if isinstance(value, list):
        return [_attached(item, attachments) for item in value]
    if isinstance(value, str) and value.startswith("attachment://"):
        return attachments.get(value.removeprefix("attachment://"), value)
    return value


# --- debates ------------------------------------------------------------------------------------------------


def _debates(paths, unfinished):
    """Yield (question, replicate, gold, saved debate, header), each debate once."""
    seen = {}
    for path in _paths(paths):
        for sample in samples(path, unfinished=unfinished):
            debate = (sample.get("store") or {}).get("debate")
            if debate is None:
                raise DataError(
                    f"{path}, sample {sample['id']!r}: no debate; "
                    "expected a log of analysis/collect/debate.py"
                )
            key = str(sample["id"]), int(sample["epoch"]) - 1
            if key in seen:
                if sample["log"]["eval"]["task_id"] != seen[key][1]:
                    raise DataError(
                        f"{path}: question {key[0]!r}, replicate {key[1]} is in {seen[key][0]} too, of "
                        "another run; expected each debate once"
                    )
                continue
            seen[key] = path, sample["log"]["eval"]["task_id"]
            yield *key, sample["target"], debate, sample["log"]


def _paths(paths):
    paths = [paths] if isinstance(paths, (str, Path)) else list(paths)
    out = []
    for path in map(Path, paths):
        found = (
            sorted(path.glob("*.eval"), reverse=True) if path.is_dir() else [path]
        )  # the latest attempt first
        if not found:
            raise DataError(f"{path}: a folder without a .eval file; expected at least one")
        out += found
    return current(out)


def answers(paths, *, arm=None, row=None, texts=False, unfinished="error"):
    """Read the answers of debates.

    Parameters
    ----------
    paths : path, or list of paths
        Logs, or folders of logs. A debate that several attempts of one run hold is read once.
    arm : str, optional
        Arm to read; "all" reads every arm, each as a row of its own. Left out: peer if there is one, else the
        only one.
    row : str, optional
        Name of the row; the model's if left out. With several arms the arm follows in brackets.
    texts : bool
        Whether to hand over replies as well (column `text`); they belong to the gated tier.
    unfinished : {"error", "keep"}
        As in `samples`.

    Returns
    -------
    DataFrame
        Long answers, a line for every cell of the plan: `row, question, replicate, round, agent, answer,
        gold, rule` and what is known of the call: `truncated`, `unclosed`, `error`, `stop`, tokens, `cost`,
        `seconds`, `model`, `temperature`, `confidence`. ``attrs``: `format` "inspect", `arm`, `card`, `policy`,
        `status`, `runs` (of each run: `models`, `temperatures`, `pool`, `selection`, `seed`, `n`).

    Raises
    ------
    DataError
        No log of debates, an unfinished one, an arm that is not there, or runs that differ in card, coder or
        arm.

    Examples
    --------
    >>> answers("logs", arm="peer")  # doctest: +SKIP
    """
    columns, attrs = {name: [] for name in (*COLUMNS, "rule", *_STATE, *(["text"] if texts else []))}, {}
    runs = {}
    for question, replicate, gold, debate, log in _debates(paths, unfinished):
        arms = _arms(debate, arm)
        name = row or _row(debate)
        told = {"arm": ", ".join(arms), "card": debate["card"], "policy": debate["policy"]}
        attrs = attrs or {"format": "inspect", "status": log.get("status"), **told}
        odd = [field for field, value in told.items() if value != attrs[field]]
        if odd:
            raise DataError(
                f"question {question!r}, field {odd[0]!r}: {told[odd[0]]}; expected {attrs[odd[0]]}, as in the "
                "debates before: runs with different prompts, coders or arms are different rows"
            )
        runs.setdefault(log["eval"]["task_id"], _settings(log, debate))
        for each in arms:
            lines = saved.answers(debate, each)
            whole = {
                "row": name if arm != "all" else f"{name} ({each})",
                "question": question,
                "replicate": replicate,
                "gold": gold,
            }
            for field, cells in columns.items():
                if field in whole:
                    cells.extend([whole[field]] * len(lines))
                elif field == "agent":
                    cells.extend(str(line["agent"]) for line in lines)
                else:
                    cells.extend(line.get(field) for line in lines)
    frame = pd.DataFrame({name: _column(name, cells) for name, cells in columns.items()})
    frame.attrs = attrs | {"runs": list(runs.values())}
    return frame


def _settings(log, debate):
    told, given = log["eval"].get("metadata") or {}, log["eval"].get("task_args") or {}
    return {
        "models": debate["models"],
        "temperatures": told.get("temperatures"),
        "pool": told.get("pool"),
        "selection": bool(told.get("selection")),
        "seed": given.get("pool_seed"),
        "n": given.get("n"),
    }


def replies_of(answers):
    """Calls behind answers of one arm, as `replies` gives them: without cells that a gate made needless.

    Parameters
    ----------
    answers : DataFrame
        From `answers`, one arm.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> read = pd.DataFrame({"round": [0, 1], "answer": ["A", None], "rule": ["final_tag", "empty"]})
    >>> read.attrs["arm"] = "peer"
    >>> replies_of(read)[["arm", "missing"]].values.tolist()
    [['initial', False], ['peer', True]]
    """
    asked = answers[answers["rule"] != "carried"]
    arm = np.where(asked["round"] == 0, saved.INITIAL, answers.attrs["arm"])
    return asked.assign(arm=arm, missing=asked["answer"].isna())


_NUMBERS = {"tokens_in", "tokens_out", "tokens_reasoning", "cost", "seconds", "temperature", "confidence"}


def _column(name, cells):
    if name in ("replicate", "round"):
        return np.array(cells, dtype=np.int64)
    if name in _NUMBERS:
        return pd.array([np.nan if cell is None else cell for cell in cells], dtype="float64")
    if name in ("truncated", "unclosed"):
        return np.array([bool(cell) for cell in cells])
    return pd.array(cells, dtype="str")


def _row(debate):
    return " + ".join(dict.fromkeys(debate["models"]))


def _arms(debate, arm):
    arms = debate["arms"]
    if arm == "all":
        return arms
    if arm is None:
        if "peer" not in arms and len(arms) > 1:
            raise DataError(
                f"arms {', '.join(arms)}: several, and none of them is peer; expected arm= one of them"
            )
        return ["peer"] if "peer" in arms else arms
    if arm not in arms:
        raise DataError(f"arm {arm!r}: not in this log; expected one of {', '.join(arms)}")
    return [arm]


def replies(paths, *, unfinished="error"):
    """Read what is known of every call that was planned, Round 0 once: for quality control and costs.

    Parameters
    ----------
    paths, unfinished
        As in `answers`.

    Returns
    -------
    DataFrame
        `arm` ("initial" for Round 0), `question, replicate, round, agent, missing` (no answer), `rule` and
        the columns on the call that `answers` has. Cells that a gate made needless are left out.

    Examples
    --------
    >>> replies("logs")  # doctest: +SKIP
    """
    lines = []
    for question, replicate, _, debate, _ in _debates(paths, unfinished):
        for at, arm in enumerate(debate["arms"]):
            for line in saved.answers(debate, arm):
                if line["rule"] == "carried" or (line["round"] == 0 and at):
                    continue
                lines.append(
                    {
                        "arm": arm if line["round"] else saved.INITIAL,
                        "question": question,
                        "replicate": replicate,
                        "round": line["round"],
                        "agent": str(line["agent"]),
                        "missing": line["answer"] is None,
                        "rule": line["rule"],
                    }
                    | {name: line.get(name) for name in _STATE}
                )
    frame = pd.DataFrame(lines)
    return frame.assign(**{name: _column(name, frame[name].to_numpy(object)) for name in _STATE})


def actions(paths, *, unfinished="error"):
    """Read what a live gate did, in the form that `analysis.replay.actions` takes.

    Parameters
    ----------
    paths, unfinished
        As in `answers`.

    Returns
    -------
    DataFrame
        `row, question, replicate, action` (freeze or continue), `round` in which the gate decided, `gate`.

    Raises
    ------
    DataError
        The debates ran without a gate.

    Examples
    --------
    >>> actions("logs")  # doctest: +SKIP
    """
    lines = []
    for question, replicate, _, debate, _ in _debates(paths, unfinished):
        said = debate.get("gate_said") or {}
        if "gate" not in debate:
            raise DataError(
                f"question {question!r}: the debate ran without a gate; expected gate=NAME in its task"
            )
        lines.append(
            {
                "row": _row(debate),
                "question": question,
                "replicate": replicate,
                "action": said.get("action", "continue"),
                "round": said.get("round"),
                "gate": debate["gate"]["name"],
            }
        )
    return pd.DataFrame(lines).astype({"round": "Int64"})


def initial_replies(path):
    """Read Round 0 of earlier debates, to branch further arms from it.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    dict
        Question -> replicate -> replies of Round 0 in order of agents.

    Examples
    --------
    >>> initial_replies("logs/debate.eval")  # doctest: +SKIP
    """
    found = {}
    for question, replicate, _, debate, _ in _debates(path, "keep"):
        replies = [reply for reply in debate["replies"] if reply["arm"] == saved.INITIAL]
        found.setdefault(question, {})[replicate] = [
            {"text": None} | reply for reply in sorted(replies, key=lambda reply: reply["agent"])
        ]
    return found


# --- probes -------------------------------------------------------------------------------------------------


def probe_records(paths, *, texts=False, unfinished="error"):
    """Read probe records in the layout of the paper's open tier.

    Parameters
    ----------
    paths, unfinished
        As in `answers`.
    texts : bool
        Whether to keep replies and challenges; they belong to the gated tier.

    Returns
    -------
    list of dict
        One per question, condition and agent that gave an initial answer: without one there is nothing to
        revise. `probe_plan` counts those that are left out.

    Raises
    ------
    DataError
        No log of probes.

    Examples
    --------
    >>> probe_records("logs")  # doctest: +SKIP
    """
    return [
        record if texts else _without_texts(record)
        for record in _probe_records(paths, unfinished)
        if record["initial_answer"] is not None
    ]


def probe_plan(paths, *, unfinished="error"):
    """Count probe records: asked, valid (with an initial answer), repaired, and probes without a readable
    reply.

    Parameters
    ----------
    paths, unfinished
        As in `answers`.

    Returns
    -------
    DataFrame
        One line a condition: `condition, n, valid, repaired, probes, unparsed`.

    Examples
    --------
    >>> probe_plan("logs")  # doctest: +SKIP
    """
    lines = [
        {
            "condition": record["condition"],
            "n": 1,
            "valid": record["initial_answer"] is not None,
            "repaired": record["initial_parse_repaired"],
            "probes": len(record["probe_results"]),
            "unparsed": sum(probe["post_answer"] is None for probe in record["probe_results"]),
        }
        for record in _probe_records(paths, unfinished)
    ]
    return pd.DataFrame(lines).groupby("condition", sort=False).sum().reset_index()


def probe_replies(paths, *, unfinished="error"):
    """Read what is known of every initial answer and every reply to a challenge: for quality control.

    Parameters
    ----------
    paths, unfinished
        As in `answers`.

    Returns
    -------
    DataFrame
        `arm` (the condition), `missing`, `truncated`, `unclosed`, `error`. Of an answer that was asked for
        repeatedly the last reply counts.

    Examples
    --------
    >>> probe_replies("logs")  # doctest: +SKIP
    """
    lines = []
    for record in _probe_records(paths, unfinished):
        first = {
            "post_answer": record["initial_answer"],
            "truncated": record.get("initial_truncated"),
            "unclosed": record.get("initial_rule") == "unfinished_reasoning",
            "error": record.get("initial_error"),
        }
        for reply in (first, *record["probe_results"]):
            lines.append(
                {
                    "arm": record["condition"],
                    "missing": reply["post_answer"] is None,
                    "truncated": bool(reply.get("truncated")),
                    "unclosed": bool(reply.get("unclosed")),
                    "error": reply.get("error"),
                }
            )
    return pd.DataFrame(lines)


def probe_usage(paths, *, unfinished="error"):
    """Add up tokens and costs of probe records, those without an initial answer included.

    Parameters
    ----------
    paths, unfinished
        As in `answers`.

    Returns
    -------
    dict
        `calls, tokens_in, tokens_out, cost` (None where no call has one).

    Examples
    --------
    >>> probe_usage("logs")  # doctest: +SKIP
    """
    calls = tokens_in = tokens_out = 0
    costs = []
    for record in _probe_records(paths, unfinished):
        calls += 1 + record["initial_repair_attempts"] + len(record["probe_results"])
        tokens_in += record["usage"]["prompt_tokens"]
        tokens_out += record["usage"]["completion_tokens"]
        costs += [record["total_cost"]] if record.get("total_cost") is not None else []
    return {
        "calls": calls,
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
        "cost": sum(costs) if costs else None,
    }


def _probe_records(paths, unfinished):
    seen = set()
    for path in _paths(paths):
        for sample in samples(path, unfinished=unfinished):
            found = (sample.get("store") or {}).get("probe")
            if found is None:
                raise DataError(
                    f"{path}, sample {sample['id']!r}: no probes; expected a log of analysis/collect/probe.py"
                )
            for record in found["records"]:
                key = str(sample["id"]), sample["epoch"], record["condition"], record["agent_idx"]
                if key in seen:
                    continue
                seen.add(key)
                results = [{"post_answer": None} | probe for probe in record["probe_results"]]
                yield {"initial_answer": None} | record | {"probe_results": results}


def _without_texts(record):
    results = [
        {name: value for name, value in probe.items() if name not in ("text", "challenge")}
        for probe in record["probe_results"]
    ]
    return {name: value for name, value in record.items() if name != "initial_text"} | {
        "probe_results": results
    }


def write_probes(paths, target, **options):
    """Write probe records as JSON-lines, as `analysis.probes.read` takes them.

    Parameters
    ----------
    paths : as in `answers`
    target : str or Path
        Written beside and renamed.
    **options
        As in `probe_records`.

    Returns
    -------
    Path

    Examples
    --------
    >>> write_probes("logs", "probes.jsonl")  # doctest: +SKIP
    """
    target = Path(target)
    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in probe_records(paths, **options)]
    if not lines:
        named = ", ".join(map(str, paths if isinstance(paths, (list, tuple)) else [paths]))
        raise DataError(f"{named}: no probe record with an initial answer; expected at least one")
    beside = target.with_name(f".{target.name}.new")
    beside.write_text("".join(lines), encoding="utf-8")
    beside.replace(target)
    return target


def probes(paths, *, row=None, unfinished="error"):
    """Read probes into one line a probe, as `analysis.probes.read` does.

    Parameters
    ----------
    paths, unfinished
        As in `answers`.
    row : str, optional
        Name of the row; the model's if left out.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> probes("logs")  # doctest: +SKIP
    """
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return probe_frames.read(
            write_probes(paths, Path(folder, "probes.jsonl"), unfinished=unfinished),
            row=row,
            on_duplicate="replicate",
        )
