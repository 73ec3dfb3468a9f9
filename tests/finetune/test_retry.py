"""Retrying: attempts that learn nothing or explode are given up, and one at a lower rate takes their place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from albert.finetune import Finetuned, finetune
from albert.finetune import run as one_run
from albert.finetune.settings import FinetuneSettings
from albert.labelled.request import Opened
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


def explode_late(monkeypatch: pytest.MonkeyPatch, *seeds: int, at: int) -> None:
    """Let the losses of some seeds explode in the step after `at`."""
    trained = one_run.train

    def explode(*args: Any, **options: Any) -> Any:
        if options["settings"].seed in seeds:
            options["settings"] = options["settings"].model_copy(update={"steps": at})
            trained(*args, **options)
            raise BadLoss(f"step {at + 1}: the loss is nan")
        return trained(*args, **options)

    monkeypatch.setattr(one_run, "train", explode)


def test_without_retrying_a_seed_that_explodes_does_not_stop_the_others(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explode_late(monkeypatch, 0, at=40)
    out = tmp_path / "run"
    result = finetune(opened(), str(model_folder), out, settings=settings(), seeds=2)
    assert isinstance(result, Finetuned)
    exploded, other = result.runs
    assert (exploded.steps, exploded.problem, exploded.ended_early) == (40, "step 41: the loss is nan", True)
    assert exploded.score is not None, "it had been evaluated, and its best model is there"
    assert exploded.best_step in (20, 40)
    assert exploded.scores["valid_accuracy"] == exploded.score
    assert (out / "seed-0" / "model").is_dir()
    assert (other.steps, other.problem) == (60, None)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["seeds"] == 2
    assert summary["highest"] == max(exploded.score, other.score or 0.0)


def test_a_run_that_learnt_and_then_exploded_is_tried_again_and_the_best_is_kept(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explode_late(monkeypatch, 0, at=40)
    result = retry(opened(), model_folder, tmp_path / "run", settings())
    assert [run.folder for run in result.runs] == ["seed-0", "seed-0-retry-1"]
    assert result.chosen.score == max(run.score or 0.0 for run in result.runs)


def test_where_nothing_comes_to_an_evaluation_it_is_an_error(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: Any, **__: Any) -> Any:
        raise BadLoss("step 3: the loss is nan")

    monkeypatch.setattr(one_run, "train", explode)
    with pytest.raises(BadLoss, match="run: no run came to an evaluation: step 3: the loss is nan"):
        retry(opened(), model_folder, tmp_path / "run", settings())
    assert len(json.loads((tmp_path / "run" / "summary.json").read_text())["runs"]) == 4


def test_asking_for_fewer_seeds_takes_none_away(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    results = [
        finetune(opened(), str(model_folder), tmp_path / "run", settings=settings(), seeds=seeds) for seeds in (3, 2)
    ]
    assert results[0] == results[1]
    assert len(json.loads((tmp_path / "run" / "summary.json").read_text())["runs"]) == 3
