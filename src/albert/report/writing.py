"""Writing the report of a run into its folder: by hand at any time, and whenever a run ends."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from albert.errors import AlbertError
from albert.files import atomic_write
from albert.report import finetuning, pretraining
from albert.train.history import read_history
from albert.train.run import RunFolder
from albert.train.world import World

log = logging.getLogger(__name__)

FILE = "report.html"


def write_report(folder: Path) -> Path:
    """Write a run's report into its folder."""
    history = read_history(folder)
    stage = finetuning if history.identity.get("stage") == "finetune" else pretraining
    text = stage.build_report(history)
    path = folder / FILE
    with atomic_write(path) as file:
        file.write(text.encode(errors="replace"))  # texts of others may hold halves of characters
    return path


@contextmanager
def reported(run: RunFolder | None, world: World) -> Iterator[None]:
    """Write the report however the run ends: done, interrupted, or with a loss that went wrong."""
    try:
        yield
    except AlbertError:
        if world.size == 1:  # else torchrun is about to end this process: the error must be said first
            _report(run)
        raise
    _report(run)


def _report(run: RunFolder | None) -> None:
    if run is None:
        return
    try:
        write_report(run.folder)
    except Exception as problem:  # hours of training end well even if a curve can't be drawn
        log.warning("no report (%s): try `albert report %s`", problem, run.folder)
