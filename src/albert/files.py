"""Files that are whole or absent: atomic writes, bounded JSON, checksums, one owner per folder.

A write goes to a temporary sibling, is flushed to disk, and only then takes the final name, so a crash or a full
disk leaves what was there before. Knows nothing of what the files mean.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from albert.errors import AlbertError, ModelError, ResourceError, UsageError

JSON_LIMIT = 64 * 2**20  # a tokenizer.json of a large vocabulary is 10 MB; nothing honest is larger than this


def resource_error(error: OSError, path: Path | str) -> AlbertError | None:
    """Turn a full disk or quota into the error that names the path and the fix."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return ResourceError(f"{path}: no space left ({error.strerror}): free some disk or write elsewhere")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return UsageError(f"{path}: can't be written ({error.strerror}): choose another folder")
    return None


@contextmanager
def atomic_write(path: Path | str) -> Iterator[IO[bytes]]:
    """Open a binary file that appears under its name only when the block ends well."""
    path = Path(path)
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        temporary = Path(name)
        os.fchmod(handle, 0o666 & ~_umask())
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync_folder(path.parent)
    except BaseException as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and (named := resource_error(error, path)):
            raise named from error
        raise


@contextmanager
def atomic_folder(path: Path | str) -> Iterator[Path]:
    """Give a temporary folder that replaces `path` as a whole when the block ends well."""
    path = Path(path)
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp"))
        temporary.chmod(0o777 & ~_umask())
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                sync_file(file)
        if path.exists():
            old = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".old"))
            os.rename(path, old / "old")
            os.rename(temporary, path)
            shutil.rmtree(old)
        else:
            os.rename(temporary, path)
        sync_folder(path.parent)
    except BaseException as error:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError) and (named := resource_error(error, path)):
            raise named from error
        raise


def sync_file(path: Path) -> None:
    """Flush a closed file to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(path: Path) -> None:
    """Flush a folder's entries to disk, so that a rename survives a power cut."""
    sync_file(path)


def write_json(path: Path | str, value: Any) -> None:
    """Write a value as indented JSON, atomically."""
    with atomic_write(path) as file:
        file.write((json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def read_json(
    path: Path | str, *, error: type[AlbertError] = ModelError, limit: int = JSON_LIMIT
) -> dict[str, Any]:
    """Read a JSON object from outside: bounded in size and depth, never a traceback."""
    path = Path(path)
    try:
        if path.stat().st_size > limit:
            raise error(f"{path}: {path.stat().st_size:,} bytes, more than the {limit:,} that such a file can have")
        value = json.loads(path.read_bytes())
    except OSError as problem:
        raise error(f"{path}: can't be read ({problem.strerror})") from problem
    except (ValueError, RecursionError) as problem:
        reason = "nested too deeply" if isinstance(problem, RecursionError) else str(problem)
        raise error(f"{path}: is not valid JSON: {reason}") from problem
    if not isinstance(value, dict):
        raise error(f"{path}: holds a JSON {type(value).__name__}, not an object")
    return value


def sha256(path: Path | str) -> str:
    """Hash a file's contents."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def sole_owner(folder: Path | str) -> Iterator[None]:
    """Hold a folder for this process; a second one is refused. The lock dies with its process."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            raise UsageError(f"{folder}: another process is writing here: wait for it or choose another folder") from (
                problem
            )
        yield


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
