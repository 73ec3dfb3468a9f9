"""What files give a model to decide about: examples, one at a time, in constant memory.

The columns are those that are told, then those that the model was trained on if the file has them, then what their
names and contents suggest. Knows nothing of decisions.
"""

from __future__ import annotations

import codecs
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import IO

from albert.errors import DataError, did_you_mean
from albert.inference.fill import PlainText
from albert.inference.model import Model, is_pair
from albert.labelled.catalog import read_inputs
from albert.labelled.cells import beside_columns, has_columns, is_joined, text_cell
from albert.labelled.column_names import CONTEXTS, FILE, PAIRS, TEXTS, TOKENS, plain
from albert.labelled.conll import conll_name
from albert.labelled.detection import columns_there, find_columns
from albert.labelled.recognition import is_squad_json
from albert.labelled.rows import FORMATS, read_rows
from albert.tasks.task import Example
from albert.text.documents import ReadReport
from albert.text.sources import source_of

READ = ("text", "pair")
HEADERS = {*TEXTS, *CONTEXTS, *TOKENS, *(first for first, _ in PAIRS)}  # names by which a header is known


def read_examples(model: Model, path: Path, told: Mapping[str, str], report: ReadReport) -> Iterator[Example]:
    """Read examples of the model's own task."""
    assert model.task is not None, "the caller has asked whether the model has a task"
    examples = read_inputs(model.task, path, _known_columns(model.columns, path) | dict(told), report)
    first = next(examples, None)
    if first is not None and (problem := model.pair_problem(given=is_pair(first))):
        raise DataError(f"{first.place}: {model.name} {problem} (--columns text=NAME, and pair=NAME for two)")
    return chain([] if first is None else [first], examples)


def read_plain(
    trained: Mapping[str, str], path: Path, told: Mapping[str, str], report: ReadReport
) -> Iterator[PlainText]:
    """Read texts by themselves, to fill or to embed; `trained`: the columns that the model was trained on."""
    columns: Mapping[str, str] | None = None
    id_ = told.get("id")
    known = {role: name for role, name in _known_columns(trained, path).items() if role == "text"}
    for row in read_rows(path, report=report):
        columns = columns or find_columns(row, known | {role: name for role, name in told.items() if role != "id"})
        text = text_cell(row, "text", columns, empty=True) if has_columns(row, columns["text"]) else ""
        if id_ is not None and id_ not in row.values:
            raise DataError(
                f"{row.place}: no column {id_!r} for id: {did_you_mean(id_, row.values)} (--columns id=NAME)"
            )
        own = row.values[id_] if id_ is not None else row.values.get(FILE if path.is_dir() else "id")
        example = PlainText(text, None if own is None else str(own), place=row.place)
        yield beside_columns(example, row, columns, *([] if is_joined(row, columns["text"]) else ["text"]))


def with_words(texts: Iterable[PlainText], report: ReadReport, *, keep: bool) -> Iterator[PlainText]:
    """Return texts that have a vector, with their numbers as ids where they have none; `keep`: the others too."""
    for number, one in enumerate(texts):
        if not one.has_words:
            report.add("empty_row" if keep else "empty_text", one.place)
        if keep or one.has_words:
            yield one if one.id is not None else replace(one, id=str(number))


def line_notes(path: Path, count: int) -> list[str]:
    """Say that a .txt is read line by line: a document is not meant to be."""
    if count < 2 or not path.is_file() or source_of(path, ("txt",)) is None or conll_name(path):
        return []
    return [f"{path}: {count:,} texts, one per line; a folder of .txt files is one text per file"]


def column_notes(model: Model, path: Path, told: Mapping[str, str]) -> list[str]:
    """Say which column is read where a file has not those that the model was trained on."""
    known = _known_columns(model.columns, path) | dict(told)
    missing = {role: name for role, name in model.columns.items() if role in READ and role not in known}
    row = next(read_rows(path), None) if missing and not path.is_dir() and not conll_name(path) else None
    if row is None or list(row.values) == ["text"]:
        return []
    found = find_columns(row, known)
    return [
        f"{role} = {found[role]!r}: {path.name} has no {name!r}, which the model was trained on"
        for role, name in missing.items()
        if role in found
    ]


@contextmanager
def as_file(stream: IO[bytes]) -> Iterator[Path]:
    """Put a stream into a file for a while: JSON lines, a table if it begins with a header, else one text per line."""
    with tempfile.TemporaryDirectory(prefix="albert-") as folder:
        start = stream.read(2**16)
        path = Path(folder) / f"stdin.{_stream_format(start)}"
        with path.open("wb") as file:
            file.write(start)
            shutil.copyfileobj(stream, file)
        try:
            yield path
        except DataError as problem:
            raise DataError(str(problem).replace(str(path), "standard input")) from problem


def _stream_format(start: bytes) -> str:
    """Tell the format of a stream by its beginning: a header has no spaces, and a name that columns of text have."""
    text = start.removeprefix(codecs.BOM_UTF8).lstrip()
    first = text.partition(b"\n")[0].decode("utf-8", errors="replace").strip()
    if text.startswith(b"{"):
        return "jsonl"
    for separator, form in (("\t", "tsv"), (",", "csv"), (";", "csv")):
        names = [name.strip('"') for name in first.split(separator)]
        if len(names) > 1 and all(map(str.isidentifier, names)) and any(plain(name) in HEADERS for name in names):
            return form
    return "txt"


def _known_columns(columns: Mapping[str, str], path: Path) -> dict[str, str]:
    """Return the columns that a model was trained on as far as they are in a file."""
    if not columns or path.is_dir():
        return {}
    if source_of(path, FORMATS) is None and (conll_name(path) is not None or is_squad_json(path)):
        return {}  # they have no columns
    return columns_there(columns, path)
