"""TensorBoard event files, read back by TensorBoard's own reader."""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from albert.train.run import RunFolder


def read_events(folder: Path) -> dict[str, list[tuple[int, float]]]:
    reader = EventAccumulator(str(folder / "tensorboard"))
    reader.Reload()
    return {tag: [(event.step, event.value) for event in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}


def test_logged_metrics_become_events_training_and_held_out_apart(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run", {"stage": "test"})
    run.resume_metrics(0)
    run.log(2, {"loss": 4.0, "lr": 0.5})
    run.log(4, {"loss": 3.0, "lr": 0.25})
    run.log(4, {"valid_mlm_loss": 3.5})
    assert read_events(run.folder) == {
        "train/loss": [(2, 4.0), (4, 3.0)],
        "train/lr": [(2, 0.5), (4, 0.25)],
        "valid/mlm_loss": [(4, 3.5)],
    }, "before the run folder is closed: a killed run has shown all it logged"
    run.close()


def test_steps_that_are_run_again_are_shown_once(tmp_path: Path) -> None:
    for resumed_from, steps in ((0, (2, 4, 6)), (4, (6, 8)), (2, (4, 6, 8, 10))):
        run = RunFolder(tmp_path / "run", {"stage": "test"})
        run.resume_metrics(resumed_from)
        for step in steps:
            run.log(step, {"loss": 100.0 * resumed_from + step})
        run.close()
        time.sleep(1.01)  # files of one second are told apart by a number that sorts as text: 10 before 9
    events = read_events(tmp_path / "run")["train/loss"]
    assert events == [(2, 2.0), (4, 204.0), (6, 206.0), (8, 208.0), (10, 210.0)]
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert events == [(line["step"], line["loss"]) for line in lines]


def test_a_loss_that_is_no_number_is_an_event_too(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run", {"stage": "test"})
    run.log(2, {"loss": math.nan})
    run.close()
    [(step, value)] = read_events(run.folder)["train/loss"]
    assert step == 2
    assert math.isnan(value)


def test_a_run_that_logs_nothing_more_leaves_no_new_file(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run", {"stage": "test"})
    run.resume_metrics(12)
    run.close()
    assert not (tmp_path / "run" / "tensorboard").exists()


def test_without_tensorboard_only_the_events_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("torch.utils.tensorboard", "tensorboard"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)  # what importing a missing package meets
    run = RunFolder(tmp_path / "run", {"stage": "test"})
    run.log(2, {"loss": 4.0})
    run.log(4, {"loss": 3.0})
    run.close()
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 2
    assert not (tmp_path / "run" / "tensorboard").exists()
