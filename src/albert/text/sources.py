"""Text files: which ones a command line means, and their bytes whatever they are compressed with.

Arguments are files, folders (searched through, in the order of their names) or globs. A path that is met twice counts
once. Reading is streamed, and a compressed file that is damaged or cut short is an error, never a shorter text.
Knows nothing of what stands in the files.
"""

from __future__ import annotations

import glob
import gzip
import io
import lzma
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from albert.errors import DataError
from albert.files import resource_error

if TYPE_CHECKING:
    from typing_extensions import Buffer

FORMATS = ("txt", "jsonl", "parquet")
COMPRESSIONS = ("gz", "xz", "zst")
KNOWN = ".txt, .jsonl or .parquet, plain or followed by .gz, .xz or .zst"

BUFFER = 2**17  # bytes
ZSTD_BLOCK = 512  # bytes fed at once: four of them can expand to 128 KiB, so this bounds what one step holds to 16 MiB


@dataclass(frozen=True)
class Source:
    """One file of text."""

    path: Path
    format: str  # one of FORMATS
    compression: str  # one of COMPRESSIONS, or empty


@dataclass(frozen=True)
class Sources:
    """The files that the arguments mean, in reading order, and the paths that were named more than once."""

    files: tuple[Source, ...]
    duplicates: tuple[Path, ...]


def find_sources(arguments: Iterable[str | Path]) -> Sources:
    """Expand files, folders and globs; refuse what is missing or of an unknown format."""
    files: dict[Path, Source] = {}
    found = [source for argument in arguments for source in _expand(argument)]
    duplicates = tuple(source.path for source in found if files.setdefault(source.path.resolve(), source) is not source)
    return Sources(tuple(files.values()), duplicates)


def _expand(argument: str | Path) -> list[Source]:
    path = Path(argument)
    if path.is_file():
        source = source_of(path)
        if source is None:
            raise DataError(f"{path}: the format of a text file is told by its name: use {KNOWN}")
        return [source]
    if path.is_dir():
        candidates = [file for file in path.rglob("*") if not _hidden(file.relative_to(path))]
        empty = f"{path}: no text in this folder: put files there that end in {KNOWN}"
    elif glob.has_magic(str(argument)):
        candidates = [Path(name) for name in glob.glob(str(argument), recursive=True)]
        empty = f"{argument}: no text file has such a name: it must end in {KNOWN}"
    else:
        raise DataError(f"{path}: no such file or folder: check the path")
    found = [source for file in sorted(candidates) if file.is_file() and (source := source_of(file))]
    if not found:
        raise DataError(empty)
    return found


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def source_of(path: Path, formats: Sequence[str] = FORMATS) -> Source | None:
    """Tell a file's format and compression by its name; None where it is not one of the formats."""
    suffixes = [suffix[1:].lower() for suffix in path.suffixes]
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else ""
    return Source(path, suffixes[-1], compression) if suffixes and suffixes[-1] in formats else None


@contextmanager
def open_source(source: Source) -> Iterator[tuple[io.BufferedReader, IO[bytes]]]:
    """Open a file: the stream of its contents, and the raw file, whose position tells how far the reading is."""
    try:
        with source.path.open("rb") as raw:
            yield _decompressed(raw, source.compression), raw
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as problem:
        raise DataError(
            f"{source.path}: damaged or cut short ({problem}): copy or compress the file again"
        ) from problem
    except OSError as problem:
        raise DataError(f"{source.path}: can't be read ({problem.strerror or problem})") from problem


def text_of(source: Source, stream: io.BufferedReader, *, newline: str | None = None) -> io.TextIOWrapper:
    """Read bytes as UTF-8; broken bytes become lone surrogates, which no valid text holds, for the caller to mend."""
    if stream.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(
            f"{source.path}:1: the file is UTF-16, text must be UTF-8: convert it (iconv -f UTF-16 -t UTF-8)"
        )
    return io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline=newline)


@contextmanager
def seekable(source: Source, stream: io.BufferedReader) -> Iterator[IO[bytes]]:
    """Yield a file that can be read from anywhere, as Parquet needs it: a compressed one through a temporary copy."""
    if not source.compression:
        yield stream
        return
    with tempfile.TemporaryFile() as file:
        try:
            shutil.copyfileobj(stream, file, 2**20)
        except OSError as problem:
            raise resource_error(problem, tempfile.gettempdir()) or problem from problem
        yield file


def _decompressed(raw: io.BufferedReader, compression: str) -> io.BufferedReader:
    match compression:
        case "gz":
            return io.BufferedReader(cast(io.RawIOBase, gzip.open(raw)), BUFFER)
        case "xz":
            return io.BufferedReader(cast(io.RawIOBase, lzma.open(raw)), BUFFER)
        case "zst":
            return io.BufferedReader(_ZstdStream(raw), BUFFER)
        case _:
            return raw


class _ZstdStream(io.RawIOBase):
    """Read the frames of a Zstandard file; unlike zstandard's own reader, refuse one that is cut short."""

    def __init__(self, raw: IO[bytes]) -> None:
        import zstandard  # here, because most builds read no such file

        self._raw = raw
        self._new_frame = zstandard.ZstdDecompressor(max_window_size=2**27).decompressobj
        self._frame = self._new_frame()
        self._inside_frame = False
        self._input = b""
        self._output = memoryview(b"")
        self._error = zstandard.ZstdError

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        while not self._output:
            block = self._input or self._raw.read(ZSTD_BLOCK)
            if not block and self._inside_frame:
                raise EOFError("the last Zstandard frame has no end")
            if not block:
                return 0
            self._input = b""
            self._output = memoryview(self._decompress(block))
        view = memoryview(buffer)
        size = min(len(view), len(self._output))
        view[:size], self._output = self._output[:size], self._output[size:]
        return size

    def _decompress(self, block: bytes) -> bytes:
        try:
            output: bytes = self._frame.decompress(block)
        except self._error as problem:
            raise EOFError(str(problem)) from problem
        self._inside_frame = not self._frame.eof
        if self._frame.eof:
            self._input, self._frame = self._frame.unused_data, self._new_frame()
        return output
