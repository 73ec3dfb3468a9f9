"""What a build has finished, on disk before the next shard is: a kill at any moment loses the shards under way only.

One line of JSON for the build (a manifest without shards), then one per shard. A torn last line, from a kill or a full
disk, is dropped. The file goes when the store is complete.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from albert.data.shard import ShardRecord
from albert.data.store import UNFINISHED, Manifest
from albert.errors import DataError
from albert.files import atomic_write, resource_error


@dataclass(frozen=True)
class Journal:
    """The journal of the build in a folder."""

    path: Path

    @classmethod
    def begin(cls, folder: Path, plan: Manifest, finished: dict[int, ShardRecord]) -> Journal:
        """Write a new journal with the shards that are finished already."""
        lines = [asdict(plan), *({"shard": index} | asdict(record) for index, record in sorted(finished.items()))]
        with atomic_write(folder / UNFINISHED) as file:
            file.write("".join(map(_line, lines)).encode())
        return cls(folder / UNFINISHED)

    def add(self, index: int, record: ShardRecord) -> None:
        """Record that a shard is on disk."""
        try:
            with self.path.open("ab") as file:
                file.write(_line({"shard": index} | asdict(record)).encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as problem:
            raise resource_error(problem, self.path) or problem from problem

    def end(self) -> None:
        """Remove the journal."""
        self.path.unlink()


def read_journal(folder: Path) -> tuple[Manifest, dict[int, ShardRecord]]:
    """Return what an earlier run was to build, and the shards that it finished."""
    path = folder / UNFINISHED
    try:
        lines = path.read_text("utf-8", "replace").split("\n")
    except OSError as problem:
        raise DataError(f"{path}: can't be read ({problem.strerror})") from problem
    values = []
    for line in lines:
        try:
            values.append(json.loads(line))
        except ValueError:
            break  # torn: nothing after it counts
    try:
        plan = Manifest.parse(values[0], path)
        finished = {int(record.pop("shard")): ShardRecord.parse(record) for record in values[1:]}
    except (IndexError, KeyError, TypeError, ValueError, AttributeError) as problem:
        raise DataError(f"{path}: is not the journal of a build: delete {folder} and build again") from problem
    return plan, finished


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"
