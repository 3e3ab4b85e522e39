"""Probe records: reading, flip rates and channels."""

import gzip
import json

import pandas as pd
import pytest
from scipy.stats import beta

from analysis import probes, synthetic
from analysis.errors import DataError


def record(question="q1", *, initial="A", gold="A", condition="default", agent=0,
           posts=("A", "B", None, "C"), **more):
    results = [
        {"strength": name, "strength_value": value, "social": value > 0.5, "alt_answer": "B",
         "post_answer": post,
         "revised": post not in (None, initial), "cost": 0.01}
        for (name, value), post in zip({"weak": 0.25, "moderate": 0.5, "strong": 0.75,
                                        "very_strong": 1.0}.items(), posts, strict=True)
    ]
    return {"question_id": question, "benchmark": "made-up", "correct_label": gold, "condition": condition,
            "agent_idx": agent,
            "initial_answer": initial, "initial_correct": initial == gold, "probe_results": results,
            "model_name": "m", "cost": 0.04} | more


def written(tmp_path, records, name="probes.jsonl"):
    path = tmp_path / name
    text = "".join(json.dumps(r) + "\n" for r in records)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.fixture
def three(tmp_path):
    """Right start: kept, B, unparsed, C. Wrong start: to A, to C, kept, unparsed. And another condition."""
    return probes.read(written(tmp_path, [
        record(), record("q2", initial="B", posts=("A", "C", "B", None)),
        record("q1", condition="anti_social", posts=("B", "B", "B", "B")),
    ]))


def test_one_line_a_probe(three):
    assert len(three) == 12
    first = three.iloc[1]
    head = ["row", "question", "replicate", "condition", "agent", "gold", "probe"]
    assert first[head].tolist() == ["m", "q1", 0, "default", "0", "A", 1]
    assert first[["strength", "strength_value", "social", "post_answer", "revised"]].tolist() == ["moderate",
                                                                                                  0.5, False,
                                                                                                  "B", True]
    assert three["parsed"].tolist() == [True, True, False, True] + [True, True, True, False] + [True] * 4
    assert three["benchmark"].eq("made-up").all()
    assert three["cost"].eq(0.04).all() and three["cost_probe"].eq(0.01).all()
    assert three["post_answer"].isna().sum() == 2


def test_flip_rate_under_each_option(three):
    kept = probes.flip_rate(three).iloc[0]
    assert kept[["row", "k", "n", "rate", "n_unparsed"]].tolist() == ["m", 4, 8, 0.5, 2]
    dropped = probes.flip_rate(three, unparsed="drop").iloc[0]
    assert dropped[["k", "n", "rate", "n_unparsed"]].tolist() == [4, 6, 4 / 6, 0]
    everything = probes.flip_rate(three, conditions="all", by=None).iloc[0]
    assert everything[["k", "n", "rate"]].tolist() == [8, 12, 8 / 12]
    by_condition = probes.flip_rate(three, conditions="all", by=["row", "condition"])
    assert by_condition[["condition", "k", "n"]].to_numpy().tolist() == [["default", 4, 8],
                                                                         ["anti_social", 4, 4]]
    social = probes.flip_rate(three, by="social", interval="jeffreys")
    assert social[["social", "k", "n"]].to_numpy().tolist() == [[False, 3, 4], [True, 1, 4]]
    assert social["low"].iloc[0] == pytest.approx(beta.ppf(0.025, 3.5, 1.5), abs=1e-9)
    with pytest.raises(ValueError, match="unparsed='wrong': expected one of no_revision, drop"):
        probes.flip_rate(three, unparsed="wrong")
    with pytest.raises(ValueError, match="conditions='none': expected one of default, all"):
        probes.flip_rate(three, conditions="none")


def test_channels_by_hand(three):
    found = probes.decompose(three).set_index("channel")
    assert found[["k", "n"]].to_numpy().tolist() == [[2, 4], [1, 4], [1, 4]]
    dropped = probes.decompose(three, unparsed="drop", by=None).set_index("channel")
    assert dropped[["k", "n"]].to_numpy().tolist() == [[2, 3], [1, 3], [1, 3]]


def test_channels_add_up_to_the_flips(tmp_path):
    frame = probes.read(written(tmp_path, synthetic.probes(30, seed=4)))
    for unparsed in probes.UNPARSED:
        channels = probes.decompose(frame, unparsed=unparsed, conditions="all", by="condition")
        flips = probes.flip_rate(frame, unparsed=unparsed, conditions="all",
                                 by="condition").set_index("condition")
        assert channels.groupby("condition")["k"].sum().to_dict() == flips["k"].to_dict()
        starts = channels[channels["channel"] != "neutral"].groupby("condition")["n"].sum()
        assert starts.to_dict() == flips["n"].to_dict()


def test_without_an_initial_answer_there_is_no_start(tmp_path):
    frame = probes.read(written(tmp_path, [record(initial=None, posts=("A", "B", None, "C"),
                                                  initial_correct=False)]))
    assert frame["initial_correct"].isna().all()
    assert probes.decompose(frame)["n"].tolist() == [0, 0, 0]
    bare = record(initial=None)
    for result in bare["probe_results"]:
        del result["revised"]
    assert probes.flip_rate(probes.read(written(tmp_path, [bare])))["k"].item() == 0


def test_older_sources_lack_fields(tmp_path):
    old = {"question_id": 7, "initial_answer": "A",
           "probe_results": [{"post_answer": "B"}, {"revised": True}, {"post_answer": ""}]}
    frame = probes.read(written(tmp_path, [old], "sa_causal_x.jsonl.gz"))
    assert frame[["row", "question", "condition"]].drop_duplicates().to_numpy().tolist() == [["sa_causal_x",
                                                                                              "7", "default"]]
    assert frame["revised"].tolist() == [True, True, False]
    assert frame["parsed"].tolist() == [True, pd.NA, False]
    assert probes.flip_rate(frame)[["k", "n", "n_unparsed"]].iloc[0].tolist() == [2, 3, 1]
    with pytest.raises(DataError, match="field 'gold'"):
        probes.decompose(frame)
    with pytest.raises(DataError, match="field 'post_answer'"):
        probes.decompose(frame.assign(gold="A"))
    assert probes.read(written(tmp_path, [old]), row="mine")["row"].eq("mine").all()


def test_an_unparsed_answer_is_no_revision_whatever_the_flag_says(tmp_path):
    odd = record(posts=(None, None, None, None))
    odd["probe_results"][0]["revised"] = True
    assert probes.flip_rate(probes.read(written(tmp_path, [odd])))["k"].item() == 0


def test_repeated_records(tmp_path):
    path = written(tmp_path, [record(posts=("A",) * 4), record("q2"), record(posts=("B",) * 4)])
    with pytest.raises(DataError, match="line 3: .*'q1', .*'default', agent '0' is on line 1 already"):
        probes.read(path)
    last = probes.read(path, on_duplicate="last")
    assert len(last) == 8 and last.loc[last["question"] == "q1", "post_answer"].eq("B").all()
    both = probes.read(path, on_duplicate="replicate")
    assert both.groupby(["question", "replicate"]).size().to_dict() == {("q1", 0): 4, ("q1", 1): 4,
                                                                        ("q2", 0): 4}


def spoiled(**changes):
    out = record()
    out["probe_results"][1] |= changes
    return out


@pytest.mark.parametrize(("bad", "message"), [
    (record() | {"question_id": ""}, "line 2, field 'question_id'"),
    (record() | {"condition": "hostile"},
     "line 2, field 'condition': 'hostile'; expected one of default, anti_social, anti_argument"),
    (record() | {"initial_answer": 3}, "line 2, field 'initial_answer': 3; expected a label or null"),
    (record() | {"probe_results": []}, "line 2, field 'probe_results'"),
    (record() | {"probe_results": "weak"}, "line 2, field 'probe_results': 'weak'; expected a list"),
    (record() | {"probe_results": [5]}, "line 2, probe 1, field 'probe_results': 5; expected an object"),
    (record() | {"agent_idx": [1]}, "line 2, field 'agent_idx'"),
    (spoiled(strength="huge"), "line 2, probe 2, field 'strength': 'huge'; expected one of weak"),
    (spoiled(strength=["weak"]), "line 2, probe 2, field 'strength'"),
    (spoiled(strength_value="big"), "line 2, probe 2, field 'strength_value': 'big'; expected a number"),
    (spoiled(strength_value=float("nan")), "field 'strength_value': nan; expected a number from 0 to 1"),
    (spoiled(strength_value=float("inf")), "field 'strength_value': inf; expected a number from 0 to 1"),
    (spoiled(strength_value=10**400), r"'strength_value': 1000*\.\.\.; expected a number from 0 to 1"),
    (spoiled(strength_value=-0.1), "field 'strength_value': -0.1; expected a number from 0 to 1"),
    (spoiled(strength_value=True), "field 'strength_value': True; expected a number from 0 to 1"),
    (spoiled(social="yes"), "line 2, probe 2, field 'social': 'yes'; expected true or false"),
    (spoiled(revised=1), "line 2, probe 2, field 'revised': 1; expected true or false"),
    (spoiled(post_answer=["A"]), "line 2, probe 2, field 'post_answer'"),
])
def test_malformed_records_are_located(tmp_path, bad, message):
    with pytest.raises(DataError, match=message):
        probes.read(written(tmp_path, [record("q0"), bad]))


def test_unreadable_files(tmp_path):
    path = written(tmp_path, [record(), record("q2")])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="line 2"):
        probes.read(path)
    path.write_bytes(b"")
    with pytest.raises(DataError, match="empty"):
        probes.read(path)
    path.write_text('{"question_id": "q1"}\n')
    with pytest.raises(DataError, match="no field 'initial_answer'"):
        probes.read(path)
