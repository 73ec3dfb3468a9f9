"""Who runs the tasks of a build: this process, several on this machine, or a Ray cluster.

An engine maps `encode_part` over parts and gives the results in the order of the parts. It takes a part only when there
is room for it, so that memory does not grow with the corpus. Results come back as bytes and are written by the caller:
workers need no disk in common.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Protocol, TypeVar

from albert.cluster import ray_cluster
from albert.data.encode import EncodedPart, Job, Part, encode_part
from albert.errors import AlbertError, ResourceError

Encoded = Generator[EncodedPart, None, None]  # closing it ends the workers
Pending = TypeVar("Pending")

WAITING = 2  # parts read ahead, beyond those being encoded
RETRIES = 5  # of a task whose Ray worker died; more often it is the task that kills


class Engine(Protocol):
    """Something that can encode parts."""

    def encode(self, parts: Iterable[Part], job: Job) -> Encoded:
        """Encode every part, in order."""


@dataclass(frozen=True)
class LocalEngine:
    """Worker processes on this machine; with one worker, this process."""

    workers: int

    def encode(self, parts: Iterable[Part], job: Job) -> Encoded:
        """Encode every part, in order."""
        parts = iter(parts)
        first = list(islice(parts, 2))
        if self.workers == 1 or len(first) < 2:  # a second of starting processes would be for nothing
            return (encode_part(part, job) for part in chain(first, parts))
        return self._encode_in_pool(chain(first, parts), job)

    def _encode_in_pool(self, parts: Iterable[Part], job: Job) -> Encoded:
        # spawn, not fork: a child of a process with threads (the progress line is one) may inherit a held lock.
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(self.workers, context, initializer=_start_worker, initargs=(job,))

        def submit(part: Part) -> Future[EncodedPart]:
            with without_interrupts():  # workers start here and inherit it: Ctrl-C is the parent's to handle
                return pool.submit(_encode_in_worker, part)

        try:
            yield from _in_order(parts, submit, Future[EncodedPart].result, room=self.workers + WAITING)
        except BrokenProcessPool as problem:
            raise ResourceError(
                "a worker process died, most likely out of memory: what is finished is kept; "
                "run the same command again with fewer --workers"
            ) from problem
        finally:
            pool.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class RayEngine:
    """Tasks on a Ray cluster, or on a Ray started on this machine where no address is given."""

    address: str | None = None

    def encode(self, parts: Iterable[Part], job: Job) -> Encoded:
        """Encode every part, in order; Ray runs a task again when its worker or node dies."""
        with ray_cluster(self.address) as ray:
            yield from self._encode(ray, parts, job)

    def _encode(self, ray: Any, parts: Iterable[Part], job: Job) -> Encoded:
        try:
            shared_job = ray.put(pickle.dumps(job))
            task = ray.remote(_encode_on_cluster).options(max_retries=RETRIES)
            room = int(ray.cluster_resources().get("CPU", 1)) + WAITING
            yield from _in_order(parts, lambda part: task.remote(part, shared_job), ray.get, room=room)
        except ray.exceptions.WorkerCrashedError as problem:
            raise ResourceError(f"a Ray worker died {RETRIES + 1} times with the same part: {problem}") from problem
        except ray.exceptions.RayTaskError as problem:  # its text is a traceback, its cause what the task raised
            if isinstance(problem.cause, AlbertError):
                raise problem.cause from None
            reason = str(problem.cause).partition("\n")[0]
            raise ResourceError(
                f"a Ray worker can't encode ({reason}): is this version of albert-lite installed on every node?"
            ) from problem


def _in_order(
    parts: Iterable[Part],
    submit: Callable[[Part], Pending],
    result: Callable[[Pending], EncodedPart],
    *,
    room: int,
) -> Encoded:
    """Keep up to `room` tasks under way and give their results in the order of the parts."""
    pending: deque[Pending] = deque()
    for part in parts:
        pending.append(submit(part))
        if len(pending) >= room:
            yield result(pending.popleft())
    while pending:
        yield result(pending.popleft())


@contextmanager
def without_interrupts() -> Iterator[None]:
    if sys.platform == "win32":
        yield
        return
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


_worker_job: Job  # of a worker process of LocalEngine


def _start_worker(job: Job) -> None:
    global _worker_job
    _worker_job = job
    threading.Thread(target=end_with_parent, daemon=True).start()


def end_with_parent() -> None:
    """End this process when its parent is gone, killed perhaps: the pool's queue would keep it waiting for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _encode_in_worker(part: Part) -> EncodedPart:
    return encode_part(part, _worker_job)


def _encode_on_cluster(part: Part, pickled_job: bytes) -> EncodedPart:
    return encode_part(part, _unpickled_job(pickled_job))


@lru_cache(maxsize=1)  # once per worker process, not per task: it loads the tokenizer
def _unpickled_job(pickled_job: bytes) -> Job:
    job: Any = pickle.loads(pickled_job)
    assert isinstance(job, Job)
    job.check_machine()
    return job
