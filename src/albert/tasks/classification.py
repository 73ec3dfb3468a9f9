"""Deciding about one text or a pair of texts: a class, several classes at once, or a number.

All three stand on the pooled [CLS]. Classification is a softmax over labels, optionally with class weights;
multi-label is an independent yes or no per label; regression is one number with squared error (STS-B), of targets that
may be centred and scaled. A long text that is read in windows is decided by the mean of their logits, weighed by their
tokens, and trained so: its windows share one loss.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor

from albert.batch import MICRO_TOKENS
from albert.errors import ModelError
from albert.model import Albert, Packed
from albert.model.config import AlbertConfig
from albert.model.encoder import Encoded
from albert.model.losses import binary_cross_entropy, cross_entropy, squared_error
from albert.tasks.asking import Texts, column, side_by_side
from albert.tasks.classified import Label, Labels, Number
from albert.tasks.decision import Decision, shorten
from albert.tasks.dev_view import DevView
from albert.tasks.scores import SCORES, multi_label_scores, regression_scores
from albert.tasks.task import Example, Feature, PredictionT, Record, Task, join_segments, truncate_pair
from albert.tasks.text_views import ClassView, LabelsView, NumberView
from albert.tasks.windows import even_spans
from albert.tokenizer import Tokenizer

LongRule = Literal["first", "mean"]  # a text that is too long: its first window, or the mean over all; pairs are cut


@dataclass(frozen=True)
class TextExample(Example):
    """One text or two, with a label number, the numbers of several labels, or a value."""

    text: str
    pair: str | None = None
    target: int | float | tuple[int, ...] | None = None


@dataclass(frozen=True)
class TextFeature(Feature):
    """A sequence with the target of its text."""

    target: int | float | tuple[int, ...] | None
    goes_on: bool = False  # a further window of the text before it


class _OnPooled(Task[TextExample, TextFeature, PredictionT]):
    """What the three have in common."""

    verb: ClassVar[str] = "classify"
    options: ClassVar[tuple[str, ...]] = ("pair",)
    usage: ClassVar[tuple[str, str]] = ('classify("A man came.")', '"A man came."')
    max_length: int
    long: LongRule
    early_exit: bool  # whether the head is trained on every layer, so that texts may leave early

    @property
    def head(self) -> str:
        return "classifier"

    def encode(self, example: TextExample, tokenizer: Tokenizer) -> list[TextFeature]:
        first = tokenizer.encode(example.text)
        if example.pair is None:
            room = self.max_length - 2
            if self.long == "first":
                unread = max(0, len(first) - room)
                return [TextFeature(*join_segments(tokenizer, first[:room]), example.target, unread=unread)]
            spans = even_spans(len(first), room=room)
            windows = [join_segments(tokenizer, first[start:end]) for start, end in spans]
            return [TextFeature(*window, example.target, i > 0) for i, window in enumerate(windows)]
        second = tokenizer.encode(example.pair)
        pair = truncate_pair(first, second, room=self.max_length - 3)
        unread = len(first) + len(second) - len(pair[0]) - len(pair[1])
        return [TextFeature(*join_segments(tokenizer, *pair), example.target, unread=unread)]

    def learnt(self, features: list[TextFeature]) -> list[TextFeature]:
        return features[: max(1, MICRO_TOKENS // self.max_length)]  # they share one loss, so one pass

    def loss(
        self, model: Albert, packed: Packed, encoded: Encoded, *, features: Sequence[TextFeature], count: float
    ) -> Tensor:
        targets = targets_of(features)
        if not self.early_exit:
            return self._loss(mean_logits(model.heads["classifier"](encoded.pooled), features), targets, count=count)
        # the one head on every layer, weighed by depth (PABEE): the last counts most, the first still learns
        weights = range(1, len(encoded.layers) + 1)
        pooled = [model.encoder.pool(states, packed) for states in encoded.layers]
        logits = [mean_logits(model.heads["classifier"](own), features) for own in pooled]
        losses = [self._loss(own, targets, count=count) for own in logits]
        return torch.stack([weight * loss for weight, loss in zip(weights, losses, strict=True)]).sum() / sum(weights)

    def asked(self, text: str | Texts, pair: str | Texts | None = None) -> tuple[list[TextExample], bool]:
        if pair is None:
            examples = [TextExample(one) for one in column("text", text)]
        else:
            examples = [TextExample(one, other) for one, other in side_by_side(text=text, pair=pair)]
        return examples, not isinstance(text, str)

    def example(self, text: str, *, pair: str | None, question: str | None, choices: Sequence[str]) -> TextExample:
        return TextExample(text, pair)

    def record(self, example: TextExample, prediction: PredictionT) -> Record:
        given = {"text": example.text} | ({} if example.pair is None else {"pair": example.pair})
        return given | self._record(prediction)

    def decision(self, example: TextExample, prediction: PredictionT) -> Decision:
        pair = example.pair or ""
        text = shorten(example.text) + (f" ‖ {shorten(pair)}" if pair else "")
        length = len(example.text.split()) + len(pair.split())
        return replace(self._decision(example.target, prediction), text=text, length=length, place=example.place)

    def remembered(self) -> dict[str, Any]:
        changed = {"long": self.long} if self.long != "first" else {}
        return super().remembered() | changed | ({"early_exit": True} if self.early_exit else {})

    @abstractmethod
    def _record(self, prediction: PredictionT) -> Record: ...

    @abstractmethod
    def _decision(self, target: Any, prediction: PredictionT) -> Decision: ...

    @abstractmethod
    def _loss(self, logits: Tensor, targets: Sequence[Any], *, count: float) -> Tensor: ...


@dataclass(frozen=True)
class Classification(_OnPooled[Label]):
    """One of several classes."""

    kind: ClassVar[str] = "classification"
    pipeline: ClassVar[str] = "text-classification"
    view: ClassVar[type[DevView]] = ClassView
    labels: tuple[str, ...]
    max_length: int = 128
    best: str = "accuracy"
    class_weights: tuple[float, ...] | None = field(default=None, compare=False)  # of the loss; None: all equal
    long: LongRule = "first"
    early_exit: bool = False

    def configure(self, config: AlbertConfig) -> AlbertConfig:
        return config.with_settings({"labels": self.labels, "problem_type": "single_label_classification"})

    def count(self, features: Sequence[TextFeature]) -> float:
        targets = targets_of(features)
        if self.class_weights is None:
            return float(len(targets))
        return float(sum(self.class_weights[target] for target in targets))  # type: ignore[index, misc]

    def _loss(self, logits: Tensor, targets: Sequence[Any], *, count: float) -> Tensor:
        labels = torch.tensor(targets, device=logits.device)
        if self.class_weights is None:
            return cross_entropy(logits, labels, count=count)
        weights = torch.tensor(self.class_weights, device=logits.device)[labels]
        each = torch.nn.functional.cross_entropy(logits.float(), labels, reduction="none")
        return (weights * each).sum() / count

    def decide(self, example: TextExample, features: Sequence[TextFeature], outputs: Sequence[Any]) -> Label:
        probabilities = softmax(mean_of_windows(np.stack(outputs), features))
        return Label(
            self.labels[int(probabilities.argmax())], dict(zip(self.labels, probabilities.tolist(), strict=True))
        )

    def score(self, examples: Sequence[TextExample], predictions: Sequence[Label]) -> dict[str, float]:
        number = {label: i for i, label in enumerate(self.labels)}
        truth = np.array([example.target for example in examples])
        guesses = np.array([number[prediction.label] for prediction in predictions])
        return SCORES[self.best](truth, guesses)

    def baseline(self, examples: Sequence[TextExample]) -> Callable[[TextExample], Label]:
        counts = Counter(example.target for example in examples)
        shares = {label: counts[i] / max(1, len(examples)) for i, label in enumerate(self.labels)}
        constants = [Label(label, shares) for label in sorted(self.labels, key=lambda label: -shares[label])]
        if len(constants) > 2 or not examples:  # by accuracy and Matthews' correlation none beats the majority class
            return lambda _: constants[0]
        best = max(constants, key=lambda one: self.score(examples, [one] * len(examples))[self.best])  # the F1 of QQP
        return lambda _: best

    def _record(self, prediction: Label) -> Record:
        share = prediction.probabilities[prediction.label]
        return {"label": prediction.label, "probability": share, "probabilities": prediction.probabilities}

    def _decision(self, target: Any, prediction: Label) -> Decision:
        truth, guess = self.labels[target], prediction.label
        return Decision(
            "", 0, (truth,), (guess,), float(truth == guess), probabilities=(prediction.probabilities[guess],)
        )

    def remembered(self) -> dict[str, Any]:
        return super().remembered() | {"best": self.best}


@dataclass(frozen=True)
class MultiLabel(_OnPooled[Labels]):
    """Any number of classes: a yes or no for each."""

    kind: ClassVar[str] = "multi-label"
    pipeline: ClassVar[str] = "text-classification"
    view: ClassVar[type[DevView]] = LabelsView
    labels: tuple[str, ...]
    max_length: int = 128
    best: str = "micro_f1"
    threshold: float = 0.5
    long: LongRule = "first"
    early_exit: bool = False

    def configure(self, config: AlbertConfig) -> AlbertConfig:
        return config.with_settings({"labels": self.labels, "problem_type": "multi_label_classification"})

    def count(self, features: Sequence[TextFeature]) -> float:
        return float(len(targets_of(features)) * len(self.labels))

    def _loss(self, logits: Tensor, targets: Sequence[Any], *, count: float) -> Tensor:
        return binary_cross_entropy(logits, torch.from_numpy(self._rows(targets)).to(logits.device), count=count)

    def decide(self, example: TextExample, features: Sequence[TextFeature], outputs: Sequence[Any]) -> Labels:
        logits = mean_of_windows(np.stack(outputs), features)
        probabilities = 1 / (1 + np.exp(-logits.astype(np.float64)))
        named = dict(zip(self.labels, probabilities.tolist(), strict=True))
        return Labels(tuple(label for label, p in named.items() if p >= self.threshold), named)

    def score(self, examples: Sequence[TextExample], predictions: Sequence[Labels]) -> dict[str, float]:
        number = {label: i for i, label in enumerate(self.labels)}
        guesses = self._rows([tuple(number[label] for label in prediction.labels) for prediction in predictions])
        return multi_label_scores(self._rows([example.target for example in examples]), guesses)

    def baseline(self, examples: Sequence[TextExample]) -> Callable[[TextExample], Labels]:
        means = self._rows([example.target for example in examples]).mean(axis=0)
        named = dict(zip(self.labels, means.tolist(), strict=True))
        right = np.cumsum(np.sort(means)[::-1])  # by saying the 1, 2, … most frequent: the F1 of each choice
        count = int((2 * right / (np.arange(1, len(means) + 1) + means.sum())).argmax()) + 1
        usual = Labels(tuple(sorted(named, key=lambda label: -named[label])[:count]), named)
        return lambda _: usual

    def _rows(self, targets: Sequence[Any]) -> np.ndarray:
        rows = np.zeros((len(targets), len(self.labels)), dtype=np.float32)
        for row, target in zip(rows, targets, strict=True):
            row[list(target)] = 1
        return rows

    def _record(self, prediction: Labels) -> Record:
        return {"labels": list(prediction.labels), "probabilities": prediction.probabilities}

    def _decision(self, target: Any, prediction: Labels) -> Decision:
        truth, guess = tuple(self.labels[number] for number in sorted(target)), prediction.labels
        sure = tuple(prediction.probabilities[label] for label in self.labels)
        return Decision("", 0, truth, guess, float(set(truth) == set(guess)), probabilities=sure)

    def remembered(self) -> dict[str, Any]:
        return super().remembered() | {"threshold": self.threshold}


@dataclass(frozen=True)
class Regression(_OnPooled[Number]):
    """A number."""

    kind: ClassVar[str] = "regression"
    view: ClassVar[type[DevView]] = NumberView
    max_length: int = 128
    best: str = "pearson_spearman"
    centre: float = 0.0  # the model's 0, in the units of the data
    scale: float = 1.0  # the model's 1
    long: LongRule = "first"
    early_exit: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.centre) and math.isfinite(self.scale) and self.scale > 0):
            raise ModelError(f"centre={self.centre}, scale={self.scale}: both are finite, and the scale is above 0")

    def fitted(self, examples: Sequence[TextExample]) -> Self:
        """Return the task with mean and deviation of these targets: a head learns numbers around 0, not 50,000."""
        targets = np.array([example.target for example in examples], dtype=np.float64)
        return replace(self, centre=float(targets.mean()), scale=float(targets.std()) or 1.0)

    def configure(self, config: AlbertConfig) -> AlbertConfig:
        return config.with_settings({"labels": ("value",), "problem_type": "regression"})

    def count(self, features: Sequence[TextFeature]) -> float:
        return float(len(targets_of(features)))

    def _loss(self, logits: Tensor, targets: Sequence[Any], *, count: float) -> Tensor:
        scaled = [(target - self.centre) / self.scale for target in targets]
        values = torch.tensor(scaled, dtype=torch.float32, device=logits.device)
        return squared_error(logits.squeeze(-1), values, count=count)

    def decide(self, example: TextExample, features: Sequence[TextFeature], outputs: Sequence[Any]) -> Number:
        return Number(float(mean_of_windows(np.stack(outputs), features)[0]) * self.scale + self.centre)

    def score(self, examples: Sequence[TextExample], predictions: Sequence[Number]) -> dict[str, float]:
        truth = np.array([example.target for example in examples], dtype=np.float64)
        return regression_scores(truth, np.array([prediction.value for prediction in predictions]))

    def baseline(self, examples: Sequence[TextExample]) -> Callable[[TextExample], Number]:
        mean = Number(float(np.mean([example.target for example in examples])))
        return lambda _: mean

    def _record(self, prediction: Number) -> Record:
        return {"value": prediction.value}

    def _decision(self, target: Any, prediction: Number) -> Decision:
        true, said = float(target), prediction.value
        return Decision("", 0, (f"{true:.4g}",), (f"{said:.4g}",), abs(said - true), values=(true, said))

    def remembered(self) -> dict[str, Any]:
        plain = (self.centre, self.scale) == (0.0, 1.0)
        return super().remembered() | ({} if plain else {"centre": self.centre, "scale": self.scale})


def targets_of(features: Sequence[TextFeature]) -> list[int | float | tuple[int, ...] | None]:
    """Return the target of each text."""
    return [feature.target for feature in features if not feature.goes_on]


def mean_logits(logits: Tensor, features: Sequence[TextFeature]) -> Tensor:
    """Return the logits of texts from those of their windows, as `mean_of_windows` does for one text."""
    first = torch.tensor([not feature.goes_on for feature in features])
    if first.all():
        return logits
    text = (first.cumsum(0) - 1).to(logits.device)
    sizes = torch.tensor([float(len(feature.token_ids)) for feature in features], device=logits.device)
    whole = sizes.new_zeros(int(first.sum())).index_add(0, text, sizes)
    share = (sizes / whole.index_select(0, text)).unsqueeze(-1)
    return logits.new_zeros(len(whole), logits.shape[-1]).index_add(0, text, (logits * share).to(logits.dtype))


def mean_of_windows(rows: np.ndarray, features: Sequence[Feature]) -> np.ndarray:
    """Return the mean of the logits of a text's windows, [windows, …], weighed by their tokens."""
    if len(rows) == 1:
        one: np.ndarray = rows[0]
        return one
    mean: np.ndarray = np.average(rows, axis=0, weights=[len(feature.token_ids) for feature in features])
    return mean


def softmax(logits: np.ndarray) -> np.ndarray:
    """Return the logits of classes, in the last dimension, as probabilities."""
    powers = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    result: np.ndarray = powers / powers.sum(axis=-1, keepdims=True)
    return result
