"""Files are whole or absent: under crashes, full disks, foreign folders, hostile JSON and rival writers."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NoReturn

import pytest

from albert import files
from albert.errors import DataError, ModelError, ResourceError, UsageError
from albert.files import atomic_folder, atomic_write, read_json, sha256, sole_owner, write_json


def names(folder: Path) -> list[str]:
    return sorted(item.name for item in folder.iterdir())


def start(code: str, *arguments: str | Path) -> subprocess.Popen[str]:
    """Start a child that runs `code` and wait until it says that it is ready."""
    child = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, text=True, stdin=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def kill(child: subprocess.Popen[str]) -> None:
    child.send_signal(signal.SIGKILL)
    child.communicate()


def full_disk(*_: object) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class TestAtomicWrite:
    def test_the_file_appears_whole_with_ordinary_permissions(self, tmp_path: Path) -> None:
        path = tmp_path / "new" / "folder" / "file"
        with atomic_write(path) as file:
            file.write(b"half")
            assert not path.exists()
        assert path.read_bytes() == b"half"
        (tmp_path / "ordinary").write_bytes(b"")
        assert path.stat().st_mode == (tmp_path / "ordinary").stat().st_mode
        assert names(path.parent) == ["file"]

    @pytest.mark.parametrize("failure", [ValueError("defect"), KeyboardInterrupt(), SystemExit(3)])
    def test_a_failure_leaves_the_old_file_and_nothing_else(self, tmp_path: Path, failure: BaseException) -> None:
        path = tmp_path / "file"
        path.write_bytes(b"old")

        def write() -> None:
            with atomic_write(path) as file:
                file.write(b"new")
                raise failure

        with pytest.raises(type(failure)):
            write()
        assert path.read_bytes() == b"old"
        assert names(tmp_path) == ["file"]

    def test_a_killed_writer_leaves_the_old_file_and_its_rest_is_removed_later(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "file"
        path.write_bytes(b"old")
        child = start(
            "import sys\nfrom albert.files import atomic_write\n"
            "with atomic_write(sys.argv[1]) as file:\n"
            "    file.write(b'new' * 100000); file.flush(); print('ready', flush=True); sys.stdin.read()",
            path,
        )
        monkeypatch.setattr(files, "FRESH", -1.0)
        write_json(path, {"while": "the other writes"})
        assert len(names(tmp_path)) == 2, "a living writer keeps its temporary"
        path.write_bytes(b"old")
        kill(child)
        assert path.read_bytes() == b"old"
        assert len(names(tmp_path)) == 2
        write_json(path, {})
        assert names(tmp_path) == ["file"]

    def test_what_a_killed_writer_has_written_is_removed_at_once(self, tmp_path: Path) -> None:
        (tmp_path / ".file.12345678.tmp").write_bytes(b"half")
        (tmp_path / ".file.23456789.tmp").mkdir()
        (tmp_path / ".file.23456789.tmp" / "part").touch()
        write_json(tmp_path / "file", {})
        assert names(tmp_path) == ["file"]

    def test_the_temporaries_of_other_names_and_fresh_ones_are_left_alone(self, tmp_path: Path) -> None:
        for name in (".file.12345678.tmp", ".file2.12345678.tmp", ".file.tmp", "file.12345678.tmp"):
            (tmp_path / name).write_bytes(b"")
        write_json(tmp_path / "file", {})
        assert len(names(tmp_path)) == 5, "one that is seconds old may not have its lock yet"
        long_ago = time.time() - 3600
        for name in names(tmp_path):
            os.utime(tmp_path / name, (long_ago, long_ago))
        write_json(tmp_path / "file", {})
        assert names(tmp_path) == [".file.tmp", ".file2.12345678.tmp", "file", "file.12345678.tmp"]

    def test_a_full_disk_is_named_and_leaves_the_old_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "file"
        path.write_bytes(b"old")
        monkeypatch.setattr(os, "fsync", full_disk)
        with pytest.raises(ResourceError, match=f"{path}: no space left"), atomic_write(path) as file:
            file.write(b"new")
        assert path.read_bytes() == b"old"
        assert names(tmp_path) == ["file"]

    def test_a_limit_of_the_system_in_the_middle_of_a_write_is_named(self, tmp_path: Path) -> None:
        code = """
import resource, sys
from albert.errors import ResourceError
from albert.files import atomic_write
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    with atomic_write(sys.argv[1]) as file:
        for _ in range(100):
            file.write(b"x" * 10_000)
except ResourceError as error:
    print(error)
"""
        path = tmp_path / "file"
        done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
        assert done.stdout.startswith(f"{path}: no space left")
        assert names(tmp_path) == []

    def test_a_file_where_a_folder_should_be_is_a_usage_error(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"")
        (tmp_path / "folder").mkdir()
        for path in (tmp_path / "file" / "inner", tmp_path / "folder", tmp_path / ("x" * 300)):
            with pytest.raises(UsageError, match="choose another place"), atomic_write(path) as file:
                file.write(b"x")
        assert names(tmp_path) == ["file", "folder"]

    def test_an_error_of_another_file_is_not_blamed_on_this_one(self, tmp_path: Path) -> None:
        with pytest.raises(PermissionError), atomic_write(tmp_path / "file"):
            raise PermissionError(errno.EACCES, "Permission denied", "/somewhere/input.txt")
        assert names(tmp_path) == []

    def test_names_of_almost_any_length_work(self, tmp_path: Path) -> None:
        name = "n" * 250
        write_json(tmp_path / name, {"a": 1})
        assert names(tmp_path) == [name]

    def test_many_threads_writing_one_name_leave_one_whole_file(self, tmp_path: Path) -> None:
        def write(number: int) -> None:
            for _ in range(10):
                write_json(tmp_path / "file.json", {"numbers": [number] * 2000})

        threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(read_json(tmp_path / "file.json")["numbers"])) == 1
        assert names(tmp_path) == ["file.json"]


class TestAtomicFolder:
    def test_the_folder_appears_whole_and_replaces_an_older_version(self, tmp_path: Path) -> None:
        path = tmp_path / "out" / "model"
        for text in ("one", "two"):
            with atomic_folder(path) as temporary:
                (temporary / "deep").mkdir()
                (temporary / "deep" / "file").write_text(text)
            assert (path / "deep" / "file").read_text() == text
        assert names(tmp_path / "out") == ["model"]
        (tmp_path / "ordinary").mkdir()
        assert path.stat().st_mode == (tmp_path / "ordinary").stat().st_mode

    def test_a_folder_that_holds_something_else_is_refused_and_kept(self, tmp_path: Path) -> None:
        (tmp_path / "thesis.tex").write_text("years of work")
        with pytest.raises(UsageError, match=r"holds thesis\.tex, which would be lost"), atomic_folder(tmp_path) as new:
            (new / "config.json").write_text("{}")
        assert names(tmp_path) == ["thesis.tex"]
        assert [item for item in tmp_path.parent.iterdir() if item.suffix == ".tmp"] == []

    def test_a_failure_leaves_the_old_folder_and_nothing_else(self, tmp_path: Path) -> None:
        path = tmp_path / "model"
        path.mkdir()
        (path / "file").write_text("old")

        def write() -> None:
            with atomic_folder(path) as temporary:
                (temporary / "file").write_text("new")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            write()
        assert (path / "file").read_text() == "old"
        assert names(tmp_path) == ["model"]

    def test_a_killed_writer_leaves_the_old_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "model"
        path.mkdir()
        (path / "file").write_text("old")
        child = start(
            "import sys\nfrom albert.files import atomic_folder\n"
            "with atomic_folder(sys.argv[1]) as new:\n"
            "    (new / 'file').write_text('new'); print('ready', flush=True); sys.stdin.read()",
            path,
        )
        kill(child)
        assert (path / "file").read_text() == "old"
        monkeypatch.setattr(files, "FRESH", -1.0)
        with atomic_folder(path) as temporary:
            (temporary / "file").write_text("newer")
        assert names(tmp_path) == ["model"]

    def test_readers_never_miss_the_folder_while_it_is_replaced(self, tmp_path: Path) -> None:
        path = tmp_path / "model"
        with atomic_folder(path) as temporary:
            (temporary / "file").write_text("0")
        missing: list[str] = []
        stop = threading.Event()

        def watch() -> None:
            while not stop.is_set():
                if not path.is_dir():
                    missing.append("gone")

        watcher = threading.Thread(target=watch)
        watcher.start()
        for _ in range(30):
            with atomic_folder(path) as temporary:
                (temporary / "file").write_text("1")
        stop.set()
        watcher.join()
        assert missing == [] or sys.platform != "linux"

    def test_without_an_exchange_in_the_system_a_failed_replacement_is_undone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "model"
        path.mkdir()
        (path / "file").write_text("old")
        monkeypatch.setattr(files.ctypes, "CDLL", lambda _: object())
        with atomic_folder(path) as temporary:
            (temporary / "file").write_text("new")
        assert (path / "file").read_text() == "new"
        assert names(tmp_path) == ["model"]
        rename = os.rename

        def failing(source: Path, target: Path) -> None:
            if source.suffix == ".tmp":
                full_disk()
            rename(source, target)

        monkeypatch.setattr(os, "rename", failing)
        with pytest.raises(ResourceError), atomic_folder(path) as temporary:
            (temporary / "file").write_text("newer")
        assert (path / "file").read_text() == "new"
        assert names(tmp_path) == ["model"]

    def test_a_full_disk_is_named_with_the_folder_asked_for(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "fsync", full_disk)
        with pytest.raises(ResourceError, match=f"{tmp_path}/model: no space left"), atomic_folder(tmp_path / "model"):
            pass
        assert names(tmp_path) == []

    def test_a_full_disk_at_a_file_of_the_folder_is_named_without_the_temporary_name(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "fsync", full_disk)
        with (
            pytest.raises(ResourceError, match=f"^{tmp_path}/model/a.json: no space left"),
            atomic_folder(tmp_path / "model") as temporary,
            atomic_write(temporary / "a.json") as file,
        ):
            file.write(b"1")
        assert names(tmp_path) == []

    def test_a_link_to_a_folder_keeps_pointing_at_it(self, tmp_path: Path) -> None:
        (tmp_path / "v1").mkdir()
        (tmp_path / "latest").symlink_to("v1")
        with atomic_folder(tmp_path / "latest") as temporary:
            (temporary / "file").write_text("new")
        assert (tmp_path / "latest").is_symlink()
        assert (tmp_path / "v1" / "file").read_text() == "new"

    def test_a_file_in_the_way_is_a_usage_error(self, tmp_path: Path) -> None:
        (tmp_path / "model").write_text("a file")
        with pytest.raises(UsageError, match="choose another place"), atomic_folder(tmp_path / "model"):
            pass
        assert (tmp_path / "model").read_text() == "a file"


class TestReadJson:
    def test_what_was_written_is_read_back(self, tmp_path: Path) -> None:
        value = {"text": "naïve ☃ \u2028", "list": [1, 2.5, None, True], "nested": {"a": {}}}
        write_json(tmp_path / "x.json", value)
        assert read_json(tmp_path / "x.json") == value
        assert "☃" in (tmp_path / "x.json").read_text(encoding="utf-8")

    @pytest.mark.parametrize(
        ("content", "rule"),
        [
            (b"", "not valid JSON"),
            (b"{", "not valid JSON"),
            (b"\xff\xfe\x00", "not valid JSON"),
            (b'{"a": ' + b"[" * 200_000, "nested too deeply"),
            (b'{"a": ' + b'{"a": ' * 200_000, "nested too deeply"),
            (b'{"a": ' + b"9" * 10_000 + b"}", "not valid JSON"),
            (b"[1]", "a JSON list, not an object"),
            (b"null", "a JSON NoneType, not an object"),
        ],
    )
    def test_anything_else_is_one_clear_error(self, tmp_path: Path, content: bytes, rule: str) -> None:
        path = tmp_path / "x.json"
        path.write_bytes(content)
        with pytest.raises(ModelError, match=rule) as caught:
            read_json(path)
        assert str(path) in str(caught.value)
        with pytest.raises(DataError):
            read_json(path, error=DataError)

    def test_a_huge_file_is_refused_without_being_read(self, tmp_path: Path) -> None:
        path = tmp_path / "x.json"
        with path.open("wb") as file:
            file.truncate(2**40)  # a terabyte, sparse
        with pytest.raises(ModelError, match="more than the 67,108,864"):
            read_json(path)

    def test_devices_pipes_and_folders_are_refused_at_once(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "zero").symlink_to("/dev/zero")
        for path in (tmp_path / "pipe", tmp_path / "zero", tmp_path):
            with pytest.raises(ModelError, match="is not a regular file"):
                read_json(path)
        with pytest.raises(ModelError, match=r"can't be read \(No such file or directory\)"):
            read_json(tmp_path / "none.json")


class TestSoleOwner:
    HOLD = (
        "import sys\nfrom albert.files import sole_owner\n"
        "with sole_owner(sys.argv[1]):\n    print('ready', flush=True); sys.stdin.read()"
    )

    def test_a_second_process_is_refused_by_number_and_let_in_when_the_first_dies(self, tmp_path: Path) -> None:
        child = start(self.HOLD, tmp_path / "run")
        with pytest.raises(UsageError, match=f"process {child.pid} is writing here"), sole_owner(tmp_path / "run"):
            pass
        kill(child)
        with sole_owner(tmp_path / "run"):
            assert (tmp_path / "run" / ".lock").read_text() == f"{os.getpid()}\n"

    def test_the_lock_is_free_after_the_block_and_after_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(ZeroDivisionError), sole_owner(tmp_path):
            raise ZeroDivisionError
        with sole_owner(tmp_path):
            pass

    def test_a_place_that_cannot_be_is_a_usage_error(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(UsageError, match="choose another place"), sole_owner(tmp_path / "file"):
            pass

    def test_without_locks_in_the_file_system_work_goes_on(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def no_locks(*_: object) -> NoReturn:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

        with sole_owner(tmp_path), pytest.raises(UsageError, match="is writing here"), sole_owner(tmp_path):
            pass
        monkeypatch.setattr(files.fcntl, "flock", no_locks)
        with caplog.at_level("DEBUG", logger="albert.files"), sole_owner(tmp_path), sole_owner(tmp_path):
            write_json(tmp_path / "x.json", {"done": True})
        assert "no locks here" in caplog.text, "it was tried, and said"
        assert read_json(tmp_path / "x.json") == {"done": True}
        assert (tmp_path / ".lock").read_text() == f"{os.getpid()}\n"


def test_the_checksum_is_that_of_the_contents(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert sha256(tmp_path / "x") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_permissions_never_pass_through_a_world_writable_state(tmp_path: Path) -> None:
    """Other threads create files meanwhile, so the process's umask must not be touched."""
    old = os.umask(0o077)
    try:
        with atomic_write(tmp_path / "secret") as file:
            file.write(json.dumps({"key": 1}).encode())
            hidden = next(tmp_path.glob(".secret.*"))
            assert stat.S_IMODE(hidden.stat().st_mode) == 0o600
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600
