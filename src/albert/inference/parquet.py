"""Records as a Parquet file, in constant memory.

The types of all columns must be known before the first row is written, and a column may be empty for a long while.
So records go to an anonymous temporary file first, and are written when the last one has been seen.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from albert.errors import DataError

ROWS = 2048  # written together


def write_parquet(file: IO[bytes], records: Iterable[dict[str, Any]], path: Path) -> int:
    """Write records, and return their number; `path` is for messages."""
    schema, sizes, count = pa.schema([]), [], 0
    with tempfile.TemporaryFile() as waiting:
        stream = iter(records)
        while part := list(islice(stream, ROWS)):
            try:
                names = dict.fromkeys(name for record in part for name in record)  # Arrow takes the first row's alone
                table = pa.Table.from_pylist([{name: record.get(name) for name in names} for record in part])
                schema = pa.unify_schemas([schema, table.schema], promote_options="permissive")
            except (pa.ArrowException, TypeError) as problem:
                raise _mixed(path, problem) from problem
            sizes.append(waiting.write(_to_bytes(table)))
            count += len(part)
        waiting.seek(0)
        schema = pa.schema([field.with_type(pa.string()) if field.type == pa.null() else field for field in schema])
        try:
            with pq.ParquetWriter(file, schema) as writer:
                for size in sizes:
                    part_table = pa.ipc.open_stream(waiting.read(size)).read_all()
                    whole = pa.concat_tables([schema.empty_table(), part_table], promote_options="permissive")
                    writer.write_table(whole.select(schema.names).cast(schema))
        except (pa.ArrowException, TypeError) as problem:
            raise _mixed(path, problem) from problem
    return count


def _to_bytes(table: Any) -> bytes:
    """Return a table in Arrow's own format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()


def _mixed(path: Path, problem: Exception) -> DataError:
    return DataError(f"{path}: a column holds values that have no common type ({problem}): write .jsonl instead")
