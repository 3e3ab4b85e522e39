"""Give an added row out: its open tier as files that this project, or anybody, can read again.

The files are made from what is stored under data/rows, which holds labels and counts but no text: neither
replies nor the wording of a probe can get into them.
"""

import hashlib
import json
import shutil
import tempfile
from datetime import date
from pathlib import Path

import pandas as pd

from analysis import cards, cards_rows, croissant, probes, rows, schemas, stored, traces
from analysis.errors import DataError, choice

TIERS = ("open",)
DEBATES, FEATURES, PROBES = "debates.jsonl", "debates.csv", "probes.jsonl"
REUSE, COST = "reuse_card.json", "cost_card.json"

_DESCRIBED = {
    DEBATES: "Debates in layout B, one a line: labels of each agent and round, no text.",
    FEATURES: "Debates as a feature matrix, one a line, without answers.",
    PROBES: "Probe records, one a line: question, condition and agent, and what became of the answer under each probe.",
    REUSE: "Reuse card: identity, questions, fingerprint, ledger, gates and release of the row.",
    COST: "Cost card: calls and, where they were logged, tokens and cost of each step.",
}
_FORMAT = {".jsonl": "application/jsonlines", ".csv": "text/csv", ".json": "application/json"}
_FIELDS = {
    "question_id": ("sc:Text", "question, by its id"),
    "correct_label": ("sc:Text", "right answer"),
    "replicate": ("sc:Integer", "which debate, or record, of the question, from 0"),
    "row": ("sc:Text", "row"),
    "model": ("sc:Text", "row"),
    "model_name": ("sc:Text", "model as readers know it"),
    "condition": ("sc:Text", "system prompt: default, anti_social or anti_argument"),
    "agent_idx": ("sc:Text", "agent"),
    "initial_answer": ("sc:Text", "answer before any counterargument; null where none could be read"),
    "initial_correct": ("sc:Boolean", "whether it is right"),
    "collapsed": ("sc:Integer", "1 where the first majority is right and the last wrong"),
    "corrected": ("sc:Integer", "1 where the first majority is wrong and the last right"),
    "init_correct": ("sc:Integer", "1 where the first majority is right"),
    "final_correct": ("sc:Integer", "1 where the last majority is right"),
}


def write(row_id, folder, *, tier="open", license=None, creator=None, published=None):
    """Write the open tier of an added row into a folder.

    Parameters
    ----------
    row_id : str
        One of `rows.ids`.
    folder : path
        New, or empty. It is made beside its place and renamed into it.
    tier : {"open"}
        What may be given out.
    license, creator : str, optional
        For the metadata: address of the licence, name of a person or group.
    published : datetime.date, optional
        For the metadata; today unless given.

    Returns
    -------
    DataFrame
        One line a file: `file, bytes, sha256`.

    Raises
    ------
    DataError
        There is no such row, or the folder holds something, is a file, or its parent is missing.
    ValueError
        Another tier.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", A.3.2 and data appendix.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as place:
    ...     write("smollm2-135m", Path(place, "out"))["file"].tolist()
    ['debates.jsonl', 'probes.jsonl', 'reuse_card.json', 'cost_card.json', 'croissant.json']
    """
    choice("tier", tier, TIERS)
    told, folder = rows.card(row_id), Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{folder}: is there already; expected a new or an empty folder")
    if not folder.parent.is_dir():
        raise DataError(f"{folder}: there is no folder {folder.parent}; expected one")
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        names = [_write_debates(told, made), *_write_probes(told, made)]
        card = cards_rows.added(
            row_id,
            tie="alphabetic",
            missing="initially_wrong",
            interval="wilson",
            weights={"w_coll": 1.0, "w_corr": 1.0},
            metadata_file=schemas.METADATA,
        )
        _put(made / REUSE, cards.to_json(card))
        _put(made / COST, _json(cost_card(row_id)))
        names += [REUSE, COST]
        about = metadata(told, made, names, license=license, creator=creator, published=published or date.today())
        _put(made / schemas.METADATA, _json(about))
        listed = [_listed(made / name) for name in (*names, schemas.METADATA)]
        made.chmod(0o755)
        if folder.is_dir():
            folder.rmdir()  # empty: not every system renames onto a folder
        made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return pd.DataFrame(listed)


def _put(path, text):
    path.write_text(text, encoding="utf-8", newline="\n")


def _json(value):
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _listed(path):
    content = path.read_bytes()
    return {"file": path.name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


# --- records ------------------------------------------------------------------------------------------------


def _write_debates(told, folder):
    if told.n_answers is None:
        _features(told).to_csv(folder / FEATURES, index=False, lineterminator="\n")
        return FEATURES
    more = {"model_name": told.model, "release_tier": "open", "arm": told.arm, "quality_control": told.quality_control}
    more |= {"benchmark": (told.model_extra or {}).get("benchmark"), "synthetic": told.synthetic or None}
    traces.write_open_tier(
        stored.answers([told.id]),
        folder / DEBATES,
        more={name: value for name, value in more.items() if value is not None},
    )
    return DEBATES


def _features(told):
    """The columns of the released matrix, from the stored one."""
    debates = rows.debates([told.id])
    last = told.n_rounds
    out = pd.DataFrame({
        "model": debates["row"],
        "question_id": debates["question"],
        "correct_label": debates["gold"],
        "collapsed": (debates["cell"] == "collapse").astype(int),
        "corrected": (debates["cell"] == "correction").astype(int),
        "final_correct": debates[f"correct_{last}"].astype(int),
        "init_correct": debates["correct_0"].astype(int),
        "init_unanimous": debates["unanimous_0"].astype(int),
        "init_agree_frac": debates["agree_0"],
        "r1_n_flipped_from_init": debates["n_flipped_1"].astype(int),
    })
    for k in range(1, last + 1):
        out[f"r{k}_majority_changed"] = debates[f"changed_{k}"].astype(int)
        out[f"r{k}_majority_correct"] = debates[f"correct_{k}"].astype(int)
        out[f"r{k}_agree_frac"] = debates[f"agree_{k}"]
    return out.assign(cascade_round=debates["onset"])


def _write_probes(told, folder):
    frame = stored.probes([told.id])
    if not len(frame):
        return []
    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in _records(frame, told)]
    _put(folder / PROBES, "".join(lines))
    return [PROBES]


def _records(frame, told):
    """Probe records from one line a probe; what a line does not tell is left out of its record."""
    frame = frame.astype(object).where(frame.notna(), None)
    for _, lines in frame.groupby(probes.RECORD, sort=False, dropna=False):
        lines = lines.to_dict("records")
        head = lines[0]
        record = {
            "question_id": head["question"],
            "correct_label": head["gold"],
            "condition": head["condition"],
            "agent_idx": head["agent"],
            "replicate": int(head["replicate"]),
            "model_name": told.model,
            "release_tier": "open",
            "initial_answer": head["initial_answer"],
            "initial_correct": head["initial_correct"],
            "probe_results": [_result(line) for line in lines],
        }
        yield {name: value for name, value in record.items() if value is not None or name.endswith("_answer")}


def _result(line):
    told = {name: line[name] for name in ("strength", "strength_value", "social", "alt_answer") if line[name] is not None}
    if line["parsed"] is not None:  # without an answer there is only the flag
        told["post_answer"] = line["post_answer"]
    return told | {"revised": bool(line["revised"])}


# --- cards --------------------------------------------------------------------------------------------------


def cost_card(row_id):
    """What a row took: generations that its records hold, and what its logs tell of calls, tokens and cost.

    Parameters
    ----------
    row_id : str
        One of `rows.ids`.

    Returns
    -------
    dict
        `row`, `generations` (released names of the cost card: counts of records; missing where there are none), `steps` (of the logs;
        `told` counts the calls that tell their tokens), `total` of the steps, and `note`.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", Table 11.

    Examples
    --------
    >>> [step["step"] for step in cost_card("smollm2-135m")["steps"]]
    ['initial', 'debate', 'probe']
    """
    told, asked = rows.card(row_id), stored.probes([row_id])
    found = {
        "approx_debate_completions": told.n_answers,
        "initial_answer_rows": len(asked[probes.RECORD].drop_duplicates()) or None,
        "probe_completions": len(asked) or None,
    }
    steps = None if told.usage is None else [step.model_dump(exclude_none=True) for step in told.usage]
    names = ("calls", "told", "tokens_in", "tokens_out", "tokens_reasoning", "cost")
    told_by = {name: [step[name] for step in steps or [] if name in step] for name in names}
    return {
        "schema_version": "cost_card.v1",
        "row": row_id,
        "generations": {name: n for name, n in found.items() if n is not None},
        "steps": steps,
        "total": {name: sum(values) for name, values in told_by.items() if values} if steps else None,
        "note": (
            "Calls, tokens and cost as the logs tell them, format repairs included; Round 0 once, though further arms may share it."
            if steps
            else "Tokens and cost are not told: the row was not made from logs."
        ),
    }


def metadata(told, folder, names, *, license, creator, published):
    """Croissant description of exported files.

    Parameters
    ----------
    told : rows.Row
    folder : Path
        Where the files are.
    names : list of str
        The files.
    license, creator : str or None
    published : datetime.date

    Returns
    -------
    dict
        JSON-LD: a file object with checksum a file, a record set for debates and one for probes.

    References
    ----------
    Croissant format 1.0, mlcommons.org/croissant.

    Examples
    --------
    >>> metadata(rows.card("smollm2-135m"), Path("."), [], license=None, creator=None, published=date(2026, 1, 2))["name"]
    'debate-row-smollm2-135m'
    """
    kind = "Made-up debates" if told.synthetic else f"Debates of {told.model}"
    checked = "" if told.quality_control is None else f" Strict quality control of the run: {told.quality_control}."
    about = {
        "name": f"debate-row-{told.id}",
        "description": (
            f"{kind} on multiple-choice questions, open tier: labels by question, round and agent, probe outcomes, and cards."
            f" No question text, no model text and no wording of a probe is included.{checked}"
        ),
        "url": f"urn:debate-row:{told.id}",
        "citeAs": f"{told.model}: debates and probes, row {told.id}.",
        "datePublished": published.isoformat(),
        "version": "1.0.0",
        "inLanguage": "en",
    }
    about |= {"license": license} if license else {}
    about |= {"creator": [{"@type": "Organization", "name": creator}]} if creator else {}
    return {
        "@context": croissant.CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        **about,
        "distribution": [_file(folder / name) for name in names],
        "recordSet": [_record_set(folder / name) for name in names if name in (DEBATES, FEATURES, PROBES)],
    }


def _file(path):
    found = _listed(path)
    return {
        "@type": "cr:FileObject",
        "@id": path.name,
        "name": path.name,
        "description": _DESCRIBED[path.name],
        "contentUrl": path.name,
        "encodingFormat": _FORMAT[path.suffix],
        "contentSize": f"{found['bytes']} B",
        "sha256": found["sha256"],
    }


def _record_set(path):
    with open(path, encoding="utf-8") as stream:
        first = stream.readline()
    there = first.strip().split(",") if path.suffix == ".csv" else json.loads(first)
    kind = path.stem
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"{kind}/{name}",
            "name": name,
            "dataType": type,
            "description": meaning,
            "source": {"fileObject": {"@id": path.name}, "extract": {"column": name}},
        }
        for name, (type, meaning) in _FIELDS.items()
        if name in there
    ]
    return {"@type": "cr:RecordSet", "@id": kind, "name": kind, "field": fields}
