"""What is in files of tagged words, and what is wrong with them: every problem with its line, not only the first.

Rules are those of training (tag_rows.py); here a row that breaks one is noted and passed over. Loads no model, so it is
quick.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from albert.errors import DataError
from albert.labelled.cells import check_columns
from albert.labelled.detection import Detected
from albert.labelled.holdout import content_key, held_out
from albert.labelled.request import DataRequest
from albert.labelled.rows import Row
from albert.labelled.table_check import Lengths, TableCheck, note_copies, note_shared
from albert.labelled.tag_rows import find_tag_columns, find_tags, read_tagged, tagged_words
from albert.text.documents import ReadReport

Sentence = tuple[Row, tuple[str, ...], tuple[int, ...] | None]


def check_tags(request: DataRequest) -> list[TableCheck]:
    """Check tagged words, every row of them: the data, then dev and test against its tags."""
    found = Detected("tagging", {}, ())
    train = TableCheck(request.data, found)
    rows = _read(train)
    if not rows:
        return [train]
    train.found = found = find_tag_columns(request, rows)
    try:
        tags, notes = find_tags(rows, found.columns, request.data)
    except DataError as problem:
        train.add_problem(str(problem))
        return [train]
    train.warnings += notes
    sentences = _check(train, rows, tags, labelled=True)
    if request.dev is None and not train.problems:
        try:
            held_out([_key(words) for _, words, _ in sentences], None, share=0.5, seed=0)
        except DataError as problem:
            train.add_problem(f"{request.data}: {problem}")
    return [
        train,
        *(
            _check_other(path, name, found, tags=tags, train=sentences)
            for name, path in (("dev", request.dev), ("test", request.test))
            if path is not None
        ),
    ]


def _check_other(
    path: Path, split: str, found: Detected, *, tags: tuple[str, ...], train: list[Sentence]
) -> TableCheck:
    check = TableCheck(path, found, split=split)
    rows = _read(check)
    if rows:
        labelled = split == "dev" or found.columns["tags"] in rows[0].values
        sentences = _check(check, rows, tags, labelled=labelled)
        places = {_key(words): row.place for row, words, _ in reversed(train)}
        shared = [(row.place, places[key]) for row, words, _ in sentences if (key := _key(words)) in places]
        check.warnings += note_shared(shared, train[0][0].path if train else path)
    return check


def _read(check: TableCheck) -> list[Row]:
    report = ReadReport()
    try:
        rows = read_tagged(check.path, lambda place, why: check.add_problem(f"{place}: {why}"), report)
    except DataError as problem:
        if not check.problems:
            raise
        check.add_problem(str(problem))
        return []
    check.warnings += report.lines()
    return rows


def _check(check: TableCheck, rows: list[Row], tags: tuple[str, ...], *, labelled: bool) -> list[Sentence]:
    """Check the rows of a file; return the good ones."""
    columns = check.found.columns
    numbers = {tag: number for number, tag in enumerate(tags)} if labelled else None
    good: list[Sentence] = []
    try:
        check_columns(rows, {role: columns[role] for role in ("tokens", *(["tags"] if labelled else []))})
    except DataError as problem:
        check.add_problem(str(problem))
        return []
    for row in rows:
        try:
            good.append((row, *tagged_words(row, columns, numbers)))
        except DataError as problem:
            check.add_problem(str(problem))
    check.num_rows = len(good)
    if good:
        check.lengths = Lengths.of([len(words) for _, words, _ in good])
        note_copies(check, [(row, _key(words), target) for row, words, target in good])
    counts = Counter(number for _, _, target in good for number in target or ())
    check.classes = {tag: counts[number] for number, tag in enumerate(tags)} if labelled else {}
    return good


def _key(words: tuple[str, ...]) -> str:
    return content_key(" ".join(words))
