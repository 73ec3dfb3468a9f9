"""How long, how large and how fast to fine-tune, where nobody said: Table 14 of the paper, or a rule by size.

Table 14 was found for xxlarge; its authors used it for the other sizes too. It is taken for the tasks it has and models
768 wide or wider. The v2 models were trained without dropout and diverge with v1's values for RACE (README of
google-research/albert), so v1's are taken only for a model that says v1 in its name. The table's steps are for the
whole training set; a smaller one gets the same number of epochs.

The rule for everything else: a rate that falls with the width of the model, a larger one for the word embeddings of
small models, as many epochs as make 12,000 examples, but 3 to 20, a tenth of the steps for warm-up, and a new pooler: a
small model's has learnt sentence order and little else. One that was tuned for another task stays, and one that is to
be frozen. The values at 256 come from a search (benchmarks/search_rule.py): docs/finetuning.md says what it showed.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from albert.errors import UsageError
from albert.finetune.settings import FinetuneSettings
from albert.model.config import AlbertConfig
from albert.settings import check_settings
from albert.tasks.task import AnyTask

NumberT = TypeVar("NumberT", int, float)

PAPER_WIDTH = 768  # of the paper's smallest model
EXAMPLES, FEWEST_EPOCHS, MOST_EPOCHS = 12_000, 3.0, 20.0
EVALUATIONS = 20  # at most, over a run
EVALUATION_SHARE = 0.2  # of the time of a run, at most; deciding costs a third of learning


@dataclass(frozen=True)
class Values:
    """What a rule decides."""

    lr: float
    batch_size: int
    dropout: float | None  # of the encoder; None: as the model has it
    classifier_dropout: float
    steps: int
    warmup_steps: int
    max_length: int | None  # None: the task's
    pooler: Literal["kept", "new"]
    embedding_lr_factor: float = 1.0


@dataclass(frozen=True)
class Row:
    """A row of Table 14, and the examples of the training set that its steps are for."""

    lr: float
    batch_size: int
    dropout: float
    steps: int
    warmup_steps: int
    max_length: int
    examples: int


TABLE_14: dict[str, Row] = {
    "cola": Row(1e-5, 16, 0.0, 5336, 320, 512, 8_551),
    "sts-b": Row(2e-5, 16, 0.0, 3598, 214, 512, 5_749),
    "sst-2": Row(1e-5, 32, 0.0, 20935, 1256, 512, 67_349),
    "mnli": Row(3e-5, 128, 0.0, 10000, 1000, 512, 392_702),
    "qnli": Row(1e-5, 32, 0.0, 33112, 1986, 512, 104_743),
    "qqp": Row(5e-5, 128, 0.1, 14000, 1000, 512, 363_846),
    "rte": Row(3e-5, 32, 0.1, 800, 200, 512, 2_490),
    "mrpc": Row(2e-5, 32, 0.0, 800, 200, 512, 3_668),
    "wnli": Row(2e-5, 16, 0.1, 2000, 250, 512, 635),
    "squad": Row(5e-5, 48, 0.0, 3649, 365, 384, 87_599),
    "squad 2.0": Row(3e-5, 48, 0.0, 8144, 814, 512, 130_319),
    "race": Row(2e-5, 32, 0.1, 12000, 1000, 512, 87_866),
}
V2_CHANGES: dict[str, dict[str, float]] = {"race": {"lr": 1e-5, "dropout": 0.0}}  # all that google-research/albert says


def table_row(name: str, task: AnyTask, *, model: str) -> Row | None:
    """Find the row for a task and a model, if the table has one."""
    key = "squad 2.0" if name == "squad" and getattr(task, "unanswerable", False) else name
    row = TABLE_14.get(key)
    if row is None or (_says(model, 1) and not _says(model, 2)):
        return row
    return replace(row, **V2_CHANGES.get(key, {}))  # type: ignore[arg-type]


def _says(model: str, version: int) -> bool:
    """Tell whether a name or path says v1 or v2: as a word, and not as v1.1 or v10."""
    return re.search(rf"(?<![a-z0-9])v{version}(?!\.?[0-9])", model.lower()) is not None


def by_table(row: Row, examples: int) -> Values:
    """Take a row, its steps reduced as the training set is."""
    share = min(1.0, examples / row.examples)
    return Values(
        lr=row.lr,
        batch_size=row.batch_size,
        dropout=row.dropout,
        classifier_dropout=0.1,
        steps=max(1, round(row.steps * share)),
        warmup_steps=round(row.warmup_steps * share),
        max_length=row.max_length,
        pooler="kept",
    )


def by_size(hidden: int, examples: int, *, items: int) -> Values:
    """Choose by the width of the model and the number of examples: 2.5e-5 at 768, 4e-4 at 256, 5e-4 at most.

    Word embeddings of a small model know little and move three times as fast; those of one 768 wide as all the rest.
    """
    batch_size = 32 if examples >= 2_000 else 16
    steps = math.ceil(epochs_for(examples) * items / batch_size)
    rate = min(5e-4, max(1e-5, 2.5e-5 * (768 / hidden) ** 2.52))
    factor = min(3.0, max(1.0, 768 / hidden))
    return Values(
        lr=float(f"{rate:.1e}"),
        batch_size=batch_size,
        dropout=None,
        classifier_dropout=0.1,
        steps=steps,
        warmup_steps=math.ceil(0.1 * steps),
        max_length=None,
        pooler="new",
        embedding_lr_factor=round(factor, 1),
    )


def epochs_for(examples: int) -> float:
    """Return the epochs of the rule by size."""
    return min(MOST_EPOCHS, max(FEWEST_EPOCHS, EXAMPLES / examples))


def followed(settings: FinetuneSettings, row: Row | None, config: AlbertConfig) -> Row | None:
    """Return the row of Table 14 if it is to be followed."""
    match settings.tune.rule:
        case "size":
            return None
        case "table14" if row is None:
            raise UsageError(f"tune.rule='table14': the table has no such task; it has {', '.join(TABLE_14)}")
        case "auto" if config.hidden_size < PAPER_WIDTH:
            return None
    return row


def resolve_length(settings: FinetuneSettings, task: AnyTask, config: AlbertConfig, *, row: Row | None) -> int:
    """Return the tokens of a sequence: what was asked for, Table 14's, or the task's; never more than the model has."""
    positions, wanted = config.max_position_embeddings, settings.data.max_length
    if wanted is not None and wanted > positions:
        raise UsageError(f"data.max_length={wanted}: the model has {positions} positions: use {positions} or less")
    if wanted is None:
        row = followed(settings, row, config)
        wanted = row.max_length if row is not None else task.max_length
    return min(wanted, positions)


def resolve(
    settings: FinetuneSettings,
    config: AlbertConfig,
    *,
    row: Row | None,
    examples: int,
    items: int,
    dev: int,
    tuned: bool = False,
) -> FinetuneSettings:
    """Fill in everything that was not given; afterwards `train.steps` is what counts. `tuned`: for another task."""
    train, optimizer, tune = settings.train, settings.optimizer, settings.tune
    _check(settings)
    row = followed(settings, row, config)
    values = by_table(row, examples) if row is not None else by_size(config.hidden_size, examples, items=items)
    batch_size = _given(train, "batch_size", values.batch_size)
    if "steps" in train.model_fields_set:
        steps = train.steps
    elif tune.epochs is not None:
        steps = max(1, math.ceil(tune.epochs * items / batch_size))
    else:  # another batch changes the steps, not the epochs
        steps = max(1, math.ceil(values.steps * values.batch_size / batch_size))
    warmup = optimizer.warmup_steps
    if warmup is None:
        warmup = min(steps - 1, round(values.warmup_steps * steps / values.steps))
    elif warmup >= steps > 1:
        raise UsageError(
            f"optimizer.warmup_steps={warmup} does not end within the run of {steps} steps: "
            f"use {max(1, steps // 10)} or so"
        )
    often = max(math.ceil(steps / EVALUATIONS), math.ceil(dev / (3 * EVALUATION_SHARE * batch_size)))
    eval_every = min(steps, _given(train, "eval_every", max(1, often)))
    filled = {
        "data": settings.data.model_dump(),
        "adapt": settings.adapt.model_dump(),
        "train": train.model_dump()
        | {
            "steps": steps,
            "batch_size": batch_size,
            "eval_every": eval_every,
            "save_every": _given(train, "save_every", max(eval_every, 500)),
            "log_every": _given(train, "log_every", max(1, min(50, steps // 50))),
        },
        "optimizer": optimizer.model_dump()
        | {
            "lr": optimizer.lr if isinstance(optimizer.lr, float) else values.lr,
            "embedding_lr_factor": _given(optimizer, "embedding_lr_factor", values.embedding_lr_factor),
            "warmup_steps": warmup,
        },
        "tune": tune.model_dump()
        | {
            "epochs": None,
            "dropout": tune.dropout if tune.dropout is not None else values.dropout,
            "classifier_dropout": tune.classifier_dropout
            if tune.classifier_dropout is not None
            else values.classifier_dropout,
            "pooler": tune.pooler or ("kept" if tuned or tune.freeze == "encoder" else values.pooler),
        },
    }
    return check_settings(FinetuneSettings, filled, source="settings")


def _check(settings: FinetuneSettings) -> None:
    if "steps" in settings.train.model_fields_set and settings.tune.epochs is not None:
        raise UsageError(f"train.steps={settings.train.steps} and tune.epochs={settings.tune.epochs}: give one of them")
    if settings.optimizer.lr == "paper":
        raise UsageError("optimizer.lr='paper' is the rate of pre-training: for Table 14 set tune.rule='table14'")


def _given(section: Any, name: str, otherwise: NumberT) -> NumberT:
    value: NumberT = getattr(section, name) if name in section.model_fields_set else otherwise
    return value
