"""From files to tagged sentences: CoNLL files, and tables with lists of tokens and tags.

In a table, tokens and tags are lists, or texts whose items are separated by spaces. The tags are those of the training
file, or a model's when one is evaluated; a tag that is not among them is an error with its place (tag_rows.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from albert.errors import UsageError
from albert.labelled.cells import beside_columns, is_joined, joined
from albert.labelled.conll import conll_name, read_conll
from albert.labelled.detection import find_columns
from albert.labelled.holdout import content_key
from albert.labelled.opening import open_files
from albert.labelled.request import DataRequest, Opened, sift_rows
from albert.labelled.rows import Row, read_rows
from albert.labelled.tag_rows import COLUMNS, find_tag_columns, find_tags, items_cell, read_tagged, tagged_words
from albert.tasks.tagging import TagExample, Tagging, split_words
from albert.tasks.task import AnyTask
from albert.text.documents import ReadReport

MAX_LENGTH = 128


def open_tags(request: DataRequest, task: AnyTask | None) -> Opened:
    """Open files of tagged sentences."""
    report = ReadReport()
    data = read_tagged(request.data, request.on_bad_row, report)
    files = {request.data: data}
    if request.dev is not None and request.dev not in files:
        files[request.dev] = read_tagged(request.dev, request.on_bad_row, report)
    found = find_tag_columns(request, data)
    columns, notes = found.columns, list(found.reasons)
    if task is None:
        trained, tag_notes = find_tags(data, columns, request.data)
        labels, _ = find_tags([row for rows in files.values() for row in rows], columns, request.data)
        if never := [tag for tag in labels if tag not in trained]:
            tag_notes.append(f"warning: no sentence to train on has {', '.join(map(repr, never))}")
        own = Tagging(labels, max_length=request.max_length or MAX_LENGTH)
        notes += tag_notes
    elif isinstance(task, Tagging):
        own = task
    else:
        raise UsageError(f"{request.data}: holds tagged words, the model was made for {task.kind}")
    numbers = {tag: number for number, tag in enumerate(own.labels)}

    def read(path: Path) -> list[TagExample]:
        rows = files[path] if path in files else read_tagged(path, request.on_bad_row, report)
        labelled = path != request.test or any(row.values.get(columns["tags"]) for row in rows)
        used = {role: columns[role] for role in ("tokens", *(["tags"] if labelled else []))}

        def example(row: Row) -> TagExample:
            return TagExample(*tagged_words(row, columns, numbers if labelled else None), place=row.place)

        return sift_rows(rows, used, example, request.on_problem)

    opened = open_files(request, own, read=read, key=_key, evaluated=task is not None, columns=columns, notes=notes)
    return replace(opened, notes=[*notes, *report.lines()])


def read_words(task: AnyTask, path: Path, columns: Mapping[str, str], report: ReadReport) -> Iterator[TagExample]:
    """Read sentences to tag, one at a time: words of CoNLL files and of tables with tokens; else a text is cut."""
    assert isinstance(task, Tagging)
    conll = conll_name(path)
    name = COLUMNS["tokens"] if conll else columns.get("tokens", COLUMNS["tokens"])
    text: Mapping[str, str] | None = None
    rows = read_conll(path, tagged=False, report=report) if conll else read_rows(path, report=report)
    for row in rows:
        if "tokens" in columns or name in row.values:
            words = tuple(items_cell(row, "tokens", {"tokens": name}))
            others = {column: value for column, value in row.values.items() if column != name}
            yield TagExample(words, place=row.place, others=others)
        else:
            told = {role: column for role, column in columns.items() if role != "tags"}
            text = text or find_columns(row, told)
            example = split_words(str(joined(row, "text", text) or ""))
            roles = [] if is_joined(row, text["text"]) else ["text"]
            yield beside_columns(replace(example, place=row.place), row, text, *roles)


def _key(example: TagExample) -> str:
    return content_key(" ".join(example.words))
