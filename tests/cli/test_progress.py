"""The progress line: what is left, also of a run that goes on from its middle, and how times are said."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from albert.cli import progress


def test_what_is_left_is_told_by_the_pace_since_the_command_began(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 5.0, 105.0, 205.0])
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with progress.progress_line("training") as show:
        for done in (0.50, 0.60, 0.70):  # resumed at a half; a tenth in 100 seconds
            show(done, "step")
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["training: 60%, step, 6 min 40 s left", "training: 70%, step, 5 min 00 s left"]


def test_plain_progress_lines_come_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 1.0, 20.0, 25.0, 40.0])
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with progress.progress_line("building") as show:
        for done in (0.1, 0.5, 0.6, 0.8):
            show(done, "words")
    assert capsys.readouterr().err == "building: 50%, words, 24 s left\nbuilding: 80%, words, 11 s left\n"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.25, "0.2 s"), (59.4, "59 s"), (61, "1 min 01 s"), (3599.7, "1 h 00 min"), (7322, "2 h 02 min")],
)
def test_durations_are_said_in_two_units(seconds: float, said: str) -> None:
    assert progress.duration(seconds) == said


def test_inputs_are_counted_first_so_that_progress_has_a_total() -> None:
    said: list[tuple[float, str]] = []
    total = progress.count_read(iter("abcd"), lambda done, words: said.append((done, words)))
    assert (total, said[-1]) == (4, (0.0, "4 inputs read"))
    assert list(progress.counted("abcd", lambda done, words: said.append((done, words)), total=total)) == list("abcd")
    assert said[-2:] == [(0.75, "3 of 4 inputs"), (1.0, "4 of 4 inputs")]
