"""Coder against a plain-Python loop of the same chain, and against Inspect's own answer parsing.

    python benchmarks/bench_coder.py REPLIES.zip

REPLIES is a JSON list (plain or zipped) of objects with ``generated_text`` or ``model_outputs``, such as the
published MMLU-Pro outputs of a model; without it, synthetic replies are used. Both sides run in one process,
on processor time, the best of several repetitions. Inspect is measured where inspect_ai is installed, and
memory where Linux tells the peak.
"""

import json
import os
import platform
import re
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from analysis.coder import code_answers, code_numbers  # noqa: E402

LABELS = "ABCDEFGHIJ"
FIRST = [re.compile(pattern, re.I) for pattern in (
    r"Final\s+Answer\s*:\s*([A-J])\b", r"(?:the\s+)?answer\s+is\s*:?\s*([A-J])\b",
    r"(?:I\s+)?(?:choose|select|pick)\s+(?:option\s+)?([A-J])\b", r"(?:correct\s+)?answer\s*:\s*([A-J])\b")]
LINE = re.compile(r"^[\(\*]*([A-J])[\)\.\*]*$", re.I)
LETTER = re.compile(r"\b([A-J])\b")


def loop(text):
    """The paper's chain on one text, with compiled patterns."""
    text = text.strip()
    if not text:
        return None
    for pattern in FIRST:
        match = pattern.search(text)
        if match and match[1].upper() in LABELS:
            return match[1].upper()
    for line in reversed(text.split("\n")):
        line = line.strip()
        if len(line) == 1 and line.upper() in LABELS:
            return line.upper()
        match = LINE.match(line)
        if match and match[1].upper() in LABELS:
            return match[1].upper()
    letters = [letter for letter in LETTER.findall(text) if letter in LABELS]
    return letters[-1] if letters else None


def replies(path):
    if path is None:
        rng = np.random.default_rng(0)
        words = "the of a rate energy C price is answer so we find that I 12 option = choose".split()
        return [" ".join(rng.choice(words, 80)) + f". The answer is ({LABELS[rng.integers(10)]}).\n\n"
                for _ in range(12000)]
    raw = Path(path).read_bytes()
    if path.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            raw = archive.read(archive.namelist()[0])
    return [row.get("generated_text") or row.get("model_outputs") or "" for row in json.loads(raw)]


def best(function, repetitions=7):
    """Least processor time of all threads together, in seconds, and the result."""
    least = float("inf")
    for _ in range(repetitions):
        start = time.process_time()
        result = function()
        least = min(least, time.process_time() - start)
    return least, result


def inspect_parser(texts):
    """Inspect's reading of all texts as a function, or None where inspect_ai is not installed."""
    try:
        from inspect_ai.model import ChatMessageUser, ModelOutput
        from inspect_ai.solver import TaskState
        from inspect_ai.solver._multiple_choice import parse_answers
    except ImportError:
        return None
    states = [TaskState(model="mockllm/model", sample_id=i, epoch=0, input="", choices=list(LABELS),
                        messages=[ChatMessageUser(content="")],
                        output=ModelOutput.from_content("mockllm/model", text))
              for i, text in enumerate(texts)]
    return lambda: [parse_answers(state, False) for state in states]


def processor():
    """Name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def peak_memory(function):
    """Bytes by which the process grew at most during a call, or None where the system does not tell."""
    def status(field):
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line.split()[1] for line in lines if line.startswith(field)))
    try:
        Path("/proc/self/clear_refs").write_text("5")  # forget the highest point so far
        before = status("VmRSS")
        function()
        return status("VmHWM") - before
    except (OSError, StopIteration):
        return None


def main():
    texts = replies(sys.argv[1] if len(sys.argv) > 1 else None)
    series = pd.Series(texts, dtype="str")
    size = pa.array(texts, pa.large_string()).nbytes
    print(f"machine: {processor()}, {os.cpu_count()} cores; Python {platform.python_version()}, "
          f"pyarrow {pa.__version__}, pandas {pd.__version__}, numpy {np.__version__}")
    foreign = np.mean([not text.isascii() for text in texts])
    print(f"texts: {len(texts):,}, {size / 1e6:.1f} MB, {foreign:.0%} not ASCII")

    start = time.process_time()
    code_answers(series)
    print(f"first call in the process      {1e3 * (time.process_time() - start):8.1f} ms (tables are built)")
    slow, expected = best(lambda: [loop(text) for text in texts], 3)
    fast, coded = best(lambda: code_answers(series))
    same = int((coded.label.fillna("-") == pd.Series(expected, dtype="str").fillna("-")).sum())
    print(f"plain-Python loop              {1e3 * slow:8.1f} ms")
    print(f"reference, Series of str       {1e3 * fast:8.1f} ms  ratio {slow / fast:.1f}  "
          f"same labels {same:,}/{len(texts):,}")
    for name, function in {"reference, list of str": lambda: code_answers(texts),
                           "strict": lambda: code_answers(series, policy="strict"),
                           "anchored": lambda: code_answers(series, policy="anchored"),
                           "numbers": lambda: code_numbers(series)}.items():
        took, _ = best(function, 3)
        print(f"{name:<31}{1e3 * took:8.1f} ms  ratio {slow / took:.1f}")

    parser = inspect_parser(texts)
    if parser is None:
        print("inspect_ai is not installed: its answer parsing was not measured")
    else:
        import inspect_ai
        took, _ = best(parser, 3)
        print(f"inspect_ai {inspect_ai.__version__} parse_answers {1e3 * took:7.1f} ms  "
              f"(reference is {took / fast:.1f} times faster)")

    for name, text in {"12,000 characters, no letter": "x " * 6000, "1,200,000 characters": "x " * 600000,
                       "12,000 blanks after a cue": "answer" + " " * 12000,
                       "12,000 of one accent": "é" * 12000}.items():
        one = pd.Series([text], dtype="str")
        print(f"{name:<31}{1e3 * best(lambda one=one: code_answers(one), 20)[0]:8.2f} ms reference, "
              f"{1e3 * best(lambda one=one: code_answers(one, policy='anchored'), 3)[0]:8.2f} ms anchored")

    for name, many in {"20 copies of the texts": texts * 20, "one text of all": ["\n".join(texts) * 4],
                       "one Chinese text": ["答案是C，因为" * 1_000_000]}.items():
        column = pd.Series(many, dtype="str")
        length = sum(len(text.encode()) for text in many)
        peak = peak_memory(lambda column=column: code_answers(column))
        if peak is not None:
            print(f"peak memory, {name:<23}{length / 1e6:6.1f} MB: {peak / length:.2f} times the text")


if __name__ == "__main__":
    main()
