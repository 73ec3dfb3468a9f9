"""What a pre-training run starts from: a preset with new weights, or a model folder, at another depth or vocabulary."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import fields
from typing import Any

import torch

from albert.data.store import TokenStore
from albert.data.word_vectors import ppmi_word_vectors
from albert.errors import UsageError
from albert.model import Albert, new_model
from albert.model.albert import init_sinusoidal_positions, init_words
from albert.model.config import AlbertConfig
from albert.model.folder import load_model
from albert.model.locate import locate, shipped_models
from albert.model.presets import full_name, preset
from albert.model.vocabulary import change_vocabulary
from albert.pretrain.settings import InitSettings, PretrainSettings
from albert.pretrain.teacher import Teacher, taught_words
from albert.tokenizer import Tokenizer
from albert.tokenizer.folder import has_tokenizer
from albert.train.world import World

log = logging.getLogger(__name__)

HEADS = ("mlm", "order")
CHANGEABLE = {"num_hidden_layers", "hidden_dropout_prob", "attention_probs_dropout_prob"}  # of a model folder


def start_model(name: str, store: TokenStore, settings: PretrainSettings) -> Albert:
    """Build a preset for the store's vocabulary, or take up a model folder, at another depth or vocabulary."""
    if settings.model_init.words == "teacher" and not settings.teacher.model:
        raise UsageError(
            "model_init.words='teacher' needs a teacher: --set teacher.model=FOLDER, that of a sentence encoder"
        )
    model = _start(name, store, settings)
    last, layers = settings.grow.depth[-1][1] if settings.grow.depth else None, model.config.num_hidden_layers
    if last is not None and last != layers:
        raise UsageError(
            f"grow.depth ends with {last}, but the model has {layers} layers, which would never be trained: "
            f"--set model.num_hidden_layers={last}, or let grow.depth end with {layers}"
        )
    return model


def _start(name: str, store: TokenStore, settings: PretrainSettings) -> Albert:
    longest = settings.data.max_length
    if is_preset(name):
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
    old = Tokenizer.load(folder) if has_tokenizer(folder) else None
    if old is not None and old.fingerprint != store.tokenizer.fingerprint:
        carried = change_vocabulary(model, old=old, new=store.tokenizer)
        log.info("new vocabulary: %d of %d pieces carried over", carried, store.tokenizer.vocab_size)
    elif model.config.vocab_size != store.tokenizer.vocab_size:
        raise UsageError(
            f"{folder}: has {model.config.vocab_size:,} pieces and no tokenizer, the store has "
            f"{store.tokenizer.vocab_size:,}: give the folder its tokenizer"
        )
    return model


def is_preset(name: str) -> bool:
    """Tell whether a name is that of a shape, without weights."""
    return full_name(name) is not None and name not in shipped_models()  # ./small is a folder of that name


def settings_for(model: str, settings: PretrainSettings, *, asked: Collection[str]) -> PretrainSettings:
    """Return the settings of a run from `model`: what a recipe says of a new model is left out where a folder decides.

    What was `asked` for by its dotted name stays: `start_model` refuses it where it contradicts the folder.
    """
    if is_preset(model):
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
    shared = model.config.num_blocks == (model.config.inner_group_num,) * 2 and not model.config.is_relaxed
    if not shared and "num_hidden_layers" in changes:
        raise UsageError("model.num_hidden_layers: only a model that shares all its layers can change its depth")
    other = Albert(model.config.with_settings(changes), list(model.heads))
    other.load_state_dict(model.state_dict())
    return other


def start_words(model: Albert, store: TokenStore, world: World, *, teacher: Teacher | None) -> None:
    """Start the word embeddings from PPMI vectors of the store, or those and a teacher's, the same in every process."""
    if world.is_first:
        log.info("word embeddings: counting which pieces stand near each other (PPMI)")
        counted = ppmi_word_vectors(store, model.config.embedding_size)
        vectors = torch.from_numpy(counted.vectors)
        if teacher is not None:
            log.info("word embeddings: asking the teacher for a vector of every piece")
            vectors = taught_words(teacher, store.tokenizer, vectors)
        init_words(model, vectors, torch.from_numpy(counted.frequencies))
    world.share(model)
