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
    'model.classify("a")': "albert.tasks.classification.Classified",
    'model.classify("a").label': "str",
    'model.classify(["a"])': "list[albert.tasks.classification.Classified]",
    '[one.value for one in model.classify(["a"], ["b"])]': "list[float]",
    'model.answer(["a"], "b")': "list[albert.tasks.span.Answer]",
    'model.choose("a", ["b", "c"])': "albert.tasks.choice.Chosen",
    'model.tag([["a", "b"]])': "list[albert.tasks.tagging.Tagged]",
    'model.fill(["a"])': "list[tuple[albert.inference.fill.Blank, ...]]",
    'model.similarity("a", "b")': "float",
    'model.similarity("a", ["b"])': "list[float]",
    'model.similarity(["a"], ["b"])': "list[float]",
}


def test_a_type_checker_knows_that_a_text_gives_one_result_and_a_list_a_list(tmp_path: Path) -> None:
    lines = ["import albert", 'model = albert.load("folder")', *(f"reveal_type({call})" for call in CALLS)]
    (tmp_path / "calls.py").write_text("\n".join(lines))
    words = [
        "--config-file",
        str(ROOT / "pyproject.toml"),
        "--cache-dir",
        str(ROOT / ".mypy_cache"),
        str(tmp_path / "calls.py"),
    ]
    said, _, status = mypy.run(words)
    assert re.findall(r'Revealed type is "(.*)"', said) == list(CALLS.values())
    assert status == 0, said
