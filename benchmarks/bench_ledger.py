"""The ledger on one million synthetic debates of 3 agents and 4 states, from Parquet; beside a plain-Python count.

    python benchmarks/bench_ledger.py [DEBATES]
"""

import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from analysis import ledger, synthetic, traces

LIMIT_SECONDS, LIMIT_GB = 10, 3


def ours(path):
    """Read, count and summarise in a process of its own, so that its peak memory is its own."""
    start = time.perf_counter()
    answers = traces.read(path)
    read = time.perf_counter() - start
    debates = ledger.debates(answers)
    counted = time.perf_counter() - start - read
    summary = ledger.summarize(debates)
    cells = {cell: int(summary[cell].iat[0]) for cell in ledger.CELLS}
    print(f"{read:.2f} {counted:.2f} {time.perf_counter() - start:.2f} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} {cells}")


def plain(path):
    """The same count as most scripts write it: dictionaries and Counter."""
    start = time.perf_counter()
    table = pq.read_table(path).to_pylist()
    votes, gold = defaultdict(lambda: defaultdict(list)), {}
    for line in table:
        key = line["question"]
        gold[key] = line["gold"]
        if line["answer"] is not None:
            votes[key][line["round"]].append(line["answer"])
    cells = Counter()
    for key, rounds in votes.items():
        right = []
        for r in range(4):
            counts = Counter(rounds.get(r, []))
            right.append(bool(counts) and min(counts, key=lambda label: (-counts[label], label)) == gold[key])
        cells[{(1, 1): "preserved", (1, 0): "collapse", (0, 1): "correction", (0, 0): "unrepaired"}[right[0], right[3]]] += 1
    return time.perf_counter() - start, dict(cells)


def main(n_debates=1_000_000, sample=100_000):
    print(f"machine: {platform.processor() or platform.machine()}, {platform.system()}, Python {platform.python_version()}, pandas {pd.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "debates.parquet")
        # Question ids as plain strings, as other programs write them: a dictionary of a million ids is slow to decode.
        synthetic.answers(n_debates, seed=1).astype({"question": "str"}).to_parquet(path)
        print(f"{n_debates:,} debates, {12 * n_debates:,} answers, {path.stat().st_size / 1e6:.0f} MB of Parquet")
        for _ in range(3):
            out = subprocess.run([sys.executable, __file__, "--ours", str(path)], capture_output=True, text=True, check=True).stdout
            read, counted, total, peak, cells = out.split(maxsplit=4)
            print(f"ours: read {read} s, count {counted} s, together {total} s, peak {peak} GB (limits {LIMIT_SECONDS} s, {LIMIT_GB} GB)  {cells.strip()}")
        small = Path(folder, "sample.parquet")
        synthetic.answers(sample, seed=2).to_parquet(small)
        seconds, counts = plain(small)
        start = time.perf_counter()
        summary = ledger.summarize(ledger.debates(traces.read(small)))
        mine = time.perf_counter() - start
        same = all(counts.get(cell, 0) == summary[cell].iat[0] for cell in ledger.CELLS)
        print(f"{sample:,} debates: plain Python {seconds:.2f} s, ours {mine:.2f} s, ratio {seconds / mine:.1f}, same counts: {same}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--ours"]:
        ours(sys.argv[2])
    else:
        main(*(int(argument) for argument in sys.argv[1:]))
