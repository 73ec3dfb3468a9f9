"""Rows of tagged words, from CoNLL files and from tables with lists: what opening them and checking them share.

Loads no model, so that a check answers at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from albert.errors import DataError, UsageError, did_you_mean
from albert.labelled.cells import cell, listed
from albert.labelled.conll import is_conll, read_conll
from albert.labelled.detection import DETECT_ROWS, Detected, detect
from albert.labelled.request import DataRequest
from albert.labelled.rows import OnBad, Row, read_rows
from albert.tasks.tag_spans import OUTSIDE, has_spans, scheme_of
from albert.text.documents import ReadReport

COLUMNS = {"tokens": "tokens", "tags": "tags"}
OTHER_SPELLING = re.compile(  # B_PER, PER-B, b-per, Q-PER
    r"[BIESLU][_:/.]\w\S*|\S*\w[-_:/.][BIESLU]|[A-Za-z]-\S+"
)


def read_tagged(path: Path, on_bad: OnBad, report: ReadReport) -> list[Row]:
    """Read the sentences of a file."""
    read = read_conll if is_conll(path) else read_rows
    rows = list(read(path, on_bad=on_bad, report=report))
    if not rows:
        raise DataError(f"{path}: no sentences: there must be at least one")
    return rows


def find_tag_columns(request: DataRequest, rows: Sequence[Row]) -> Detected:
    """Find the columns of tokens and tags; a CoNLL file has no names of columns, and nothing to give reasons for."""
    if not is_conll(request.data):
        return request.found or detect(rows[:DETECT_ROWS], request.data, columns=request.columns, task="tagging")
    if request.columns:
        raise UsageError(f"{request.data}: a CoNLL file has no names of columns: leave --columns out")
    return Detected("tagging", COLUMNS, ())


def find_tags(rows: Sequence[Row], columns: Mapping[str, str], path: Path) -> tuple[tuple[str, ...], list[str]]:
    """Return the tags of all rows, O first, the others by alphabet, and notes on them; bad rows are told later."""
    sentences = []
    for row in rows:
        with suppress(DataError):
            sentences.append(items_cell(row, "tags", columns))
    tags = {tag for sentence in sentences for tag in sentence}
    if len(tags) < 2:
        raise DataError(f"{path}: {len(tags)} different tags, there must be two at least: add sentences")
    labels = tuple(sorted(tags, key=lambda tag: (tag != OUTSIDE, tag)))
    if all(tag.isdecimal() for tag in labels):
        why = "as numbers they say no spans, so words are scored: write their names, such as B-PER"
        return labels, [f"{len(labels)} tags", f"warning: tags are numbers: {why}"]
    return labels, [f"{len(labels)} tags, scheme {scheme_of(sentences)}", *_odd_tags(labels)]


def tagged_words(
    row: Row, columns: Mapping[str, str], numbers: Mapping[str, int] | None
) -> tuple[tuple[str, ...], tuple[int, ...] | None]:
    """Return the words of a row and the numbers of their tags; without `numbers` its tags are not read."""
    words = items_cell(row, "tokens", columns)
    if numbers is None:
        return tuple(words), None
    tags = items_cell(row, "tags", columns)
    if len(words) != len(tags):
        raise DataError(f"{row.place}: {len(words)} tokens and {len(tags)} tags: every token needs one tag")
    for tag in tags:
        if tag not in numbers:
            raise DataError(f"{row.place}: tag {tag!r} is none of the training data's: {did_you_mean(tag, numbers)}")
    return tuple(words), tuple(numbers[tag] for tag in tags)


def items_cell(row: Row, role: str, columns: Mapping[str, str]) -> list[str]:
    """Return the items of a list, or of a text that separates them by spaces; numbers are taken as names."""
    value = listed(cell(row, role, columns))
    items = value.split() if isinstance(value, str) else value
    if not isinstance(items, list) or not items or any(not isinstance(item, str | int) or item == "" for item in items):
        raise DataError(
            f"{row.place}: column {columns[role]!r} holds {str(value)[:60]!r}, must be a list of {role}, "
            "none of them empty"
        )
    return [str(item) for item in items]


def _odd_tags(labels: Sequence[str]) -> list[str]:
    """Warn of a few tags that say no span among many that do: one of them is enough to score words, not spans."""
    inside = [tag for tag in labels if tag != OUTSIDE]
    odd = [tag for tag in inside if not has_spans([tag])]
    other = [tag for tag in odd if OTHER_SPELLING.fullmatch(tag)]
    if other and len(other) >= len(inside) / 2:
        alike = "looks like a tag" if len(other) == 1 else "look like tags"
        return [
            f"warning: {', '.join(map(repr, other[:4]))}{', …' if len(other) > 4 else ''} {alike} of spans, "
            "which are written B-NAME, I-NAME: as they are, words are scored, not spans"
        ]
    if not odd or len(odd) >= len(inside) / 2:
        return []
    return [
        f"warning: {', '.join(map(repr, odd))} is no tag of a span (B- I- E- S- L- U-), the others are: words are "
        "scored, not spans: correct it if it is a mistake"
    ]
