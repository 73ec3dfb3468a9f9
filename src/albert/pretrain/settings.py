"""What a pre-training run may set."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from albert.data.settings import ExampleSettings
from albert.optim import OptimizerSettings
from albert.settings import Section
from albert.train.settings import GrowSettings, TrainSettings


class DataSettings(Section):
    """How examples are made from a store."""

    max_length: int = 128
    objective: Literal["sop", "nsp", "none"] = "sop"
    short_prob: float = 0.1
    mask_prob: float = 0.15
    max_ngram: int = 3
    max_predictions: int | None = None
    overlap: float = 0.0


class EvaluationSettings(Section):
    """How much held-out text is looked at."""

    examples: int = Field(default=2_000, ge=1)


class PretrainOptimizer(OptimizerSettings):
    """LAMB unless told: from noise AdamW stayed at the frequencies of single words in short runs (docs/lab_log.md)."""

    name: str = "lamb"


class PretrainSettings(Section):
    """Everything a pre-training run may set."""

    start_from: str | None = None  # a preset or a model folder, for whoever starts the run and names none
    model: dict[str, Any] = Field(default_factory=dict)  # fields of the configuration to change
    positions: Literal["random", "waves"] = "random"  # how the position embeddings of a new model start
    words: Literal["random", "counts"] = "random"  # … the word embeddings: noise, or counted from the text
    dropout_until: Annotated[float, Field(gt=0, lt=1)] | None = (
        None  # share of the steps; without dropout from there on
    )
    data: DataSettings = DataSettings()
    train: TrainSettings = TrainSettings()
    optimizer: PretrainOptimizer = PretrainOptimizer()
    grow: GrowSettings = GrowSettings()
    evaluation: EvaluationSettings = EvaluationSettings()


def example_settings(settings: PretrainSettings, *, length: int | None = None) -> ExampleSettings:
    """Give the settings of the examples, at some length."""
    values = settings.data.model_dump() | {"seed": settings.train.seed}
    return ExampleSettings(**(values | ({"max_length": length} if length else {})))
