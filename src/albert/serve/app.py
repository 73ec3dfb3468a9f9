"""The application: routes for the default model and for each by its name, behind the gate.

Without a name a route asks the first model that can do it; `/models/NAME/…` asks one by name. FastAPI describes the
routes and answers some; what takes a body goes a shorter way.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

import albert
from albert.hardware import release_memory
from albert.serve.answers import add_handlers
from albert.serve.batching import Batcher
from albert.serve.bodies import ErrorResponse
from albert.serve.call import Service
from albert.serve.depth_routes import add_depth_route
from albert.serve.embedding_routes import add_embedding_routes
from albert.serve.gate import Gate
from albert.serve.metrics import Metrics
from albert.serve.other_routes import add_model_routes, add_server_routes
from albert.serve.page import add_page
from albert.serve.reload import watch
from albert.serve.served import Models
from albert.serve.settings import ServeSettings
from albert.serve.short_way import BodyRoute, ShortWay
from albert.serve.task_routes import add_task_routes

RELEASE_SECONDS = 10.0  # between two times that freed memory is given back
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": text}
    for status, text in (
        (400, "Nothing to decide about"),
        (413, "Too large"),
        (422, "A field is wrong, or a text is too long"),
        (424, "The model can't do it, or failed"),
        (429, "Overloaded"),
        (503, "Not ready"),
    )
}


def new_service(settings: ServeSettings, models: Models) -> Service:
    """Return what all requests share."""
    metrics = Metrics()
    batcher = Batcher(
        batch_tokens=settings.batch_tokens,
        batch_wait=settings.batch_wait,
        queue_tokens=settings.queue_tokens,
        metrics=metrics,
    )
    return Service(settings, models, batcher, metrics, ThreadPoolExecutor(1, thread_name_prefix="texts"))


async def _release() -> None:
    """Give memory back, again and again."""
    while True:
        await asyncio.sleep(RELEASE_SECONDS)
        await asyncio.to_thread(release_memory)


def build_app(service: Service) -> ASGIApp:
    """Build the application around its service, which starts and stops with it."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.batcher.start()
        beside = [asyncio.create_task(_release())]
        beside += [asyncio.create_task(watch(service))] if service.settings.reload else []
        try:
            yield
        finally:
            for one in beside:
                one.cancel()
            await service.batcher.stop()
            service.threads.shutdown(wait=False)

    app = FastAPI(
        title="albert-lite",
        version=albert.__version__,
        description="ALBERT models over HTTP: text-embeddings-inference's routes, OpenAI's embeddings, and our verbs.",
        docs_url=None,  # FastAPI's pages fetch their scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
        responses=REFUSALS,
    )
    app.state.service = service
    add_handlers(app)
    asked: list[BaseRoute] = []
    for prefix, shown in (("", True), ("/models/{name}", False)):
        router = APIRouter(route_class=BodyRoute, prefix=prefix, include_in_schema=shown)
        add_embedding_routes(router)
        add_task_routes(router)
        add_depth_route(router)
        add_model_routes(router)
        app.include_router(router)
        asked += router.routes
    router = APIRouter()
    add_server_routes(router)
    app.include_router(router)
    add_page(app)
    app.add_middleware(ShortWay, routes=asked)
    return Gate(app, service)
