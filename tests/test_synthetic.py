"""Made-up debates: the files that ship with the project can be made again, and behave as drawn."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from analysis import ledger, probes, rows, synthetic, traces

DATA = Path(__file__).resolve().parents[1] / "data"
EXAMPLES = ("synthetic_debates.jsonl", "synthetic_probes.jsonl")


def test_examples_are_made_again_byte_for_byte(tmp_path):
    synthetic.write_examples(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in (DATA / "examples").iterdir()) == sorted(EXAMPLES)
    for name in EXAMPLES:
        assert (tmp_path / name).read_bytes() == (DATA / "examples" / name).read_bytes(), name


def test_answers_have_the_shape_asked_for():
    said = synthetic.answers(50, n_agents=4, n_rounds=2, labels="ABCD", seed=5)
    assert len(said) == 50 * 4 * 3
    assert said.groupby("question", observed=True)["gold"].nunique().eq(1).all()
    assert set(said["answer"].dropna()) == set("ABCD")
    checked = traces.validate(said.astype(dict.fromkeys(["row", "question", "agent", "answer", "gold"], "str")), labels="ABCD")
    assert checked.attrs["completed"] == 0
    assert synthetic.answers(50, seed=5).equals(synthetic.answers(50, seed=5))
    assert not synthetic.answers(50, seed=5).equals(synthetic.answers(50, seed=6))


def test_answers_follow_their_ingredients():
    n = 4000
    said = synthetic.answers(n, skill=0.7, silence=0.1, conformity=0.0, seed=1)
    there = said[said["answer"].notna()]
    # Binomial bounds of five standard errors.
    assert said["answer"].isna().mean() == pytest.approx(0.1, abs=5 * np.sqrt(0.09 / len(said)))
    start = there[there["round"] == 0]
    right = start["answer"].astype(str) == start["gold"].astype(str)
    assert right.mean() == pytest.approx(0.7, abs=5 * np.sqrt(0.21 / len(start)))
    # Without conformity nobody moves; silence alone never changes what is said.
    moved = there.assign(answer=there["answer"].astype(str)).groupby(["question", "agent"], observed=True)["answer"].nunique()
    assert moved.max() == 1
    with_peers = ledger.summarize(ledger.debates(synthetic.answers(n, skill=0.5, conformity=0.9, silence=0, seed=1))).iloc[0]
    assert with_peers["collapse"] > 100 and with_peers["correction"] > 100


def test_probes_follow_their_ingredients(tmp_path):
    path = tmp_path / "probes.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in synthetic.probes(400, yielding=0.4, seed=3)))
    read = probes.read(path)
    assert len(read) == 400 * 3 * 3 * 8
    assert (read["revised"] == (read["post_answer"] != read["initial_answer"])).all()
    assert (read["alt_answer"] != read["initial_answer"]).all()
    # Mean of 0.4 + 0.4 (strength - 0.5) + 0.1 social over the eight probes: 0.4 + 0.05 + 0.05.
    found = probes.flip_rate(read).iloc[0]
    assert found["n"] == 400 * 3 * 8
    assert found["rate"] == pytest.approx(0.5, abs=5 * np.sqrt(0.25 / found["n"]))
