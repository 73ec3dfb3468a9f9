"""The report of a fine-tuning run, from run folders made by hand, for every kind of task."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from albert.errors import UsageError
from albert.report.arithmetic import calibrate, class_scores, in_bins
from albert.report.decisions import FILE, keep_decisions, read_decisions
from albert.report.writing import write_report
from albert.tasks.candidates import Candidate
from albert.tasks.choice import Choice, ChoiceExample, Chosen
from albert.tasks.classification import Classification, MultiLabel, Regression, TextExample
from albert.tasks.classified import Label, Labels, Number
from albert.tasks.span import Answer, AnswerText, QuestionExample, SpanTask
from albert.tasks.tagging import TagExample, Tagged, TaggedWord, Tagging

HOSTILE = "<script>alert(1)</script>"
TASK = Classification(("bad", "good"))
TEXTS = [TextExample("a fine ship", target=1, place="d.csv:2"), TextExample(f"rain {HOSTILE}", target=0)]
SAID = [Label("good", {"bad": 0.2, "good": 0.8}), Label("good", {"bad": 0.1, "good": 0.9})]


def run_folder(folder: Path, task: Any, examples: Any, predictions: Any) -> Path:
    folder.mkdir(parents=True)
    identity = {
        "stage": "finetune", "task": {"name": "own", "kind": task.kind}, "model": "tiny", "weights": "e1e2",
        "data": "f00d", "examples": {"train": 9, "dev": {"dev": 2}}, "settings": {"train": {"steps": 20}},
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps({"identity": identity, "command": ["albert", "finetune"]}))
    best = f"valid_{task.best}"
    lines = [{"step": 10, "loss": 0.7}, {"step": 10, best: 0.75}, {"step": 20, "loss": 0.6}, {"step": 20, best: 0.5}]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    keep_decisions(folder, task, examples=examples, predictions=predictions, baseline=0.4)
    return folder


def report_of(folder: Path) -> str:
    return write_report(folder).read_text(encoding="utf-8")


def rows_of(text: str) -> list[list[str]]:
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>.*?</tr>", text)]


def test_a_task_without_decisions_names_the_score_that_chose_its_step(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    identity = {"stage": "finetune", "task": {"name": "own", "kind": "similarity", "best": "mrr"}, "settings": {}}
    (folder / "run.json").write_text(json.dumps({"identity": identity, "command": ["albert", "finetune"]}))
    scores = [(10, 0.9, 0.2), (20, 0.5, 0.7)]
    lines = [{"step": step, "valid_recall_at_1": recall, "valid_mrr": mrr} for step, recall, mrr in scores]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = report_of(folder)
    assert "best model (step 20)" in text
    assert "Mrr on dev chose the step" in text


def test_classes_have_scores_a_matrix_calibration_and_escaped_mistakes(tmp_path: Path) -> None:
    text = report_of(run_folder(tmp_path / "run", TASK, TEXTS, SAID))
    rows = rows_of(text)
    assert ["accuracy", "0.7500", "0.5000"] in rows
    assert ["bad", "0", "1"] in rows
    assert ["good", "1", "2", "50.0%", "100.0%", "66.7%"] in rows
    assert "best model (step 10)" in text
    assert "Expected calibration error: 0.550." in text
    assert "said good (90.0%), is bad" in text
    assert "rain &lt;script&gt;" in text
    assert "<script" not in text
    assert "<dd>f00d</dd>" in text
    assert not re.findall(r"""(?:src|href)=["'](?!#)|url\((?!#)|@import|https?:""", text)


def test_several_labels_and_numbers(tmp_path: Path) -> None:
    example = TextExample("a fine ship", target=(0, 1))
    text = report_of(
        run_folder(tmp_path / "m", MultiLabel(("a", "b")), [example], [Labels(("a",), {"a": 0.9, "b": 0.2})])
    )
    assert "said a, is a, b (as sure as 80.0%)" in text
    example = TextExample("one", "two", target=2.5)
    text = report_of(run_folder(tmp_path / "n", Regression(), [example], [Number(4.0)]))
    assert "True and guessed numbers" in text
    assert ["2", "1", "1.500"] in rows_of(text)
    assert "Calibration" not in text


def test_answers_are_those_of_the_threshold_that_was_chosen(tmp_path: Path) -> None:
    example = QuestionExample("Who came?", "A man came.", (AnswerText("man", 2),))
    given = Answer("", None, None, 0.9, 0.9, 2.0, (Candidate("came", 6, 10, 1.0, 0.7),))
    task = SpanTask(unanswerable=True, null_threshold=3.0)
    text = report_of(run_folder(tmp_path / "run", task, [example], [task.decided(given)]))
    assert "said came (70.0%), is man" in text
    assert ["2", "1", "0.0%", "0.0%"] in rows_of(text)


def test_choices_and_tags(tmp_path: Path) -> None:
    example = ChoiceExample("A man came.", "Who came?", ("a dog", "a man"), target=1)
    text = report_of(run_folder(tmp_path / "c", Choice(2), [example], [Chosen(0, "a dog", (0.6, 0.4))]))
    assert "said 1: a dog (60.0%), is 2: a man" in text
    tags = Tagging(("O", "B-PER", "B-LOC"))
    given = Tagged((TaggedWord("Ann", "B-LOC", 0.8, 0, 3), TaggedWord("left", "O", 0.9, 4, 8)), ())
    text = report_of(run_folder(tmp_path / "t", tags, [TagExample(("Ann", "left"), (1, 0))], [given]))
    assert "“Ann”: said B-LOC (80.0%), is B-PER" in text
    assert ["PER", "1", "0", "0.0%", "0.0%", "0.0%"] in rows_of(text)


def test_a_damaged_file_of_decisions_is_named(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", TASK, TEXTS, SAID)
    with (folder / FILE).open("a") as file:
        file.write("{}\n")
    with pytest.raises(UsageError, match=r"decisions\.jsonl:4: no decision"):
        read_decisions(folder)


def test_the_arithmetic() -> None:
    found = calibrate([(0.95, True), (0.95, False), (0.55, True), (1.0, True)])
    assert found is not None
    assert [one.count for one in found.bins] == [1, 3]
    assert found.error == pytest.approx((1 * 0.45 + 3 * abs(2.9 / 3 - 2 / 3)) / 4)
    (a, b) = class_scores(["a", "b"], [["a"], ["b"], []], [["a"], ["a"], ["a"]])
    assert (a.real, a.said, a.precision, a.recall, a.f1) == (1, 3, pytest.approx(1 / 3), 1.0, 0.5)
    assert (b.real, b.said, b.precision, b.recall, b.f1) == (1, 0, 0.0, 0.0, 0.0)
    (alone,) = class_scores(["a"], [["a"], []], [["a"], ["a"]])
    assert (alone.said, alone.precision) == (2, 0.5)
    assert class_scores([], [], []) == []
    assert [(low, high, len(own)) for low, high, own in in_bins([1, 1, 1, 2, 9], float, bins=2)] == [
        (1, 1, 3),
        (2, 9, 2),
    ]
