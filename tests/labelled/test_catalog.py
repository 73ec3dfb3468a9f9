"""People's own tables as tasks: found, split, recorded; and everything that can be wrong with them."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from albert.errors import DataError, UsageError
from albert.labelled import detection, questions
from albert.labelled.catalog import DataRequest, open_data, read_inputs
from albert.labelled.rows import Row
from albert.tasks.classification import Classification, MultiLabel, Regression
from albert.tasks.scores import SCORES

NOUNS = ("cat", "ship", "bread", "rain", "house")


def table(path: Path, count: int = 60, labels: tuple[str, ...] = ("good", "bad", "good"), first: int = 0) -> Path:
    """Write a table of different texts."""
    rows = [f"the {NOUNS[i % 5]} number {i} was old,{labels[i % len(labels)]}" for i in range(first, first + count)]
    path.write_text("\n".join(["text,label", *rows]) + "\n")
    return path


def test_a_table_opens_with_classes_reasons_a_held_out_part_and_a_fingerprint(tmp_path: Path) -> None:
    opened = open_data(DataRequest(table(tmp_path / "a.csv"), seed=3))
    assert opened.task == Classification(labels=("bad", "good"))
    assert (opened.name, opened.columns) == ("classification", {"text": "text", "label": "label"})
    train, dev = opened.splits.train, opened.splits.dev["dev"]
    assert Counter(example.target for example in dev) == {0: 2, 1: 4}
    assert len(train) == 54
    assert dev[0].place.startswith(str(tmp_path / "a.csv:"))
    assert opened.notes[0] == "classification: 'label' holds 2 different names"
    assert "no dev data given: 6 of 60 rows are held out (seed 3)" in opened.notes
    again = open_data(DataRequest(table(tmp_path / "a.csv"), seed=3))
    assert (again.splits, again.fingerprint) == (opened.splits, opened.fingerprint)
    other = open_data(DataRequest(table(tmp_path / "a.csv"), seed=4))
    assert other.fingerprint != opened.fingerprint
    assert other.splits != opened.splits


def test_a_dev_file_is_taken_and_rows_that_are_in_both_are_warned_of(tmp_path: Path) -> None:
    train, dev = table(tmp_path / "a.csv"), table(tmp_path / "dev.csv", 10, first=55)
    opened = open_data(DataRequest(train, dev=dev))
    assert (len(opened.splits.train), len(opened.splits.dev["dev"])) == (60, 10)
    assert any(
        f"warning: 5 of 10 rows of dev are in the training data too, the first: {dev}:2 is {train}:57" in n
        for n in opened.notes
    )


def test_a_test_file_may_have_labels_or_not(tmp_path: Path) -> None:
    (tmp_path / "test.csv").write_text("text\nan old house\n\n")
    opened = open_data(DataRequest(table(tmp_path / "a.csv"), test=tmp_path / "test.csv"))
    assert opened.splits.test["test"][0].target is None
    opened = open_data(DataRequest(tmp_path / "a.csv", test=table(tmp_path / "t.csv", 4, first=100)))
    assert [example.target for example in opened.splits.test["test"]] == [0, 1, 1, 0]
    assert not any("of test are in the training data" in note for note in opened.notes)
    opened = open_data(
        DataRequest(tmp_path / "a.csv", dev=table(tmp_path / "d.csv", 9, first=200), test=tmp_path / "a.csv")
    )
    assert any("warning: 60 of 60 rows of test are in the training data too" in note for note in opened.notes)


def test_limits_take_a_seeded_choice_and_class_weights_come_from_what_is_left(tmp_path: Path) -> None:
    request = DataRequest(table(tmp_path / "a.csv"), limit_train=30, limit_dev=2, class_weights=True)
    opened = open_data(request)
    assert (len(opened.splits.train), len(opened.splits.dev["dev"])) == (30, 2)
    counts = Counter(example.target for example in opened.splits.train)
    assert isinstance(opened.task, Classification)
    assert opened.task.class_weights == pytest.approx((30 / (2 * counts[0]), 30 / (2 * counts[1])))
    (tmp_path / "b.jsonl").write_text('{"text": "a b", "labels": ["x"]}\n{"text": "c d", "labels": ["x", "y"]}\n' * 10)
    with pytest.raises(UsageError, match="only classification has them, this is multi-label"):
        open_data(DataRequest(tmp_path / "b.jsonl", dev=tmp_path / "b.jsonl", class_weights=True))


def test_labels_of_no_known_kind_and_numbers_that_never_change_are_named(tmp_path: Path) -> None:
    days = [datetime.date(2020, 1, 1 + i % 2) for i in range(40)]
    parquet.write_table(
        pyarrow.table({"text": [f"a text {i}" for i in range(40)], "label": days}), tmp_path / "d.parquet"
    )
    with pytest.raises(DataError, match=r"d.parquet:1: column 'label' holds datetime.date\(2020, 1, 1\)"):
        open_data(DataRequest(tmp_path / "d.parquet"))
    (tmp_path / "n.csv").write_text("text,score\n" + "".join(f"a text {i},3.5\n" for i in range(40)))
    with pytest.raises(DataError, match=r"column 'score' is 3.5 in all rows to train on"):
        open_data(DataRequest(tmp_path / "n.csv"))


def test_numbers_lists_and_flags_become_regression_and_multi_label(tmp_path: Path) -> None:
    numbers = tmp_path / "n.jsonl"
    numbers.write_text("\n".join(json.dumps({"text": f"a text of {i}", "score": i / 3}) for i in range(40)))
    opened = open_data(DataRequest(numbers))
    assert opened.task == Regression().fitted(opened.splits.train)
    assert opened.task != Regression()
    assert opened.splits.train[1].target in [i / 3 for i in range(40)]
    lists = tmp_path / "m.jsonl"
    lists.write_text("\n".join(json.dumps({"text": f"text {i}", "labels": ["b", "a"][: i % 3]}) for i in range(40)))
    opened = open_data(DataRequest(lists))
    assert opened.task == MultiLabel(labels=("a", "b"))
    assert {example.target for example in opened.splits.train} == {(), (1,), (1, 0)}
    flags = tmp_path / "f.csv"
    flags.write_text("text,rude,toxic\n" + "".join(f"this is text {i},{i % 2},0\n" for i in range(40)))
    opened = open_data(DataRequest(flags))
    assert opened.task == MultiLabel(labels=("rude", "toxic"))
    assert {example.target for example in opened.splits.train} == {(), (0,)}


def test_classes_that_are_numbers_are_in_the_order_of_their_values(tmp_path: Path) -> None:
    opened = open_data(DataRequest(table(tmp_path / "a.csv", labels=("10", "9", "2"))))
    assert isinstance(opened.task, Classification)
    assert opened.task.labels == ("2", "9", "10")


def test_a_model_is_evaluated_on_every_row_with_its_own_classes(tmp_path: Path) -> None:
    task = Classification(labels=("good", "bad"), max_length=40)
    opened = open_data(DataRequest(table(tmp_path / "a.csv", 9)), task=task)
    assert opened.task == task
    assert (opened.splits.train, len(opened.splits.dev["dev"])) == ([], 9)
    assert [example.target for example in opened.splits.dev["dev"][:3]] == [0, 1, 0]
    unnamed = Classification(labels=("LABEL_0", "LABEL_1"))  # as transformers writes them
    opened = open_data(DataRequest(table(tmp_path / "b.csv", 9, labels=("1", "0"))), task=unnamed)
    assert [example.target for example in opened.splits.dev["dev"][:3]] == [1, 0, 1]
    with pytest.raises(DataError, match=r"a\.csv:2: label 'good' is none of 'LABEL_0', 'LABEL_1'"):
        open_data(DataRequest(tmp_path / "a.csv"), task=unnamed)
    with pytest.raises(UsageError, match="is data for tagging, the model was made for classification"):
        open_data(DataRequest(tmp_path / "a.csv", task="tagging"), task=task)


def test_texts_to_predict_are_read_one_at_a_time_and_may_be_empty(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,text\n1,first\n2,""\n3,"unclosed\n')
    inputs = read_inputs(Classification(labels=("a", "b")), path, {})
    assert [getattr(next(inputs), "text") for _ in range(2)] == ["first", ""]  # noqa: B009
    with pytest.raises(DataError, match=r"a\.csv:4: wrong quoting"):
        next(inputs)
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    lines = read_inputs(Classification(labels=("a", "b")), tmp_path / "a.txt", {"label": "label"})
    assert [getattr(example, "text", None) for example in lines] == ["one", "two"]


@pytest.mark.parametrize(
    ("content", "task", "message"),
    [
        (
            "text,label\na b,x\n,y\n",
            None,
            r"a\.csv:3: column 'text' is empty, must be text: fill it in or remove the row",
        ),
        ("text,label\na b,x\nc d,\ne f,y\n", None, r"a\.csv:3: column 'label' is empty, must be a label: fill it in"),
        ("text,score\na b,1.5\nc d,nan\n", None, r"a\.csv:3: column 'score' holds 'nan', must be a finite number"),
        ("text,score\na b,1.5\nc d,inf\n", None, r"a\.csv:3: column 'score' holds 'inf'"),
        (
            "text,score\na b,1.5\nc d,many\n",
            "regression",
            r"a\.csv:3: column 'score' holds 'many', must be a finite number",
        ),
        ("text,label\na b,x\n", None, r"a\.csv: 1 different label in 1 rows .* there must be 2 at least: add rows"),
        ("text,label\na b,x\nc d,x\n", None, r"a\.csv: 1 different label in 2 rows"),
        ("text,score\na b,1.5\n", None, r"1 rows with 1 different texts can't be divided"),
        ("text,label\na b,x\nc d,y\n", None, r"2 rows with 2 different texts can't be divided"),
        ("text,label\n", None, r"a\.csv: no rows"),
        ("text,query\na,x\n", "classification", r"no column of labels among 'text', 'query'.*--columns label=NAME"),
        ("text,label,label2\na b,x\n", None, r"a\.csv:2: 2 fields where the header has 3"),
        ("text,a,b\nx y,1,0\nx z,2,1\n", "multi-label", r"a\.csv:3: column 'a' holds '2', must be 0 or 1"),
    ],
)
def test_bad_tables_are_refused_with_line_rule_and_fix(
    tmp_path: Path, content: str, task: str | None, message: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    columns = {"text": "text", "label": "a,b"} if task == "multi-label" else {}
    with pytest.raises(DataError, match=message):
        open_data(DataRequest(path, task=task, columns=columns))


def test_a_label_only_in_dev_a_missing_column_in_dev_and_quotes_in_tsv_are_named(tmp_path: Path) -> None:
    train, dev = table(tmp_path / "a.csv"), tmp_path / "dev.csv"
    dev.write_text("text,label\na cat,good\na dog,awful\n")
    with pytest.raises(
        DataError, match=r"dev\.csv:3: label 'awful' is none of 'bad', 'good'.*train on rows that have it"
    ):
        open_data(DataRequest(train, dev=dev))
    dev.write_text("text,class\na cat,good\n")
    with pytest.raises(DataError, match=r"dev\.csv:2: no column 'label' for label: .*--columns label=NAME"):
        open_data(DataRequest(train, dev=dev))
    quoted = tmp_path / "q.tsv"
    quoted.write_text("text\tlabel\n" + "".join(f'"he said ""{i}"" twice"\t{i % 2}\n' for i in range(30)))
    opened = open_data(DataRequest(quoted))
    assert opened.splits.train[0].text.startswith('"he said ""')
    assert any("has no quoting" in note and "name it .csv" in note for note in opened.notes)


def test_an_empty_class_is_refused_where_classes_are_known_and_noted_where_a_limit_makes_it(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"premise": f"a {i}", "hypothesis": "b", "label": ["entailment", "neutral"][i % 2]} for i in range(30)]
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(DataError, match=r"a\.jsonl: no row of class 'contradiction' to train on.*add rows"):
        open_data(DataRequest(path, task="mnli"))
    opened = open_data(DataRequest(table(tmp_path / "b.csv"), limit_train=1))
    assert any("limit_train=1 leaves no rows of class" in note for note in opened.notes)


def test_wrong_names_are_refused_with_the_near_one(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv")
    with pytest.raises(UsageError, match="no task 'clasification': did you mean 'classification'"):
        open_data(DataRequest(path, task="clasification"))
    with pytest.raises(DataError, match="no such file or folder"):
        open_data(DataRequest(tmp_path / "no.csv"))
    with pytest.raises(DataError, match="no column 'txt' for text: did you mean 'text'"):
        open_data(DataRequest(path, columns={"text": "txt"}))


def test_every_score_that_a_task_may_be_judged_by_exists() -> None:
    assert set(SCORES) == {"accuracy", "accuracy_f1", "matthews"}


@pytest.mark.parametrize(
    ("task", "row"),
    [
        ("classification", {"text": "a cat sat on {}", "label": "good"}),
        ("choice", {"question": "who? {}", "choices": ["a cat", "a dog"], "label": "A"}),
        ("tagging", {"tokens": ["a", "cat{}"], "tags": ["O", "B-PET"]}),
        ("squad", {"article": "a cat {}", "question": "who?", "answer": "cat", "answer_start": 2}),
    ],
)
def test_a_table_is_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str, row: dict[str, Any]
) -> None:
    path = tmp_path / "table.jsonl"
    rows = [{name: fill(value, number) for name, value in row.items()} for number in range(20)]
    if task == "classification":
        rows[::2] = [one | {"label": "bad"} for one in rows[::2]]
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    looks: list[Path | str] = []

    class Watched(detection.Sample):
        def __init__(self, rows: Sequence[Row], path: str, told: dict[str, str]) -> None:
            looks.append(path)
            super().__init__(rows, path, told)

    monkeypatch.setattr(detection, "Sample", Watched)
    monkeypatch.setattr(questions, "question_columns", lambda row, _: looks.append(row.path))
    assert open_data(DataRequest(path)).name == task
    assert looks == [str(path)]


def fill(value: Any, number: int) -> Any:
    if isinstance(value, list):
        return [fill(item, number) for item in value]
    return value.format(number) if isinstance(value, str) else value
