"""Pools: records of benchmarks, files, items made here (solved by other means), selection."""

import datetime
import itertools
import json
import re

import pandas as pd
import pytest

from analysis.collect import pools
from analysis.errors import DataError

RECORDS = {
    "mmlu_pro": (
        {
            "question_id": 70,
            "question": "Q?",
            "options": ["a", "b", "c"],
            "answer": "C",
            "answer_index": 2,
            "category": "law",
            "src": "x",
        },
        "mmlu_pro-70",
        "c",
    ),
    "gpqa": (
        {
            "Record ID": "rec1",
            "Question": "Q?",
            "Correct Answer": " right ",
            "Incorrect Answer 1": "w1",
            "Incorrect Answer 2": "w2\n",
            "Incorrect Answer 3": "w3",
            "High-level domain": "Physics",
        },
        "gpqa-rec1",
        "right",
    ),
    "arc_challenge": (
        {
            "id": "Mercury_1",
            "question": "Q?",
            "choices": {"text": ["a", "b", "c", "d"], "label": ["1", "2", "3", "4"]},
            "answerKey": "3",
        },
        "arc-Mercury_1",
        "c",
    ),
    "truthfulqa": (
        {"question": "Q?", "mc1_targets": {"choices": ["right", *"abcdefghijkl"], "labels": [1] + 12 * [0]}},
        None,
        "right",
    ),
    "supergpqa": (
        {
            "uuid": "u1",
            "question": "Q?",
            "options": ["a", "b", "c", "d"],
            "answer": "d",
            "answer_letter": "D",
            "discipline": "Law",
        },
        "supergpqa-u1",
        "d",
    ),
}


@pytest.mark.parametrize("pool", RECORDS)
def test_a_hub_record_becomes_an_item_with_the_right_option(pool):
    record, id, right = RECORDS[pool]
    item = pools.from_record(pool, record)
    assert id is None or item.id == id
    assert item.options[item.labels.index(item.gold)] == right
    assert len(item.options) == len(set(item.options)) <= 10
    assert item.source == pools.HUB[pool].path and item.licence == pools.HUB[pool].licence
    assert item.gated == (pool == "gpqa")
    assert pools.from_record(pool, record) == item  # the order of options depends on the record alone


def test_a_sample_carries_its_item():
    item = pools.from_record("gpqa", RECORDS["gpqa"][0])
    sample = pools.to_sample(item)
    assert pools.from_sample(sample) == item
    assert (sample.id, sample.target, tuple(sample.choices)) == (item.id, item.gold, item.options)


def test_a_numeric_record_has_no_options():
    item = pools.from_record("gsm8k", {"question": "How much?", "answer": "2*600\n#### 1,200"})
    assert (item.options, item.labels, item.gold) == ((), "", "1200")


def test_hub_pools_go_through_inspect(tmp_path, monkeypatch):
    """The `datasets` library reads a local folder as it reads the hub: the whole way but the download."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = tmp_path / "hub"
    folder.mkdir()
    records = [RECORDS["mmlu_pro"][0] | {"question_id": k, "question": f"Q{k}?"} for k in range(5)]
    (folder / "test.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    monkeypatch.setitem(
        pools.HUB, "mmlu_pro", pools.Hub(str(folder), "test", "MIT", pools.HUB["mmlu_pro"].to_item)
    )
    assert [item.id for item in pools.load("mmlu_pro")] == [f"mmlu_pro-{k}" for k in range(5)]
    drawn = pools.load("mmlu_pro", n=2, seed=3)
    assert len(drawn) == 2 and drawn == pools.load("mmlu_pro", n=2, seed=3)


def test_a_bad_hub_record_says_what_is_wrong():
    with pytest.raises(
        DataError, match="TIGER-Lab/MMLU-Pro: a record that cannot be read .KeyError: 'options'"
    ):
        pools.from_record("mmlu_pro", {"question_id": 1, "question": "Q?", "answer": "A", "category": ""})
    with pytest.raises(DataError, match="field 'gold': 'D'; expected one of A, B, C"):
        pools.from_record("mmlu_pro", RECORDS["mmlu_pro"][0] | {"answer": "D"})


# --- files --------------------------------------------------------------------------------------------------


def test_csv_columns_json_lists_and_gold_texts(tmp_path):
    wide, listed = tmp_path / "wide.csv", tmp_path / "listed.jsonl"
    wide.write_text(
        'question_id,question,A,B,C,answer\n007,"Two, or three?",two,three,,b\n'.replace(",b\n", ",B\n")
    )
    listed.write_text(
        json.dumps({"question": "Two?", "choices": ["two", "three"], "gold": "three", "gated": True})
        + "\n"
        + json.dumps({"id": 9, "question": "How many?", "gold": "$1,500"})
        + "\n"
    )
    first = pools.read(wide, licence="CC0")[0]
    assert (first.id, first.options, first.gold, first.licence, first.gated) == (
        "007",
        ("two", "three"),
        "B",
        "CC0",
        False,
    )
    chosen, number = pools.read(listed)
    assert (chosen.gold, chosen.gated, chosen.id[:1]) == ("B", True, "q")
    assert (number.id, number.options, number.gold) == ("9", (), "1500")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"id": "a", "question": "", "options": ["x", "y"], "gold": "A"}, "no field 'question'"),
        (
            {"id": "a", "question": "Q?", "options": ["x", "y"], "gold": "C"},
            "line 2.*field 'gold': 'C'; expected one of A, B",
        ),
        (
            {"id": "a", "question": "Q?", "options": "x|y", "gold": "A"},
            "field 'options': 'x|y'; expected a JSON list",
        ),
        (
            {"id": "a", "question": "Q?", "options": ["x"], "gold": "A"},
            "field 'options': 1; expected 2 to 10",
        ),
        ({"id": "a", "question": "Q?", "gold": "many"}, "expected a number, as the item has no options"),
        ({"id": "a", "question": "Q?", "A": "x", "C": "y", "gold": "A"}, "options A, C; expected A, B, C"),
        ({"id": "ok", "question": "Q?", "options": ["x", "y"], "gold": "A"}, "'ok' is on line 1 already"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    path = tmp_path / "pool.jsonl"
    good = {"id": "ok", "question": "Q?", "options": ["x", "y"], "gold": "A"}
    path.write_text(json.dumps(good) + "\n" + json.dumps(line) + "\n")
    with pytest.raises(DataError, match=message):
        pools.read(path)


def test_an_unknown_pool_lists_the_known_ones():
    with pytest.raises(DataError, match="no such file, and expected one of mmlu_pro, gpqa, .*mixed"):
        pools.load("mmlu")


# --- items made here ----------------------------------------------------------------------------------------


def solve(question):
    """Answer a made item from its text alone, by means other than its maker's."""
    if found := re.fullmatch(r"What is ([-+*/() \d]+)\?", question):
        value = eval(found[1])  # digits and operators only
        assert value == int(value)
        return str(int(value))
    numbers = [int(number) for number in re.findall(r"\d+", question)]
    if question.startswith("A shop"):
        boxes, each, loose = numbers
        return str(sum([each] * boxes) + loose)
    if question.startswith("Of "):
        people, tea, coffee, both = numbers
        groups = [{"tea", "coffee"}] * both + [{"tea"}] * (tea - both) + [{"coffee"}] * (coffee - both)
        groups += [set()] * (people - len(groups))
        assert len(groups) == people
        return str(sum(not group for group in groups))
    if question.startswith("Today is"):
        today = re.search(r"Today is (\w+)", question)[1]
        start = next(
            day
            for k in range(7)
            if (day := datetime.date(2024, 1, 1) + datetime.timedelta(k)).strftime("%A") == today
        )
        return (start + datetime.timedelta(numbers[0] - numbers[1])).strftime("%A")
    clues = re.findall(r"(\w+) finished directly before (\w+)\.", question)
    names = sorted({name for clue in clues for name in clue})
    if len(names) > 7:  # too many orders to try: follow the chain
        after = dict(clues)
        order = [next(name for name in names if name not in after.values())]
        while order[-1] in after:
            order.append(after[order[-1]])
        assert len(order) == len(names)
        return order[numbers[-1] - 1]
    fitting = [
        order
        for order in itertools.permutations(names)
        if all(order.index(b) == order.index(a) + 1 for a, b in clues)
    ]
    assert len(fitting) == 1
    return fitting[0][numbers[-1] - 1]


def test_made_items_have_the_answer_that_an_independent_solver_finds():
    items = pools.load("mixed", n=600, seed=11)
    for item in items:
        assert item.options[item.labels.index(item.gold)] == solve(item.question), item.question
        assert 4 <= len(item.options) <= 10 and len(set(item.options)) == len(item.options)
        assert not any(option.startswith("-") for option in item.options)
    assert len({item.id for item in items}) == 600
    assert {len(item.options) for item in items} == set(range(4, 11))
    golds = pd.Series([item.gold for item in items]).value_counts(normalize=True)
    assert golds["A"] < 0.25 and set("ABCDEF") <= set(golds.index)
    assert len({item.category for item in items}) == 6


def test_made_items_are_reproducible_and_do_not_depend_on_how_many_are_made():
    assert pools.load("logic", n=9, seed=5)[:4] == pools.load("logic", n=4, seed=5)
    assert pools.load("logic", n=4, seed=5) != pools.load("logic", n=4, seed=6)
    assert {item.category for item in pools.load("arithmetic", n=5, difficulty=3)} == {
        "arithmetic, difficulty 3"
    }


def test_distractors_are_slips_of_the_very_question():
    item = pools.load("arithmetic", n=1, seed=4, difficulty=2)[0]
    boxes, each, loose = map(int, re.findall(r"\d+", item.question))
    assert str(boxes * each) in item.options or str(boxes * each - loose) in item.options


# --- selection ----------------------------------------------------------------------------------------------


def probes(flips):
    """Eight probes a question: `flips` of the four non-social ones revised, and all social ones."""
    lines = [
        {
            "row": "m",
            "question": question,
            "condition": "default",
            "parsed": True,
            "social": social,
            "revised": social or place < k,
        }
        for question, k in flips.items()
        for social in (False, True)
        for place in range(4)
    ]
    return pd.DataFrame(lines)


def test_selection_ranks_by_non_social_flips_and_keeps_a_trail(tmp_path):
    ranked = pools.select_high_flip(probes({"q3": 1, "q1": 4, "q2": 1, "q4": 0}), n=2)
    assert ranked[["question", "k", "n", "selected"]].values.tolist() == [
        ["q1", 4, 4, True],
        ["q2", 1, 4, True],
        ["q3", 1, 4, False],
        ["q4", 0, 4, False],
    ]
    told = pools.write_selection(ranked, tmp_path / "selection.json", pool="pool.csv")
    assert (told["questions"], told["threshold"], told["n_pool"]) == (["q1", "q2"], 0.25, 4)
    (tmp_path / "pool.csv").write_text(
        "id,question,A,B,gold\nq1,One?,x,y,A\nq2,Two?,x,y,A\nq3,Three?,x,y,A\n"
    )
    chosen = pools.load(str(tmp_path / "pool.csv"), selection=tmp_path / "selection.json")
    assert [item.id for item in chosen] == ["q1", "q2"]


def test_selection_refuses_to_see_outcomes():
    with pytest.raises(DataError, match="cell are outcomes of debates"):
        pools.select_high_flip(probes({"q1": 1}).assign(cell="collapse"), n=1)
    with pytest.raises(DataError, match="1 questions; expected at least the 2"):
        pools.select_high_flip(probes({"q1": 1}), n=2)
