"""What a pre-training run will do and cost: what `--dry-run` shows. Nothing is written."""

from __future__ import annotations

from dataclasses import dataclass, replace

from albert.data.settings import NUM_SPECIAL
from albert.data.store import TokenStore
from albert.data.stream import BatchStream
from albert.model import Albert
from albert.model.accounting import parameters_of, training_bytes
from albert.optim import build_optimizer
from albert.pretrain.job import count_micro_batches, phases
from albert.pretrain.pace import Pace, measure_pace
from albert.pretrain.settings import PretrainSettings, example_settings
from albert.train.world import World


@dataclass(frozen=True)
class Plan:
    """What a run will do: what `--dry-run` shows."""

    parameters: int
    tokens_per_step: int  # at most
    mean_length: float  # tokens of a sequence
    steps: int
    peak_rate: float
    warmup_steps: int
    epochs: float
    training_bytes: int
    device: str
    processes: int
    pace: Pace | None = None  # of a dry run: it takes some seconds to find out


def make_plan(
    model: Albert, store: TokenStore, settings: PretrainSettings, *, peak: float, warm: int, world: World
) -> Plan:
    """Work out what the settings lead to."""
    for phase in phases(settings):
        count_micro_batches(settings, phase.batch_size, phase.length, processes=world.size)
    train_settings, length = settings.train, settings.data.max_length
    stream = BatchStream(store, example_settings(settings), batch_size=1)
    samples = stream.epoch_size(0)
    own = train_settings.batch_size // world.size
    micro = own // count_micro_batches(settings, train_settings.batch_size, length, processes=world.size)
    return Plan(
        parameters=parameters_of(model).total,
        tokens_per_step=train_settings.batch_size * length,
        mean_length=min(length, store.num_tokens / samples + NUM_SPECIAL),
        steps=train_settings.steps,
        peak_rate=peak,
        warmup_steps=warm,
        epochs=train_settings.steps * train_settings.batch_size / samples,
        training_bytes=training_bytes(
            model.config, batch=micro, length=length, checkpointing=train_settings.checkpointing
        ),
        device=str(world.device),
        processes=world.size,
    )


def with_pace(plan: Plan, model: Albert, store: TokenStore, settings: PretrainSettings, *, world: World) -> Plan:
    """Add to a plan how long it takes on this machine."""
    model.to(world.device)
    model.encoder.checkpointing = settings.train.checkpointing
    pace = measure_pace(
        model,
        build_optimizer(settings.optimizer, model, lr=plan.peak_rate),
        store,
        settings=settings,
        mean_length=plan.mean_length,
        world=world,
    )
    return replace(plan, pace=pace)
