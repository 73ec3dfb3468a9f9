"""Test data: scored once at the end by the model that is kept, and told everywhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import albert
from albert.finetune import Finetuned, finetune
from albert.finetune.settings import FinetuneSettings
from albert.labelled.request import Opened
from albert.tasks.classification import TextExample
from word_model import sentences

MakeData = Callable[..., Opened]
MakeSettings = Callable[..., FinetuneSettings]
LABELS = ("bad", "good")


def with_test(data: Opened, *, labelled: bool = True) -> tuple[Opened, list[TextExample]]:
    test = sentences(50, LABELS, seed=7, noise=0.3)
    given = test if labelled else [replace(example, target=None) for example in test]
    return replace(data, splits=replace(data.splits, test={"test": given})), test


def share_right(folder: Path, examples: list[TextExample]) -> float:
    said = albert.load(folder).classify([example.text for example in examples])
    return sum(LABELS[example.target] == one.label for example, one in zip(examples, said, strict=True)) / len(examples)  # type: ignore[index, union-attr]


@pytest.mark.parametrize("seeds", [1, 2])
def test_test_data_is_scored_by_the_kept_model_and_stands_in_summary_report_and_card(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path, seeds: int
) -> None:
    data, test = with_test(opened())
    out = tmp_path / "run"
    result = finetune(data, str(model_folder), out, settings=settings(), seeds=seeds)
    assert isinstance(result, Finetuned)
    score = share_right(out / "model", test)
    assert result.test["test_accuracy"] == pytest.approx(score)
    assert json.loads((out / "summary.json").read_text())["test"]["test_accuracy"] == pytest.approx(score)
    card = (out / "model" / "README.md").read_text()
    assert f"| on test | |\n|---|---|\n| accuracy | {score:.4f} |" in card
    report = (out / "report.html").read_text()
    assert "Scores on test" in report
    assert f"{score:.4f}" in report.partition("Scores on test")[2].partition("</section>")[0]
    again = finetune(data, str(model_folder), out, settings=settings(), seeds=seeds)
    assert isinstance(again, Finetuned)
    assert again.test == result.test, "a finished run knows them"


def test_test_data_without_labels_is_not_scored(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    data, _ = with_test(opened(), labelled=False)
    result = finetune(data, str(model_folder), tmp_path / "run", settings=settings(train__steps=20))
    assert isinstance(result, Finetuned)
    assert result.test == {}
    assert "on test" not in (tmp_path / "run" / "model" / "README.md").read_text()


def test_the_time_in_the_report_is_in_words(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    finetune(opened(), str(model_folder), out, settings=settings(train__steps=20))
    text = (out / "report.html").read_text()
    assert " UTC." in text
    assert "+00:00" not in text
