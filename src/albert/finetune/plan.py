"""What a fine-tuning will do and cost: what `--dry-run` shows. A few sequences are timed; nothing is written."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from albert.batch import MICRO_TOKENS
from albert.finetune.job import FinetuneJob, Items
from albert.finetune.preparation import Prepared
from albert.model.accounting import parameters_of, training_bytes
from albert.train.loop import accumulate
from albert.train.settings import TrainSettings
from albert.train.world import World

TRIED_TOKENS = 512


@dataclass(frozen=True)
class FinetunePlan:
    """What will be done."""

    task: str
    kind: str
    labels: list[str]
    train_examples: int
    dev_examples: dict[str, int]
    test_examples: dict[str, int]
    sequences: int  # of the training examples
    mean_length: float
    max_length: int
    parameters: int
    trainable: int
    steps: int
    epochs: float
    batch_size: int
    peak_rate: float
    warmup_steps: int
    eval_every: int
    seeds: int
    score: str  # that decides
    baseline: float  # of that score
    bag_of_words: float | None  # of that score
    training_bytes: int
    seconds: float  # of all seeds, evaluations included
    device: str
    notes: list[str]
    settings: dict[str, Any]


def make_plan(prepared: Prepared, *, seeds: int, world: World) -> FinetunePlan:
    """Work out what the settings lead to on this machine."""
    settings, items, task = prepared.settings, prepared.items, prepared.task
    model = prepared.build(settings).to(world.device).train()
    model.encoder.checkpointing = settings.train.checkpointing
    train = settings.train
    job = FinetuneJob(model, task, items, settings=train, world=world)
    an_item = items.tokens / len(items.items)
    dev = {name: len(rows) for name, rows in prepared.dev.items()}
    evaluations = math.ceil(train.steps / train.eval_every)
    read = sum(dev.values()) * items.tokens / items.examples / 3  # deciding is a forward pass, learning costs three
    tokens = seeds * (train.steps * train.batch_size * an_item / world.size + evaluations * read)
    lr, warmup = settings.optimizer.lr, settings.optimizer.warmup_steps
    assert isinstance(lr, float)
    assert warmup is not None
    at_once = min(MICRO_TOKENS, round(train.batch_size / world.size * an_item))
    return FinetunePlan(
        task=prepared.name,
        kind=task.kind,
        labels=list(getattr(task, "labels", ())),
        train_examples=items.examples,
        dev_examples=dev,
        test_examples={name: len(rows) for name, rows in prepared.test.items()},
        sequences=items.sequences,
        mean_length=items.tokens / items.sequences,
        max_length=task.max_length,
        parameters=parameters_of(model).total,
        trainable=sum(p.numel() for p in model.parameters() if p.requires_grad),
        steps=train.steps,
        epochs=train.steps * train.batch_size / len(items.items),
        batch_size=train.batch_size,
        peak_rate=lr,
        warmup_steps=warmup,
        eval_every=train.eval_every,
        seeds=seeds,
        score=task.best,
        baseline=prepared.baseline,
        bag_of_words=prepared.bag_of_words,
        training_bytes=training_bytes(
            model.config, batch=1, length=at_once, masked=0.0, checkpointing=train.checkpointing
        ),
        seconds=tokens * _seconds_per_token(job, items, settings=train, world=world),
        device=str(world.device),
        notes=list(prepared.notes),
        settings=settings.model_dump(),
    )


def _seconds_per_token(job: FinetuneJob, items: Items, *, settings: TrainSettings, world: World) -> float:
    """Time some sequences forward and backward; the first time does not count."""
    some: list[Any] = []
    for item in items.items:
        some += item
        if sum(len(feature.token_ids) for feature in some) >= TRIED_TOKENS:
            break
    spent = 0.0
    for _ in range(2):
        before = time.monotonic()
        sums = accumulate(job, [some], counts=job.counts(some), step=0, settings=settings, scaler=None, world=world)
        spent = time.monotonic() - before
    return spent / sums["tokens"]
