"""uvicorn's HTTP/1.1 connection with a deadline and a size for headers, which it has not itself.

A connection that does not send the headers of a request in time, from its beginning or after a request's first byte, is
closed. Between requests uvicorn's keep-alive timer runs.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEADER = 65_536  # bytes


class TimedProtocol(HttpToolsProtocol):
    """A connection."""

    def __init__(self, *args: Any, header_timeout: float, **named: Any) -> None:
        super().__init__(*args, **named)
        self._header_timeout = header_timeout
        self._timer: asyncio.TimerHandle | None = None
        self._header_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock."""
        super().connection_made(transport)
        self._start()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what belongs to headers."""
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._timer is None and self.timeout_keep_alive_task is None and self._is_idle():
            self._start()  # line ends between requests, which begin none
        if self._timer is not None:
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER:
                self.send_400_response("The headers are too large.")

    def on_message_begin(self) -> None:
        """Start the clock of the headers, and let the request know its connection."""
        super().on_message_begin()
        self.scope["albert.transport"] = self.transport  # type: ignore[typeddict-unknown-key]
        if self._timer is None:
            self._start()

    def on_headers_complete(self) -> None:
        """Stop the clock: bodies have their own."""
        self._stop()
        super().on_headers_complete()

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _start(self) -> None:
        self._header_bytes = 0
        self._timer = self.loop.call_later(self._header_timeout, self._expired)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expired(self) -> None:
        self._timer = None
        if self._is_idle() and not self.transport.is_closing():
            self.transport.close()
