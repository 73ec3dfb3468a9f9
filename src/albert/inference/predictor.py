"""The one inference path: from examples to decisions, for prediction, evaluation and serving alike.

Examples are taken a window at a time, so memory is constant on a stream of any length. Within a window their sequences
are sorted by length and packed into batches of about equal token counts; decisions come out in the order that the
examples came in. Knows how something is decided (every Task says so), and nothing of where examples come from or what
runs the model (an engine).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from albert.batch import Said, Wanted
from albert.inference.engine import Engine
from albert.tasks.task import Feature, batch_of
from albert.tokenizer import Tokenizer

WINDOW = 2048  # examples sorted together
FIRST_WINDOW = 64  # each is twice as large as the one before, so that the first decisions come soon
WINDOW_TOKENS = 2**20  # or fewer, when they are long
BATCH_TOKENS = 4096
SPARSE = 2  # a text of 512 tokens among hundreds of short ones would take gigabytes in rows

ExampleT = TypeVar("ExampleT")
ExampleIn = TypeVar("ExampleIn", contravariant=True)
FeatureT = TypeVar("FeatureT", bound=Feature)
PredictionT = TypeVar("PredictionT")
PredictionOut = TypeVar("PredictionOut", covariant=True)


class Decides(Protocol[ExampleIn, FeatureT, PredictionOut]):
    """How examples are decided: what prediction needs of a Task."""

    def encode(self, example: ExampleIn, tokenizer: Tokenizer) -> list[FeatureT]:
        """Turn an example into sequences, at least one."""

    def wanted(self, features: Sequence[FeatureT]) -> Wanted:
        """Return which heads a decision needs, and at which positions of these sequences."""

    def outputs(self, feature: FeatureT, said: Said) -> Any:
        """Return what a decision needs of a sequence, from what the wanted heads say of it."""

    def decide(self, example: ExampleIn, features: Sequence[FeatureT], outputs: Sequence[Any]) -> PredictionOut:
        """Decide one example from the outputs of its sequences."""


class Predictor:
    """An engine and its tokenizer, ready to decide examples of any task whose head the model has."""

    def __init__(self, engine: Engine, tokenizer: Tokenizer, *, batch_tokens: int = BATCH_TOKENS) -> None:
        self.engine, self.tokenizer, self.batch_tokens = engine, tokenizer, batch_tokens

    def predict(
        self, task: Decides[ExampleT, FeatureT, PredictionT], examples: Iterable[ExampleT], *, window: int = WINDOW
    ) -> Iterator[PredictionT]:
        """Decide examples, in order."""
        return self.predict_encoded(
            task, ((example, task.encode(example, self.tokenizer)) for example in examples), window=window
        )

    def predict_encoded(
        self,
        task: Decides[ExampleT, FeatureT, PredictionT],
        encoded: Iterable[tuple[ExampleT, Sequence[FeatureT]]],
        *,
        window: int = WINDOW,
    ) -> Iterator[PredictionT]:
        """Decide examples that come with their sequences, for who decides the same ones again and again."""
        for some in _windows(encoded, limit=window):
            outputs = self._run(task, [feature for _, group in some for feature in group])
            first = 0
            for example, group in some:
                yield task.decide(example, group, outputs[first : first + len(group)])
                first += len(group)

    def _run(self, task: Decides[Any, FeatureT, Any], features: Sequence[FeatureT]) -> list[Any]:
        """Compute the outputs of some sequences, each at its place."""
        outputs: list[Any] = [None] * len(features)
        for chosen in length_batches(features, tokens=self.batch_tokens):
            own = [features[i] for i in chosen]
            said = self.engine.run(batch_of(own), task.wanted(own))
            for place, feature, about in zip(chosen, own, said, strict=True):
                outputs[place] = task.outputs(feature, about)
        return outputs


def _windows(
    encoded: Iterable[tuple[ExampleT, Sequence[FeatureT]]], *, limit: int
) -> Iterator[list[tuple[ExampleT, Sequence[FeatureT]]]]:
    """Return as many examples at once as are to be held in memory."""
    some: list[tuple[ExampleT, Sequence[FeatureT]]] = []
    tokens, size = 0, min(FIRST_WINDOW, limit)
    for example, features in encoded:
        some.append((example, features))
        tokens += sum(len(feature.token_ids) for feature in features)
        if len(some) == size or tokens >= WINDOW_TOKENS:
            yield some
            some, tokens, size = [], 0, min(2 * size, limit)
    if some:
        yield some


def length_batches(features: Sequence[Feature], *, tokens: int) -> Iterator[list[int]]:
    """Divide sequences into batches of at most `tokens` (one sequence at least), longest first, by place.

    Where some engine lays texts out in rows of the longest, a batch has at most SPARSE times the tokens.
    """
    batch: list[int] = []
    filled = longest = 0
    for place in sorted(range(len(features)), key=lambda i: -len(features[i].token_ids)):
        length = len(features[place].token_ids)
        if batch and (filled + length > tokens or (len(batch) + 1) * longest > SPARSE * tokens):
            yield batch
            batch, filled = [], 0
        longest = longest if batch else length
        batch.append(place)
        filled += length
    if batch:
        yield batch
