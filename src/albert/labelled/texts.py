"""From tables to the tasks that decide about one text or two: classification, multi-label, regression.

The classes are those of the training table, or a model's when one is evaluated; a label that is not among them is an
error with its place. Where there is no dev table, a part of the training table is held out (labelled/holdout.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from albert.errors import DataError
from albert.labelled.cells import beside_columns, is_labelled, text_cell
from albert.labelled.detection import DETECT_ROWS, detect, find_columns
from albert.labelled.holdout import balanced_weights, content_key
from albert.labelled.request import DataRequest, Opened, sift_rows
from albert.labelled.rows import OnBad, Row, quoting_notes, read_rows, sample_rows
from albert.labelled.splits import divide, fingerprint
from albert.labelled.targets import Targets, case_warnings, find_classes, find_separator, has_verdict, without_verdict
from albert.tasks.classification import Classification, MultiLabel, Regression, TextExample
from albert.tasks.saved_task import KINDS
from albert.tasks.task import AnyTask
from albert.text.documents import ReadReport

TextTask = Classification | MultiLabel | Regression
MAX_LENGTH = 128
FEWEST_GROUPS = 20  # pairs of one first text stay together unless they are more than one row in so many


@dataclass(frozen=True)
class Table:
    """A file of rows and what its columns are; without a label column its examples have no targets."""

    path: Path
    columns: Mapping[str, str]
    names: Sequence[str] | None = None
    skip_ragged: bool = False

    def rows(self, report: ReadReport, on_bad: OnBad) -> Iterator[Row]:
        """Read the file."""
        skip = partial(_skip_ragged, report) if self.skip_ragged else on_bad
        return read_rows(self.path, names=self.names, on_bad=skip, report=report)


def _skip_ragged(report: ReadReport, place: str, _reason: str) -> None:
    report.add("ragged_row", place)


@dataclass
class _Reading:
    """What is gathered while tables are read."""

    request: DataRequest
    report: ReadReport = field(default_factory=ReadReport)
    notes: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)

    def rows(self, table: Table) -> list[Row]:
        self.files.append(table.path)
        rows = list(table.rows(self.report, self.request.on_bad_row))
        if not rows:
            raise DataError(f"{table.path}: no rows: there must be at least one below the header")
        return rows

    def decided(self, rows: list[Row], columns: Mapping[str, str], hidden: frozenset[str]) -> list[Row]:
        """Leave out rows whose label says that there is none."""
        if not hidden or "label" not in columns:
            return rows
        kept = [row for row in rows if has_verdict(row, columns, hidden)]
        if len(kept) < len(rows):
            labels = " or ".join(sorted(map(repr, hidden)))
            self.notes.append(
                f"{rows[0].path}: {len(rows) - len(kept):,} of {len(rows):,} rows are left out: {labels}, no label"
            )
        return kept

    def examples(self, rows: Sequence[Row], columns: Mapping[str, str], targets: Targets | None) -> list[TextExample]:
        used = {role: name for role, name in columns.items() if targets or role != "label"}
        return sift_rows(rows, used, lambda row: _example(row, columns, targets), self.request.on_problem)


def open_texts(request: DataRequest, task: AnyTask | None, *, fixed: TextTask | None = None) -> Opened:
    """Open a table of texts; `fixed` is a task whose classes and score are known, as those of GLUE are."""
    known = task or fixed
    found = request.found or detect(
        sample_rows(request.data, DETECT_ROWS),
        request.data,
        columns=request.columns,
        task=known.kind if known else request.task,
    )
    table = Table(request.data, found.columns)
    dev = {"dev": Table(request.dev, found.columns)} if request.dev else {}
    test = {"test": _test_table(request.test, found.columns)} if request.test else {}
    if task is not None:
        return open_tables(request, task, train=None, dev={"dev": table}, test=test)
    start: TextTask = fixed or _start(found.task, request)
    opened = open_tables(request, start, train=table, dev=dev, test=test)
    if isinstance(opened.task, Regression) and not fixed and opened.splits.train:  # STS-B stays as everybody trains it
        if len({example.target for example in opened.splits.train}) == 1:
            value = opened.splits.train[0].target
            raise DataError(
                f"{request.data}: column {found.columns['label']!r} is {value} in all rows to train on: there is "
                "nothing to learn: add rows with other numbers, or name the right column (--columns label=NAME)"
            )
        opened = replace(opened, task=opened.task.fitted(opened.splits.train))
    quoted = quoting_notes(table.path, (example.text for example in opened.splits.train))
    return replace(opened, notes=[*found.reasons, *opened.notes, *quoted])


def _start(kind: str, request: DataRequest) -> TextTask:
    """Return a task of a kind whose classes, where it has any, are still to be found."""
    own, length = KINDS[kind], request.max_length or MAX_LENGTH
    assert issubclass(own, TextTask)
    return own(max_length=length) if issubclass(own, Regression) else own(labels=(), max_length=length)


def _test_table(path: Path, columns: Mapping[str, str]) -> Table:
    labelled = is_labelled(read_rows(path, on_bad=lambda _place, _why: None), columns)
    return Table(path, columns if labelled else {role: name for role, name in columns.items() if role != "label"})


def open_tables(
    request: DataRequest,
    task: AnyTask,
    *,
    train: Table | None,
    dev: Mapping[str, Table],
    test: Mapping[str, Table],
) -> Opened:
    """Open tables whose columns are known; a task without classes takes those of the training table."""
    assert isinstance(task, TextTask)
    reading = _Reading(request)
    train_rows = reading.rows(train) if train else []
    columns = train.columns if train else next((table.columns for table in dev.values()), {})
    dev_rows = {name: reading.rows(table) for name, table in dev.items()}
    test_rows = {name: reading.rows(table) for name, table in test.items()}
    if isinstance(task, Classification):
        every = [*train_rows, *(row for rows in (dev_rows | test_rows).values() for row in rows)]
        hidden = without_verdict(every, columns, known=task.labels)
        train_rows = reading.decided(train_rows, columns, hidden)
        dev_rows = {name: reading.decided(rows, dev[name].columns, hidden) for name, rows in dev_rows.items()}
        test_rows = {name: reading.decided(rows, test[name].columns, hidden) for name, rows in test_rows.items()}
    separator = None
    if isinstance(task, MultiLabel):
        separator = find_separator([*train_rows, *(row for rows in dev_rows.values() for row in rows)], columns)
    fixed = bool(train and not isinstance(task, Regression) and task.labels)  # by the task, as those of GLUE are
    if train and not isinstance(task, Regression) and not task.labels:
        task = replace(task, labels=find_classes(task.kind, train_rows, columns, separator=separator))
        reading.notes += case_warnings(task.labels)
    targets = Targets(task.kind, () if isinstance(task, Regression) else task.labels, separator, fixed=fixed)
    train_set = reading.examples(train_rows, columns, targets)
    dev_sets = {name: reading.examples(rows, dev[name].columns, targets) for name, rows in dev_rows.items()}
    test_sets = {
        name: reading.examples(rows, test[name].columns, targets if "label" in test[name].columns else None)
        for name, rows in test_rows.items()
    }
    together = _by_first_text(train_set) if not dev_sets else None
    splits = divide(
        request,
        train_set,
        dev=dev_sets,
        test=test_sets,
        key=_key,
        stratum=(lambda example: example.target) if isinstance(task, Classification) else None,
        group=together,
        notes=reading.notes,
    )
    if train and isinstance(task, Classification):
        task = _with_counts(task, splits.train, request, train.path, reading.notes)
    if isinstance(task, MultiLabel):
        met = {number for example in splits.train if isinstance(example.target, tuple) for number in example.target}
        if splits.train and (never := [label for number, label in enumerate(task.labels) if number not in met]):
            reading.notes.append(f"warning: no row to train on has {', '.join(map(repr, never))}")
    return Opened(
        task=task,
        splits=splits,
        notes=[*reading.notes, *reading.report.lines()],
        fingerprint=fingerprint(reading.files, request, rule="pairs by their first text" if together else None),
        columns=columns,
    )


def _example(row: Row, columns: Mapping[str, str], targets: Targets | None) -> TextExample:
    """Make an example; where targets are wanted there must be a label, and texts must not be empty."""
    return TextExample(
        text_cell(row, "text", columns, empty=targets is None),
        text_cell(row, "pair", columns, empty=targets is None) if "pair" in columns else None,
        targets.of(row, columns) if targets else None,
        place=row.place,
    )


def _key(example: TextExample) -> str:
    return content_key(example.text, example.pair)


def _by_first_text(examples: Sequence[TextExample]) -> Callable[[TextExample], str] | None:
    """Return what holds pairs of one first text together, premises and questions; None where that would be too many."""
    counts = Counter(content_key(example.text) for example in examples if example.pair is not None)
    if not 1 < max(counts.values(), default=0) <= len(examples) / FEWEST_GROUPS:
        return None
    return lambda example: content_key(example.text)


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


def read_texts(task: AnyTask, path: Path, columns: Mapping[str, str], report: ReadReport) -> Iterator[TextExample]:
    """Read texts to decide about, one at a time: labels are not looked at, and empty texts are allowed."""
    assert isinstance(task, TextTask)
    found: Mapping[str, str] | None = None
    for row in read_rows(path, report=report):
        if found is None:
            found = find_columns(row, columns)
        yield beside_columns(_example(row, found, None), row, found, "text", "pair")
