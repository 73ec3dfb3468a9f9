"""The progress line: what is left, also of a run that goes on from its middle."""

from __future__ import annotations

import pytest

from albert.cli import progress


def test_what_is_left_is_told_by_the_pace_since_the_command_began(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 5.0, 105.0, 205.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.progress_line("training") as show:
        for done in (0.50, 0.60, 0.70):  # resumed at a half; a tenth in 100 seconds
            show(done, "step")
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["training: 60%, step, 6 min 40 s left", "training: 70%, step, 5 min 00 s left"]
