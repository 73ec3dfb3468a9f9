"""From tables to questions with choices: people's own data for `choice`.

A row has a question, its choices (a list, or a column each), often a passage, and a label: the number of the right
choice, its letter, or its text. Whether numbers count from 0 or from 1 the files show together, and a model remembers
it for files that don't; whether letters are places or texts of choices they show together too. What can be read in two
ways is an error. All rows of a data set have as many choices as its first. Questions about one passage are held out
together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from albert.errors import DataError, UsageError
from albert.labelled.cells import SHOWN, beside_columns, cell, class_cell, is_labelled, listed, text_cell
from albert.labelled.detection import DETECT_ROWS, detect
from albert.labelled.holdout import content_key
from albert.labelled.opening import open_files
from albert.labelled.race import read_race
from albert.labelled.recognition import is_race
from albert.labelled.request import DataRequest, Opened, sift_rows
from albert.labelled.rows import Row, read_rows
from albert.tasks.choice import Choice, ChoiceExample
from albert.tasks.task import AnyTask
from albert.text.documents import ReadReport

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MAX_LENGTH = 512


def open_choices(request: DataRequest, task: AnyTask | None) -> Opened:
    """Open tables of questions with choices."""
    report = ReadReport()
    data = list(read_rows(request.data, on_bad=request.on_bad_row, report=report))
    found = request.found or detect(data[:DETECT_ROWS], request.data, columns=request.columns, task="choice")
    num_choices = len(choices_of(data[0], found.columns))
    own = task or Choice(num_choices, max_length=request.max_length or MAX_LENGTH)
    if not isinstance(own, Choice):
        raise UsageError(f"{request.data}: holds questions with choices, the model was made for {own.kind}")
    files = {request.data: data}
    for path in (request.dev, request.test):
        if path is not None and path not in files:
            files[path] = list(read_rows(path, on_bad=request.on_bad_row, report=report))
    if "label" not in found.columns:
        raise DataError(f"{data[0].place}: no column of labels: add it, or say which it is (--columns label=NAME)")
    unlabelled = {path for path, rows in files.items() if path == request.test and not _has_labels(rows, found.columns)}
    labels = [label for path, rows in files.items() if path not in unlabelled for label in _labels(rows, found.columns)]
    numbers = read_numbers(labels, request.data, known=own.first_label)
    counted = any(label.number is not None for label in labels)
    if task is None and counted and numbers.places:
        own = replace(own, first_label=numbers.first)
    reader = ChoiceReader(found.columns, num_choices=num_choices, numbers=numbers, letters=read_letters(labels))

    @cache
    def read(path: Path) -> list[ChoiceExample]:
        rows, labelled = files[path], path not in unlabelled
        if not rows:
            raise DataError(f"{path}: no rows: there must be at least one below the header")
        used = {role: name for role, name in found.columns.items() if labelled or role != "label"}
        return sift_rows(rows, used, lambda row: reader.example(row, labelled=labelled), request.on_problem)

    notes = list(found.reasons)
    if counted:
        read_as = f"numbers of choices, from {numbers.first}" if numbers.places else "texts of choices"
        notes.append(f"the labels that are numbers: {read_as}")
    passages = {_group(example) for example in read(request.data)}
    opened = open_files(
        request,
        own,
        read=read,
        key=_key,
        evaluated=task is not None,
        columns=found.columns,
        notes=notes,
        group=_group if len(passages) > 1 else None,  # all about one passage: by question, or nothing could be held out
    )
    return replace(opened, notes=[*notes, *report.lines()])


def read_choices(task: AnyTask, path: Path, columns: Mapping[str, str], report: ReadReport) -> Iterator[ChoiceExample]:
    """Read questions with choices, one at a time; labels are not looked at."""
    assert isinstance(task, Choice)
    if is_race(path):
        yield from read_race(path, labelled=False, report=report)
        return
    reader: ChoiceReader | None = None
    for row in read_rows(path, report=report):
        if reader is None:
            told = {role: name for role, name in columns.items() if role != "label"}
            reader = ChoiceReader(detect([row], path, columns=told, task="choice").columns)
        yield beside_columns(reader.example(row, labelled=False), row, reader.columns, "question")


class Numbers(NamedTuple):
    """How labels that are numbers are meant: as places of choices, counted from `first`, or as texts of choices."""

    first: int = 0
    places: bool = True


class _Label(NamedTuple):
    number: int | None
    is_text: bool  # of a column of texts: a number of JSON or Parquet is never the text of a choice
    choices: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class ChoiceReader:
    """Rows into examples."""

    columns: Mapping[str, str]
    num_choices: int | None = None  # that every row must have; None: any
    numbers: Numbers = field(default_factory=Numbers)
    letters: bool | None = None  # whether labels are letters, or texts of choices; None: the data set doesn't show it

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
        label, first = class_cell(row, "label", self.columns), self.numbers.first
        number, letter = _number(label), _letter_place(label, choices)
        text = choices.index(label) if label in choices else None
        if number is not None and self.numbers.places:
            place = number - first if 0 <= number - first < len(choices) else None
        elif self.letters is None and letter is not None and text is not None and letter != text:
            raise DataError(
                f"{row.place}: label {label!r} is the letter of choice {letter + 1}, {choices[letter][:SHOWN]!r}, and "
                f"the text of choice {text + 1}: the data set doesn't show which is meant: write all labels as numbers "
                "of choices (0, 1, …)"
            )
        else:
            place = letter if self.letters or text is None else text
        if place is None:
            raise DataError(
                f"{row.place}: label {label!r} is no choice: it must be a number from {first} to "
                f"{first + len(choices) - 1}, a letter from A to {LETTERS[: len(choices)][-1]}, or the text of a choice"
            )
        return place


def choices_of(row: Row, columns: Mapping[str, str]) -> tuple[str, ...]:
    """Return the choices of a row: a list, or the texts of several columns (their names joined by commas)."""
    name = columns["choices"]
    if name not in row.values and "," in name:
        return tuple(text_cell(row, "choices", {"choices": one}) for one in name.split(","))
    value = listed(cell(row, "choices", columns))
    if not isinstance(value, list) or len(value) < 2 or not all(isinstance(one, str) and one.strip() for one in value):
        raise DataError(
            f"{row.place}: column {name!r} holds {str(value)[:SHOWN]!r}, must be a list of at least "
            "two texts that are not empty; in a .csv, a JSON list or one column per choice (choice0, choice1, …)"
        )
    return tuple(value)


def read_numbers(labels: Sequence[_Label], path: Path, *, known: int | None) -> Numbers:
    """Tell how the numbers among the labels of a data set are meant; `known` is what a model was trained with."""
    numbers = [(label, label.number) for label in labels if label.number is not None]
    if not numbers:
        return Numbers()
    first = _first(numbers, known=known)
    if all(label.is_text and label.text in label.choices for label in labels):  # they may be answers themselves
        places = [number - first for _, number in numbers] if first is not None else []
        fit = all(0 <= place < len(label.choices) for (label, _), place in zip(numbers, places, strict=False))
        if first is None or not fit or len(numbers) < len(labels):
            return Numbers(places=False)
        if places != [label.choices.index(label.text) for label, _ in numbers]:
            raise DataError(
                f"{path}: the labels are numbers, and so are the choices: whether a label counts the choices or is the "
                "text of one can't be told: write them as letters (A, B, …)"
            )
    if first is None:
        most = max(len(label.choices) for label, _ in numbers)
        raise DataError(
            f"{path}: the labels are numbers and none is 0 or {most}, the number of choices: whether they count from 0 "
            "or from 1 can't be told: write them as letters (A, B, …)"
        )
    return Numbers(first)


def read_letters(labels: Sequence[_Label]) -> bool | None:
    """Tell whether the labels of a data set are letters or texts of choices; None: all are both, or some neither."""
    letters = all(_letter_place(label.text, label.choices) is not None for label in labels)
    texts = all(label.text in label.choices for label in labels)
    return letters if letters != texts else None


def _first(numbers: Sequence[tuple[_Label, int]], *, known: int | None) -> int | None:
    """Tell what numbers of choices count from; None: they don't show it."""
    if any(number == 0 for _, number in numbers):
        return 0
    return 1 if any(number >= len(label.choices) for label, number in numbers) else known


def _labels(rows: Sequence[Row], columns: Mapping[str, str]) -> Iterator[_Label]:
    """Return the labels that can be read; what is wrong with others is told when their rows become examples."""
    for row in rows:
        with suppress(DataError):
            text = class_cell(row, "label", columns)
            if text is not None:
                written = isinstance(row.values[columns["label"]], str)
                yield _Label(_number(text), written, choices_of(row, columns), text)


def _number(label: str | None) -> int | None:
    return int(label) if label is not None and label.isdecimal() else None


def _letter_place(label: str | None, choices: Sequence[str]) -> int | None:
    """Return the place of the choice that a letter stands for; None: it is no letter of a choice."""
    place = LETTERS.find(label.upper()) if label is not None and len(label) == 1 else -1
    return place if 0 <= place < len(choices) else None


def _has_labels(rows: Sequence[Row], columns: Mapping[str, str]) -> bool:
    return is_labelled(rows, columns)


def _key(example: ChoiceExample) -> str:
    return content_key(example.passage, example.question, *example.choices)


def _group(example: ChoiceExample) -> str:
    return content_key(example.passage) or _key(example)
