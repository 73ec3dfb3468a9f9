"""The server as a Ray Serve application, for fleets: every replica is the application of `albert serve`, whole.

    serve run albert.serve.ray_app:app models="tiny-en sst=/shared/sst"      # or: serve deploy deploy/ray.yaml

Ray starts and moves replicas and spreads requests over them; a replica has its own models, gate, queue and metrics, and
is healthy while its models give their known answers. Arguments are the settings of `albert serve`, and
keys may also be in the variable ALBERT_API_KEY.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from starlette.types import ASGIApp

from albert.errors import UsageError
from albert.serve.app import build_app, new_service
from albert.serve.other_routes import check_health
from albert.serve.served import Models
from albert.serve.settings import ServeSettings, name_models
from albert.settings import read_settings

try:
    from ray import serve
except ImportError as problem:
    raise UsageError(f"a fleet needs Ray Serve ({problem}): pip install 'albert-lite[serve,ray]'") from problem

LISTS = ("api_keys", "hosts", "cors_origins")
NOT_OURS = ("host", "port", "workers")


def app(args: Mapping[str, Any]) -> Any:
    """Build the application from what `serve run` or a configuration file says."""
    settings = settings_of(args)
    # Ray holds back what is above, without a limit: a replica shall see it, and refuse it.
    return FLEET.options(max_ongoing_requests=2 * settings.max_concurrent_requests).bind(settings)


def settings_of(args: Mapping[str, Any]) -> ServeSettings:
    """Return the settings; a command line has words where a file may have lists."""
    if unfit := [name for name in NOT_OURS if name in args]:
        raise UsageError(f"{', '.join(unfit)}: Ray Serve decides that: leave it out (http_options, num_replicas)")
    given = {"api_keys": os.environ.get("ALBERT_API_KEY", "")} | dict(args)
    models = given.pop("models", [])
    values: dict[str, Any] = {"models": models if isinstance(models, Mapping) else name_models(_words(models))}
    values |= {name: tuple(_words(given.pop(name))) for name in LISTS if name in given}
    told = [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in given.items()]
    return read_settings(ServeSettings, assignments=told, defaults=values)


def _words(value: str | list[str]) -> list[str]:
    return value.split() if isinstance(value, str) else value


class Replica:
    """One server of the fleet."""

    def __init__(self, settings: ServeSettings) -> None:
        self._service = new_service(settings, Models.load(settings))

    def __serve_build_asgi_app__(self) -> ASGIApp:
        """Return what Ray sends requests to."""
        return build_app(self._service)

    async def check_health(self) -> None:
        """Raise unless every model gives its known answer: Ray then replaces the replica."""
        await check_health(self._service)


FLEET: Any = serve.deployment(name="albert", health_check_timeout_s=60, graceful_shutdown_timeout_s=45)(
    serve.ingress()(Replica)
)
