"""People's own questions with choices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from albert.errors import DataError
from albert.tasks.catalog import DataRequest, open_data, read_inputs
from albert.tasks.choice import Choice, ChoiceExample


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def row(label: Any, choices: list[str] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "context": "A ship.",
        "question": f"What? {label}",
        "choices": choices or ["a", "b", "c"],
        "label": label,
    } | more


@pytest.mark.parametrize(
    ("labels", "targets"),
    [
        ([0, 2, 1], [0, 2, 1]),
        ([1, 3, 2], [0, 2, 1]),  # counts from 1: no 0, and a 3 of three
        (["A", "c", "B"], [0, 2, 1]),
        (["a", "c", "b"], [0, 2, 1]),  # the texts of the choices
        ([1, 1, 2], [1, 1, 2]),  # from 0, unless it can't be
    ],
)
def test_a_label_is_a_number_a_letter_or_a_text(tmp_path: Path, labels: list[Any], targets: list[int]) -> None:
    path = table(tmp_path / "x.jsonl", [row(label) for label in labels])
    opened = open_data(DataRequest(path), task=Choice(3))
    assert [example.target for example in opened.splits.dev["dev"]] == targets
    assert opened.splits.dev["dev"][0].passage == "A ship."


def test_choices_may_have_a_column_each_and_need_no_passage(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("question,choice0,choice1,answer\nWho?,me,you,1\nWhat?,this,that,0\nWhy?,so,no,0\n")
    opened = open_data(DataRequest(path))
    assert isinstance(opened.task, Choice)
    assert opened.task.num_choices == 2
    assert opened.task.blank == ""
    examples = [*opened.splits.train, *opened.splits.dev["dev"]]
    assert {(e.question, e.choices, e.target, e.passage) for e in examples} >= {("Who?", ("me", "you"), 1, "")}
    inputs = list(read_inputs(opened.task, path, opened.columns))
    assert inputs[0] == ChoiceExample("", "Who?", ("me", "you"), place=f"{path}:2")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (row(0, ["a", "b"]), "x.jsonl:2: 2 choices, must be 3 as in the first row"),
        (row(3), "x.jsonl:2: label '3' is no choice: it must be a number from 0 to 2, a letter from A to C"),
        (row("D"), "x.jsonl:2: label 'D' is no choice"),
        (row(None), "x.jsonl:2: label None is no choice"),
        (row(0, choices="a b c"), "x.jsonl:2: column 'choices' holds 'a b c', must be a list"),
        (row(0, ["a", "", "c"]), "x.jsonl:2: column 'choices' holds"),
    ],
)
def test_a_defect_is_named_with_its_line(tmp_path: Path, bad: dict[str, Any], message: str) -> None:
    path = table(tmp_path / "x.jsonl", [row(0), bad, row(1)])
    with pytest.raises(DataError) as caught:
        open_data(DataRequest(path, task="choice"))
    assert message in str(caught.value)
