"""What a user meets when something goes wrong: one line, a documented exit code, no traceback."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from albert.cli import app
from albert.errors import ModelError

# A command line with one more command, which does what it is told.
STAGE = """
import sys, typer
from albert import cli
from albert.errors import DataError, Interrupted, ModelError, ResourceError, UsageError

@cli.app.command("fail")
def fail(text: str) -> None:
    exec(text)

cli.main()
"""


def albert(*arguments: str, script: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script] if script else [sys.executable, "-m", "albert"]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False, timeout=60)


def fail(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    return albert("fail", code, *options, script=STAGE)


@pytest.mark.parametrize(
    ("code", "exit_code", "message"),
    [
        ("raise UsageError('train.batch_size=96: use 64')", 2, "error: train.batch_size=96: use 64\n"),
        ("raise DataError('a.txt:3: not UTF-8')", 3, "error: a.txt:3: not UTF-8\n"),
        ("raise ModelError('no config.json')", 4, "error: no config.json\n"),
        ("raise ResourceError('disk full')", 5, "error: disk full\n"),
        ("raise MemoryError", 5, "error: out of memory: use smaller batches or pieces\n"),
        ("raise RuntimeError('DefaultCPUAllocator: can\\'t allocate memory: …')", 5, "error: out of memory"),
        ("raise Interrupted('saved step 7')", 130, "error: saved step 7\n"),
        ("raise KeyboardInterrupt", 130, "interrupted\n"),
        ("open('/no/such/file')", 2, "error: /no/such/file: No such file or directory\n"),
        ("open('/')", 2, "error: /: can't be there (Is a directory)"),
        ("import errno; raise OSError(errno.ENOSPC, 'No space left on device')", 5, "error: output: no space left"),
        ("[][1]", 1, "error: IndexError: list index out of range\n(a defect: run again with --debug)\n"),
    ],
)
def test_every_failure_is_one_message_and_its_exit_code(code: str, exit_code: int, message: str) -> None:
    done = fail(code)
    assert done.returncode == exit_code
    assert done.stderr.startswith(message)
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_debug_shows_the_traceback_and_keeps_the_exit_code_wherever_it_stands() -> None:
    for done in (fail("raise DataError('bad')", "--debug"), albert("--debug", "fail", "[][1]", script=STAGE)):
        assert "Traceback (most recent call last)" in done.stderr
        assert "error: " in done.stderr
    assert fail("raise DataError('bad')", "--debug").returncode == 3


def test_after_two_dashes_debug_is_an_argument_like_any_other() -> None:
    done = albert("fail", "--", "--debug", script=STAGE)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_an_unknown_command_or_option_suggests_the_near_one() -> None:
    command, option = albert("docter"), albert("doctor", "--jsonn")
    assert (command.returncode, option.returncode) == (2, 2)
    assert "'docter'" in command.stderr
    assert "'doctor'" in command.stderr
    assert "--jsonn" in option.stderr
    assert "--json" in option.stderr.replace("--jsonn", "")


def test_no_command_shows_the_help_and_is_a_usage_error() -> None:
    done = albert()
    assert done.returncode == 2
    assert "Commands:" in done.stdout + done.stderr


@pytest.mark.parametrize("group", [(), ("tokenizer",), ("data",), ("export",)])
def test_the_help_of_a_command_is_one_whole_line(group: tuple[str, ...]) -> None:
    lines = albert(*group, "--help").stdout.partition("Commands:\n")[2].splitlines()
    assert lines
    assert [line for line in lines if line.endswith("...")] == []


def test_commands_are_listed_in_the_order_of_the_work() -> None:
    lines = albert("--help").stdout.partition("Commands:\n")[2].splitlines()
    names = [line.split()[0] for line in lines]
    assert names[:6] == ["doctor", "demo", "tokenizer", "data", "pretrain", "finetune"]


def test_the_version_is_printed() -> None:
    done = albert("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("albert-lite ")


@pytest.mark.parametrize("code", ["print('x' * 1_000_000)", "print('x')", "print('x', flush=True)"])
def test_a_reader_that_leaves_is_no_error(code: str) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as broken:
        done = subprocess.run(
            [sys.executable, "-c", STAGE, "fail", code], stdout=broken, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_of_notes_that_leaves_stops_no_work(tmp_path: Path) -> None:
    """`albert … 2>&1 | head` must not end a training in silence, with exit code 0."""
    done = tmp_path / "done"
    code = f"import sys; print('note', file=sys.stderr, flush=True); open({str(done)!r}, 'w').close()"
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as broken:
        ended = subprocess.run([sys.executable, "-c", STAGE, "fail", code], stdout=subprocess.PIPE, stderr=broken)
    assert ended.returncode == 0
    assert done.exists()


def test_a_pipe_that_breaks_elsewhere_is_an_error() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STAGE, "fail", "raise BrokenPipeError('a worker died')"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "a worker died" in done.stderr


def test_closed_streams_and_other_encodings_are_borne() -> None:
    command = shlex.join([sys.executable, "-c", STAGE, "fail"])
    for code, ending in (("import sys; sys.stderr.write('x')", "2>&-"), ("print('x')", ">&-"), ("input", "<&-")):
        assert subprocess.run(f"{command} {shlex.quote(code)} {ending}", shell=True, check=False).returncode == 0
    latin = subprocess.run(
        [sys.executable, "-c", STAGE, "fail", "print('caf\u00e9 \u2588')"],
        capture_output=True, check=False, env=os.environ | {"PYTHONIOENCODING": "latin-1"},
    )  # fmt: skip
    assert (latin.returncode, latin.stdout) == (0, b"caf\xe9 \\u2588\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_named() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", STAGE, "fail", "print('x')"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 5
    assert done.stderr.startswith("error: output: no space left")


def test_a_closed_stdout_is_survived() -> None:
    done = subprocess.run(["bash", "-c", '"$0" -m albert --version >&-', sys.executable], check=False, timeout=60)
    assert done.returncode == 0


def test_an_interrupt_cleans_up_and_ends_with_130(tmp_path: Path) -> None:
    code = (
        f"from albert.files import atomic_write\nimport time\nwith atomic_write({str(tmp_path / 'file')!r}) as file:\n"
        "    file.write(b'half')\n    time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", STAGE, "fail", code], stderr=subprocess.PIPE, text=True)
    while not list(tmp_path.iterdir()):
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=30)[1] == "interrupted\n"
    assert child.returncode == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ["predict", "GHOST", "a text"],
        ["evaluate", "GHOST", "--data", "rows.csv"],
        ["finetune", "--model", "GHOST", "--data", "rows.csv", "--out", "run"],
        ["info", "GHOST"],
        ["info", "bse"],
        ["convert", "GHOST", "--out", "out"],
    ],
)
def test_a_model_that_is_not_there_is_exit_code_4(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"text {i},{'good' if i % 2 else 'bad'}\n" for i in range(40))
    (tmp_path / "rows.csv").write_text(f"text,label\n{rows}")
    result = CliRunner().invoke(app, [str(tmp_path / "ghost") if word == "GHOST" else word for word in words])
    assert isinstance(result.exception, ModelError), result.output
    assert result.exception.exit_code == 4
