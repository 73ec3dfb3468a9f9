"""What a bag of words has on dev, beside a tuned model: fitted when it is asked for, once per run folder.

On all of SST-2 (67,349 rows) it takes 3 seconds of a core, on longer texts more. So the run folder keeps the score, and
a run that goes on, or is finished, only reads it. Of several processes the first one fits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from albert.files import read_json, write_json
from albert.tasks.bag_of_words import bag_of_words
from albert.tasks.task import AnyTask
from albert.train.world import World

KEPT = "bag_of_words.json"


@dataclass
class WordBaseline:
    """The main metric of TF-IDF and a linear model on the dev set that decides; None: no task for it."""

    task: AnyTask
    train: Sequence[Any] = field(repr=False)
    dev: Sequence[Any] = field(repr=False)
    data: str  # fingerprint: a score of other data is not taken over
    _known: bool = False
    _score: float | None = None

    @property
    def score(self) -> float | None:
        """Return the score; the first call fits."""
        if not self._known:
            decided = bag_of_words(self.task, self.train, self.dev)
            self._set(None if decided is None else self.task.score(self.dev, decided)[self.task.best])
        return self._score

    def recall(self, folder: Path) -> None:
        """Take over the score that a run folder keeps, if it is that of the same data."""
        path = folder / KEPT
        if not self._known and path.is_file():
            kept = read_json(path)
            if kept.get("data") == self.data:
                self._set(kept.get("score"))

    def keep(self, folder: Path, *, world: World) -> None:
        """Know the score in every process, and keep it in the run folder."""
        self.recall(folder)
        if world.is_first and not (folder / KEPT).is_file():
            write_json(folder / KEPT, {"data": self.data, "score": self.score})
        own = self.score if world.is_first else None
        score = world.from_first(math.nan if own is None else own)
        self._set(None if math.isnan(score) else score)

    def _set(self, score: float | None) -> None:
        self._known, self._score = True, score
