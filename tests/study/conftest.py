"""Two stores of the same vocabulary, and studies at toy size in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from albert.data.part import write_part
from albert.data.store import TokenStore
from albert.study.resolve import Request

TOY = {
    "model.hidden_size": 32, "model.embedding_size": 16, "model.num_attention_heads": 2, "model.intermediate_size": 64,
    "data.max_length": 32, "grow.length": "[[0.0, 16], [0.5, 32]]", "train.batch_size": 4, "evaluation.examples": 20,
    "train.save_every": 2,
}  # fmt: skip

Study = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def held_out(store_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a store of other contents than that which is learnt from."""
    store = TokenStore.open(store_folder)
    return write_part(store, tmp_path_factory.mktemp("held-out") / "store", tokens=store.num_tokens // 4).folder


@pytest.fixture
def request_for(store_folder: Path, held_out: Path) -> Callable[..., Request]:
    """Give a function that makes a request."""
    return lambda **values: Request(store_folder, held_out, **values)


@pytest.fixture
def words(store_folder: Path, held_out: Path) -> Callable[..., list[str]]:
    """Give a function that makes the command line of a study at toy size."""

    def make(name: str, out: Path, *more: str) -> list[str]:
        given = ["study", name, "--data", str(store_folder), "--valid", str(held_out), "--out", str(out), *more]
        return [*given, *(word for key, value in TOY.items() for word in ("--set", f"{key}={value}"))]

    return make


@pytest.fixture
def study(words: Callable[..., list[str]]) -> Study:
    """Give `albert study NAME … --json` as a function."""
    from albert.cli import app

    def run(name: str, out: Path, *more: str) -> dict[str, Any]:
        result = CliRunner().invoke(app, words(name, out, "--json", *more), catch_exceptions=False)
        facts: dict[str, Any] = json.loads(result.stdout)
        return facts

    return run
