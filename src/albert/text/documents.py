"""Documents from text files, one at a time, in bounded memory.

`.txt`: a line is a paragraph, a blank line ends the document. `.jsonl`, `.parquet`: a record is a document, its text in
one field. A document of more than DOCUMENT_LIMIT characters is cut into several, at a paragraph, else at a space.

What is wrong with a file as a whole raises DataError: missing, damaged, another format, no such field in its first
record. What is wrong at one place is mended or skipped, counted, and reported with the first place: bytes that are not
UTF-8, NULs, a later record without text. Knows nothing of sentences or tokens.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from albert.errors import DataError
from albert.text.records import RECORD_LIMIT, json_lines, open_parquet
from albert.text.sources import Source, find_sources, open_source, text_of

DOCUMENT_LIMIT = 4 * 2**20  # characters; bounds the memory of everything after the reader
LINE_LIMIT = 2**18  # characters of a line of .txt that are read at once
SURROGATE = re.compile("[\ud800-\udfff]")  # what is left of bytes that are not UTF-8, and of broken \u escapes

MEANINGS = {
    "broken_utf8": "bytes that are not UTF-8, each replaced by U+FFFD",
    "nul": "NUL characters, replaced by spaces",
    "bad_record": "records that are not JSON objects, skipped",
    "no_text": "records without text in the field, skipped",
    "long_record": f"records longer than {RECORD_LIMIT:,} characters, skipped",
    "long_document": f"documents longer than {DOCUMENT_LIMIT:,} characters, cut into several",
    "empty_file": "files without text",
    "empty_row": "empty texts, which have no vector: their rows are NaN",
    "empty_text": "empty texts, which have no vector: left out",
    "ragged_row": "rows with another number of fields than the header, skipped",
    "duplicate_path": "paths named more than once, read once",
}


@dataclass(frozen=True, slots=True)
class Document:
    """A text of paragraphs, one per line, and where it begins: the line of a file, or the row of a Parquet table."""

    text: str
    source: Path
    line: int


@dataclass
class Finding:
    """How often something was met, and where first."""

    count: int
    first: str


def printable(name: str) -> str:
    """Make a file's name fit for UTF-8: it may hold any bytes."""
    return name.encode("utf-8", "replace").decode()


@dataclass
class ReadReport:
    """What the reader mended or skipped, by the keys of MEANINGS, and how far it is."""

    findings: dict[str, Finding] = field(default_factory=dict)
    bytes_read: int = 0  # of the files as they lie on disk

    def add(self, key: str, place: str, *, count: int = 1) -> None:
        """Count a finding and keep its first place."""
        self.findings.setdefault(key, Finding(0, printable(place))).count += count

    def lines(self) -> list[str]:
        """Say every finding in one line."""
        return [
            f"{MEANINGS[key]}: {found.count:,}, the first at {found.first}"
            for key, found in sorted(self.findings.items())
        ]


def iter_documents(
    inputs: Iterable[str | Path], *, text_field: str = "text", report: ReadReport | None = None
) -> Iterator[Document]:
    """Return the documents of files, folders and globs in order."""
    report = report if report is not None else ReadReport()
    sources = find_sources(inputs)
    for path in sources.duplicates:
        report.add("duplicate_path", str(path))
    yield from read_documents(sources.files, text_field=text_field, report=report)


def read_documents(sources: Sequence[Source], *, text_field: str, report: ReadReport) -> Iterator[Document]:
    """Return the documents of found files in order."""
    finished = 0
    for source in sources:
        met_text = False
        with open_source(source) as (stream, raw):
            for document in _read(source, stream, text_field, report):
                report.bytes_read = finished + raw.tell()
                met_text = True
                yield document
        finished += source.path.stat().st_size
        report.bytes_read = finished
        if not met_text:
            report.add("empty_file", str(source.path))


def _read(source: Source, stream: io.BufferedReader, text_field: str, report: ReadReport) -> Iterator[Document]:
    for line, text in _texts(source, stream, text_field, report):
        for part in _parts(text, f"{source.path}:{line}", report):
            mended = mend(part, source, line, report)
            if mended and not mended.isspace():
                yield Document(mended.rstrip("\n"), source.path, line)
            elif source.format != "txt":
                report.add("no_text", f"{source.path}:{line}")


def _texts(source: Source, stream: io.BufferedReader, text_field: str, report: ReadReport) -> Iterator[tuple[int, str]]:
    if source.format == "parquet":
        return _parquet_texts(source, stream, text_field, report)
    if source.format == "jsonl":
        return _jsonl_texts(source, text_of(source, stream, newline="\n"), text_field, report)
    return _txt_texts(source, text_of(source, stream), report)


def _txt_texts(source: Source, lines: io.TextIOWrapper, report: ReadReport) -> Iterator[tuple[int, str]]:
    """Return documents between blank lines, a very long one in parts: memory never holds the whole of it."""
    number, first, size = 1, 1, 0  # the line being read, the line where the buffer begins, characters in the buffer
    buffer: list[str] = []
    at_line_start, cut = True, False
    while line := lines.readline(LINE_LIMIT):
        if at_line_start and line.isspace():
            if buffer:
                yield first, "".join(buffer)
            buffer, size, cut = [], 0, False
        else:
            first = first if buffer else number
            buffer.append(line)
            size += len(line)
        while size > DOCUMENT_LIMIT:
            if not cut:
                report.add("long_document", f"{source.path}:{first}")
            text = "".join(buffer)
            at = _cut_point(text)
            yield first, text[:at]
            first += text.count("\n", 0, at)
            buffer, size, cut = [text[at:]], len(text) - at, True
        at_line_start = line.endswith("\n")
        number += at_line_start
    if buffer:
        yield first, "".join(buffer)


def _jsonl_texts(
    source: Source, lines: io.TextIOWrapper, text_field: str, report: ReadReport
) -> Iterator[tuple[int, str]]:
    met_text = False
    for line in json_lines(lines):
        value, place = line.value, f"{source.path}:{line.number}"
        text = value.get(text_field) if isinstance(value, dict) else None
        if line.is_long:
            report.add("long_record", place)
        elif isinstance(text, str):
            met_text = True
            yield line.number, text
        elif not met_text and not (isinstance(value, dict) and text_field in value and text is None):
            raise DataError(f"{place}: {_wrong_record(value, text_field)}")
        else:
            report.add("no_text" if isinstance(value, dict) else "bad_record", place)


def _wrong_record(value: Any, text_field: str) -> str:
    if not isinstance(value, dict):
        return f"a line of .jsonl must be a JSON object such as {{{json.dumps(text_field)}: …}}"
    if text_field not in value:
        return f"no field '{text_field}', only {', '.join(map(repr, sorted(value)))}: name the right one (--field)"
    return f"field '{text_field}' holds {type(value[text_field]).__name__}, not text: name another one (--field)"


def _parquet_texts(
    source: Source, stream: io.BufferedReader, text_field: str, report: ReadReport
) -> Iterator[tuple[int, str]]:
    fix = f"'{text_field}' must be a column of text: name another one (--field), or write the file again"
    with open_parquet(source, stream, fix=fix) as table:
        import pyarrow  # here, as in `open_parquet`

        if text_field not in table.names:
            known = ", ".join(map(repr, table.names))
            raise DataError(f"{source.path}: no column '{text_field}', only {known}: name the right one (--field)")
        row = 0
        for batch in table.batches([text_field]):
            # As bytes: a string column need not hold valid UTF-8, and pyarrow would raise without saying where.
            for value in batch.column(0).cast(pyarrow.string()).cast(pyarrow.binary()):
                row += 1
                if value.is_valid:
                    yield row, value.as_py().decode("utf-8", "surrogateescape")
                else:
                    report.add("no_text", f"{source.path}:{row}")


def _parts(text: str, place: str, report: ReadReport) -> Iterator[str]:
    if len(text) > DOCUMENT_LIMIT:
        report.add("long_document", place)
    start = 0
    while len(text) - start > DOCUMENT_LIMIT:
        end = _cut_point(text, start)
        yield text[start:end]
        start = end
    yield text[start:] if start else text


def _cut_point(text: str, start: int = 0) -> int:
    """Find where a long text is cut: after the last line end or space in the second half of the limit, else at it."""
    half, end = start + DOCUMENT_LIMIT // 2, start + DOCUMENT_LIMIT
    for mark in ("\n", " "):
        if (at := text.rfind(mark, half, end)) >= 0:
            return at + 1
    return end


def mend(text: str, source: Source, line: int, report: ReadReport) -> str:
    """Replace broken bytes and NULs, counting them."""
    if "\0" in text:
        report.add("nul", _place(text, text.index("\0"), source, line), count=text.count("\0"))
        text = text.replace("\0", " ")
    if not text.isascii() and (found := SURROGATE.search(text)):
        place = _place(text, found.start(), source, line)
        text, count = SURROGATE.subn("\ufffd", text)
        report.add("broken_utf8", place, count=count)
    return text


def mend_json(value: Any, source: Source, line: int, report: ReadReport) -> Any:
    """Mend the texts of a JSON value; none changes its length."""
    if isinstance(value, str):
        return mend(value, source, line, report)
    if isinstance(value, list):
        return [mend_json(item, source, line, report) for item in value]
    if isinstance(value, dict):
        return {mend(key, source, line, report): mend_json(item, source, line, report) for key, item in value.items()}
    return value


def _place(text: str, at: int, source: Source, line: int) -> str:
    inside = text.count("\n", 0, at) if source.format == "txt" else 0
    return f"{source.path}:{line + inside}"
