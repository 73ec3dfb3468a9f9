"""Reference curves: the answer to "is my loss normal?", or why there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from albert.pretrain.settings import PretrainSettings
from albert.recipes import SHIPPED, locate_recipe, shipped_recipes
from albert.recipes.curves import Reference, find_reference
from albert.settings import flatten, read_settings

CURVES = sorted(SHIPPED.glob("*.curve.json"))


def facts(recipe: str, *assignments: str, vocab_size: int) -> dict[str, Any]:
    """Return what a run of a recipe is compared by."""
    settings = read_settings(PretrainSettings, file=locate_recipe(recipe), assignments=assignments)
    return flatten(settings.model_dump()) | {"vocab_size": vocab_size}


@pytest.mark.parametrize("path", CURVES, ids=lambda path: path.name)
def test_a_shipped_curve_belongs_to_a_recipe_as_it_is_shipped(path: Path) -> None:
    recipe, curve = path.name.removesuffix(".curve.json"), json.loads(path.read_text())
    assert recipe in shipped_recipes()
    reference = find_reference(recipe, facts(recipe, vocab_size=curve["conditions"]["vocab_size"]))
    assert isinstance(reference, Reference)
    for points in reference.curves.values():
        steps = [step for step, _ in points]
        assert steps == sorted(set(steps))
        assert steps[-1] == curve["conditions"]["train.steps"], "the whole run"


def test_values_between_two_points_are_interpolated_and_none_is_made_up_outside() -> None:
    reference = Reference("laptop", {}, "", {"valid_mlm_loss": [(100, 6.0), (200, 5.0)]})
    assert reference.at(150) == {"valid_mlm_loss": pytest.approx(5.5)}
    assert reference.at(200) == {"valid_mlm_loss": 5.0}
    assert reference.at(99) == reference.at(201) == {}


@pytest.mark.parametrize(
    ("recipe", "assignments", "vocab_size", "said"),
    [
        ("laptop", [], 16_000, "that of 'laptop' has vocab_size=8000, this run 16000"),
        ("laptop", ["train.batch_size=32"], 8_000, "that of 'laptop' has train.batch_size=16, this run 32"),
        ("laptop", ["train.steps=500"], 8_000, "that of 'laptop' has train.steps=10000, this run 500"),
        ("laptop", ["data.mask_prob=0.15"], 8_000, "that of 'laptop' has data.mask_prob=0.25, this run 0.15"),
        ("laptop", ["model.embedding_size=128"], 8_000, "has model.embedding_size=64, this run 128"),
        ("laptop", ["start_from=base"], 8_000, "that of 'laptop' has start_from=small, this run base"),
        ("paper", [], 30_000, "no reference curve for these settings (recipes that have one: laptop"),
    ],
)
def test_where_the_conditions_differ_the_difference_is_named(
    recipe: str, assignments: list[str], vocab_size: int, said: str
) -> None:
    answer = find_reference(recipe, facts(recipe, *assignments, vocab_size=vocab_size))
    assert isinstance(answer, str)
    assert said in answer


def test_own_settings_have_no_reference() -> None:
    assert "no reference curve for these settings" in str(find_reference(None, {}))
    assert "no reference curve for these settings" in str(find_reference("my/own.toml", {}))
