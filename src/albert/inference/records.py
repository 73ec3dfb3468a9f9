"""Decisions as records: plain values with names, for JSON, tables and people.

A record holds the part of the input that says which one it is, and the decision with its scores and its characters in
the text, as each task says. Files are written a record at a time and appear whole or not at all.
"""

from __future__ import annotations

import csv
import io
import json
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from albert.errors import UsageError
from albert.files import atomic_write
from albert.inference.predictor import Decides, Predictor
from albert.tasks.task import Feature, Record

ExampleT = TypeVar("ExampleT", contravariant=True)
FeatureT = TypeVar("FeatureT", bound=Feature)
PredictionT = TypeVar("PredictionT")
FORMATS = {".jsonl": "jsonl", ".csv": "csv", ".tsv": "tsv", ".json": "json"}


class Records(Decides[ExampleT, FeatureT, PredictionT], Protocol):
    """How examples are decided and written down."""

    def record(self, example: ExampleT, prediction: PredictionT) -> Record:
        """Return an input and what was decided about it, as plain values with names."""


def decide_records(predictor: Predictor, task: Records[Any, Any, Any], examples: Iterable[Any]) -> Iterator[Record]:
    """Decide a stream of examples; each is kept only until its decision is there."""
    waiting: deque[Any] = deque()

    def watched() -> Iterator[Any]:
        for example in examples:
            waiting.append(example)
            yield example

    for decision in predictor.predict(task, watched()):
        yield task.record(waiting.popleft(), decision)


def output_format(path: Path) -> str:
    """Tell the format of a file to write by its name."""
    if path.suffix not in FORMATS:
        raise UsageError(f"--out {path}: the format is told by the name: end it in {', '.join(FORMATS)}")
    return FORMATS[path.suffix]


def check_output(option: str, out: Path, *inputs: Path | None) -> None:
    """Refuse to write over what is read."""
    for path in inputs:
        if path is not None and path.exists() and out.exists() and out.samefile(path):
            raise UsageError(f"{option} {out}: is the input itself, which would be lost: give another name")


def write_records(path: Path, records: Iterable[Record]) -> int:
    """Write records as they come; the file appears when all are written. Give their number."""
    form, count = output_format(path), 0
    with atomic_write(path) as binary, _text(binary) as file:
        for line in lines_of(records, form):
            file.write(line)
            count += 1
    return count - {"jsonl": 0, "csv": 1, "tsv": 1, "json": 2}[form] if count else 0


def lines_of(records: Iterable[Record], form: str) -> Iterator[str]:
    """Return the lines of a file of records; a JSON document has one for each bracket, a table one for its header."""
    match form:
        case "jsonl":
            for record in records:
                yield json.dumps(record, ensure_ascii=False) + "\n"
        case "json":
            yield "["
            for number, record in enumerate(records):
                yield (",\n" if number else "\n") + json.dumps(record, ensure_ascii=False)
            yield "\n]\n"
        case _:
            yield from _table(records, "\t" if form == "tsv" else ",")


def _table(records: Iterable[Record], separator: str) -> Iterator[str]:
    """Return a table; what is not a plain value becomes JSON. `.tsv` is written as it is read: without quoting."""
    names: list[str] | None = None
    for record in records:
        if names is None:
            names = list(record)
            yield _row(names, separator)
        yield _row([_cell(record.get(name)) for name in names], separator)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _row(cells: list[str], separator: str) -> str:
    if separator == "\t":
        return "\t".join(" ".join(cell.split()) for cell in cells) + "\n"
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


@contextmanager
def _text(binary: Any) -> Iterator[io.TextIOWrapper]:
    file = io.TextIOWrapper(binary, encoding="utf-8", errors="surrogatepass", newline="")
    yield file
    file.flush()
    file.detach()
