"""What may be set about how weights move."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from albert.errors import did_you_mean
from albert.optim.table import OPTIMIZERS
from albert.settings import Section

Rate = Annotated[float, Field(gt=0, lt=10)]


class OptimizerSettings(Section):
    """Which optimizer, and how fast."""

    name: str = "adamw"  # one of optim/table.py
    lr: Rate | Literal["auto", "paper"] = "auto"
    other_lr: Rate | None = None  # of muon: the rate of what is no matrix of a layer, by AdamW; None: the rate `auto`
    embedding_lr_factor: Annotated[float, Field(gt=0)] = 1.0  # the word embeddings' rate, as a multiple
    warmup_steps: Annotated[int, Field(ge=0)] | None = None  # None: by the rule of `lr`
    decay: Annotated[float, Field(gt=0, le=1)] = 1.0  # share of the steps, at the end, over which the rate falls to 0
    weight_decay: Annotated[float, Field(ge=0, le=1)] = 0.01
    clip: Annotated[float, Field(gt=0)] = 1.0

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in OPTIMIZERS:
            raise ValueError(f"optimizer.name='{name}' is unknown: {did_you_mean(name, OPTIMIZERS)}")
        return name
