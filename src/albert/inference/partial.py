"""Decisions in a file that grows: what a killed `albert predict` wrote is kept, and the same command goes on there.

Lines go to a hidden file beside the output; now and then it is flushed to disk, and a journal says how many rows and
bytes are certain. The next run cuts the file to those bytes, passes over those rows, and writes the rest, so that no
row is lost or doubled; the output takes its name when all are there. A run of anything else (another model, input,
option) begins anew. Knows nothing of what is decided.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from albert.errors import AlbertError, ResourceError, UsageError
from albert.files import naming, read_json, resource_error, sync, take_lock, write_json
from albert.inference.records import lines_of, output_format
from albert.tasks.task import Record

FORMATS = ("jsonl", "csv", "tsv")  # those that grow line by line
EVERY = 2.0  # seconds between two entries of the journal


@dataclass
class Partial:
    """An output that is being written."""

    out: Path
    fingerprint: str
    file: IO[bytes]
    rows: int = 0  # that are certain
    names: list[str] | None = None  # columns of a table
    _noted: float = field(default_factory=time.monotonic)

    def write(self, records: Iterable[Record]) -> int:
        """Write the records of the rest; return the number of all rows."""
        form, rows = output_format(self.out), self.rows
        header = 0 if form == "jsonl" or rows else 1
        done = rows - header, self.file.tell()  # rows and bytes, which change together: an interrupt comes at any time
        try:
            for line in lines_of(self._named(records), form, names=self.names if rows else None):
                done = done[0] + 1, done[1] + self._put(line)
                if done[0] > 0 and time.monotonic() - self._noted > EVERY:
                    self._note(*done)
        except KeyboardInterrupt:
            if done[0] > 0:
                self._note(*done)
            raise
        rows = max(done[0], 0)
        self._note(rows, done[1])
        return rows

    def _named(self, records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            self.names = self.names or list(record)
            yield record

    def _put(self, line: str) -> int:
        try:
            return self.file.write(line.encode("utf-8", "surrogatepass"))
        except OSError as problem:
            raise resource_error(problem, self.out) or problem from problem

    def _note(self, rows: int, size: int) -> None:
        """Make what is written certain."""
        with naming(self.out):
            self.file.flush()
            os.fsync(self.file.fileno())
        facts = {"fingerprint": self.fingerprint, "rows": rows, "bytes": size, "names": self.names}
        write_json(_journal(self.out), facts)
        self.rows, self._noted = rows, time.monotonic()


@contextmanager
def partial_output(out: Path, fingerprint: str) -> Iterator[Partial]:
    """Open an output that may have been begun; it appears under its name when the block ends well.

    What fails for another reason than an interruption or a full disk leaves nothing.
    """
    path = _file(out)
    with naming(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab+")
    with _closed(file, out):
        if take_lock(file.fileno()) is False:
            raise UsageError(f"{out}: another process is writing it: wait for it, or choose another name")
        rows, size, names = _begun(out, fingerprint, path.stat().st_size)
        if not size:
            _journal(out).unlink(missing_ok=True)  # another run's: it must not be taken for this one's bytes
        file.truncate(size)
        file.seek(size)
        try:
            yield Partial(out, fingerprint, file, rows, names)
        except (KeyboardInterrupt, ResourceError):
            raise
        except BaseException:
            _forget(out)
            raise
        if sys.platform != "win32":  # while it is locked
            _appear(path, out)
    if sys.platform == "win32":
        _appear(path, out)


@contextmanager
def _closed(file: IO[bytes], out: Path) -> Iterator[None]:
    """Close a file at the end: on a full disk that fails once more, for what is still in its buffer."""
    try:
        yield
    finally:
        with naming(out):
            file.close()


def _appear(path: Path, out: Path) -> None:
    with naming(out):
        os.replace(path, out)
        sync(out.parent)
    _journal(out).unlink(missing_ok=True)


def rows_begun(out: Path) -> int:
    """Return how many rows of an output are certain."""
    with suppress(AlbertError, ValueError, TypeError):
        return int(read_json(_journal(out)).get("rows", 0))
    return 0


def fingerprint_of(**facts: Any) -> str:
    """Return what tells whether two runs would write the same rows."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()


def file_facts(path: Path) -> list[Any]:
    """Return what changes when an input changes: its files with sizes and times."""
    files = sorted(part for part in path.rglob("*") if part.is_file()) if path.is_dir() else [path]
    return [[str(part.resolve()), part.stat().st_size, part.stat().st_mtime_ns] for part in files]


def _begun(out: Path, fingerprint: str, size: int) -> tuple[int, int, list[str] | None]:
    """Return the rows, bytes and columns that are certain, of this very run."""
    try:
        facts = read_json(_journal(out))
        rows, done, names = facts["rows"], facts["bytes"], facts["names"]
    except (AlbertError, KeyError):
        return 0, 0, None
    valid = type(rows) is int and type(done) is int and 0 <= done <= size and rows >= 0
    if facts.get("fingerprint") != fingerprint or not valid or not (names is None or isinstance(names, list)):
        return 0, 0, None
    return rows, done, names


def _forget(out: Path) -> None:
    _file(out).unlink(missing_ok=True)
    _journal(out).unlink(missing_ok=True)


def _file(out: Path) -> Path:
    return out.with_name(f".{out.name}.partial")


def _journal(out: Path) -> Path:
    return out.with_name(f".{out.name}.journal")
