"""The curve of early exit: every rule scored and timed, and drawn as a file of its own."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from typer.testing import CliRunner

from albert.cli import app
from albert.errors import UsageError
from albert.evaluate import draw_exits, exit_curve
from albert.labelled.request import DataRequest
from albert.model import AlbertConfig, new_model
from albert.model.folder import save_model
from albert.tasks.classification import Classification, Regression
from albert.tasks.saved_task import TASK_FILE, task_json
from albert.tokenizer import Tokenizer

ROWS = "text,label\nthe old ship came in,good\na terrible waste of time,bad\nit rained on Monday,good\n"
LAYERS = 3


def write_folder(folder: Path, tokenizer: Tokenizer, task: Classification | Regression) -> str:
    shape = AlbertConfig(
        vocab_size=tokenizer.vocab_size, embedding_size=8, hidden_size=16, num_hidden_layers=LAYERS,
        num_attention_heads=2, intermediate_size=32, max_position_embeddings=64, initializer_range=0.5,
    )  # fmt: skip
    extra = {TASK_FILE: task_json(task, columns={"text": "text", "label": "label"})}
    model = new_model(task.configure(shape), task.heads, seed=7)
    save_model(model, folder, tokenizer=tokenizer, extra=extra)
    return str(folder)


def test_a_curve_has_every_rule_and_is_drawn(tmp_path: Path, tokenizer: Tokenizer) -> None:
    model = write_folder(tmp_path / "model", tokenizer, Classification(("bad", "good"), max_length=64, early_exit=True))
    (tmp_path / "dev.csv").write_text(ROWS)
    curve = exit_curve(model, DataRequest(tmp_path / "dev.csv"), engine="torch")
    rules = [point.rule for point in curve.points]
    assert rules[:3] == [None, "patience=1", "patience=2"]
    assert all(rule.startswith("confidence=") for rule in rules[3:] if rule)
    assert len(rules) > 3
    assert curve.points[0].layers == LAYERS
    assert all(1 <= point.layers <= LAYERS and point.texts_per_second > 0 for point in curve.points)
    assert curve.points[2].score == curve.points[0].score, "so much patience is all layers"
    drawing = ElementTree.fromstring(draw_exits(curve))
    words = {"".join(part.itertext()).strip() for part in drawing.iter("{http://www.w3.org/2000/svg}text")}
    assert {"patience", "confidence", "all layers", "accuracy against texts per second (torch)"} <= words


def test_the_plot_is_a_file_and_for_the_curve_alone(tmp_path: Path, tokenizer: Tokenizer) -> None:
    model = write_folder(tmp_path / "model", tokenizer, Regression(max_length=64, early_exit=True))
    (tmp_path / "dev.csv").write_text("text,label\nthe old ship,1.5\na long letter,2.25\nit rained,0.5\n")
    words = ["evaluate", model, "--data", str(tmp_path / "dev.csv"), "--engine", "torch"]
    plot = ["--plot", str(tmp_path / "exits.svg")]
    result = CliRunner().invoke(app, [*words, "--exit", "curve", *plot], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "plot in" in result.stdout
    assert "confidence" not in (tmp_path / "exits.svg").read_text(), "a number has none"
    refused = CliRunner().invoke(app, [*words, *plot]).exception
    assert "is for --exit curve" in str(refused)
    refused = CliRunner().invoke(app, [*words, "--exit", "curve", "--predictions", str(tmp_path / "p.csv")]).exception
    assert "has no --predictions" in str(refused)
    refused = CliRunner().invoke(app, [*words, "--exit", "curve", "--length", "65"]).exception
    assert "from 16 to the model's 64 positions" in str(refused)


def test_a_model_that_was_not_tuned_for_it_is_refused(tmp_path: Path, tokenizer: Tokenizer) -> None:
    model = write_folder(tmp_path / "model", tokenizer, Classification(("bad", "good"), max_length=64))
    (tmp_path / "dev.csv").write_text(ROWS)
    with pytest.raises(UsageError, match="--early-exit"):
        exit_curve(model, DataRequest(tmp_path / "dev.csv"), engine="torch")
