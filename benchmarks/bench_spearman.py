"""Exact Spearman against scipy's exhaustive permutation test and against brute force, side by side.

Run by hand: python benchmarks/bench_spearman.py
"""

import os
import platform
import sys
import time
from itertools import permutations
from math import factorial
from pathlib import Path

import numpy as np
import scipy
from scipy import stats as sps

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from analysis.stats import exact_spearman, spearman_null  # noqa: E402


def cpu():
    """Name the processor; platform alone leaves it empty on Linux."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
                platform.processor())


def timed(call, repeats=1):
    """Return the result and the best wall time of some repeats, in seconds."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        out = call()
        best = min(best, time.perf_counter() - start)
    return out, best


def pairs(n, ties, rng):
    """Random ranks; "more" ties: two pairs in x and a triple in y; "few": a pair in each (the hardest)."""
    x, y = rng.permutation(n).astype(float), rng.permutation(n).astype(float)
    if ties == "few":
        x[x == 1], y[y == n - 1] = 0, n - 2
    elif ties == "more":
        x[x == 1], x[x == n - 1] = 0, n - 2
        y[y <= 2] = 0
    return x, y


def brute(x, y):
    """Enumerate every order of the ranks in numpy; independent of the counting under test."""
    a, b = sps.rankdata(x), sps.rankdata(y)
    every = b[np.fromiter(permutations(range(len(b))), dtype=(np.int8, len(b)), count=factorial(len(b)))] @ a
    middle, observed = len(a) * (len(a) + 1) ** 2 / 4, a @ b
    # Sums of mid-rank products are multiples of a quarter: exact in floating point.
    return int((np.abs(every - middle) >= abs(observed - middle)).sum()), int((every >= observed).sum())


def scipy_plain(x, y):
    """The documented use: spearmanr on each of the n! pairings."""
    return sps.permutation_test((y,), lambda v: sps.spearmanr(x, v).statistic, permutation_type="pairings",
                                n_resamples=np.inf)


def scipy_vectorised(x, y):
    """The quickest fair use: ranks once, one matrix product over all pairings."""
    a, b = (sps.zscore(sps.rankdata(v)) for v in (x, y))
    return sps.permutation_test((b,), lambda v, axis: v @ a / len(a), permutation_type="pairings",
                                n_resamples=np.inf, vectorized=True)


def main():
    """Print both sides."""
    rng = np.random.default_rng(20260101)
    print(f"machine: {platform.platform()}; {cpu()}; {os.cpu_count()} cores")
    print(f"python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}")
    ok = True

    print("\n7 families (published ranks), 5,040 orders: exact_spearman against scipy.stats.permutation_test")
    x, y = np.array([4, 1, 2, 7, 3, 5, 6.0]), np.array([4, 1, 2, 5, 3, 6, 7.0])
    ours, t_ours = timed(lambda: exact_spearman(x, y), 50)
    plain, t_plain = timed(lambda: scipy_plain(x, y), 3)
    quick, t_quick = timed(lambda: scipy_vectorised(x, y), 20)
    print(f"  ours                        {t_ours * 1e3:9.3f} ms   p = {ours.p_two_sided:.12f} "
          f"({ours.two_sided_count}/{ours.n_orders})")
    sides = (("scipy with spearmanr", plain, t_plain), ("scipy, one matrix product", quick, t_quick))
    for name, found, seconds in sides:
        print(f"  {name:27s} {seconds * 1e3:9.3f} ms   p = {found.pvalue:.12f}   "
              f"ratio {seconds / t_ours:8.1f}")
    ok &= ours.p_two_sided == plain.pvalue == quick.pvalue and t_plain / t_ours >= 100

    print("\nexact counts against brute force (all orders listed)")
    for n in (7, 8, 9, 10):
        for ties in ("no", "few", "more"):
            x, y = pairs(n, ties, rng)
            ours, t_ours = timed(lambda x=x, y=y: exact_spearman(x, y), 5)
            slow, t_slow = timed(lambda x=x, y=y: brute(x, y))
            same = slow == (ours.two_sided_count, ours.one_sided_count)
            ok &= same
            print(f"  n = {n:2d}, {ties:4s} ties: ours {t_ours * 1e3:6.2f} ms, "
                  f"brute force {t_slow * 1e3:7.1f} ms, ratio {t_slow / t_ours:7.1f}, "
                  f"counts {slow} {'equal' if same else 'DIFFER'}")

    print("\nlong nulls, one cold call each (limits: 11 under 2 s, 14 under 10 s)")
    for n, limit in ((11, 2), (14, 10), (16, None)):
        for ties in ("no", "few", "more"):
            x, y = pairs(n, ties, rng)
            ours, seconds = timed(lambda x=x, y=y: exact_spearman(x, y))
            null = spearman_null(x, y)
            share = null["count"] / factorial(n)
            # Any random order gives variance 1/(n - 1), ties or not; and every order must have been counted.
            variance = (share * null["rho"]**2).sum()
            sound = null["count"].sum() == factorial(n) and abs(variance * (n - 1) - 1) < 1e-12
            ok &= sound and (limit is None or seconds < limit)
            print(f"  n = {n}, {ties:4s} ties: {seconds:6.3f} s, "
                  f"p = {ours.two_sided_count:,} / {ours.n_orders:,}; "
                  f"total and variance {'right' if sound else 'WRONG'}")

    print(f"\n{'all limits met' if ok else 'NOT all limits met'}")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
