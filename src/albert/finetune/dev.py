"""The dev scores of a run: its examples are encoded once, and decided by the one inference path at every evaluation.

The first set decides which model is best, and chooses what a task leaves to dev (from when on a question has no
answer); the others are scored with that. Every process decides its share of the examples, so that none waits for
another longer than for a training step, and the first one scores them all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from albert.finetune.job import encode_compactly
from albert.finetune.preparation import Prepared
from albert.inference.predictor import Predictor
from albert.inference.torch_engine import TorchEngine
from albert.model import Albert
from albert.report.decisions import keep_decisions
from albert.tasks.task import AnyTask
from albert.train.world import World


class DevScores:
    """Scores a model on the dev sets."""

    def __init__(self, model: Albert, prepared: Prepared, *, world: World) -> None:
        tokenizer = prepared.start.tokenizer
        self._predictor, self._dev = Predictor(TorchEngine(model), tokenizer), prepared.dev
        self._task, self._world, self._prepared = prepared.task, world, prepared
        self._encoded = {
            name: [
                (example, encode_compactly(prepared.task, example, tokenizer))
                for example in examples[world.rank :: world.size]
            ]
            for name, examples in prepared.dev.items()
        }
        self.settled: AnyTask = prepared.task  # with the settings that the first set chose
        self.last: dict[str, float] = {}
        self.decided: list[Any] = []  # at the last evaluation, about the first set

    def keep_decisions(self, folder: Path) -> None:
        """Write the last decisions about the set that decides, for the report."""
        examples = next(iter(self._dev.values()))
        keep_decisions(
            folder,
            self.settled,
            examples=examples,
            predictions=self.decided,
            baseline=self._prepared.baseline,
            bag_of_words=self._prepared.bag_of_words,
        )

    def score(self, step: int) -> dict[str, float]:
        """Score all dev sets: every process takes part, and the first one knows."""
        self.last = {}
        for number, (name, examples) in enumerate(self._dev.items()):
            shares = self._world.gather(list(self._predictor.predict_encoded(self._task, self._encoded[name])))
            if not self._world.is_first:
                continue
            predictions = [shares[place % len(shares)][place // len(shares)] for place in range(len(examples))]
            if not number:
                self.settled = self._task.settled(examples, predictions)
            decided = [self.settled.decided(prediction) for prediction in predictions]
            if not number:
                self.decided = decided
            prefix = f"valid_{name}_" if number else "valid_"
            self.last |= {f"{prefix}{key}": value for key, value in self.settled.score(examples, decided).items()}
        return self.last
