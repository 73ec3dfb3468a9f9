"""The time that a dry run says: by stages, bounded, and honest about what was too large to try."""

from __future__ import annotations

from typing import Any

import pytest

from albert.data.store import TokenStore
from albert.hardware import Memory
from albert.model import new_model, preset
from albert.optim import OptimizerSettings, build_optimizer
from albert.pretrain import pace as module
from albert.pretrain.pace import Pace, measure_pace
from albert.pretrain.settings import PretrainSettings
from albert.settings import read_settings
from albert.train.world import World

SMALL = {
    "model.embedding_size": 16, "model.hidden_size": 32, "model.num_attention_heads": 2, "model.intermediate_size": 64,
    "model.num_hidden_layers": 4, "data.max_length": 64, "train.steps": 100, "train.batch_size": 8,
}  # fmt: skip


@pytest.fixture(autouse=True)
def enough_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what is tried not depend on how busy the machine is."""
    monkeypatch.setattr(module, "BUDGET", 1000.0)


def measured(store: TokenStore, *, mean_length: float = 64.0, processes: int = 1, **changes: Any) -> Pace:
    settings = read_settings(PretrainSettings, defaults=SMALL | {k.replace("__", "."): v for k, v in changes.items()})
    config = preset("tiny").with_settings({"vocab_size": store.tokenizer.vocab_size} | settings.model)
    model = new_model(config, ("mlm", "order"), seed=0)
    world = World(0, processes, model.device)
    return measure_pace(
        model,
        build_optimizer(OptimizerSettings(name="lamb"), model, lr=0.01),
        store,
        settings=settings,
        mean_length=mean_length,
        world=world,
    )


@pytest.fixture
def seconds_by_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that a micro-batch takes a second for each token and layer, and an update 100 seconds."""

    def time(_: Any, stage: Any, most: int, **__: Any) -> Any:
        return module._Trial(most, float(most * stage.length * stage.depth))

    monkeypatch.setattr(module, "_time", time)
    monkeypatch.setattr(module, "_time_update", lambda *_, **__: 100.0)


@pytest.mark.usefixtures("seconds_by_work")
def test_steps_of_each_depth_and_length_take_their_own_time(store: TokenStore) -> None:
    assert measured(store).seconds == 100 * (100 + 8 * 64 * 4)
    assert measured(store, mean_length=32).seconds == 100 * (100 + 8 * 32 * 4), "short sequences take less"
    assert measured(store, processes=2).seconds == 100 * (100 + 4 * 64 * 4), "a process does its share"
    grown = measured(
        store,
        data__max_length=128,
        mean_length=128,
        grow__depth=[(0.0, 1), (0.5, 4)],
        grow__length=[(0.0, 64), (0.7, 128)],
    )
    tokens = 8 * 128  # a step, at any length
    assert grown.seconds == 100 * 100 + tokens * (50 * 1 + 20 * 4 + 30 * 4)
    assert grown.basis.count("at depth") == 3


def test_real_steps_are_timed_with_what_a_run_sets(store: TokenStore) -> None:
    pace = measured(store, data__max_predictions=3, data__objective="none", train__precision="bf16")
    assert pace.measured
    assert pace.seconds > 0
    assert pace.basis == "timed: sequences, 8 of 64 tokens at depth 4"


def test_what_would_take_too_long_is_not_tried(store: TokenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_matrix_speed", lambda _: 1e3)

    def never(*_: Any, **__: Any) -> float:
        raise AssertionError("tried")

    monkeypatch.setattr(module, "_time", never)
    pace = measured(store)
    assert not pace.measured
    assert "too large to try: one of 64 tokens at depth 4, which alone would take about" in pace.basis
    flops = 3 * 64 * 2 * 4 * (4 * 32**2 + 2 * 32 * 64 + 2 * 64 * 32)
    assert pace.seconds == pytest.approx(100 * 8 * flops / 1e3, rel=0.01)


def test_memory_limits_what_is_tried(store: TokenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    one = module.training_bytes(preset("tiny").with_settings(_shape(store)), batch=1, length=64)
    monkeypatch.setattr(module, "measure_memory", lambda: Memory(total=10**12, available=one + 1))
    assert "1 of 64 tokens" in measured(store).basis
    monkeypatch.setattr(module, "measure_memory", lambda: Memory(total=10**12, available=one - 1))
    pace = measured(store)
    assert not pace.measured
    assert pace.basis.endswith("more memory than is free")


def _shape(store: TokenStore) -> dict[str, Any]:
    fields = {name.removeprefix("model."): value for name, value in SMALL.items() if name.startswith("model.")}
    return {"vocab_size": store.tokenizer.vocab_size} | fields
