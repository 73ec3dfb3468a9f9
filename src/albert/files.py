"""Files that are whole or absent: atomic writes, bounded JSON, checksums, one owner per folder.

A write goes to a hidden temporary sibling, is flushed to disk, and only then takes the final name, so a crash or a
full disk leaves what was there before. A writer holds a lock on its temporary; what a killed one left behind is
removed by the next writer of the same name. Knows nothing of what the files mean.
"""

from __future__ import annotations

import ctypes
import errno
import glob
import hashlib
import json
import logging
import os
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from albert.errors import AlbertError, ModelError, ResourceError, UsageError

if sys.platform != "win32":
    import fcntl

log = logging.getLogger(__name__)

JSON_LIMIT = 64 * 2**20  # a tokenizer.json of a large vocabulary is 10 MB; nothing honest is larger than this
FRESH = 60.0  # seconds in which an empty, unlocked temporary may be one that its writer has not locked yet

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_MISPLACED = (errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP)


def resource_error(error: OSError, path: Path | str) -> AlbertError | None:
    """Turn a full disk, a forbidden or an impossible place into the error that names the path and the fix."""
    if error.errno in _FULL:
        return ResourceError(f"{path}: no space left ({error.strerror}): free some disk or write elsewhere")
    if error.errno in _FORBIDDEN:
        return UsageError(f"{path}: not allowed ({error.strerror}): change its permissions or choose another place")
    if error.errno in _MISPLACED:
        return UsageError(f"{path}: can't be there ({error.strerror}): choose another place")
    return None


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Name the path in what the system refuses while the block writes there: a write alone does not say where."""
    try:
        yield
    except OSError as problem:
        raise resource_error(problem, path) or problem from problem


@contextmanager
def atomic_write(path: Path | str) -> Iterator[IO[bytes]]:
    """Open a binary file that appears under its name only when the block ends well."""
    path = Path(path)
    with _temporary_sibling(path) as temporary:
        with temporary.open("xb") as file:
            _lock(file.fileno(), wait=True)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if sys.platform != "win32":  # while it is locked: else it would be taken for a killed writer's
                os.replace(temporary, path)
        if sys.platform == "win32":
            os.replace(temporary, path)


@contextmanager
def atomic_folder(path: Path | str) -> Iterator[Path]:
    """Yield a temporary folder that replaces `path` as a whole when the block ends well.

    A folder that holds anything the new one does not have is refused: it is somebody's, not an older version.
    """
    path = Path(path).resolve()  # a link to a folder keeps pointing at it
    with _temporary_sibling(path) as temporary:
        temporary.mkdir()
        with _locked(temporary, wait=True):
            yield temporary
            for item in [*temporary.rglob("*"), temporary]:
                if item.is_file() or item.is_dir():
                    sync(item)
            if path.is_dir():
                foreign = sorted({item.name for item in path.iterdir()} - {item.name for item in temporary.iterdir()})
                if foreign:
                    raise UsageError(
                        f"{path}: holds {', '.join(foreign[:5])}, which would be lost: choose another folder"
                    )
                _swap(temporary, path)
                shutil.rmtree(temporary, ignore_errors=True)
            else:
                os.rename(temporary, path)


@contextmanager
def _temporary_sibling(path: Path) -> Iterator[Path]:
    """Yield a free hidden name beside `path`, and see to it that nothing stays there if the block fails."""
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_orphans(path)
        yield temporary
        sync(path.parent)
    except BaseException as error:
        _remove(temporary)
        if isinstance(error, OSError) and _is_about(error, path) and (named := resource_error(error, path)):
            raise named from error
        if isinstance(error, AlbertError) and str(temporary) in str(error):  # of a file in it: nobody knows that name
            raise type(error)(str(error).replace(str(temporary), str(path))) from error
        raise


def _is_about(error: OSError, path: Path) -> bool:
    """Tell whether an error comes from writing here, not from something else that the caller's block does."""
    name = error.filename
    return not isinstance(name, str | bytes) or Path(os.fsdecode(name)).is_relative_to(path.parent)


def _remove_orphans(path: Path) -> None:
    """Remove the temporaries of killed writers: nobody holds their lock."""
    for orphan in path.parent.glob(f".{glob.escape(path.name[:100])}.????????.tmp"):
        try:
            with _locked(orphan) as held:
                if held and (_has_contents(orphan) or time.time() - orphan.stat().st_mtime > FRESH):
                    _remove(orphan)
        except OSError:  # its writer was quicker
            continue


def _has_contents(temporary: Path) -> bool:
    """Tell whether something was written, which a writer does only when it has locked."""
    return any(temporary.iterdir()) if temporary.is_dir() else temporary.stat().st_size > 0


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _swap(new: Path, old: Path) -> None:
    """Exchange two folders: in one step on Linux, in two that are undone on failure elsewhere."""
    if sys.platform == "linux":
        here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
        renameat2 = getattr(ctypes.CDLL(None), "renameat2", None)
        if renameat2 and renameat2(here, os.fsencode(new), here, os.fsencode(old), exchange) == 0:
            return
    aside = new.with_suffix(".old")
    os.rename(old, aside)
    try:
        os.rename(new, old)
    except OSError:
        os.rename(aside, old)
        raise
    os.rename(aside, new)


def sync(path: Path) -> None:
    """Flush a closed file, or a folder's entries, to disk, so that they survive a power cut."""
    folder = path.is_dir()
    if folder and sys.platform == "win32":
        return  # Windows has no such thing
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as problem:
        if not folder or problem.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems can't, for folders
            raise
    finally:
        os.close(handle)


def write_json(path: Path | str, value: Any) -> None:
    """Write a value as indented JSON, atomically."""
    with atomic_write(path) as file:
        text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
        file.write(text.encode(errors="surrogatepass"))  # paths may hold bytes that are no characters


def read_json(path: Path | str, *, error: type[AlbertError] = ModelError, limit: int = JSON_LIMIT) -> dict[str, Any]:
    """Read a JSON object from outside: bounded in size and depth, never a traceback."""
    path = Path(path)
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):  # a pipe would block, a device would never end
            raise error(f"{path}: is not a regular file")
        if facts.st_size > limit:
            raise error(f"{path}: {facts.st_size:,} bytes, more than the {limit:,} that such a file can have")
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
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def sole_owner(folder: Path | str) -> Iterator[None]:
    """Hold a folder for this process; a second one is refused. The lock dies with its process."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / ".lock").open("a+b")
    except OSError as problem:
        raise resource_error(problem, folder) or problem from problem
    with file:
        if _lock(file.fileno()) is False:
            file.seek(0)
            owner = file.read(20).decode(errors="replace").strip()
            raise UsageError(f"{folder}: process {owner} is writing here: wait for it or choose another folder")
        with naming(folder):
            file.truncate(0)
            file.write(f"{os.getpid()}\n".encode())
            file.flush()
        yield


@contextmanager
def _locked(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Hold the lock of a file or folder for the block, if nobody else does; or wait for it."""
    if sys.platform == "win32":
        yield False
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        yield _lock(handle, wait=wait) is True
    finally:
        os.close(handle)


def take_lock(handle: int) -> bool | None:
    """Take an open file's lock, which dies with the process: True taken, False somebody has it, None no locks here."""
    return _lock(handle)


def _lock(handle: int, *, wait: bool = False) -> bool | None:
    """Take a lock that dies with the process: True taken, False somebody has it, None there are no locks here."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as problem:  # some network file systems
        log.debug("no locks here: %s", problem)
        return None
    return True
