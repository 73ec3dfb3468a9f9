"""Refusals as responses, wherever they come from: ours, FastAPI's validation, Starlette's routing, a defect."""

from __future__ import annotations

import logging
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from albert.errors import AlbertError
from albert.serve.batching import ClientGone
from albert.serve.refusals import Refusal, backend, error_body, invalid

log = logging.getLogger(__name__)

GONE = 499  # nginx's status for a client that went away; nobody reads it
SHOWN = 3  # problems of a body
REFUSED = (HTTPException, RequestValidationError, AlbertError, ClientGone)


def refusal_response(path: str, refusal: Refusal) -> Response:
    """Return a refusal in the form that the clients of a route expect."""
    body = error_body(path, refusal.status_code, refusal.kind, refusal.message)
    return Response(
        orjson.dumps(body), refusal.status_code, media_type="application/json", headers=dict(refusal.headers or {})
    )


def add_handlers(app: FastAPI) -> None:
    """Let an application answer with our refusals."""
    for kind in REFUSED:
        app.add_exception_handler(kind, refuse)
    app.add_exception_handler(Exception, _defect)


async def refuse(request: Request, problem: Exception) -> Response:
    """Return what is said in place of an answer."""
    metrics = request.app.state.service.metrics
    match problem:
        case ClientGone():
            metrics.failure("canceled")
            return Response(status_code=GONE)
        case Refusal():
            refusal = problem
        case HTTPException():  # no such route, no such method
            refusal = Refusal(
                problem.status_code, "Validation", str(problem.detail), headers=dict(problem.headers or {})
            )
        case RequestValidationError():
            refusal = invalid("; ".join(dict.fromkeys(_named(one) for one in problem.errors()[:SHOWN])))
        case _:  # an error that a user of the library would see
            refusal = backend(str(problem))
    metrics.failure(refusal.kind)
    return refusal_response(request.url.path, refusal)


async def _defect(request: Request, problem: Exception) -> Response:
    log.error("a defect: %s", type(problem).__name__, exc_info=problem)
    request.app.state.service.metrics.failure("defect")
    return refusal_response(request.url.path, Refusal(500, "Backend", "a defect of the server: see its log"))


def _named(problem: dict[str, Any]) -> str:
    """Name the field and the rule, without the value."""
    where = [str(part) for part in problem["loc"] if part != "body"]
    names = [part for part in where if part.isidentifier() or part.isdigit()]
    text = problem["msg"]
    return f"{'.'.join(names)}: {text[0].lower()}{text[1:]}" if names else text
