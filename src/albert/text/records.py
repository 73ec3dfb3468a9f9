"""Records: lines of JSON and rows of Parquet, for whoever reads texts or labelled data.

A reader here says what stands at which line or row and what can't be read there; what becomes of a bad record, to end
at it or to count and skip it, is for its caller. Memory holds one line, or PARQUET_ROWS rows. Knows no field.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from albert.errors import DataError
from albert.text.sources import Source, seekable

RECORD_LIMIT = 16 * 2**20  # characters of one line of JSON, which can only be parsed whole
PARQUET_ROWS = 64  # rows held at once


@dataclass(frozen=True, slots=True)
class JsonLine:
    """One line: its value, or why it has none."""

    number: int
    text: str
    value: Any = None
    problem: str = ""
    is_long: bool = False  # of more than RECORD_LIMIT characters: its text is not kept


def numbered_lines(lines: io.TextIOWrapper) -> Iterator[tuple[int, str | None]]:
    """Yield lines from 1 on, without their ends; None stands for one of more than RECORD_LIMIT characters.

    Opened with `newline="\\n"` a line ends at a line feed only: texts may hold all that ends lines elsewhere.
    """
    number = 0
    while line := lines.readline(RECORD_LIMIT):
        number += 1
        if len(line) < RECORD_LIMIT or line.endswith("\n"):
            yield number, line.removesuffix("\n").removesuffix("\r")
            continue
        while line and not line.endswith("\n"):
            line = lines.readline(2**20)
        yield number, None


def json_lines(lines: io.TextIOWrapper) -> Iterator[JsonLine]:
    """Yield every line that is not blank."""
    for number, line in numbered_lines(lines):
        if line is None:
            yield JsonLine(
                number, "", problem=f"a line of more than {RECORD_LIMIT:,} characters: split it", is_long=True
            )
        elif line and not line.isspace():
            try:
                yield JsonLine(number, line, json.loads(line))
            except RecursionError:
                yield JsonLine(number, line, problem="not JSON (nested too deeply)")
            except ValueError as problem:
                yield JsonLine(number, line, problem=f"not JSON ({problem})")


class ParquetTable:
    """A table, some rows at a time."""

    def __init__(self, file: Any) -> None:
        """Take a pyarrow.parquet.ParquetFile."""
        self._file = file
        self.names: list[str] = file.schema_arrow.names
        self.rows_done = 0

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Yield the rows as record batches, of some columns or of all."""
        for batch in self._file.iter_batches(batch_size=PARQUET_ROWS, columns=columns, use_threads=False):
            yield batch
            self.rows_done += batch.num_rows


@contextmanager
def open_parquet(source: Source, stream: io.BufferedReader, *, fix: str) -> Iterator[ParquetTable]:
    """Open a table; whatever is wrong with it, now or while its rows are read, is a DataError with row and `fix`."""
    import pyarrow  # here, because it takes 80 MB and most files are of other formats
    from pyarrow import parquet

    table = None
    try:
        with seekable(source, stream) as file:  # the table of contents of a Parquet file stands at its end
            table = ParquetTable(parquet.ParquetFile(file, pre_buffer=False, buffer_size=2**20))
            yield table
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError, UnicodeDecodeError) as problem:
        row = table.rows_done + 1 if table else 1
        reason = str(problem).splitlines()[0]
        raise DataError(f"{source.path}:{row}: can't be read as Parquet ({reason}): {fix}") from problem
