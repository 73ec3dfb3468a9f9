"""One process of the server, from its socket to its end: uvicorn with our protocol, logs and signals.

SIGTERM ends it well: it says that it is not ready, still answers what arrives for a moment, then what it has begun, and
the exit code is 0.
"""

from __future__ import annotations

import asyncio
import math
import resource
import signal
import socket
from collections.abc import Callable
from functools import partial
from types import FrameType

import uvicorn

from albert.errors import UsageError
from albert.serve.app import build_app, new_service
from albert.serve.call import Service
from albert.serve.logs import log_as_json
from albert.serve.protocol import TimedProtocol
from albert.serve.served import Models
from albert.serve.settings import ServeSettings


def bind(host: str, port: int) -> socket.socket:
    """Take the port; it listens when the models are there."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it. Else a body waits until the client acknowledges its headers: 40 ms an answer.
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        taken.bind((host, port))
    except OSError as problem:
        raise UsageError(
            f"--host {host} --port {port}: can't be listened on ({problem.strerror or problem}): use another port, "
            "or 0 for any that is free"
        ) from problem
    taken.set_inheritable(True)
    return taken


def run(settings: ServeSettings, models: Models, taken: socket.socket, *, ready: Callable[[], None]) -> None:
    """Serve until a signal; `ready` is called once requests are answered."""
    log_as_json()
    _raise_file_limit(settings.max_connections)
    signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn raises the signal again when all is done
    service = new_service(settings, models)
    Server(service, ready).run([taken])


def _raise_file_limit(connections: int) -> None:
    """Let the process have as many open files as it takes connections, where it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + 256
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def configure(service: Service) -> uvicorn.Config:
    """Return how uvicorn runs the application of a service."""
    settings = service.settings
    return uvicorn.Config(
        build_app(service),
        http=partial(TimedProtocol, header_timeout=settings.header_timeout),  # type: ignore[arg-type]
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=settings.keep_alive,
        timeout_graceful_shutdown=math.ceil(settings.timeout) + 5,
        limit_concurrency=settings.max_connections,
        backlog=2048,
    )


class Server(uvicorn.Server):
    """uvicorn's server, draining before it ends."""

    def __init__(self, service: Service, ready: Callable[[], None]) -> None:
        super().__init__(configure(service))
        self._service, self._ready = service, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain first; a second signal does not wait."""
        if self._service.draining or not self.started:
            super().handle_exit(sig, frame)
            return
        self._service.draining = True
        end = partial(super().handle_exit, sig, frame)
        self._loop.call_soon_threadsafe(self._loop.call_later, self._service.settings.drain, end)
