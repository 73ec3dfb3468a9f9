"""What the package ships beside code."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_type_checkers_are_told_that_the_package_is_typed_and_wheels_hold_the_mark() -> None:
    assert (Path(str(files("albert"))) / "py.typed").is_file()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "py.typed" in project["tool"]["setuptools"]["package-data"]["albert"]


def test_the_readme_says_how_to_install() -> None:
    assert "pip install -e ." in (ROOT / "README.md").read_text(encoding="utf-8")
