"""Checkpoints: whole or absent, damage always noticed, the old one always left."""

from __future__ import annotations

import errno
import io
import os
import random
import resource
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from albert.errors import ModelError, ResourceError
from albert.model import Albert, AlbertConfig, new_model
from albert.optim import OptimizerSettings, build_optimizer
from albert.optim.table import OPTIMIZERS
from albert.train import checkpoint as module
from albert.train.checkpoint import (
    TrainState,
    checkpoints,
    damage,
    load_checkpoint,
    newest_intact,
    save_checkpoint,
)

CONFIG = AlbertConfig(vocab_size=50, embedding_size=8, hidden_size=16, num_attention_heads=2, intermediate_size=32)


def trained(optimizer: str = "lamb", seed: int = 0) -> tuple[Albert, torch.optim.Optimizer]:
    model = new_model(CONFIG, ("mlm",), seed=seed)
    chosen = build_optimizer(OptimizerSettings(name=optimizer), model, lr=0.1)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    chosen.step()
    return model, chosen


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_weights_moments_and_state_come_back_bit_for_bit(name: str, tmp_path: Path) -> None:
    model, optimizer = trained(name)
    path = save_checkpoint(tmp_path, TrainState(step=7, smooth_loss=1.2345678901), model, optimizer, keep=2)
    other = new_model(CONFIG, ("mlm",), seed=9)
    fresh = build_optimizer(OptimizerSettings(name=name), other, lr=0.1)
    state = load_checkpoint(path, other, fresh)
    assert (state.step, state.smooth_loss) == (7, 1.2345678901)
    for first, second in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(first, second)
        old, new = optimizer.state[first], fresh.state[second]
        assert old.keys() == new.keys()
        assert all(torch.equal(old[key], new[key]) for key in old)


def test_a_fused_kernel_finds_its_count_of_steps_on_its_own_device() -> None:
    with torch.device("meta"):
        model = Albert(CONFIG, ("mlm",))
    chosen = torch.optim.AdamW(model.parameters(), fused=False)
    moments = {"encoder.embeddings.word.weight/step": torch.tensor(3.0)}
    for fused, device in ((False, "cpu"), (True, "meta")):
        chosen.param_groups[0]["fused"] = fused
        module._restore_moments(model, chosen, moments)
        assert chosen.state[model.get_parameter("encoder.embeddings.word.weight")]["step"].device.type == device


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    model, optimizer = trained()
    for step in (1, 2, 30):
        save_checkpoint(tmp_path, TrainState(step=step), model, optimizer, keep=2)
    assert [path.name for path in checkpoints(tmp_path)] == ["step-00000002", "step-00000030"]


@pytest.mark.parametrize("name", [*module.FILES, "manifest.json"])
def test_a_damaged_file_is_always_noticed_and_the_checkpoint_before_it_is_used(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model, optimizer = trained()
    before = save_checkpoint(tmp_path, TrainState(step=1), model, optimizer, keep=5)
    last = save_checkpoint(tmp_path, TrainState(step=2), model, optimizer, keep=5)
    whole = (last / name).read_bytes()
    rng = random.Random(name)
    for case in range(200):  # 100 places each, cut and flipped
        cut = case % 2 == 0
        place = rng.randrange(len(whole))
        bits = bytes([whole[place] ^ (1 << rng.randrange(8))])
        (last / name).write_bytes(whole[:place] if cut else whole[:place] + bits + whole[place + 1 :])
        caplog.clear()
        assert newest_intact(tmp_path) == before, (case, place)
        assert "step-00000002" in caplog.text
        assert name in caplog.text
    (last / name).write_bytes(whole)
    assert newest_intact(tmp_path) == last


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, TrainState(step=1), *trained(), keep=1)
    (path / "optimizer.safetensors").unlink()
    assert damage(path) == "optimizer.safetensors is missing"
    assert newest_intact(tmp_path) is None


class FullDisk:
    """Lets some operations pass, then refuses one, or all from then on: each that could find the disk full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, passing: int, lasting: bool) -> None:
        self.left, self.lasting, self.refused = passing, lasting, ""
        for name in ("mkdir", "fsync", "rename", "replace"):
            monkeypatch.setattr(os, name, self._wrapped(name, getattr(os, name)))
        monkeypatch.setattr(io, "open", self._open(io.open))
        monkeypatch.setattr(module, "write_tensors", self._write_tensors(module.write_tensors))

    def ask(self, what: str) -> None:
        """Count an operation; refuse it if its turn has come."""
        self.left -= 1
        if self.left == -1 or (self.lasting and self.left < 0):
            self.refused = self.refused or what
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _wrapped(self, name: str, function: Any) -> Any:
        def operation(*arguments: Any, **options: Any) -> Any:
            self.ask(name)
            return function(*arguments, **options)

        return operation

    def _open(self, true_open: Any) -> Any:
        disk = self

        class File(io.FileIO):
            def write(self, data: Any) -> int:
                disk.ask("write")
                return super().write(data)

        def opened(path: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            if not set(mode) & set("wxa"):
                return true_open(path, mode, *arguments, **options)
            disk.ask("open")
            return io.BufferedWriter(File(path, mode.replace("b", "")))

        return opened

    def _write_tensors(self, true_write: Any) -> Any:
        def write(path: Path, tensors: Any) -> None:
            self.ask("open tensors")
            true_write(path, tensors)
            try:
                self.ask("write tensors")
            except OSError:
                os.truncate(path, path.stat().st_size // 2)
                raise

        return write


def loaded(path: Path | None) -> tuple[int, torch.Tensor]:
    """Load a checkpoint: its step and the first of its weights."""
    assert path is not None
    model = new_model(CONFIG, ("mlm",), seed=5)
    state = load_checkpoint(path, model, build_optimizer(OptimizerSettings(name="lamb"), model, lr=0.1))
    return state.step, next(model.parameters()).detach()


@pytest.mark.parametrize("lasting", [False, True], ids=["for a moment", "for good"])
def test_a_disk_that_is_full_at_any_operation_of_a_save_leaves_a_checkpoint_that_loads(
    lasting: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (old, old_moments), (new, new_moments) = trained(seed=0), trained(seed=1)
    first = save_checkpoint(tmp_path, TrainState(step=1), old, old_moments, keep=1)
    weights = {1: next(old.parameters()), 2: next(new.parameters())}
    refused = []
    for passing in range(1000):
        with monkeypatch.context() as patch:
            disk = FullDisk(patch, passing=passing, lasting=lasting)
            _save_fails(tmp_path, new, new_moments)
        if not disk.refused:
            break
        refused.append(disk.refused)
        step, found = loaded(newest_intact(tmp_path))
        assert torch.equal(found, weights[step])
        assert loaded(first)[0] == 1, "the old one is whole, whatever became of the new one"
        assert {item.name for item in tmp_path.iterdir()} <= {"step-00000001", "step-00000002"}, "nothing half-written"
        shutil.rmtree(tmp_path / "step-00000002", ignore_errors=True)
    assert {"mkdir", "open", "write", "fsync", "replace", "rename", "open tensors", "write tensors"} == set(refused)
    assert len(refused) > 20
    assert loaded(newest_intact(tmp_path))[0] == 2


def _save_fails(folder: Path, model: Albert, optimizer: torch.optim.Optimizer) -> bool:
    try:
        save_checkpoint(folder, TrainState(step=2), model, optimizer, keep=2)
    except ResourceError:
        return True
    return False


def test_a_file_that_the_system_refuses_to_let_grow_leaves_the_old_checkpoint(tmp_path: Path) -> None:
    model, optimizer = trained()
    first = save_checkpoint(tmp_path, TrainState(step=1), model, optimizer, keep=1)
    largest = max(item.stat().st_size for item in first.iterdir())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for limit in (0, 1, 100, 300, 1000, largest // 2, largest - 1):  # the refusals of the kernel, not of a stand-in
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
        try:
            failed = _save_fails(tmp_path, model, optimizer)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert failed, limit
        assert newest_intact(tmp_path) == first
        assert [item.name for item in tmp_path.iterdir()] == [first.name]


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, TrainState(step=1), *trained(), keep=1)
    other = new_model(CONFIG.with_settings({"hidden_size": 32}), ("mlm",))
    with pytest.raises(ModelError, match="does not fit"):
        load_checkpoint(path, other, build_optimizer(OptimizerSettings(name="lamb"), other, lr=0.1))


def test_too_little_disk_is_noticed_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 0))  # type: ignore[attr-defined]
    with pytest.raises(ResourceError, match=r"\d MB free, but checkpoints need [\d,]+ MB: make room"):
        module.require_space(tmp_path, new_model(CONFIG))


def test_a_damaged_later_checkpoint_does_not_push_out_the_new_one(tmp_path: Path) -> None:
    model, optimizer = trained()
    for step in (10, 20):
        path = save_checkpoint(tmp_path, TrainState(step=step), model, optimizer, keep=2)
    (path / "weights.safetensors").write_bytes(b"damaged")
    kept = save_checkpoint(tmp_path, TrainState(step=15), model, optimizer, keep=1)
    assert checkpoints(tmp_path) == [kept]
    assert newest_intact(tmp_path) == kept
