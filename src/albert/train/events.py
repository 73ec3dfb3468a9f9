"""TensorBoard event files of a run's metrics, where TensorBoard is installed (extra `track`); elsewhere, nothing.

Every process that works on a run writes a file of its own and begins it with a session start, which makes TensorBoard
drop what earlier files say of steps that are run again. Each write is flushed: a killed run has shown all it logged.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from albert.files import naming

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

log = logging.getLogger(__name__)

HELD_OUT = "valid_"  # begins the names of held-out scores


class EventFiles:
    """The event files of one run folder, for the process that writes it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer: SummaryWriter | None = None
        self._wanted = True
        self.first_step = 0  # what is known of this step and later ones will be told anew

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Add the metrics of a step; the first call opens the file."""
        if self._wanted and self._writer is None:
            self._writer = _open(self._folder, first_step=self.first_step)
            self._wanted = self._writer is not None
        if self._writer is None:
            return
        with naming(self._folder):
            for name, value in metrics.items():
                self._writer.add_scalar(_tag(name), value, global_step=step)
            self._writer.flush()

    def close(self) -> None:
        """End the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _open(folder: Path, *, first_step: int) -> SummaryWriter | None:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as absent:
        log.debug("no event files: %s (pip install 'albert-lite[track]')", absent)
        return None
    return SummaryWriter(str(folder), purge_step=first_step)


def _tag(name: str) -> str:
    """Put training and held-out metrics of the same name into two groups."""
    return f"valid/{name.removeprefix(HELD_OUT)}" if name.startswith(HELD_OUT) else f"train/{name}"
