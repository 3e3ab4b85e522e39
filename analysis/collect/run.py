"""Run a task of this package so that it can be killed at any point and started again."""

import os
from pathlib import Path

from analysis.collect import logs as run_logs
from analysis.errors import DataError


def run(task, folder, *, model=None, roles=None, base_url=None, **options):
    """Run a task until it is done, or go on with it where an earlier run stopped.

    Samples that are in the folder's log are not run again. Within the others no reply is paid twice: replies
    are kept in the folder too.

    Parameters
    ----------
    task : inspect_ai.Task
        Made by `analysis.collect.debate.debate` or `analysis.collect.probe.probe`. The same arguments must be
        given when it is run again.
    folder : str or Path
        Made if it is not there.
    model : str or inspect_ai.model.Model, optional
        As Inspect names models; Inspect's own setting if left out.
    roles : dict of str to str, optional
        Models of single agents: ``{"agent_1": "openai/...", ...}``.
    base_url : str, optional
        Address of the model's server.
    **options
        Further options of `inspect_ai.eval_set`, such as `epochs`, `max_connections`, `max_samples`,
        `display`.

    Returns
    -------
    list of Path
        The finished log.

    Raises
    ------
    DataError
        The run did not end well, or the folder holds a run of something else.

    Examples
    --------
    >>> run(debate(pool="logic"), "runs/mine", model="ollama/llama3.1")  # doctest: +SKIP
    """
    folder = Path(folder)
    # Set before Inspect looks: a run's replies lie beside its log, so that no other run can take them for its
    # own.
    os.environ["INSPECT_CACHE_DIR"] = str((folder / "replies").resolve())
    from inspect_ai import eval_set
    from inspect_ai._util.error import PrerequisiteError

    from analysis.collect.progress import TimeLeft, finished

    # Inspect counts the task's file, seen from the working directory, as part of what the task is: a run that
    # is started again from another directory would not be known.
    task.__task_file__ = None
    for path in (folder / "logs").glob("*.eval"):
        if not run_logs.is_log(path):  # torn, by a loss of power: Inspect cannot go on from it, replies are stored
            path.rename(path.with_name(f"{path.name}.torn"))
    there = finished((folder / "logs").glob("*.eval"))
    TimeLeft.expect(len(task.dataset) * (options.get("epochs") or 1) - there)
    given = {"model": model} if model is not None else {}
    try:
        done, logs = eval_set(
            task,
            log_dir=str(folder / "logs"),
            model_roles=roles,
            model_base_url=base_url,
            retry_attempts=options.pop("retry_attempts", 1),
            log_buffer=options.pop("log_buffer", 1),
            fail_on_error=False,
            **given,
            **options,
        )
    except PrerequisiteError as problem:
        if "not associated with a task" in str(problem):
            raise DataError(
                f"{folder}: holds a run with other questions or settings; expected a new folder, or the "
                "arguments of that run"
            ) from problem
        raise DataError(f"{folder}: {problem}") from problem
    if not done:
        said = next(
            (log.error.message for log in logs if log.error), f"status {logs[0].status}" if logs else "no log"
        )
        raise DataError(f"{folder}: the run did not end well ({said}); run the same command to go on")
    return [Path(log.location.removeprefix("file://")) for log in logs]
