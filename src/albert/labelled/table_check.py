"""What is in a table of labelled texts, and what is wrong with it: every problem with its line, not only the first.

Rules are those of training (cells.py, targets.py); here a row that breaks one is noted and passed over. Loads no
model, so it is quick.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

from albert.errors import DataError
from albert.labelled.cells import check_columns, text_cell
from albert.labelled.detection import Detected
from albert.labelled.holdout import content_key, copies, held_out
from albert.labelled.rows import Row, quoting_notes, read_rows
from albert.labelled.targets import (
    Target,
    Targets,
    case_warnings,
    find_classes,
    find_separator,
    has_verdict,
    without_verdict,
)
from albert.text.documents import ReadReport

PROBLEMS = 20  # that are kept; the others are counted
RARE = 5  # rows of a class below which it can't be learned or scored well


@dataclass(frozen=True)
class Lengths:
    """Words of the texts of a row, both of a pair together."""

    mean: float
    median: float
    percentile_95: float
    longest: int

    @classmethod
    def of(cls, counts: Sequence[int]) -> Self:
        """Sum up the lengths of rows."""
        words = np.array(counts)
        return cls(float(words.mean()), float(np.median(words)), float(np.percentile(words, 95)), int(words.max()))


@dataclass
class TableCheck:
    """What a check found."""

    path: Path
    found: Detected
    num_rows: int = 0  # good ones
    classes: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)  # of a regression: least, mean, largest, deviation
    lengths: Lengths | None = None
    num_copies: int = 0
    num_conflicts: int = 0  # copies whose label is another one
    num_problems: int = 0
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    split: str | None = None  # dev or test, where it is checked beside the data to train on

    def add_problem(self, text: str) -> None:
        """Count a problem, and keep it unless there are many."""
        self.num_problems += 1
        if len(self.problems) < PROBLEMS:
            self.problems.append(text)


def check_table(
    path: Path, found: Detected, *, classes: Sequence[str] = (), labelled: bool = True, divided: bool = False
) -> TableCheck:
    """Check a table whose task and columns are known; its own classes, or those of the training table.

    `divided`: dev is to be held out of it.
    """
    check, report = TableCheck(path, found), ReadReport()
    rows = list(read_rows(path, on_bad=lambda place, why: check.add_problem(f"{place}: {why}"), report=report))
    try:
        check_columns(rows, {role: name for role, name in found.columns.items() if labelled or role != "label"})
    except DataError as problem:
        check.add_problem(str(problem))
        return check
    if labelled and found.task == "classification" and (hidden := without_verdict(rows, found.columns, known=classes)):
        every, rows = rows, [row for row in rows if has_verdict(row, found.columns, hidden)]
        labels = " or ".join(sorted(map(repr, hidden)))
        check.warnings.append(f"{_rows(len(every) - len(rows), 'is', 'are')} left out: {labels}, no label")
    targets = _targets(check, rows, found, classes) if labelled else None
    good: list[tuple[Row, tuple[str, ...], Target | None]] = []
    for row in rows:
        try:
            texts = tuple(text_cell(row, role, found.columns) for role in ("text", "pair") if role in found.columns)
            good.append((row, texts, targets.of(row, found.columns) if targets else None))
        except DataError as problem:
            check.add_problem(str(problem))
    check.num_rows = len(good)
    check.warnings += report.lines()
    if not rows and not check.problems:
        check.add_problem(f"{path}: no rows: there must be at least one below the header")
    if good:
        check.lengths = Lengths.of([sum(len(text.split()) for text in texts) for _, texts, _ in good])
        check.warnings += quoting_notes(path, (text for _, texts, _ in good for text in texts))
        note_copies(check, [(row, content_key(*texts), target) for row, texts, target in good])
        if divided and not check.problems:
            _check_division(check, good)
    if targets and good:
        _count(check, targets, [target for _, _, target in good if target is not None])
    return check


def _targets(check: TableCheck, rows: Sequence[Row], found: Detected, classes: Sequence[str]) -> Targets | None:
    separator = find_separator(rows, found.columns) if found.task == "multi-label" else None
    if found.task == "regression" or not rows:
        return Targets(found.task)
    try:
        own = tuple(classes) or find_classes(found.task, rows, found.columns, separator=separator)
    except DataError as problem:
        check.add_problem(str(problem))
        return None
    if not classes:
        check.warnings += [warning.removeprefix("warning: ") for warning in case_warnings(own)]
    return Targets(found.task, own, separator)


def _check_division(check: TableCheck, good: Sequence[tuple[Row, tuple[str, ...], Target | None]]) -> None:
    strata = [target for _, _, target in good] if check.found.task == "classification" else None
    try:
        held_out([content_key(*texts) for _, texts, _ in good], strata, share=0.5, seed=0)
    except DataError as problem:
        check.add_problem(f"{check.path}: {problem}")


def note_copies(check: TableCheck, good: Sequence[tuple[Row, str, Target | None]]) -> None:
    """Note rows that repeat another's text, given the key of each, and those that have another label there."""
    found = copies([key for _, key, _ in good])
    conflicts = [copy for copy in found if good[copy.place][2] != good[copy.earlier][2]]
    check.num_copies, check.num_conflicts = len(found), len(conflicts)
    if found:
        row, earlier = good[found[0].place][0], good[found[0].earlier][0]
        check.warnings.append(
            f"{_rows(len(found), 'repeats', 'repeat')} the text of another: {row.place} is {earlier.place}"
        )
    if conflicts:
        row, earlier = good[conflicts[0].place][0], good[conflicts[0].earlier][0]
        check.warnings.append(
            f"{len(conflicts):,} of them with another label than the first: {row.place} against {earlier.place}"
        )


def _count(check: TableCheck, targets: Targets, values: Sequence[Target]) -> None:
    if targets.kind == "regression":
        numbers = np.array(values, dtype=np.float64)
        check.numbers = {
            "least": float(numbers.min()),
            "mean": float(numbers.mean()),
            "largest": float(numbers.max()),
            "deviation": float(numbers.std()),
        }
        if numbers.size > 1 and np.ptp(numbers) == 0:
            check.add_problem(f"{check.path}: all {numbers.size} numbers are {numbers[0]:g}: nothing can be learned")
        return
    counts = Counter(number for value in values for number in (value if isinstance(value, tuple) else (value,)))
    check.classes = {label: counts[number] for number, label in enumerate(targets.labels)}
    if rare := [f"{label!r} {count}" for label, count in check.classes.items() if count < RARE]:
        shown = ", ".join(rare[:5]) + (", …" if len(rare) > 5 else "")
        check.warnings.append(
            f"{len(rare)} {'class' if len(rare) == 1 else 'classes'} with fewer than {RARE} rows: {shown}"
        )
    majority = max(check.classes.values())
    if targets.kind == "classification" and majority > 0.9 * len(values):
        check.warnings.append(
            f"{majority / len(values):.0%} of the rows are of one class: accuracy will look good in any case: "
            "look at macro F1, and consider class weights"
        )


def shared_rows(train: Path, dev: Path, columns: Mapping[str, str]) -> list[str]:
    """Warn of rows of dev whose texts are in the training table too."""
    places: dict[str, str] = {}
    for row in read_rows(train, on_bad=_ignore):
        places.setdefault(_key(row, columns), row.place)
    found = [
        (row.place, places[key]) for row in read_rows(dev, on_bad=_ignore) if (key := _key(row, columns)) in places
    ]
    return note_shared(found, train)


def note_shared(found: Sequence[tuple[str, str]], train: Path) -> list[str]:
    """Say which rows are in the training file too, given the places of each and of its copy."""
    if not found:
        return []
    return [f"{_rows(len(found), 'is', 'are')} in {train} too, the first: {found[0][0]} is {found[0][1]}"]


def _rows(count: int, one: str, many: str) -> str:
    return f"1 row {one}" if count == 1 else f"{count:,} rows {many}"


def _ignore(_place: str, _reason: str) -> None:
    """Pass over a row that has been reported before."""


def _key(row: Row, columns: Mapping[str, str]) -> str:
    texts: list[str | None] = []
    for role in (role for role in ("text", "pair") if role in columns):
        try:
            texts.append(text_cell(row, role, columns, empty=True))
        except DataError:  # reported before
            texts.append(None)
    return content_key(*texts)
