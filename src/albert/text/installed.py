"""English that is on every machine with Python: the docstrings of the packages installed there.

A real corpus of some megabytes for demonstrations and first steps, with no download. Source files are parsed, never
imported or run. A document is one module's docstrings in file order, and knows the library it is from: a label that
comes with the text.
"""

from __future__ import annotations

import ast
import inspect
import random
import re
import sysconfig
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("numpy", "torch")
MIN_CHARACTERS = 400  # of a document: shorter ones are licences and stubs
HELD_OUT = 10  # every 10th document
COPIED_WORDS = 8  # a run of this many words in common makes a held-out paragraph a copy
ROW_CHARACTERS = range(60, 301)  # of a labelled paragraph: long enough to tell, short enough to learn from quickly
NAMES = re.compile(r"python|numpy|torch|\bnp\b|\bpy|\.py\b|ndarray|tensor", re.IGNORECASE)


@dataclass(frozen=True)
class InstalledDocument:
    """The prose of one module, and the library whose module it is."""

    library: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True)
class LabelledParagraph:
    """A paragraph that names no library, and the library that it is from."""

    text: str
    library: str


def library_folders() -> dict[str, Path]:
    """Find where the source files of each library are."""
    packages = Path(sysconfig.get_path("purelib"))
    found = {name: packages / name for name in PACKAGES if (packages / name).is_dir()}
    return {"python": Path(sysconfig.get_path("stdlib"))} | found


def installed_documents() -> Iterator[InstalledDocument]:
    """Return the documents, standard library first, in a fixed order."""
    for library, folder in library_folders().items():
        for file in sorted(folder.rglob("*.py")):
            if not {"site-packages", "test", "tests", "idlelib"} & set(file.relative_to(folder).parts):
                paragraphs = tuple(_paragraphs(file))
                if sum(map(len, paragraphs)) >= MIN_CHARACTERS:
                    yield InstalledDocument(library, paragraphs)


def hold_out(documents: Iterable[InstalledDocument]) -> tuple[list[InstalledDocument], list[InstalledDocument]]:
    """Divide by document; held-out paragraphs that share a run of words with the training text are left out."""
    train: list[InstalledDocument] = []
    held_out: list[InstalledDocument] = []
    for number, document in enumerate(documents):
        (held_out if number % HELD_OUT == 0 else train).append(document)
    known = {run for document in train for paragraph in document.paragraphs for run in _runs(paragraph)}
    fresh = (
        InstalledDocument(document.library, tuple(p for p in document.paragraphs if known.isdisjoint(_runs(p))))
        for document in held_out
    )
    return train, [document for document in fresh if document.paragraphs]


def label_paragraphs(documents: Iterable[InstalledDocument], rows: int, *, seed: int = 0) -> list[LabelledParagraph]:
    """Draw paragraphs, as many of each library, that don't name one; the library is the label."""
    found: dict[str, dict[str, None]] = defaultdict(dict)  # a dictionary: each text once, in order
    for document in documents:
        for paragraph in document.paragraphs:
            if len(paragraph) in ROW_CHARACTERS and not NAMES.search(paragraph):
                found[document.library][paragraph] = None
    rng = random.Random(seed)
    each = min([rows // max(len(found), 1), *map(len, found.values())])
    drawn = [
        LabelledParagraph(text, library) for library, texts in found.items() for text in rng.sample([*texts], each)
    ]
    rng.shuffle(drawn)
    return drawn


def _runs(paragraph: str) -> set[str]:
    """Return every run of words, or the whole of a short paragraph."""
    words = re.findall(r"[a-z]+", paragraph.lower())
    return {" ".join(words[i : i + COPIED_WORDS]) for i in range(max(1, len(words) - COPIED_WORDS + 1))}


def _paragraphs(file: Path) -> Iterator[str]:
    """Return the prose paragraphs of a file's docstrings, one per line, without examples, tables and lists of names."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's strings
            tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, OSError, RecursionError):
        return
    for docstring in _docstrings(tree):
        for paragraph in inspect.cleandoc(docstring).split("\n\n"):
            line = " ".join(paragraph.split())
            if line[:1].isalpha() and line.endswith((".", ":", "!", "?")) and ">>>" not in line:
                yield line


def _docstrings(node: ast.AST) -> Iterator[str]:
    """Return the docstrings in file order; only statements are visited, not expressions, which are most of a file."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield ast.get_docstring(node, clean=False) or ""
    for field in ("body", "handlers", "orelse", "finalbody"):
        inner = getattr(node, field, [])
        for statement in inner if isinstance(inner, list) else []:
            yield from _docstrings(statement)
