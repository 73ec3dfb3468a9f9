"""The decisions of a run's best model about its dev examples, as its folder keeps them for the report.

`decisions.jsonl` has one line per example: what was decided, what is true, how probable the model held it, as each task
says (tasks/decision.py). They stay in the run folder and never go into the model folder, which is given away.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from albert.errors import UsageError
from albert.files import atomic_write
from albert.tasks.decision import Decision
from albert.tasks.task import AnyTask

FILE = "decisions.jsonl"


@dataclass(frozen=True)
class Decided:
    """All decisions about a dev set, with what is needed to read them."""

    kind: str  # of the task
    labels: tuple[str, ...]
    best: str  # the score that decides
    baseline: float  # of that score
    decisions: tuple[Decision, ...] = ()
    bag_of_words: float | None = None  # of that score


_LINE, _HEAD = TypeAdapter(Decision), TypeAdapter(Decided)


def keep_decisions(
    folder: Path,
    task: AnyTask,
    *,
    examples: Sequence[Any],
    predictions: Sequence[Any],
    baseline: float,
    bag_of_words: float | None = None,
) -> None:
    """Write the decisions of a task into a run folder."""
    decisions = [task.decision(example, given) for example, given in zip(examples, predictions, strict=True)]
    kept = [decision for decision in decisions if decision is not None]
    if not kept:
        return
    head = asdict(
        Decided(task.kind, tuple(getattr(task, "labels", ())), task.best, baseline, bag_of_words=bag_of_words)
    )
    with atomic_write(folder / FILE) as file:
        file.write(_to_line(head))
        for decision in kept:
            file.write(_to_line(asdict(decision)))


def _to_line(values: dict[str, Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False).encode(errors="replace") + b"\n"  # texts may hold half characters


def read_decisions(folder: Path) -> Decided | None:
    """Read the decisions of a run; None where it has not come to any."""
    path = folder / FILE
    if not path.exists():
        return None
    lines = path.read_bytes().splitlines()
    try:
        head = _HEAD.validate_json(lines[0] if lines else b"")
    except ValidationError as problem:
        raise UsageError(f"{path}:1: not the head of a file of decisions: delete it to report without") from problem
    return replace(head, decisions=tuple(_read_lines(lines[1:], path)))


def _read_lines(lines: Sequence[bytes], path: Path) -> Iterator[Decision]:
    for number, line in enumerate(lines, 2):
        try:
            yield _LINE.validate_json(line)
        except ValidationError as problem:
            raise UsageError(
                f"{path}:{number}: no decision: the file is damaged: delete it to report without"
            ) from problem
