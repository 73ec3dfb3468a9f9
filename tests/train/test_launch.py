"""Starting several processes (tests/train/test_kills.py runs and ends them for real)."""

from __future__ import annotations

import pytest

from albert.cli.processes import _without_option
from albert.errors import UsageError
from albert.train.launch import launch


def test_processes_are_not_started_by_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "run")
    with pytest.raises(UsageError, match="--processes 2: torchrun has started the processes: leave the option out"):
        launch(["pretrain"], processes=2)


@pytest.mark.parametrize("option", [["--processes", "2"], ["--processes=2"]])
def test_the_processes_are_given_the_command_line_without_the_option(option: list[str]) -> None:
    assert _without_option(["pretrain", *option, "--out", "run"]) == ["pretrain", "--out", "run"]
