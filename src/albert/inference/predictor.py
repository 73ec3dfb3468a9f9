"""The one inference path: from examples to decisions, for prediction, evaluation and serving alike.

Examples are taken a window at a time, so memory is constant on a stream of any length. Within a window their sequences
are sorted by length and packed into batches of about equal token counts; decisions come out in the order that the
examples came in. Knows tasks, and nothing of where examples come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import torch

from albert.model import Albert, Packed
from albert.tasks.task import ExampleT, Feature, FeatureT, PredictionT, Task, batch_of
from albert.tokenizer import Tokenizer

WINDOW = 2048  # examples sorted together
BATCH_TOKENS = 4096


class Predictor:
    """A model and its tokenizer, ready to decide examples of any task whose head the model has."""

    def __init__(self, model: Albert, tokenizer: Tokenizer, *, batch_tokens: int = BATCH_TOKENS) -> None:
        self.model, self.tokenizer, self._batch_tokens = model.eval(), tokenizer, batch_tokens

    def predict(
        self, task: Task[ExampleT, FeatureT, PredictionT], examples: Iterable[ExampleT], *, window: int = WINDOW
    ) -> Iterator[PredictionT]:
        """Decide examples, in order."""
        source = iter(examples)
        while some := list(islice(source, window)):
            features = [task.encode(example, self.tokenizer) for example in some]
            outputs = self._run(task, [feature for group in features for feature in group])
            first = 0
            for example, group in zip(some, features, strict=True):
                yield task.decide(example, group, outputs[first : first + len(group)])
                first += len(group)

    @torch.inference_mode()
    def _run(self, task: Task[Any, FeatureT, Any], features: Sequence[FeatureT]) -> list[Any]:
        """Compute the outputs of some sequences, each at its place."""
        outputs: list[Any] = [None] * len(features)
        for chosen in length_batches(features, tokens=self._batch_tokens):
            own = [features[i] for i in chosen]
            packed = Packed.from_batch(batch_of(own), self.model.device)
            encoded = self.model(packed)
            for place, output in zip(chosen, task.outputs(self.model, packed, encoded, features=own), strict=True):
                outputs[place] = output
        return outputs


def length_batches(features: Sequence[Feature], *, tokens: int) -> Iterator[list[int]]:
    """Divide sequences into batches of at most `tokens` (one sequence at least), longest first, by place."""
    batch: list[int] = []
    filled = 0
    for place in sorted(range(len(features)), key=lambda i: -len(features[i].token_ids)):
        length = len(features[place].token_ids)
        if batch and filled + length > tokens:
            yield batch
            batch, filled = [], 0
        batch.append(place)
        filled += length
    if batch:
        yield batch
