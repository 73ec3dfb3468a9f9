"""The model of a finished run was deleted: the same command writes it again, or says how to have it again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from albert.errors import ModelError
from albert.finetune import Finetuned, finetune
from albert.finetune.settings import FinetuneSettings
from albert.labelled.request import Opened

MakeData = Callable[..., Opened]
MakeSettings = Callable[..., FinetuneSettings]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("summary", [True, False])
def test_it_comes_back_from_its_checkpoint(
    summary: bool, opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    out, chosen = tmp_path / "run", settings(train__keep=3)
    first = finetune(opened(noise=0.2), str(model_folder), out, settings=chosen)
    before, decisions = contents(out / "model"), (out / "decisions.jsonl").read_bytes()
    shutil.rmtree(out / "model")
    (out / "decisions.jsonl").unlink()
    if not summary:  # deleted before the run had quite ended
        (out / "summary.json").unlink()
    assert finetune(opened(noise=0.2), str(model_folder), out, settings=chosen) == first
    assert contents(out / "model") == before
    assert (out / "decisions.jsonl").read_bytes() == decisions


def test_the_model_of_one_of_several_seeds_comes_back_too(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    out, chosen = tmp_path / "run", settings(train__steps=20)
    result = finetune(opened(), str(model_folder), out, settings=chosen, seeds=2)
    assert isinstance(result, Finetuned)
    before = contents(out / "model")
    for folder in (out, out / result.chosen.folder):
        shutil.rmtree(folder / "model")
    finetune(opened(), str(model_folder), out, settings=chosen, seeds=2)
    assert contents(out / "model") == before


def test_without_its_checkpoint_the_error_says_what_to_delete_and_that_helps(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, chosen, data = tmp_path / "run", settings(train__keep=1), opened()
    scores = [0.6, 0.9, 0.7]
    monkeypatch.setattr(type(data.task), "baseline", lambda *_: None)
    monkeypatch.setattr("albert.finetune.words.bag_of_words", lambda *_: None)
    monkeypatch.setattr(type(data.task), "score", lambda *_: {"accuracy": scores.pop(0)})
    finetune(data, str(model_folder), out, settings=chosen)
    before = (out / "model" / "model.safetensors").read_bytes()
    shutil.rmtree(out / "model")
    with pytest.raises(ModelError, match=r"step-00000040 is not kept: delete .*checkpoints and .*summary\.json"):
        finetune(data, str(model_folder), out, settings=chosen)
    shutil.rmtree(out / "checkpoints")
    (out / "summary.json").unlink()
    scores += [0.6, 0.9, 0.7]
    finetune(data, str(model_folder), out, settings=chosen)
    assert (out / "model" / "model.safetensors").read_bytes() == before


def test_a_run_without_a_single_score_is_no_run_whose_model_is_gone(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = opened()
    monkeypatch.setattr(type(data.task), "score", lambda *_: {"accuracy": float("nan")})
    result = finetune(data, str(model_folder), tmp_path / "run", settings=settings(train__steps=20))
    assert isinstance(result, Finetuned)
    assert (result.chosen.score, result.chosen.learnt) == (None, False)
    assert "no score" in (result.chosen.problem or "")
