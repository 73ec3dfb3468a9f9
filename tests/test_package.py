"""What the package ships beside code."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from pathlib import Path

from mypy import api as mypy

ROOT = Path(__file__).resolve().parents[1]


def test_type_checkers_are_told_that_the_package_is_typed_and_wheels_hold_the_mark() -> None:
    assert (Path(str(files("albert"))) / "py.typed").is_file()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "py.typed" in project["tool"]["setuptools"]["package-data"]["albert"]


def test_the_readme_says_how_to_install() -> None:
    assert "pip install -e ." in (ROOT / "README.md").read_text(encoding="utf-8")


CALLS = {
    'model.classify("a")': "albert.tasks.classified.Label",
    'model.classify("a").label': "str",
    'model.classify(["a"], kind="classification")': "list[albert.tasks.classified.Label]",
    'model.classify("a", kind="multi-label").labels': "tuple[str, ...]",
    'model.classify("a", "b", kind="regression")': "albert.tasks.classified.Number",
    '[one.value for one in model.classify(["a"], ["b"], kind="regression")]': "list[float]",
    'model.answer(["a"], "b")': "list[albert.tasks.span.Answer]",
    'model.choose("a", ["b", "c"])': "albert.tasks.choice.Chosen",
    'model.tag([["a", "b"]])': "list[albert.tasks.tagging.Tagged]",
    'model.tag(words=["a", "b"])': "albert.tasks.tagging.Tagged",
    'model.fill(["a"])': "list[tuple[albert.inference.fill.Blank, ...]]",
    'model.similarity("a", "b")': "float",
    'model.similarity("a", ["b"])': "list[float]",
    'model.similarity(["a"], ["b"])': "list[float]",
}


MISTAKES = {
    'model.classify("a").value': '"Label" has no attribute "value"',
    'model.classify("a", kind="regression").label': '"Number" has no attribute "label"',
    'model.tag(words=["a"])[0]': 'Value of type "Tagged" is not indexable',
}


def test_a_type_checker_knows_results_by_their_calls_and_finds_mistakes(tmp_path: Path) -> None:
    calls = [*(f"reveal_type({call})" for call in CALLS), *MISTAKES]
    (tmp_path / "calls.py").write_text("\n".join(["import albert", 'model = albert.load("folder")', *calls]))
    words = [
        "--config-file",
        str(ROOT / "pyproject.toml"),
        "--cache-dir",
        str(ROOT / ".mypy_cache"),
        str(tmp_path / "calls.py"),
    ]
    said, _, _ = mypy.run(words)
    assert re.findall(r'Revealed type is "(.*)"', said) == list(CALLS.values())
    assert re.findall(r"error: (.*?)  \[", said) == list(MISTAKES.values()), said
