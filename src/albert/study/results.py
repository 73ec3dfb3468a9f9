"""What a folder of studies has found: the tables with the scores of their runs, and the verdicts.

OUT/studies/NAME.json says which runs a study has; their scores are in their folders. A report is made of all studies of
a folder, so that they can be run one by one.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from albert.files import read_json, write_json
from albert.study.catalog import STUDIES
from albert.study.resolve import Request, Resolved
from albert.study.tables import Study
from albert.study.verdicts import FAILED, Verdict, judge
from albert.study.workshop import LAYERS, SCORES, SUMMARY, Workshop


@dataclass(frozen=True)
class Table:
    """A study with the scores of its runs, as far as they are made."""

    study: Study
    scale: str
    command: str
    tokens: int  # of a run of the first row
    keys: Mapping[str, Mapping[int, str]]  # the runs by row and seed
    scores: Mapping[str, Mapping[int, Mapping[str, Any]]]
    tasks: tuple[str, ...]

    @property
    def verdicts(self) -> list[Verdict]:
        """Judge the findings of the paper by these scores."""
        return judge(self.study, self.scores)


def record(resolved: Resolved, request: Request, shop: Workshop) -> None:
    """Write down which runs a study has; asking for fewer seeds takes none away."""
    path = shop.out / "studies" / f"{resolved.study.name}.json"
    rows: dict[str, dict[str, str]] = {}
    for (row, seed), run in resolved.runs.items():
        rows.setdefault(row, {})[str(seed)] = run.key
    before = read_json(path) if path.exists() else {}
    for row, keys in before.get("rows", {}).items():
        if row in rows and keys.get("0") == rows[row]["0"]:  # the same settings, more seeds
            rows[row] = keys | rows[row]
    write_json(
        path,
        {
            "scale": request.scale,
            "command": shlex.join(["albert", *sys.argv[1:]]),
            "tokens": next(iter(resolved.runs.values())).tokens,
            "tasks": {task.name: task.key for task in shop.tasks} if resolved.study.tasks else {},
            "rows": rows,
        },
    )


def read_tables(out: Path) -> list[Table]:
    """Read all studies of a folder, in the order of the catalog."""
    tables = []
    for study in STUDIES.values():
        path = out / "studies" / f"{study.name}.json"
        if path.exists():
            tables.append(_read_table(study, read_json(path), out))
    return tables


def _read_table(study: Study, record: Mapping[str, Any], out: Path) -> Table:
    keys = {row: {int(seed): key for seed, key in seeds.items()} for row, seeds in record["rows"].items()}
    scores = {
        row: {
            seed: found for seed, key in sorted(seeds.items()) if (found := _scores(out / "rows" / key, record, study))
        }
        for row, seeds in keys.items()
    }
    return Table(
        study, record["scale"], record["command"], record["tokens"], keys, scores, tasks=tuple(record["tasks"])
    )


def _scores(folder: Path, record: Mapping[str, Any], study: Study) -> dict[str, Any]:
    if not (folder / SCORES).exists():
        return {}
    scores = read_json(folder / SCORES)
    for name, key in record["tasks"].items():
        if (path := folder / "tasks" / f"{name}-{key}" / SUMMARY).exists():
            scores[name] = read_json(path)["score"]
            if scores[name] is None:
                scores.setdefault(FAILED, []).append(name)
    return scores | (read_json(folder / LAYERS) if study.layers and (folder / LAYERS).exists() else {})
