"""Paths that speak for themselves: GLUE and RACE folders, CoNLL files, SQuAD. Opens no more than a file's beginning.

Loads no model, so that a check of data answers at once.
"""

from __future__ import annotations

from pathlib import Path

from albert.labelled.conll import conll_name
from albert.labelled.glue_layouts import glue_name

RACE_LEVELS = ("middle", "high")
RACE_SPLITS = ("train", "dev", "test")
BEGINNING = 2**16  # characters of a .json that tell what it holds


def recognise(path: Path) -> str | None:
    """Return the task of a path that speaks for itself; None: look at its columns."""
    return glue_name(path) or ("race" if is_race(path) else None) or conll_name(path) or squad_name(path)


def is_race(path: Path) -> bool:
    """Tell whether a folder is RACE or one of its splits."""
    return is_race_split(path) or any(is_race_split(path / split) for split in RACE_SPLITS)


def is_race_split(path: Path) -> bool:
    """Tell whether a folder is a split of RACE."""
    folders = [path / level for level in RACE_LEVELS if (path / level).is_dir()]
    files = [next(folder.glob("*.txt"), None) for folder in folders]
    return bool(folders) and all(file is None or _begins(file, "{") for file in files)  # else classes of these names


def _begins(path: Path, mark: str) -> bool:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        return file.read(BEGINNING).lstrip().startswith(mark)


def squad_name(path: Path) -> str | None:
    """Recognise SQuAD: its .json file, or a folder with files such as train-v1.1.json."""
    if path.is_file():
        return "squad" if is_squad_json(path) else None
    return "squad" if any(squad_files(path, part) for part in ("train", "dev")) else None


def squad_files(folder: Path, part: str) -> list[Path]:
    """List the files of a part of SQuAD in a folder."""
    return sorted(folder.glob(f"{part}*.json"))


def is_squad_json(path: Path) -> bool:
    """Tell SQuAD's .json from rows under that name: a list of objects, or one object per line."""
    if path.suffix != ".json":
        return False
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        beginning = file.read(BEGINNING).lstrip()
    first, newline, _ = beginning.partition("\n")
    is_row = newline and first.rstrip().endswith("}") and '"data"' not in first
    return not beginning.startswith("[") and not is_row
