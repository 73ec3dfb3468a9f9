"""How long a pre-training run will take here: a few training steps, timed, and the rest by proportion.

Every stage of depth and length is tried apart, with the real model and as much of a micro-batch as fits into a few
seconds. The tokens are random: they take as long as any. What is too large to try is reckoned from the speed of bare
matrix products, and said to be. Evaluation, saving and the exchange between processes are not counted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np
import torch

from albert.batch import PretrainingBatch
from albert.data.store import TokenStore
from albert.hardware import measure_memory
from albert.model import Albert
from albert.model.accounting import flops_per_token, training_bytes
from albert.pretrain.job import PretrainJob, count_micro_batches, phases
from albert.pretrain.lessons import Lessons
from albert.pretrain.settings import PretrainSettings
from albert.pretrain.teacher import open_teacher
from albert.train.loop import accumulate
from albert.train.world import World

BUDGET = 5.0  # seconds of trying, all stages together
REPEATS = 3
FIRST_PIECE = 5  # after the special ones


@dataclass(frozen=True)
class Pace:
    """How long the training steps of a run take on this machine."""

    seconds: float
    measured: bool  # False: some of it by arithmetic
    basis: str  # what was timed, and what was not and why


@dataclass(frozen=True)
class _Stage:
    """Some steps of one depth and length, as one process sees them."""

    steps: int
    first: int
    length: int
    depth: int
    sequences: int  # a step
    micro: int  # sequences at once


@dataclass(frozen=True)
class _Trial:
    """What was timed: some sequences at once."""

    sequences: int
    seconds: float


def measure_pace(
    model: Albert,
    optimizer: torch.optim.Optimizer,
    store: TokenStore,
    *,
    settings: PretrainSettings,
    mean_length: float,
    world: World,
) -> Pace:
    """Time some steps of a run that will not be made; `mean_length` counts the tokens of a sequence at full length.

    The model and the optimizer are moved by it, so use them for nothing else.
    """
    alone = World(0, 1, world.device)
    plain = settings.model_copy(update={"train": settings.train.model_copy(update={"compile": False})})
    lessons = None
    if settings.teacher.model:
        teacher = open_teacher(settings.teacher.model, world.device)
        lessons = Lessons.to_time(teacher, store.tokenizer, settings, model)
    job = PretrainJob(model.train(), store, plain, world=alone, valid=None, lessons=lessons)
    speed, full = _matrix_speed(world.device), mean_length / settings.data.max_length
    stages = _stages(job, settings, processes=world.size)
    budget = BUDGET / len(stages)
    seconds, timed, reckoned = 0.0, [], []
    for stage in stages:
        flops = 3 * stage.length * flops_per_token(model.config, length=stage.length, depth=stage.depth)
        most = _fitting(model, stage, settings) if flops / speed < budget else 0
        what = f"of {stage.length} tokens at depth {stage.depth}"
        if most:
            trial = _time(job, stage, most, settings=plain, world=alone, budget=budget)
            each = trial.seconds / trial.sequences
            timed.append(f"{trial.sequences} {what}")
        else:
            each = flops / speed
            reason = f"about {each:.1f} s" if each >= budget else "more memory than is free"
            reckoned.append(f"one {what}, which alone would take {reason}")
        seconds += stage.steps * each * stage.sequences * full
    seconds += settings.train.steps * _time_update(model, optimizer, precision=settings.train.precision)
    basis = f"timed: sequences, {', '.join(timed)}" if timed else "nothing timed"
    if reckoned:
        basis += f"; too large to try: {', '.join(reckoned)}"
    return Pace(seconds, measured=not reckoned, basis=basis)


def _stages(job: PretrainJob, settings: PretrainSettings, *, processes: int) -> list[_Stage]:
    steps = settings.train.steps
    changes = {round(share * steps) for share, _ in settings.grow.depth}
    found = []
    for phase in phases(settings):
        own = phase.batch_size // processes
        micro = own // count_micro_batches(settings, phase.batch_size, phase.length, processes=processes)
        borders = {phase.first, phase.end} | {step for step in changes if phase.first < step < phase.end}
        for first, end in pairwise(sorted(borders)):
            depth = job.depth_at(first) or job.model.config.num_hidden_layers
            found.append(_Stage(end - first, first, phase.length, depth, own, micro))
    return found


def _fitting(model: Albert, stage: _Stage, settings: PretrainSettings) -> int:
    """Say how much of a micro-batch there is memory for; 0 if not even for one sequence."""
    memory, sequences = measure_memory(), stage.micro
    while memory is not None and sequences > 0:
        needed = training_bytes(
            model.config, batch=sequences, length=stage.length, checkpointing=settings.train.checkpointing
        )
        if needed < memory.available:
            break
        sequences //= 2
    return sequences


def _time(
    job: PretrainJob, stage: _Stage, most: int, *, settings: PretrainSettings, world: World, budget: float
) -> _Trial:
    """Time forward and backward of one sequence, then of twice as many, and so on up to `most`, while there is time."""
    sequences, times, started = 1, list[float](), time.monotonic()
    while True:
        batch = _random_batch(job.model.config.vocab_size, sequences, stage.length, settings=settings)
        counts, before = job.counts(batch), time.monotonic()
        accumulate(job, [batch], counts=counts, step=stage.first, settings=settings.train, scaler=None, world=world)
        _finish(world.device)
        times.append(time.monotonic() - before)
        left = budget - (time.monotonic() - started)
        if sequences < most and 2 * times[-1] < left:
            sequences, times = min(2 * sequences, most), []
        elif len(times) > REPEATS or times[-1] > left:
            return _Trial(sequences, median(times[1:] or times))  # the first of a size is slower


def _time_update(model: Albert, optimizer: torch.optim.Optimizer, *, precision: str) -> float:
    """Time the optimizer's second step; the first makes its moments."""
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    optimizer.step()
    _finish(model.device)
    before = time.monotonic()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    with torch.autocast(model.device.type, dtype=torch.bfloat16, enabled=precision == "bf16"):
        optimizer.step()
    _finish(model.device)
    return time.monotonic() - before


def _random_batch(vocabulary: int, sequences: int, length: int, *, settings: PretrainSettings) -> PretrainingBatch:
    rng = np.random.default_rng(0)
    predicted = min(max(1, round(length * settings.data.mask_prob)), settings.data.max_predictions or length)
    starts = np.arange(sequences)[:, None] * length
    ids = rng.integers(FIRST_PIECE, vocabulary, sequences * length)
    positions = (starts + np.arange(1, predicted + 1)).reshape(-1)
    labelled = settings.data.objective != "none"
    return PretrainingBatch(
        token_ids=ids,
        segment_ids=np.tile(np.arange(length) * 2 // length, sequences),
        lengths=np.full(sequences, length),
        masked_positions=positions,
        masked_labels=ids[positions],
        order_labels=np.zeros(sequences, dtype=np.int64) if labelled else np.full(sequences, -1),
    )


def _matrix_speed(device: torch.device) -> float:
    """Measure the floating-point operations per second of a bare matrix product."""
    left, right = torch.ones(512, 512, device=device), torch.ones(512, 2048, device=device)
    times = []
    for _ in range(4):
        before = time.monotonic()
        left @ right
        _finish(device)
        times.append(time.monotonic() - before)
    return 2 * 512 * 512 * 2048 / max(min(times), 1e-6)


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
