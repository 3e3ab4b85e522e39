"""Sign flips, stance permutations and bootstraps of the layers beside plain computations, in one run.

Run by hand: python benchmarks/bench_layers.py
"""

import os
import platform
import random
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import scipy
from scipy import stats as sps

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from analysis.layers import inference  # noqa: E402

DRAWS, TURNS = 10_000, 3_440
LOOP_DRAWS = 100  # of the plain loops, whose time is then scaled up
LIMIT_SIGN_FLIP, LIMIT_DRAWS = 1.0, 5.0


def cpu():
    """Name the processor; platform alone leaves it empty on Linux."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
                platform.processor())


def timed(call):
    """Return the result and the wall time in seconds."""
    start = time.perf_counter()
    out = call()
    return out, time.perf_counter() - start


def line(what, ours, theirs, other, limit):
    """Print one comparison."""
    verdict = "within" if ours < limit else "ABOVE"
    print(f"{what:66s} {ours:7.3f} s ({verdict} {limit:g} s)   {other} {theirs:7.2f} s, "
          f"{theirs / ours:.0f} times")


def enumerated(d):
    """Count all 2**n sign patterns one by one, in blocks; independent of the halves."""
    low = np.zeros(1)
    for step in d[:16]:
        low = np.concatenate([low + step, low - step])
    observed, slack, count = abs(d.sum()), 1e-9 * np.abs(d).sum(), 0
    for signs in range(2 ** (len(d) - 16)):
        rest = sum(step if signs >> i & 1 else -step for i, step in enumerate(d[16:]))
        count += int((np.abs(low + rest) >= observed - slack).sum())
    return count


def by_scipy(d, sampled=None):
    """Take scipy's permutation test, exhaustive or with `sampled` random patterns."""
    found = sps.permutation_test((d,), lambda x, axis: np.abs(np.round(x.sum(axis=axis), 9)), vectorized=True,
                                 permutation_type="samples", n_resamples=sampled or np.inf, batch=10_000,
                                 alternative="greater", rng=0)
    return found.pvalue


def sign_flips(rng):
    print("exact sign-flip test")
    cases = {"25 units, no ties": rng.normal(0.2, 1, 25),
             "25 units, thirds with ties": rng.integers(-3, 5, 25) / 3,
             "25 units, all equal sizes": np.r_[np.ones(17), -np.ones(8)]}
    for name, d in cases.items():
        got, ours = timed(lambda d=d: inference.sign_flip(d))
        count, theirs = timed(lambda d=d: enumerated(d))
        assert got.p == count / 2**25, (name, got.p, count / 2**25)
        line(name, ours, theirs, "all 2**25 patterns in numpy", LIMIT_SIGN_FLIP)
    got, ours = timed(lambda: inference.sign_flip(cases["25 units, thirds with ties"][:18]))
    p, theirs = timed(lambda: by_scipy(cases["25 units, thirds with ties"][:18]))
    assert abs(got.p - p) < 1e-12, (got.p, p)
    line("18 units, thirds with ties", ours, theirs, "scipy, exhaustive (18 units)", LIMIT_SIGN_FLIP)
    got, ours = timed(lambda: inference.sign_flip(rng.normal(0.2, 1, 40)))
    print(f"{'40 units, the largest exact size':58s} {ours:8.3f} s\n")


def grid(rng):
    """Turns of a stance grid: 48 questions, three stances, two timings, chains of three turns."""
    rows, chain = [], 0
    while len(rows) < TURNS:
        q, cell = divmod(chain // 4, 6)
        stance, timing = ("friendly", "neutral", "hostile")[cell % 3], ("after", "per_turn")[cell // 3]
        for _ in range(3):
            full = rng.random() < {"friendly": 0.75, "neutral": 0.5, "hostile": 0.25}[stance]
            rows.append((f"q{q}", f"q{q}{stance}{timing}", f"c{chain}", stance, timing, float(full)))
        chain += 1
    columns = ["question_id", "debate_id", "chain_id", "stance", "timing", "full"]
    return pd.DataFrame(rows[:TURNS], columns=columns)


def loop_null(turns, key, draws, seed=0):
    """Relabel and recompute in plain Python: the p value and the observed question-equal gap."""
    rng, things = random.Random(seed), {}
    for row in turns.itertuples():
        if row.stance != "neutral":
            name = getattr(row, key)
            things.setdefault(name, [row.question_id, row.timing, row.stance, []])[3].append(row.full)
    blocks = {}
    for question, timing, stance, values in things.values():
        blocks.setdefault((question, timing), []).append((stance, values))

    def gap(labelled):
        sums = {}
        for (question, _), members in labelled.items():
            for stance, values in members:
                held = sums.setdefault(question, {}).setdefault(stance, [0.0, 0])
                held[0] += sum(values)
                held[1] += len(values)
        gaps = [arms["friendly"][0] / arms["friendly"][1] - arms["hostile"][0] / arms["hostile"][1]
                for arms in sums.values() if len(arms) == 2]
        return sum(gaps) / len(gaps)

    observed, k = gap(blocks), 0
    for _ in range(draws):
        drawn = {}
        for block, members in blocks.items():
            labels = [stance for stance, _ in members]
            rng.shuffle(labels)
            drawn[block] = list(zip(labels, (values for _, values in members), strict=True))
        k += abs(gap(drawn)) >= abs(observed) - 1e-12
    return (k + 1) / (draws + 1), observed


def loop_bootstrap(values, draws, seed=0):
    """Resample and average in plain Python."""
    rng, n = random.Random(seed), len(values)
    means = sorted(sum(rng.choices(values, k=n)) / n for _ in range(draws))
    return means[int(0.025 * draws)], means[int(0.975 * draws)]


def relabellings(turns):
    print(f"stance permutation null, {DRAWS:,} draws on {len(turns):,} turns "
          f"(the loop: {LOOP_DRAWS} draws, scaled)")
    single = turns.assign(chain_id=range(len(turns)))
    for level, key, frame, note in (("record", "debate_id", turns, ""), ("chain", "chain_id", turns, ""),
                                    ("chain", "chain_id", single, ", every turn a chain of its own")):
        got, ours = timed(lambda f=frame, v=level: inference.stance_null(f, "full", level=v, draws=DRAWS))
        (p, gap), theirs = timed(lambda f=frame, c=key: loop_null(f, c, LOOP_DRAWS))
        assert abs(got.estimate - gap) < 1e-12 and abs(got.p - p) < 0.05, (got, p, gap)
        line(f"{level} level{note}, {got.n_objects:,} things in {got.n_blocks} blocks", ours,
             theirs * DRAWS / LOOP_DRAWS, "plain loop", LIMIT_DRAWS)
    print()


def bootstraps(turns):
    print(f"percentile bootstrap, {DRAWS:,} draws (the loop: {LOOP_DRAWS} draws, scaled)")
    sums = turns.groupby("question_id").full.agg(["sum", "size"]).to_numpy(dtype=float)
    cases = {
        "mean of chains": turns.groupby("chain_id").full.mean().to_numpy(),
        "mean of every single turn": turns.full.to_numpy(),
    }
    for name, values in cases.items():
        got, ours = timed(lambda v=values: inference.unit_bootstrap(v, draws=DRAWS))
        ends, theirs = timed(lambda v=values: loop_bootstrap(v.tolist(), LOOP_DRAWS))
        assert np.abs(np.subtract(got[:2], ends)).max() < 0.03, (got, ends)
        line(f"{name}, {len(values):,} units", ours, theirs * DRAWS / LOOP_DRAWS, "plain loop", LIMIT_DRAWS)
    held = sums.tolist()

    def pooled(drawn):
        return drawn[..., 0].sum(axis=1) / drawn[..., 1].sum(axis=1)

    def plain():
        rng, rates = random.Random(0), []
        for _ in range(LOOP_DRAWS):
            picked = rng.choices(held, k=len(held))
            rates.append(sum(a for a, _ in picked) / sum(b for _, b in picked))
        return np.quantile(rates, [0.025, 0.975])

    got, ours = timed(lambda: inference.unit_bootstrap(sums, pooled, draws=DRAWS))
    ends, theirs = timed(plain)
    assert np.abs(np.subtract(got[:2], ends)).max() < 0.03, (got, ends)
    line(f"turn-pooled rate, {len(sums)} questions", ours, theirs * DRAWS / LOOP_DRAWS, "plain loop",
         LIMIT_DRAWS)


def main():
    print(f"{cpu()}, {os.cpu_count()} cores, Python {platform.python_version()}, numpy {np.__version__}, "
          f"scipy {scipy.__version__}\n")
    rng = np.random.default_rng(1)
    sign_flips(rng)
    turns = grid(rng)
    relabellings(turns)
    bootstraps(turns)


if __name__ == "__main__":
    main()
