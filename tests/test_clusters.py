"""Questions drawn whole, and the ledger on the questions that all rows share."""

import random

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from analysis import clusters, data, ledger, localize, replay
from analysis.errors import DataError


@pytest.fixture(scope="module")
def paper():
    return data.debates()


def composed(n=60, seed=5):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({
        "row": rng.choice(["a", "b", "c"], n), "question": rng.choice([f"q{i}" for i in range(12)], n),
        "cell": rng.choice(["preserved", "collapse", "correction", "unrepaired"], n), "gold": "A",
        "changed_1": rng.random(n) < 0.4, "unanimous_0": rng.random(n) < 0.4,
        "n_flipped_1": rng.integers(0, 3, n), "replicate": np.arange(n),
    })


def test_gate_bootstrap_equals_the_plain_loop():
    frame = composed()
    members = [np.flatnonzero(frame["question"] == q) for q in frame["question"].unique()]
    rng, rates = random.Random(4), {name: [] for name in replay.GATES}
    for _ in range(80):
        drawn = frame.iloc[np.concatenate([members[rng.randrange(len(members))] for _ in members])]
        for gate in replay.GATES:
            line = replay.replay(drawn.reset_index(drop=True), gate).iloc[0]
            rates[gate].append([line[name] / line["n"] for name in clusters.MEASURES])
    found = clusters.gate_bootstrap(frame, n_boot=80, seed=4)
    for gate in replay.GATES:
        low, high = np.percentile(np.array(rates[gate]), [2.5, 97.5], axis=0)
        for k, name in enumerate(clusters.MEASURES):
            ends = found.loc[gate, [f"{name}_low", f"{name}_high"]].tolist()
            assert ends == pytest.approx([low[k], high[k]], abs=1e-12)
    assert (found["n"] == 60).all() and (found["questions"] == len(members)).all()


def test_gate_bootstrap_is_about_the_replay(paper):
    found, whole = clusters.gate_bootstrap(paper, n_boot=200), replay.replay_gates(paper)
    for name in clusters.MEASURES:
        assert found[name].tolist() == pytest.approx((whole[name] / whole["n"]).tolist(), abs=1e-12)
        assert (found[f"{name}_low"] < found[name]).all() and (found[name] < found[f"{name}_high"]).all()
    own = clusters.gate_bootstrap(paper, {"mine": paper["changed_1"]}, n_boot=200)
    theirs = found.loc[["round1_majority_change"]].set_index(own.index)
    pd.testing.assert_frame_equal(own, theirs)


def test_lifts_repeat_the_single_ones(paper):
    found = clusters.lift_table(paper, n_boot=60).set_index(["fit", "view", "unit"])
    assert len(found) == 16
    score = {view: localize.oof_scores(paper, view=view, fit="converged") for view in localize.VIEWS}
    for unit in localize.UNITS:
        one = localize.auc_lift(paper, score["r1"], score["full"], unit=unit, n_boot=60)
        line = found.loc[("converged", "full", unit)]
        assert line[["lift", "low", "high"]].tolist() == [one.lift, one.low, one.high]
    assert found.loc[("published", "r1", "question"), "n_units"] == 2161
    assert found.loc[("published", "r1", "row"), "n_units"] == 6
    # Both at once leave more open than either alone.
    width = (found["high"] - found["low"]).unstack()
    assert (width["two-way"] > width[["debate", "question", "row"]].max(axis=1)).all()


def test_lifts_by_row(paper):
    found = clusters.lift_by_row(paper, fits=["published"], n_boot=30)
    part = paper[paper["row"] == "phi-4-mini"]
    score = {view: localize.oof_scores(part, view=view) for view in localize.VIEWS}
    lift = localize.auc_lift(part, score["baseline"], score["r1"], unit="question", n_boot=30)
    line = found[(found["row"] == "phi-4-mini") & (found["view"] == "r1")].iloc[0]
    assert line[["lift", "low", "high", "n_pos"]].tolist() == [lift.lift, lift.low, lift.high, 112]


def test_shared_questions_by_hand():
    frame = pd.DataFrame({"row": list("aabbbc"), "question": ["x", "y", "x", "y", "y", "x"]})
    assert clusters.shared_questions(frame).tolist() == ["x"]


def test_repeated_questions(paper):
    found = clusters.repeated_questions(paper)
    assert found.to_dict("records") == [{"row": "llama-3.1-8b", "n": 2003, "questions": 1990, "repeated": 13,
                                         "several_gold": 0, "several_cells": 5}]
    twice = paper[paper["row"] == "llama-3.1-8b"].groupby("question").filter(lambda part: len(part) > 1)
    cells = [set(part["cell"].astype(str)) for _, part in twice.groupby("question")]
    assert len(cells) == 13 and sum(len(found) > 1 for found in cells) == 5
    assert clusters.repeated_questions(paper[paper["replicate"] == 0]).empty


def test_on_shared_questions(paper):
    found = clusters.on_shared_questions(paper)
    shared = set.intersection(*(set(part["question"]) for _, part in paper.groupby("row")))
    assert len(shared) == 200
    by_hand = ledger.summarize(paper[paper["question"].isin(shared)]).set_index("row")
    part = found[found["questions"] == "shared"].set_index("row")
    counts = ["n", "init_correct", "collapse", "correction"]
    assert part.loc[by_hand.index, counts].values.tolist() == by_hand[counts].values.tolist()
    assert part.loc["pooled", counts].tolist() == by_hand[counts].sum().tolist() == [1200, 571, 33, 179]
    whole = found[found["questions"] == "all"].set_index("row")
    small = ["gemini-3-flash", "gpt-5.4-mini", "qwen3-8b"]  # these have no other questions
    assert part.loc[small, counts].values.tolist() == whole.loc[small, counts].values.tolist()


def test_rank_on_shared_questions(paper):
    alpha = data.model_rows().set_index("row")["alpha_tot"]
    found = clusters.rank_on_shared_questions(paper, alpha).set_index("questions")
    sums = clusters.on_shared_questions(paper)
    for name in ("all", "shared"):
        part = sums[(sums["questions"] == name) & (sums["row"] != localize.POOLED)]
        theirs = spearmanr(part["row"].map(alpha), part["c_cond"]).statistic
        assert found.loc[name, "rho"] == pytest.approx(theirs)
    assert (found["rho"] > 0).all() and (found["n_rows"] == 6).all()


def test_nothing_to_draw_is_refused(paper):
    with pytest.raises(DataError, match="no row with 10 collapses or more"):
        clusters.lift_by_row(paper[paper["row"] == "gemini-3-flash"], n_boot=5)
    with pytest.raises(DataError, match="no debates: expected at least one"):
        clusters.gate_bootstrap(paper.iloc[:0])


@pytest.mark.parametrize("options", [{"gates": []}, {"n_boot": 0}, {"level": 95}])
def test_bootstrap_options_are_checked(paper, options):
    with pytest.raises(ValueError, match="expected at least one gate and one resample"):
        clusters.gate_bootstrap(paper, **options)
