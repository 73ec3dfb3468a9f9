"""The check of labelled data, whatever its form: every row that breaks a rule, not only the first.

Tables of texts and tagged words are checked row by row (table_check.py, tag_check.py); GLUE, SQuAD, RACE and other
tables by opening them as training does, with every problem noted and passed over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from albert.errors import DataError
from albert.labelled.cells import is_labelled
from albert.labelled.detection import DETECT_ROWS, detect
from albert.labelled.recognition import recognise
from albert.labelled.request import DataRequest, Opened, with_parts
from albert.labelled.rows import read_rows, require_format, sample_rows
from albert.labelled.table_check import PROBLEMS, TableCheck, check_table, shared_rows
from albert.labelled.tag_check import check_tags
from albert.labelled.targets import KINDS

TAGGING = "tagging"


@dataclass(frozen=True)
class OpenedCheck:
    """What opening a data set of several files, or of a form of its own, found."""

    path: Path
    task: str | None
    rows: Mapping[str, int] = field(default_factory=dict)  # of each set
    columns: Mapping[str, str] = field(default_factory=dict)
    classes: Mapping[str, int] = field(default_factory=dict)  # and their rows, where a row has one class
    fingerprint: str | None = None  # None: it could not be opened
    warnings: tuple[str, ...] = ()
    num_problems: int = 0
    problems: tuple[str, ...] = ()  # the first of them


def check_labelled(request: DataRequest) -> list[TableCheck | OpenedCheck]:
    """Check labelled data, every row of it: the data, then dev and test where it is a table of texts."""
    for path in (request.data, request.dev, request.test):
        if path is not None and not path.exists():
            raise DataError(f"{path}: no such file: check the path")
    request = with_parts(request, training=True)
    task = _official_name(request.task) if request.task else recognise(request.data)
    if task is None:
        require_format(request.data)
    if task == TAGGING:
        return [*check_tags(replace(request, task=task))]
    if task not in (None, *KINDS):
        return [_check_opened(replace(request, task=task))]
    found = detect(sample_rows(request.data, DETECT_ROWS), request.data, columns=request.columns, task=task)
    if found.task == TAGGING:
        return [*check_tags(replace(request, task=found.task, found=found))]
    if found.task not in KINDS:
        return [_check_opened(replace(request, task=found.task, found=found))]
    train = check_table(request.data, found, divided=request.dev is None)
    checks: list[TableCheck | OpenedCheck] = [train]
    for name, path in (("dev", request.dev), ("test", request.test)):
        if path is not None:
            labelled = name == "dev" or is_labelled(read_rows(path, on_bad=lambda _place, _why: None), found.columns)
            check = check_table(path, found, classes=tuple(train.classes), labelled=labelled)
            check.warnings += shared_rows(request.data, path, found.columns)
            check.split = name
            checks.append(check)
    return checks


def _official_name(name: str) -> str:
    if name in (TAGGING, *KINDS):
        return name
    from albert.labelled.catalog import official_name  # loads torch

    return official_name(name)


def _check_opened(request: DataRequest) -> OpenedCheck:
    """Check data that is not a table of texts, by opening it."""
    from albert.labelled.catalog import open_data  # loads torch, which a table of texts does without

    problems: list[str] = []
    try:
        opened = open_data(replace(request, on_problem=lambda problem: problems.append(str(problem))))
    except DataError as problem:
        if not problems:
            raise
        problems.append(str(problem))
        return OpenedCheck(request.data, request.task, num_problems=len(problems), problems=tuple(problems[:PROBLEMS]))
    return OpenedCheck(
        request.data,
        opened.name,
        rows=_count_rows(opened),
        columns=opened.columns,
        classes=_count_classes(opened),
        fingerprint=opened.fingerprint,
        warnings=tuple(opened.notes),
        num_problems=len(problems),
        problems=tuple(problems[:PROBLEMS]),
    )


def _count_rows(opened: Opened) -> dict[str, int]:
    splits = opened.splits
    rows = {"train": len(splits.train)} | {name: len(examples) for name, examples in splits.dev.items()}
    return rows | {
        name if name not in rows else f"test {name}": len(examples) for name, examples in splits.test.items()
    }


def _count_classes(opened: Opened) -> dict[str, int]:
    splits = opened.splits
    targets = [getattr(example, "target", None) for example in splits.train or next(iter(splits.dev.values()), ())]
    counts = Counter(target for target in targets if isinstance(target, int))
    labels = getattr(opened.task, "labels", ())
    return {label: counts[number] for number, label in enumerate(labels)} if counts else {}
