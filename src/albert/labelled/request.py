"""What a user says about data, and what opening it gives: the two ends of every reader of tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from albert.errors import DataError
from albert.labelled.cells import check_columns
from albert.labelled.class_folders import class_parts
from albert.labelled.detection import Detected
from albert.labelled.rows import Row

if TYPE_CHECKING:  # tasks load torch, which a check of a table has no need of
    from albert.tasks.task import AnyTask, ExampleT, Splits

OnProblem = Callable[[DataError], None]
SourceT = TypeVar("SourceT")


def refuse(problem: DataError) -> None:
    """End the reading at the first thing that breaks a rule."""
    raise problem


def sift(sources: Iterable[SourceT], make: Callable[[SourceT], ExampleT], on_problem: OnProblem) -> list[ExampleT]:
    """Make an example of each; what breaks a rule is told, and left out where that does not raise."""
    examples = []
    for source in sources:
        try:
            examples.append(make(source))
        except DataError as problem:
            on_problem(problem)
    return examples


def sift_rows(
    rows: Sequence[Row], columns: Mapping[str, str], make: Callable[[Row], ExampleT], on_problem: OnProblem
) -> list[ExampleT]:
    """Make an example of every row of a table; a column that no row has is told once."""
    try:
        check_columns(rows, columns)
    except DataError as problem:
        on_problem(problem)
        return []
    return sift(rows, make, on_problem)


@dataclass(frozen=True)
class DataRequest:
    """What a user may say about data; None and nothing mean: find out."""

    data: Path  # a file, a GLUE or RACE folder
    task: str | None = None  # one of catalog.task_names()
    dev: Path | None = None
    test: Path | None = None
    columns: Mapping[str, str] = field(default_factory=dict)  # role -> column: text, pair, label, ...
    holdout: float = 0.1  # share of the data that becomes dev when none is given
    seed: int = 0
    max_length: int | None = None
    class_weights: bool = False
    head: str | None = None  # of questions: span or conditional_span
    temperature: float | None = None  # of similarity; None: the usual one
    limit_train: int | None = None  # at most this many, after a seeded shuffle
    limit_dev: int | None = None
    on_problem: OnProblem = field(default=refuse, repr=False, compare=False)  # told of every row that breaks a rule
    found: Detected | None = field(default=None, repr=False, compare=False)  # in `data`, by whoever looked at it first

    def on_bad_row(self, place: str, reason: str) -> None:
        """Tell of a row that can't be read."""
        self.on_problem(DataError(f"{place}: {reason}"))


def with_parts(request: DataRequest, *, training: bool) -> DataRequest:
    """Name train, dev and test where the data is a folder of them, each with one folder per class (aclImdb)."""
    parts = class_parts(request.data)
    if not parts:
        return request
    if not training:
        return replace(request, data=parts.get("dev") or parts.get("test") or parts["train"])
    if "train" not in parts:
        raise DataError(f"{request.data}: has test and no train: name a folder to train on")
    return replace(
        request,
        data=parts["train"],
        dev=request.dev or parts.get("dev"),
        test=request.test or parts.get("test"),
    )


@dataclass(frozen=True)
class Opened:
    """A task with its examples; `train` is empty where there is nothing to train on."""

    task: AnyTask
    splits: Splits[Any]
    notes: list[str]  # what was found, assumed and mended, a line each
    fingerprint: str  # sha256 over the files read, the split rule and the seed
    columns: Mapping[str, str] = field(default_factory=dict)  # as found or told
    name: str = ""  # what --task would call it: mrpc, squad, classification
