"""`albert evaluate` of a pre-training run and of a model folder, and what its figures are compared with."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from albert.cli import app
from albert.data.store import TokenStore, write_store
from albert.errors import DataError, ModelError, UsageError
from albert.evaluate import EvaluationPlan, PretrainingScores, evaluate_pretraining
from albert.model import new_model
from albert.model.folder import load_model, save_model
from albert.pretrain import Pretrained, pretrain
from albert.pretrain.held_out import IntrinsicEvaluation
from albert.pretrain.settings import PretrainSettings
from albert.settings import read_settings
from albert.tokenizer import Tokenizer
from albert.train.world import World

SMALL = {
    "model.embedding_size": 16, "model.hidden_size": 32, "model.num_attention_heads": 2, "model.intermediate_size": 64,
    "model.num_hidden_layers": 2, "data.max_length": 64, "train.steps": 30, "train.batch_size": 8, "train.log_every": 1,
    "train.eval_every": 30, "optimizer.warmup_steps": 2, "optimizer.lr": 0.01, "evaluation.examples": 50,
}  # fmt: skip
TEXT = "the cat sat on old coal with her letter and the grey dog came to town in winter"
ALONE = World(0, 1, torch.device("cpu"))


@pytest.fixture(scope="module")
def held_out_folder(store_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a store of other text in the same vocabulary."""
    store = TokenStore.open(store_folder)
    rng = np.random.default_rng(1)
    words = TEXT.split()
    documents = [
        store.tokenizer.encode_many([" ".join(rng.permutation(words)) + "." for _ in range(12)]) for _ in range(8)
    ]
    folder = tmp_path_factory.mktemp("held-out") / "store"
    write_store(folder, documents, tokenizer=store.tokenizer)
    return folder


@pytest.fixture(scope="module")
def run(store_folder: Path, held_out_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Pretrained:
    """Return a run of 30 steps."""
    result = pretrain(
        TokenStore.open(store_folder),
        "tiny",
        tmp_path_factory.mktemp("runs") / "run",
        settings=read_settings(PretrainSettings, defaults=SMALL),
        valid=TokenStore.open(held_out_folder),
    )
    assert isinstance(result, Pretrained)
    return result


@pytest.fixture
def held_out(held_out_folder: Path) -> TokenStore:
    return TokenStore.open(held_out_folder)


def evaluate(model: Path, store: TokenStore, **options: Any) -> PretrainingScores:
    result = evaluate_pretraining(str(model), store, **options)
    assert isinstance(result, PretrainingScores)
    return result


def test_a_run_scores_what_its_last_evaluation_said(run: Pretrained, held_out: TokenStore) -> None:
    result = evaluate(run.folder, held_out)
    logged = run.trained.last_evaluation
    for name in ("mlm_loss", "mlm_accuracy", "sop_accuracy", "nsp_accuracy"):
        assert getattr(result.model, name) == pytest.approx(logged[f"valid_{name}"], abs=1e-6), name
    assert result.held_out is True
    assert result.model.mlm_loss < result.untrained.mlm_loss - 0.3  # type: ignore[operator]


def test_the_untrained_row_is_the_same_architecture_before_its_first_step(
    run: Pretrained, held_out: TokenStore
) -> None:
    config = load_model(run.folder / "model").model.config
    untrained = new_model(config, ["mlm", "order"], seed=0)
    questions = IntrinsicEvaluation(held_out, max_length=64, examples=50, world=ALONE)
    assert vars(evaluate(run.folder, held_out).untrained) == questions.score(untrained)


def test_the_gap_is_measured_on_the_training_store_when_it_is_given(
    run: Pretrained, store: TokenStore, held_out: TokenStore
) -> None:
    result = evaluate(run.folder, held_out, train=store)
    assert result.gap is not None
    assert result.gap.source == "store"
    assert result.gap.training_loss == evaluate(run.folder, store).model.mlm_loss
    assert result.gap.gap == pytest.approx(result.model.mlm_loss - result.gap.training_loss)  # type: ignore[operator]


def test_the_gap_is_else_to_what_the_run_logged(run: Pretrained, held_out: TokenStore) -> None:
    lines = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    recent = [line["mlm_loss"] for line in lines if "mlm_loss" in line and line["step"] >= 27]
    result = evaluate(run.folder, held_out)
    assert result.gap is not None
    assert result.gap.source == "log"
    assert result.gap.training_loss == pytest.approx(sum(recent) / 4)


def test_a_model_folder_has_a_gap_only_with_its_training_store(
    run: Pretrained, store: TokenStore, held_out: TokenStore
) -> None:
    folder = run.folder / "model"
    without = evaluate(folder, held_out, examples=20, max_length=64)
    assert (without.gap, without.held_out) == (None, None)
    assert without.plan.examples == {"sop": 20, "nsp": 20}
    measured = evaluate(folder, held_out, examples=20, max_length=64, train=store)
    assert measured.gap is not None


def test_a_store_that_is_not_the_runs_is_refused_for_training(run: Pretrained, held_out: TokenStore) -> None:
    with pytest.raises(UsageError, match=r"is not the store that .*run learnt from"):
        evaluate(run.folder, held_out, train=held_out)


def test_the_training_store_given_as_held_out_is_said(run: Pretrained, store: TokenStore) -> None:
    assert evaluate(run.folder, store).held_out is False


def test_the_baseline_is_the_most_frequent_label(held_out: TokenStore) -> None:
    questions = IntrinsicEvaluation(held_out, max_length=64, examples=50, world=ALONE)
    masked = np.concatenate([batch.masked_labels for batch in questions._batches("sop")])
    orders = np.concatenate([batch.order_labels for batch in questions._batches("sop")])
    guess = questions.baseline()
    assert guess["mlm_accuracy"] == max(np.mean(masked == piece) for piece in set(masked.tolist()))
    assert guess["sop_accuracy"] == max(np.mean(orders == 0), np.mean(orders == 1)) >= 0.5
    assert set(guess) == {"mlm_accuracy", "sop_accuracy", "nsp_accuracy"}


def test_a_model_without_the_order_head_is_scored_on_words_alone(
    run: Pretrained, held_out: TokenStore, tmp_path: Path
) -> None:
    whole = load_model(run.folder / "model", ["mlm"])
    save_model(whole.model, tmp_path / "mlm")
    scores = evaluate(tmp_path / "mlm", held_out, examples=10, max_length=64).model
    assert scores.mlm_loss is not None
    assert scores.sop_accuracy is None


def test_a_model_without_either_head_is_refused(run: Pretrained, held_out: TokenStore, tmp_path: Path) -> None:
    save_model(load_model(run.folder / "model", ["classifier"]).model, tmp_path / "classifier")
    with pytest.raises(UsageError, match="has neither an MLM nor an order head"):
        evaluate(tmp_path / "classifier", held_out)


def test_another_tokenizer_and_another_vocabulary_size_are_refused(
    run: Pretrained, held_out: TokenStore, tmp_path: Path
) -> None:
    normalisation = held_out.tokenizer.normalisation
    other = Tokenizer(held_out.tokenizer.model, replace(normalisation, lower_case=not normalisation.lower_case))
    write_store(tmp_path / "other", [other.encode_many(["the cat sat.", "the dog came."])], tokenizer=other)
    with pytest.raises(DataError, match="built with tokenizer"):
        evaluate(run.folder, TokenStore.open(tmp_path / "other"))
    config = load_model(run.folder / "model").model.config.with_settings({"vocab_size": 77})
    save_model(new_model(config, ["mlm", "order"]), tmp_path / "small")
    with pytest.raises(UsageError, match="has 77 pieces"):
        evaluate(tmp_path / "small", held_out)


def test_a_run_without_a_model_and_pairs_longer_than_the_positions_are_refused(
    run: Pretrained, held_out: TokenStore, tmp_path: Path
) -> None:
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    (unfinished / "run.json").write_bytes((run.folder / "run.json").read_bytes())
    with pytest.raises(ModelError, match="has no model/ yet"):
        evaluate(unfinished, held_out)
    with pytest.raises(UsageError, match="--length 600: the model has 512 positions"):
        evaluate(run.folder, held_out, max_length=600)


def test_progress_rises_to_the_end(run: Pretrained, store: TokenStore, held_out: TokenStore) -> None:
    seen: list[float] = []
    evaluate(run.folder, held_out, train=store, observe=lambda done, _: seen.append(done))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_the_command_prints_a_table_or_one_json_document(run: Pretrained, held_out_folder: Path) -> None:
    words = ["evaluate", str(run.folder), "--data", str(held_out_folder), "--examples", "20"]
    text = CliRunner().invoke(app, words).stdout
    assert [line.split()[0] for line in text.splitlines()[2:5]] == ["this", "untrained", "baseline"]
    assert "as logged over the last tenth" in text
    facts = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert facts["gap"]["source"] == "log"
    assert 0 <= facts["model"]["sop_accuracy"] <= 1
    assert facts["plan"]["examples"]["sop"] == 20


def test_a_dry_run_counts_and_times_and_scores_nothing(run: Pretrained, held_out: TokenStore) -> None:
    plan = evaluate_pretraining(str(run.folder), held_out, dry_run=True)
    assert isinstance(plan, EvaluationPlan)
    assert (plan.max_length, plan.passes) == (64, 2)
    assert 20 < plan.examples["sop"] < 50, "the run wants 50, the store has fewer"
    assert plan.seconds is not None
    assert plan.seconds > 0
    words = ["evaluate", str(run.folder), "--data", str(held_out.folder), "--dry-run"]
    assert "2 times" in CliRunner().invoke(app, words).stdout
