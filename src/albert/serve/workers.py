"""Several processes on one socket, each with the models, watched by one that has none.

A worker that dies is started again, and the others answer meanwhile. SIGTERM and Ctrl-C go to all of them, and the end
is when the last has answered what it began. The numbers of all are added up for Prometheus in a folder of their own.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from time import monotonic
from types import FrameType
from typing import Any

from albert.errors import Interrupted, ModelError
from albert.serve.settings import ServeSettings

log = logging.getLogger(__name__)

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client reads it when it is imported
SOON = 10.0  # seconds; a worker that dies sooner has not come to work
TRIES = 3  # that may die soon, one after the other


def supervise(settings: ServeSettings, taken: socket.socket, *, ready: Callable[[], None]) -> None:
    """Run the workers until a signal; `ready` is called once all answer."""
    with tempfile.TemporaryDirectory(prefix="albert-metrics-") as folder:
        os.environ[SHARED_FOLDER] = folder
        try:
            _Supervisor(settings, taken, ready).run()
        finally:
            del os.environ[SHARED_FOLDER]


class _Supervisor:
    def __init__(self, settings: ServeSettings, taken: socket.socket, ready: Callable[[], None]) -> None:
        self._settings, self._taken, self._ready = settings, taken, ready
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[int, tuple[BaseProcess, float]] = {}
        self._signal = 0
        self._woken, self._wake = os.pipe()

    def run(self) -> None:
        old = {number: signal.signal(number, self._stop) for number in (signal.SIGTERM, signal.SIGINT)}
        mine, theirs = self._context.Pipe(duplex=False)
        started = 0
        failures = 0
        try:
            for _ in range(self._settings.workers):
                self._start(theirs)
            while not self._signal:
                watched: list[Any] = [process.sentinel for process, _ in self._workers.values()]
                events = wait([*watched, mine, self._woken])
                if mine in events:
                    mine.recv()
                    started += 1
                    if started == self._settings.workers:
                        self._ready()
                for pid in [pid for pid, (process, _) in self._workers.items() if not process.is_alive()]:
                    failures = self._bury(pid, failures)
                    if failures >= TRIES:
                        raise ModelError("the workers of the server die before they work: see the log, or try one")
                    if not self._signal:
                        self._start(theirs)
        finally:
            self._end()
            for number, handler in old.items():
                signal.signal(number, handler)
        if self._signal == signal.SIGINT:
            raise Interrupted("interrupted")

    def _start(self, theirs: Connection) -> None:
        process = self._context.Process(target=_work, args=(self._settings, self._taken, theirs), daemon=False)
        process.start()
        assert process.pid is not None
        self._workers[process.pid] = (process, monotonic())

    def _bury(self, pid: int, failures: int) -> int:
        """Forget a dead worker; return how many died soon, one after the other."""
        from prometheus_client.multiprocess import mark_process_dead

        process, began = self._workers.pop(pid)
        mark_process_dead(pid)  # type: ignore[no-untyped-call]
        log.error("a worker died and is started again", extra={"fields": {"pid": pid, "exit": process.exitcode}})
        return failures + 1 if monotonic() - began < SOON else 0

    def _stop(self, number: int, _: FrameType | None) -> None:
        self._signal = self._signal or number
        os.write(self._wake, b"x")

    def _end(self) -> None:
        """Let all workers finish what they have begun."""
        for process, _ in self._workers.values():
            process.terminate()
        for process, _ in self._workers.values():
            process.join(self._settings.timeout + self._settings.drain + 15)
            if process.is_alive():
                process.kill()


def _work(settings: ServeSettings, taken: socket.socket, started: Connection) -> None:
    """Be a worker: Ctrl-C on a terminal reaches it too, but the supervisor says when to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import torch

    from albert.serve.served import Models
    from albert.serve.server import run

    torch.set_num_threads(max(1, torch.get_num_threads() // settings.workers))
    run(settings, Models.load(settings), taken, ready=lambda: started.send(True))
