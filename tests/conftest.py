"""Fixtures used by several test files."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHIPPED_ROW = "smollm2-135m"


@pytest.fixture(scope="session")
def shared():
    """Folder of optional outside material; the core tests do without it."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("optional outside material (../shared) is not on this machine")
    return folder


# --- the book, built in a copy of the project ------------------------------------------------------------------------

# What make hands to its children would make a make in a test follow the choices and the jobs of the one that runs the tests.
_OF_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MAKE_TERMOUT", "MAKE_TERMERR", "TIE", "MISSING", "INTERVAL", "JOBS")
_NOT_COPIED = shutil.ignore_patterns(
    ".*", "_build", "build", "__pycache__", "*.egg-info", "*.failed.ipynb",
)


def _left_out(folder, names):
    """Neither what is built nor rows that somebody added here: a copy is a fresh clone."""
    out = set(_NOT_COPIED(folder, names))
    if Path(folder) == ROOT / "book":
        out |= {name for name in names if name.endswith(".ipynb") or name == "rows"}
    if Path(folder) == ROOT / "data" / "rows":
        out |= set(names) - {SHIPPED_ROW}
    return out


@pytest.fixture(scope="session")
def copy_project():
    """Function that copies the project to a folder and lends it the running environment, marked as installed."""

    def copy(target):
        shutil.copytree(ROOT, target, ignore=_left_out)
        lent = target / ".venv"
        lent.mkdir()
        for entry in Path(sys.prefix).iterdir():
            if entry.name != "installed":
                (lent / entry.name).symlink_to(entry)
        (lent / "installed").touch()  # newer than the requirements: make installs nothing
        return target

    return copy


@pytest.fixture(scope="session")
def run():
    """Function that runs a command in a copy of the project, on that copy's package and data."""

    def run(project, *command, timeout=600):
        env = {name: value for name, value in os.environ.items() if name not in _OF_MAKE and name != "DEBATE_LEDGER_DATA"}
        env["PYTHONPATH"] = str(project)
        process = subprocess.Popen(
            [str(word) for word in command], cwd=project, env=env, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            pytest.fail(f"{' '.join(map(str, command))}: not done after {timeout} s\n{out}\n{err}")
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    return run


@pytest.fixture(scope="session")
def built(tmp_path_factory, copy_project, run):
    """The book, built once for all workers: the project's copy, what make said, and the finished site kept apart."""
    base = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        base = base.parent
    project, site, told = base / "book", base / "site", base / "book.json"
    with open(base / "book.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not told.exists():
            done = run(copy_project(project), "make", "book")
            if done.returncode == 0:
                shutil.copytree(project / "_build" / "html", site)
            told.write_text(json.dumps([done.returncode, done.stdout, done.stderr]))
    status, out, err = json.loads(told.read_text())
    if status != 0:
        pytest.fail(f"make book ended with {status}\n{out}\n{err}")
    return project, out, site
