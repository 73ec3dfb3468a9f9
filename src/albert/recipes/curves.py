"""Reference curves: what a shipped recipe's metrics were, step by step, when it was run whole.

"Is my loss normal?" has an answer where the recipe, the size of the vocabulary, the batch and the length of the run
are those of the reference. A curve is a JSON file beside its recipe. Knows neither settings nor runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from albert.recipes import SHIPPED


@dataclass(frozen=True)
class Reference:
    """The curves of one whole run of a recipe."""

    recipe: str
    conditions: Mapping[str, Any]  # what must be the same, by dotted names
    origin: str  # where the run is recorded
    curves: Mapping[str, list[tuple[int, float]]]  # metric → (step, value), ascending

    def at(self, step: int) -> dict[str, float]:
        """Return every metric that is known around a step, interpolated."""
        found = {}
        for name, points in self.curves.items():
            for (before, low), (after, high) in pairwise(points):
                if before <= step <= after:
                    found[name] = low + (high - low) * (step - before) / (after - before)
        return found


def find_reference(recipe: str | None, facts: Mapping[str, Any]) -> Reference | str:
    """Return the curves that a run can be compared with, or why there are none; `facts` are its settings by name."""
    path = SHIPPED / f"{recipe}.curve.json"
    if recipe is None or not path.is_file():
        known = sorted(path.name.removesuffix(".curve.json") for path in SHIPPED.glob("*.curve.json"))
        return f"no reference curve for these settings (recipes that have one: {', '.join(known)})"
    values = json.loads(path.read_text(encoding="utf-8"))
    curves = {name: [(step, value) for step, value in points] for name, points in values["curves"].items()}
    reference = Reference(recipe, values["conditions"], values["origin"], curves)
    for name, expected in reference.conditions.items():
        if facts.get(name) != expected:
            return f"no reference curve: that of '{recipe}' has {name}={expected}, this run {facts.get(name)}"
    return reference
