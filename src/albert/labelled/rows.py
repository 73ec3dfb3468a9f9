"""Labelled data: the rows of a table, one at a time, each with the file and line where it stands.

`.csv` has a header and standard quoting, so a text may hold line ends; its separator is a comma, a semicolon or a
tab, whichever the header has most of. `.tsv` has a header and no quoting at all, as in GLUE: a quotation mark is a
character like any other. `.jsonl` has one object per line, `.json` a list of them. In `.parquet` the number of a row
stands for the line. `.txt` has one text per line, or fastText's `__label__x text`. Each may be compressed. Files with
another ending are recognised by their contents, and so are folders (class_folders.py). Knows no meaning of columns.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from albert.errors import DataError
from albert.labelled.class_folders import class_files, is_class_folder, is_text_folder
from albert.labelled.column_names import FILE
from albert.labelled.formats import MARK, fasttext_values, has_several_labels, json_items, source_by_contents
from albert.text.documents import SURROGATE, ReadReport, mend, mend_json
from albert.text.records import RECORD_LIMIT, json_lines, numbered_lines, open_parquet
from albert.text.sources import Source, open_source, source_of, text_of

FORMATS = ("csv", "tsv", "jsonl", "parquet", "txt")
KNOWN = ".csv, .tsv, .jsonl, .json or .parquet, plain or followed by .gz, .xz or .zst"
SEPARATORS = (",", ";", "\t")

OnBad = Callable[[str, str], None]  # place, reason


@dataclass(frozen=True, slots=True)
class Row:
    """The values of a row by column: texts, or whatever JSON and Parquet hold."""

    values: Mapping[str, Any]
    path: Path
    line: int

    @property
    def place(self) -> str:
        """Say where the row begins."""
        return f"{self.path}:{self.line}"


def refuse(place: str, reason: str) -> None:
    """End the reading at a row that can't be read."""
    raise DataError(f"{place}: {reason}")


def read_rows(
    path: Path | str,
    *,
    names: Sequence[str] | None = None,
    on_bad: OnBad = refuse,
    report: ReadReport | None = None,
) -> Iterator[Row]:
    """Return the rows of a file in order; `names` are the columns of a table without a header.

    A row that can't be read is told to `on_bad`, and left out where that does not raise.
    """
    path = Path(path)
    report = report if report is not None else ReadReport()
    if is_class_folder(path) or is_text_folder(path):
        for file in class_files(path):
            text = file.path.read_bytes().decode("utf-8-sig", errors="surrogateescape")
            values = {
                FILE: str(file.path.relative_to(path)),
                "text": mend(text, Source(file.path, "txt", ""), 1, report),
            }
            yield Row(values | ({} if file.label is None else {"label": file.label}), file.path, 1)
        return
    if path.is_dir():
        raise DataError(
            f"{path}: is a folder: name a file that ends in {KNOWN}; a folder of GLUE, SQuAD or RACE is known by its "
            "name and files, or said by --task; one with a folder per class holds .txt files in them"
        )
    if not path.exists():
        raise DataError(f"{path}: no such file: check the path")
    source = source_of(path, FORMATS) or source_by_contents(path)
    if source is None:
        raise DataError(f"{path}: the format of labelled data is told by its name: use {KNOWN}")
    with open_source(source) as (stream, _):
        yield from _read(source, stream, names, on_bad=on_bad, report=report)


def require_format(path: Path) -> None:
    """Refuse a file whose name does not tell its format."""
    if path.is_file() and source_of(path, (*FORMATS, "json")) is None:
        raise DataError(
            f"{path}: the format of labelled data is told by its name: use {KNOWN}; or say --task, and it is told by "
            "the contents (--task tagging: one word per line, its tag in the last column)"
        )


def sample_rows(path: Path | str, count: int) -> list[Row]:
    """Return the first rows that can be read, to see what a file is; where none can be, say what is wrong with it."""
    problems: list[str] = []
    rows = list(islice(read_rows(path, on_bad=lambda place, why: problems.append(f"{place}: {why}")), count))
    if problems and not rows:
        raise DataError(problems[0])
    return rows


def _read(
    source: Source, stream: io.BufferedReader, names: Sequence[str] | None, *, on_bad: OnBad, report: ReadReport
) -> Iterator[Row]:
    match source.format:
        case "parquet":
            yield from _parquet_rows(source, stream)
        case "jsonl":
            yield from _jsonl_rows(source, text_of(source, stream, newline="\n"), on_bad=on_bad, report=report)
        case "json":
            for number, value in json_items(source, stream):
                if isinstance(value, dict):
                    yield Row(mend_json(value, source, number, report), source.path, number)
                else:
                    on_bad(f"{source.path}:{number}", f"a JSON {type(value).__name__}, must be an object")
        case "txt":
            yield from _text_rows(source, stream, report)
        case _:
            cells = _csv_cells(source, stream, on_bad) if source.format == "csv" else _tsv_cells(source, stream)
            yield from _table_rows(source, cells, names, on_bad=on_bad, report=report)


def _text_rows(source: Source, stream: io.BufferedReader, report: ReadReport) -> Iterator[Row]:
    """Return one text per line, or fastText's lines, with their labels."""
    lines = (
        (number, mend(text, source, number, report))
        for number, text in _lines(source, text_of(source, stream, newline="\n"))
    )
    first = next(lines, None)
    if first is None:
        return
    if not first[1].startswith(MARK):
        for number, text in chain([first], lines):
            yield Row({"text": text}, source.path, number)
        return
    with open_source(source) as (again, _):
        several = has_several_labels(text for _, text in _lines(source, text_of(source, again, newline="\n")))
    for number, values in fasttext_values(chain([first], lines), several=several):
        yield Row(values, source.path, number)


def _table_rows(
    source: Source,
    cells: Iterator[tuple[int, list[str]]],
    names: Sequence[str] | None,
    *,
    on_bad: OnBad,
    report: ReadReport,
) -> Iterator[Row]:
    """Name the cells of every row by the header."""
    if names is None:
        header_line, header = next(cells, (1, []))
        if any("\0" in name for name in header):
            raise DataError(
                f"{source.path}:{header_line}: the header holds NUL characters, as UTF-16 read as UTF-8 does: "
                "save the file as UTF-8"
            )
        if header and header[0].lstrip().startswith("{"):
            raise DataError(f"{source.path}:{header_line}: JSON where the names of columns must be: name it .jsonl")
        names = [mend(name, source, header_line, report).strip() for name in header]
        _check_header(names, f"{source.path}:{header_line}")
    for line, values in cells:
        if len(values) != len(names):
            on_bad(f"{source.path}:{line}", _ragged(source, len(values), names))
            continue
        yield Row(
            dict(zip(names, (mend(value, source, line, report) for value in values), strict=True)), source.path, line
        )


def _check_header(names: Sequence[str], place: str) -> None:
    if not any(names):
        raise DataError(f"{place}: no header: the first line must name the columns, for example text and label")
    for column, name in enumerate(names):
        if name in names[:column]:
            raise DataError(f"{place}: two columns are named {name!r}: rename one of them")


def _ragged(source: Source, count: int, names: Sequence[str]) -> str:
    columns = f"{count} fields where the header has {len(names)} ({', '.join(names)})"
    if source.format == "tsv":
        fix = ".tsv has no quoting, so a text can't hold a tab or a line end: replace them, or name a quoted table .csv"
    else:
        fix = "put a text that holds separators or line ends into quotation marks"
    return f"{columns}: {fix}"


def quoting_notes(path: Path, texts: Iterable[str]) -> list[str]:
    """Warn of texts in a .tsv that look as if their writer had used quoting, which .tsv does not have."""
    if ".tsv" not in path.suffixes:
        return []
    wrapped = (text[1:-1] for text in texts if len(text) > 1 and text[0] == text[-1] == '"')
    count = sum('""' in inside and '"' not in inside.replace('""', "") for inside in wrapped)
    if not count:
        return []
    return [
        f"warning: {path}: {count:,} texts stand in quotation marks with doubled ones inside, and .tsv has no quoting: "
        "they stay part of the text; if the file was written with quoting, name it .csv"
    ]


def _lines(source: Source, lines: io.TextIOWrapper) -> Iterator[tuple[int, str]]:
    for number, line in numbered_lines(lines):
        if line is None:
            raise DataError(f"{source.path}:{number}: a line of more than {RECORD_LIMIT:,} characters: split it")
        yield number, line


def _tsv_cells(source: Source, stream: io.BufferedReader) -> Iterator[tuple[int, list[str]]]:
    for number, line in _lines(source, text_of(source, stream, newline="\n")):
        if line:
            yield number, line.split("\t")


def _csv_cells(source: Source, stream: io.BufferedReader, on_bad: OnBad) -> Iterator[tuple[int, list[str]]]:
    lines = text_of(source, stream, newline="")
    blank = ""
    while (first := lines.readline(RECORD_LIMIT)) and first.isspace():
        blank += first  # they count as lines
    separator = max(SEPARATORS, key=_outside_quotes(first).count)  # the first of them where there is none

    def all_lines() -> Iterator[str]:
        yield from blank.splitlines(keepends=True)
        yield first
        yield from lines

    csv.field_size_limit(max(csv.field_size_limit(), RECORD_LIMIT))  # one setting for the process: only ever raised
    reader = csv.reader(all_lines(), delimiter=separator, strict=True)
    while True:
        line = reader.line_num + 1  # where the row begins; afterwards it is where the row ends
        try:
            cells = next(reader, None)
        except csv.Error as problem:
            on_bad(
                f"{source.path}:{line}",
                f"wrong quoting ({problem}): a quoted text ends with a quotation mark, one inside it is written twice",
            )
            return  # from here on nobody knows what is inside quotation marks and what is not
        if cells is None:
            return
        if cells:
            yield line, cells


def _outside_quotes(line: str) -> str:
    return "".join(line.split('"')[::2])


def _jsonl_rows(source: Source, lines: io.TextIOWrapper, *, on_bad: OnBad, report: ReadReport) -> Iterator[Row]:
    for line in json_lines(lines):
        place, value = f"{source.path}:{line.number}", line.value
        if line.is_long:
            raise DataError(f"{place}: {line.problem}")
        if line.problem:
            on_bad(place, f'{line.problem}: a line of .jsonl must be one object such as {{"text": "…", "label": "…"}}')
            continue
        if not isinstance(value, dict):
            on_bad(
                place,
                f"a JSON {type(value).__name__}, must be an object with the columns as its fields: .jsonl has one on "
                "every line, without a list around them",
            )
            continue
        if SURROGATE.search(line.text) or "\\u" in line.text or "\0" in line.text:
            value = mend_json(value, source, line.number, report)
        yield Row(value, source.path, line.number)


def _parquet_rows(source: Source, stream: io.BufferedReader) -> Iterator[Row]:
    with open_parquet(source, stream, fix="write the file again") as table:
        _check_header(table.names, str(source.path))
        for batch in table.batches():
            for number, values in enumerate(batch.to_pylist(), table.rows_done + 1):
                yield Row(values, source.path, number)
