"""Which tasks there are: from what a user says about data to a task and its examples.

A family of tasks is one entry of FAMILIES: the names that --task takes, how its data is opened, and how texts to
decide about are read. Paths that speak for themselves are known by recognition.py, tables of people's own data by their
columns (detection.py), which are looked for once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from albert.errors import DataError, UsageError, did_you_mean
from albert.labelled import choices, glue, questions, race, similarity, tags, texts
from albert.labelled.detection import DETECT_ROWS, detect
from albert.labelled.glue_layouts import LAYOUTS
from albert.labelled.recognition import recognise
from albert.labelled.request import DataRequest, Opened, with_parts
from albert.labelled.rows import require_format, sample_rows
from albert.tasks.task import AnyTask, Example
from albert.text.documents import ReadReport

__all__ = [
    "FAMILIES",
    "DataRequest",
    "Family",
    "Opened",
    "official_name",
    "open_data",
    "read_inputs",
    "task_names",
]


@dataclass(frozen=True)
class Family:
    """Tasks whose data is opened in one way."""

    names: tuple[str, ...]  # what --task takes
    open: Callable[[DataRequest, AnyTask | None], Opened]
    others: tuple[str, ...] = ()  # data of another family that a model of this one can be evaluated on
    kinds: tuple[str, ...] = ()  # the kinds of Task that the data is for, and whose inputs `inputs` reads
    inputs: Callable[[AnyTask, Path, Mapping[str, str], ReadReport], Iterator[Example]] | None = None


FAMILIES: tuple[Family, ...] = (
    Family(tuple(LAYOUTS), glue.open_glue, kinds=("classification", "regression")),
    Family(
        ("classification", "multi-label", "regression"),
        texts.open_texts,
        kinds=("classification", "multi-label", "regression"),
        inputs=texts.read_texts,
    ),
    Family(("race",), race.open_race),
    Family(("choice",), choices.open_choices, kinds=("choice",), inputs=choices.read_choices),
    Family(
        ("tagging",),
        tags.open_tags,
        kinds=("tagging",),
        inputs=tags.read_words,
    ),
    Family(
        ("squad", "span"),
        questions.open_questions,
        kinds=("span",),
        inputs=questions.read_question_inputs,
    ),
    Family(
        ("similarity",),
        similarity.open_similarity,
        others=tuple(LAYOUTS),
        kinds=("similarity",),
        inputs=similarity.read_pairs,
    ),
)


def task_names() -> list[str]:
    """List the names that --task takes."""
    return [name for family in FAMILIES for name in family.names]


def open_data(request: DataRequest, *, task: AnyTask | None = None) -> Opened:
    """Open data for training; or for the evaluation of a model, whose `task` then gives classes and settings.

    For an evaluation nothing is held out: a file is the dev set, of a folder its dev and test sets are read.
    """
    for path in (request.data, request.dev, request.test):
        if path is not None and not path.exists():
            raise DataError(f"{path}: no such file or folder: check the path")
    request = with_parts(request, training=task is None)
    request = replace(request, task=official_name(request.task) if request.task else recognise(request.data))
    if task is not None and _reads(task, request.task):
        request = replace(request, task=None)
    name = request.task or (task.kind if task is not None else None)
    if name is None:  # by its columns; the family takes over what was found
        require_format(request.data)
        found = detect(sample_rows(request.data, DETECT_ROWS), request.data, columns=request.columns)
        name, request = found.task, replace(request, found=found)
    family = next(family for family in FAMILIES if name in family.names)
    if task is not None and family.kinds and task.kind not in family.kinds:
        raise UsageError(f"{request.data}: is data for {name}, the model was made for {task.kind}: choose another one")
    opened = family.open(request, task)
    if request.class_weights and opened.task.kind != "classification":
        raise UsageError(f"data.class_weights: only classification has them, this is {opened.task.kind}: leave it out")
    if request.temperature and opened.task.kind != "similarity":
        raise UsageError(f"data.temperature: only similarity has one, this is {opened.task.kind}: leave it out")
    return replace(opened, name=name)


def _reads(task: AnyTask, name: str | None) -> bool:
    """Tell whether data that has a name of its own is also data for a model's task."""
    return any(task.kind in family.kinds and name in family.others for family in FAMILIES)


def official_name(name: str) -> str:
    """Find a task by its name, whatever the case and the hyphens: SST2 is sst-2."""
    known = {own.replace("-", ""): own for own in task_names()}
    found = known.get(name.lower().replace("-", "").replace("_", ""))
    if found is None:
        raise UsageError(f"no task {name!r}: {did_you_mean(name.lower(), task_names())}")
    return found


def read_inputs(
    task: AnyTask, path: Path, columns: Mapping[str, str], report: ReadReport | None = None
) -> Iterator[Example]:
    """Read examples to decide about, without labels, one at a time: memory does not grow with the file."""
    for family in FAMILIES:
        if task.kind in family.kinds and family.inputs is not None:
            return family.inputs(task, path, columns, report or ReadReport())
    raise UsageError(f"{path}: files can't be read for {task.kind} models")
