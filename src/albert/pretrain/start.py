"""What a pre-training run starts from: a preset with new weights, or a model folder, at another depth or vocabulary."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch

from albert.data.store import TokenStore
from albert.data.word_vectors import count_word_vectors
from albert.errors import UsageError
from albert.model import Albert, new_model
from albert.model.albert import draw_waves, start_words
from albert.model.folder import load_model
from albert.model.locate import locate, shipped_models
from albert.model.presets import full_name, preset
from albert.model.vocabulary import change_vocabulary
from albert.pretrain.settings import PretrainSettings
from albert.tokenizer import Tokenizer
from albert.train.world import World

log = logging.getLogger(__name__)

HEADS = ("mlm", "order")
CHANGEABLE = {"num_hidden_layers", "hidden_dropout_prob", "attention_probs_dropout_prob"}  # of a model folder


def start_model(name: str, store: TokenStore, settings: PretrainSettings) -> Albert:
    """Build a preset for the store's vocabulary, or take up a model folder, at another depth or vocabulary."""
    longest = settings.data.max_length
    if full_name(name) and not Path(name).exists() and name not in shipped_models():
        changes = {"vocab_size": store.tokenizer.vocab_size} | settings.model
        if longest > preset(name).max_position_embeddings:
            changes.setdefault("max_position_embeddings", longest)
        model = new_model(preset(name).with_settings(changes), HEADS, seed=settings.train.seed)
        if settings.positions == "waves":
            draw_waves(model)
        return model
    folder = locate(name)
    for start in ("positions", "words"):
        if (value := getattr(settings, start)) != "random":
            raise UsageError(f"{start}='{value}' is how a new model starts; {folder} has its own")
    loaded = load_model(folder, HEADS, seed=settings.train.seed)
    if fixed := sorted(set(settings.model) - CHANGEABLE):
        raise UsageError(f"model.{fixed[0]}: a model folder keeps its shape; only depth and dropout can change")
    model = loaded.model
    if settings.model:
        model = _reshaped(model, settings.model)
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


def _reshaped(model: Albert, changes: dict[str, Any]) -> Albert:
    shared = model.config.num_blocks == (model.config.inner_group_num,) * 2 and not model.config.is_relaxed
    if not shared and "num_hidden_layers" in changes:
        raise UsageError("model.num_hidden_layers: only a model that shares all its layers can change its depth")
    other = Albert(model.config.with_settings(changes), list(model.heads))
    other.load_state_dict(model.state_dict())
    return other


def start_from_counts(model: Albert, store: TokenStore, world: World) -> None:
    """Start the word embeddings from counts, the same in every process."""
    if world.is_first:
        log.info("counting which pieces stand near each other")
        counted = count_word_vectors(store, model.config.embedding_size)
        start_words(model, torch.from_numpy(counted.vectors), torch.from_numpy(counted.frequencies))
    world.share(model)
