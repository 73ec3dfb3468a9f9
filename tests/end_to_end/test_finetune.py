"""`albert finetune` as a user runs it: from a table to a model, a plan, one JSON document, errors with their code."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from albert.cli import app
from albert.cli.finetune import parse_columns
from albert.errors import DataError, UsageError
from albert.labelled.request import Opened

FAST = ["--set", "train.steps=20", "--set", "optimizer.lr=5e-3", "--set", "train.precision=fp32"]


@pytest.fixture
def table(opened: Callable[..., Opened], tmp_path: Path) -> Path:
    """Write a table of texts with named classes."""
    data = opened()
    path = tmp_path / "reviews.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["body", "verdict"])
        rows.writerows([example.text, data.task.labels[example.target]] for example in data.splits.train)  # type: ignore[attr-defined]
    return path


def command(table: Path, model: Path, out: Path, *more: str) -> list[str]:
    columns = ["--columns", "text=body", "--columns", "label=verdict"]
    return ["finetune", "--model", str(model), "--data", str(table), "--out", str(out), *columns, *FAST, *more]


def test_a_table_becomes_a_model_and_one_json_document(table: Path, model_folder: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, command(table, model_folder, tmp_path / "run", "--json"))
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert facts["score"] == "accuracy"
    assert facts["runs"][0]["steps"] == 20
    config = json.loads((Path(facts["model"]) / "config.json").read_text())
    assert config["id2label"] == {"0": "bad", "1": "good"}
    assert json.loads((Path(facts["model"]) / "task.json").read_text())["columns"]["text"] == "body"


def test_a_dry_run_shows_what_was_found_and_writes_nothing(table: Path, model_folder: Path, tmp_path: Path) -> None:
    more = ("--dry-run", "--test", str(table), "--set", "optimizer.warmup_steps=1")
    done = CliRunner().invoke(app, command(table, model_folder, tmp_path / "run", *more))
    assert done.exit_code == 0, done.output
    for words in (
        "classification",
        "2 labels: bad, good",
        "20 of 16",
        "baseline that reads no text",
        "a new head",
        ", 1 seed\n",
        "training examples; 16 of dev, 160 of test\n",
        "after 1 step of warm-up\n",
        "\nwarning        144 of 160 rows of test are in the training data too",
    ):
        assert words in done.stdout
    assert not (tmp_path / "run").exists()


def test_the_result_is_told_in_words_with_the_baseline(table: Path, model_folder: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, command(table, model_folder, tmp_path / "run", "--seeds", "2"))
    assert done.exit_code == 0, done.output
    for words in ("best at step", "baseline", "2 seeds: median", "seed-0", "seed-1"):
        assert words in done.stdout


@pytest.mark.parametrize("seeds", ["1", "2"])
def test_a_finished_run_says_so_and_leaves_its_model_alone(
    seeds: str, table: Path, model_folder: Path, tmp_path: Path
) -> None:
    words = command(table, model_folder, tmp_path / "run", "--seeds", seeds)
    assert "run is finished" not in CliRunner().invoke(app, words, catch_exceptions=False).stdout
    weights = tmp_path / "run" / "model" / "model.safetensors"
    before = weights.stat().st_ino
    again = CliRunner().invoke(app, words, catch_exceptions=False)
    assert again.exit_code == 0
    assert f"{tmp_path / 'run'}: the run is finished" in again.stdout
    assert weights.stat().st_ino == before
    if seeds == "2":  # another choice, or a damaged copy, is written
        weights.write_bytes(weights.read_bytes()[:-1] + b"!")
        CliRunner().invoke(app, words, catch_exceptions=False)
        assert weights.stat().st_ino != before


def test_wrong_words_and_wrong_data_are_refused(table: Path, model_folder: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, command(table, model_folder, tmp_path / "run", "--set", "tune.epoch=3"))
    assert isinstance(done.exception, UsageError)
    assert "did you mean 'epochs'" in str(done.exception)
    with pytest.raises(UsageError, match="role=name"):
        parse_columns(["text"])
    both = {"text": "title,body", "label": "topic"}
    assert parse_columns(["text=title,body", "label=topic"]) == both
    assert parse_columns(["text=title,body,label=topic"]) == both
    broken = tmp_path / "broken.csv"
    broken.write_text("body,verdict\nlovely cat,good\n,bad\n", encoding="utf-8")
    done = CliRunner().invoke(app, command(broken, model_folder, tmp_path / "run"))
    assert isinstance(done.exception, DataError)
    assert "broken.csv:3" in str(done.exception)
