"""The task of a model folder: what fine-tuning writes into `task.json`, and the task made again from it.

`task.json` holds the kind and name of the task, the settings that a decision depends on and the columns it was trained
on; labels are in config.json, where everybody looks for them. A folder without it, as transformers writes, gives a task
too: by its head, its problem type and its labels. Nothing in the file is trusted: a value of a wrong kind is refused by
name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from albert.errors import AlbertError, ModelError, did_you_mean
from albert.files import read_json
from albert.model.config import AlbertConfig
from albert.tasks.choice import Choice
from albert.tasks.classification import Classification, MultiLabel, Regression
from albert.tasks.similarity import Similarity
from albert.tasks.span import CONDITIONAL, PLAIN, SpanTask
from albert.tasks.tagging import Tagging
from albert.tasks.task import AnyTask

TASK_FILE = "task.json"
KINDS: dict[str, type[AnyTask]] = {
    kind.kind: kind for kind in (Classification, MultiLabel, Regression, Choice, Tagging, SpanTask, Similarity)
}
USUAL_LENGTH = {SpanTask.kind: 384}
LONGEST_USUAL = 512
SHORTEST = 16


@dataclass(frozen=True)
class Remembered:
    """The task of a folder, and the columns that it was trained on by role."""

    task: AnyTask
    columns: Mapping[str, str] = field(default_factory=dict)
    name: str = ""  # what it was trained as: sst-2, classification; empty where nobody said


def task_json(task: AnyTask, *, name: str = "", columns: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the contents of task.json."""
    return {"kind": task.kind, "name": name, **task.remembered(), "columns": dict(columns or {})}


def read_task(folder: Path, config: AlbertConfig, heads: Sequence[str]) -> Remembered | None:
    """Make the task of a folder again; None where its heads are for no task."""
    path = folder / TASK_FILE
    if not path.exists():
        kind, settings = _by_heads(config, heads)
        return Remembered(_build(kind, settings, config, source=folder)) if kind else None
    values = read_json(path)
    kind, name, columns = values.pop("kind", None), values.pop("name", ""), values.pop("columns", {})
    if not isinstance(kind, str) or kind not in KINDS:
        raise ModelError(f"{path}: kind={kind!r} is no task: {did_you_mean(str(kind), KINDS)}")
    if not isinstance(name, str):
        raise ModelError(f"{path}: name={name!r} must be the name of a task")
    if not isinstance(columns, dict) or not all(isinstance(name, str) for name in columns.values()):
        raise ModelError(f"{path}: columns={columns!r} must map roles to the names of columns")
    task = _build(kind, values, config, source=path)
    if not set(task.heads) <= set(heads):
        raise ModelError(
            f"{path}: a {kind} task needs the head '{task.head}', the model has: {', '.join(heads) or 'none'}"
        )
    return Remembered(task, columns, name)


def _by_heads(config: AlbertConfig, heads: Sequence[str]) -> tuple[str | None, dict[str, Any]]:
    """Tell the kind of task and its settings from what any model folder has."""
    if "classifier" in heads:
        if config.problem_type == "regression" or (config.problem_type is None and len(config.labels) == 1):
            return Regression.kind, {}
        multi = config.problem_type == "multi_label_classification"
        return MultiLabel.kind if multi else Classification.kind, {}
    if "choice" in heads:
        return Choice.kind, {}
    if "tags" in heads:
        return Tagging.kind, {}
    if CONDITIONAL in heads:
        return SpanTask.kind, {"head": CONDITIONAL, "unanswerable": True}
    return (SpanTask.kind, {"head": PLAIN}) if PLAIN in heads else (None, {})


def _build(kind: str, settings: Mapping[str, Any], config: AlbertConfig, *, source: Path) -> AnyTask:
    own = KINDS[kind]
    hints = get_type_hints(own)
    known = {one.name for one in fields(own) if one.init} - {"labels", "class_weights", "temperature", "alone"}  # type: ignore[arg-type]
    for name, value in settings.items():
        if name not in known:
            raise ModelError(f"{source}: '{name}' is no setting of a {kind} task: {did_you_mean(name, known)}")
        try:
            TypeAdapter(hints[name]).validate_python(value, strict=True)
        except ValidationError as problem:
            raise ModelError(f"{source}: {name}={value!r}: {problem.errors()[0]['msg'].lower()}") from None
    positions = config.max_position_embeddings
    length = settings.get("max_length", min(USUAL_LENGTH.get(kind, LONGEST_USUAL), positions))
    if not min(SHORTEST, positions) <= length <= positions:
        raise ModelError(f"{source}: max_length={length} must be from {SHORTEST} to the model's {positions} positions")
    values = dict(settings) | {"max_length": length}
    if "labels" in hints:
        values["labels"] = config.labels
    try:
        return own(**values)
    except AlbertError as problem:
        raise ModelError(f"{source}: {problem}") from problem
