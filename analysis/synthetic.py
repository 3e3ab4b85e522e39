"""Made-up debates and probes with known ingredients, for examples, benchmarks and tests."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from analysis import traces


def answers(n_debates, *, n_agents=3, n_rounds=3, labels="ABCDEFGHIJ", skill=0.6, conformity=0.5, silence=0.01, row="synthetic", seed=0):
    """Draw debates in which agents drift towards the most frequent answer of the round before.

    Parameters
    ----------
    n_debates, n_agents, n_rounds : int
        Size; rounds of debate after Round 0.
    labels : str
        Answer options.
    skill : float
        Chance that an independent answer is right.
    conformity : float
        Chance per round that an agent takes the answer of a randomly chosen peer.
    silence : float
        Chance that an answer is missing.
    row : str
        Name of the row.
    seed : int
        Seed of the generator.

    Returns
    -------
    DataFrame
        Long answers (see `analysis.traces`), ordered by question, round, agent; text columns are categorical.

    Examples
    --------
    >>> answers(2, seed=1)["round"].value_counts().to_dict()
    {0: 6, 1: 6, 2: 6, 3: 6}
    """
    rng = np.random.default_rng(seed)
    size = n_debates, n_agents
    gold = rng.integers(len(labels), size=n_debates)
    wrong = (gold[:, None] + rng.integers(1, len(labels), size=size)) % len(labels)
    said = [np.where(rng.random(size) < skill, gold[:, None], wrong)]
    for _ in range(n_rounds):
        peer = np.take_along_axis(said[-1], rng.integers(n_agents, size=size), axis=1)
        said.append(np.where(rng.random(size) < conformity, peer, said[-1]))
    grid = np.stack(said, axis=1)
    grid[rng.random(grid.shape) < silence] = -1
    lines = n_agents * (n_rounds + 1)
    names = pd.Index([f"q{i:07d}" for i in range(n_debates)], dtype="str")
    return pd.DataFrame({
        "row": pd.Categorical.from_codes(np.zeros(n_debates * lines, dtype=np.int8), [row]),
        "question": pd.Categorical.from_codes(np.repeat(np.arange(n_debates, dtype=np.int32), lines), names),
        "replicate": np.zeros(n_debates * lines, dtype=np.int64),
        "round": np.tile(np.repeat(np.arange(n_rounds + 1), n_agents), n_debates),
        "agent": pd.Categorical.from_codes(np.tile(np.arange(n_agents), n_debates * (n_rounds + 1)), [str(a + 1) for a in range(n_agents)]),
        "answer": pd.Categorical.from_codes(grid.reshape(-1), list(labels)),
        "gold": pd.Categorical.from_codes(np.repeat(gold, lines), list(labels)),
    })


def probes(n_questions, *, n_agents=3, yielding=0.4, seed=0):
    """Draw probe records in the released layout: eight probes per question, condition and agent.

    Parameters
    ----------
    n_questions, n_agents : int
        Size.
    yielding : float
        Chance that a moderate solo counterargument changes the answer; stronger and social ones change it more often.
    seed : int
        Seed of the generator.

    Returns
    -------
    list of dict
        One record per question, condition and agent.

    Examples
    --------
    >>> record = probes(1)[0]
    >>> record["condition"], len(record["probe_results"])
    ('default', 8)
    """
    rng = np.random.default_rng(seed)
    labels = "ABCDEFGHIJ"
    strengths = {"weak": 0.25, "moderate": 0.5, "strong": 0.75, "very_strong": 1.0}
    records = []
    for question in range(n_questions):
        right = int(rng.integers(len(labels)))
        for condition, shift in [("default", 0.0), ("anti_social", -0.1), ("anti_argument", -0.2)]:
            for agent in range(n_agents):
                first = right if rng.random() < 0.6 else (right + int(rng.integers(1, len(labels)))) % len(labels)
                results = []
                for name, value in strengths.items():
                    for social in (False, True):
                        alternative = (first + int(rng.integers(1, len(labels)))) % len(labels)
                        revised = bool(rng.random() < np.clip(yielding + shift + 0.4 * (value - 0.5) + 0.1 * social, 0, 1))
                        results.append({
                            "strength": name,
                            "strength_value": value,
                            "social": social,
                            "alt_answer": labels[alternative],
                            "post_answer": labels[alternative if revised else first],
                            "revised": revised,
                        })
                records.append({
                    "question_id": f"q{question:07d}",
                    "benchmark": "synthetic",
                    "correct_label": labels[right],
                    "condition": condition,
                    "agent_idx": agent,
                    "initial_answer": labels[first],
                    "initial_correct": first == right,
                    "probe_results": results,
                })
    return records


def write_examples(folder):
    """Write the example files that ship with the project: debates in layout B and probe records of the same made-up model.

    Parameters
    ----------
    folder : path

    Examples
    --------
    >>> import tempfile
    >>> write_examples(tempfile.mkdtemp())
    """
    said = answers(120, skill=0.55, conformity=0.45, row="synthetic_debates", seed=20261130)
    traces.write_open_tier(said.astype({"question": "str", "agent": "str", "answer": "str", "gold": "str", "row": "str"}), Path(folder, "synthetic_debates.jsonl"))
    lines = [json.dumps(record) for record in probes(20, yielding=0.45, seed=20261130)]
    Path(folder, "synthetic_probes.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
