"""What is to be learned about a text: a class, several classes, or a number, from the label column of its row.

Classes are numbered in an order that does not depend on the rows. A label that is not among them is a DataError with
its place. Knows the kinds of task by name only, so that data can be checked without loading a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from albert.errors import DataError
from albert.labelled.cells import SEPARATORS, class_cell, classes_cell, listed, number_cell
from albert.labelled.rows import Row

Target = int | float | tuple[int, ...]
NO_VERDICT = {"-", "-1"}
KINDS = ("classification", "multi-label", "regression")


@dataclass(frozen=True)
class Targets:
    """How labels become targets."""

    kind: str  # one of KINDS
    labels: tuple[str, ...] = ()
    separator: str | None = None  # between the classes of one cell
    fixed: bool = False  # by the task, not by the training data
    _numbers: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)
    _folded: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.labels == tuple(f"LABEL_{number}" for number in range(len(self.labels))):  # a model that knows no names
            self._numbers.update({str(number): number for number in range(len(self.labels))})
        self._numbers.update({label: number for number, label in enumerate(self.labels)})
        alike = {label for group in differ_by_case(self.labels) for label in group}
        self._folded.update({label.casefold(): n for n, label in enumerate(self.labels) if label not in alike})

    def of(self, row: Row, columns: Mapping[str, str]) -> Target:
        """Read the label of a row; there must be one."""
        target: Target | None
        if self.kind == "regression":
            target = number_cell(row, "label", columns)
        elif self.kind == "multi-label":
            names = classes_cell(row, "label", columns, separator=self.separator)
            target = None if names is None else tuple(self._number(name, row) for name in names)
        else:
            name = class_cell(row, "label", columns)
            target = None if name is None else self._number(name, row)
        if target is None:
            raise DataError(
                f"{row.place}: column {columns['label']!r} is empty, must be a label: fill it in or remove the row"
            )
        return target

    def _number(self, name: str, row: Row) -> int:
        number = self._numbers.get(name, self._folded.get(name.casefold()))
        if number is None:
            shown = ", ".join(map(repr, self.labels[:10])) + (", …" if len(self.labels) > 10 else "")
            raise DataError(
                f"{row.place}: label {name!r} is none of {shown}, the labels of "
                + (
                    "this task: correct it or remove the row"
                    if self.fixed
                    else "the training data: correct it, or train on rows that have it"
                )
            )
        return number


def find_separator(rows: Iterable[Row], columns: Mapping[str, str]) -> str | None:
    """Find what separates the classes inside one cell of a table; None where cells are lists or single names."""
    values = [listed(row.values.get(columns["label"])) for row in rows]
    if any(isinstance(value, list) for value in values):  # single names beside lists: fastText's dev file
        return None
    cells = [value for value in values if isinstance(value, str)]
    return next((mark for mark in SEPARATORS if any(mark in cell for cell in cells)), None)


def find_classes(
    kind: str, rows: Sequence[Row], columns: Mapping[str, str], *, separator: str | None
) -> tuple[str, ...]:
    """Collect the classes of the training rows; a label that breaks a rule is named here if too few are left."""
    names: set[str] = set()
    problems: list[DataError] = []
    for row in rows:
        try:
            if kind == "multi-label":
                names.update(classes_cell(row, "label", columns, separator=separator) or ())
            elif (name := class_cell(row, "label", columns)) is not None:
                names.add(name)
        except DataError as problem:
            problems.append(problem)
    if kind == "multi-label" and columns["label"] not in rows[0].values:
        names.update(columns["label"].split(","))  # one column per class: also where no row of it is 1
    least = 1 if kind == "multi-label" else 2
    if len(names) < least and problems:
        raise problems[0]
    if len(names) < least:
        found = f"{len(names)} different label{'' if len(names) == 1 else 's'} in {len(rows)} rows"
        raise DataError(
            f"{rows[0].path}: {found} (column {columns['label']!r}), there must be {least} at least: "
            "add rows of another class, or name the right column (--columns label=NAME)"
        )
    return class_order(names)


def differ_by_case(labels: Sequence[str]) -> list[list[str]]:
    """Return the classes that differ by case only, together."""
    groups: dict[str, list[str]] = {}
    for label in labels:
        groups.setdefault(label.casefold(), []).append(label)
    return [group for group in groups.values() if len(group) > 1]


def case_warnings(labels: Sequence[str]) -> list[str]:
    """Warn of classes that differ by case only."""
    return [
        f"warning: {' and '.join(map(repr, group))} differ by case only and are classes of their own: "
        "write them alike if they are one"
        for group in differ_by_case(labels)
    ]


def without_verdict(rows: Iterable[Row], columns: Mapping[str, str], *, known: Iterable[str] = ()) -> frozenset[str]:
    """Return the labels of pairs that nobody agreed about: "-" (SNLI), and -1 beside 0, 1, …; never a `known` class.

    Of single texts they are classes: -1 may be a bad review.
    """
    if "pair" not in columns or "label" not in columns:
        return frozenset()
    names: set[str] = set()
    for row in rows:
        with suppress(DataError):
            if name := class_cell(row, "label", columns):
                names.add(name)
    others = names - NO_VERDICT
    if len(others) < 2 or "+" in others:  # then "-" is the other of two classes, or a stance
        return frozenset()
    numbered = others == {str(number) for number in range(len(others))}
    return frozenset(names & ({"-", "-1"} if numbered else {"-"})) - frozenset(known)


def has_verdict(row: Row, columns: Mapping[str, str], hidden: frozenset[str]) -> bool:
    """Tell whether a row's label is none of the `hidden`; a bad one is for others to name."""
    with suppress(DataError):
        return class_cell(row, "label", columns) not in hidden
    return True


def class_order(names: Iterable[str]) -> tuple[str, ...]:
    """Put classes into an order that does not depend on the rows: numbers by value, names by alphabet."""
    different = set(names)
    if all(name.removeprefix("-").isdecimal() for name in different):
        return tuple(sorted(different, key=lambda name: (int(name), name)))
    return tuple(sorted(different))
