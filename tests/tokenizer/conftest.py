"""Vocabularies to test with: the official one where the real data is, and small ones trained here."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from albert.tokenizer import Tokenizer
from albert.tokenizer.normalisation import Normalisation
from albert.tokenizer.training import TrainSettings, train_tokenizer


@pytest.fixture(scope="session")
def train(corpus: Path) -> Callable[..., Tokenizer]:
    """Return a function that trains 900 pieces with some normalisation, each only once."""
    trained: dict[Normalisation, Tokenizer] = {}

    def get(*, lower_case: bool = True, keep_accents: bool = False) -> Tokenizer:
        normalisation = Normalisation(lower_case=lower_case, keep_accents=keep_accents)
        if normalisation not in trained:
            settings = TrainSettings(vocab_size=900, normalisation=normalisation)
            trained[normalisation] = train_tokenizer([corpus], settings, progress=lambda done, words: None).tokenizer
        return trained[normalisation]

    return get


@pytest.fixture(scope="session")
def small(train: Callable[..., Tokenizer]) -> Tokenizer:
    """Return a small vocabulary with the official normalisation."""
    return train()


@pytest.fixture(scope="session")
def official(real_data: Path) -> Tokenizer:
    """Return the official vocabulary."""
    return Tokenizer.load(real_data / "vocab" / "spiece.model")


@pytest.fixture(scope="session")
def oracle() -> ModuleType:
    """Return the script that records the oracle: which texts, which digests."""
    path = Path(__file__).with_name("record_oracle.py")
    spec = importlib.util.spec_from_file_location("record_oracle", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
