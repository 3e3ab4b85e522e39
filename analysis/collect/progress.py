"""Time left of a run: a counter in Inspect's display, a line on standard error where the display is plain."""

import sys
import time
import zipfile

from inspect_ai.hooks import Hooks, hooks
from inspect_ai.util import display_counter
from inspect_ai.util._display import display_type_plain

EVERY = 10  # seconds between two lines of a plain display


def left(seconds, done, total):
    """Say how long the rest takes if it goes on as it went.

    Parameters
    ----------
    seconds : float
        Since the start.
    done, total : int
        Questions that were finished since then, and that were open then.

    Returns
    -------
    str

    Examples
    --------
    >>> left(100, 3, 12), left(10, 1, 1000), left(10, 5, 5), left(10, 0, 5)
    ('5 min', '2 h 46 min', 'done', 'not known yet')
    """
    if done >= total:
        return "done"
    if not done:
        return "not known yet"
    minutes = round(seconds / done * (total - done) / 60)
    if not minutes:
        return "less than a minute"
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def finished(paths):
    """Count the questions that logs of earlier attempts hold; a log that broke off counts for nothing.

    Parameters
    ----------
    paths : iterable of Path

    Returns
    -------
    int

    Examples
    --------
    >>> finished([])
    0
    """
    found = set()
    for path in paths:
        try:
            with zipfile.ZipFile(path) as log:
                found |= {name for name in log.namelist() if name.startswith("samples/")}
        except zipfile.BadZipFile:
            continue
    return len(found)


@hooks(name="time_left", description="Time left of a run of debates or probes")
class TimeLeft(Hooks):
    """Counts finished questions; `expect` arms it, so that runs of other tasks are left alone."""

    total = done = 0
    start = told = 0.0

    @classmethod
    def expect(cls, total):
        """Begin to count: so many questions are open."""
        cls.total, cls.done, cls.start, cls.told = total, 0, time.monotonic(), 0.0

    def enabled(self):
        return TimeLeft.total > 0

    async def on_sample_end(self, data):
        cls, now = TimeLeft, time.monotonic()
        cls.done += 1
        said = left(now - cls.start, cls.done, cls.total)
        display_counter("time left", said)
        if display_type_plain() and (now - cls.told >= EVERY or cls.done >= cls.total):
            cls.told = now
            print(f"{cls.done} of {cls.total} questions, time left: {said}", file=sys.stderr, flush=True)
