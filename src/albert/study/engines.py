"""Who makes the runs of a study: this process, several on this machine, or a Ray cluster; with the same scores.

Every run has the same number of threads wherever it is made, and its result is in its folder, which for a cluster must
be one that all nodes see. A run that goes on from another waits for it. Runs that are timed are made alone, at the end.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

from threadpoolctl import threadpool_limits

from albert.cluster import ray_cluster
from albert.data.engines import RETRIES, end_with_parent, without_interrupts
from albert.errors import AlbertError, ResourceError, UsageError
from albert.study.rows import Observe, run_row
from albert.study.workshop import SCORES, Job, Workshop

Handle = TypeVar("Handle")


@dataclass(frozen=True)
class Engine:
    """How runs are made: one after the other, `workers` at once, or on a Ray cluster."""

    workers: int = 1
    cluster: bool = False
    address: str | None = None


def run_jobs(jobs: Sequence[Job], shop: Workshop, engine: Engine, observe: Observe = lambda *_: None) -> None:
    """Make every run that is not made yet; the first that fails ends the others, which can be resumed."""
    left = [job for job in merge(jobs) if not shop.is_done(job)]
    together = [job for job in left if job.run.processes is None]
    if engine.cluster:
        _run_on_cluster(together, shop, engine.address, observe)
    elif engine.workers > 1:
        _run_in_processes(together, shop, engine.workers, observe)
    else:
        _run_in_turn(together, shop, observe)
    _run_in_turn([job for job in left if job.run.processes is not None], shop, observe)


def merge(jobs: Sequence[Job]) -> list[Job]:
    """Return every run once, and before it the one that it goes on from, with all that is to be measured of it."""
    found: dict[str, Job] = {}

    def add(job: Job) -> None:
        if (start := job.run.start) is not None:
            add(Job(start, f"{job.name} (start)", tasks=False))
        before = found.get(job.run.key, job)
        tasks, layers = before.tasks or job.tasks, before.layers or job.layers
        found[job.run.key] = replace(before, tasks=tasks, layers=layers)

    for job in jobs:
        add(job)
    return list(found.values())


def _run_in_turn(jobs: Sequence[Job], shop: Workshop, observe: Observe) -> None:
    for number, job in enumerate(jobs):
        words = f"{job.name} ({number + 1} of {len(jobs)})"

        def show(share: float, more: str, number: int = number, words: str = words) -> None:
            observe((number + share) / len(jobs), f"{words}: {more}")

        _make(job, shop, show)


def _make(job: Job, shop: Workshop, observe: Observe = lambda *_: None) -> None:
    with threadpool_limits(shop.threads):
        run_row(job, shop, observe)


@dataclass(frozen=True)
class _Pool(Generic[Handle]):
    """Something that makes runs beside this process."""

    submit: Callable[[Job], Handle]
    first: Callable[[list[Handle]], Handle]  # waits for one that has ended
    result: Callable[[Handle], None]  # raises what it raised
    room: int


def _schedule(jobs: Sequence[Job], shop: Workshop, pool: _Pool[Handle], observe: Observe) -> None:
    """Keep the pool busy; a run waits for the one that it goes on from."""
    waiting, running, done = list(jobs), dict[Handle, Job](), 0
    while waiting or running:
        for job in list(waiting):
            if len(running) < pool.room and _is_ready(job, shop):
                running[pool.submit(job)] = job
                waiting.remove(job)
        handle = pool.first(list(running))
        job = running.pop(handle)
        pool.result(handle)
        done += 1
        observe(done / len(jobs), f"{done} of {len(jobs)} runs, the last {job.name}")


def _is_ready(job: Job, shop: Workshop) -> bool:
    return job.run.start is None or (shop.folder(job.run.start) / SCORES).exists()


def _run_in_processes(jobs: Sequence[Job], shop: Workshop, workers: int, observe: Observe) -> None:
    context = multiprocessing.get_context("spawn")  # one process per run: nothing is left over from another
    started: dict[BaseProcess, Connection] = {}

    def submit(job: Job) -> BaseProcess:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(job, shop, sender))
        with without_interrupts():  # Ctrl-C is the parent's to handle
            process.start()
        sender.close()
        started[process] = receiver
        return process

    def first(processes: list[BaseProcess]) -> BaseProcess:
        ended = wait([process.sentinel for process in processes])
        return next(process for process in processes if process.sentinel in ended)

    def result(process: BaseProcess) -> None:
        process.join()
        receiver = started.pop(process)
        try:
            error = receiver.recv()
        except EOFError:
            raise ResourceError(
                f"a run's process ended with {process.exitcode}, out of memory perhaps: what is finished is kept; "
                "run the same command again with fewer --workers"
            ) from None
        if error is not None:
            raise error

    try:
        _schedule(jobs, shop, _Pool(submit, first, result, workers), observe)
    finally:
        for process in started:
            process.terminate()  # asks it to finish its step and save
        for process in started:
            process.join()


def _work(job: Job, shop: Workshop, sender: Connection) -> None:
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        _make(job, shop)
    except BaseException as error:  # the parent says it
        sender.send(error if isinstance(error, AlbertError) else AlbertError(f"{type(error).__name__}: {error}"))
    else:
        sender.send(None)


def _run_on_cluster(jobs: Sequence[Job], shop: Workshop, address: str | None, observe: Observe) -> None:
    with ray_cluster(address) as ray:
        task = ray.remote(_work_on_cluster).options(num_cpus=shop.threads, max_retries=RETRIES)

        def first(handles: list[Any]) -> Any:
            return ray.wait(handles, num_returns=1)[0][0]

        try:
            _schedule(jobs, shop, _Pool(lambda job: task.remote(job, shop), first, ray.get, len(jobs)), observe)
        except ray.exceptions.RayTaskError as problem:  # its text is a traceback, its cause what the task raised
            if isinstance(problem.cause, AlbertError):
                raise problem.cause from None
            raise ResourceError(
                f"a Ray worker can't make a run ({problem.cause}): is albert-lite installed on every node?"
            ) from problem
        except ray.exceptions.WorkerCrashedError as problem:
            raise ResourceError(f"a Ray worker died {RETRIES + 1} times with the same run: {problem}") from problem


def _work_on_cluster(job: Job, shop: Workshop) -> None:
    for path in (shop.out, shop.data, shop.valid):
        if not path.exists():
            raise UsageError(f"{path}: is not seen by a node of the cluster: use folders that all nodes share")
    _make(job, shop)
