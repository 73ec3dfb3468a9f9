"""Requests share batches: what arrives within a few milliseconds, or while a batch runs, runs together.

The unit is the sequence, not the request: a long list is divided over many batches and a long text over its windows, so
no batch is above its budget, and requests take turns, so a short one does not wait for a long list before it. The queue
is bounded by its tokens. A request leaves it when its deadline passes or its client goes away. If a batch fails, each
of its sequences is tried alone: only the request that holds the cause fails. One thread computes, for all models.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from albert.batch import Said, Wanted
from albert.inference.predictor import Decides, Predictor
from albert.serve.metrics import Metrics
from albert.serve.refusals import Refusal, backend, overloaded, too_large
from albert.tasks.task import Feature
from albert.tokenizer import Tokenizer

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Lane:
    """What can share a batch: sequences for one predictor and one task."""

    predictor: Predictor
    task: Decides[Any, Any, Any]


@dataclass(frozen=True, eq=False)
class Item:
    """One thing to decide, encoded."""

    example: Any
    features: Sequence[Feature]
    truncated: bool = False

    @property
    def tokens(self) -> int:
        """Count the tokens of all sequences."""
        return sum(len(feature.token_ids) for feature in self.features)


@dataclass(frozen=True)
class Decided:
    """The decisions about a request's items, in order; seconds that it waited and that it was computed."""

    results: list[Any]
    queue_seconds: float
    inference_seconds: float


def gather_items(encoded: Iterable[Item], *, most: int) -> list[Item]:
    """Return items that are encoded one by one, or refuse them once they have more tokens than can wait."""
    items, tokens = [], 0
    for item in encoded:
        tokens += item.tokens
        if tokens > most:
            raise _too_many(most)
        items.append(item)
    return items


class ClientGone(Exception):
    """Nobody waits for the answer."""


class _Job:
    """A request in the queue: the places of its sequences that wait, and what is known of the others."""

    def __init__(self, lane: Lane, items: Sequence[Item], future: asyncio.Future[Decided]) -> None:
        self.lane, self.items, self.future = lane, items, future
        self.waiting = deque((i, j) for i, item in enumerate(items) for j in range(len(item.features)))
        self.missing = len(self.waiting)
        self.outputs: list[list[Any]] = [[None] * len(item.features) for item in items]
        self.failure: Refusal | None = None
        self.arrived, self.started = perf_counter(), 0.0

    def feature(self, place: tuple[int, int]) -> Feature:
        return self.items[place[0]].features[place[1]]

    def next_length(self) -> int:
        return len(self.feature(self.waiting[0]).token_ids)

    def abandon(self) -> None:
        """Say to who waits for it that its client is gone."""
        if not self.future.done():
            self.future.set_exception(ClientGone())

    def give_up(self) -> int:
        """Let nothing of it wait any longer; return the tokens that this frees."""
        tokens = sum(len(self.feature(place).token_ids) for place in self.waiting)
        self.waiting.clear()
        return tokens


_Unit = tuple[_Job, tuple[int, int]]


@dataclass(frozen=True, eq=False)
class _Sequences:
    """A task's outputs, sequence by sequence: deciding is left for when all of an example's are there."""

    task: Decides[Any, Any, Any]

    def encode(self, example: Any, tokenizer: Tokenizer) -> list[Any]:
        raise AssertionError("what is in the queue is encoded")

    def wanted(self, features: Sequence[Any]) -> Wanted:
        return self.task.wanted(features)

    def outputs(self, feature: Any, said: Said) -> Any:
        return self.task.outputs(feature, said)

    def decide(self, example: Any, features: Sequence[Any], outputs: Sequence[Any]) -> Any:
        return outputs[0]


class Batcher:
    """The queue and the thread that empties it; lives in one event loop."""

    def __init__(self, *, batch_tokens: int, batch_wait: float, queue_tokens: int, metrics: Metrics) -> None:
        self._batch_tokens, self._batch_wait, self._queue_tokens = batch_tokens, batch_wait, queue_tokens
        self._metrics = metrics
        self._jobs: deque[_Job] = deque()
        self._queued = 0  # tokens that wait
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._worker: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to empty the queue."""
        self._worker = asyncio.get_running_loop().create_task(self._work())

    async def stop(self) -> None:
        """Stop after the batch that runs."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        self._thread.shutdown()

    @property
    def queued_tokens(self) -> int:
        """Return how many tokens wait."""
        return self._queued

    async def decide(
        self,
        lane: Lane,
        items: Sequence[Item],
        *,
        seconds: float,
        urgent: bool = False,
        gone: asyncio.Future[None] | None = None,
    ) -> Decided:
        """Decide items within some seconds, unless its client is `gone` before; `urgent`: before all that wait."""
        tokens = sum(item.tokens for item in items)
        if tokens > self._queue_tokens:
            raise _too_many(self._queue_tokens)
        if self._queued + tokens > self._queue_tokens and not urgent:
            raise overloaded("the queue is full: try again later, or more slowly")
        job = _Job(lane, items, asyncio.get_running_loop().create_future())
        if not job.missing:
            return Decided([], 0.0, 0.0)
        if urgent:
            self._jobs.appendleft(job)
        else:
            self._jobs.append(job)
        self._queued += tokens
        self._count_queue()
        self._arrived.set()
        if gone is not None:
            gone.add_done_callback(lambda _: job.abandon())
        try:
            async with asyncio.timeout(seconds):
                return await job.future
        except TimeoutError:
            raise overloaded(f"not answered within {seconds:g} seconds: try again later, or with fewer texts") from None
        finally:
            if job.waiting:  # the deadline passed, it failed, or its client is gone
                self._queued -= job.give_up()
                if job in self._jobs:
                    self._jobs.remove(job)
                self._count_queue()

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not self._jobs:
                self._arrived.clear()
                await self._arrived.wait()
                await self._gather()
            lane, units = self._take()
            if lane is None:
                continue
            try:
                done = await loop.run_in_executor(self._thread, _compute, lane, units)
            except Exception:  # not the model's failure, which _compute returns: a defect of ours must not end the loop
                log.exception("a batch of %d sequences was lost", len(units))
                done = [(job, backend("the batch failed")) for job in {id(job): job for job, _ in units}.values()]
            for job, result in done:
                if job.future.done():
                    continue
                if isinstance(result, Refusal):
                    job.future.set_exception(result)
                else:
                    now = perf_counter()
                    job.future.set_result(Decided(result, job.started - job.arrived, now - job.started))

    async def _gather(self) -> None:
        """Wait a moment for others that can share the batch, unless it is full already."""
        end = perf_counter() + self._batch_wait
        while self._queued < self._batch_tokens and (rest := end - perf_counter()) > 0:
            self._arrived.clear()
            try:
                async with asyncio.timeout(rest):
                    await self._arrived.wait()
            except TimeoutError:
                return

    def _take(self) -> tuple[Lane | None, list[_Unit]]:
        """Take one batch: of the lane whose turn it is, its requests in turn."""
        if not self._jobs:
            return None, []
        lane = self._jobs[0].lane
        others = [job for job in self._jobs if job.lane is not lane]
        turn = deque(job for job in self._jobs if job.lane is lane)
        units: list[_Unit] = []
        tokens, now = 0, perf_counter()
        while turn and (not units or tokens + turn[0].next_length() <= self._batch_tokens):
            job = turn.popleft()
            job.started = job.started or now
            tokens += job.next_length()
            units.append((job, job.waiting.popleft()))
            if job.waiting:
                turn.append(job)
        self._jobs = deque([*others, *turn])
        self._queued -= tokens
        self._count_queue()
        self._metrics.batch(sequences=len(units), tokens=tokens)
        return lane, units

    def _count_queue(self) -> None:
        self._metrics.queue_size.set(len(self._jobs))


def _too_many(most: int) -> Refusal:
    return too_large(f"the request has more than {most:,} tokens, the most that can wait: split it into several")


def _compute(lane: Lane, units: Sequence[_Unit]) -> list[tuple[_Job, list[Any] | Refusal]]:
    """Run sequences; return the requests that are now complete, decided, and those that failed."""
    for (job, (i, j)), output in zip(units, _outputs(lane, units), strict=True):
        job.missing -= 1
        if isinstance(output, Exception):
            log.warning("%s while an input was computed", type(output).__name__)
            where = f"inputs[{i}]: " if len(job.items) > 1 else ""
            job.failure = job.failure or backend(f"{where}the model failed ({type(output).__name__})")
        else:
            job.outputs[i][j] = output
    done: list[tuple[_Job, list[Any] | Refusal]] = []
    for job in {id(job): job for job, _ in units}.values():
        if job.failure is not None:
            done.append((job, job.failure))
        elif not job.missing:
            done.append((job, _decide(lane, job)))
    return done


def _outputs(lane: Lane, units: Sequence[_Unit]) -> list[Any]:
    """Return the outputs of sequences, or the exception in the place of each that fails by itself."""
    encoded = [(None, [job.feature(place)]) for job, place in units]
    try:
        return list(lane.predictor.predict_encoded(_Sequences(lane.task), encoded))
    except Exception as problem:
        if len(units) == 1:
            return [problem]
        return [output for unit in units for output in _outputs(lane, [unit])]


def _decide(lane: Lane, job: _Job) -> list[Any] | Refusal:
    try:
        return [
            lane.task.decide(item.example, item.features, outputs)
            for item, outputs in zip(job.items, job.outputs, strict=True)
        ]
    except Exception as problem:
        log.warning("%s while an input was decided", type(problem).__name__)
        return backend(f"the decision failed ({type(problem).__name__})")
