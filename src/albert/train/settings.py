"""What a training run may set, whatever it trains. Checked together, so that no run starts with a contradiction."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from albert.hardware import advise_precision
from albert.settings import Section
from albert.train.world import World

PRECISIONS = ("fp32", "bf16", "fp16")
Stage = tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[int, Field(ge=1)]]  # (from this share of the steps, value)


class TrainSettings(Section):
    """How long, how large, how safe."""

    steps: Annotated[int, Field(ge=1)] = 10_000
    batch_size: Annotated[int, Field(ge=1)] = 256  # sequences per step, over all processes
    micro_batch: Annotated[int, Field(ge=1)] | None = None  # sequences at once; None: what fits 16,384 tokens
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    checkpointing: bool = False  # recompute layers in the backward pass: slower, much less memory
    compile: bool = False
    save_every: Annotated[int, Field(ge=1)] = 1_000
    save_minutes: Annotated[float, Field(gt=0)] = 2.0  # … and when so much time has passed since the last save
    keep: Annotated[int, Field(ge=1)] = 2
    eval_every: Annotated[int, Field(ge=1)] = 1_000
    log_every: Annotated[int, Field(ge=1)] = 50
    on_bad_loss: Literal["stop", "skip"] = "stop"
    timeout_minutes: Annotated[float, Field(gt=0)] = 10.0  # a process that hangs longer ends the run


def with_precision(settings: TrainSettings, world: World) -> TrainSettings:
    """Resolve the precision `auto` to what the device of the first process is good at, the same for all."""
    if settings.precision != "auto":
        return settings
    kind: Any = world.device.type
    chosen = PRECISIONS[int(world.from_first(PRECISIONS.index(advise_precision(kind))))]
    return settings.model_copy(update={"precision": chosen})


class GrowSettings(Section):
    """Stages of depth and of sequence length, as pairs (from this share of the steps, value); empty: constant."""

    depth: list[Stage] = Field(default_factory=list)
    length: list[Stage] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _pairs(cls, values: object) -> object:
        """Take TOML's lists for pairs."""
        if not isinstance(values, dict):
            return values
        return {
            name: [tuple(pair) if isinstance(pair, list) else pair for pair in stages]
            if isinstance(stages, list)
            else stages
            for name, stages in values.items()
        }

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        for name, stages in (("depth", self.depth), ("length", self.length)):
            shares = [share for share, _ in stages]
            if stages and (shares[0] != 0 or sorted(set(shares)) != shares):
                raise ValueError(f"grow.{name}={stages}: the first stage begins at 0.0 and each later one further on")
        return self


def stage_at(stages: list[Stage], step: int, *, steps: int, constant: int) -> int:
    """Return the value in force at a step."""
    value = constant
    for share, stage in stages:
        if step >= round(share * steps):
            value = stage
    return value
