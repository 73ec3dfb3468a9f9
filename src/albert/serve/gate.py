"""What stands before every route: who may ask, how much, and how slowly.

In this order: the Host header (a name that is not ours is a page elsewhere that had its name pointed here: DNS
rebinding), a browser's question whether another site may ask (a preflight, which has no key and reaches no route), the
key, the form of the body, its size and its deadline, the number of requests. A body is read whole before a route sees
it, so that a slow client holds nothing but its connection; an answer that nobody reads ends its connection. Whatever is
refused is refused with a reason, and nothing of a request but its route is logged.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import logging
from collections.abc import Mapping
from contextlib import suppress
from time import perf_counter

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from albert.serve.answers import refusal_response
from albert.serve.call import Service
from albert.serve.refusals import Refusal, overloaded, too_large

log = logging.getLogger(__name__)

OPEN = ("/ping", "/health", "/", "/docs")  # answered without a key: probes, and the page, which asks for it
PAGE = "/page/"
LINGER = 0.5  # seconds that are read on after a refusal
SECURITY = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
]


class Gate:
    """The ASGI application before the application."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service, self._settings = app, service, service.settings
        self._keys = [_digest(key) for key in self._settings.api_keys]
        self._hosts = {name.lower() for name in self._settings.hosts}
        self._bytes = 0  # of bodies in memory
        self._named: ASGIApp = self._admit  # for requests to one of our names
        if self._settings.cors_origins:  # before the key, so that pages of these sites can read every other refusal
            self._named = CORSMiddleware(
                self._admit,
                allow_origins=self._settings.cors_origins,
                allow_methods=["GET", "POST"],
                allow_headers=["Authorization", "Content-Type"],
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        began, status = perf_counter(), 0

        async def send_safely(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                closing = [(b"connection", b"close")] if self._service.draining else []
                message = {**message, "headers": [*message["headers"], *SECURITY, *closing]}
            try:
                async with asyncio.timeout(self._settings.timeout):
                    await send(message)
            except TimeoutError:  # the client does not read
                if (transport := scope.get("albert.transport")) is not None:
                    transport.abort()
                raise

        try:
            try:
                self._check_host(Headers(scope=scope))
            except Refusal as refusal:
                await self._refuse(refusal, scope, receive, send_safely, unread=True)
            else:
                await self._named(scope, receive, send_safely)
        finally:
            if self._settings.access_log:
                self._log(scope, status, perf_counter() - began)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request to one of our names through, or refuse it."""
        headers, held, unread = Headers(scope=scope), 0, True
        try:
            try:
                self._check_key(str(scope["path"]), headers, reads=scope["method"] in ("GET", "HEAD"))
                body = b""
                if scope["method"] not in ("GET", "HEAD", "OPTIONS"):
                    self._check_form(headers)
                    body = await self._read(receive, headers)
                    held, unread = len(body), False
                    if self._service.running >= self._settings.max_concurrent_requests:
                        raise overloaded("too many requests at once: try again later")
            except Refusal as refusal:
                await self._refuse(refusal, scope, receive, send, unread=unread)
                return
            except _Gone:
                return
            counts = bool(body)
            self._service.running += counts
            try:
                await self._app(scope, _replay(body, receive), send)
            finally:
                self._service.running -= counts
        finally:
            self._bytes -= held

    async def _refuse(self, refusal: Refusal, scope: Scope, receive: Receive, send: Send, *, unread: bool) -> None:
        """Send a refusal; if the body is `unread`, read on a moment: closing on a client that still sends loses it."""

        async def send_and_linger(message: Message) -> None:
            if message["type"] == "http.response.body" and unread:
                await send({**message, "more_body": True})
                await _discard(receive)
                message = {"type": "http.response.body", "body": b""}
            await send(message)

        self._service.metrics.failure(refusal.kind)
        await refusal_response(str(scope["path"]), refusal)(scope, receive, send_and_linger)

    def _check_host(self, headers: Mapping[str, str]) -> None:
        host = headers.get("host", "")
        name = host[1 : host.find("]")] if host.startswith("[") else host.rpartition(":")[0] or host
        name = name.lower().rstrip(".")
        if name == "localhost" or name in self._hosts or "*" in self._hosts:
            return
        try:
            ipaddress.ip_address(name)
        except ValueError:
            raise Refusal(
                421, "Validation", "this server is not called by that name: start it with --allow-host NAME"
            ) from None

    def _check_key(self, path: str, headers: Mapping[str, str], *, reads: bool) -> None:
        if not self._keys or (reads and (path in OPEN or path.startswith(PAGE))):  # POST / runs the model
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        digest = _digest(given.strip()) if scheme.lower() == "bearer" else b""
        # All keys are compared, each in constant time.
        if sum(hmac.compare_digest(digest, key) for key in self._keys) == 0:
            raise Refusal(
                401,
                "Validation",
                "a key is needed: send it as `Authorization: Bearer KEY`",
                headers={"WWW-Authenticate": "Bearer"},
            )

    def _check_form(self, headers: Mapping[str, str]) -> None:
        """Refuse what is no plain JSON: other forms could be sent from pages elsewhere, or grow when unpacked."""
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refusal(415, "Validation", "send JSON, with the header `Content-Type: application/json`")
        if headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise Refusal(415, "Validation", "compressed bodies are not taken: send the JSON as it is")

    async def _read(self, receive: Receive, headers: Mapping[str, str]) -> bytes:
        """Read a body, within its size and its deadline."""
        most = self._settings.max_body
        large = too_large(f"the body is above {most:,} bytes: send several requests")
        large.headers = {"Connection": "close"}
        length = headers.get("content-length", "")
        if length.isdigit() and (len(length) > 18 or int(length) > most):
            raise large
        parts = bytearray()
        try:
            async with asyncio.timeout(self._settings.body_timeout):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _Gone
                    part = message.get("body", b"")
                    if len(parts) + len(part) > most:
                        raise large
                    if self._bytes + len(part) > self._settings.max_bodies:
                        raise overloaded("too much is being sent at once: try again later")
                    parts += part
                    self._bytes += len(part)
                    if not message.get("more_body", False):
                        return bytes(parts)
        except BaseException as problem:
            self._bytes -= len(parts)
            if isinstance(problem, TimeoutError):
                raise Refusal(
                    408,
                    "Validation",
                    f"the body did not arrive within {self._settings.body_timeout:g} seconds",
                    headers={"Connection": "close"},
                ) from None
            raise

    def _log(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "(none)")  # what was asked for could hold a text
        tokens = scope.get("state", {}).get("tokens", 0)
        fields = {"method": scope["method"], "route": route, "status": status, "ms": round(1000 * seconds, 3)}
        log.info("request", extra={"fields": fields | {"tokens": tokens}})


async def _discard(receive: Receive) -> None:
    """Read what a client still sends, for a moment."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER):
            while (message := await receive())["type"] == "http.request" and message.get("more_body", False):
                pass


class _Gone(Exception):
    """The client left before its body was there."""


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a body that was read as if it arrived now; then what happens to the connection."""
    given = False

    async def replayed() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
