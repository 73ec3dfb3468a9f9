"""How far a command is, on stderr: a live line on a terminal, else a plain line now and then.

Stages report through a plain callable; they know nothing of this.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

PLAIN_SECONDS = 10.0  # between two plain lines

T = TypeVar("T")
Show = Callable[[float, str], None]  # what is done, 0 to 1, and a few words


@dataclass(frozen=True)
class Line:
    """What shows progress when it is called, and says what is to stay on the screen."""

    show: Show
    say: Callable[[str], None]

    def __call__(self, done: float, words: str) -> None:
        """Show how far it is."""
        self.show(done, words)


@contextmanager
def progress_line(title: str) -> Iterator[Line]:
    """Yield the function that shows progress while the block runs."""
    if not sys.stderr.isatty():
        yield Line(_plain_lines(title), lambda text: print(text, file=sys.stderr, flush=True))
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

        def show(done: float, words: str) -> None:
            line.update(task, completed=done, words=words)

        yield Line(show, lambda text: line.console.print(text, markup=False, highlight=False, soft_wrap=True))


def count_read(items: Iterable[object], show: Show) -> int:
    """Return how many inputs there are: reading them costs little beside deciding them, and finds bad rows first."""
    number = 0
    for number, _ in enumerate(items, 1):
        show(0.0, f"{number:,} inputs read")
    return number


def counted(items: Iterable[T], show: Show, *, total: int) -> Iterator[T]:
    """Yield items, and show how many of all there have been."""
    for number, item in enumerate(items, 1):
        show(number / max(total, number), f"{number:,} of {total:,} inputs")
        yield item


def _plain_lines(title: str) -> Show:
    last = time.monotonic()
    first: tuple[float, float] | None = None  # time and share of the first report: a resumed run begins in the middle

    def show(done: float, words: str) -> None:
        nonlocal first, last
        now = time.monotonic()
        first = first or (now, done)
        if now - last < PLAIN_SECONDS:
            return
        last = now
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
