"""Retrying: attempts that learn nothing or explode are given up, and one at a lower rate takes their place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from albert.finetune import Finetuned, finetune
from albert.finetune import run as one_run
from albert.tasks.finetuning import FinetuneSettings
from albert.tasks.request import Opened
from albert.train.loop import BadLoss

MakeData = Callable[..., Opened]
MakeSettings = Callable[..., FinetuneSettings]


def retry(data: Opened, model: Path, out: Path, settings: FinetuneSettings, *, seeds: int = 1) -> Finetuned:
    result = finetune(data, str(model), out, settings=settings, retry=True, seeds=seeds)
    assert isinstance(result, Finetuned)
    return result


def test_a_rate_that_is_too_high_is_halved_until_a_run_learns(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    """At 0.04 nothing is learnt; at 0.01 it is, and at 0.005, the last attempt's, surely."""
    out = tmp_path / "run"
    result = retry(opened(), model_folder, out, settings(optimizer__lr=0.04))
    *given_up, rescued = result.runs
    assert given_up, "the first attempt learns nothing"
    assert all(not run.learnt and run.ended_early and run.steps < 60 for run in given_up)
    assert all("--retry" not in (run.problem or "") for run in given_up), "that is what is being done"
    assert rescued.learnt
    assert (rescued.steps, rescued.problem) == (60, None)
    assert result.chosen == rescued
    summary = json.loads((out / "summary.json").read_text())
    assert summary["chosen"] == rescued.folder == f"seed-0-retry-{len(given_up)}"
    assert [run["folder"] for run in summary["runs"]] == [run.folder for run in result.runs]
    assert summary["seeds"] == 1
    assert summary["median"] == summary["lowest"] == rescued.score, "attempts that were given up don't count"
    kept, own = out / "model", out / rescued.folder / "model"
    assert (kept / "model.safetensors").read_bytes() == (own / "model.safetensors").read_bytes()
    card = (kept / "README.md").read_text()
    assert f"- rate {rescued.lr}," in card, "the rate is that of the model, not of the first attempt"
    assert f"The best of {len(result.runs)} attempts with one seed." in card
    assert retry(opened(), model_folder, out, settings(optimizer__lr=0.04)) == result, "the same command only reads"


def test_a_seed_whose_loss_explodes_is_tried_again_and_the_others_are_not(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = one_run.train

    def explode(*args: Any, **options: Any) -> Any:
        if options["peak"] > 4e-3 and options["settings"].seed == 0:
            raise BadLoss("step 3: the loss is nan")
        return trained(*args, **options)

    monkeypatch.setattr(one_run, "train", explode)
    out = tmp_path / "run"
    result = retry(opened(), model_folder, out, settings(), seeds=2)
    assert [run.folder for run in result.runs] == ["seed-0", "seed-0-retry-1", "seed-1"]
    exploded, rescued, other = result.runs
    assert (exploded.score, exploded.problem, exploded.learnt) == (None, "step 3: the loss is nan", False)
    assert not (out / "seed-0" / "model").exists()
    assert rescued.learnt
    assert other.learnt
    assert (rescued.lr, other.lr) == (2.5e-3, 5e-3)
    assert result.final_runs() == [rescued, other]
    assert json.loads((out / "seed-0" / "summary.json").read_text())["problem"] == exploded.problem
    card = (out / "model" / "README.md").read_text()
    assert "The best of 2 seeds" in card
    assert "| seed-0 | - | 0.005 |" in card
    assert (out / "report.html").exists()
