"""From the label column to targets: numbers of classes that do not depend on the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from albert.errors import DataError
from albert.labelled.rows import Row
from albert.labelled.targets import Targets, class_order, find_classes, find_separator

COLUMNS = {"label": "verdict"}


def rows(*values: Any) -> list[Row]:
    return [Row({"verdict": value}, Path("a.csv"), line) for line, value in enumerate(values, 2)]


def target(targets: Targets, value: Any) -> Any:
    return targets.of(rows(value)[0], COLUMNS)


def test_a_class_is_known_by_its_name_in_any_case_the_exact_one_first() -> None:
    targets = Targets("classification", ("Bad", "good", "GOOD"))
    assert [target(targets, value) for value in ("Bad", "bad", "good", "GOOD", " good ")] == [0, 0, 1, 2, 1]


def test_a_model_that_knows_no_names_takes_numbers() -> None:
    targets = Targets("classification", ("LABEL_0", "LABEL_1"))
    assert [target(targets, value) for value in ("1", 0, "label_1")] == [1, 0, 1]


def test_an_unknown_class_is_refused_with_those_there_are_and_whose_they_are() -> None:
    found = Targets("classification", tuple(f"c{number:02}" for number in range(12)))
    with pytest.raises(
        DataError, match=r"a\.csv:2: label 'x' is none of 'c00', .*'c09', …, the labels of the training"
    ):
        target(found, "x")
    with pytest.raises(DataError, match=r"the labels of this task: correct it"):
        target(Targets("classification", ("a", "b"), fixed=True), "x")


def test_several_classes_and_numbers_have_their_own_targets() -> None:
    assert target(Targets("multi-label", ("a", "b"), separator=";"), "b;a") == (1, 0)
    assert target(Targets("multi-label", ("a", "b"), separator=";"), "") == ()
    assert target(Targets("regression"), "2.5") == 2.5


@pytest.mark.parametrize(
    ("kind", "nothing"), [("classification", ""), ("classification", None), ("multi-label", None), ("regression", " ")]
)
def test_a_row_without_a_label_is_refused(kind: str, nothing: Any) -> None:
    with pytest.raises(DataError, match=r"a\.csv:2: column 'verdict' is empty, must be a label"):
        target(Targets(kind, ("a", "b")), nothing)


def test_the_separator_is_the_strongest_that_any_cell_has() -> None:
    assert find_separator(rows("a", "a,b", "a|b"), COLUMNS) == "|"
    assert find_separator(rows("a", "b, c"), COLUMNS) == ","
    assert find_separator(rows("a", ["a", "b;c"]), COLUMNS) is None


def test_classes_are_collected_from_all_rows_and_ordered() -> None:
    assert find_classes("classification", rows("b", "a", None, "b"), COLUMNS, separator=None) == ("a", "b")
    assert find_classes("multi-label", rows("b|a", "c"), COLUMNS, separator="|") == ("a", "b", "c")
    flags = [Row({"new": "1", "old": "0"}, Path("a.csv"), 2)]
    assert find_classes("multi-label", flags, {"label": "new,old"}, separator=None) == ("new", "old"), "old fits no row"


def test_too_few_classes_are_refused_by_count_or_by_what_is_wrong_with_their_labels() -> None:
    with pytest.raises(DataError, match=r"a\.csv: 1 different label in 2 rows \(column 'verdict'\), there must be 2"):
        find_classes("classification", rows("a", "a"), COLUMNS, separator=None)
    with pytest.raises(DataError, match=r"a\.csv:3: column 'verdict' holds the list \['b'\]"):
        find_classes("classification", rows("a", ["b"]), COLUMNS, separator=None)
    with pytest.raises(DataError, match="0 different labels in 1 rows"):
        find_classes("multi-label", rows(""), COLUMNS, separator="|")


def test_numbers_are_ordered_by_value_and_names_by_alphabet() -> None:
    assert class_order(["10", "9", "-1", "9"]) == ("-1", "9", "10")
    assert class_order(["10", "9", "b"]) == ("10", "9", "b")
