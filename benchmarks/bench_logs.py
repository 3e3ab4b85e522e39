"""Reading a log of debates against inspect_ai's own readers of the same log.

    python benchmarks/bench_logs.py [LOG.eval | number of debates]

Without a log, one is made with Inspect's mock model. Each side runs three times in turn; the ratios are of the
fastest. All three yield the same replies, which is checked.
"""

import os
import platform
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analysis.collect import logs  # noqa: E402


def made(folder, n):
    """Log of n debates with a mock model that always says the same, at some length."""
    from inspect_ai import eval
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    from analysis.collect.debate import debate

    text = "Some reasons that go on for a while, as reasons do. " * 30 + "\nFinal Answer: B"

    def reply(*_):
        output = ModelOutput.from_content("mockllm/model", text)
        # Where nothing is told, Inspect counts tokens with a vocabulary that it downloads.
        output.usage = ModelUsage(input_tokens=900, output_tokens=400, total_tokens=1300)
        return output

    model = get_model("mockllm/model", custom_outputs=reply)
    done = eval(debate(n=n, cache=False), model=model, log_dir=folder, display="none", max_samples=8)[0]
    path = Path(done.location.removeprefix("file://"))
    if logs.replies(path)["missing"].any():
        raise SystemExit("calls of the mock model failed: the log is not what is to be read")
    return path


def ours(path):
    """The long answers with their texts."""
    return len(logs.answers(path, texts=True, arm="all"))


def inspect_samples(path):
    """One sample after the other, as Inspect yields them."""
    from inspect_ai.log import read_eval_log_samples

    return sum(replies(sample) for sample in read_eval_log_samples(str(path)))


def inspect_whole(path):
    """The whole log at once, as Inspect reads it by default."""
    from inspect_ai.log import read_eval_log

    return sum(replies(sample) for sample in read_eval_log(str(path)).samples)


def replies(sample):
    debate = sample.store["debate"]
    return len(debate["replies"]) + debate["agents"] * (len(debate["arms"]) - 1)  # each arm has Round 0


def main():
    given = (sys.argv[1:] or ["200"])[0]
    with tempfile.TemporaryDirectory() as folder:
        path = made(folder, int(given)) if given.isdigit() else Path(given)
        sides, times, found = (ours, inspect_samples, inspect_whole), {}, set()
        for _ in range(3):
            for side in sides:
                start = time.perf_counter()
                found.add(side(path))
                times.setdefault(side, []).append(time.perf_counter() - start)
        machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        print(f"{machine}: {path.stat().st_size / 1e6:.1f} MB, replies {found}")
    if len(found) > 1:
        raise SystemExit("the sides did not read the same")
    for side in sides:
        best = min(times[side])
        print(f"{side.__name__:16} {best:7.3f} s   {best / min(times[ours]):6.2f} times ours")


if __name__ == "__main__":
    main()
