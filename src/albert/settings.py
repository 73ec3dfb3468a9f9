"""Settings from the command line: `key=value`, the value read as TOML.

Knows no particular setting; whoever takes them checks the names.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from typing import Any

from albert.errors import UsageError


def parse_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """Read `--set key=value` words; a value that is not TOML is taken as text."""
    values: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UsageError(f"--set {assignment}: write it as key=value")
        try:
            values[name] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            values[name] = text.strip()
    return values
