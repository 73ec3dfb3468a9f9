"""What pre-training leaves for people: a report and TensorBoard events, however the run ends."""

from __future__ import annotations

import logging
import os
import signal
import time
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from albert import pretrain as stage
from albert.data.store import TokenStore
from albert.errors import AlbertError, Interrupted
from albert.pretrain.settings import PretrainSettings
from albert.settings import read_settings
from albert.train.loop import Progress

SMALL = {
    "model.embedding_size": 16, "model.hidden_size": 32, "model.num_attention_heads": 2, "model.intermediate_size": 64,
    "model.num_hidden_layers": 2, "data.max_length": 64, "train.steps": 8, "train.batch_size": 4, "train.log_every": 2,
    "train.save_every": 4, "optimizer.warmup_steps": 2, "optimizer.lr": 0.01, "evaluation.examples": 20,
}  # fmt: skip
SETTINGS = read_settings(PretrainSettings, defaults=SMALL)


def report(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


def steps_shown(folder: Path) -> list[int]:
    reader = EventAccumulator(str(folder / "tensorboard"))
    reader.Reload()
    return [event.step for event in reader.Scalars("train/loss")]


def test_a_finished_run_has_a_report_and_events(store: TokenStore, tmp_path: Path) -> None:
    stage.pretrain(store, "tiny", tmp_path / "run", settings=SETTINGS, valid=store)
    assert "Finished: 8 steps." in report(tmp_path / "run")
    assert "sentence order (SOP)" in report(tmp_path / "run")
    assert steps_shown(tmp_path / "run") == [2, 4, 6, 8]


def test_an_interrupted_run_has_a_report_and_once_resumed_shows_each_step_once(
    store: TokenStore, tmp_path: Path
) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.step == 4:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted):
        stage.pretrain(store, "tiny", tmp_path / "run", settings=SETTINGS, observe=interrupt)
    assert "Not finished: 5 of 8 steps" in report(tmp_path / "run")
    time.sleep(1.1)  # TensorBoard sorts files by the second, then by a number as text: 100 before 99
    stage.pretrain(store, "tiny", tmp_path / "run", settings=SETTINGS)
    assert "Finished: 8 steps." in report(tmp_path / "run")
    assert steps_shown(tmp_path / "run") == [2, 4, 5, 6, 8]


def test_a_run_whose_loss_went_wrong_has_a_report(
    store: TokenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("albert.train.loop._problem", lambda *_, **__: "the loss is nan" if _[2].step == 3 else None)
    with pytest.raises(AlbertError, match="the loss is nan"):
        stage.pretrain(store, "tiny", tmp_path / "run", settings=SETTINGS)
    assert "Not finished: 2 of 8 steps" in report(tmp_path / "run")


def test_a_report_that_can_not_be_written_does_not_spoil_the_run(
    store: TokenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(folder: Path) -> Path:
        raise RuntimeError(f"no fonts in {folder.name}")

    monkeypatch.setattr("albert.report.writing.write_report", fail)
    with caplog.at_level(logging.WARNING):
        stage.pretrain(store, "tiny", tmp_path / "run", settings=SETTINGS)
    assert (tmp_path / "run" / "model" / "config.json").exists()
    assert "no report (no fonts in run): try `albert report" in caplog.text


def test_a_refused_run_leaves_the_report_of_the_run_that_is_there(store: TokenStore, tmp_path: Path) -> None:
    stage.pretrain(store, "tiny", tmp_path / "run", settings=SETTINGS)
    before = report(tmp_path / "run")
    other = read_settings(PretrainSettings, defaults=SMALL | {"train.seed": 5})
    with pytest.raises(AlbertError, match="another configuration"):
        stage.pretrain(store, "tiny", tmp_path / "run", settings=other)
    assert report(tmp_path / "run") == before
