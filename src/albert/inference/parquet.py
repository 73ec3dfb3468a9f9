"""Records as a Parquet file, in constant memory.

The types of all columns must be known before the first row is written, and a column may be empty for a long while.
So records go to an anonymous temporary file first, and are written when the last one has been seen.
"""

from __future__ import annotations

import pickle
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
    schema, parts, count = pa.schema([]), 0, 0
    with tempfile.TemporaryFile() as waiting:
        stream = iter(records)
        while part := list(islice(stream, ROWS)):
            try:
                found = pa.Table.from_pylist(part).schema
                schema = pa.unify_schemas([schema, found], promote_options="permissive")
            except (pa.ArrowException, TypeError) as problem:
                raise _mixed(path, problem) from problem
            pickle.dump(part, waiting)
            parts, count = parts + 1, count + len(part)
        waiting.seek(0)
        schema = pa.schema([field.with_type(pa.string()) if field.type == pa.null() else field for field in schema])
        try:
            with pq.ParquetWriter(file, schema) as writer:
                for _ in range(parts):
                    writer.write_table(pa.Table.from_pylist(pickle.load(waiting), schema=schema))
        except (pa.ArrowException, TypeError) as problem:
            raise _mixed(path, problem) from problem
    return count


def _mixed(path: Path, problem: Exception) -> DataError:
    return DataError(f"{path}: a column holds values that have no common type ({problem}): write .jsonl instead")
