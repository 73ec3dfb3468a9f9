"""The short way of a request to its route: FastAPI describes the routes, but does not stand between them and a text.

For a short text its search for the route and its dependencies took about half of the application's CPU time (500 µs). A
route that takes a body is found by its path, reads JSON by a parser that refuses deep nesting instead of
recursing into it, and is handed the checked body and the call. Everything else, also what is refused by the path or the
method, goes on to FastAPI.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, get_type_hints

import orjson
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from albert.serve.answers import REFUSED, refuse
from albert.serve.bodies import validated
from albert.serve.call import begin
from albert.serve.refusals import invalid

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
MODELS = "/models/"


class BodyRoute(APIRoute):
    """A route whose function takes a body (or the request, to read one itself) and a call."""

    def get_route_handler(self) -> Handler:
        """Return what answers a request, whichever way it came."""
        if self.methods != {"POST"}:
            return super().get_route_handler()
        kind, endpoint = get_type_hints(self.endpoint).get("body"), self.endpoint

        async def handler(request: Request) -> Response:
            request = JsonRequest(request.scope, request.receive)
            call = await begin(request)
            given = request if kind is None else validated(kind, await request.json())
            answer: Response = await endpoint(given, call)
            return answer

        return handler


class ShortWay:
    """The ASGI application before FastAPI's."""

    def __init__(self, app: ASGIApp, routes: Iterable[BaseRoute]) -> None:
        self._app = app
        own = [one for one in routes if isinstance(one, BodyRoute) and one.methods == {"POST"}]
        self._routes = {route.path: (route, route.get_route_handler()) for route in own}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what a route takes a body for; let all else go on."""
        path, name = "", ""
        if scope["type"] == "http" and scope["method"] == "POST":
            path = scope["path"].removeprefix(scope.get("root_path", ""))
            if path.startswith(MODELS):
                name, slash, rest = path.removeprefix(MODELS).partition("/")
                path = f"{MODELS}{{name}}{slash}{rest}" if name else ""
        if (found := self._routes.get(path)) is None:
            await self._app(scope, receive, send)
            return
        scope["route"], handler = found
        scope["path_params"] = {"name": name} if name else {}
        request = Request(scope, receive)
        try:
            response = await handler(request)
        except REFUSED as problem:
            response = await refuse(request, problem)
        await response(scope, receive, send)


class JsonRequest(Request):
    """A request whose JSON has a limit of depth, and holds no NaN."""

    async def json(self) -> Any:
        """Return what the body holds."""
        try:
            return orjson.loads(await self.body())
        except ValueError as problem:
            raise invalid(f"the body is no valid JSON: {problem}") from None
