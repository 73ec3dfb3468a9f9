"""What a run folder says of its run afterwards, or while it goes on: settings, circumstances, metrics.

Only reads. A folder is somebody else's file: what is missing or broken is named, and a last line of metrics that was
never finished is left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from albert.errors import UsageError
from albert.files import read_json
from albert.settings import flatten

RECENT = 10  # the last tenth of the steps is what a training loss "at the end" is the mean of


@dataclass(frozen=True)
class History:
    """A run as its folder tells it."""

    folder: Path
    identity: Mapping[str, Any]  # stage, model, settings, fingerprints of the data
    circumstances: Mapping[str, Any]  # command, time, versions, processes
    metrics: tuple[Mapping[str, float], ...]  # one line per logged step, `step` among them

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings by their dotted names."""
        values = self.identity.get("settings")
        return flatten(values) if isinstance(values, Mapping) else {}

    @property
    def last_step(self) -> int:
        """Return the last step that was logged."""
        return int(self.metrics[-1]["step"]) if self.metrics else 0

    def series(self, name: str) -> list[tuple[int, float]]:
        """Return a metric as points (step, value); what is not a finite number is left out."""
        return [(int(line["step"]), line[name]) for line in self.metrics if name in line and math.isfinite(line[name])]

    def final(self, name: str) -> float | None:
        """Return the last value of a metric."""
        points = self.series(name)
        return points[-1][1] if points else None

    def recent_mean(self, name: str) -> float | None:
        """Return the mean of a metric over the last tenth of the steps: one logged value is mostly noise."""
        points = self.series(name)
        recent = [value for step, value in points if step >= points[-1][0] * (1 - 1 / RECENT)]
        return sum(recent) / len(recent) if recent else None


def is_run(folder: Path) -> bool:
    """Tell whether a folder is a run's."""
    return (folder / "run.json").is_file()


def read_history(folder: Path) -> History:
    """Read a run folder."""
    if not is_run(folder):
        raise UsageError(f"{folder}: has no run.json: give the folder that was --out of a training run")
    record = read_json(folder / "run.json", error=UsageError)
    identity = record.pop("identity", None)
    if not isinstance(identity, dict):
        raise UsageError(f"{folder / 'run.json'}: has no identity: not written by this program, or damaged")
    return History(folder, identity, record, tuple(_read_metrics(folder / "metrics.jsonl")))


def _read_metrics(path: Path) -> list[dict[str, float]]:
    lines: list[dict[str, float]] = []
    if not path.exists():
        return lines
    for line in path.read_bytes().splitlines():
        try:
            values = {name: float(value) for name, value in json.loads(line).items()}  # "nan" is written as a word
            int(values["step"])
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):  # the last line of a killed run
            break
        lines.append(values)
    return lines
