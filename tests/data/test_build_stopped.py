"""The command stopped from outside: Ctrl-C, SIGTERM, kill -9. No worker stays, and the next run continues."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from albert.data.build import build_store
from albert.data.engines import LocalEngine
from albert.data.plan import BuildSettings
from albert.tokenizer import Tokenizer

COMMAND = """
import dataclasses
from albert.data import plan
plan.BuildSettings = dataclasses.make_dataclass(
    "Small", [("part_size", int, 20_000)], bases=(plan.BuildSettings,), frozen=True
)
from albert.cli import main
if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_stopped_ends_with_its_workers_and_continues(
    tmp_path: Path,
    prose: Callable[..., str],
    real_tokenizer: Tokenizer,
    sent: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "text.txt").write_text(prose(400) * 4)  # long enough to be stopped in the middle
    (tmp_path / "command.py").write_text(COMMAND)
    real_tokenizer.save(tmp_path / "tokenizer")
    command = [sys.executable, "command.py", "data", "build", "text.txt", "--tokenizer", "tokenizer"]
    process = subprocess.Popen(
        [*command, "--out", "store", "--workers", "2"],
        cwd=tmp_path,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    journal = tmp_path / "store" / "unfinished.journal"
    while process.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") >= 4):
        time.sleep(0.005)
    os.killpg(process.pid, sent) if sent == signal.SIGINT else process.send_signal(sent)  # Ctrl-C reaches the workers
    out, err = process.communicate(timeout=60)
    assert process.returncode == (-sent if sent == signal.SIGKILL else 130), out + err
    assert "Traceback" not in err
    if sent != signal.SIGKILL:
        assert "run the same command again to continue" in err
    assert _ends(process.pid)
    again = subprocess.run([*command, "--out", "store", "--workers", "1", "--json"], cwd=tmp_path, capture_output=True)
    facts = json.loads(again.stdout)
    assert 0 < facts["built"] <= facts["shards"] - 3
    monkeypatch.chdir(tmp_path)
    small = BuildSettings(part_size=20_000)
    build_store(["text.txt"], Path("whole"), tokenizer=real_tokenizer, settings=small, engine=LocalEngine(1))
    assert _files(tmp_path / "store") == _files(tmp_path / "whole")


def _ends(group: int) -> bool:
    """Wait for the last process of a group."""
    for _ in range(500):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }
