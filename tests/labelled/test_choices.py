"""People's own questions with choices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from albert.errors import DataError
from albert.labelled.catalog import DataRequest, open_data, read_inputs
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
    ],
)
def test_a_label_is_a_number_a_letter_or_a_text(tmp_path: Path, labels: list[Any], targets: list[int]) -> None:
    path = table(tmp_path / "x.jsonl", [row(label) for label in labels])
    opened = open_data(DataRequest(path), task=Choice(3))
    assert [example.target for example in opened.splits.dev["dev"]] == targets
    assert opened.splits.dev["dev"][0].passage == "A ship."


def test_what_numbers_count_from_is_told_by_all_files_and_remembered(tmp_path: Path) -> None:
    train = table(tmp_path / "train.jsonl", [row(label) for label in (1, 2, 3)])
    dev = table(tmp_path / "dev.jsonl", [row(label) for label in (1, 2)])
    opened = open_data(DataRequest(train, dev=dev))
    assert isinstance(opened.task, Choice)
    assert opened.task.first_label == 1
    assert [example.target for example in opened.splits.dev["dev"]] == [0, 1]
    assert "the labels that are numbers: numbers of choices, from 1" in opened.notes
    alone = open_data(DataRequest(dev), task=opened.task)
    assert [example.target for example in alone.splits.dev["dev"]] == [0, 1], "as the model was trained"
    with pytest.raises(
        DataError, match=r"none is 0 or 3, the number of choices: .* can't be told: write them as letters"
    ):
        open_data(DataRequest(dev), task=Choice(3))
    zero = table(tmp_path / "zero.jsonl", [row(label) for label in (0, 1)])
    assert [e.target for e in open_data(DataRequest(zero), task=opened.task).splits.dev["dev"]] == [0, 1]


@pytest.mark.parametrize(
    ("labels", "targets"),
    [
        ([0, 2, 1], [0, 2, 1]),  # numbers of JSON count the choices, whatever these are
        (["3", "5", "4"], [0, 2, 1]),  # no places: there is no fifth
        (["0", "4", "3"], None),
    ],
)
def test_choices_that_are_numbers_are_not_taken_for_their_places(
    tmp_path: Path, labels: list[Any], targets: list[int] | None
) -> None:
    path = table(tmp_path / "x.jsonl", [row(label, ["3", "4", "5"]) for label in labels])
    if targets is None:
        with pytest.raises(DataError, match="is no choice"):
            open_data(DataRequest(path), task=Choice(3))
    else:
        assert [e.target for e in open_data(DataRequest(path), task=Choice(3)).splits.dev["dev"]] == targets


def test_numbers_that_are_both_texts_and_places_are_refused_unless_both_mean_the_same(tmp_path: Path) -> None:
    path = table(tmp_path / "x.jsonl", [row(label, ["1", "2", "3"]) for label in ("1", "2", "3")])
    assert [e.target for e in open_data(DataRequest(path), task=Choice(3)).splits.dev["dev"]] == [0, 1, 2]
    path = table(tmp_path / "y.jsonl", [row(label, ["3", "2", "1"]) for label in ("1", "2", "3")])
    with pytest.raises(DataError, match="counts the choices or is the text of one can't be told"):
        open_data(DataRequest(path), task=Choice(3))
    mixed = [row("2", ["3", "2", "1"]), row("b", ["a", "b", "c"]), row("1", ["3", "2", "1"])]
    opened = open_data(DataRequest(table(tmp_path / "z.jsonl", mixed)), task=Choice(3))
    assert [e.target for e in opened.splits.dev["dev"]] == [1, 1, 2], "all are texts of choices"
    trained = open_data(DataRequest(tmp_path / "z.jsonl", dev=tmp_path / "z.jsonl")).task
    assert isinstance(trained, Choice)
    assert trained.first_label is None, "nothing was counted"


def test_letters_are_letters_in_every_row_where_all_labels_are(tmp_path: Path) -> None:
    rows = [row("D", ["A", "D", "E", "K"]), row("b", ["w", "x", "y", "z"]), row("A", ["D", "C", "B", "A"])]
    opened = open_data(DataRequest(table(tmp_path / "x.jsonl", rows)), task=Choice(4))
    assert [e.target for e in opened.splits.dev["dev"]] == [3, 1, 0]
    rows = [row("D", ["A", "D", "E", "K"]), row("Z", ["W", "X", "Y", "Z"])]
    opened = open_data(DataRequest(table(tmp_path / "y.jsonl", rows)), task=Choice(4))
    assert [e.target for e in opened.splits.dev["dev"]] == [1, 3], "all are texts of choices"
    alone = table(tmp_path / "z.jsonl", rows[:1])
    more = table(tmp_path / "more.jsonl", [row("b", ["w", "x", "y", "z"])])
    opened = open_data(DataRequest(more, dev=alone))
    assert [e.target for e in opened.splits.dev["dev"]] == [3], "all files tell together"


def test_letters_that_are_both_places_and_texts_are_refused_unless_both_mean_the_same(tmp_path: Path) -> None:
    same = table(tmp_path / "x.jsonl", [row(label, ["A", "B", "C"]) for label in "BCA"])
    assert [e.target for e in open_data(DataRequest(same), task=Choice(3)).splits.dev["dev"]] == [1, 2, 0]
    both = table(tmp_path / "y.jsonl", [row("A", ["A", "D", "E"]), row("C", ["A", "C", "K"])])
    message = (
        r"y\.jsonl:2: label 'C' is the letter of choice 3, 'K', and the text of choice 2: .* write all labels as num"
    )
    with pytest.raises(DataError, match=message):
        open_data(DataRequest(both), task=Choice(3))
    neither = table(tmp_path / "z.jsonl", [row("ship", ["ship", "x", "y"]), row("B"), row("C", ["A", "C", "K"])])
    with pytest.raises(DataError, match=r"z\.jsonl:3: label 'C' is the letter of choice 3"):
        open_data(DataRequest(neither), task=Choice(3))


def test_the_questions_about_one_passage_are_held_out_together(tmp_path: Path) -> None:
    rows = [row("B", context=f"Article {number // 5}", question=f"What? {number}") for number in range(50)]
    opened = open_data(DataRequest(table(tmp_path / "x.jsonl", rows)))
    train, dev = ({example.passage for example in part} for part in (opened.splits.train, opened.splits.dev["dev"]))
    assert (len(train), len(dev)) == (9, 1)
    assert not train & dev


@pytest.mark.parametrize("context", ["The only article", ""])
def test_questions_about_one_passage_or_none_are_held_out_one_by_one(tmp_path: Path, context: str) -> None:
    rows = [row("B", context=context, question=f"What? {number}") for number in range(20)]
    opened = open_data(DataRequest(table(tmp_path / "x.jsonl", rows)))
    assert (len(opened.splits.train), len(opened.splits.dev["dev"])) == (18, 2)


def test_a_list_of_choices_may_stand_in_a_cell(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('question,choices,label\nWho?,"[""me"", ""you""]",A\nWhat?,"[""this"", ""that""]",B\n')
    assert [e.choices for e in open_data(DataRequest(path), task=Choice(2)).splits.dev["dev"]] == [
        ("me", "you"),
        ("this", "that"),
    ]


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
