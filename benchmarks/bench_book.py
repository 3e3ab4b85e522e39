"""`make book` from nothing executed, beside a bare two-process papermill pool plus a render-only build of the same notebooks.

Works on a copy of the project; the environment must be installed (`make book` or `make test` has done that).

    python benchmarks/bench_book.py
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT_SECONDS, LIMIT_RATIO, LIMIT_IDLE = 90, 1.3, 10


def copy(folder):
    target = Path(folder, "project")
    shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(".venv", "_build", "build", ".git", "*.ipynb_checkpoints", "__pycache__", ".pytest_cache"))
    for executed in [*target.glob("book/*.ipynb"), *target.glob("book/rows/*.ipynb")]:
        executed.unlink()
    os.symlink(ROOT / ".venv", target / ".venv")
    return target


def run(command, project):
    start = time.perf_counter()
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(project)})
    if done.returncode:
        sys.exit(f"{command} failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return time.perf_counter() - start


def execute(job):
    import papermill

    source, target, parameters = job
    papermill.execute_notebook(str(source), str(target), parameters=parameters, cwd=str(source.parent), progress_bar=False, log_output=False)


def bare(project):
    """The floor: papermill in two processes that stay alive, then one render."""
    ids = sorted(path.parent.name for path in project.glob("data/rows/*/row.json"))
    jobs = []
    for source in sorted(project.glob("notebooks/*.ipynb")):
        if source.stem == "row":
            jobs += [(source, project / "book" / "rows" / f"{id}.ipynb", {"row_id": id}) for id in ids]
        elif source.stem == "claims":
            jobs.append((source, project / "book" / source.name, {}))
        else:
            jobs.append((source, project / "book" / source.name, {"added_rows": ids}))
    (project / "book" / "rows").mkdir(exist_ok=True)
    start = time.perf_counter()
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(execute, jobs))
    executed = time.perf_counter() - start
    build = [str(project / ".venv/bin/jupyter-book"), "build", "book", "--config", f"{project}/_config.yml", "--toc", f"{project}/_toc.yml", "--path-output", ".", "-q"]
    return executed, run(build, project)


def main(repeats=2):
    print(f"machine: {platform.processor() or platform.machine()}, {platform.system()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            project = copy(folder)
            os.environ["PYTHONPATH"] = str(project)
            executed, rendered = bare(project)
        with tempfile.TemporaryDirectory() as folder:
            project = copy(folder)
            os.utime(ROOT / ".venv" / "installed")
            ours = run(["make", "book"], project)
            idle = run(["make", "book"], project)
        floor = executed + rendered
        print(f"make book {ours:.1f} s (limit {LIMIT_SECONDS}); bare pool {executed:.1f} s + render {rendered:.1f} s = {floor:.1f} s; "
              f"ratio {ours / floor:.2f} (limit {LIMIT_RATIO}); nothing changed {idle:.1f} s (limit {LIMIT_IDLE})")


if __name__ == "__main__":
    main()
