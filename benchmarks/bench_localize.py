"""Out-of-fold scores of three views and 1,000 paired bootstrap draws, against plain loops.

Run by hand: ``python benchmarks/bench_localize.py``. Every side uses the same folds, scores and draws on the
paper's debates, so the intervals must agree to the last digits. Published
values are read from data/claims and shown beside ours.
"""

import platform
import random
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from analysis import data, localize  # noqa: E402

N_BOOT = 1000
SEED = 20260424
PLAIN_DRAWS = 50
LIMIT = 5


def timed(run):
    """Value and wall time of the best of three runs."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        value = run()
        best = min(best, time.perf_counter() - start)
    return value, best


def ours(debates):
    scores = {view: localize.oof_scores(debates, view=view) for view in localize.VIEWS}
    return scores, lifts_ours(debates, scores)


def lifts_ours(debates, scores):
    return (localize.auc_lift(debates, scores["baseline"], scores["r1"], n_boot=N_BOOT, seed=SEED),
            localize.auc_lift(debates, scores["r1"], scores["full"], n_boot=N_BOOT, seed=SEED))


def lifts_loop(y, scores, n_boot, area):
    """The bootstrap as one would write it down: draw, take, score."""
    rng, n = random.Random(SEED), len(y)
    first, second = [], []
    for _ in range(n_boot):
        drawn = [rng.randrange(n) for _ in range(n)]
        base, r1, full = (area(y, scores[view], drawn) for view in localize.VIEWS)
        first.append(r1 - base)
        second.append(full - r1)
    return [np.percentile(lift, [2.5, 97.5]) for lift in (first, second)]


def sklearn_area(y, score, drawn):
    return roc_auc_score(y[drawn], score[drawn])


def plain_area(y, score, drawn):
    """Mann-Whitney with mid-ranks in plain Python."""
    pairs = sorted((score[i], y[i]) for i in drawn)
    rank_sum, positives, i = 0.0, 0, 0
    while i < len(pairs):
        j = i
        while j < len(pairs) and pairs[j][0] == pairs[i][0]:
            j += 1
        tied = sum(label for _, label in pairs[i:j])
        rank_sum += tied * (i + 1 + j) / 2
        positives += tied
        i = j
    return (rank_sum - positives * (positives + 1) / 2) / (positives * (len(pairs) - positives))


def scores_by_rows(debates):
    """The published fit over all rows in numpy, without counting equal patterns."""
    y, fold = (debates["cell"] == "collapse").to_numpy(float), localize.folds(len(debates))
    out = {}
    for view, X in localize.features(debates).items():
        score = np.empty(len(y))
        for i in range(5):
            train = fold != i
            w, b = np.zeros(X.shape[1]), 0.0
            for _ in range(300):
                error = 1 / (1 + np.exp(-(X[train] @ w + b))) - y[train]
                w, b = w - 0.1 * (X[train].T @ error / train.sum() + 1e-3 * w), b - 0.1 * error.mean()
            score[~train] = 1 / (1 + np.exp(-(X[~train] @ w + b)))
        out[view] = score
    return out


def published():
    claims = pd.read_csv(ROOT / "data/claims/paper.csv", dtype=str).set_index("id")["printed"]
    areas = [claims[f"{name}"] for name in ("s1.auc.base", "s1.auc.r1", "t2.auc.full")]
    intervals = [(claims[f"s5.1.{name}_lo"], claims[f"s5.1.{name}_hi"]) for name in ("dr1", "dfull")]
    return areas, intervals


def machine():
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    cpu = next(named, platform.processor())
    system = f"{platform.system()} {platform.machine()}"
    return f"{cpu}, {system}, Python {platform.python_version()}, numpy {np.__version__}"


def main():
    debates = data.debates()
    y = (debates["cell"] == "collapse").to_numpy(int)
    print(f"machine: {machine()}")
    print(f"{len(debates):,} debates, {y.sum()} collapses; three views, {N_BOOT:,} paired draws")

    (scores, lifts), total = timed(lambda: ours(debates))
    _, fits = timed(lambda: {view: localize.oof_scores(debates, view=view) for view in localize.VIEWS})
    _, boot = timed(lambda: lifts_ours(debates, scores))
    areas, intervals = published()
    print("\nvalues                     ours                              published")
    for view, printed in zip(localize.VIEWS, areas, strict=True):
        print(f"  pooled AUC {view:<10} {localize.auc(y, scores[view]):.16f}                {printed}")
    for name, lift, printed in zip(("r1 - baseline", "full - r1"), lifts, intervals, strict=True):
        print(f"  lift {name:<14} [{lift.low:.10f}, {lift.high:.10f}]      [{', '.join(printed)}]")

    start = time.perf_counter()
    row_scores = scores_by_rows(debates)
    rows_time = time.perf_counter() - start
    arrays = {view: np.asarray(score) for view, score in scores.items()}
    start = time.perf_counter()
    loop = lifts_loop(y, arrays, N_BOOT, sklearn_area)
    loop_time = time.perf_counter() - start
    lists, labels = {view: score.tolist() for view, score in arrays.items()}, y.tolist()
    start = time.perf_counter()
    lifts_loop(labels, lists, PLAIN_DRAWS, plain_area)
    plain_time = (time.perf_counter() - start) * N_BOOT / PLAIN_DRAWS

    apart = np.abs(np.array([(lift.low, lift.high) for lift in lifts]) - np.array(loop)).max()
    shift = max(np.abs(row_scores[view] - arrays[view]).max() for view in localize.VIEWS)
    print("\nwall seconds (ours: best of 3)        loop      ours    ratio")
    for what, loop_side, our_side, note in (
        ("out-of-fold scores, numpy rows", rows_time, fits, f"scores differ by {shift:.0e}"),
        ("bootstrap, scikit-learn loop", loop_time, boot, f"intervals differ by {apart:.0e}"),
        ("bootstrap, plain Python loop", plain_time, boot, f"from {PLAIN_DRAWS} draws, scaled"),
    ):
        print(f"  {what:<31} {loop_side:8.2f}  {our_side:8.3f}  {loop_side / our_side:6.1f}x  ({note})")
    verdict = "met" if total < LIMIT else "MISSED"
    print(f"  {'together, ours':<31} {'':8}  {total:8.3f}           (limit {LIMIT} s: {verdict})")


if __name__ == "__main__":
    main()
