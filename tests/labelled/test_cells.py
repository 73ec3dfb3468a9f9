"""What cells mean: the same from texts of .csv and from typed values of .jsonl and .parquet."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from albert.errors import DataError
from albert.labelled.cells import cell, check_columns, class_cell, classes_cell, number_cell, text_cell
from albert.labelled.rows import Row

COLUMNS = {"text": "body", "label": "verdict"}


def row(line: int = 7, **values: Any) -> Row:
    return Row(values, Path("a.csv"), line)


def test_a_column_that_is_missing_is_named_with_the_near_one_and_the_way_out() -> None:
    assert cell(row(body="x"), "text", COLUMNS) == "x"
    with pytest.raises(
        DataError, match=r"a\.csv:7: no column 'body' for text: did you mean 'boddy'\?.*--columns text="
    ):
        cell(row(boddy="x"), "text", COLUMNS)


def test_a_column_must_be_in_some_row_and_joined_names_each_in_one() -> None:
    check_columns([row(verdict="x"), row(body="x")], COLUMNS)
    check_columns([], COLUMNS)
    with pytest.raises(DataError, match="no column 'verdict' for label"):
        check_columns([row(body="x"), row(body="y")], COLUMNS)
    check_columns([row(a=1, b=0)], {"label": "a,b"})
    check_columns([row(**{"a,b": "x"})], {"label": "a,b"})
    with pytest.raises(DataError, match="no column 'c' for label"):
        check_columns([row(a=1, b=0)], {"label": "a,c"})


def test_a_text_is_text_and_not_empty_unless_that_is_allowed() -> None:
    assert text_cell(row(body=" as it stands "), "text", COLUMNS) == " as it stands "
    for nothing in ("", " \t\n", None):
        with pytest.raises(DataError, match=r"a\.csv:7: column 'body' is empty"):
            text_cell(row(body=nothing), "text", COLUMNS)
    assert text_cell(row(body=None), "text", COLUMNS, empty=True) == ""
    with pytest.raises(DataError, match=r"column 'body' holds 5, must be text"):
        text_cell(row(body=5), "text", COLUMNS, empty=True)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (" good ", "good"), ("1", "1"), (1, "1"), (1.0, "1"), (-2.0, "-2"), (1.5, "1.5"), (True, "true"),
        (False, "false"), ("", None), ("  ", None), (None, None), (math.nan, None),
    ],
)  # fmt: skip
def test_a_class_has_one_name_whatever_the_type_of_its_value(value: Any, name: str | None) -> None:
    assert class_cell(row(verdict=value), "label", COLUMNS) == name


@pytest.mark.parametrize("value", [["good"], {"label": "good"}, math.inf])
def test_what_can_not_be_one_class_is_refused(value: Any) -> None:
    with pytest.raises(
        DataError, match=r"a\.csv:7: column 'verdict' holds .*, must be (the name or number of )?one class"
    ):
        class_cell(row(verdict=value), "label", COLUMNS)


@pytest.mark.parametrize(
    ("value", "number"), [("2.5", 2.5), (" -3 ", -3.0), (4, 4.0), ("1e3", 1000.0), ("", None), (None, None)]
)
def test_a_number_is_read_from_text_and_from_numbers(value: Any, number: float | None) -> None:
    assert number_cell(row(verdict=value), "label", COLUMNS) == number


@pytest.mark.parametrize("value", ["four", "nan", "inf", [1], 10**400, "x" * 500])
def test_what_is_no_finite_number_is_refused_and_shown_in_part(value: Any) -> None:
    with pytest.raises(DataError, match=r"a\.csv:7: .* must be a finite number") as caught:
        number_cell(row(verdict=value), "label", COLUMNS)
    assert len(str(caught.value)) < 200


def test_several_classes_are_a_list_or_names_in_one_text_each_once() -> None:
    assert classes_cell(row(verdict="b|a|b"), "label", COLUMNS, separator="|") == ("b", "a")
    assert classes_cell(row(verdict=["b", 1, None]), "label", COLUMNS, separator=None) == ("b", "1")
    assert classes_cell(row(verdict="a|b"), "label", COLUMNS, separator=None) == ("a|b",)
    assert classes_cell(row(verdict=""), "label", COLUMNS, separator="|") == (), "a text that no class fits"
    assert classes_cell(row(verdict=None), "label", COLUMNS, separator="|") is None
    with pytest.raises(DataError, match="must be a list of classes"):
        classes_cell(row(verdict=3), "label", COLUMNS, separator=None)


def test_several_classes_are_a_column_a_class() -> None:
    columns = {"label": "new,old,red"}
    assert classes_cell(row(new="1", old="0", red="Yes"), "label", columns, separator=None) == ("new", "red")
    assert classes_cell(row(new=True, old=1.0, red=False), "label", columns, separator=None) == ("new", "old")
    with pytest.raises(DataError, match=r"a\.csv:7: column 'red' holds '2', must be 0 or 1"):
        classes_cell(row(new="1", old="0", red="2"), "label", columns, separator=None)
