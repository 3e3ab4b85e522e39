"""Probe records and what they say about revisability: one agent, asked again under a counter-argument.

A record is one question asked of one agent under one condition; it holds several probes. `read` gives one
line a probe, the measures count over those lines.

Reference: "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sections 3.1 and 3.2.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from analysis import records as files, stats
from analysis.errors import DataError, choice

CONDITIONS = ("default", "anti_social", "anti_argument")
STRENGTHS = ("weak", "moderate", "strong", "very_strong")
UNPARSED = ("no_revision", "drop")
DUPLICATES = ("error", "last", "replicate")

# Names in the files, where they differ from ours; the first one present counts.
_RECORD_NAMES = {"question": ("question_id",), "gold": ("correct_label",), "agent": ("agent_idx", "agent_id")}
_KEY = ["row", "question", "condition", "agent"]


# --- reading ------------------------------------------------------------------------------------------------


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
        resumed run), or count them as replicates.

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
        key = tuple(head[name] for name in _KEY)
        if key in seen and on_duplicate == "error":
            known = f"question {key[1]!r}, condition {key[2]!r}, agent {key[3]!r}"
            raise DataError(
                f"{where}: {known} is on line {seen[key][0]} already; expected one record. "
                "on_duplicate='last' lets the later replace it, 'replicate' keeps both"
            )
        before = seen.get(key, (line, -1))[1]
        replicate = before + 1 if on_duplicate == "replicate" else 0
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


# --- measures -----------------------------------------------------------------------------------------------


def _pool(probes, unparsed, conditions):
    """The probes that count, and whether each is a revision."""
    choice("unparsed", unparsed, UNPARSED)
    choice("conditions", conditions, ("default", "all"))
    if conditions == "default":
        probes = probes[(probes["condition"] == "default").to_numpy(bool)]
    # Where a source stores no answer after the probe, its flag is all there is: the probe counts as parsed.
    parsed = probes["parsed"].astype("boolean").fillna(True).to_numpy(bool)
    if unparsed == "drop":
        probes, parsed = probes[parsed], parsed[parsed]
    return probes, probes["revised"].to_numpy(bool) & parsed, parsed


def _rate(each, keys, k, n, interval):
    """Sums of events and trials by keys, with their rate."""
    out = pd.DataFrame({"k": np.asarray(k, dtype=int), "n": np.asarray(n, dtype=int)}, index=each.index)
    if keys:
        out = out.groupby([each[key] for key in keys], sort=False, dropna=False).sum()
    else:
        out = out.sum().to_frame().T
    found = stats.proportion(out["k"], out["n"], interval=interval)
    return out.assign(rate=found["rate"], low=found["low"], high=found["high"])


def _keys(by):
    return [] if by is None else [by] if isinstance(by, str) else list(by)


def flip_rate(probes, *, by="row", unparsed="no_revision", conditions="default", interval="wilson"):
    """Share of probes after which the agent changed its answer.

    Parameters
    ----------
    probes : DataFrame
        One line a probe, from `read`.
    by : str or list of str or None
        Columns that name a line of the result, such as ["row", "condition"]; None pools everything.
    unparsed : {"no_revision", "drop"}
        A probe without a readable answer is no revision (the paper), or is not counted at all.
    conditions : {"default", "all"}
        Plain probes only, or those under the two manipulated system prompts too.
    interval : {"wilson", "jeffreys"}
        95% interval; it takes probes as independent, although several share a question.

    Returns
    -------
    DataFrame
        `by`, `k` revisions, `n` probes, `rate` (fraction: the paper's alpha) with its interval `low` and
        `high`, and `n_unparsed` among the n.

    Raises
    ------
    ValueError
        An option is not one of those listed.

    References
    ----------
    Equation 1, section 3.2; unparsed answers: section A.3.3.

    Examples
    --------
    >>> asked = pd.DataFrame({"row": "m", "condition": "default", "revised": [True, False, False],
    ...                       "parsed": [True, True, False]})
    >>> flip_rate(asked)[["row", "k", "n", "rate", "n_unparsed"]].round(3).to_dict("records")
    [{'row': 'm', 'k': 1, 'n': 3, 'rate': 0.333, 'n_unparsed': 1}]
    >>> flip_rate(asked, unparsed="drop")["rate"].item()
    0.5
    """
    each, revised, parsed = _pool(probes, unparsed, conditions)
    keys = _keys(by)
    every = np.ones(len(each))
    out = _rate(each, keys, revised, every, interval)
    out["n_unparsed"] = _rate(each, keys, ~parsed, every, interval)["k"]
    return out.reset_index(drop=not keys)


def decompose(probes, *, by="row", unparsed="no_revision", conditions="default", interval="wilson"):
    """Split the flip rate by where the agent started.

    Parameters
    ----------
    probes : DataFrame
        One line a probe, from `read`, with `gold`.
    by, unparsed, conditions, interval
        As for `flip_rate`.

    Returns
    -------
    DataFrame
        `by`, `channel`, `k` events, `n` trials, `rate` (fraction), `low`, `high`. Channels: "adv" (right to
        wrong, of probes that start right), "cor" (wrong to right) and "neutral" (wrong to another wrong),
        both of probes that start wrong. A probe without an initial answer starts neither right nor wrong.

    Raises
    ------
    DataError
        A probe has no gold label, or no answer after the probe was stored.

    References
    ----------
    Equation 5, section 3.2; Table 19.

    Examples
    --------
    >>> asked = pd.DataFrame({"row": "m", "condition": "default", "gold": "A", "parsed": True,
    ...                       "initial_answer": list("AABB"), "post_answer": list("BAAC"), "revised": True})
    >>> decompose(asked).set_index("channel")["rate"].to_dict()
    {'adv': 0.5, 'cor': 0.5, 'neutral': 0.5}
    """
    for field, needed in (("gold", "gold"), ("post_answer", "parsed")):
        if probes[needed].isna().any():
            at = probes[probes[needed].isna()].iloc[0]
            where = f"row {at['row']!r}, question {at.get('question')!r}"
            raise DataError(f"{where}, field {field!r}: not stored; the channels need it")
    each, _, parsed = _pool(probes, unparsed, conditions)
    start = each["initial_answer"].notna().to_numpy()
    right = start & (each["initial_answer"] == each["gold"]).to_numpy(bool)
    wrong = start & ~right
    hit = (each["post_answer"] == each["gold"]).to_numpy(bool)
    moved = parsed & (each["post_answer"] != each["initial_answer"]).to_numpy(bool)
    keys = _keys(by)
    other = wrong & moved & ~hit
    channels = {"adv": (right & moved, right), "cor": (wrong & hit, wrong), "neutral": (other, wrong)}
    parts = {channel: _rate(each, keys, *counts, interval) for channel, counts in channels.items()}
    out = pd.concat(parts, names=["channel"]).reset_index(level="channel")
    order = [*keys, "channel", "k", "n", "rate", "low", "high"]
    return out.reset_index(drop=not keys)[order]
