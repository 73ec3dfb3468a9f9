"""From tables to the tasks that decide about one text or two: classification, multi-label, regression.

The classes are those of the training table, or a model's when one is evaluated; a label that is not among them is an
error with its place. Where there is no dev table, a part of the training table is held out (data/holdout.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from albert.data.cells import SEPARATORS, class_cell, class_order, classes_cell, number_cell, text_cell
from albert.data.detect import DETECT_ROWS, detect, find_columns
from albert.data.holdout import balanced_weights, content_key
from albert.data.labelled import Row, read_rows
from albert.errors import DataError
from albert.tasks.classification import Classification, MultiLabel, Regression, TextExample
from albert.tasks.request import DataRequest, Opened
from albert.tasks.splits import divide, fingerprint
from albert.tasks.task import Task
from albert.text.documents import ReadReport

TextTask = Classification | MultiLabel | Regression
MAX_LENGTH = 128


@dataclass(frozen=True)
class Table:
    """A file of rows and what its columns are; without a label column its examples have no targets."""

    path: Path
    columns: Mapping[str, str]
    names: Sequence[str] | None = None
    skip_ragged: bool = False

    def rows(self, report: ReadReport) -> Iterator[Row]:
        """Read the file."""
        return read_rows(self.path, names=self.names, skip_ragged=self.skip_ragged, report=report)


@dataclass
class _Reading:
    """What is gathered while tables are read."""

    report: ReadReport = field(default_factory=ReadReport)
    notes: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)

    def rows(self, table: Table) -> list[Row]:
        self.files.append(table.path)
        rows = list(table.rows(self.report))
        if not rows:
            raise DataError(f"{table.path}: no rows: there must be at least one below the header")
        return rows


def open_texts(request: DataRequest, task: Task[Any, Any, Any] | None, *, fixed: TextTask | None = None) -> Opened:
    """Open a table of texts; `fixed` is a task whose classes and score are known, as those of GLUE are."""
    known = task or fixed
    sample = list(islice(read_rows(request.data), DETECT_ROWS))
    found = detect(sample, request.data, columns=request.columns, task=known.kind if known else request.task)
    table = Table(request.data, found.columns)
    dev = {"dev": Table(request.dev, found.columns)} if request.dev else {}
    test = {"test": _test_table(request.test, found.columns)} if request.test else {}
    if task is not None:
        return open_tables(request, task, train=None, dev={"dev": table} | dev, test=test)
    start: TextTask = fixed or _start(found.task, request)
    opened = open_tables(request, start, train=table, dev=dev, test=test)
    return replace(opened, notes=[*found.reasons, *opened.notes])


def _start(kind: str, request: DataRequest) -> TextTask:
    length = request.max_length or MAX_LENGTH
    match kind:
        case "classification":
            return Classification(labels=(), max_length=length)
        case "multi-label":
            return MultiLabel(labels=(), max_length=length)
        case _:
            return Regression(max_length=length)


def _test_table(path: Path, columns: Mapping[str, str]) -> Table:
    first = next(read_rows(path), None)
    labelled = first is not None and all(name in first.values for name in columns.get("label", "").split(","))
    return Table(path, columns if labelled else {role: name for role, name in columns.items() if role != "label"})


def open_tables(
    request: DataRequest,
    task: Task[Any, Any, Any],
    *,
    train: Table | None,
    dev: Mapping[str, Table],
    test: Mapping[str, Table],
) -> Opened:
    """Open tables whose columns are known; a task without classes takes those of the training table."""
    assert isinstance(task, TextTask)
    reading = _Reading()
    train_rows = reading.rows(train) if train else []
    columns = train.columns if train else next((table.columns for table in dev.values()), {})
    separator = find_separator(train_rows, columns) if isinstance(task, MultiLabel) else None
    if train and not isinstance(task, Regression) and not task.labels:
        task = replace(task, labels=_classes(task, train_rows, columns, separator=separator))
    reader = ExampleReader(task, separator=separator)
    train_set = [reader.example(row, columns) for row in train_rows]
    dev_sets = {name: [reader.example(row, t.columns) for row in reading.rows(t)] for name, t in dev.items()}
    test_sets = {
        name: [reader.example(row, t.columns, labelled="label" in t.columns) for row in reading.rows(t)]
        for name, t in test.items()
    }
    splits = divide(
        request,
        train_set,
        dev=dev_sets,
        test=test_sets,
        key=_key,
        stratum=(lambda example: example.target) if isinstance(task, Classification) else None,
        notes=reading.notes,
    )
    if train and isinstance(task, Classification):
        task = _with_counts(task, splits.train, request, train.path, reading.notes)
    return Opened(
        task=task,
        splits=splits,
        notes=[*reading.notes, *reading.report.lines()],
        fingerprint=fingerprint(reading.files, request),
        columns=columns,
    )


@dataclass(frozen=True)
class ExampleReader:
    """Rows into examples of a task."""

    task: TextTask
    separator: str | None = None
    _numbers: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.task, Regression):
            return
        labels = self.task.labels
        if labels == tuple(f"LABEL_{number}" for number in range(len(labels))):  # a model that knows only numbers
            self._numbers.update({str(number): number for number in range(len(labels))})
        self._numbers.update({label.casefold(): number for number, label in enumerate(labels)})
        self._numbers.update({label: number for number, label in enumerate(labels)})

    def example(self, row: Row, columns: Mapping[str, str], *, labelled: bool = True) -> TextExample:
        """Make an example; where labels are wanted there must be one."""
        return TextExample(
            text_cell(row, "text", columns, empty=not labelled),
            text_cell(row, "pair", columns, empty=not labelled) if "pair" in columns else None,
            self._target(row, columns) if labelled else None,
            place=row.place,
        )

    def _target(self, row: Row, columns: Mapping[str, str]) -> int | float | tuple[int, ...]:
        target: int | float | tuple[int, ...] | None
        match self.task:
            case Regression():
                target = number_cell(row, "label", columns)
            case MultiLabel():
                names = classes_cell(row, "label", columns, separator=self.separator)
                target = None if names is None else tuple(self._number(name, row) for name in names)
            case _:
                name = class_cell(row, "label", columns)
                target = None if name is None else self._number(name, row)
        if target is None:
            raise DataError(
                f"{row.place}: column {columns['label']!r} is empty, must be a label: fill it in or remove the row"
            )
        return target

    def _number(self, name: str, row: Row) -> int:
        number = self._numbers.get(name, self._numbers.get(name.casefold()))
        if number is None:
            assert not isinstance(self.task, Regression)
            shown = ", ".join(map(repr, self.task.labels[:10])) + (", …" if len(self.task.labels) > 10 else "")
            raise DataError(
                f"{row.place}: label {name!r} is none of {shown}, the labels of the training data: "
                "correct it, or train on rows that have it"
            )
        return number


def find_separator(rows: Sequence[Row], columns: Mapping[str, str]) -> str | None:
    """Find what separates the classes inside one cell of a table; None where cells are lists or single names."""
    cells = [row.values.get(columns["label"]) for row in rows]
    return next((mark for mark in SEPARATORS if any(isinstance(cell, str) and mark in cell for cell in cells)), None)


def _classes(
    task: Classification | MultiLabel, rows: Sequence[Row], columns: Mapping[str, str], *, separator: str | None
) -> tuple[str, ...]:
    """Collect the classes of the training rows."""
    names: set[str] = set()
    for row in rows:
        if isinstance(task, MultiLabel):
            names.update(classes_cell(row, "label", columns, separator=separator) or ())
        elif (name := class_cell(row, "label", columns)) is not None:
            names.add(name)
    if len(names) < (1 if isinstance(task, MultiLabel) else 2):
        raise DataError(
            f"{rows[0].path}: {len(names)} different labels in column {columns['label']!r} of {len(rows)} rows, "
            "there must be two at least: add rows of another class, or name the right column (--columns label=NAME)"
        )
    return class_order(names)


def _key(example: TextExample) -> str:
    return content_key(example.text, example.pair)


def _with_counts(
    task: Classification, train: Sequence[TextExample], request: DataRequest, path: Path, notes: list[str]
) -> Classification:
    """See that every class has rows, and weigh them when asked to."""
    targets = [example.target for example in train if isinstance(example.target, int)]
    counts = Counter(targets)
    empty = [label for number, label in enumerate(task.labels) if not counts[number]]
    if empty and request.limit_train:
        notes.append(
            f"warning: limit_train={request.limit_train} leaves no rows of class {', '.join(map(repr, empty))}"
        )
    elif empty:
        raise DataError(
            f"{path}: no row of class {', '.join(map(repr, empty))} to train on, "
            "every class needs one at least: add rows"
        )
    if request.class_weights:
        return replace(task, class_weights=balanced_weights(targets, num_classes=len(task.labels)))
    return task


def read_texts(task: Task[Any, Any, Any], path: Path, columns: Mapping[str, str]) -> Iterator[TextExample]:
    """Read texts to decide about, one at a time: labels are not looked at, and empty texts are allowed."""
    assert isinstance(task, TextTask)
    reader = ExampleReader(task)
    found: Mapping[str, str] | None = None
    for row in read_rows(path):
        if found is None:
            found = find_columns(row, columns)
        yield reader.example(row, found, labelled=False)
