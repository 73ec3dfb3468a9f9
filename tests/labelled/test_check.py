"""The check of labelled data returns what it found: tables of texts row by row, everything else by opening it."""

from __future__ import annotations

from pathlib import Path

import pytest

from albert.errors import DataError
from albert.labelled.check import OpenedCheck, check_labelled
from albert.labelled.request import DataRequest
from albert.labelled.table_check import TableCheck


def test_a_table_of_texts_and_its_dev_table_are_checked_row_by_row(tmp_path: Path) -> None:
    train, dev = tmp_path / "train.csv", tmp_path / "dev.csv"
    train.write_text("text,label\n" + "".join(f"a cat number {i},{'ab'[i % 2]}\n" for i in range(20)) + ",a\n")
    dev.write_text("text,label\na cat number 3,b\na dog,c\n")
    first, second = check_labelled(DataRequest(train, dev=dev))
    assert isinstance(first, TableCheck)
    assert isinstance(second, TableCheck)
    assert (first.split, first.num_rows, first.classes) == (None, 20, {"a": 10, "b": 10})
    assert (first.num_problems, first.problems[0][: len(f"{train}:22")]) == (1, f"{train}:22")
    assert (second.split, second.num_rows, second.num_problems) == ("dev", 1, 1)
    assert any("1 row is in" in warning for warning in second.warnings)


def test_tagged_words_and_their_dev_file_are_checked_row_by_row(tmp_path: Path) -> None:
    train, dev = tmp_path / "tags.jsonl", tmp_path / "dev.jsonl"
    good = [f'{{"tokens": ["a", "cat{i}"], "tags": ["O", "B-PET"]}}\n' for i in range(10)]
    bad = ['{"tokens": ["a"], "tags": []}\n', '{"tokens": ["a", "b"], "tags": ["O"]}\n']
    train.write_text("".join([*good, *bad]))
    dev.write_text(good[3] + '{"tokens": ["Ann"], "tags": ["B-PER"]}\n')
    first, second = check_labelled(DataRequest(train, dev=dev))
    assert isinstance(first, TableCheck)
    assert isinstance(second, TableCheck)
    assert (first.found.task, first.found.columns) == ("tagging", {"tokens": "tokens", "tags": "tags"})
    assert (first.num_rows, first.classes) == (10, {"O": 10, "B-PET": 10})
    assert first.lengths is not None
    assert first.lengths.longest == 2
    assert [problem.split(": ")[0] for problem in first.problems] == [f"{train}:11", f"{train}:12"]
    assert (second.split, second.num_rows, second.num_problems) == ("dev", 1, 1)
    assert "tag 'B-PER' is none of the training data's" in second.problems[0]
    assert any(f"1 row is in {train} too" in warning for warning in second.warnings)


def test_other_data_is_checked_by_opening_it_and_every_problem_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "choices.jsonl"
    good = [f'{{"question": "Who {i}?", "choices": ["a", "b"], "label": {i % 2}}}\n' for i in range(10)]
    path.write_text("".join([*good, '{"question": "Who?", "choices": ["a", "b"], "label": 7}\n']))
    (check,) = check_labelled(DataRequest(path))
    assert isinstance(check, OpenedCheck)
    assert (check.task, sum(check.rows.values()), check.columns["choices"]) == ("choice", 10, "choices")
    assert [problem.split(": ")[0] for problem in check.problems] == [f"{path}:11"]
    assert check.fingerprint is not None


def test_what_can_not_be_read_at_all_is_an_error_or_its_last_problem(tmp_path: Path) -> None:
    path = tmp_path / "x.conll"
    path.write_text("\n\n")
    with pytest.raises(DataError, match="no sentences"):
        check_labelled(DataRequest(path))
    path.write_text("Peter\n\nParis B-LOC\n")
    (check,) = check_labelled(DataRequest(path))
    assert (check.num_rows, check.num_problems) == (0, 2)  # type: ignore[union-attr]
    assert "one column" in check.problems[0]
    assert "1 different tags" in check.problems[1]
