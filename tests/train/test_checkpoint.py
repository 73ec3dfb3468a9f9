"""Checkpoints: whole or absent, damage always noticed, the old one always left."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from albert.errors import ModelError, ResourceError
from albert.model import Albert, AlbertConfig, new_model
from albert.optim import build_optimizer
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
    chosen = build_optimizer(optimizer, model, lr=0.1)  # type: ignore[arg-type]
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    chosen.step()
    return model, chosen


@pytest.mark.parametrize("name", ["lamb", "adamw"])
def test_weights_moments_and_state_come_back_bit_for_bit(name: str, tmp_path: Path) -> None:
    model, optimizer = trained(name)
    path = save_checkpoint(tmp_path, TrainState(step=7, smooth_loss=1.2345678901), model, optimizer, keep=2)
    other = new_model(CONFIG, ("mlm",), seed=9)
    fresh = build_optimizer(name, other, lr=0.1)  # type: ignore[arg-type]
    state = load_checkpoint(path, other, fresh)
    assert (state.step, state.smooth_loss) == (7, 1.2345678901)
    for first, second in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(first, second)
        old, new = optimizer.state[first], fresh.state[second]
        assert old.keys() == new.keys()
        assert all(torch.equal(old[key], new[key]) for key in old)


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
    for case in range(50):
        cut = case % 2 == 0
        place = rng.randrange(len(whole))
        bits = bytes([whole[place] ^ (1 << rng.randrange(8))])
        (last / name).write_bytes(whole[:place] if cut else whole[:place] + bits + whole[place + 1 :])
        if name == "manifest.json" and not cut and _same_manifest(last / name, whole):
            continue
        caplog.clear()
        assert newest_intact(tmp_path) == before, (case, place)
        assert "step-00000002" in caplog.text
    (last / name).write_bytes(whole)
    assert newest_intact(tmp_path) == last


def _same_manifest(path: Path, whole: bytes) -> bool:
    """Tell whether a flipped bit left the manifest's meaning as it was (white space)."""
    import json

    try:
        return bool(json.loads(path.read_bytes()) == json.loads(whole))
    except ValueError:
        return False


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, TrainState(step=1), *trained(), keep=1)
    (path / "optimizer.safetensors").unlink()
    assert damage(path) == "optimizer.safetensors is missing"
    assert newest_intact(tmp_path) is None


def test_a_full_disk_at_any_write_leaves_the_old_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, optimizer = trained()
    first = save_checkpoint(tmp_path, TrainState(step=1), model, optimizer, keep=1)
    writes = {"save_file": module.save_file, "write_json": module.write_json}
    for fail_at in range(4):  # weights, optimizer, state, manifest
        done = 0

        def wrap(function: Any, fail_at: int = fail_at) -> Any:
            def write(*arguments: Any, **options: Any) -> None:
                nonlocal done
                done += 1
                if done > fail_at:
                    raise OSError(28, "No space left on device")
                function(*arguments, **options)

            return write

        for name, function in writes.items():
            monkeypatch.setattr(module, name, wrap(function))
        with pytest.raises(ResourceError, match="no space left"):
            save_checkpoint(tmp_path, TrainState(step=2), model, optimizer, keep=1)
        assert newest_intact(tmp_path) == first
        assert [item.name for item in tmp_path.iterdir()] == [first.name]


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, TrainState(step=1), *trained(), keep=1)
    other = new_model(CONFIG.with_settings({"hidden_size": 32}), ("mlm",))
    with pytest.raises(ModelError, match="does not fit"):
        load_checkpoint(path, other, build_optimizer("lamb", other, lr=0.1))


def test_too_little_disk_is_noticed_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 0))  # type: ignore[attr-defined]
    with pytest.raises(ResourceError, match="checkpoints need"):
        module.require_space(tmp_path, new_model(CONFIG))
