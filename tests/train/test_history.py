"""What a run folder says of its run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from albert.errors import ResourceError, UsageError
from albert.train.history import History, read_history
from albert.train.run import RunFolder


def history_of(folder: Path, losses: dict[int, float]) -> History:
    run = RunFolder(folder, {"stage": "test", "settings": {"train": {"steps": 100}}})
    for step, loss in losses.items():
        run.log(step, {"loss": loss})
    run.close()
    return read_history(folder)


def test_settings_circumstances_and_metrics_are_what_the_run_wrote(tmp_path: Path) -> None:
    history = history_of(tmp_path / "run", {10: 5.0, 20: 4.0})
    assert history.settings == {"train.steps": 100}
    assert "torch" in history.circumstances["versions"]
    assert history.series("loss") == [(10, 5.0), (20, 4.0)]
    assert (history.last_step, history.final("loss"), history.final("other")) == (20, 4.0, None)


def test_the_recent_mean_is_that_of_the_last_tenth_of_the_steps(tmp_path: Path) -> None:
    history = history_of(tmp_path / "run", {step: float(step) for step in range(10, 201, 10)})
    assert history.recent_mean("loss") == 190.0  # of 180, 190 and 200
    assert history_of(tmp_path / "one", {10: 3.0}).recent_mean("loss") == 3.0
    assert history_of(tmp_path / "none", {}).recent_mean("loss") is None


def test_numbers_that_are_not_finite_are_in_the_metrics_but_in_no_series(tmp_path: Path) -> None:
    history = history_of(tmp_path / "run", {10: 5.0, 20: float("nan"), 30: float("inf")})
    assert history.series("loss") == [(10, 5.0)]
    assert len(history.metrics) == 3


@pytest.mark.parametrize("torn", ['{"step": 3', '{"loss": 3.0}', "[]", '{"step": "nan"}', '{"step": 30, "loss": null}'])
def test_a_last_line_that_was_never_finished_is_left_out(torn: str, tmp_path: Path) -> None:
    history_of(tmp_path / "run", {10: 5.0})
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:
        file.write(torn)
    assert read_history(tmp_path / "run").last_step == 10


def test_a_record_without_identity_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"identity": []}))
    with pytest.raises(UsageError, match=r"run\.json: has no identity"):
        read_history(tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_named_with_the_file_of_metrics(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run", {})
    run.metrics_path.symlink_to("/dev/full")
    with pytest.raises(ResourceError, match=r"run/metrics.jsonl: no space left"):
        run.log(1, {"loss": 1.0})
