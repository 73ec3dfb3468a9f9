"""Fine-tuning from Python, on tables that are in memory or in files: what `albert.tune` does.

A list of dicts, or a DataFrame of pandas or polars, is written as .jsonl into a temporary folder and read like any
other file, so that columns, checks and messages are the same. Messages call it `data`, `dev` or `test`.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from albert.errors import DataError, UsageError
from albert.finetune import Finetuned, finetune
from albert.finetune.settings import FinetuneSettings
from albert.labelled.catalog import DataRequest, open_data
from albert.labelled.request import Opened
from albert.settings import read_settings
from albert.tasks.task import Example, Splits

Table = Any  # a path, a list of dicts, a DataFrame


def tune(
    model: str | Path,
    data: Table,
    out: str | Path,
    *,
    dev: Table | None = None,
    test: Table | None = None,
    task: str | None = None,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    settings: Mapping[str, Any] | None = None,
    seeds: int = 1,
    retry: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Finetuned:
    """Tune a model for a task, as `albert finetune` does; `settings` have dotted names (`train.steps`).

    `columns` are by their roles; several that are one text are a list. `tell` hears what the command would print.
    """
    chosen = read_settings(FinetuneSettings, defaults=settings or {})
    named = {role: name if isinstance(name, str) else ",".join(name) for role, name in (columns or {}).items()}
    opened = _open({"data": data, "dev": dev, "test": test}, task=task, columns=named, settings=chosen)
    result = finetune(opened, str(model), Path(out), settings=chosen, seeds=seeds, retry=retry, tell=tell)
    assert isinstance(result, Finetuned), "it is no dry run"
    return result


def _open(
    tables: Mapping[str, Table], *, task: str | None, columns: Mapping[str, str], settings: FinetuneSettings
) -> Opened:
    with tempfile.TemporaryDirectory(prefix="albert-") as folder:
        paths = {name: _as_file(table, Path(folder) / f"{name}.jsonl") for name, table in tables.items()}
        data = paths["data"]
        if data is None:
            raise UsageError("data: nothing to train on: give a path, a list of dicts or a DataFrame")
        options = settings.data.model_dump()
        request = DataRequest(data, task, dev=paths["dev"], test=paths["test"], columns=columns, **options)
        try:
            return _named(open_data(request), folder)
        except DataError as problem:
            raise DataError(_without_folder(str(problem), folder)) from problem


def _named(opened: Opened, folder: str) -> Opened:
    """Return what was opened, its notes and places without the temporary folder."""

    def renamed(examples: Sequence[Example]) -> list[Example]:
        return [replace(example, place=_without_folder(example.place, folder)) for example in examples]

    splits = opened.splits
    dev = {name: renamed(examples) for name, examples in splits.dev.items()}
    test = {name: renamed(examples) for name, examples in splits.test.items()}
    notes = [_without_folder(note, folder) for note in opened.notes]
    return replace(opened, splits=Splits(renamed(splits.train), dev, test), notes=notes)


def _without_folder(text: str, folder: str) -> str:
    for name in ("data", "dev", "test"):
        text = text.replace(f"{folder}/{name}.jsonl", name)
    return text


def _as_file(table: Table, path: Path) -> Path | None:
    """Return a path as it is, and write anything else that has rows."""
    if table is None or isinstance(table, str | Path):
        return Path(table) if table is not None else None
    if hasattr(table, "to_dicts"):  # polars
        rows: Iterable[Any] = table.to_dicts()
    elif hasattr(table, "to_dict") and hasattr(table, "columns"):  # pandas, whose Series has no columns
        rows = table.to_dict("records")
    else:
        rows = table
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        raise UsageError(f"{path.stem}: a {type(table).__name__}: give a path, a list of dicts or a DataFrame")
    with path.open("w", encoding="utf-8") as file:
        for number, row in enumerate(rows, 1):
            if not isinstance(row, Mapping):
                raise DataError(f"{path.stem}:{number}: a {type(row).__name__}, must be a dict of columns")
            file.write(json.dumps({str(name): _plain(value) for name, value in row.items()}) + "\n")
        if not file.tell():
            raise DataError(f"{path.stem}: has no rows")
    return path


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: NumPy's numbers and arrays become Python's, a missing one None."""
    if type(value).__name__ in ("NAType", "NaTType"):  # what pandas has for a missing value of a nullable column
        return None
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value if isinstance(value, str | int | float | None) else str(value)
