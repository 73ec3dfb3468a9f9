"""Shipped recipes: the settings of a pre-training run, by name.

A recipe is a TOML file beside this one, read like anybody's. Its head says for whom it is, what it costs, and what of
it has been tried and what has not. Knows no setting.
"""

from __future__ import annotations

import importlib.resources
from pathlib import Path

from albert.errors import UsageError, did_you_mean

SHIPPED = Path(str(importlib.resources.files("albert"))) / "recipes"


def shipped_recipes() -> list[str]:
    """List the recipes that come with the package."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def locate_recipe(name: str) -> Path:
    """Return the file that `--config` means: one that exists wins over a shipped name, as with models."""
    path, names = Path(name), shipped_recipes()
    if path.exists() and not path.is_dir():
        return path
    if name in names:
        return SHIPPED / f"{name}.toml"
    hint = did_you_mean(path.stem, names)
    known = ", ".join(names)
    raise UsageError(
        f"--config {name}: neither a file nor a shipped recipe: {hint if known in hint else f'{hint} (known: {known})'}"
    )
