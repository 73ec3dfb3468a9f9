"""A changed model folder takes the old model's place, between two requests; a broken one is refused.

A folder is looked at every few seconds, and read when it looked the same twice: whoever writes it is done. The new
model must open, give finite numbers and do what the old one could, or else the old one goes on. Requests that wait keep
the model that they began with.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from albert.errors import ModelError
from albert.model.locate import locate
from albert.serve.call import Service
from albert.serve.served import Served, open_model, signature

log = logging.getLogger(__name__)


async def watch(service: Service) -> None:
    """Look at the folders of all models, for ever."""
    seen: dict[str, Mapping[str, Any]] = {}
    refused: dict[str, Mapping[str, Any]] = {}
    while True:
        await asyncio.sleep(service.settings.reload_seconds)
        for served in list(service.models):
            found = await _look(service, served)
            settled, seen[served.name] = seen.get(served.name) == found, found
            if not settled or found in (served.signature, refused.get(served.name)):
                continue
            try:
                fresh = await asyncio.to_thread(_open, service, served)
            except Exception as problem:  # whatever is wrong with the new one, the old one goes on
                refused[served.name] = found
                kind = type(problem).__name__
                log.error("reload refused", extra={"fields": {"model": served.name, "exception": kind}})
            else:
                service.models.served[served.name] = fresh
                service.healthy_at = float("-inf")
                log.info("reloaded", extra={"fields": {"model": served.name}})


async def _look(service: Service, served: Served) -> Mapping[str, Any]:
    try:
        return await asyncio.to_thread(lambda: signature(locate(service.settings.models[served.name])))
    except Exception:  # the folder is gone for a moment, or for good
        return {}


def _open(service: Service, served: Served) -> Served:
    fresh = open_model(served.name, service.settings.models[served.name], service.settings)
    if lost := set(served.abilities) - set(fresh.abilities):
        raise ModelError(f"{served.name}: the new model can't {', '.join(sorted(lost))}, as the old one can")
    return fresh
