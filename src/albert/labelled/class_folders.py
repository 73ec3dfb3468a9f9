"""One folder per class, one text per file, as aclImdb and 20 Newsgroups are published; and a folder of texts alone.

The names of the folders are the labels; folders of texts without one (aclImdb's `unsup`) are left out. A folder whose
`train`, `dev` and `test` are such folders is a whole data set. Files end in .txt, or are named by a number. Files that
lie in the folder itself have no label: texts to decide about.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

UNLABELLED = ("unsup", "unlabeled", "unlabelled")
PARTS = {"train": ("train",), "dev": ("dev", "valid", "validation", "val"), "test": ("test",)}


@dataclass(frozen=True)
class ClassFile:
    """A text and its class, where it has one."""

    path: Path
    label: str | None


def is_class_folder(path: Path) -> bool:
    """Tell whether a folder holds two folders of texts at least."""
    if not path.is_dir():
        return False
    return len(_classes(path)) >= 2


def class_parts(path: Path) -> dict[str, Path]:
    """Return train, dev and test of a folder where they have one folder per class, else nothing."""
    if not path.is_dir() or is_class_folder(path):
        return {}
    found = {
        part: path / name for part, names in PARTS.items() for name in reversed(names) if is_class_folder(path / name)
    }
    return found if "train" in found or "test" in found else {}


def is_text_folder(path: Path) -> bool:
    """Tell whether a folder holds texts itself, and no classes."""
    return path.is_dir() and not is_class_folder(path) and any(_is_text(file) for file in path.iterdir())


def class_files(folder: Path) -> Iterator[ClassFile]:
    """Return the files of a folder in the order of their names, class by class; or those that lie in it."""
    if is_text_folder(folder):
        yield from (ClassFile(file, None) for file in sorted(folder.iterdir()) if _is_text(file))
        return
    for own in _classes(folder):
        for path in sorted(file for file in own.iterdir() if _is_text(file)):
            yield ClassFile(path, own.name)


def class_notes(path: Path) -> list[str]:
    """Say what was taken for a class, and what was left out."""
    if not is_class_folder(path):
        return []
    left_out = [name for name in UNLABELLED if (path / name).is_dir()]
    words = f"one folder per class: {', '.join(own.name for own in _classes(path))}"
    return [words + (f"; left out, because it has no labels: {', '.join(left_out)}" if left_out else "")]


def _classes(path: Path) -> list[Path]:
    every = {name for names in PARTS.values() for name in names}
    return sorted(
        own
        for own in path.iterdir()
        if own.is_dir()
        and not own.name.startswith(".")
        and own.name.lower() not in (*UNLABELLED, *every)
        and any(_is_text(file) for file in own.iterdir())
    )


def _is_text(path: Path) -> bool:
    name = path.name.lower()
    named = path.suffix.lower() == ".txt" and not name.startswith(("readme", "license"))
    return path.is_file() and not name.startswith(".") and (named or name.isdecimal())
