"""Ten thousand scripted debates from an Inspect log through `row add`, and their row through `summarize`.

    python benchmarks/bench_rows.py [number of debates]

A log of up to 200 debates is made with Inspect's mock model, whose answers follow from the seed of each call,
and its samples are repeated as further epochs. Every step is a process of its own: seconds and peak memory
are those of the process. The limits are one minute and 2 GB for both steps together. Reading alone is
compared with inspect_ai's own sample reader on a part of the same log in `bench_logs.py`.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from analysis.collect import logs  # noqa: E402  teaches zipfile the compression of logs

BASE = 200
SUMMARIZE = """
from analysis import ledger, rows
print(ledger.summarize(rows.debates(["many"]))[list(ledger.CELLS)].iloc[0].sum())
"""


def scripted(folder, n):
    """Log of n debates; every third call agrees with what most say."""
    from inspect_ai import eval
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    from analysis.collect.debate import debate

    reasons = "Some reasons that go on for a while, as reasons do. " * 30

    def reply(messages, tools, tool_choice, config):
        label = "B" if config.seed % 3 == 0 else "ABCD"[config.seed // 3 % 4]
        output = ModelOutput.from_content("mockllm/model", f"{reasons}\nFinal Answer: {label}")
        # Where nothing is told, Inspect counts tokens with a vocabulary that it downloads.
        output.usage = ModelUsage(input_tokens=900, output_tokens=400, total_tokens=1300)
        return output

    model = get_model("mockllm/model", custom_outputs=reply)
    done = eval(debate(n=n, cache=False), model=model, log_dir=folder, display="none", max_samples=8)[0]
    return Path(done.location.removeprefix("file://"))


def repeated(path, target, n):
    """The same log with its samples as epochs 1, 2, ... until there are n."""
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as out:
        left, epoch = n, 0
        for member in source.infolist():
            if not member.filename.startswith("samples/"):
                out.writestr(member.filename, source.read(member), member.compress_type)
        names = [member for member in source.infolist() if member.filename.startswith("samples/")]
        while left:
            epoch += 1
            for member in names[:left]:
                sample = json.loads(source.read(member)) | {"epoch": epoch}
                name = member.filename.rpartition("_epoch_")[0] + f"_epoch_{epoch}.json"
                out.writestr(name, json.dumps(sample), member.compress_type)
            left -= len(names[:left])


# What a process inherits from its parent counts in getrusage, not here (Linux).
PEAK = """
import atexit, sys
def tell():
    (line,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    print(line.split()[1], file=sys.stderr)
atexit.register(tell)
"""


def measured(code, environment):
    """Output, seconds and peak memory (GB) of Python code in a process of its own."""
    started = time.perf_counter()
    command = [sys.executable, "-c", PEAK + code]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"ended with status {done.returncode}: {done.stderr}")
    return done.stdout, seconds, int(done.stderr.split()[-1]) * 1024 / 1e9


def main():
    n = int((sys.argv[1:] or ["10000"])[0])
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"INSPECT_CACHE_DIR": f"{folder}/replies", "XDG_DATA_HOME": f"{folder}/home"}
        log = Path(folder, "many.eval")
        repeated(scripted(f"{folder}/logs", min(n, BASE)), log, n)
        shutil.copytree(ROOT / "data", f"{folder}/data", ignore=shutil.ignore_patterns("rows", "multilevel"))
        environment = os.environ | {"DEBATE_LEDGER_DATA": f"{folder}/data", "PYTHONPATH": str(ROOT)}
        print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
        print(f"{n:,} debates, {12 * n:,} replies, log of {log.stat().st_size / 1e6:.0f} MB")
        names = ["--id", "many", "--model", "Scripted", "--family", "Scripted", "--synthetic"]
        words = ["row", "add", str(log), *names]
        _, adding, most = measured(f"from analysis import cli\ncli.app({words!r})", environment)
        print(f"row add      {adding:6.1f} s  {most:.2f} GB at its peak")
        counted, summing, later = measured(SUMMARIZE, environment)
        if int(counted) != n:
            raise SystemExit(f"{counted.strip()} debates counted; expected {n}")
        print(f"summarize    {summing:6.1f} s  {later:.2f} GB at its peak")
        held = adding + summing < 60 and max(most, later) < 2
        print(f"together     {adding + summing:6.1f} s  {'within' if held else 'NOT within'} 60 s and 2 GB")
        started = time.perf_counter()
        read = logs.answers(log)
        alone = time.perf_counter() - started
        print(f"reading the log alone {alone:.1f} s, {alone / (adding + summing):.0%} of both; {len(read):,} answers")


if __name__ == "__main__":
    main()
