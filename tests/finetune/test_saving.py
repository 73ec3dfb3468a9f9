"""Saving by time: a short run that is killed goes on where it was, exactly, and says where it begins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from albert.finetune import finetune
from albert.finetune.settings import FinetuneSettings
from albert.labelled.request import Opened
from albert.model import new_model, preset
from albert.train.checkpoint import TrainState, checkpoints, newest_intact
from albert.train.loop import Progress, _Saver
from albert.train.settings import TrainSettings
from albert.train.world import World

MakeData = Callable[..., Opened]
MakeSettings = Callable[..., FinetuneSettings]
ALWAYS = 1e-9  # minutes


def final(out: Path) -> dict[str, torch.Tensor]:
    path = newest_intact(out / "checkpoints")
    assert path is not None
    return load_file(path / "weights.safetensors") | load_file(path / "optimizer.safetensors")


def killed_at(step: int) -> Callable[[Progress], None]:
    def observe(progress: Progress) -> None:
        if progress.step == step:
            raise MemoryError  # ends the run on the spot, as kill -9 does: nothing is saved on the way out

    return observe


def test_a_killed_run_that_saved_by_time_goes_on_from_there_bit_for_bit(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("albert.train.loop.SAVING", 0.0)  # a save a step
    told: list[str] = []
    rare: dict[str, Any] = {"train__save_every": 1000, "train__steps": 40, "tune__dropout": 0.1}
    whole, often = settings(**rare), settings(**rare, train__save_minutes=ALWAYS)
    finetune(opened(), str(model_folder), tmp_path / "whole", settings=whole, tell=told.append)
    assert f"{tmp_path / 'whole'}: starting from the beginning" in told
    with pytest.raises(MemoryError):
        finetune(opened(), str(model_folder), tmp_path / "cut", settings=often, observe=killed_at(28))
    told.clear()
    finetune(opened(), str(model_folder), tmp_path / "cut", settings=often, tell=told.append)
    assert f"{tmp_path / 'cut'}: resuming from step 27 of 40" in told
    one, other = final(tmp_path / "whole"), final(tmp_path / "cut")
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    told.clear()
    finetune(opened(), str(model_folder), tmp_path / "cut", settings=often, tell=told.append)
    assert f"{tmp_path / 'cut'}: has been trained before: nothing to do" in told


def test_without_time_passing_only_the_steps_are_saved(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    chosen = settings(train__steps=20, train__save_every=1000, train__keep=9)
    finetune(opened(), str(model_folder), tmp_path / "run", settings=chosen)
    assert [path.name for path in checkpoints(tmp_path / "run" / "checkpoints")] == ["step-00000020"]


def test_the_notes_come_before_the_training(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    order: list[str] = []
    finetune(
        opened(),
        str(model_folder),
        tmp_path / "run",
        settings=settings(train__steps=20),
        tell=order.append,
        observe=lambda progress: order.append(f"step {progress.step}"),
    )
    assert order.index("note: made by hand") < order.index("step 5")


def test_the_first_process_decides_that_a_save_is_due_and_a_slow_disk_is_not_kept_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = new_model(preset("tiny").with_settings({"vocab_size": 50}))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    clock = [0.0]
    monkeypatch.setattr("albert.train.loop.time", SimpleNamespace(monotonic=lambda: clock[0]))

    def slow(*_: object, **__: object) -> None:
        clock[0] += 60.0

    monkeypatch.setattr("albert.train.loop.save_checkpoint", slow)
    cpu, settings = torch.device("cpu"), TrainSettings(save_minutes=2.0)
    first = _Saver(tmp_path, model, optimizer, settings=settings, world=World(0, 1, cpu))
    second = _Saver(tmp_path, model, optimizer, settings=settings, world=World(1, 2, cpu))
    clock[0] = 119.0
    assert (first.is_due(), second.is_due()) == (False, False)
    clock[0] = 120.0
    assert (first.is_due(), second.is_due()) == (True, False)
    first.save(TrainState(step=1))  # takes a minute
    clock[0] += 10 * 60
    assert not first.is_due()
    clock[0] += 10 * 60
    assert first.is_due()
