"""The run folder: what was asked, what happened, and who may write (design.md, section 2).

run.json holds the resolved settings, versions, data and command. The same settings resume; others on the same folder
are refused by naming the difference. metrics.jsonl has one line a logged step; lines beyond the checkpoint that a run
resumes from are dropped, so a resumed run reads like an uninterrupted one. tensorboard/ has the same numbers as events.
"""

from __future__ import annotations

import json
import logging
import math
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import albert
from albert.errors import UsageError
from albert.files import atomic_write, naming, read_json, sole_owner, write_json
from albert.train.events import EventFiles
from albert.train.world import World

log = logging.getLogger(__name__)

PACKAGES = ("torch", "numpy", "safetensors", "sentencepiece")


class RunFolder:
    """One run's folder, for the process that writes it."""

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        """Open a folder for a run of this identity: settings and data, as JSON."""
        self.folder = folder
        self.metrics_path = folder / "metrics.jsonl"
        self._events = EventFiles(folder / "tensorboard")
        record = folder / "run.json"
        identity = json.loads(json.dumps(identity))
        if record.exists():
            _require_same(read_json(record, error=UsageError).get("identity", {}), identity, folder)
        else:
            if folder.is_dir() and any(item for item in folder.iterdir() if not item.name.startswith(".")):
                raise UsageError(f"{folder}: is not empty and holds no run: choose another folder")
            folder.mkdir(parents=True, exist_ok=True)
            write_json(record, {"identity": identity} | _circumstances())

    def resume_metrics(self, step: int) -> None:
        """Drop the metrics of steps that will be run again."""
        self._events.first_step = step + 1
        if not self.metrics_path.exists():
            return
        kept = []
        for line in self.metrics_path.read_bytes().splitlines(keepends=True):
            try:
                if json.loads(line)["step"] <= step:
                    kept.append(line)
            except (ValueError, KeyError, TypeError):  # the last line of a killed run
                break
        with atomic_write(self.metrics_path) as file:
            file.writelines(kept)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Append one line of metrics."""
        values = {name: value if math.isfinite(value) else str(value) for name, value in metrics.items()}
        with naming(self.metrics_path), self.metrics_path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, **values}) + "\n")
        self._events.write(step, metrics)

    def close(self) -> None:
        """Let go of what is open."""
        self._events.close()


@contextmanager
def own_run(folder: Path, identity: Mapping[str, Any], world: World) -> Iterator[RunFolder | None]:
    """Hold the folder of a run in the first process; the others have none."""
    if not world.is_first:
        yield None
        return
    with sole_owner(folder), closing(RunFolder(folder, identity)) as run:
        yield run


def _require_same(before: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    old, new = flatten(before), flatten(now)
    names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    if names:
        changes = "; ".join(f"{name} was {old.get(name)!r}, is {new.get(name)!r}" for name in names[:8])
        raise UsageError(
            f"{folder}: holds a run of another configuration: {changes}: choose another folder for this one"
        )


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Give the leaves of nested settings by their dotted names."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _circumstances() -> dict[str, Any]:
    return {
        "command": ["albert", *sys.argv[1:]],
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"albert-lite": albert.__version__, "python": platform.python_version()}
        | {package: version(package) for package in PACKAGES},
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
    }
