"""What a user says about data, and what opening it gives: the two ends of every reader of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from albert.tasks.task import Splits, Task


@dataclass(frozen=True)
class DataRequest:
    """What a user may say about data; None and nothing mean: find out."""

    data: Path  # a file, a GLUE or RACE folder
    task: str | None = None  # one of catalog.task_names()
    dev: Path | None = None
    test: Path | None = None
    columns: Mapping[str, str] = field(default_factory=dict)  # role -> column: text, pair, label, ...
    holdout: float = 0.1  # share of the data that becomes dev when none is given
    seed: int = 0
    max_length: int | None = None
    class_weights: bool = False
    head: str | None = None  # of questions: span or conditional_span
    limit_train: int | None = None  # so many, after a seeded shuffle
    limit_dev: int | None = None


@dataclass(frozen=True)
class Opened:
    """A task with its examples; `train` is empty where there is nothing to train on."""

    task: Task[Any, Any, Any]
    splits: Splits[Any]
    notes: list[str]  # what was found, assumed and mended, a line each
    fingerprint: str  # sha256 over the files read, the split rule and the seed
    columns: Mapping[str, str] = field(default_factory=dict)  # as found or told
    name: str = ""  # what --task would call it: mrpc, squad, classification
