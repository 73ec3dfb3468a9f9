"""Some rows of a file, seen by column: which names there are, and what the columns seem to hold.

Decides about no role and no task: detection.py does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import pairwise
from typing import Any

from albert.errors import DataError, UsageError, did_you_mean
from albert.labelled.cells import NO_CLASSES, ONE_CLASS
from albert.labelled.column_names import (
    ALL_ROLES,
    FILE,
    IGNORED,
    LABEL_NAMES,
    LABELS,
    LABELS_MANY,
    NUMBERS,
    TITLES,
    plain,
)
from albert.labelled.rows import Row
from albert.text.sources import source_of

SURE = 0.9  # share of a column's values that tells what it holds: the others are then wrong, not another kind
WORDS_OF_NAME = 6  # a name of a column has no more
WORDS_OF_LONE_NAME = 2  # where it is the only column: the first of a list of texts is taken for a name else
SHOWN_NAME = 40  # characters of a name in a message
WORDS_OF_TEXT = 3.0  # a column of more words than this on average is text
DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?!\d)|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}(?!\d)")  # and perhaps a time
USUAL_LABELS = {*LABELS, *LABELS_MANY, *NUMBERS, *LABEL_NAMES}


class Sample:
    """Some rows of a file, by column."""

    def __init__(self, rows: Sequence[Row], path: str, told: dict[str, str]) -> None:
        self.rows, self.path, self.told = rows, path, told
        self.in_table = source_of(rows[0].path, ("csv", "tsv")) is not None  # where a header can be missing
        self.names = list(dict.fromkeys(name for row in rows[:1000] for name in row.values))
        self.by_plain = {plain(name): name for name in reversed(self.names)}

    @property
    def shown(self) -> str:
        return ", ".join(short_name(name) for name in self.names)

    def check_told(self) -> None:
        """Refuse names of columns that are not there."""
        for role, value in self.told.items():
            for name in [value] if value in self.names else value.split(","):
                if name not in self.names and role not in ALL_ROLES:
                    raise UsageError(f"--columns {role}={value}: {role!r} is no role: {did_you_mean(role, ALL_ROLES)}")
                if name not in self.names:
                    raise DataError(
                        f"{self.path}: no column {name!r} for {role}: {did_you_mean(name, self.names)} "
                        f"(--columns {role}=NAME)"
                    )

    def left_out(self, found: Mapping[str, str], label: str | None) -> list[str]:
        """Say which columns of text are not read, and how they would be."""
        used = {*found.values(), label, *(label or "").split(","), *self.told.values()}
        others = [name for name in self.names if name not in used and plain(name) not in (*IGNORED, *LABEL_NAMES)]
        texts = [name for name in others if plain(name) in TITLES or self.is_text(name)]
        if not texts or "pair" in found:
            return [f"left out: {', '.join(map(repr, texts))}"] if texts else []
        every = ",".join(name for name in self.names if name in (*texts, found["text"]))
        return [f"left out: {', '.join(map(repr, texts))} (--columns text={every} reads them as one text)"]

    def fasttext_notes(self) -> list[str]:
        """Say that the rows are fastText's lines, where they are: no other .txt has labels."""
        is_lines = (
            source_of(self.rows[0].path, ("txt",)) is not None and "label" in self.names and FILE not in self.names
        )
        return ["fastText: every line begins with its label"] if is_lines else []

    def is_headless(self, label: str | None = None) -> bool:
        """Tell whether the names of the columns look like a row: a number, a long text, a label that is also below."""
        if not self.in_table or (label is not None and label not in self.names):
            return False
        if label is not None and (label in self.values(label) or plain(label) in USUAL_LABELS):
            return label in self.values(label)
        most = WORDS_OF_NAME if len(self.names) > 1 else WORDS_OF_LONE_NAME
        return any(as_number(name) is not None or len(name.split()) > most for name in self.names)

    def headless(self) -> DataError:
        """Return the error of a table without a header."""
        names = ",".join(self._suggested(name, number) for number, name in enumerate(self.names, 1))
        return DataError(
            f"{self.path}:1: no header: the first line is a row, it begins with "
            f"{short_name(self.names[0])}: put a line with the columns' names above it, such as {names}"
        )

    def _suggested(self, name: str, number: int) -> str:
        """Return what a column without a name may be called, by what is in it."""
        if self.is_class(name):
            return "label"
        values = [*map(str, self.values(name))]
        is_key = len(set(values)) == len(values) and not any(" " in value for value in [name, *values])
        return "id" if is_key else f"text{number}"

    def called(self, names: Sequence[str]) -> str | None:
        """Find the first column that has one of the usual names."""
        return next((self.by_plain[name] for name in names if name in self.by_plain), None)

    def values(self, name: str) -> list[Any]:
        """Return a column's values that are not empty; a gap in numbers of Parquet is NaN, which equals nothing."""
        values = [row.values.get(name) for row in self.rows]
        return [value for value in values if value is not None and value != "" and value == value]

    def is_text(self, name: str) -> bool:
        """Tell whether a column holds texts of several words, and not the same few again and again."""
        values = self.values(name)
        if not values or not all(isinstance(value, str) for value in values):
            return False
        words = sum(len(value.split()) for value in values) / len(values)
        return words > WORDS_OF_TEXT and (len(values) < 10 or len(set(values)) > len(values) / 10)

    def is_number(self, name: str) -> bool:
        return bool(values := self.values(name)) and all(as_number(value) is not None for value in values)

    def is_date(self, name: str) -> bool:
        """Tell whether a column holds days or times, as text or as Parquet has them."""
        values = self.values(name)
        return bool(values) and all(isinstance(value, date) or DATE.match(str(value)) for value in values)

    def numbers_rows(self, name: str) -> bool:
        """Tell whether a column holds whole numbers that only grow from row to row: ids, not labels."""
        numbers = [as_number(value) for value in self.values(name)]
        whole = [number for number in numbers if number is not None and number.is_integer()]
        return len(whole) == len(numbers) > 2 and all(one < next_ for one, next_ in pairwise(whole))

    def parallel_lists(self) -> tuple[str, str] | None:
        """Find two columns of lists of strings that are equally long in every row; the second repeats its items most.

        Tokens and their tags are such columns.
        """
        lists = [name for name in self.names if self.is_list(name)]
        if len(lists) != 2 or any(len({len(row.values.get(name) or ()) for name in lists}) > 1 for row in self.rows):
            return None
        items = {name: [item for value in self.values(name) for item in value] for name in lists}
        if not all(isinstance(item, str) for name in lists for item in items[name]):
            return None
        tokens, tags = sorted(lists, key=lambda name: -len(set(items[name])))
        return (tokens, tags) if len(set(items[tokens])) > len(set(items[tags])) else None

    def is_flag(self, name: str) -> bool:
        """Tell whether a column says yes or no."""
        values = {str(value).strip().lower() for value in self.values(name)}
        return bool(values) and values <= (NO_CLASSES | ONE_CLASS)

    def is_list(self, name: str) -> bool:
        """Tell whether a column holds lists; a few other values are mistakes, to be named as such."""
        values = self.values(name)
        return bool(values) and sum(isinstance(value, list) for value in values) >= SURE * len(values)

    def is_class(self, name: str) -> bool:
        """Tell whether a column holds few different short values, most of them more than once."""
        values = self.values(name)
        if not values or any(isinstance(value, list | dict) for value in values) or self.is_text(name):
            return False
        return len(set(map(str, values))) <= max(2, len(values) // 2)


def short_name(name: str) -> str:
    """Return a name of a column as it fits into a message of one line."""
    words = " ".join(name.split())
    return repr(words if len(words) <= SHOWN_NAME else f"{words[: SHOWN_NAME - 1]}…")


def as_number(value: Any) -> float | None:
    """Read a number; NaN is one, so that it is found as a wrong number and not as text."""
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:  # of a whole number with hundreds of digits
        return math.inf
    except (TypeError, ValueError):
        return None
