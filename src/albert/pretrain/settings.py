"""What a pre-training run may set."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from albert.data.settings import ExampleSettings, PairSettings
from albert.optim import OptimizerSettings
from albert.settings import Renamed, Section
from albert.train.settings import GrowSettings, TrainSettings


class DataSettings(PairSettings):
    """How examples are made from a store; their seed is that of the run."""

    max_length: int = 128


class EvaluationSettings(Section):
    """How much held-out text is looked at."""

    examples: int = Field(default=2_000, ge=1)


class PretrainOptimizer(OptimizerSettings):
    """LAMB unless told: from noise AdamW stayed at the frequencies of single words in short runs (docs/lab_log.md)."""

    name: str = "lamb"


class InitSettings(Section):
    """How the embeddings of a new model start."""

    positions: Literal["random", "sinusoidal"] = "random"
    words: Literal["random", "ppmi", "teacher"] = "random"  # noise, PPMI vectors of the text, those with a teacher's


class TeacherSettings(Section):
    """Whose vectors are learnt beside words and order."""

    model: str | None = None  # a folder: a BERT or an ALBERT whose mean vectors are worth having
    weight: Annotated[float, Field(gt=0)] = 5.0  # of its loss, where those of words and order have 1
    pairs: Annotated[float, Field(ge=0)] = 0.0  # weight of how like two segments are, read together
    words: Annotated[float, Field(ge=0)] = 0.0  # weight of what each word means in its text
    share: Annotated[float, Field(gt=0, le=1)] = 1.0  # of the texts: the teacher reads no others


class PretrainSettings(Section):
    """Everything a pre-training run may set."""

    renamed: ClassVar = {
        "positions": Renamed("model_init.positions", {"waves": "sinusoidal"}),
        "words": Renamed("model_init.words", {"counts": "ppmi"}),
    }

    start_from: str | None = None  # a preset or a model folder, for whoever starts the run and names none
    model: dict[str, Any] = Field(default_factory=dict)  # fields of the configuration to change
    model_init: InitSettings = InitSettings()
    dropout_until: Annotated[float, Field(gt=0, lt=1)] | None = (
        None  # share of the steps; from there on without dropout
    )
    order_weight: Annotated[float, Field(gt=0)] = 1.0  # of the order loss beside that of words; the paper's is 1
    teacher: TeacherSettings = TeacherSettings()
    data: DataSettings = DataSettings()
    train: TrainSettings = TrainSettings()
    optimizer: PretrainOptimizer = PretrainOptimizer()
    grow: GrowSettings = GrowSettings()
    evaluation: EvaluationSettings = EvaluationSettings()

    @property
    def is_open_ended(self) -> bool:
        """Say whether steps up to the decay are the same however many follow, so that a resumed run may have others."""
        rates = self.optimizer
        staged = self.dropout_until is not None or self.grow.depth or self.grow.length
        fixed = isinstance(rates.lr, float) and rates.warmup_steps is not None and rates.warmup_steps < self.train.steps
        return rates.decay < 1 and fixed and not staged


def example_settings(settings: PretrainSettings, *, length: int | None = None) -> ExampleSettings:
    """Return the settings of the examples, at some length."""
    values = settings.data.model_dump() | {"seed": settings.train.seed}
    return ExampleSettings(**(values | ({"max_length": length} if length else {})))
