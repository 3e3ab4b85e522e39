"""Run a task of this package so that it can be killed at any point and started again."""

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from analysis.collect import logs, saved
from analysis.errors import DataError


def run(task, folder, *, model=None, roles=None, base_url=None, again=False, **options):
    """Run a task until it is done, or go on with it where an earlier run stopped.

    Samples that are in the folder's log are not run again: a call that failed in one of them stays a missing
    answer, unless it is asked for again. Within the others no reply is paid twice: replies are kept in the
    folder too.

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
    again : bool
        Whether samples with a failed call are run again: what failed is asked once more, and what followed
        from it; the other replies are taken from the folder.
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
    if base_url and "@" in urlsplit(base_url).netloc:
        raise DataError("base_url: holds a name or password, which logs would show; expected them in the environment")
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
        if not logs.is_log(path):  # torn, by a loss of power: Inspect cannot go on from it, but replies are stored
            path.rename(path.with_name(f"{path.name}.torn"))
    there = finished((folder / "logs").glob("*.eval"))
    if again:
        there -= sum(map(_set_aside, logs.found_at(folder)))
    TimeLeft.expect(len(task.dataset) * (options.get("epochs") or 1) - there)
    given = {"model": model} if model is not None else {}
    try:
        done, found = eval_set(
            task,
            log_dir=str(folder / "logs"),
            model_roles=roles,
            model_base_url=base_url,
            retry_attempts=options.pop("retry_attempts", 1),
            log_buffer=options.pop("log_buffer", _buffer(task, options.get("epochs"))),
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
        said = re.sub(r"\[/?(?:bold|blue)\]", "", str(problem)).removeprefix("ERROR: ")  # marks for a terminal
        raise DataError(f"{folder}: {' '.join(said.split())}") from problem
    except ValueError as problem:
        if "Model API" in str(problem):  # Inspect's own words for a provider that it does not have
            raise DataError(f"model {model!r}: {problem} Expected PROVIDER/NAME, as Inspect names it") from problem
        raise
    if not done:
        said = next(
            (log.error.message for log in found if log.error),
            f"status {found[0].status}" if found else "no log",
        )
        raise DataError(f"{folder}: the run did not end well ({said}); run the same command to go on")
    return [Path(log.location.removeprefix("file://")) for log in found]


def _buffer(task, epochs):
    """Samples between two writes of the log, which each write it whole: a hundred writes a run.

    Those in between are in Inspect's own buffer, and their replies in the folder.
    """
    return max(1, len(task.dataset) * (epochs or 1) // 100)


def _set_aside(path):
    """Mark the samples of a finished log in which a call failed, so that Inspect runs them anew; count them."""
    from inspect_ai.log import ProvenanceData, invalidate_samples, read_eval_log, write_eval_log

    head = read_eval_log(str(path), header_only=True)
    if head.status != "success" or head.invalidated:
        return 0  # it is gone on with in any case
    log = read_eval_log(str(path))
    failed = [sample.uuid for sample in log.samples or [] if saved.failed(sample.store)]
    if failed:
        told = ProvenanceData(author="analysis.collect", reason="a call failed")
        write_eval_log(invalidate_samples(log, failed, told), str(path))
    return len(failed)
