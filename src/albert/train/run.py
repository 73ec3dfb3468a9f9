"""The run folder: what was asked, what happened, and who may write.

run.json holds the resolved settings, versions, data and command. Whatever would give the same result resumes; anything
else on the same folder is refused by naming the difference. A setting that did not exist when the run began had its
default then; one that was renamed since is the same; one that the result does not depend on may change, and run.json
says what is in force. metrics.jsonl has one line per logged step; lines beyond the checkpoint that a run
resumes from are dropped, so a resumed run reads like an uninterrupted one. tensorboard/ has the same numbers as events.
"""

from __future__ import annotations

import json
import logging
import math
import os
import platform
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import albert
from albert.errors import UsageError
from albert.files import atomic_write, naming, read_json, sole_owner, write_json
from albert.settings import Section, flatten, with_new_names
from albert.train.events import EventFiles
from albert.train.world import World

log = logging.getLogger(__name__)

PACKAGES = ("torch", "numpy", "safetensors", "sentencepiece")
# What a run may change when it is resumed: when it saves and logs, how long it waits, what becomes of a bad loss (there
# was none yet where it would have stopped), recomputing layers, which gives the same bits, and the precision, which
# is a matter of the machine (`auto` means another one elsewhere).
ADJUSTABLE = frozenset(
    f"train.{name}"
    for name in (
        "save_every",
        "save_minutes",
        "keep",
        "log_every",
        "timeout_minutes",
        "on_bad_loss",
        "checkpointing",
        "precision",
    )
)


class RunFolder:
    """One run's folder, for the process that writes it."""

    def __init__(
        self,
        folder: Path,
        facts: Mapping[str, Any],
        *,
        settings: Section | None = None,
        adjustable: Collection[str] = ADJUSTABLE,
    ) -> None:
        """Open a folder for a run that is told by its facts (data, model, as JSON) and its settings."""
        self.folder = folder
        self.metrics_path = folder / "metrics.jsonl"
        self._events = EventFiles(folder / "tensorboard")
        record = folder / "run.json"
        identity = _as_json({**facts} | ({} if settings is None else {"settings": settings.model_dump()}))
        if record.exists():
            kept = read_json(record, error=UsageError)
            before = kept.get("identity", {})
            _require_same(_in_present_terms(before, settings), identity, adjustable, folder)
            was, is_ = (flatten(one).get("settings.train.precision") for one in (before, identity))
            if was not in (None, "auto", is_):
                log.warning("%s: train.precision was %s and is %s from here on", folder, was, is_)
            if before != identity:
                write_json(record, kept | {"identity": identity})
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
def own_run(
    folder: Path,
    facts: Mapping[str, Any],
    world: World,
    *,
    settings: Section,
    adjustable: Collection[str] = ADJUSTABLE,
) -> Iterator[RunFolder | None]:
    """Hold the folder of a run in the first process; the others have none."""
    if not world.is_first:
        yield None
        return
    with sole_owner(folder), closing(RunFolder(folder, facts, settings=settings, adjustable=adjustable)) as run:
        yield run


def planned_steps(folder: Path) -> int | None:
    """Return the steps that a run was last asked for; None where there is none yet."""
    record = folder / "run.json"
    kept = read_json(record, error=UsageError) if record.exists() else {}
    steps = flatten(kept.get("identity", {})).get("settings.train.steps")
    return steps if isinstance(steps, int) else None


def _as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(json.dumps(values))
    return read


def _in_present_terms(identity: Mapping[str, Any], settings: Section | None) -> dict[str, Any]:
    """Return a stored identity as this version would have written it, by its dotted names."""
    values = identity.get("settings")
    if settings is None or not isinstance(values, Mapping):
        return flatten(identity)
    kind = type(settings)
    defaults = flatten(_as_json({"settings": kind().model_dump()}))
    return defaults | flatten({**identity, "settings": with_new_names(kind, values)})


def _require_same(old: Mapping[str, Any], now: Mapping[str, Any], adjustable: Collection[str], folder: Path) -> None:
    new = flatten(now)
    names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    differences = {name: _difference(name, old.get(name), new.get(name)) for name in names}
    if fixed := [name for name in names if name.removeprefix("settings.") not in adjustable]:
        changes = "; ".join(differences[name] for name in fixed[:8])
        raise UsageError(
            f"{folder}: holds a run of another configuration: {changes}: choose another folder for this one"
        )
    for difference in differences.values():
        log.info("%s from here on", difference)


def _difference(name: str, old: Any, new: Any) -> str:
    """Say how a value differs; of fingerprints the beginnings are enough."""
    if all(isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value) for value in (old, new)):
        what = "files, columns or split" if name == "data" else "contents"
        return f"{name} was {old[:8]}…, is {new[:8]}… (fingerprints: other {what})"
    return f"{name} was {old!r}, is {new!r}"


def _circumstances() -> dict[str, Any]:
    return {
        "command": ["albert", *sys.argv[1:]],
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"albert-lite": albert.__version__, "python": platform.python_version()}
        | {package: version(package) for package in PACKAGES},
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
    }
