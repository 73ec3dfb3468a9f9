"""A server in a thread of the tests, on a port of its own, and how to ask it."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from albert.serve.call import Service


@dataclass
class Answer:
    """What a server said."""

    status: int
    body: Any
    headers: dict[str, str]


@dataclass
class Running:
    """A server that runs, and how to ask it."""

    port: int
    service: Service

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Ask once, on a connection of its own."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            sent = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            named = {"Content-Type": "application/json"} if body is not None else {}
            connection.request(method, path, sent, named | {key.replace("_", "-"): v for key, v in headers.items()})
            response = connection.getresponse()
            content = response.read()
            is_json = (response.getheader("content-type") or "").startswith("application/json")
            found = {key.lower(): value for key, value in response.getheaders()}
            return Answer(response.status, json.loads(content) if is_json else content, found)
        finally:
            connection.close()

    def post(self, path: str, **body: Any) -> Any:
        """Ask with a body, and return the answer of a request that is answered."""
        answer = self.ask("POST", path, body)
        assert answer.status == 200, answer
        return answer.body

    def refusal(self, path: str, **body: Any) -> tuple[int, str]:
        """Ask what is refused, and return the status and the type."""
        answer = self.ask("POST", path, body)
        return answer.status, answer.body["error_type"]

    def raw(self, sent: bytes, *, seconds: float = 120) -> bytes:
        """Send bytes, and return all that comes until the connection is closed."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            connection.sendall(sent)
            parts = []
            while part := connection.recv(65536):
                parts.append(part)
            return b"".join(parts)


def free_port() -> int:
    """Return a port that nobody listens on, for a server that can't choose one itself."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


Start = Callable[..., Running]


@contextmanager
def serving(models: dict[str, str], **settings: Any) -> Iterator[Running]:
    """Run a server in a thread."""
    from albert.serve.app import new_service
    from albert.serve.served import Models
    from albert.serve.server import Server, bind
    from albert.serve.settings import ServeSettings

    values = ServeSettings(models=models, **{"drain": 0.0, "port": 0, "engine": "torch"} | settings)
    service = new_service(values, Models.load(values))
    started = threading.Event()
    server, taken = Server(service, started.set), bind("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, args=([taken],), daemon=True)
    thread.start()
    assert started.wait(120), "the server did not start"
    try:
        yield Running(taken.getsockname()[1], service)
    finally:
        server.should_exit = True
        thread.join(120)
        assert not thread.is_alive(), "the server did not end"


@contextmanager
def command(*words: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start the server as a command, on any port; it is killed if the test leaves it running."""
    process = subprocess.Popen(
        [sys.executable, "-m", "albert", "serve", *words, "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process, int(re.search(r":(\d+)", json.loads(process.stdout.readline())["url"])[1])  # type: ignore[index]
    finally:
        process.kill()
        process.wait()
