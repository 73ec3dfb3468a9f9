"""What the cells of a labelled row mean: a text, a class, several classes, a number.

Texts from .csv and .tsv and typed values from .jsonl and .parquet give the same classes and numbers. A cell that
breaks a rule is a DataError with its place; an empty label is None, for the caller to allow (test sets) or refuse.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from albert.errors import DataError, did_you_mean
from albert.labelled.rows import Row

if TYPE_CHECKING:
    from albert.tasks.task import Example

ExampleT = TypeVar("ExampleT", bound="Example")

SEPARATORS = ("|", ";", ",")  # between the classes of one cell, in the order in which they are looked for
SHOWN = 60  # characters of a value in a message
NO_LABEL = {"", "None", "nan", "-1", "-1.0"}  # of a test set that hides its labels
NO_CLASSES = {"0", "0.0", "false", "no", ""}
ONE_CLASS = {"1", "1.0", "true", "yes"}


def cell(row: Row, role: str, columns: Mapping[str, str]) -> Any:
    """Return the value of the column that has a role."""
    name = columns[role]
    if name not in row.values:
        known = did_you_mean(name, map(str, row.values))
        raise DataError(
            f"{row.place}: no column {name!r} for {role}: {known} "
            f"(rename it, or --columns {role}=NAME, which holds for all files)"
        )
    return row.values[name]


def joined(row: Row, role: str, columns: Mapping[str, str]) -> Any:
    """Return the value of a column, or the texts of several (`title,body`) as one; empty ones are left out."""
    name = columns[role]
    if name in row.values or "," not in name:
        return cell(row, role, columns)
    parts = [text_cell(row, role, {role: part}, empty=True) for part in name.split(",")]
    return "\n".join(part for part in parts if part and not part.isspace())


def beside_columns(example: ExampleT, row: Row, columns: Mapping[str, str], *roles: str) -> ExampleT:
    """Return an example with the columns of its row; what plays one of `roles` there is not written a second time."""
    return replace(example, others=row.values, given=tuple(role for role in roles if role in columns))


def is_joined(row: Row, name: str) -> bool:
    """Tell whether a name stands for several columns that are read as one (`title,body`)."""
    return "," in name and name not in row.values


def has_columns(row: Row, name: str) -> bool:
    """Tell whether a row has a column, or all of several (`title,body`)."""
    return name in row.values or ("," in name and all(part in row.values for part in name.split(",")))


def check_columns(rows: Sequence[Row], columns: Mapping[str, str]) -> None:
    """See that some row has the column of every role; single rows of JSON that lack it are for `cell` to name."""
    for role, told in columns.items():
        whole = any(told in row.values for row in rows)
        for name in [told] if whole else told.split(","):
            if rows and not any(name in row.values for row in rows):
                cell(rows[0], role, {role: name})


def text_cell(row: Row, role: str, columns: Mapping[str, str], *, empty: bool = False) -> str:
    """Return a text, which must not be empty unless that is allowed."""
    value = joined(row, role, columns)
    if value is None:
        value = ""
    if not isinstance(value, str):
        raise DataError(f"{row.place}: column {columns[role]!r} holds {value!r}, must be text")
    if not empty and (not value or value.isspace()):
        raise DataError(f"{row.place}: column {columns[role]!r} is empty, must be text: fill it in or remove the row")
    return value


def is_labelled(rows: Iterable[Row], columns: Mapping[str, str]) -> bool:
    """Tell whether test rows have labels: their column may be missing, or empty or -1 in every row, as in GLUE's."""
    name = columns.get("label", "")
    return any(
        str(value).strip() not in NO_LABEL
        for row in rows
        for value in ([row.values[name]] if name in row.values else map(row.values.get, name.split(",")))
    )


def listed(value: Any) -> Any:
    """Return the list that a text of a .csv writes as JSON or as Python does; any other value as it is."""
    if isinstance(value, str) and value.lstrip().startswith("[") and value.rstrip().endswith("]"):
        for read in (json.loads, ast.literal_eval):
            with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                found = read(value.strip())
                return found if isinstance(found, list) else value
    return value


def class_cell(row: Row, role: str, columns: Mapping[str, str]) -> str | None:
    """Return the name of a class: 1, 1.0 and true of .jsonl and .parquet are '1', '1' and 'true'."""
    value = cell(row, role, columns)
    if isinstance(value, list):
        rule = "must be one class: for several per row say --task multi-label"
        raise DataError(f"{row.place}: column {columns[role]!r} holds the list {str(value)[:SHOWN]}, {rule}")
    return _class_name(value, row, columns[role])


def _class_name(value: Any, row: Row, column: str) -> str | None:
    if isinstance(value, str):
        return value.strip() or None
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return str(int(value)) if value == math.trunc(value) else str(value)
    raise DataError(f"{row.place}: column {column!r} holds {value!r}, must be the name or number of one class")


def number_cell(row: Row, role: str, columns: Mapping[str, str]) -> float | None:
    """Return a finite number."""
    value = cell(row, role, columns)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise DataError(
            f"{row.place}: column {columns[role]!r} holds {str(value)[:SHOWN]!r}, must be a finite number: "
            "correct it or remove the row"
        )
    return number


def classes_cell(row: Row, role: str, columns: Mapping[str, str], *, separator: str | None) -> tuple[str, ...] | None:
    """Return the classes of a row: a list, names in one text, or one column per class (names joined by commas)."""
    name = columns[role]
    if name not in row.values and "," in name:
        return _flags(row, name.split(","), role)
    value = cell(row, role, columns)
    if value is None:
        return None
    value = listed(value)
    if isinstance(value, str):
        value = value.split(separator) if separator else [value]
    if not isinstance(value, list):
        raise DataError(f"{row.place}: column {name!r} holds {value!r}, must be a list of classes")
    found = [_class_name(item, row, name) for item in value]
    return tuple(dict.fromkeys(item for item in found if item is not None))


def _flags(row: Row, names: Sequence[str], role: str) -> tuple[str, ...]:
    chosen = []
    for name in names:
        value = str(cell(row, role, {role: name})).strip().lower()
        if value not in NO_CLASSES | ONE_CLASS:
            raise DataError(
                f"{row.place}: column {name!r} holds {value!r}, must be 0 or 1: it says whether a class fits"
            )
        if value in ONE_CLASS:
            chosen.append(name)
    return tuple(chosen)
