"""The one-way order of the layers, read from the source: imports inside functions and for types count too."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

SOURCE = Path(__file__).resolve().parents[1] / "src"
PACKAGE = SOURCE / "albert"

# From the ground up. A part imports from the layers below its own and from nothing else: not from its neighbours.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("files", "settings", "batch"),
    ("hardware", "cluster"),
    ("text",),
    ("tokenizer",),
    ("data", "model"),
    ("optim", "tasks"),
    ("train", "labelled"),
    ("inference", "interop"),
    ("report",),
    ("recipes", "pretrain", "finetune"),
    ("evaluate", "adapt", "serve"),
    ("export",),
    ("study",),
    ("cli",),
    ("__init__",),
    ("__main__",),
)
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}
# What a part has no business with, though it lies below: pre-training text and labelled data meet in no module but the
# stages', and nothing that uses a model knows how one is trained.
STRANGERS: dict[str, tuple[str, ...]] = {
    "tasks": ("data",),
    "labelled": ("data", "optim"),
    "inference": ("data", "optim", "train"),
    "interop": ("data", "optim", "train", "tasks", "labelled"),
    "report": ("data", "optim", "labelled", "inference", "interop"),
    "recipes": ("data", "model", "optim", "train", "tasks", "labelled", "inference", "interop", "report"),
}
WITHOUT_TORCH = ("errors", "settings", "files", "hardware", "cluster", "batch", "text", "tokenizer", "data")
ROWS_WITHOUT_TORCH = (
    "rows", "formats", "class_folders", "cells", "column_names", "sample", "detection", "targets", "holdout", "request",
    "table_check", "tag_rows", "tag_check", "check", "conll", "glue_layouts", "recognition",
)  # fmt: skip
HEAVY = {"torch", "transformers", "safetensors", "tensorflow", "openvino", "onnx", "onnxruntime"}


def modules() -> dict[str, Path]:
    """Return every module of the package by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)] = path
    return found


MODULES = modules()


def part_of(module: str) -> str:
    """Name the folder or file of the table that a module belongs to; `albert` itself is the front door."""
    return [*module.split("."), "__init__"][1]


def imports(module: str) -> set[str]:
    """List what a module imports, as dotted names, wherever in the file it does so."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        match node:
            case ast.Import(names=names):
                found |= {alias.name for alias in names}
            case ast.ImportFrom(module=source, names=names, level=level):
                above = package.split(".")[: len(package.split(".")) - level + 1] if level else []
                origin = ".".join([*above, *([source] if source else [])])
                found |= {
                    f"{origin}.{alias.name}" if f"{origin}.{alias.name}" in MODULES else origin for alias in names
                }
            case ast.Call(func=ast.Name(id="import_module" | "__import__"), args=[ast.Constant(value=str(name)), *_]):
                found.add(name)
            case ast.Call(func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(name)), *_]):
                found.add(name)
    return found - {module}


def own(names: set[str]) -> set[str]:
    return {name for name in names if name.split(".")[0] == "albert" and name != "albert"}


def test_every_part_of_the_order_is_there() -> None:
    assert set(LEVEL) == {part_of(module) for module in MODULES}
    for part, others in STRANGERS.items():
        assert all(LEVEL[other] < LEVEL[part] for other in others), f"{part}: the order alone forbids some of {others}"


def test_the_folders_of_tests_are_those_of_the_code() -> None:
    folders = {path.parent.name for path in Path(__file__).parent.glob("*/test_*.py")}
    assert folders - set(LEVEL) == {"end_to_end", "golden", "parity"}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_from_below(module: str) -> None:
    part = part_of(module)
    assert part in LEVEL, f"{module}: give '{part}' a layer in {Path(__file__).name}"
    for target in sorted(own(imports(module))):
        other = part_of(target)
        assert other in LEVEL, f"{module} imports {target}, which is in no layer"
        allowed = LEVEL[other] < LEVEL[part] or other == part
        assert allowed, f"{module} (layer {LEVEL[part]}) imports {target} (layer {LEVEL[other]})"
        assert other not in STRANGERS.get(part, ()), f"{module} imports {target}: {part} has no business with {other}"


def test_no_two_modules_import_each_other_even_in_a_roundabout_way() -> None:
    graph = {module: own(imports(module)) for module in MODULES}
    done: set[str] = set()

    def walk(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, "a circle: " + " -> ".join([*trail[trail.index(module) :], module])
        if module not in done:
            for target in graph.get(module, ()):
                walk(target, (*trail, module))
            done.add(module)

    for module in graph:
        walk(module, ())


LIGHT = [
    *(name for name in MODULES if part_of(name) in WITHOUT_TORCH),
    *(f"albert.labelled.{name}" for name in ROWS_WITHOUT_TORCH),
]


@pytest.mark.parametrize("module", LIGHT)
def test_text_tokenizer_data_and_rows_never_name_torch(module: str) -> None:
    heavy = {name for name in imports(module) if name.split(".")[0] in HEAVY}
    if module == "albert.hardware":  # asks torch for the device, inside functions that only the model's side calls
        heavy.discard("torch")
    assert not heavy, f"{module} imports {', '.join(sorted(heavy))}"


def loaded_by(code: str) -> list[str]:
    """Run code in a fresh interpreter and list the top-level modules that it loaded."""
    script = f"{code}\nimport json, sys\nprint(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded: list[str] = json.loads(done.stdout.splitlines()[-1])
    return loaded


def test_importing_the_whole_data_path_loads_no_torch() -> None:
    loaded = loaded_by("\n".join(f"import {name}" for name in LIGHT))
    assert "albert" in loaded
    assert HEAVY & set(loaded) == set()


def test_every_package_that_is_imported_is_declared_and_locked() -> None:
    project = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = {Requirement(line).name for line in project["dependencies"]}
    extras = {Requirement(line).name for lines in project["optional-dependencies"].values() for line in lines}
    tops = {name.split(".")[0] for module in MODULES for name in imports(module)}
    known = {"tensorflow": ["tensorflow-cpu"], **metadata.packages_distributions()}
    missing = {
        top
        for top in tops - sys.stdlib_module_names - {"albert"}
        if not {name.lower().replace("_", "-") for name in known.get(top, [top])} & (core | extras)
    }
    assert missing == set(), "declare it in pyproject.toml, then `make lock`"
    locked = (SOURCE.parent / "requirements.lock").read_text(encoding="utf-8").splitlines()
    assert core <= {line.partition("==")[0].lower().replace("_", "-") for line in locked}


def test_the_check_of_a_table_and_of_tagged_words_loads_no_torch(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,label\na ship,good\n,bad\na boat,bad\n")
    (tmp_path / "a.conll").write_text("Ann B-PER\ncame O\n\nBob\n")
    (tmp_path / "a.jsonl").write_text(
        '{"tokens": ["Ann", "came"], "tags": ["B-PER", "O"]}\n{"tokens": [], "tags": []}\n'
    )
    loaded = loaded_by(f"""
import sys
from albert.cli import main
for words in ("a.csv", "none.csv", "a.conll", "a.conll --task tagging", "a.jsonl"):
    sys.argv = ["albert", "data", "check", *f"{tmp_path}/{{words}}".split()]
    try:
        main()
    except SystemExit as ended:
        assert ended.code == 3, ended.code
    else:
        raise AssertionError
""")
    assert HEAVY & set(loaded) == set()


def test_the_help_of_every_command_loads_neither_torch_nor_numpy() -> None:
    loaded = loaded_by("""
import typer
from typer.testing import CliRunner
from albert.cli import app

def walk(command, path):
    result = CliRunner().invoke(app, [*path, "--help"])
    assert result.exit_code == 0, result.output
    for name, child in getattr(command, "commands", {}).items():
        walk(child, [*path, name])

walk(typer.main.get_command(app), [])
""")
    assert "typer" in loaded
    assert (HEAVY | {"numpy", "pyarrow", "sklearn", "matplotlib"}) & set(loaded) == set()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("import albert.model", {"albert.model"}),
        ("from albert import files", {"albert.files"}),
        ("from albert.files import sha256", {"albert.files"}),
        ("from . import doctor", {"albert.cli.doctor"}),
        ("from .doctor import doctor", {"albert.cli.doctor"}),
        ("from ..files import sha256", {"albert.files"}),
        ("def f():\n    import torch", {"torch"}),
        ("if TYPE_CHECKING:\n    from albert.model import config", {"albert.model.config"}),
        ("importlib.import_module('albert.model')", {"albert.model"}),
    ],
)
def test_no_way_of_importing_escapes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str, found: set[str]
) -> None:
    path = tmp_path / "__init__.py"
    path.write_text(line)
    monkeypatch.setitem(MODULES, "albert.cli", path)
    assert imports("albert.cli") == found
