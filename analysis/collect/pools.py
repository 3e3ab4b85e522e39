"""Question pools: items with options or a numeric answer, from the hub, from a file or made here."""

import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from analysis import probes as probe_records
from analysis import records as files
from analysis.answers import canonical_number
from analysis.errors import DataError, choice

LETTERS = "ABCDEFGHIJ"  # what the reference coder reads; an item with more options loses wrong ones
MADE_HERE = ("arithmetic", "logic", "mixed")


@dataclass(frozen=True)
class Item:
    """One question: its options and the letter of the right one, or no options and a number as the answer."""

    id: str
    question: str
    options: tuple[str, ...]
    gold: str
    source: str
    licence: str
    gated: bool = False
    category: str = ""

    @property
    def labels(self):
        """Letters of the options, "" for an item with a numeric answer."""
        return LETTERS[: len(self.options)]


@dataclass(frozen=True)
class Hub:
    """Where a benchmark lies on the Hugging Face hub, under which terms, and how its records read."""

    path: str
    split: str
    licence: str
    to_item: Callable
    name: str | None = None
    gated: bool = False


# --- benchmarks on the hub ----------------------------------------------------------------------------------


def _letter(position):
    return LETTERS[position]


def _shuffled(id, right, wrong):
    """Options in an order that depends on the item's id alone, and the letter of the right one."""
    order = random.Random(id)
    if len(wrong) >= len(LETTERS):
        wrong = order.sample(wrong, len(LETTERS) - 1)
    options = [right, *wrong]
    order.shuffle(options)
    return tuple(options), _letter(options.index(right))


def _mmlu_pro(record):
    return {
        "id": f"mmlu_pro-{record['question_id']}",
        "question": record["question"],
        "options": tuple(record["options"]),
        "gold": record["answer"],
        "category": record["category"],
    }


def _gpqa(record):
    wrong = [record[f"Incorrect Answer {k}"].strip() for k in (1, 2, 3)]
    options, gold = _shuffled(record["Record ID"], record["Correct Answer"].strip(), wrong)
    return {
        "id": f"gpqa-{record['Record ID']}",
        "question": record["Question"],
        "options": options,
        "gold": gold,
        "category": record["High-level domain"],
    }


def _arc(record):
    labels = list(record["choices"]["label"])  # A-E, in some items 1-5
    return {
        "id": f"arc-{record['id']}",
        "question": record["question"],
        "options": tuple(record["choices"]["text"]),
        "gold": _letter(labels.index(record["answerKey"])),
    }


def _truthfulqa(record):
    told = record["mc1_targets"]
    right = told["choices"][list(told["labels"]).index(1)]
    wrong = [text for text, label in zip(told["choices"], told["labels"], strict=True) if label == 0]
    id = "truthfulqa-" + hashlib.sha256(record["question"].encode()).hexdigest()[:10]
    options, gold = _shuffled(id, right, wrong)
    return {"id": id, "question": record["question"], "options": options, "gold": gold}


def _gsm8k(record):
    id = "gsm8k-" + hashlib.sha256(record["question"].encode()).hexdigest()[:10]
    return {
        "id": id,
        "question": record["question"],
        "options": (),
        "gold": record["answer"].rsplit("####", 1)[-1].strip(),
    }


def _supergpqa(record):
    return {
        "id": f"supergpqa-{record['uuid']}",
        "question": record["question"],
        "options": tuple(record["options"]),
        "gold": record["answer_letter"],
        "category": record["discipline"],
    }


# Licence and gate as the dataset cards state them. GPQA is handed out after its terms are accepted on the
# hub, and its authors ask that items are not shown in plain text: its pool counts as gated.
HUB = {
    "mmlu_pro": Hub("TIGER-Lab/MMLU-Pro", "test", "MIT", _mmlu_pro),
    "gpqa": Hub("Idavidrein/gpqa", "train", "CC-BY-4.0", _gpqa, name="gpqa_diamond", gated=True),
    "arc_challenge": Hub("allenai/ai2_arc", "test", "CC-BY-SA-4.0", _arc, name="ARC-Challenge"),
    "truthfulqa": Hub(
        "truthfulqa/truthful_qa", "validation", "Apache-2.0", _truthfulqa, name="multiple_choice"
    ),
    "gsm8k": Hub("openai/gsm8k", "test", "MIT", _gsm8k, name="main"),
    "supergpqa": Hub("m-a-p/SuperGPQA", "train", "ODC-BY", _supergpqa),
}


def from_record(pool, record):
    """Turn one record of a benchmark on the hub into an item.

    Parameters
    ----------
    pool : str
        A name in `HUB`.
    record : dict
        As the hub's `datasets` library gives it.

    Returns
    -------
    Item

    Raises
    ------
    DataError
        The record lacks a field or its answer is none of its options.

    Examples
    --------
    >>> record = {"question": "2+2, then 3 more?", "answer": "2+2=4, 4+3=7\\n#### 7"}
    >>> from_record("gsm8k", record).gold
    '7'
    """
    hub = HUB[choice("pool", pool, tuple(HUB))]
    try:
        fields = hub.to_item(record)
    except (KeyError, ValueError, IndexError, AttributeError, TypeError) as problem:
        raise DataError(
            f"{hub.path}: a record that cannot be read ({type(problem).__name__}: {problem}); "
            f"it has {', '.join(map(str, record))}"
        ) from problem
    return _checked(Item(**fields, source=hub.path, licence=hub.licence, gated=hub.gated), hub.path)


def _checked(item, where):
    """Refuse an item that cannot be asked; write its numeric answer in canonical form."""
    at = f"{where}, item {item.id!r}"
    if not isinstance(item.question, str) or not item.question.strip():
        raise DataError(f"{at}, field 'question': {item.question!r}; expected a text")
    if not item.options:
        number = canonical_number(item.gold)
        if number is None:
            raise DataError(
                f"{at}, field 'gold': {item.gold!r}; expected a number, as the item has no options"
            )
        return replace(item, gold=number)
    if not 2 <= len(item.options) <= len(LETTERS):
        raise DataError(f"{at}, field 'options': {len(item.options)}; expected 2 to {len(LETTERS)}")
    if not all(isinstance(text, str) and text.strip() for text in item.options):
        raise DataError(f"{at}, field 'options': an option is empty or no text; expected a text each")
    if item.gold not in item.labels:
        raise DataError(f"{at}, field 'gold': {item.gold!r}; expected one of {', '.join(item.labels)}")
    return item


# --- files --------------------------------------------------------------------------------------------------

_QUESTION = ("question", "text", "prompt")
_GOLD = ("gold", "answer", "correct_label", "answer_letter", "target")
_ID = ("id", "question_id", "qid", "uuid")


def read(path, *, licence="unknown", gated=False):
    """Read a pool from a CSV or JSON-lines file.

    Parameters
    ----------
    path : str or Path
        One item a line: `question`, `gold` (a letter, an option's text, or a number where there are no
        options), and `options` (a list; in CSV, JSON or columns `A`, `B`, ...). `id`, `licence`, `gated` and
        `category` may be given; items without an id are named by their question.
    licence : str
        Terms of items that name none.
    gated : bool
        Whether items that do not say may be shown only to those who accepted terms.

    Returns
    -------
    list of Item

    Raises
    ------
    DataError
        A line cannot be used, or two items have one id.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "pool.csv")
    >>> _ = path.write_text("id,question,A,B,gold\\nq1,Is water wet?,yes,no,A\\n")
    >>> read(path)[0].options
    ('yes', 'no')
    """
    path = Path(path)
    frame, damage = files.records(path)
    if damage:
        raise DataError(damage[0])
    items, seen = [], {}
    for line, record in zip(frame.index, frame.to_dict("records"), strict=True):
        where = f"{path}, line {line}"
        record = {name: value for name, value in record.items() if not _missing(value)}
        item = _checked(_item(record, where, path.name, licence, gated), where)
        if item.id in seen:
            raise DataError(
                f"{where}, field 'id': {item.id!r} is on line {seen[item.id]} already; expected it once"
            )
        seen[item.id] = line
        items.append(item)
    return items


def _missing(value):
    return value is None or (
        not isinstance(value, (list, tuple, np.ndarray, dict)) and (pd.isna(value) or value == "")
    )


def _first(record, names, where):
    for name in names:
        if name in record:
            return record[name]
    raise DataError(f"{where}: no field {names[0]!r}; found {', '.join(map(str, record))}")


def _item(record, where, source, licence, gated):
    question = str(_first(record, _QUESTION, where))
    gold = str(_first(record, _GOLD, where)).strip()
    options = tuple(map(str, _options(record, where)))
    if options and gold not in LETTERS[: len(options)] and options.count(gold) == 1:
        gold = _letter(options.index(gold))
    id = next((str(record[name]) for name in _ID if name in record), None)
    id = id or "q" + hashlib.sha256(question.encode()).hexdigest()[:10]
    said = record.get("gated", gated)
    return Item(
        id=id,
        question=question,
        options=options,
        gold=gold,
        source=source,
        licence=str(record.get("licence", licence)),
        gated=said if isinstance(said, bool) else str(said).strip().lower() in ("1", "true", "yes"),
        category=str(record.get("category", "")),
    )


def _options(record, where):
    told = record.get("options", record.get("choices"))
    if told is None:
        named = [letter for letter in LETTERS if letter in record]
        if named != list(LETTERS[: len(named)]):
            raise DataError(f"{where}: options {', '.join(named)}; expected A, B, C, ... without a gap")
        return [record[letter] for letter in named]
    if isinstance(told, str):
        try:
            told = json.loads(told)
        except ValueError:
            raise DataError(f"{where}, field 'options': {told[:60]!r}; expected a JSON list") from None
    if isinstance(told, (list, tuple, np.ndarray)):
        return list(told)
    raise DataError(f"{where}, field 'options': {str(told)[:60]!r}; expected a list")


# --- any pool -----------------------------------------------------------------------------------------------


def load(pool, *, n=None, seed=0, difficulty=None, selection=None, revision=None):
    """Load a pool by its name or from its file.

    Parameters
    ----------
    pool : str
        A name in `HUB` (downloaded by Inspect through the `datasets` library), one of `MADE_HERE`, or the
        path of a CSV or JSON-lines file.
    n : int, optional
        Number of items: drawn at random from the hub's or the file's, which come whole and in their own order
        if left out; made, 50 if left out, where they are made here.
    seed : int
        Of the draw, or of the making.
    difficulty : int, optional
        1 (easy) to 3, of items made here; all three in turn if left out.
    selection : str or Path, optional
        File written by `write_selection`: only its questions are kept, whatever `n`, in its order.
    revision : str, optional
        Commit of the hub's dataset.

    Returns
    -------
    list of Item

    Raises
    ------
    DataError
        There is no such pool, or it lacks questions.

    Examples
    --------
    >>> [len(item.options) >= 4 for item in load("arithmetic", n=2)]
    [True, True]
    """
    if pool in MADE_HERE:
        from analysis.collect import puzzles

        items = puzzles.make(50 if n is None else n, kind=pool, seed=seed, difficulty=difficulty)
    else:
        if pool in HUB:
            items = _download(pool, revision)
        elif Path(pool).is_file():
            items = read(pool)
        else:
            raise DataError(
                f"pool {pool!r}: no such file, and expected one of {', '.join([*HUB, *MADE_HERE])}"
            )
        if n is not None and selection is None:
            if n > len(items):
                raise DataError(f"pool {pool!r}: {len(items)} items; n={n} is more than there are")
            items = random.Random(seed).sample(items, n)
    return items if selection is None else _selected(items, selection)


def _download(pool, revision):
    from inspect_ai.dataset import hf_dataset

    hub = HUB[pool]
    found = hf_dataset(
        hub.path,
        split=hub.split,
        name=hub.name,
        revision=revision,
        sample_fields=lambda record: to_sample(from_record(pool, record)),
    )
    return [from_sample(sample) for sample in found]


def to_sample(item):
    """Turn an item into an Inspect sample, which carries the item in its metadata.

    Examples
    --------
    >>> to_sample(Item("q", "1+1?", ("1", "2"), "B", "mine", "MIT")).target  # doctest: +SKIP
    'B'
    """
    from inspect_ai.dataset import Sample

    return Sample(
        input=item.question,
        choices=list(item.options) or None,
        target=item.gold,
        id=item.id,
        metadata={"item": asdict(item)},
    )


def from_sample(sample):
    """Take the item back out of a sample's metadata.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> fields = asdict(Item("q", "1+1?", ("1", "2"), "B", "mine", "MIT"))
    >>> from_sample(SimpleNamespace(metadata={"item": fields})).labels
    'AB'
    """
    fields = dict(sample.metadata["item"])
    return Item(**fields | {"options": tuple(fields["options"])})


def card(pool, items):
    """Say what a pool is: for the log, so that two runs can be told to have asked the same questions.

    Parameters
    ----------
    pool : str
        Its name, or path.
    items : list of Item

    Returns
    -------
    dict
        `pool`, `n`, `sha256` over the items in their order, and the distinct `source`, `licence` and whether
        any item is `gated`.

    Examples
    --------
    >>> card("mine.csv", [Item("q", "1+1?", ("1", "2"), "B", "mine.csv", "MIT")])["licence"]
    ['MIT']
    """
    text = json.dumps([asdict(item) for item in items], sort_keys=True, ensure_ascii=False)
    return {
        "pool": Path(pool).name,
        "n": len(items),
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "source": sorted({item.source for item in items}),
        "licence": sorted({item.licence for item in items}),
        "gated": any(item.gated for item in items),
    }


# --- outcome-blind selection --------------------------------------------------------------------------------


def select_high_flip(probes, n=200):
    """Rank questions by how often the model revised under the non-social probes, and keep the most revisable.

    Looks at probe behaviour only: a frame with debate outcomes in it is refused.

    Parameters
    ----------
    probes : DataFrame
        One line a probe, from `analysis.probes.read`; one row.
    n : int
        Questions to keep.

    Returns
    -------
    DataFrame
        `question, k` revisions, `n` non-social probes of the default condition, `rate`, `rank` (1 = most
        revisable; equal rates by question id) and `selected`, all questions in order of rank.

    Raises
    ------
    DataError
        Several rows, fewer than `n` questions, or outcome columns.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. B.1.

    Examples
    --------
    >>> seen = pd.DataFrame({"row": "m", "question": ["q1", "q1", "q2"], "condition": "default",
    ...                      "parsed": True, "social": [False, True, False], "revised": [False, True, True]})
    >>> select_high_flip(seen, n=1)[["question", "rate", "selected"]].values.tolist()
    [['q2', 1.0, True], ['q1', 0.0, False]]
    """
    outcomes = {"cell", "collapsed", "corrected", "majority_answer", "final_correct"} & set(probes)
    if outcomes:
        raise DataError(
            f"probes: columns {', '.join(sorted(outcomes))} are outcomes of debates; expected probes only"
        )
    if probes["row"].nunique() != 1:
        raise DataError(
            f"probes: {probes['row'].nunique()} rows; expected one: questions are selected model by model"
        )
    solo = probes[~probes["social"].astype("boolean").fillna(False).to_numpy(bool)]
    rate = probe_records.flip_rate(solo, by="question")[["question", "k", "n", "rate"]]
    if len(rate) < n:
        raise DataError(f"probes: {len(rate)} questions; expected at least the {n} to select")
    ranked = rate.sort_values(["rate", "question"], ascending=[False, True], ignore_index=True)
    return ranked.assign(rank=np.arange(1, len(ranked) + 1), selected=np.arange(len(ranked)) < n)


def write_selection(ranked, path, *, pool, probes_file=None):
    """Write a selection with what it was made from.

    Parameters
    ----------
    ranked : DataFrame
        From `select_high_flip`.
    path : str or Path
        JSON file; written beside and renamed.
    pool : str
        Name of the pool that was probed.
    probes_file : str or Path, optional
        File of the probes, whose digest is stored.

    Returns
    -------
    dict
        What was written: `rule, pool, n_pool, n, threshold` (lowest rate selected), `probes_sha256,
        questions`.

    Examples
    --------
    >>> import tempfile
    >>> ranked = pd.DataFrame({"question": ["q2", "q1"], "rate": [1.0, 0.0], "selected": [True, False]})
    >>> write_selection(ranked, Path(tempfile.mkdtemp(), "s.json"), pool="mixed")["questions"]
    ['q2']
    """
    path = Path(path)
    chosen = ranked[ranked["selected"]]
    digest = hashlib.sha256(Path(probes_file).read_bytes()).hexdigest() if probes_file else None
    told = {
        "rule": "top n by solo flip rate in the default condition; no debate outcome was read",
        "pool": pool,
        "n_pool": len(ranked),
        "n": len(chosen),
        "threshold": float(chosen["rate"].min()),
        "probes_sha256": digest,
        "questions": chosen["question"].tolist(),
    }
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    beside.replace(path)
    return told


def _selected(items, path):
    try:
        told = json.loads(Path(path).read_text(encoding="utf-8"))
        wanted = told["questions"]
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{path}: no selection; expected a file written by write_selection") from None
    by_id = {item.id: item for item in items}
    lacking = [id for id in wanted if id not in by_id]
    if lacking:
        raise DataError(f"{path}: question {lacking[0]!r} (of {len(lacking)}) is not in the pool")
    return [by_id[id] for id in wanted]
