"""The one training loop: pre-training and fine-tuning are jobs that it runs.

A job gives the micro-batches of a step, the loss of one, and an evaluation. The loop does what is the same for all:
global counts, accumulation, one reduction of gradients, clipping, the schedule, bad losses, checkpoints, signals. All
randomness of a step is a function of (seed, step, rank), so a resumed run is bit for bit the run it continues.
"""

from __future__ import annotations

import logging
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from albert.errors import AlbertError, Interrupted, ModelError
from albert.model import Albert
from albert.optim import OptimizerSettings, rate_at, set_rate
from albert.train.checkpoint import TrainState, load_checkpoint, newest_intact, require_space, save_checkpoint
from albert.train.settings import TrainSettings
from albert.train.world import World

log = logging.getLogger(__name__)

SMOOTHING = 0.98
JUMP = (2.0, 3.0)  # a loss above 2 x the running mean + 3 is no accident of a batch
RISE = (1.5, 0.5)  # a running mean above 1.5 x its best + 0.5 is a run that is being lost
MAX_SKIPPED = 100
SAVING = 20.0  # times as long as a save takes are trained before the next by time


@dataclass(frozen=True)
class MicroLoss:
    """What a micro-batch adds to a step."""

    loss: Tensor  # already divided by the counts of the global batch
    sums: dict[str, float] = field(default_factory=dict)  # to be added up over micro-batches, processes and steps


class BadLoss(AlbertError):
    """A loss or gradient that would do harm: the run has to be started otherwise."""


class Job(Protocol):
    """What is trained: data, loss and evaluation."""

    model: Albert
    heavy_tails: bool  # whether a batch may have a loss far above the mean and do no harm, as one with an outlier does

    def batches(self, first_step: int) -> Iterator[list[Any]]:
        """Yield this process's micro-batches, step after step."""

    def counts(self, batch: Any) -> list[float]:
        """Count the predictions of a micro-batch, each kind of loss apart."""

    def loss(self, batch: Any, *, counts: list[float], step: int) -> MicroLoss:
        """Compute a micro-batch's share of the loss; `counts` are those of the global batch."""

    def summarise(self, sums: dict[str, float]) -> dict[str, float]:
        """Turn sums over some steps into the metrics to log."""

    def evaluate(self, step: int) -> dict[str, float]:
        """Score the model on held-out data; every process takes part."""


@dataclass(frozen=True)
class Progress:
    """What an observer is told after each logged step."""

    step: int
    steps: int
    metrics: dict[str, float]


@dataclass(frozen=True)
class Trained:
    """How a run ended."""

    state: TrainState
    resumed_from: int
    last_evaluation: dict[str, float]


def train(
    job: Job,
    optimizer: torch.optim.Optimizer,
    *,
    settings: TrainSettings,
    rates: OptimizerSettings,
    peak: float,
    warmup: int,
    folder: Path,
    world: World,
    observe: Callable[[Progress], None] = lambda _: None,
    resumed: Callable[[int], None] = lambda _: None,
    judge: Callable[[TrainState, dict[str, float]], bool] = lambda state, evaluation: False,
) -> Trained:
    """Run a job to its last step, from the newest intact checkpoint in `folder/checkpoints` if there is one.

    `resumed` is told the step that the run starts from, before anything is observed. `judge` is told every evaluation,
    may note in the state what it wants to know again after a resume, and ends the run by saying True.
    """
    model, saves = job.model, folder / "checkpoints"
    state = TrainState()
    if world.is_first:
        saves.mkdir(parents=True, exist_ok=True)
        require_space(saves, model)
    world.wait()
    if newest := newest_intact(saves):
        state = load_checkpoint(newest, model, optimizer)
        log.info("resuming from step %d", state.step)
    resumed_from = state.step
    if (first := int(world.from_first(state.step))) != state.step:
        raise ModelError(
            f"{saves}: this process would go on from step {state.step:,}, the first from {first:,}: the run folder "
            "must be on a disk that all machines see"
        )
    resumed(state.step)
    scaler = _scaler(settings, state, world)
    meter, evaluation = _Meter(job, world), {}
    saver = _Saver(saves, model, optimizer, settings=settings, world=world)
    model.train()
    with _stop_signals() as stopped:
        batches = job.batches(state.step)
        try:
            while state.step < settings.steps and not state.ended:
                micro_batches = next(batches)
                lr = rate_at(state.step, peak=peak, warmup=warmup, steps=settings.steps, decay=rates.decay)
                set_rate(optimizer, lr)
                own = [*_total_counts(job, micro_batches), float(stopped.is_set()), float(saver.is_due())]
                *counts, stop, due = world.sum(own)  # so that all processes stop and save at the same step
                sums = accumulate(
                    job, micro_batches, counts=counts, step=state.step, settings=settings, scaler=scaler, world=world
                )
                _update(job, optimizer, sums, state=state, settings=settings, rates=rates, scaler=scaler, world=world)
                state.step += 1
                if scaler:
                    state.scale, state.scale_steps = scaler.get_scale(), scaler.state_dict()["_growth_tracker"]
                meter.add(sums)
                last = state.step == settings.steps
                if state.step % settings.log_every == 0 or last or stop or due:  # nothing is half counted in a save
                    metrics = meter.read(lr)
                    if world.is_first:
                        observe(Progress(state.step, settings.steps, metrics))
                if state.step % settings.eval_every == 0 or last:
                    model.eval()
                    evaluation = job.evaluate(state.step)
                    model.train()
                    if world.is_first and evaluation:
                        observe(Progress(state.step, settings.steps, evaluation))
                    state.ended = bool(world.from_first(judge(state, evaluation)))
                    last = last or state.ended
                if state.step % settings.save_every == 0 or last or stop or due:
                    saver.save(state)
                if stop and not last:
                    raise Interrupted(f"interrupted: step {state.step} is saved; run the same command again to go on")
        finally:
            if hasattr(batches, "close"):
                batches.close()
    model.eval()
    return Trained(state, resumed_from, evaluation)


def begin_words(step: int, steps: int) -> str:
    """Return where a run begins, in words."""
    if step == 0:
        return "starting from the beginning"
    return f"resuming from step {step:,} of {steps:,}" if step < steps else "has done all its steps"


def _total_counts(job: Job, micro_batches: list[Any]) -> list[float]:
    return [sum(column) for column in zip(*(job.counts(batch) for batch in micro_batches), strict=True)]


def accumulate(
    job: Job,
    micro_batches: list[Any],
    *,
    counts: list[float],
    step: int,
    settings: TrainSettings,
    scaler: torch.amp.GradScaler | None,
    world: World,
) -> dict[str, float]:
    """Add up the gradients of this process's micro-batches."""
    sums: dict[str, float] = {"loss": 0.0}
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(settings.precision)
    for number, batch in enumerate(micro_batches):
        torch.manual_seed(_dropout_seed(settings.seed, step, world.rank, number))
        with torch.autocast(world.device.type, dtype=kind, enabled=kind is not None):
            part = job.loss(batch, counts=counts, step=step)
        (scaler.scale(part.loss) if scaler else part.loss).backward()  # type: ignore[no-untyped-call]
        sums["loss"] += part.loss.item()
        for name, value in part.sums.items():
            sums[name] = sums.get(name, 0.0) + value
    return sums


def _dropout_seed(seed: int, step: int, rank: int, micro: int) -> int:
    """Mix the four into one seed: nothing random is left to be saved."""
    mixed = seed
    for value in (step, rank, micro):
        mixed = (mixed * 0x9E3779B97F4A7C15 + value + 1) & 0xFFFFFFFFFFFFFFFF
        mixed ^= mixed >> 31
    return mixed >> 1


def _update(
    job: Job,
    optimizer: torch.optim.Optimizer,
    sums: dict[str, float],
    *,
    state: TrainState,
    settings: TrainSettings,
    rates: OptimizerSettings,
    scaler: torch.amp.GradScaler | None,
    world: World,
) -> None:
    """Move the weights, unless the loss or the gradient says that it would do harm."""
    world.sum_gradients(job.model)
    if scaler:
        scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(job.model.parameters(), rates.clip).item()
    loss = world.sum([sums["loss"]])[0]
    checked = norm if not scaler else 0.0  # an fp16 overflow is the scaler's business
    problem = _problem(loss, checked, state, heavy_tails=job.heavy_tails)
    if problem is None:
        mean = state.smooth_loss if state.smooth_loss is not None else loss
        state.smooth_loss = SMOOTHING * mean + (1 - SMOOTHING) * loss
        state.best_smooth_loss = min(state.smooth_loss, state.best_smooth_loss or state.smooth_loss)
        if scaler:
            scaler.step(optimizer)
        else:
            # Muon's products in bf16 too: a tenth of a step of 3,000 tokens otherwise; nothing else casts
            bf16 = settings.precision == "bf16"
            with torch.autocast(world.device.type, dtype=torch.bfloat16, enabled=bf16):
                optimizer.step()
    else:
        state.skipped += 1
        advice = "lower optimizer.lr, raise optimizer.warmup_steps, or use a larger batch"
        if settings.on_bad_loss == "stop" or state.skipped > MAX_SKIPPED:
            raise BadLoss(
                f"step {state.step}: {problem}: {advice} (train.on_bad_loss='skip' passes over single bad steps). "
                "The last good checkpoint is untouched"
            )
        log.warning("step %d: %s: skipped", state.step, problem)
    if scaler:
        scaler.update()
    sums["gradient_norm"] = norm / world.size  # added up over processes later
    optimizer.zero_grad(set_to_none=True)


def _problem(loss: float, norm: float, state: TrainState, *, heavy_tails: bool) -> str | None:
    """Say why a step would do harm."""
    if not math.isfinite(loss):
        return f"the loss is {loss}"
    if not math.isfinite(norm):
        return f"the gradient's norm is {norm}"
    if heavy_tails:  # its gradient is clipped
        return None
    mean, best = state.smooth_loss, state.best_smooth_loss
    if mean is not None and loss > JUMP[0] * mean + JUMP[1]:
        return f"the loss jumped from {mean:.3g} to {loss:.3g}"
    if mean is not None and best is not None and mean > RISE[0] * best + RISE[1]:
        return f"the loss rose from {best:.3g} to {mean:.3g}"
    return None


class _Saver:
    """Writes checkpoints, and knows when one is due by time: the first process decides, and all save at its step."""

    def __init__(
        self, folder: Path, model: Albert, optimizer: torch.optim.Optimizer, *, settings: TrainSettings, world: World
    ) -> None:
        self._folder, self._model, self._optimizer = folder, model, optimizer
        self._settings, self._world = settings, world
        self._last, self._took = time.monotonic(), 0.0

    def is_due(self) -> bool:
        """Tell the first process whether so much time has passed that a crash would cost too much."""
        wait = max(60 * self._settings.save_minutes, SAVING * self._took)
        return self._world.is_first and time.monotonic() - self._last >= wait

    def save(self, state: TrainState) -> None:
        """Write a checkpoint in the first process; the others wait."""
        before = time.monotonic()
        if self._world.is_first:
            save_checkpoint(self._folder, state, self._model, self._optimizer, keep=self._settings.keep)
        self._world.wait()
        self._last = time.monotonic()
        self._took = self._last - before


class _Meter:
    """Sums since the last log, and the pace."""

    def __init__(self, job: Job, world: World) -> None:
        self._job, self._world = job, world
        self._sums: dict[str, float] = {}
        self._steps = 0
        self._since = time.monotonic()

    def add(self, sums: dict[str, float]) -> None:
        self._steps += 1
        for name, value in sums.items():
            self._sums[name] = self._sums.get(name, 0.0) + value

    def read(self, lr: float) -> dict[str, float]:
        """Return the metrics since the last reading, over all processes."""
        names = sorted(self._sums)
        sums = dict(zip(names, self._world.sum([self._sums[name] for name in names]), strict=True))
        now = time.monotonic()
        seconds, self._since = now - self._since, now
        metrics = {"loss": sums["loss"] / self._steps, "lr": lr, "gradient_norm": sums["gradient_norm"] / self._steps}
        metrics |= self._job.summarise(sums)
        if "tokens" in sums:
            metrics["tokens_per_second"] = sums["tokens"] / max(seconds, 1e-9)
        metrics["seconds"] = seconds  # since the last reading: evaluations and saves in between count
        self._sums, self._steps = {}, 0
        return metrics


def _scaler(settings: TrainSettings, state: TrainState, world: World) -> torch.amp.GradScaler | None:
    if settings.precision != "fp16":
        return None
    scaler = torch.amp.GradScaler(world.device.type)
    if state.scale:
        scaler.load_state_dict(scaler.state_dict() | {"scale": state.scale, "_growth_tracker": state.scale_steps})
    return scaler


@contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """Turn SIGINT and SIGTERM into a request to finish the step and save; a second one ends at once."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def ask(number: int, frame: Any) -> None:  # noqa: ARG001
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
