"""The scores of a pre-trained model on held-out text.

These are the intrinsic columns of the paper's Table 5 (masked words, sentence order, next sentence), beside what the
same questions give to an untrained model and to a baseline, and the gap between the losses on training and on
held-out text.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from albert.data.store import TokenStore
from albert.errors import ModelError, UsageError
from albert.hardware import find_device
from albert.model import Albert, new_model
from albert.model.accounting import inference_bytes, parameters_of
from albert.model.folder import load_model
from albert.model.locate import locate
from albert.pretrain.held_out import BATCH_TOKENS, IntrinsicEvaluation
from albert.pretrain.settings import PretrainSettings
from albert.tokenizer import Tokenizer
from albert.tokenizer.folder import has_tokenizer
from albert.train.history import History, is_run, read_history
from albert.train.world import World

Observe = Callable[[float, str], None]  # share done, a few words


@dataclass(frozen=True)
class Scores:
    """The intrinsic scores; None where the model or the store has nothing to score."""

    mlm_loss: float | None = None
    mlm_accuracy: float | None = None
    sop_accuracy: float | None = None
    nsp_accuracy: float | None = None


@dataclass(frozen=True)
class Gap:
    """How much better a model knows what it learnt from: its held-out MLM loss less its training MLM loss."""

    training_loss: float
    gap: float
    # "store": the final weights on fixed examples of the training store, masked as the held-out ones.
    # "log": what the run logged over the last tenth of its steps, while the weights moved, with masks of its own.
    source: Literal["store", "log"]


@dataclass(frozen=True)
class EvaluationPlan:
    """What will be measured: what `--dry-run` shows."""

    model: Path
    parameters: int
    max_length: int
    examples: dict[str, int]  # pairs of each objective
    passes: int  # over the examples: this model, an untrained one, perhaps the training store
    memory: int  # bytes
    device: str
    seconds: float | None = None  # of a dry run: one batch is timed


@dataclass(frozen=True)
class PretrainingScores:
    """A pre-trained model's scores, what to compare them with, and its gap."""

    plan: EvaluationPlan
    model: Scores
    untrained: Scores  # the same architecture before its first step
    baseline: Scores  # always the most frequent masked piece, always the more frequent order
    gap: Gap | None
    held_out: bool | None  # False: the run learnt from this very store; None: nothing says what it learnt from


def evaluate_pretraining(
    model: str,
    store: TokenStore,
    *,
    train: TokenStore | None = None,
    examples: int | None = None,
    max_length: int | None = None,
    dry_run: bool = False,
    observe: Observe = lambda *_: None,
) -> PretrainingScores | EvaluationPlan:
    """Score a pre-training run or a model folder on a store; examples and length are the run's unless given."""
    history = read_history(Path(model)) if is_run(Path(model)) else None
    folder = _model_folder(history) if history else locate(model)
    network = _load(folder, [store, *([train] if train else [])])
    if history and train and train.fingerprint != history.identity.get("store"):
        raise UsageError(f"--train {train.folder}: is not the store that {history.folder} learnt from")
    settings = _defaults(history)
    length = max_length or min(settings["data.max_length"], network.config.max_position_embeddings)
    if length > network.config.max_position_embeddings:
        raise UsageError(f"--length {length}: the model has {network.config.max_position_embeddings} positions")
    world = World(0, 1, torch.device(find_device()))
    network.to(world.device)

    def questions(source: TokenStore, count: int) -> IntrinsicEvaluation:
        return IntrinsicEvaluation(source, max_length=length, examples=count, world=world)

    count = examples or settings["evaluation.examples"]
    held_out = questions(store, count)
    plan = _plan(network, folder, held_out, max_length=length, passes=3 if train else 2, world=world)
    if dry_run:
        return _timed(plan, network, questions(store, max(1, BATCH_TOKENS // length)))

    def score(one: Albert, evaluation: IntrinsicEvaluation, number: int, words: str) -> Scores:
        values = evaluation.score(one, observe=lambda share: observe((number + share) / plan.passes, words))
        return Scores(**values)

    scores = score(network, held_out, 0, "this model")
    untrained = new_model(network.config, list(network.heads), seed=settings["train.seed"]).to(world.device)
    return PretrainingScores(
        plan,
        model=scores,
        untrained=score(untrained, held_out, 1, "untrained"),
        baseline=Scores(**held_out.baseline()),
        gap=_gap(scores, score(network, questions(train, count), 2, "training text") if train else None, history),
        held_out=store.fingerprint != history.identity.get("store") if history else None,
    )


def _model_folder(history: History) -> Path:
    folder = history.folder / "model"
    if not folder.is_dir():
        raise ModelError(f"{history.folder}: the run has no model/ yet: finish it by running its command again")
    return folder


def _load(folder: Path, stores: list[TokenStore]) -> Albert:
    """Read a model that can be asked, of the vocabulary of the stores."""
    model = load_model(folder).model
    if not {"mlm", "order"} & set(model.heads):
        raise UsageError(f"{folder}: has neither an MLM nor an order head: give a pre-trained model")
    for store in stores:
        if has_tokenizer(folder):
            store.require_tokenizer(Tokenizer.load(folder))
        elif model.config.vocab_size != store.tokenizer.vocab_size:
            raise UsageError(
                f"{folder}: has {model.config.vocab_size:,} pieces, {store.folder} has "
                f"{store.tokenizer.vocab_size:,}: use a store built with the model's tokenizer"
            )
    return model


def _defaults(history: History | None) -> dict[str, int]:
    """Return what the run set, or what a run would."""
    usual = PretrainSettings()
    values = {
        "data.max_length": usual.data.max_length,
        "evaluation.examples": usual.evaluation.examples,
        "train.seed": usual.train.seed,
    }
    known = history.settings if history else {}
    return {name: known[name] if isinstance(known.get(name), int) else value for name, value in values.items()}


def _plan(
    model: Albert, folder: Path, held_out: IntrinsicEvaluation, *, max_length: int, passes: int, world: World
) -> EvaluationPlan:
    batch = max(1, BATCH_TOKENS // max_length)
    return EvaluationPlan(
        model=folder,
        parameters=parameters_of(model).total,
        max_length=max_length,
        examples={str(name): count for name, count in held_out.num_examples.items()},
        passes=passes,
        memory=inference_bytes(model.config, list(model.heads), batch=batch, length=max_length),
        device=str(world.device),
    )


def _timed(plan: EvaluationPlan, model: Albert, few: IntrinsicEvaluation) -> EvaluationPlan:
    """Say how long it will take, by the time of a few examples."""
    started = time.monotonic()
    few.score(model)
    pace = (time.monotonic() - started) / sum(few.num_examples.values())
    return EvaluationPlan(**vars(plan) | {"seconds": pace * plan.passes * sum(plan.examples.values())})


def _gap(held_out: Scores, training: Scores | None, history: History | None) -> Gap | None:
    loss = training.mlm_loss if training else history.recent_mean("mlm_loss") if history else None
    if loss is None or held_out.mlm_loss is None:
        return None
    return Gap(loss, held_out.mlm_loss - loss, "store" if training else "log")
