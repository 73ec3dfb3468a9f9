"""Fine-tuning against a plain transformers loop: same weights, same batches, same optimizer, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import transformers

from albert.finetune.job import FinetuneJob, Items, batch_items, encode_items
from albert.labelled.catalog import DataRequest, open_data
from albert.model import Albert, AlbertConfig, new_model
from albert.model.folder import save_model
from albert.optim import OptimizerSettings, build_optimizer, rate_at
from albert.tasks.classification import Classification, TextFeature
from albert.tasks.task import AnyTask, Feature
from albert.tokenizer import Tokenizer
from albert.train.loop import Progress, train
from albert.train.settings import TrainSettings
from albert.train.world import World

WARMUP, RATE = 5, 3e-4


def small_model(vocab_size: int, task: AnyTask) -> Albert:
    config = AlbertConfig(
        vocab_size=vocab_size, embedding_size=32, hidden_size=64, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=128, max_position_embeddings=128, classifier_dropout_prob=0.0,
    )  # fmt: skip
    return new_model(task.configure(config), (task.head,), seed=7)


def our_losses(model: Albert, task: AnyTask, items: Items, settings: TrainSettings, folder: Path) -> list[float]:
    losses: list[float] = []

    def note(progress: Progress) -> None:
        losses.append(progress.metrics["loss"])

    world = World(0, 1, torch.device("cpu"))
    train(
        FinetuneJob(model, task, items, settings=settings, world=world),
        build_optimizer(OptimizerSettings(name="adamw"), model, lr=RATE),
        settings=settings,
        rates=OptimizerSettings(),
        peak=RATE,
        warmup=WARMUP,
        folder=folder,
        world=world,
        observe=note,
    )
    return losses


def padded(features: Sequence[Feature]) -> dict[str, torch.Tensor]:
    rows = [torch.tensor(list(feature.token_ids)) for feature in features]
    types = [torch.tensor(list(feature.segment_ids)) for feature in features]
    mask = [torch.ones_like(row) for row in rows]
    names = {"input_ids": rows, "token_type_ids": types, "attention_mask": mask}
    return {name: torch.nn.utils.rnn.pad_sequence(values, batch_first=True) for name, values in names.items()}


def their_losses(start: Path, items: Items, settings: TrainSettings) -> list[float]:
    """Train as everybody does with transformers: padding, AdamW without decay on norms and biases, clipping."""
    model = transformers.AlbertForSequenceClassification.from_pretrained(start).train()
    plain = ("bias", "LayerNorm", "layer_norm")
    named = list(model.named_parameters())
    groups = [
        {"params": [p for n, p in named if not any(word in n for word in plain)], "weight_decay": 0.01},
        {"params": [p for n, p in named if any(word in n for word in plain)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.999), eps=1e-6)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: rate_at(step, peak=1.0, warmup=WARMUP, steps=settings.steps)
    )
    losses = []
    for step in range(settings.steps):
        chosen = batch_items(items.items, step, batch_size=settings.batch_size, seed=settings.seed)
        features = [feature for item in chosen for feature in item]
        labels = torch.tensor([feature.target for feature in features])  # type: ignore[attr-defined]
        loss = model(**padded(features), labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def compare(task: AnyTask, items: Items, vocab_size: int, *, steps: int, batch_size: int, folder: Path) -> None:
    settings = TrainSettings(
        steps=steps, batch_size=batch_size, seed=3, precision="fp32", log_every=1, eval_every=steps, save_every=steps
    )
    model = small_model(vocab_size, task)
    save_model(model, folder / "start")
    theirs = their_losses(folder / "start", items, settings)
    ours = our_losses(model, task, items, settings, folder / "run")
    assert len(ours) == steps
    assert np.abs(np.array(ours) - np.array(theirs)).max() <= 1e-4
    assert np.std(theirs) > 1e-3, "the losses move, or nothing is compared"


def test_ten_steps_on_made_up_pairs_have_the_losses_of_transformers(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    features = []
    for _ in range(48):
        length = int(rng.integers(4, 60))
        ids, segments = rng.integers(5, 200, length).tolist(), [0] * (length // 2) + [1] * (length - length // 2)
        features.append([TextFeature(ids, segments, int(rng.integers(2)))])
    compare(Classification(("0", "1")), Items(features, 48), 200, steps=10, batch_size=16, folder=tmp_path)


def test_fifty_steps_on_mrpc_have_the_losses_of_transformers(real_data: Path, tmp_path: Path) -> None:
    tokenizer = Tokenizer.load(real_data / "vocab" / "spiece.model")
    opened = open_data(DataRequest(real_data / "glue" / "MRPC", task="mrpc"))
    items = encode_items(opened.task, opened.splits.train, tokenizer)
    assert items.examples == 3668
    compare(opened.task, items, tokenizer.vocab_size, steps=50, batch_size=32, folder=tmp_path)
