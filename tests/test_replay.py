"""Signed replay, its ladder, leave-one-model-out and a third party's actions."""

import gzip
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import data, ledger, replay
from analysis.errors import DataError

LINE = ["n", "gated", "prevented", "lost", "net", "delta_pp", "break_even"]


@pytest.fixture(scope="module")
def paper():
    return data.debates()


@pytest.fixture(scope="module")
def local(paper):
    return paper[paper["row"].isin(data.LOCAL_ROWS)]


@pytest.fixture
def eight():
    """Two rows of four debates, each gate's counts known by looking."""
    return pd.DataFrame({
        "row": list("aaaabbbb"),
        "question": ["q1", "q2", "q3", "q3", "q1", "q2", "q3", "q4"],
        "replicate": [0, 0, 0, 1, 0, 0, 0, 0],
        "cell": ["collapse", "correction", "preserved", "unrepaired", "collapse", "collapse", "correction",
                 None],
        "unanimous_0": [False, False, True, False, True, False, True, False],
        "changed_1": [True, True, False, False, False, True, False, True],
        "n_flipped_1": [2, 1, 0, 1, 0, 3, 2, 1],
    })


def test_each_gate_by_hand(eight):
    found = replay.replay_gates(eight)
    assert found.loc["always_freeze", LINE].tolist() == [8, 8, 3, 2, 1, 12.5, 2 / 3]
    assert found.loc["round1_majority_change", LINE].tolist() == [8, 4, 2, 1, 1, 12.5, 0.5]
    assert found.loc["round1_any_flip", LINE].tolist() == [8, 6, 2, 2, 0, 0, 1]
    assert found.loc["disagreement", LINE].tolist() == [8, 5, 2, 1, 1, 12.5, 0.5]
    assert (found[["collapse", "correction", "undefined"]] == [3, 2, 1]).all().all()


def test_by_row_and_weights(eight):
    found = replay.replay(eight, "always_freeze", w_collapse=2, w_correction=0.5, by="row")
    assert found["row"].tolist() == ["a", "b"]
    assert found["net"].tolist() == [2 * 1 - 0.5 * 1, 2 * 2 - 0.5 * 1]
    assert found["delta_pp"].tolist() == [37.5, 87.5]
    assert found["break_even"].tolist() == [1, 0.5], "the break-even ratio does not depend on the weights"


def test_break_even_at_the_edges(eight):
    only_loses = replay.replay(eight, eight["cell"] == "correction")
    only_saves = replay.replay(eight, eight["cell"] == "collapse")
    does_nothing = replay.replay(eight, np.zeros(8, dtype=bool))
    assert only_loses["break_even"].item() == math.inf
    assert only_saves["break_even"].item() == 0
    assert math.isnan(does_nothing["break_even"].item()) and does_nothing["net"].item() == 0


def test_the_forms_a_gate_may_take(eight):
    expected = replay.replay(eight, "round1_majority_change")
    as_array = eight["changed_1"].to_numpy()
    for gate in (as_array, as_array.tolist(), as_array.astype(int), eight["changed_1"],
                 lambda d: d["changed_1"],
                 eight["changed_1"].astype("boolean"), eight["changed_1"].sample(frac=1, random_state=1)):
        pd.testing.assert_frame_equal(replay.replay(eight, gate), expected)


def test_actions_that_do_not_fit(eight):
    with pytest.raises(DataError, match="7 actions for 8 debates"):
        replay.replay(eight, [True] * 7)
    with pytest.raises(DataError, match="another index"):
        replay.replay(eight, pd.Series(True, index=range(1, 9)))
    with pytest.raises(DataError, match="position 2: <NA>"):
        replay.replay(eight, pd.array([True, False, None] + [True] * 5, dtype="boolean"))
    with pytest.raises(DataError, match="position 0: 'freeze'"):
        replay.replay(eight, ["freeze"] * 8)
    with pytest.raises(ValueError, match="gate='always': expected one of always_freeze, round1"):
        replay.replay(eight, "always")
    with pytest.raises(DataError, match="no column 'cell'"):
        replay.replay(eight.drop(columns="cell"), "always_freeze")


# --- the paper's debates ---


def test_always_freeze_on_the_paper(paper, local):
    everything, locals_only = replay.replay(paper, "always_freeze"), replay.replay(local, "always_freeze")
    assert everything[["n", "gated", "prevented", "lost"]].iloc[0].tolist() == [6925, 6925, 253, 816]
    assert locals_only[["n", "gated", "prevented", "lost"]].iloc[0].tolist() == [6525, 6525, 251, 804]
    assert everything["delta_pp"].item() == pytest.approx(100 * (3458 - (3458 - 253 + 816)) / 6925)


def test_gates_on_the_paper_against_the_columns(paper):
    found = replay.replay_gates(paper)
    fires = {
        "round1_majority_change": paper["changed_1"], "round1_any_flip": paper["n_flipped_1"] > 0,
        "disagreement": ~paper["unanimous_0"],
    }
    for gate, fired in fires.items():
        sub = paper[fired]
        start, end = sub["correct_0"].to_numpy(bool), sub["correct_3"].to_numpy(bool)
        assert found.loc[gate, ["gated", "prevented", "lost"]].tolist() == [len(sub), (start & ~end).sum(),
                                                                            (~start & end).sum()]
        # the replayed panel's accuracy, counted directly
        final = np.where(fired, paper["correct_0"], paper["correct_3"]).mean()
        assert found.loc[gate, "delta_pp"] == pytest.approx(100 * (final - paper["correct_3"].mean()),
                                                            abs=1e-9)


def test_rows_sum_to_the_whole(paper):
    each, whole = replay.replay(paper, "round1_any_flip", by="row"), replay.replay(paper, "round1_any_flip")
    counts = ["n", "gated", "prevented", "lost", "net", "collapse", "correction"]
    assert each["row"].tolist() == list(paper["row"].unique())
    assert each[counts].sum().tolist() == whole[counts].iloc[0].tolist()


# --- properties ---

CELLS = ["preserved", "collapse", "correction", "unrepaired"]
some_debates = st.lists(st.tuples(st.sampled_from(CELLS), st.booleans(), st.sampled_from("xyz")), min_size=1,
                        max_size=40)


@settings(deadline=None, max_examples=50)
@given(some_debates, st.integers(0, 5), st.integers(0, 5))
def test_counts_stay_within_their_denominators(debates, w_collapse, w_correction):
    cell, fires, row = zip(*debates, strict=True)
    frame = pd.DataFrame({"cell": cell, "row": row})
    found = replay.replay(frame, fires, w_collapse=w_collapse, w_correction=w_correction, by="row")
    assert (found["prevented"] <= found["collapse"]).all() and (found["lost"] <= found["correction"]).all()
    assert (found["prevented"] + found["lost"] <= found["gated"]).all()
    assert (found["gated"] <= found["n"]).all()
    assert (found["net"] == w_collapse * found["prevented"] - w_correction * found["lost"]).all()


@settings(deadline=None, max_examples=50)
@given(some_debates)
def test_replayed_accuracy_differs_by_delta(debates):
    cell, fires, _ = zip(*debates, strict=True)
    frame = pd.DataFrame({"cell": cell})
    start, end = frame["cell"].isin(["preserved", "collapse"]), frame["cell"].isin(["preserved",
                                                                                    "correction"])
    found = replay.replay(frame, fires)
    assert found["delta_pp"].item() == pytest.approx(100 * (np.where(fires, start, end).mean() - end.mean()),
                                                     abs=1e-9)
    always = replay.replay(frame, "always_freeze")
    assert always["net"].item() == start.sum() - end.sum()


@settings(deadline=None, max_examples=50)
@given(some_debates)
def test_net_is_never_negative_from_the_break_even_ratio_on(debates):
    cell, fires, _ = zip(*debates, strict=True)
    found = replay.replay(pd.DataFrame({"cell": cell}), fires).iloc[0]
    r = found["break_even"]
    if math.isfinite(r):
        assert replay.from_aggregate(found["n"], found["prevented"], found["lost"],
                                     w_collapse=r)["net"].item() >= -1e-9
        if r > 0:
            assert replay.from_aggregate(found["n"], found["prevented"], found["lost"],
                                         w_collapse=r * 0.99)["net"].item() < 0


votes = st.lists(st.lists(st.sampled_from(["A", "B", "C"]), min_size=6, max_size=6), min_size=1, max_size=12)


@settings(deadline=None, max_examples=30)
@given(votes, st.data())
def test_tie_credit_agrees_with_the_ledger_and_with_accuracy(panels, draw):
    answers = pd.DataFrame([
        {"row": "m", "question": f"q{i}", "replicate": 0, "round": k // 3, "agent": str(k % 3),
         "answer": answer, "gold": "A"}
        for i, panel in enumerate(panels) for k, answer in enumerate(panel)
    ])
    debates = ledger.debates(answers, tie="expected")
    fires = np.array(draw.draw(st.lists(st.booleans(), min_size=len(debates), max_size=len(debates))))
    summary, always = ledger.summarize(debates).iloc[0], replay.replay(debates, "always_freeze").iloc[0]
    assert always["prevented"] == pytest.approx(summary["collapse"])
    assert always["lost"] == pytest.approx(summary["correction"])
    found = replay.replay(debates, fires).iloc[0]
    start, end = debates["correct_0"].to_numpy(float), debates["correct_1"].to_numpy(float)
    assert found["delta_pp"] == pytest.approx(100 * (np.where(fires, start, end) - end).mean(), abs=1e-9)
    if not debates["cell"].isna().any():
        plain = replay.replay(debates.assign(correct_0=start == 1, correct_1=end == 1), fires).iloc[0]
        assert found[LINE[:5]].tolist() == pytest.approx(plain[LINE[:5]].tolist())


def test_an_undefined_start_is_neither_prevented_nor_lost():
    debates = pd.DataFrame({"correct_0": pd.array([0.5, None, 1.0], "Float64"),
                            "correct_2": [0.0, 0.0, 1 / 3],
                            "correct_1": 0.0, "endpoint": 2, "cell": None})
    found = replay.replay(debates, "always_freeze").iloc[0]
    assert found["prevented"] == pytest.approx(0.5 + 2 / 3)
    assert found[["lost", "undefined", "n"]].tolist() == [0, 1, 3]


# --- aggregates and the ladder ---


def test_aggregates_and_ladder_by_hand():
    table = replay.from_aggregate([6525, 1255, 1255], [29, 56, 2], [108, 69, 31], collapse=[251, np.nan, 94],
                                  index=["probe", "rule", "stump"])
    assert table["net"].tolist() == [-79, -13, -29]
    assert table["delta_pp"].round(2).tolist() == [-1.21, -1.04, -2.31]
    assert table["break_even"].tolist() == [108 / 29, 69 / 56, 31 / 2]
    assert pd.isna(table.loc["rule", "collapse"]) and table["gated"].isna().all()
    rungs = replay.ladder(table, [1, 2, 4])
    assert rungs.index.tolist() == ["probe", "rule", "stump"] and rungs.columns.tolist() == [1, 2, 4,
                                                                                             "break_even"]
    assert rungs[2].round(2).tolist() == [-0.77, 3.43, -2.15]
    assert rungs.loc["probe", 4] == pytest.approx(100 * (4 * 29 - 108) / 6525)


def test_aggregates_equal_the_replay(paper):
    whole = replay.replay_gates(paper)
    table = replay.from_aggregate(whole["n"], whole["prevented"], whole["lost"], gated=whole["gated"],
                                  collapse=whole["collapse"],
                                  correction=whole["correction"], index=whole.index)
    pd.testing.assert_frame_equal(table, whole.drop(columns="undefined"))


def test_aggregates_match_the_released_replay(shared):
    released = pd.read_csv(shared / "upstream/reported/policy_replay_policies.csv")
    released = released[released["collapses_prevented"].notna() & (released["policy"] != "standard")]
    table = replay.from_aggregate(released["n"], released["collapses_prevented"],
                                  released["corrections_lost"],
                                  gated=released["gate_count"])
    assert len(table) > 10
    np.testing.assert_array_equal(table["net"], released["net"])
    np.testing.assert_allclose(table["delta_pp"], 100 * released["acc_delta"], atol=1e-9)


@pytest.mark.parametrize(("counts", "message"), [
    ({"n": 10, "prevented": -1, "lost": 0}, "field 'prevented': -1; expected a number from 0"),
    ({"n": 10, "prevented": math.nan, "lost": 0}, "field 'prevented': nan"),
    ({"n": 10, "prevented": 3, "lost": 0, "collapse": 2}, "field 'prevented': 3; expected at most collapse"),
    ({"n": 10, "prevented": 0, "lost": 3, "correction": 2}, "field 'lost': 3; expected at most correction"),
    ({"n": 10, "prevented": 2, "lost": 3, "gated": 4}, "prevented [+] lost': 5; expected at most gated"),
    ({"n": 4, "prevented": 2, "lost": 3}, "prevented [+] lost': 5; expected at most n"),
])
def test_impossible_aggregates(counts, message):
    with pytest.raises(DataError, match=message):
        replay.from_aggregate(**counts)


def test_ladder_refuses_odd_ratios(eight):
    with pytest.raises(ValueError, match="ratios: -1"):
        replay.ladder(replay.replay(eight, "disagreement"), [1, -1])


# --- leave one model out ---


class Stump:
    """Freeze above the flip count that nets most on the training debates; remembers what it was shown."""

    def __init__(self):
        self.seen = []

    def fit(self, train):
        self.seen.append(set(train["row"]))
        nets = {t: replay.replay(train, train["n_flipped_1"] >= t)["net"].item() for t in range(5)}
        best = max(nets, key=nets.get)
        return lambda debates: debates["n_flipped_1"] >= best


def test_fixed_gate_left_out_is_the_gate(paper):
    held = replay.leave_one_model_out(paper, "disagreement")
    plain = replay.replay(paper, "disagreement", by="row")
    pd.testing.assert_frame_equal(held.iloc[:-1].reset_index(drop=True), plain, check_dtype=False)
    pd.testing.assert_frame_equal(held.iloc[[-1]].drop(columns="row").reset_index(drop=True),
                                  replay.replay(paper, "disagreement"))
    assert held["row"].iloc[-1] == "pooled"


def test_learned_gate_never_sees_its_row(eight):
    stump = Stump()
    held = replay.leave_one_model_out(eight, stump)
    assert stump.seen == [{"b"}, {"a"}]
    # Trained on b: collapses have 0 and 3 flips, the correction 2. Freezing all nets 1, as does from 3 on.
    # Trained on a: the collapse has 2 flips, the correction 1, so freezing from 2 on nets 1.
    assert held[["row", "gated", "prevented", "lost"]].to_numpy().tolist() == [
        ["a", 4, 1, 1], ["b", 2, 1, 1], ["pooled", 6, 2, 2]]


def test_learned_gate_needs_two_rows_and_must_act(eight):
    with pytest.raises(DataError, match="1 distinct"):
        replay.leave_one_model_out(eight[eight["row"] == "a"], Stump())

    class Idle:
        def fit(self, train):
            return None

    with pytest.raises(ValueError, match="NoneType; expected a function of debates"):
        replay.leave_one_model_out(eight, Idle())


# --- a third party's actions ---

GOOD = """row,question,replicate,action,score
a,q1,,freeze,0.9
a,q2,0,continue,0.1
a,q3,1,1,0.8
a,q3,0,0,0.2
b,q1,,TRUE,0.9
b,q2,,False,0.9
b,q3,,continue,0.9
b,q4,,freeze,0.9
"""
ANSWER = [True, False, False, True, True, False, False, True]


def written(tmp_path, text, name="gate.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_actions_from_each_kind_of_source(eight, tmp_path):
    frame = pd.DataFrame({"row": list("aaaabbbb"),
                          "question": ["q1", "q2", "q3", "q3", "q1", "q2", "q3", "q4"],
                          "replicate": [0, 0, 0, 1, 0, 0, 0, 0], "action": ANSWER})
    records = "".join(json.dumps(record) + "\n"
                      for record in frame.sample(frac=1, random_state=2).to_dict("records"))
    sources = [
        written(tmp_path, GOOD), written(tmp_path, "\ufeff" + GOOD.replace("\n", "\r\n"), "bom.csv"),
        written(tmp_path, records, "gate.jsonl"),
        written(tmp_path, gzip.compress(records.encode()), "gate.jsonl.gz"),
        str(written(tmp_path, gzip.compress(GOOD.encode()), "gate.csv.gz")), frame,
        frame.astype({"action": int}),
        frame.astype({"action": float, "replicate": float}),
    ]
    eight.index = range(100, 108)
    for source in sources:
        found = replay.actions(source, eight)
        assert found.dtype == bool and found.index.equals(eight.index) and found.tolist() == ANSWER
    assert replay.replay(eight, found)["gated"].item() == 4


def test_number_like_questions(eight):
    eight["question"] = ["1", "2", "3", "3", "1", "2", "3", "4"]
    frame = eight[["row", "question", "replicate"]].assign(action="freeze").astype({"question": int})
    assert replay.actions(frame, eight).all()


@pytest.mark.parametrize(("old", "new", "message"), [
    ("a,q2,0,continue", "a,q2,0,stop", r"gate.csv, line 3, field 'action': 'stop'; expected freeze or"),
    ("a,q2,0,continue", "a,q2,0,", r"line 3, field 'action': ''; expected freeze"),
    ("a,q2,0,continue", "a,q1,0,continue",
     r"line 3: row 'a', question 'q1', replicate 0 has an action already \(.*line 2\)"),
    ("a,q2,0,continue", "c,q2,0,continue", r"line 3, field 'row': 'c'; expected one of a, b"),
    ("a,q2,0,continue", "a,q9,0,continue",
     r"line 3, field 'question': 'q9'; expected a question that row 'a' debated"),
    ("a,q2,0,continue", "a,q2,5,continue",
     r"line 3, field 'replicate': 5; expected a replicate row 'a' has of 'q2'"),
    ("a,q2,0,continue", "a,q2,x,continue", r"line 3, field 'replicate': 'x'; expected a whole number from 0"),
    ("a,q2,0,continue", "a,q2,1e400,continue", r"line 3, field 'replicate': '1e400'"),
    ("a,q2,0,continue", ",q2,0,continue", r"line 3, field 'row': ''; expected a name"),
    ("a,q3,1,1", "a,q3,,1",
     r"line 4, field 'replicate': not given, but question 'q3' was debated 2 times; expected one of 0, 1"),
    ("b,q4,,freeze,0.9\n", "",
     r"gate.csv: no action for 1 of 8 debates, the first being row 'b', question 'q4', replicate 0"),
    ("replicate,action", "replicate,act",
     r"gate.csv: no field 'action' among row, question, replicate, act, score"),
    ("a,q2,0,continue,0.1", "a,q2,0,continue", r"line 3: 4 fields; expected 5"),
    (GOOD, "", "empty"),
])
def test_bad_actions_are_located(eight, tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(DataError, match=message):
        replay.actions(written(tmp_path, GOOD.replace(old, new)), eight)


def test_torn_and_foreign_action_files(eight, tmp_path):
    whole = "".join(json.dumps({"row": "a", "question": f"q{i}", "action": "freeze"}) + "\n" for i in (1, 2))
    with pytest.raises(DataError, match="line 2"):
        replay.actions(written(tmp_path, whole[:-10], "gate.jsonl"), eight)
    with pytest.raises(DataError, match="UTF-8"):
        replay.actions(written(tmp_path, b"row,question,action\na,\xff\xfe,freeze\n"), eight)
    with pytest.raises(FileNotFoundError):
        replay.actions(tmp_path / "none.csv", eight)
