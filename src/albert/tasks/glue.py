"""GLUE, straight from its folders: tab-separated, no quoting, columns by the official layout, official scores.

Test files have no labels. CoLA's train and dev have no header. QQP has a few rows that were cut by line ends inside
questions: they are skipped and counted, as everybody does. Labels are the strings of the files, in the order of the
public data sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from albert.errors import DataError, UsageError
from albert.tasks.classification import Classification, Regression
from albert.tasks.request import DataRequest, Opened
from albert.tasks.task import Task
from albert.tasks.texts import Table, TextTask, open_tables, open_texts

BINARY = ("0", "1")
RTE_LABELS = ("entailment", "not_entailment")
NLI_LABELS = ("entailment", "neutral", "contradiction")
COLA_COLUMNS = ("source", "label", "star", "sentence")


@dataclass(frozen=True)
class Layout:
    """One data set of GLUE: its folder, its columns, its classes and its official score."""

    folder: str
    columns: Mapping[str, str]
    labels: tuple[str, ...] | None  # None: a number
    best: str = "accuracy"
    dev: Mapping[str, str] = field(default_factory=lambda: {"dev": "dev.tsv"})
    test: Mapping[str, str] = field(default_factory=lambda: {"test": "test.tsv"})
    train: str | None = "train.tsv"
    headless: tuple[str, ...] = ()  # the columns of train and dev where they have no header
    skip_ragged: bool = False


def _pair(first: str, second: str, label: str = "label") -> dict[str, str]:
    return {"text": first, "pair": second, "label": label}


LAYOUTS: dict[str, Layout] = {
    "cola": Layout("CoLA", {"text": "sentence", "label": "label"}, BINARY, "matthews", headless=COLA_COLUMNS),
    "sst-2": Layout("SST-2", {"text": "sentence", "label": "label"}, BINARY),
    "mrpc": Layout("MRPC", _pair("#1 String", "#2 String", "Quality"), BINARY, "accuracy_f1"),
    "sts-b": Layout("STS-B", _pair("sentence1", "sentence2", "score"), None),
    "qqp": Layout("QQP", _pair("question1", "question2", "is_duplicate"), BINARY, "accuracy_f1", skip_ragged=True),
    "mnli": Layout(
        "MNLI",
        _pair("sentence1", "sentence2", "gold_label"),
        NLI_LABELS,
        dev={"matched": "dev_matched.tsv", "mismatched": "dev_mismatched.tsv"},
        test={"matched": "test_matched.tsv", "mismatched": "test_mismatched.tsv"},
    ),
    "qnli": Layout("QNLI", _pair("question", "sentence"), RTE_LABELS),
    "rte": Layout("RTE", _pair("sentence1", "sentence2"), RTE_LABELS),
    "wnli": Layout("WNLI", _pair("sentence1", "sentence2"), BINARY),
    "ax": Layout(
        "AX", _pair("sentence1", "sentence2"), NLI_LABELS, "matthews", dev={}, test={"ax": "diagnostic.tsv"}, train=None
    ),
}


def glue_name(path: Path) -> str | None:
    """Name the data set whose folder, or whose file, this is."""
    folder = path if path.is_dir() else path.parent
    for name, layout in LAYOUTS.items():
        if folder.name.lower() in (layout.folder.lower(), name) and any(
            (folder / file).is_file() for file in _files(layout)
        ):
            return name
    return None


def _files(layout: Layout) -> list[str]:
    return [*([layout.train] if layout.train else []), *layout.dev.values(), *layout.test.values()]


def glue_task(name: str, *, max_length: int | None = None) -> TextTask:
    """Give the task of a data set: its classes, or a number, and its official score."""
    layout = LAYOUTS[name]
    length = max_length or 128
    if layout.labels is None:
        return Regression(max_length=length)
    return Classification(labels=layout.labels, best=layout.best, max_length=length)


def open_glue(request: DataRequest, task: Task[Any, Any, Any] | None) -> Opened:
    """Open a GLUE folder, or any table for a task of GLUE: then with its classes and score."""
    name = request.task or glue_name(request.data)
    assert name is not None, "the catalogue asks for GLUE only by name or for its folders"
    layout = LAYOUTS[name]
    own = glue_task(name, max_length=request.max_length)
    if not request.data.is_dir():
        return open_texts(request, task, fixed=own)
    if task is not None and task.kind != own.kind:
        raise UsageError(f"{name} is a {own.kind} task, the model was made for {task.kind}")
    folder = _folder(request.data, layout)
    if request.dev or request.test:
        raise UsageError(f"{request.data}: a GLUE folder has its own dev and test: leave --dev and --test out")
    dev, test = _tables(folder, layout, layout.dev), _tables(folder, layout, layout.test)
    train = _tables(folder, layout, {"train": layout.train} if layout.train else {}).get("train")
    return open_tables(request, task or own, train=None if task else train, dev=dev, test=test)


def _folder(path: Path, layout: Layout) -> Path:
    for folder in (path, path / layout.folder):
        if any((folder / file).is_file() for file in _files(layout)):
            return folder
    raise DataError(f"{path}: none of {', '.join(_files(layout))} is there: name the folder {layout.folder} of GLUE")


def _tables(folder: Path, layout: Layout, files: Mapping[str, str]) -> dict[str, Table]:
    found = {}
    for split, file in files.items():
        if (folder / file).is_file():
            labelled = file not in layout.test.values()
            found[split] = Table(
                folder / file,
                columns={role: column for role, column in layout.columns.items() if labelled or role != "label"},
                names=layout.headless if labelled and layout.headless else None,
                skip_ragged=layout.skip_ragged,
            )
    return found
