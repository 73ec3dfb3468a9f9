"""The vocabulary of the tiny model, and settings that tune it in a second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from albert.finetune.settings import FinetuneSettings
from albert.settings import read_settings
from albert.tokenizer import Tokenizer

FAST = {
    "train.steps": 60, "train.batch_size": 16, "train.eval_every": 20, "train.save_every": 20, "train.log_every": 5,
    "optimizer.lr": 5e-3, "optimizer.embedding_lr_factor": 1.0, "optimizer.warmup_steps": 5, "train.precision": "fp32",
    "tune.pooler": "kept",
}  # fmt: skip


@pytest.fixture(scope="session")
def tokenizer(word_tokenizer: Tokenizer) -> Tokenizer:
    return word_tokenizer


@pytest.fixture(scope="session")
def settings() -> Callable[..., FinetuneSettings]:
    def make(**changes: Any) -> FinetuneSettings:
        values = FAST | {name.replace("__", "."): value for name, value in changes.items()}
        return read_settings(FinetuneSettings, defaults=values)

    return make
