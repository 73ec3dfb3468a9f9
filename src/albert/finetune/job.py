"""Fine-tuning as a job for the training loop: any Task, on examples that are encoded once.

What is drawn is an item: an example with all its sequences (choices stay together), or one sequence where a task says
that they train independently (windows). Items form one endless sequence, epoch after epoch, each in an order of its
own that is computed from (seed, epoch); batch k holds the items k·size to (k+1)·size of it. So a batch is a function
of its step, any number of processes sees the same ones, and a resume needs nothing but the step. Knows neither files
nor how a model is evaluated: the stage gives it that.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from albert.batch import MICRO_TOKENS
from albert.data.randomness import epoch_key, shuffled
from albert.errors import DataError, UsageError
from albert.model import Albert, Packed
from albert.tasks.classification import Regression
from albert.tasks.task import AnyTask, Example, Feature, batch_of
from albert.tokenizer import Tokenizer
from albert.train.loop import MicroLoss
from albert.train.settings import TrainSettings
from albert.train.world import World


@dataclass(frozen=True)
class Items:
    """The training examples as sequences, and how long they are."""

    items: Sequence[Sequence[Feature]]
    examples: int

    @property
    def sequences(self) -> int:
        """Count the sequences."""
        return sum(len(item) for item in self.items)

    @property
    def tokens(self) -> int:
        """Count the tokens."""
        return sum(_tokens(item) for item in self.items)

    @property
    def longest(self) -> int:
        """Return the tokens of the longest sequence."""
        return max(len(feature.token_ids) for item in self.items for feature in item)


def encode_items(task: AnyTask, examples: Iterable[Example], tokenizer: Tokenizer) -> Items:
    """Encode training examples; the sequences of one stay together unless the task has them apart."""
    items: list[list[Feature]] = []
    count = 0
    for example in examples:
        count += 1
        features = encode_compactly(task, example, tokenizer)
        if task.apart:
            items += [[feature] for feature in features]
        else:
            items.append(task.learnt(features))
    if not items:
        raise DataError("there is nothing to train on: the training set is empty")
    return Items(items, count)


def encode_compactly(task: AnyTask, example: Example, tokenizer: Tokenizer) -> list[Feature]:
    """Encode an example to be kept: token ids in 4 bytes each and segments in one; lists take ten times that."""
    return [
        replace(feature, token_ids=array("i", feature.token_ids), segment_ids=array("b", feature.segment_ids))
        for feature in task.encode(example, tokenizer)
    ]


def _tokens(item: Sequence[Feature]) -> int:
    return sum(len(feature.token_ids) for feature in item)


def batch_items(items: Sequence[Sequence[Feature]], step: int, *, batch_size: int, seed: int) -> list[list[Feature]]:
    """Return the items of a step: a function of these numbers alone."""
    places = np.arange(step * batch_size, (step + 1) * batch_size)
    chosen: list[int] = []
    for epoch in range(int(places[0]) // len(items), int(places[-1]) // len(items) + 1):
        own = places[places // len(items) == epoch] % len(items)
        chosen += shuffled(own, len(items), key=epoch_key(seed, epoch)).tolist()
    return [list(items[i]) for i in chosen]


class FinetuneJob:
    """A task's loss on its training items, for the training loop; `score` evaluates the model."""

    def __init__(
        self,
        model: Albert,
        task: AnyTask,
        items: Items,
        *,
        settings: TrainSettings,
        world: World,
        score: Callable[[int], dict[str, float]] = lambda _: {},
    ) -> None:
        if settings.compile:
            raise UsageError("train.compile=true is for pre-training: texts of mixed lengths gain nothing by it here")
        if settings.batch_size % world.size:
            raise UsageError(f"train.batch_size={settings.batch_size} is not a multiple of the {world.size} processes")
        self.model, self._task, self._items = model, task, items.items
        self.heavy_tails = isinstance(task, Regression)  # of squares: one target far from the others is enough
        self._settings, self._world, self._score = settings, world, score

    def batches(self, first_step: int) -> Iterator[list[list[Feature]]]:
        """Yield this process's micro-batches, step after step."""
        share = self._settings.batch_size // self._world.size
        for step in range(first_step, self._settings.steps):
            items = batch_items(self._items, step, batch_size=self._settings.batch_size, seed=self._settings.seed)
            own = items[self._world.rank * share : (self._world.rank + 1) * share]
            yield list(_micro_batches(own, size=self._settings.micro_batch))

    def counts(self, batch: list[Feature]) -> list[float]:
        """Count the predictions of a micro-batch."""
        return [self._task.count(batch)]

    def loss(self, batch: list[Feature], *, counts: list[float], step: int) -> MicroLoss:
        """Compute a micro-batch's share of the task's loss."""
        packed = Packed.from_batch(batch_of(batch), self._world.device)
        encoded = self.model(packed, all_layers=self._task.early_exit)
        loss = self._task.loss(self.model, packed, encoded, features=batch, count=counts[0])
        return MicroLoss(loss, {"tokens": float(sum(packed.lengths))})

    def summarise(self, sums: dict[str, float]) -> dict[str, float]:
        """Return nothing beside the loss: tasks are scored on dev."""
        return {}

    def evaluate(self, step: int) -> dict[str, float]:
        """Score the model on dev."""
        return self._score(step)


def _micro_batches(items: Sequence[list[Feature]], *, size: int | None) -> Iterator[list[Feature]]:
    """Divide a process's items: `size` at once, or as many as fit the tokens; an item is never divided.

    A text in windows may have thousands of tokens, so these are bounded also where `size` is given.
    """
    batch: list[Feature] = []
    held = filled = 0
    for item in items:
        tokens = _tokens(item)
        over = filled + tokens > MICRO_TOKENS
        windows = any(getattr(feature, "goes_on", False) for feature in item)
        full = over if size is None else held == size or (over and windows)
        if batch and full:
            yield batch
            batch, held, filled = [], 0, 0
        batch += item
        held, filled = held + 1, filled + tokens
    yield batch
