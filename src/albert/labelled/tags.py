"""From files to tagged sentences: CoNLL files, and tables with lists of tokens and tags.

In a table, tokens and tags are lists, or texts whose items are separated by spaces. The tags are those of the training
file, or a model's when one is evaluated; a tag that is not among them is an error with its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from albert.errors import DataError, UsageError, did_you_mean
from albert.labelled.cells import cell, other_columns
from albert.labelled.conll import conll_name, is_conll, read_conll
from albert.labelled.detection import DETECT_ROWS, detect, find_columns
from albert.labelled.holdout import content_key
from albert.labelled.opening import open_files
from albert.labelled.request import DataRequest, Opened, sift_rows
from albert.labelled.rows import Row, read_rows
from albert.tasks.tag_spans import OUTSIDE, has_spans, scheme_of
from albert.tasks.tagging import TagExample, Tagging, split_words
from albert.tasks.task import AnyTask
from albert.text.documents import ReadReport

COLUMNS = {"tokens": "tokens", "tags": "tags"}
OTHER_SPELLING = re.compile(  # B_PER, PER-B, b-per, Q-PER
    r"[BIESLU][_:/.]\w\S*|\S*\w[-_:/.][BIESLU]|[A-Za-z]-\S+"
)
MAX_LENGTH = 128


def open_tags(request: DataRequest, task: AnyTask | None) -> Opened:
    """Open files of tagged sentences."""
    report, notes = ReadReport(), []
    columns: Mapping[str, str] = COLUMNS
    data = _rows(request.data, request, report)
    if not is_conll(request.data):
        found = request.found or detect(data[:DETECT_ROWS], request.data, columns=request.columns, task="tagging")
        columns, notes = found.columns, list(found.reasons)
    elif request.columns:
        raise UsageError(f"{request.data}: a CoNLL file has no names of columns: leave --columns out")
    if task is None:
        tags = _tags(data, columns)
        own = Tagging(tags_of(tags, request.data), max_length=request.max_length or MAX_LENGTH)
        notes += [f"{len(own.labels)} tags, scheme {scheme_of(tags)}", *_odd_tags(own.labels)]
    elif isinstance(task, Tagging):
        own = task
    else:
        raise UsageError(f"{request.data}: holds tagged words, the model was made for {task.kind}")
    reader = TagReader(own.labels, columns)

    def read(path: Path) -> list[TagExample]:
        rows = data if path == request.data else _rows(path, request, report)
        labelled = path != request.test or columns["tags"] in rows[0].values
        used = {role: columns[role] for role in ("tokens", *(["tags"] if labelled else []))}
        return sift_rows(rows, used, lambda row: reader.example(row, labelled=labelled), request.on_problem)

    opened = open_files(request, own, read=read, key=_key, evaluated=task is not None, columns=columns, notes=notes)
    return replace(opened, notes=[*notes, *report.lines()])


def read_words(task: AnyTask, path: Path, columns: Mapping[str, str], report: ReadReport) -> Iterator[TagExample]:
    """Read sentences to tag, one at a time: words of CoNLL files and of tables with tokens; else a text is cut."""
    assert isinstance(task, Tagging)
    name = columns.get("tokens", COLUMNS["tokens"])
    if conll_name(path):
        for row in read_conll(path, tagged=False, report=report):
            yield TagExample(tuple(row.values["tokens"]), place=row.place)
        return
    text: Mapping[str, str] | None = None
    for row in read_rows(path, report=report):
        if "tokens" in columns or name in row.values:
            words = tuple(items_cell(row, "tokens", {"tokens": name}))
            yield TagExample(words, place=row.place, others=other_columns(row, name))
        else:
            told = {role: column for role, column in columns.items() if role != "tags"}
            text = text or find_columns(row, told)
            example = split_words(str(cell(row, "text", text) or ""))
            yield replace(example, place=row.place, others=other_columns(row, text["text"]))


@dataclass(frozen=True)
class TagReader:
    """Rows into examples."""

    labels: tuple[str, ...]
    columns: Mapping[str, str]

    def example(self, row: Row, *, labelled: bool = True) -> TagExample:
        """Make an example."""
        words = items_cell(row, "tokens", self.columns)
        if not labelled:
            return TagExample(tuple(words), place=row.place)
        tags = items_cell(row, "tags", self.columns)
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


def tags_of(sentences: Sequence[Sequence[str]], path: Path) -> tuple[str, ...]:
    """Collect the tags of sentences: O first, the others by alphabet."""
    tags = {tag for sentence in sentences for tag in sentence}
    if len(tags) < 2:
        raise DataError(f"{path}: {len(tags)} different tags, there must be two at least: add sentences")
    return tuple(sorted(tags, key=lambda tag: (tag != OUTSIDE, tag)))


def _odd_tags(labels: Sequence[str]) -> list[str]:
    """Warn of a few tags that say no span among many that do: one of them is enough to score words, not spans."""
    inside = [tag for tag in labels if tag != OUTSIDE]
    odd = [tag for tag in inside if not has_spans([tag])]
    other = [tag for tag in odd if OTHER_SPELLING.fullmatch(tag)]
    if other and len(other) >= len(inside) / 2:
        return [
            f"warning: {', '.join(map(repr, other[:4]))}{', …' if len(other) > 4 else ''} look like tags of spans, "
            "which are written B-NAME, I-NAME: as they are, words are scored, not spans"
        ]
    if not odd or len(odd) >= len(inside) / 2:
        return []
    return [
        f"warning: {', '.join(map(repr, odd))} is no tag of a span (B- I- E- S- L- U-), the others are: words are "
        "scored, not spans: correct it if it is a mistake"
    ]


def _tags(rows: Sequence[Row], columns: Mapping[str, str]) -> list[list[str]]:
    """Return the tags of all rows; those that break a rule are told when they become examples."""
    found = []
    for row in rows:
        with suppress(DataError):
            found.append(items_cell(row, "tags", columns))
    return found


def items_cell(row: Row, role: str, columns: Mapping[str, str]) -> list[str]:
    """Return the items of a list, or of a text that separates them by spaces; numbers are taken as names."""
    value = cell(row, role, columns)
    items = value.split() if isinstance(value, str) else value
    if not isinstance(items, list) or not items or any(not isinstance(item, str | int) or item == "" for item in items):
        raise DataError(
            f"{row.place}: column {columns[role]!r} holds {str(value)[:60]!r}, must be a list of {role}, "
            "none of them empty"
        )
    return [str(item) for item in items]


def _rows(path: Path, request: DataRequest, report: ReadReport) -> list[Row]:
    read = read_conll if is_conll(path) else read_rows
    rows = list(read(path, on_bad=request.on_bad_row, report=report))
    if not rows:
        raise DataError(f"{path}: no sentences: there must be at least one")
    return rows


def _key(example: TagExample) -> str:
    return content_key(" ".join(example.words))
