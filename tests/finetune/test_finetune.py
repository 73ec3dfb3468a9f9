"""Fine-tuning in this process: it learns, keeps the best, resumes exactly, stops, freezes, chains, and says no."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from albert.errors import DataError, ModelError, UsageError
from albert.finetune import Finetuned, FinetunePlan, finetune
from albert.finetune.settings import FinetuneSettings, TuneSettings
from albert.finetune.start import Start
from albert.inference.early_exit import EarlyExitEngine
from albert.inference.model import load
from albert.inference.predictor import Predictor
from albert.inference.torch_engine import TorchEngine
from albert.labelled.request import Opened
from albert.model.folder import load_model
from albert.tasks.bag_of_words import bag_of_words
from albert.tasks.classification import Regression, TextExample
from albert.tasks.task import Splits
from albert.tokenizer import Tokenizer
from albert.train.checkpoint import newest_intact
from albert.train.loop import Progress

MakeData = Callable[..., Opened]
MakeSettings = Callable[..., FinetuneSettings]


def tune(data: Opened, model: Path, out: Path, settings: FinetuneSettings, **options: Any) -> Finetuned:
    result = finetune(data, str(model), out, settings=settings, **options)
    assert isinstance(result, Finetuned)
    return result


def metrics(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def final(out: Path) -> dict[str, torch.Tensor]:
    path = newest_intact(out / "checkpoints")
    assert path is not None
    return load_file(path / "weights.safetensors") | load_file(path / "optimizer.safetensors")


def weights(model: Path) -> dict[str, torch.Tensor]:
    return load_file(model / "model.safetensors")


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def stop_at(step: int) -> Callable[[Progress], None]:
    def observe(progress: Progress) -> None:
        if progress.step >= step:
            raise KeyboardInterrupt

    return observe


def test_it_learns_and_leaves_a_run_folder_with_a_model_that_predicts(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    data, out = opened(), tmp_path / "run"
    result = tune(data, model_folder, out, settings())
    assert result.chosen.learnt
    assert result.chosen.score == max(line["valid_accuracy"] for line in metrics(out) if "valid_accuracy" in line) > 0.9
    assert 0.4 < result.baseline < 0.8
    record = json.loads((out / "run.json").read_text())["identity"]
    assert (record["stage"], record["data"], record["examples"]["train"]) == ("finetune", data.fingerprint, 160)
    assert record["settings"]["train"]["steps"] == 60
    assert json.loads((out / "summary.json").read_text())["score"] == result.chosen.score
    task_file = json.loads((out / "model" / "task.json").read_text())
    assert task_file == {
        "kind": "classification", "name": "classification", "best": "accuracy", "max_length": 64,
        "columns": {"text": "body"},
    }  # fmt: skip
    loaded = load_model(out / "model")
    assert loaded.model.config.labels == ("bad", "good")
    assert (loaded.new, loaded.dropped) == ((), ())
    predictor = Predictor(TorchEngine(loaded.model), Tokenizer.load(out / "model"))
    said = list(predictor.predict(data.task, [TextExample("the ship sat lovely"), TextExample("awful rain")]))
    assert [one.label for one in said] == ["good", "bad"]


def test_a_resumed_run_is_the_uninterrupted_run_bit_for_bit(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    chosen = settings(tune__dropout=0.1, train__micro_batch=8)
    tune(opened(), model_folder, tmp_path / "whole", chosen)
    for step in (25, 45):
        with pytest.raises(KeyboardInterrupt):
            tune(opened(), model_folder, tmp_path / "cut", chosen, observe=stop_at(step))
    tune(opened(), model_folder, tmp_path / "cut", chosen)
    assert same(final(tmp_path / "whole"), final(tmp_path / "cut"))
    assert same(weights(tmp_path / "whole" / "model"), weights(tmp_path / "cut" / "model"))
    timeless = [
        [
            {key: value for key, value in line.items() if key not in ("tokens_per_second", "seconds")}
            for line in metrics(tmp_path / name)
        ]
        for name in ("whole", "cut")
    ]
    assert timeless[0] == timeless[1]
    before = metrics(tmp_path / "cut")
    again = tune(opened(), model_folder, tmp_path / "cut", chosen)
    assert metrics(tmp_path / "cut") == before
    assert again.chosen.learnt


def test_a_run_may_log_and_save_otherwise_when_resumed_but_not_evaluate_otherwise(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        tune(opened(), model_folder, tmp_path / "run", settings(), observe=stop_at(25))
    with pytest.raises(
        UsageError, match=r"settings\.train\.eval_every was 20, is 15"
    ):  # it decides which model is best
        tune(opened(), model_folder, tmp_path / "run", settings(train__eval_every=15))
    again = settings(train__save_every=30, train__log_every=7, tune__long="first")  # as the rule had it
    tune(opened(), model_folder, tmp_path / "run", again)
    tune(opened(), model_folder, tmp_path / "whole", settings())
    assert same(weights(tmp_path / "run" / "model"), weights(tmp_path / "whole" / "model"))


def test_the_best_model_is_kept_not_the_last(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = iter([0.6, 0.9, 0.7])
    data = opened()
    monkeypatch.setattr(type(data.task), "baseline", lambda *_: None)
    monkeypatch.setattr("albert.finetune.words.bag_of_words", lambda *_: None)
    monkeypatch.setattr(type(data.task), "score", lambda *_: {"accuracy": next(scores)})
    result = tune(data, model_folder, tmp_path / "run", settings())
    assert (result.chosen.best_step, result.chosen.steps, result.chosen.score) == (40, 60, 0.9)
    kept = weights(tmp_path / "run" / "model")
    last = load_file(tmp_path / "run" / "checkpoints" / "step-00000060" / "weights.safetensors")
    middle = load_file(tmp_path / "run" / "checkpoints" / "step-00000040" / "weights.safetensors")
    assert torch.equal(kept["classifier.weight"], middle["heads.classifier.linear.weight"])
    assert not torch.equal(kept["classifier.weight"], last["heads.classifier.linear.weight"])


def test_early_stopping_ends_a_run_and_stays_ended(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = opened()
    scores = iter([0.9, 0.8, 0.7])
    monkeypatch.setattr(type(data.task), "baseline", lambda *_: None)
    monkeypatch.setattr("albert.finetune.words.bag_of_words", lambda *_: None)
    monkeypatch.setattr(type(data.task), "score", lambda *_: {"accuracy": next(scores)})
    chosen = settings(train__steps=200, tune__patience=2)
    result = tune(data, model_folder, tmp_path / "run", chosen)
    assert (result.chosen.steps, result.chosen.best_step, result.chosen.ended_early) == (60, 20, True)
    (tmp_path / "run" / "summary.json").unlink()  # killed between the last checkpoint and the summary
    again = tune(data, model_folder, tmp_path / "run", chosen)
    assert again.chosen == result.chosen


def test_a_run_that_learns_nothing_says_so_and_what_to_change(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = opened()
    result = tune(data, model_folder, tmp_path / "run", settings(optimizer__lr=1e-9, tune__dropout=0.1))
    assert not result.chosen.learnt
    assert result.chosen.problem is not None
    for advice in (
        "the baseline",
        "optimizer.lr=5e-10",
        "warmup_steps=12",
        "train.seed=1",
        "tune.dropout=0.0",
    ):
        assert advice in result.chosen.problem
    assert "learnt nothing that dev shows" in result.chosen.problem
    assert "yet" not in result.chosen.problem, "the run is over"
    assert caplog.text.count("learnt nothing yet") == 1, "said during training, once"


def test_retry_halves_the_rate_with_another_seed_until_it_learns(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    chosen = settings(optimizer__lr=5.0, optimizer__clip=1000.0, train__on_bad_loss="skip")
    result = tune(opened(), model_folder, tmp_path / "run", chosen, retry=True)
    assert [run.folder for run in result.runs] == ["seed-0", "seed-0-retry-1", "seed-0-retry-2", "seed-0-retry-3"]
    assert [run.lr for run in result.runs] == [5.0, 2.5, 1.25, 0.625]
    assert len({run.seed for run in result.runs}) == 4
    assert all(run.ended_early for run in result.runs)
    assert len(result.final_runs()) == 1
    good = tune(opened(), model_folder, tmp_path / "good", settings(), retry=True)
    assert [run.folder for run in good.runs] == ["seed-0"]
    assert (tmp_path / "good" / "model" / "task.json").exists()


def test_several_seeds_are_summed_up_and_the_best_is_kept(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    out, data = tmp_path / "run", opened(noise=0.3)
    first = tune(data, model_folder, out, settings(train__steps=20), seeds=2)
    stamp = (out / "seed-0" / "metrics.jsonl").stat().st_mtime_ns
    result = tune(data, model_folder, out, settings(train__steps=20), seeds=3)
    assert (out / "seed-0" / "metrics.jsonl").stat().st_mtime_ns == stamp, "finished runs are only read"
    assert result.runs[:2] == first.runs
    summary = json.loads((out / "summary.json").read_text())
    scores = [run["score"] for run in summary["runs"]]
    assert len(scores) == 3
    assert summary["median"] == sorted(scores)[1]
    assert summary["mean"] == pytest.approx(sum(scores) / 3)
    assert (summary["lowest"], summary["highest"]) == (min(scores), max(scores))
    assert same(weights(out / "model"), weights(out / result.chosen.folder / "model"))
    assert result.chosen.score == max(scores)
    assert "median" in (out / "model" / "README.md").read_text()
    assert not same(weights(out / "seed-0" / "model"), weights(out / "seed-1" / "model"))


def test_a_new_pooler_replaces_that_of_pre_training(opened: MakeData, model_folder: Path) -> None:
    start, task = Start.find(str(model_folder)), opened().task
    poolers = {
        kind: start.build(task, TuneSettings(pooler=kind), seed=5).encoder.pooler for kind in (None, "kept", "new")
    }
    own = load_model(model_folder).model.encoder.pooler
    assert own is not None
    assert torch.equal(poolers["kept"].weight, own.weight)
    assert torch.equal(poolers[None].weight, own.weight)
    assert not torch.equal(poolers["new"].weight, own.weight)
    assert not poolers["new"].bias.any()
    assert not start.is_tuned


def test_another_task_gets_a_new_head_and_the_same_one_keeps_it(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    tune(opened(), model_folder, tmp_path / "first", settings())
    start = Start.find(str(tmp_path / "first"))  # a run folder means its model
    trained = load_model(tmp_path / "first" / "model").model
    same_labels = start.build(opened().task, TuneSettings(), seed=5)
    assert torch.equal(same_labels.heads["classifier"].linear.weight, trained.heads["classifier"].linear.weight)
    renamed = start.build(opened("fair", "good").task, TuneSettings(), seed=5)
    assert renamed.config.labels == ("fair", "good")
    assert not torch.equal(renamed.heads["classifier"].linear.weight, trained.heads["classifier"].linear.weight)
    assert torch.equal(renamed.encoder.pooler.weight, trained.encoder.pooler.weight)
    three = start.build(opened("bad", "fair", "good").task, TuneSettings(), seed=5)
    assert three.heads["classifier"].linear.weight.shape[0] == 3
    number = start.build(Regression(), TuneSettings(), seed=5)
    assert number.heads["classifier"].linear.weight.shape[0] == 1
    tune(replace(opened(), name="sst-2"), model_folder, tmp_path / "sst", settings())
    tuned = Start.find(str(tmp_path / "sst"))
    assert tuned.tuned_for == "sst-2"
    kept = {name: tuned.keeps_head(opened().task, name=name) for name in ("sst-2", "cola", "classification")}
    assert kept == {"sst-2": True, "cola": False, "classification": True}, "SST-2 and CoLA have the same labels"


def test_a_random_start_takes_only_the_shape(opened: MakeData, model_folder: Path) -> None:
    start = Start.find(str(model_folder))
    model = start.build(opened().task, TuneSettings(start="random"), seed=5)
    trained = load_model(model_folder, ()).model
    assert not torch.equal(model.encoder.embeddings.word.weight, trained.encoder.embeddings.word.weight)
    assert model.config.hidden_size == trained.config.hidden_size


@pytest.mark.parametrize("part", ["embeddings", "backbone", "encoder"])
def test_frozen_parts_stay_as_they_were(
    part: str, opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    tune(opened(), model_folder, tmp_path / "run", settings(train__steps=20, tune__freeze=part))
    before, after = weights(model_folder), weights(tmp_path / "run" / "model")
    moved = {name for name in before.keys() & after.keys() if not torch.equal(before[name], after[name])}
    parts = {"embeddings": "albert.embeddings.", "backbone": "albert.e", "encoder": "albert."}
    assert not [name for name in moved if name.startswith(parts[part])]
    assert any(name.startswith("albert.pooler.") for name in moved) == (part != "encoder")
    assert any(name.startswith("albert.encoder.") for name in moved) == (part == "embeddings")


def test_regression_learns_and_is_compared_with_the_mean(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    plain = opened("bad", "fair", "good").splits

    def numbers(rows: Any) -> list[TextExample]:
        return [TextExample(row.text, target=float(row.target)) for row in rows]

    data = Opened(Regression(), Splits(numbers(plain.train), {"dev": numbers(plain.dev["dev"])}), [], "numbers")
    result = tune(data, model_folder, tmp_path / "run", settings())
    assert result.baseline == 0.0
    assert result.chosen.scores["valid_pearson"] > 0.5  # 60 steps come to 0.76; the baseline is 0


def test_a_second_dev_set_is_scored_but_does_not_decide(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    plain = opened().splits
    data = Opened(opened().task, Splits(plain.train, {"matched": plain.dev["dev"], "mismatched": plain.train}), [], "x")
    result = tune(data, model_folder, tmp_path / "run", settings(train__steps=20))
    assert result.deciding == "valid_accuracy"
    assert {"valid_accuracy", "valid_mismatched_accuracy"} <= result.chosen.scores.keys()


def test_a_dry_run_tells_the_plan_and_writes_nothing(opened: MakeData, model_folder: Path, tmp_path: Path) -> None:
    plan = finetune(opened(), str(model_folder), tmp_path / "run", dry_run=True, seeds=3)
    assert isinstance(plan, FinetunePlan)
    assert (plan.train_examples, plan.dev_examples, plan.seeds) == (160, {"dev": 40}, 3)
    assert plan.epochs == pytest.approx(20)
    assert plan.max_length == 64, "the model has no more positions"
    assert plan.seconds > 0
    assert plan.trainable == plan.parameters
    assert not (tmp_path / "run").exists()


def test_another_configuration_on_the_same_folder_is_refused_by_name(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    tune(opened(), model_folder, tmp_path / "run", settings(train__steps=8))
    with pytest.raises(UsageError, match=r"settings\.optimizer\.lr was 0\.005, is 0\.001"):
        tune(opened(), model_folder, tmp_path / "run", settings(train__steps=8, optimizer__lr=1e-3))
    with pytest.raises(UsageError, match="several"):
        tune(opened(), model_folder, tmp_path / "run", settings(train__steps=8), seeds=2)


def test_what_cannot_be_tuned_is_refused_by_name(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    data = opened()
    with pytest.raises(DataError, match="no dev examples"):
        tune(Opened(data.task, Splits(data.splits.train, {}), [], "x"), model_folder, tmp_path / "a", settings())
    with pytest.raises(DataError, match="training set is empty"):
        tune(Opened(data.task, Splits([], data.splits.dev), [], "x"), model_folder, tmp_path / "b", settings())
    with pytest.raises(UsageError, match="max_length=128: the model has 64 positions"):
        tune(data, model_folder, tmp_path / "c", settings(data__max_length=128))
    with pytest.raises(UsageError, match="give one of them"):
        tune(data, model_folder, tmp_path / "d", settings(tune__epochs=2.0))
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "config.json").write_bytes((model_folder / "config.json").read_bytes())
    with pytest.raises(ModelError, match=r"no spiece\.model"):
        tune(data, bare, tmp_path / "e", settings())


def test_a_bag_of_words_stands_beside_the_score_and_is_named_where_it_is_as_good(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    result = tune(opened(), model_folder, tmp_path / "run", settings(train__steps=8))
    assert result.bag_of_words is not None
    assert result.baseline < result.bag_of_words <= 1
    assert result.summary()["bag_of_words"] == result.bag_of_words
    assert result.is_beaten_by_words == (result.chosen.score <= result.bag_of_words)
    card = (tmp_path / "run" / "model" / "README.md").read_text()
    assert f"| accuracy, bag of words (TF-IDF, linear model) | {result.bag_of_words:.4f} |" in card
    report = (tmp_path / "run" / "report.html").read_text()
    assert f"A bag of words (TF-IDF and a linear model): {result.bag_of_words:.4f}." in report


def test_a_bag_of_words_is_fitted_once_for_a_run_folder(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted: list[int] = []

    def fit(*given: Any) -> Any:
        fitted.append(1)
        return bag_of_words(*given)

    monkeypatch.setattr("albert.finetune.words.bag_of_words", fit)
    out, chosen = tmp_path / "run", settings(train__steps=8)
    first = tune(opened(), model_folder, out, chosen)
    (out / "summary.json").unlink()  # killed before its end
    again = tune(opened(), model_folder, out, chosen)
    plan = finetune(opened(), str(model_folder), out, settings=chosen, dry_run=True)
    assert isinstance(plan, FinetunePlan)
    assert len(fitted) == 1, "a run that goes on, a finished one and its plan read what the folder keeps"
    assert first.bag_of_words == again.bag_of_words == plan.bag_of_words
    kept = json.loads((out / "bag_of_words.json").read_text())
    (out / "bag_of_words.json").write_text(json.dumps(kept | {"data": "other", "score": 0.0}))
    finetune(opened(), str(model_folder), out, settings=chosen, dry_run=True)
    assert len(fitted) == 2, "a score of other data is not taken over"


def test_a_model_tuned_for_early_exit_says_so_and_its_texts_may_leave(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    tune(opened(), model_folder, tmp_path / "run", settings(train__steps=20, tune__early_exit=True))
    model = load(tmp_path / "run", early_exit="patience=1")
    engine = model.predictor.engine
    assert isinstance(engine, EarlyExitEngine)
    assert model.task is not None
    assert model.task.early_exit
    assert {decided.label for decided in model.classify(["a lovely ship", "an awful dog"])} <= {"bad", "good"}
    assert 1 < engine.mean_layers <= 2
    with pytest.raises(UsageError, match=r"was not tuned for early exit: tune it with `albert finetune --early-exit`"):
        load(model_folder, early_exit="patience=1")
