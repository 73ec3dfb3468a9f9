"""From files to tagged sentences: CoNLL files, and tables with lists of tokens and tags.

In a table, tokens and tags are lists, or texts whose items are separated by spaces. The tags are those of the training
file, or a model's when one is evaluated; a tag that is not among them is an error with its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from albert.data.cells import cell
from albert.data.detect import DETECT_ROWS, detect, find_columns
from albert.data.holdout import content_key
from albert.data.labelled import Row, read_rows
from albert.errors import DataError, UsageError, did_you_mean
from albert.tasks.conll import conll_name, is_conll, read_conll
from albert.tasks.opening import open_files
from albert.tasks.request import DataRequest, Opened
from albert.tasks.tag_spans import OUTSIDE, scheme_of
from albert.tasks.tagging import TagExample, Tagging, split_words
from albert.tasks.task import Task
from albert.text.documents import ReadReport

COLUMNS = {"tokens": "tokens", "tags": "tags"}
MAX_LENGTH = 128


def open_tags(request: DataRequest, task: Task[Any, Any, Any] | None) -> Opened:
    """Open files of tagged sentences."""
    report, notes = ReadReport(), []
    columns: Mapping[str, str] = COLUMNS
    if not is_conll(request.data):
        sample = list(islice(read_rows(request.data), DETECT_ROWS))
        found = detect(sample, request.data, columns=request.columns, task="tagging")
        columns, notes = found.columns, list(found.reasons)
    rows = _rows(request.data, report)
    if task is None:
        own = Tagging(tags_of(rows, columns), max_length=request.max_length or MAX_LENGTH)
        notes.append(f"{len(own.labels)} tags, scheme {scheme_of(tags_cell(row, columns) for row in rows)}")
    elif isinstance(task, Tagging):
        own = task
    else:
        raise UsageError(f"{request.data}: holds tagged words, the model was made for {task.kind}")
    reader = TagReader(own.labels, columns)

    def read(path: Path) -> list[TagExample]:
        return [reader.example(row) for row in (rows if path == request.data else _rows(path, report))]

    opened = open_files(request, own, read=read, key=_key, evaluated=task is not None, columns=columns, notes=notes)
    return replace(opened, notes=[*notes, *report.lines()])


def read_words(task: Task[Any, Any, Any], path: Path, columns: Mapping[str, str]) -> Iterator[TagExample]:
    """Read sentences to tag, one at a time: words of CoNLL files and of tables with tokens; else a text is cut."""
    assert isinstance(task, Tagging)
    name = columns.get("tokens", COLUMNS["tokens"])
    if conll_name(path):
        for row in read_conll(path, tagged=False):
            yield TagExample(tuple(row.values["tokens"]), place=row.place)
        return
    text: Mapping[str, str] | None = None
    for row in read_rows(path):
        if name in row.values:
            yield TagExample(tuple(items_cell(row, "tokens", {"tokens": name})), place=row.place)
        else:
            told = {role: column for role, column in columns.items() if role == "text"}
            text = text or find_columns(row, told)
            yield replace(split_words(str(cell(row, "text", text) or "")), place=row.place)


@dataclass(frozen=True)
class TagReader:
    """Rows into examples."""

    labels: tuple[str, ...]
    columns: Mapping[str, str]

    def example(self, row: Row) -> TagExample:
        """Make an example; without a column of tags it has no targets."""
        words = items_cell(row, "tokens", self.columns)
        if self.columns["tags"] not in row.values:
            return TagExample(tuple(words), place=row.place)
        tags = tags_cell(row, self.columns)
        if len(words) != len(tags):
            raise DataError(f"{row.place}: {len(words)} tokens and {len(tags)} tags: every token needs one tag")
        return TagExample(tuple(words), tuple(self._number(tag, row) for tag in tags), place=row.place)

    def _number(self, tag: str, row: Row) -> int:
        if tag not in self._numbers:
            raise DataError(
                f"{row.place}: tag {tag!r} is none of the training data's: {did_you_mean(tag, self.labels)}"
            )
        return self._numbers[tag]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {tag: number for number, tag in enumerate(self.labels)}


def tags_of(rows: Sequence[Row], columns: Mapping[str, str]) -> tuple[str, ...]:
    """Collect the tags of sentences: O first, the others by alphabet."""
    tags = {tag for row in rows for tag in tags_cell(row, columns)}
    if len(tags) < 2:
        raise DataError(f"{rows[0].path}: {len(tags)} different tags, there must be two at least: add sentences")
    return tuple(sorted(tags, key=lambda tag: (tag != OUTSIDE, tag)))


def tags_cell(row: Row, columns: Mapping[str, str]) -> list[str]:
    """Give the tags of a row."""
    return items_cell(row, "tags", columns)


def items_cell(row: Row, role: str, columns: Mapping[str, str]) -> list[str]:
    """Give the items of a list, or of a text that separates them by spaces; numbers are taken as names."""
    value = cell(row, role, columns)
    items = value.split() if isinstance(value, str) else value
    if not isinstance(items, list) or not items or any(not isinstance(item, str | int) or item == "" for item in items):
        raise DataError(
            f"{row.place}: column {columns[role]!r} holds {str(value)[:60]!r}, must be a list of {role}, "
            "none of them empty"
        )
    return [str(item) for item in items]


def _rows(path: Path, report: ReadReport) -> list[Row]:
    rows = list(read_conll(path, report=report) if is_conll(path) else read_rows(path, report=report))
    if not rows:
        raise DataError(f"{path}: no sentences: there must be at least one")
    return rows


def _key(example: TagExample) -> str:
    return content_key(" ".join(example.words))
