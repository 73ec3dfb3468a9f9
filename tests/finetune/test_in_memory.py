"""`albert.tune`: tables in memory are trained on like files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import albert
from albert.errors import DataError, UsageError
from word_model import sentences

LABELS = ("bad", "good")
FAST = {"train.steps": 20, "train.batch_size": 16, "optimizer.lr": 5e-3, "train.precision": "fp32"}


def rows(count: int, *, seed: int) -> list[dict[str, Any]]:
    drawn = sentences(count, LABELS, seed=seed)
    return [{"id": np.int64(i), "text": one.text, "label": LABELS[one.target]} for i, one in enumerate(drawn)]  # type: ignore[index]


class Series:
    """What a single column of pandas looks like from outside."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def to_dict(self) -> dict[int, str]:
        return dict(enumerate(self._texts))


class Frame:
    """What pandas' DataFrame looks like from outside."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows, self.columns = rows, list(rows[0])

    def to_dict(self, orient: str) -> list[dict[str, Any]]:
        assert orient == "records"
        return self._rows


def test_lists_of_dicts_and_frames_are_tuned_on(model_folder: Path, tmp_path: Path) -> None:
    told: list[str] = []
    result = albert.tune(
        model_folder,
        rows(80, seed=0),
        tmp_path / "run",
        dev=Frame(rows(20, seed=1)),
        test=rows(10, seed=0),
        settings=FAST,
        tell=told.append,
    )
    assert (result.chosen.steps, set(result.chosen.scores)) == (20, {"valid_accuracy", "valid_macro_f1"})
    assert "test_accuracy" in result.test
    assert albert.load(tmp_path / "run").classify("the ship sat lovely").label in LABELS
    assert any("classification" in line for line in told)
    assert any("the first: test:1 is data:1: scores on them say little" in line for line in told)
    assert "/albert-" not in (tmp_path / "run" / "decisions.jsonl").read_text(), "places, without a temporary path"


def test_several_columns_are_one_text(model_folder: Path, tmp_path: Path) -> None:
    several = [row | {"title": f"number {i}"} for i, row in enumerate(rows(40, seed=0))]
    albert.tune(model_folder, several, tmp_path / "run", settings=FAST, columns={"text": ["title", "text"]})
    assert albert.load(tmp_path / "run").columns["text"] == "title,text"


class NAType:
    """Stands for what pandas has for a missing value of a nullable column."""

    def __repr__(self) -> str:
        return "<NA>"


@pytest.mark.parametrize("missing", [None, float("nan"), NAType()])
def test_a_missing_value_is_missing_however_it_is_written(missing: object, model_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^data:21: column 'text' is empty"):
        albert.tune(model_folder, [*rows(20, seed=0), {"text": missing, "label": "x"}], tmp_path / "run", settings=FAST)


def test_what_is_wrong_is_named_without_a_temporary_path(model_folder: Path, tmp_path: Path) -> None:
    bad = [*rows(20, seed=0), {"text": None, "label": float("nan")}]
    with pytest.raises(DataError, match=r"^data:21: column 'text' is empty"):
        albert.tune(model_folder, bad, tmp_path / "run", settings=FAST)
    with pytest.raises(DataError, match=r"^data: has no rows$"):
        albert.tune(model_folder, [], tmp_path / "run", settings=FAST)
    with pytest.raises(DataError, match=r"^data:1: a str, must be a dict of columns"):
        albert.tune(model_folder, ["a text"], tmp_path / "run", settings=FAST)
    with pytest.raises(DataError, match=r"^data:1: a str, must be a dict of columns"):
        albert.tune(model_folder, Series(["a text"]), tmp_path / "run", settings=FAST)
    with pytest.raises(UsageError, match=r"^data: a int: give a path, a list of dicts or a DataFrame"):
        albert.tune(model_folder, 3, tmp_path / "run", settings=FAST)
    with pytest.raises(UsageError, match="did you mean 'steps'"):
        albert.tune(model_folder, rows(20, seed=0), tmp_path / "run", settings={"train.stepz": 3})
