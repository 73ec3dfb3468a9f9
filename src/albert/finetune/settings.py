"""What a fine-tuning run may set; what nobody gives, rules.py fills in."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from albert.optim import OptimizerSettings
from albert.settings import Section
from albert.tasks.classification import LongRule
from albert.train.settings import TrainSettings

Freeze = Literal["none", "embeddings", "backbone", "encoder"]
Probability = Annotated[float, Field(ge=0, lt=1)]


class LabelledSettings(Section):
    """How labelled data is read."""

    max_length: Annotated[int, Field(ge=16)] | None = None  # tokens of a sequence; None: by the rule
    holdout: Annotated[float, Field(gt=0, lt=1)] = 0.1  # becomes dev where none is given
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0  # of what is held out; another train.seed keeps the same dev
    class_weights: bool = False
    head: Literal["span", "conditional_span"] | None = None  # of questions about passages; None: by the data
    temperature: Annotated[float, Field(gt=0, le=1)] | None = None  # of similarity: what a cosine is divided by
    limit_train: Annotated[int, Field(ge=1)] | None = None
    limit_dev: Annotated[int, Field(ge=1)] | None = None


class TuneSettings(Section):
    """What only fine-tuning has."""

    rule: Literal["auto", "table14", "size"] = "auto"  # where values come from that nobody gave (finetune/rules.py)
    epochs: Annotated[float, Field(gt=0)] | None = None  # instead of train.steps
    patience: Annotated[int, Field(ge=1)] | None = None  # evaluations without a better score that end a run
    freeze: Freeze = "none"
    dropout: Probability | None = None  # of the encoder; None: by the rule
    classifier_dropout: Probability | None = None
    pooler: Literal["kept", "new"] | None = None  # that of sentence order, or a new one; None: by the rule
    long: LongRule | None = None  # of texts to classify: cut, or learnt in windows; None: by the rule
    capitals: bool | None = None  # of tags: show a lower-cased model where capitals are; None: if there are any
    early_exit: bool = False  # train the head on every layer, so that texts may leave early (predict --exit)
    start: Literal["trained", "random"] = "trained"  # random: the model's shape and tokenizer with new weights


class AdaptSettings(Section):
    """What `--adapt` does before tuning."""

    epochs: Annotated[float, Field(gt=0)] = 3.0  # over the task's texts
    lr: Annotated[float, Field(gt=0, lt=1)] = 5e-4


class FinetuneSettings(Section):
    """Everything a fine-tuning run may set."""

    data: LabelledSettings = LabelledSettings()
    train: TrainSettings = TrainSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    tune: TuneSettings = TuneSettings()
    adapt: AdaptSettings = AdaptSettings()
