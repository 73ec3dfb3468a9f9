"""English that is on every machine with Python: the docstrings of the packages installed there.

A real corpus of some megabytes for demonstrations and first steps, with no download. Source files are parsed, never
imported or run. A document is one module's docstrings in file order.
"""

from __future__ import annotations

import ast
import inspect
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("numpy", "torch")
MIN_CHARACTERS = 400  # of a document: shorter ones are licences and stubs


def installed_documents() -> Iterator[str]:
    """Give the documents, standard library first, in a fixed order."""
    folders = [Path(sysconfig.get_path("stdlib"))]
    folders += [path for name in PACKAGES if (path := Path(sysconfig.get_path("purelib")) / name).is_dir()]
    for folder in folders:
        for file in sorted(folder.rglob("*.py")):
            if not {"site-packages", "test", "tests", "idlelib"} & set(file.relative_to(folder).parts):
                text = "\n".join(_paragraphs(file))
                if len(text) >= MIN_CHARACTERS:
                    yield text


def _paragraphs(file: Path) -> Iterator[str]:
    """Give the prose paragraphs of a file's docstrings, one a line, without examples, tables and lists of names."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's strings
            tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, OSError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for paragraph in inspect.cleandoc(ast.get_docstring(node) or "").split("\n\n"):
                line = " ".join(paragraph.split())
                if line[:1].isalpha() and line.endswith((".", ":", "!", "?")) and ">>>" not in line:
                    yield line
