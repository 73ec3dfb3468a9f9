"""Adapting to a task's own texts: it learns them without labels, keeps its vectors' meaning, resumes, and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from albert.adapt import adapt, example_texts
from albert.cli import app
from albert.errors import DataError, UsageError
from albert.finetune.settings import AdaptSettings
from albert.labelled.request import Opened
from albert.model.folder import load_model, save_model
from albert.tasks.classification import TextExample
from albert.tasks.span import QuestionExample
from albert.tasks.tagging import TagExample
from albert.tasks.task import Splits
from albert.tokenizer import Tokenizer

MakeData = Callable[..., Opened]


def losses(folder: Path, name: str) -> list[float]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line[name] for line in lines if name in line]


def test_texts_are_what_examples_say_and_never_their_labels() -> None:
    examples = [
        TextExample("one", "two", target=1),
        QuestionExample("who?", "the passage", id="q1", article="title"),
        TagExample(("Peter", "sat"), (1, 0)),
    ]
    assert [*example_texts(examples)] == ["one", "two", "the passage", "who?", "Peter sat"]


def test_masked_words_of_the_tasks_texts_are_learnt_and_the_run_resumes(
    opened: MakeData, model_folder: Path, tmp_path: Path
) -> None:
    told: list[str] = []
    more = tmp_path / "more.txt"
    more.write_text("the cat sat\n\nthe ship left at noon\n")
    out, settings = tmp_path / "run", AdaptSettings(epochs=40.0, lr=5e-3)
    folder = adapt(opened(), str(model_folder), out, settings=settings, more=[more], tell=told.append)
    assert folder == tmp_path / "run-adapted"
    assert not out.exists(), "that of fine-tuning is not begun"
    mlm, teacher = losses(folder, "mlm_loss"), losses(folder, "teacher_loss")
    assert mlm[-1] < mlm[0] - 0.5
    assert max(teacher) < 0.6, "the model is its own teacher: its vectors stay about where they were"
    texts = {example.text for example in opened().splits.train}
    assert f"adapting to {len(texts) + 2:,} texts" in told[0], "each once, and the two of the file"
    again: list[str] = []
    adapt(opened(), str(model_folder), out, settings=settings, more=[more], tell=again.append)
    assert "has done all its steps" in again[-1]


def test_a_file_with_a_text_per_line_is_one_text_and_it_is_said(
    opened: MakeData, model_folder: Path, tmp_path: Path
) -> None:
    told: list[str] = []
    lines, divided = tmp_path / "lines.txt", tmp_path / "divided.txt"
    lines.write_text("the cat sat\n" * 60)
    divided.write_text("the cat sat\n\n" * 60)
    settings = AdaptSettings(epochs=0.1)
    adapt(opened(), str(model_folder), tmp_path / "run", settings=settings, more=[lines, divided], tell=told.append)
    assert [line for line in told if "blank line" in line] == [
        f"{lines}: 60 lines are 1 text: if each line is one, put a blank line between them, or give .jsonl"
    ]


def test_the_command_adapts_then_tunes_from_there(model_folder: Path, tmp_path: Path) -> None:
    data, out = tmp_path / "data.csv", tmp_path / "run"
    rows = [f"the {word} sat,{label}" for word, label in (("cat", "a"), ("ship", "b"), ("dog", "a"), ("rain", "b"))]
    data.write_text("text,label\n" + "\n".join(f"{row}" for i in range(10) for row in rows) + "\n")
    words = ["finetune", "--model", str(model_folder), "--data", str(data), "--out", str(out), "--adapt", "--json"]
    words += ["--set", "train.steps=4", "--set", "adapt.epochs=1"]
    plan = CliRunner().invoke(app, [*words, "--adapt-on", str(tmp_path / "absent.txt"), "--dry-run"]).exception
    assert "absent.txt" in str(plan), "a plan looks at the files"
    plan = CliRunner().invoke(app, [*words, "--dry-run"], catch_exceptions=False)
    assert f"adapting: 3 texts first, into {out}-adapted" in plan.stderr  # the fourth is in dev
    assert not out.exists()
    first = CliRunner().invoke(app, words, catch_exceptions=False)
    assert first.exit_code == 0
    assert json.loads((out / "run.json").read_text())["identity"]["model"] == str(tmp_path / "run-adapted")
    assert CliRunner().invoke(app, words, catch_exceptions=False).exit_code == 0, "the same command again"


def test_what_cannot_be_adapted_is_refused(opened: MakeData, model_folder: Path, tmp_path: Path) -> None:
    data, tuned = opened(), tmp_path / "tuned"
    save_model(load_model(model_folder, ("classifier",)).model, tuned, tokenizer=Tokenizer.load(model_folder))
    with pytest.raises(UsageError, match="no masked-word head"):
        adapt(data, str(tuned), tmp_path / "run", settings=AdaptSettings())
    empty = replace(data, splits=Splits([TextExample(" ", target=0)], data.splits.dev))
    with pytest.raises(DataError, match="no text to adapt to"):
        adapt(empty, str(model_folder), tmp_path / "run", settings=AdaptSettings())
    words = ["finetune", "--model", "tiny-en", "--data", "x.csv", "--out", "y", "--adapt", "--processes", "2"]
    problem = CliRunner().invoke(app, words).exception
    assert isinstance(problem, UsageError)
    assert "--adapt is for one process" in str(problem)
