"""`albert info` and `albert study params`, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from albert.cli import app
from albert.errors import UsageError
from albert.model import AlbertConfig, new_model
from albert.model.folder import save_model

run = CliRunner()


def test_study_params_prints_the_documented_rows() -> None:
    result = run.invoke(app, ["study", "params", "--json"])
    rows = json.loads(result.stdout)
    assert {"table": 1, "model": "albert-base", "paper": "12M", "parameters": 11683584} in rows
    assert {"table": 4, "sharing": "attention", "embedding_size": 768, "paper": "83M", "parameters": 83078400} in rows
    text = run.invoke(app, ["study", "params"]).stdout
    assert "222,595,584  (the paper's figure can't be had from the architecture)" in text


def test_info_of_a_preset_with_a_changed_field() -> None:
    result = run.invoke(app, ["info", "xlarge", "--set", "num_attention_heads=32", "--json"])
    facts = json.loads(result.stdout)
    assert facts["name"] == "albert-xlarge-v2"
    assert facts["config"]["num_attention_heads"] == 32
    assert facts["parameters"]["backbone"] == 58_724_864


def test_info_of_a_folder_says_whether_transformers_opens_it(tmp_path: Path) -> None:
    shape = {
        "vocab_size": 50,
        "embedding_size": 8,
        "hidden_size": 16,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    save_model(new_model(AlbertConfig(**shape, sharing="ffn"), ("mlm",)), tmp_path / "ours")  # type: ignore[arg-type]
    save_model(new_model(AlbertConfig(**shape), ("mlm",)), tmp_path / "both")  # type: ignore[arg-type]
    assert "transformers  no" in run.invoke(app, ["info", str(tmp_path / "ours")]).stdout
    both = run.invoke(app, ["info", str(tmp_path / "both")]).stdout
    assert "transformers  yes" in both
    assert "(1 group of 1 inner layer)" in both


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["info", "base", "--set", "heads=3"], "did you mean 'num_attention_heads'"),
        (["info", "base", "--set", "sharing=most"], "sharing='most' is unknown"),
        (["info", "base", "--set", "hidden_size=100"], "not a multiple of num_attention_heads"),
    ],
)
def test_mistakes_are_named(words: list[str], message: str) -> None:
    result = run.invoke(app, words)
    assert isinstance(result.exception, UsageError)
    assert message in str(result.exception)
