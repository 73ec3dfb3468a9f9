"""GLUE, straight from its folders: tab-separated, no quoting, columns by the official layout, official scores.

Test files have no labels. CoLA's train and dev have no header. QQP has a few rows that were cut by line ends inside
questions: they are skipped and counted, as everybody does. The layouts are in glue_layouts.py.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path

from albert.errors import DataError, UsageError
from albert.labelled.detection import check_roles
from albert.labelled.glue_layouts import LAYOUTS, SCALE, Layout, glue_name, official_files
from albert.labelled.request import DataRequest, Opened
from albert.labelled.texts import Table, TextTask, open_tables, open_texts
from albert.tasks.classification import Classification, Regression
from albert.tasks.task import AnyTask


def glue_task(name: str, *, max_length: int | None = None) -> TextTask:
    """Return the task of a data set: its classes, or a number, and its official score."""
    layout = LAYOUTS[name]
    length = max_length or 128
    if layout.labels is None:
        return Regression(max_length=length)
    return Classification(labels=layout.labels, best=layout.best, max_length=length)


def open_glue(request: DataRequest, task: AnyTask | None) -> Opened:
    """Open a GLUE folder or one of its files, or any other table for a task of GLUE: with its classes and score."""
    name = request.task or glue_name(request.data)
    assert name is not None, "the catalogue asks for GLUE only by name or for its folders"
    opened = _open(request, task, name)
    if LAYOUTS[name].labels is None:
        for example in chain(opened.splits.train, *opened.splits.dev.values()):
            if not SCALE[0] <= example.target <= SCALE[1]:
                request.on_problem(
                    DataError(f"{example.place}: score {example.target:g} must be from 0 to 5: correct it or remove it")
                )
    return opened


def _open(request: DataRequest, task: AnyTask | None, name: str) -> Opened:
    layout, own = LAYOUTS[name], glue_task(name, max_length=request.max_length)
    check_roles(request.columns, name)
    layout = replace(layout, columns={**layout.columns, **request.columns})
    model_task = _official(task, own, name) if task is not None else None
    if not request.data.is_dir():
        return _open_file(request, model_task, own, layout)
    if request.dev or request.test:
        raise UsageError(f"{request.data}: a GLUE folder has its own dev and test: leave --dev and --test out")
    if name == "ax" and (request.data / "AX.tsv").is_file():  # the name under which it is published alone
        layout = replace(layout, test={"ax": "AX.tsv"})
    folder = _folder(request.data, layout)
    train = _table(folder / layout.train, layout) if layout.train and task is None else None
    dev = {split: table for split, file in layout.dev.items() if (table := _table(folder / file, layout))}
    test = {split: table for split, file in layout.test.items() if (table := _table(folder / file, layout))}
    return open_tables(request, model_task or own, train=train, dev=dev, test=test)


def _official(task: AnyTask, own: TextTask, name: str) -> TextTask:
    """Return a model's task the official score, and names for its classes if it has only numbers."""
    if not isinstance(task, type(own)):
        raise UsageError(f"{name} is a task of {own.kind}, the model was made for {task.kind}: use one made for {name}")
    if not isinstance(task, Classification) or not isinstance(own, Classification):
        return task
    if len(task.labels) != len(own.labels):
        raise UsageError(f"{name} has the classes {', '.join(own.labels)}, the model has {', '.join(task.labels)}")
    unnamed = all(label == f"LABEL_{number}" for number, label in enumerate(task.labels))
    return replace(task, best=own.best, labels=own.labels if unnamed else task.labels)


def _open_file(request: DataRequest, task: TextTask | None, own: TextTask, layout: Layout) -> Opened:
    table = _table(request.data, layout)
    if table is None:
        return open_texts(request, task, fixed=own)
    if "label" not in table.columns:
        return open_tables(request, task or own, train=None, dev={}, test={"test": table})
    if task is not None:
        return open_tables(request, task, train=None, dev={"dev": table}, test={})
    dev = {"dev": _table(request.dev, layout) or Table(request.dev, layout.columns)} if request.dev else {}
    test = {"test": _table(request.test, layout) or Table(request.test, layout.columns)} if request.test else {}
    return open_tables(request, own, train=table, dev=dev, test=test)


def _folder(path: Path, layout: Layout) -> Path:
    for folder in (path, path / layout.folder):
        if any((folder / file).is_file() for file in official_files(layout)):
            return folder
    files = ", ".join(official_files(layout))
    raise DataError(f"{path}: none of {files} is there: name the folder {layout.folder} of GLUE")


def _table(path: Path, layout: Layout) -> Table | None:
    """Return an official file as a table; None where it is not there or not an official one."""
    if path.name not in official_files(layout) or not path.is_file():
        return None
    tested = path.name in layout.test.values()
    columns = layout.columns if tested or path.name == layout.train else layout.dev_columns or layout.columns
    return Table(
        path,
        columns={role: column for role, column in columns.items() if not (tested and role == "label")},
        names=layout.headless if layout.headless and not tested else None,
        skip_ragged=layout.skip_ragged and not tested,  # a submission without a row is shifted from there on
    )
