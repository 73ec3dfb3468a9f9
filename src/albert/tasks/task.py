"""What a task is: it owns its encoding, its head, its loss, its decision, its score, and its faces.

A new task is one small class. An example is whatever the task reads (a pair of texts, a question with its passage);
it becomes one or several sequences for the encoder (windows, choices). The training loop asks a task for losses, the
predictor asks it which heads it wants to hear and for decisions, and evaluation scores the predictor's decisions:
there is one inference path. In it a task sees plain arrays, whatever runs the model. A task never touches files,
batches or devices: readers make examples, the loop and the predictor make batches. Its faces are what users see of it:
the verb of `albert.load`, the record that `albert predict` writes, what the report keeps and shows, how the card says
to use it. docs/new_task.md adds a task, step by step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Self, TypeVar

from torch import Tensor

from albert.batch import STATES, Batch, Said, Wanted, pack
from albert.model import Albert, Packed
from albert.model.config import AlbertConfig
from albert.model.encoder import Encoded
from albert.tasks.decision import Decision
from albert.tasks.dev_view import DevView
from albert.tokenizer import Tokenizer


@dataclass(frozen=True)
class Example:
    """One thing to decide; every task has its own kind, with a target that is None where it is not known."""

    place: str = field(default="", kw_only=True)  # file:line, for messages
    others: Mapping[str, Any] = field(default_factory=dict, kw_only=True, compare=False, repr=False)  # columns to keep
    given: tuple[str, ...] = field(default=(), kw_only=True, compare=False, repr=False)  # of a record: in `others` too


@dataclass(frozen=True)
class Feature:
    """One sequence for the encoder; tasks add their targets and what a decision needs."""

    token_ids: Sequence[int]
    segment_ids: Sequence[int]
    unread: int = field(default=0, kw_only=True)  # tokens of the example that were cut off, in its first sequence


ExampleT = TypeVar("ExampleT", bound=Example)
FeatureT = TypeVar("FeatureT", bound=Feature)
PredictionT = TypeVar("PredictionT")
Record = dict[str, Any]


@dataclass(frozen=True)
class Splits(Generic[ExampleT]):
    """The examples of a data set; a set may have two dev sets (MNLI: matched and mismatched)."""

    train: Sequence[ExampleT]
    dev: Mapping[str, Sequence[ExampleT]]
    test: Mapping[str, Sequence[ExampleT]] = field(default_factory=dict)


class Task(ABC, Generic[ExampleT, FeatureT, PredictionT]):
    """A task; its fields are settings, and it has no other state."""

    kind: ClassVar[str]  # the name that a model folder remembers it by
    best: str  # the score that decides which model is best; larger is better
    max_length: int  # tokens of a sequence, special ones included
    apart: ClassVar[bool] = False  # whether sequences of one example train independently (windows; choices do not)
    verb: ClassVar[str]  # the method of `albert.load` that decides
    options: ClassVar[tuple[str, ...]] = ()  # what `albert predict` takes beside a text: --pair, --question, --choice
    usage: ClassVar[tuple[str, str]]  # for the card: a call of the verb, and the words after `albert predict FOLDER`
    pipeline: ClassVar[str] = ""  # for the card: the pipeline of transformers that decides the same
    early_exit: bool = False  # whether its loss wants the states of all layers
    view: ClassVar[type[DevView]] = DevView  # what the report shows of its decisions

    @property
    @abstractmethod
    def head(self) -> str:
        """Name the head it stands on, one of model.albert.HEADS; STATES: the encoder itself, without a head."""

    @property
    def heads(self) -> tuple[str, ...]:
        """Return the heads that its model has."""
        return () if self.head == STATES else (self.head,)

    @abstractmethod
    def configure(self, config: AlbertConfig) -> AlbertConfig:
        """Return the configuration of a model for this task: labels and problem type."""

    @abstractmethod
    def encode(self, example: ExampleT, tokenizer: Tokenizer) -> list[FeatureT]:
        """Turn an example into sequences, at least one."""

    def learnt(self, features: list[FeatureT]) -> list[FeatureT]:
        """Return those of an example's sequences that training takes: all, or as many as fit one pass."""
        return features

    @abstractmethod
    def count(self, features: Sequence[FeatureT]) -> float:
        """Count the predictions that the loss is a mean over; the loop adds them up over the global batch."""

    @abstractmethod
    def loss(
        self, model: Albert, packed: Packed, encoded: Encoded, *, features: Sequence[FeatureT], count: float
    ) -> Tensor:
        """Sum the losses of some sequences, divided by the global count."""

    def wanted(self, features: Sequence[FeatureT]) -> Wanted:
        """Return which heads a decision needs, and at which positions of these sequences: its own at [CLS]."""
        return {self.head: "class"}

    def outputs(self, feature: FeatureT, said: Said) -> Any:
        """Return what a decision needs of a sequence, from what the wanted heads say of it: all that its own says."""
        (output,) = said[self.head]
        return output

    @abstractmethod
    def decide(self, example: ExampleT, features: Sequence[FeatureT], outputs: Sequence[Any]) -> PredictionT:
        """Decide one example from the outputs of its sequences."""

    @abstractmethod
    def score(self, examples: Sequence[ExampleT], predictions: Sequence[PredictionT]) -> dict[str, float]:
        """Score decisions against the examples' targets; has the key `best`."""

    def settled(self, examples: Sequence[ExampleT], predictions: Sequence[PredictionT]) -> Self:
        """Return the task with the settings that are chosen on dev (from when on a question has no answer)."""
        return self

    def decided(self, prediction: PredictionT) -> PredictionT:
        """Decide again by the settings of this task what was decided before they were chosen."""
        return prediction

    def baseline(self, examples: Sequence[ExampleT]) -> Callable[[ExampleT], PredictionT] | None:
        """Return the best constant prediction (the majority class of these examples); None: there is none."""
        return None

    @abstractmethod
    def asked(self, *given: Any, **named: Any) -> tuple[list[ExampleT], bool]:
        """Return examples of what a caller gives to the verb, and whether it is a list of them or a single one."""

    @abstractmethod
    def example(self, text: str, *, pair: str | None, question: str | None, choices: Sequence[str]) -> ExampleT:
        """Return the example of one text on the command line; what is not among `options` is not given."""

    @abstractmethod
    def record(self, example: ExampleT, prediction: PredictionT) -> Record:
        """Return an input and what was decided about it, as plain values with names."""

    def decision(self, example: ExampleT, prediction: PredictionT) -> Decision | None:
        """Return what the report keeps of an example and its decision; None: the report shows no decisions."""
        return None

    def remembered(self) -> dict[str, Any]:
        """Return the settings that a model folder keeps (task.json), so that prediction does what evaluation did."""
        return {"max_length": self.max_length}

    def files(self, config: AlbertConfig) -> dict[str, Any]:
        """Return files by which other programs know what a model folder is for: JSON values by their names."""
        return {}


AnyTask = Task[Any, Any, Any]


def batch_of(features: Sequence[Feature]) -> Batch:
    """Lay sequences end to end."""
    return pack([f.token_ids for f in features], [f.segment_ids for f in features])


def join_segments(
    tokenizer: Tokenizer, first: Sequence[int], second: Sequence[int] | None = None
) -> tuple[list[int], list[int]]:
    """Put special tokens around one or two token lists: `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`, with segments."""
    token_ids = [tokenizer.cls_id, *first, tokenizer.sep_id]
    segment_ids = [0] * len(token_ids)
    if second is not None:
        token_ids += [*second, tokenizer.sep_id]
        segment_ids += [1] * (len(second) + 1)
    return token_ids, segment_ids


def truncate_pair(first: Sequence[int], second: Sequence[int], *, room: int) -> tuple[Sequence[int], Sequence[int]]:
    """Shorten the longer list from its end until both fit, as Google's and transformers' `longest_first` do."""
    excess = len(first) + len(second) - room
    if excess <= 0:
        return first, second
    difference = len(first) - len(second)
    longer = min(abs(difference), excess)
    rest = excess - longer  # taken from both in turn, from the second when they are equal
    cut_first, cut_second = (longer, 0) if difference > 0 else (0, longer)
    cut_first, cut_second = cut_first + rest // 2, cut_second + (rest + 1) // 2
    return first[: len(first) - cut_first], second[: len(second) - cut_second]
