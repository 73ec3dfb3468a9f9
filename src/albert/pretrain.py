"""Pre-training: from a token store to a model folder.

Builds or takes up a model, opens the run folder and hands the job to the training loop. Everything that a run depends
on is in its settings and its store; running the same command again resumes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch

from albert.data.settings import NUM_SPECIAL
from albert.data.store import TokenStore
from albert.data.stream import BatchStream
from albert.data.word_vectors import ppmi_word_vectors
from albert.errors import UsageError
from albert.model import Albert, new_model
from albert.model.accounting import parameters_of, training_bytes
from albert.model.albert import init_sinusoidal_positions, init_words
from albert.model.config import AlbertConfig
from albert.model.folder import load_model, save_model
from albert.model.locate import locate, shipped_models
from albert.model.presets import full_name, preset
from albert.model.vocabulary import change_vocabulary
from albert.optim import build_optimizer, learning_rate, warmup
from albert.report.writing import reported
from albert.tasks.pace import Pace, measure_pace
from albert.tasks.pretraining import (
    InitSettings,
    PretrainJob,
    PretrainSettings,
    count_micro_batches,
    example_settings,
    phases,
)
from albert.tokenizer import Tokenizer
from albert.train.loop import Progress, Trained, train
from albert.train.run import ADJUSTABLE, own_run
from albert.train.settings import with_precision
from albert.train.world import World, join_world

log = logging.getLogger(__name__)

HEADS = ("mlm", "order")
CHANGEABLE = {"num_hidden_layers", "hidden_dropout_prob", "attention_probs_dropout_prob"}  # of a model folder


def start_model(name: str, store: TokenStore, settings: PretrainSettings) -> Albert:
    """Build a preset for the store's vocabulary, or take up a model folder, at another depth or vocabulary."""
    longest = settings.data.max_length
    if _is_preset(name):
        changes = {"vocab_size": store.tokenizer.vocab_size} | settings.model
        if longest > preset(name).max_position_embeddings:
            changes.setdefault("max_position_embeddings", longest)
        model = new_model(preset(name).with_settings(changes), HEADS, seed=settings.train.seed)
        if settings.model_init.positions == "sinusoidal":
            init_sinusoidal_positions(model)
        return model
    folder = locate(name)
    for part, value in settings.model_init.model_dump().items():
        if value != "random":
            raise UsageError(f"model_init.{part}='{value}' is how a new model starts; {folder} has its own")
    model = load_model(folder, HEADS, seed=settings.train.seed).model
    wanted = model.config.with_settings(settings.model)
    for field, value in settings.model.items():
        has = getattr(model.config, field)
        if field not in CHANGEABLE and getattr(wanted, field) != has:
            raise UsageError(
                f"model.{field}={value!r}: {folder} has {has!r} and keeps its shape; only depth and dropout can change"
            )
    if changes := {field: value for field, value in settings.model.items() if field in CHANGEABLE}:
        model = _reshaped(model, changes)
    old = Tokenizer.load(folder) if (folder / "spiece.model").exists() else None
    if old is not None and old.fingerprint != store.tokenizer.fingerprint:
        carried = change_vocabulary(model, old=old, new=store.tokenizer)
        log.info("new vocabulary: %d of %d pieces carried over", carried, store.tokenizer.vocab_size)
    elif model.config.vocab_size != store.tokenizer.vocab_size:
        raise UsageError(
            f"{folder}: has {model.config.vocab_size:,} pieces and no spiece.model, the store has "
            f"{store.tokenizer.vocab_size:,}: give the folder its tokenizer"
        )
    return model


def _is_preset(name: str) -> bool:
    return full_name(name) is not None and not Path(name).exists() and name not in shipped_models()


def settings_for(model: str, settings: PretrainSettings, *, asked: Collection[str]) -> PretrainSettings:
    """Return the settings of a run from `model`: what a recipe says of a new model is left out where a folder decides.

    What was `asked` for by its dotted name stays: `start_model` refuses it where it contradicts the folder.
    """
    if _is_preset(model):
        return settings
    fixed = {field.name for field in fields(AlbertConfig)} - CHANGEABLE
    left_out = [f"model.{name}" for name in settings.model if name in fixed and f"model.{name}" not in asked]
    start = {name: value for name, value in settings.model_init if f"model_init.{name}" in asked}
    left_out += [f"model_init.{name}" for name, value in settings.model_init if name not in start and value != "random"]
    if not left_out:
        return settings
    log.warning("%s decides %s: what the recipe says of a new model is left out", model, ", ".join(left_out))
    kept = {name: value for name, value in settings.model.items() if f"model.{name}" not in left_out}
    return settings.model_copy(update={"model": kept, "model_init": InitSettings(**start)})


def _reshaped(model: Albert, changes: dict[str, Any]) -> Albert:
    if model.config.num_blocks != (model.config.inner_group_num,) * 2 and "num_hidden_layers" in changes:
        raise UsageError("model.num_hidden_layers: only a model that shares all its layers can change its depth")
    other = Albert(model.config.with_settings(changes), list(model.heads))
    other.load_state_dict(model.state_dict())
    return other


@dataclass(frozen=True)
class Plan:
    """What a run will do: what `--dry-run` shows."""

    parameters: int
    tokens_per_step: int  # at most
    mean_length: float  # tokens of a sequence
    steps: int
    peak_rate: float
    warmup_steps: int
    epochs: float
    training_bytes: int
    device: str
    processes: int
    pace: Pace | None = None  # of a dry run: it takes some seconds to find out


@dataclass(frozen=True)
class Pretrained:
    """What a run gave."""

    folder: Path
    plan: Plan
    trained: Trained

    @property
    def was_finished(self) -> bool:
        """Tell whether there was nothing left to train."""
        return self.trained.resumed_from == self.trained.state.step


def pretrain(
    store: TokenStore,
    model: str,
    out: Path,
    *,
    settings: PretrainSettings,
    valid: TokenStore | None = None,
    dry_run: bool = False,
    observe: Callable[[Progress], None] = lambda _: None,
) -> Pretrained | Plan:
    """Train a model on a store; run again to resume."""
    if valid is not None:
        valid.require_tokenizer(store.tokenizer)
    with join_world(timeout_minutes=settings.train.timeout_minutes) as world:
        network = start_model(model, store, settings)
        peak = learning_rate(
            settings.optimizer.name,
            settings.optimizer.lr,
            batch_size=settings.train.batch_size,
            steps=settings.train.steps,
            hidden=network.config.hidden_size,
        )
        warm = settings.optimizer.warmup_steps
        if warm is None:
            warm = warmup(settings.optimizer.lr, batch_size=settings.train.batch_size, steps=settings.train.steps)
        plan = _plan(network, store, settings, peak=peak, warm=warm, world=world)
        if dry_run:
            return _with_pace(plan, network, store, settings, world=world)
        facts = {
            "stage": "pretrain",
            "model": model,
            "store": store.fingerprint,
            "valid": valid.fingerprint if valid else None,
        }
        asked = settings.model_copy(update={"start_from": None})  # `model` says it
        adjustable = ADJUSTABLE | {"train.eval_every"}  # evaluation chooses nothing here
        with own_run(out, facts, world, settings=asked, adjustable=adjustable) as run, reported(run, world):
            world.wait()
            network.to(world.device)
            network.encoder.checkpointing = settings.train.checkpointing
            job = PretrainJob(network, store, settings, world=world, valid=valid)
            optimizer = build_optimizer(
                settings.optimizer.name, network, lr=peak, weight_decay=settings.optimizer.weight_decay
            )

            def note(progress: Progress) -> None:
                assert run is not None
                run.log(progress.step, progress.metrics)
                observe(progress)

            def begin(step: int) -> None:
                if step == 0 and settings.model_init.words == "ppmi":
                    _init_words(network, store, world)
                if run:
                    run.resume_metrics(step)

            trained = train(
                job,
                optimizer,
                settings=with_precision(settings.train, world.device),
                rates=settings.optimizer,
                peak=peak,
                warmup=warm,
                folder=out,
                world=world,
                observe=note,
                resumed=begin,
            )
            result = Pretrained(out, plan, trained)
            if world.is_first and not (result.was_finished and (out / "model").exists()):
                save_model(network, out / "model", tokenizer=store.tokenizer)
        return result


def _init_words(model: Albert, store: TokenStore, world: World) -> None:
    """Start the word embeddings from PPMI vectors of the store, the same in every process."""
    if world.is_first:
        log.info("word embeddings: counting which pieces stand near each other (PPMI)")
        counted = ppmi_word_vectors(store, model.config.embedding_size)
        init_words(model, torch.from_numpy(counted.vectors), torch.from_numpy(counted.frequencies))
    world.share(model)


def _plan(
    model: Albert, store: TokenStore, settings: PretrainSettings, *, peak: float, warm: int, world: World
) -> Plan:
    for phase in phases(settings):
        count_micro_batches(settings, phase.batch_size, phase.length, processes=world.size)
    train_settings, length = settings.train, settings.data.max_length
    stream = BatchStream(store, example_settings(settings), batch_size=1)
    samples = stream.epoch_size(0)
    own = train_settings.batch_size // world.size
    micro = own // count_micro_batches(settings, train_settings.batch_size, length, processes=world.size)
    return Plan(
        parameters=parameters_of(model).total,
        tokens_per_step=train_settings.batch_size * length,
        mean_length=min(length, store.num_tokens / samples + NUM_SPECIAL),
        steps=train_settings.steps,
        peak_rate=peak,
        warmup_steps=warm,
        epochs=train_settings.steps * train_settings.batch_size / samples,
        training_bytes=training_bytes(
            model.config, batch=micro, length=length, checkpointing=train_settings.checkpointing
        ),
        device=str(world.device),
        processes=world.size,
    )


def _with_pace(plan: Plan, model: Albert, store: TokenStore, settings: PretrainSettings, *, world: World) -> Plan:
    """Add to a plan how long it takes on this machine."""
    model.to(world.device)
    model.encoder.checkpointing = settings.train.checkpointing
    pace = measure_pace(
        model,
        build_optimizer(settings.optimizer.name, model, lr=plan.peak_rate),
        store,
        settings=settings.model_copy(update={"train": with_precision(settings.train, world.device)}),
        mean_length=plan.mean_length,
        world=world,
    )
    return replace(plan, pace=pace)
