"""How far a command is, on stderr: a live line on a terminal, else a plain line now and then.

Stages report through a plain callable; they know nothing of this.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

PLAIN_SECONDS = 10.0  # between two plain lines


class Show(Protocol):
    """Show what is done, 0 to 1, in a few words; a lasting line stays on the screen."""

    def __call__(self, done: float, words: str, *, lasting: bool = False) -> None: ...


@contextmanager
def progress_line(title: str) -> Iterator[Show]:
    """Give the function that shows progress while the block runs."""
    if not sys.stderr.isatty():
        yield _plain_lines(title)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[words]}"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as line:
        task = line.add_task(title, total=1.0, words="")

        def show(done: float, words: str, *, lasting: bool = False) -> None:
            if lasting:
                line.console.print(f"{title}: {words}", markup=False, highlight=False)
            else:
                line.update(task, completed=done, words=words)

        yield show


def _plain_lines(title: str) -> Show:
    last = time.monotonic()
    first: tuple[float, float] | None = None  # time and share of the first report: a resumed run begins in the middle

    def show(done: float, words: str, *, lasting: bool = False) -> None:
        nonlocal first, last
        now = time.monotonic()
        first = first or (now, done)
        if now - last < PLAIN_SECONDS and not lasting:
            return
        last = last if lasting else now
        began, share_then = first
        left = f", {duration((now - began) * (1 - done) / (done - share_then))} left" if done > share_then else ""
        share = f"{done:.0%}, " if done > 0 else ""  # of a stream nobody knows the end
        print(f"{title}: {share}{words}{left}", file=sys.stderr, flush=True)

    return show


def duration(seconds: float) -> str:
    """Say a time in the two units that matter."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
