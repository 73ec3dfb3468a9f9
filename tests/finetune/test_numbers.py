"""Regression on numbers of any size: centred and scaled for own data, untouched for STS-B."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import albert
from albert.errors import ModelError
from albert.finetune import Finetuned, finetune
from albert.finetune.settings import FinetuneSettings
from albert.labelled.request import Opened
from albert.tasks.classification import Regression, TextExample
from albert.tasks.task import Splits


def prices(rows: Any) -> list[TextExample]:
    return [TextExample(row.text, target=50_000.0 + 9_000.0 * row.target) for row in rows]


def test_prices_are_learnt_and_predicted_in_their_own_units(
    opened: Callable[..., Opened], model_folder: Path, settings: Callable[..., FinetuneSettings], tmp_path: Path
) -> None:
    plain = opened("bad", "fair", "good").splits
    splits = Splits(prices(plain.train), {"dev": prices(plain.dev["dev"])})
    data = Opened(Regression().fitted(splits.train), splits, [], "prices")
    result = finetune(data, str(model_folder), tmp_path / "own", settings=settings())
    assert isinstance(result, Finetuned)
    unscaled = finetune(replace(data, task=Regression()), str(model_folder), tmp_path / "plain", settings=settings())
    assert isinstance(unscaled, Finetuned)
    variance = 9_000.0**2 * 2 / 3
    assert result.chosen.scores["valid_pearson"] > 0.5
    assert result.chosen.scores["valid_mean_squared_error"] < variance
    assert unscaled.chosen.scores["valid_mean_squared_error"] > 10 * variance, "what it was before"
    remembered = json.loads((tmp_path / "own" / "model" / "task.json").read_text())
    assert 50_000 < remembered["centre"] < 68_000
    assert 5_000 < remembered["scale"] < 9_000
    assert "centre" not in json.loads((tmp_path / "plain" / "model" / "task.json").read_text())
    said = albert.load(tmp_path / "own" / "model").classify("the ship sat lovely")
    assert 40_000 < said.value < 80_000


def test_a_scale_that_is_none_is_refused_and_equal_targets_have_the_scale_1() -> None:
    with pytest.raises(ModelError, match=r"scale=0\.0"):
        Regression(scale=0.0)
    fitted = Regression().fitted([TextExample("a", target=3.0), TextExample("b", target=3.0)])
    assert (fitted.centre, fitted.scale) == (3.0, 1.0)
