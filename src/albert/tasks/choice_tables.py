"""From tables to questions with choices: people's own data for `choice`.

A row has a question, its choices (a list, or a column each), often a passage, and a label: the number of the right
choice, its letter, or its text. Numbers count from 0, or from 1 where the file shows it: no label is 0 and one is the
number of choices. All rows of a data set have as many choices as its first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from albert.data.cells import SHOWN, cell, class_cell, text_cell
from albert.data.detect import DETECT_ROWS, detect
from albert.data.holdout import content_key
from albert.data.labelled import Row, read_rows
from albert.errors import DataError, UsageError
from albert.tasks.choice import Choice, ChoiceExample
from albert.tasks.opening import open_files
from albert.tasks.race import is_race, read_race
from albert.tasks.request import DataRequest, Opened, sift_rows
from albert.tasks.task import Task
from albert.text.documents import ReadReport

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MAX_LENGTH = 512


def open_choices(request: DataRequest, task: Task[Any, Any, Any] | None) -> Opened:
    """Open tables of questions with choices."""
    report = ReadReport()
    data = list(read_rows(request.data, on_bad=request.on_bad_row, report=report))
    found = detect(data[:DETECT_ROWS], request.data, columns=request.columns, task="choice")
    num_choices = len(choices_of(data[0], found.columns))
    reader = ChoiceReader(found.columns, num_choices=num_choices)
    own = task or Choice(num_choices, max_length=request.max_length or MAX_LENGTH)
    if not isinstance(own, Choice):
        raise UsageError(f"{request.data}: holds questions with choices, the model was made for {own.kind}")

    def read(path: Path) -> list[ChoiceExample]:
        rows = data if path == request.data else list(read_rows(path, on_bad=request.on_bad_row, report=report))
        if not rows:
            raise DataError(f"{path}: no rows: there must be at least one below the header")
        labelled = path != request.test or found.columns.get("label") in rows[0].values
        if labelled and "label" not in found.columns:
            raise DataError(f"{rows[0].place}: no column of labels: add it, or say which it is (--columns label=NAME)")
        base = replace(reader, base=find_base(rows, found.columns) if labelled else 0)
        used = {role: name for role, name in found.columns.items() if labelled or role != "label"}
        return sift_rows(rows, used, lambda row: base.example(row, labelled=labelled), request.on_problem)

    notes = list(found.reasons)
    opened = open_files(
        request, own, read=read, key=_key, evaluated=task is not None, columns=found.columns, notes=notes
    )
    return replace(opened, notes=[*notes, *report.lines()])


def read_choices(task: Task[Any, Any, Any], path: Path, columns: Mapping[str, str]) -> Iterator[ChoiceExample]:
    """Read questions with choices, one at a time; labels are not looked at."""
    assert isinstance(task, Choice)
    if is_race(path):
        yield from read_race(path, labelled=False)
        return
    reader: ChoiceReader | None = None
    for row in read_rows(path):
        if reader is None:
            told = {role: name for role, name in columns.items() if role != "label"}
            reader = ChoiceReader(detect([row], path, columns=told, task="choice").columns)
        yield reader.example(row, labelled=False)


@dataclass(frozen=True)
class ChoiceReader:
    """Rows into examples."""

    columns: Mapping[str, str]
    num_choices: int | None = None  # that every row must have; None: any
    base: int = 0  # what labels count from

    def example(self, row: Row, *, labelled: bool) -> ChoiceExample:
        """Make an example of a row."""
        choices = choices_of(row, self.columns)
        if self.num_choices not in (None, len(choices)):
            raise DataError(
                f"{row.place}: {len(choices)} choices, must be {self.num_choices} as in the first row: "
                "add or remove choices, or remove the row"
            )
        passage = text_cell(row, "context", self.columns, empty=True) if "context" in self.columns else ""
        target = self._target(row, choices) if labelled else None
        return ChoiceExample(
            passage, text_cell(row, "question", self.columns, empty=True), choices, target, place=row.place
        )

    def _target(self, row: Row, choices: tuple[str, ...]) -> int:
        label = class_cell(row, "label", self.columns)
        if label in choices:
            return choices.index(label)
        letters = LETTERS[: len(choices)]
        if label is not None and label.isdecimal() and 0 <= int(label) - self.base < len(choices):
            return int(label) - self.base
        if label is not None and len(label) == 1 and label.upper() in letters:
            return letters.index(label.upper())
        raise DataError(
            f"{row.place}: label {label!r} is no choice: it must be a number from {self.base} to "
            f"{self.base + len(choices) - 1}, a letter from A to {letters[-1]}, or the text of a choice"
        )


def choices_of(row: Row, columns: Mapping[str, str]) -> tuple[str, ...]:
    """Give the choices of a row: a list, or the texts of several columns (their names joined by commas)."""
    name = columns["choices"]
    if name not in row.values and "," in name:
        return tuple(text_cell(row, "choices", {"choices": one}) for one in name.split(","))
    value = cell(row, "choices", columns)
    if not isinstance(value, list) or len(value) < 2 or not all(isinstance(one, str) and one.strip() for one in value):
        raise DataError(
            f"{row.place}: column {name!r} holds {str(value)[:SHOWN]!r}, must be a list of at least "
            "two texts that are not empty"
        )
    return tuple(value)


def find_base(rows: Sequence[Row], columns: Mapping[str, str]) -> int:
    """Tell whether the numbers of choices count from 0 or from 1."""
    numbers: list[tuple[int, int]] = []
    for row in rows:
        with suppress(DataError):  # which is told when the row becomes an example
            label, count = class_cell(row, "label", columns), len(choices_of(row, columns))
            if label is not None and label.isdecimal():
                numbers.append((int(label), count))
    return int(all(number > 0 for number, _ in numbers) and any(number == count for number, count in numbers))


def _key(example: ChoiceExample) -> str:
    return content_key(example.passage, example.question, *example.choices)
