"""A Ray cluster, or a Ray on this machine, for the time of a block. Knows nothing of what runs on it."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from albert.errors import ResourceError, UsageError


@contextmanager
def ray_cluster(address: str | None = None) -> Iterator[Any]:
    """Yield the module `ray`, connected to a cluster; without an address, to a Ray started on this machine."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reports home unless told not to, before its import
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else every task prints a FutureWarning
    try:
        import ray
    except ImportError as problem:
        raise UsageError("Ray is missing: pip install 'albert-lite[ray]'") from problem

    on_main_thread = threading.current_thread() is threading.main_thread()
    on_sigterm = signal.getsignal(signal.SIGTERM)
    try:
        _knock(address)
        ray.init(address, log_to_driver=False, logging_level="ERROR")
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as problem:
        raise ResourceError(f"no Ray cluster at {address or 'this machine'}: {problem}") from problem
    if on_main_thread:
        signal.signal(signal.SIGTERM, on_sigterm)  # Ray sets one that ends the process with another exit code
    try:
        yield ray
    finally:
        ray.shutdown()


def _knock(address: str | None) -> None:
    """Find out quickly whether anybody listens at host:port; Ray itself would try for minutes."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if colon:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
