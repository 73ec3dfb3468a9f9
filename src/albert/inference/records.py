"""Decisions as records: plain values with names, for JSON, tables and people.

A record holds the part of the input that says which one it is, and the decision with its scores and its characters in
the text, as each task says; beside them stand the other columns of its row. Files are written a record at a time and
appear whole or not at all.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from albert.errors import UsageError
from albert.files import atomic_write
from albert.inference.fill import MASK
from albert.inference.parquet import write_parquet
from albert.inference.predictor import Decides, Predictor
from albert.tasks.task import Feature, Record

log = logging.getLogger(__name__)

ExampleT = TypeVar("ExampleT", contravariant=True)
FeatureT = TypeVar("FeatureT", bound=Feature)
PredictionT = TypeVar("PredictionT")
FORMATS = {".jsonl": "jsonl", ".csv": "csv", ".tsv": "tsv", ".json": "json", ".parquet": "parquet"}
READ = ("text", "pair", "question")  # what a record shows of what was read
WARNING = "warning"


class Records(Decides[ExampleT, FeatureT, PredictionT], Protocol):
    """How examples are decided and written down."""

    def record(self, example: ExampleT, prediction: PredictionT) -> Record:
        """Return an input and what was decided about it, as plain values with names."""


def decide_records(predictor: Predictor, task: Records[Any, Any, Any], examples: Iterable[Any]) -> Iterator[Record]:
    """Decide a stream of examples; each is kept only until its decision is there."""
    waiting: deque[tuple[Any, int, int]] = deque()  # with the tokens that were read and that were not

    def watched() -> Iterator[tuple[Any, list[Any]]]:
        for example in examples:
            features = task.encode(example, predictor.tokenizer)
            first = features[0] if features else None  # a text without a blank has none
            waiting.append((example, len(first.token_ids), first.unread) if first else (example, 0, 0))
            yield example, features

    for decision in predictor.predict_encoded(task, watched()):
        example, read, unread = waiting.popleft()
        record = task.record(example, decision)
        warned = _warned(record, read, unread)
        if example.place:
            own = {name: value for name, value in record.items() if name not in example.given}
            yield _beside(example.others, own | warned)
        else:
            yield record | (warned if unread else {})


def _warned(record: Record, read: int, unread: int) -> Record:
    """Return a column that says which texts are empty (nothing was read) or cut, and which had no blank."""
    empty = [name for name in READ if isinstance(text := record.get(name), str) and not text.strip()]
    notes = [f"empty {' and '.join(empty)}"] if empty else []
    notes += [f"no {MASK} in the text"] if not empty and record.get("blanks") == [] else []
    notes += [f"cut: {unread:,} of {read + unread:,} tokens were not read"] if unread else []
    return {WARNING: "; ".join(notes) or None}


def _beside(others: Mapping[str, Any], record: Record) -> Record:
    """Return a record beside the other columns of its row; one that has a name of the record's is called input_…"""
    kept: Record = {}
    for name, value in others.items():
        own = name
        while own in record or (own != name and own in others):
            own = f"input_{own}"
        kept[own] = value
    return kept | record


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
    if form == "parquet":
        with atomic_write(path) as binary:
            return write_parquet(binary, records, path)
    with atomic_write(path) as binary, _text(binary) as file:
        for line in lines_of(records, form):
            file.write(line)
            count += 1
    return count - {"jsonl": 0, "csv": 1, "tsv": 1, "json": 2}[form] if count else 0


def lines_of(records: Iterable[Record], form: str, *, names: list[str] | None = None) -> Iterator[str]:
    """Return the lines of a file of records; a JSON document has one for each bracket, a table one for its header.

    A table whose `names` are given has its header already.
    """
    match form:
        case "jsonl":
            for record in records:
                yield _json(record) + "\n"
        case "json":
            yield "["
            for number, record in enumerate(records):
                yield (",\n" if number else "\n") + _json(record)
            yield "\n]\n"
        case _:
            yield from _table(records, "\t" if form == "tsv" else ",", names)


def _table(records: Iterable[Record], separator: str, names: list[str] | None) -> Iterator[str]:
    """Return a table; what is not a plain value becomes JSON. `.tsv` is written as it is read: without quoting."""
    left_out: set[str] = set()
    for number, record in enumerate(records, 1):
        if names is None:
            names = list(record)
            yield _row(names, separator)
        if new := record.keys() - names - left_out:
            left_out |= new
            log.warning(
                "row %d has %s, which the first row has not: left out of the table; .jsonl and .parquet keep it",
                number,
                ", ".join(sorted(new)),
            )
        yield _row([_cell(record.get(name)) for name in names], separator)


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    """Return JSON; dates and decimals of Parquet as they are written."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=False, default=str)


def _finite(value: Any) -> Any:
    """Return a value with null for each number that is none, which JSON can't say."""
    if isinstance(value, Mapping):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _row(cells: list[str], separator: str) -> str:
    if separator == "\t":
        return "\t".join(" ".join(cell.split()) for cell in cells) + "\n"
    line = io.StringIO()
    bare = any("\r" in cell for cell in cells)  # which Python 3.11 does not quote
    csv.writer(line, lineterminator="\n", quoting=csv.QUOTE_ALL if bare else csv.QUOTE_MINIMAL).writerow(cells)
    return line.getvalue()


@contextmanager
def _text(binary: Any) -> Iterator[io.TextIOWrapper]:
    file = io.TextIOWrapper(binary, encoding="utf-8", errors="surrogatepass", newline="")
    yield file
    file.flush()
    file.detach()
