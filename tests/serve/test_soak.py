"""Hours of bad luck in minutes (make soak): fuzzed requests, overload, slow clients, many clients at once.

ALBERT_SOAK=0.01 does a hundredth of it, to try the tests themselves. All traffic goes to 127.0.0.1.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import albert
from servers import Running, Start, command

pytestmark = pytest.mark.soak
SHARE = float(os.environ.get("ALBERT_SOAK", "1"))
ROUTES = (
    "/embed", "/embed_all", "/predict", "/rerank", "/similarity", "/tokenize", "/decode", "/v1/embeddings", "/answer",
    "/choose", "/tag", "/fill", "/depth", "/", "/info", "/health", "/metrics", "/models/film/predict", "/nothing",
)  # fmt: skip
NAMES = (
    "inputs", "input", "truncate", "truncation_direction", "normalize", "dimensions", "query", "texts", "question",
    "context", "choices", "ids", "top", "verb", "request", "raw_scores", "model", "encoding_format", "parameters",
)  # fmt: skip
TEXTS = ("a ship", "", " ", "[MASK]", "a [MASK] b [MASK]", "\0", "\u202e🙂é", "x" * 5000, "the old harbour " * 300)


def scaled(count: int) -> int:
    return max(1, round(count * SHARE))


def value(rng: random.Random, depth: int = 0) -> Any:
    """Draw any value of JSON, more often one that a route could take."""
    if depth < 3 and rng.random() < 0.35:
        if rng.random() < 0.5:
            return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
        return {
            rng.choice((*NAMES, "source_sentence", "sentences")): value(rng, depth + 1) for _ in range(rng.randrange(4))
        }
    return rng.choice(
        (*TEXTS, *TEXTS, None, True, False, 0, 1, -1, 7, 10**30, 1.5, -1e300, "Left", "base64", "predict")
    )


def fuzzed(rng: random.Random) -> bytes:
    """Draw a request: well formed, with a wrong part, or noise."""
    body = json.dumps({name: value(rng) for name in rng.sample(NAMES, rng.randrange(1, 5))} | {"inputs": value(rng)})
    sent = body.encode("utf-8", "surrogatepass")
    method = rng.choice(("POST", "POST", "POST", "POST", "GET", "PUT", "DELETE", "HEAD", "OPTIONS", "BREW"))
    path = rng.choice(ROUTES) + rng.choice(("", "", "", "?a=b", "/..", "%00", "//"))
    headers = ["Host: localhost", "Content-Type: application/json", "Connection: close", f"Content-Length: {len(sent)}"]
    odd = (
        "X: " + "y" * 3000,
        "Content-Encoding: gzip",
        "Transfer-Encoding: chunked",
        "Host: a\x00b",
        "Expect: 100-continue",
    )
    headers += rng.sample(odd, 1) if rng.random() < 0.1 else []
    request = "\r\n".join([f"{method} {path} HTTP/1.1", *headers, "", ""]).encode("latin-1") + sent
    if rng.random() < 0.15:  # a byte is another, or some are missing
        place = rng.randrange(len(request))
        request = request[:place] + rng.randbytes(1) + request[place + rng.randrange(1, 20) :]
    return request if rng.random() > 0.03 else rng.randbytes(rng.randrange(1, 400))


def status_of(server: Running, sent: bytes) -> int:
    """Send a request and the end of all sending; return the status, or 0 where there was no answer."""
    try:
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
            connection.sendall(sent)
            answer = connection.recv(64)
            return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0
    except ConnectionError:
        return 0


def test_fuzzed_requests_never_fail_the_server(folders: dict[str, str]) -> None:
    from servers import serving

    with serving(folders, header_timeout=2, body_timeout=2, timeout=60) as server:

        def some(seed: int) -> list[int]:
            rng = random.Random(seed)
            return [status_of(server, fuzzed(rng)) for _ in range(100)]

        with ThreadPoolExecutor(8) as pool:
            found = [status for statuses in pool.map(some, range(scaled(100))) for status in statuses]
        assert {status for status in found if status >= 500} <= {503}, sorted(set(found))
        assert found.count(200) > len(found) / 50
        assert server.post("/embed", inputs="a ship")
        assert server.ask("GET", "/health").status == 200


def test_requests_made_from_the_description_never_fail_the_server(start: Start) -> None:
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: pip install schemathesis")
    import hypothesis

    server = start("plain", "film", "reader", "names")
    schema = schemathesis.openapi.from_dict(server.ask("GET", "/openapi.json").body)
    found = set()

    for operation in schema.get_all_operations():

        @hypothesis.settings(
            max_examples=scaled(300), deadline=None, suppress_health_check=list(hypothesis.HealthCheck)
        )
        @hypothesis.given(case=operation.ok().as_strategy())
        def ask(case: Any) -> None:
            response = case.call(base_url=server.url)
            found.add(response.status_code)
            assert response.status_code < 500 or response.status_code == 503, response.text

        ask()
    assert 200 in found
    assert server.ask("GET", "/health").status == 200


def test_many_clients_get_their_own_answers(start: Start, folders: dict[str, str], texts: list[str]) -> None:
    server = start("plain", queue_tokens=2**22)
    truth = albert.load(folders["plain"]).embed(texts)
    rounds = scaled(500)

    def client(number: int) -> None:
        for turn in range(rounds):
            i = (number * 31 + turn) % len(texts)
            (vector,) = server.post("/embed", inputs=texts[i], normalize=False)
            assert np.allclose(vector, truth[i], atol=1e-5)

    with ThreadPoolExecutor(64) as pool:
        list(pool.map(client, range(64)))
    assert f'te_request_success{{method="single"}} {64.0 * rounds}' in server.ask("GET", "/metrics").body.decode()


def test_overload_is_refused_in_bounded_memory(folders: dict[str, str], texts: list[str]) -> None:
    words = ("--timeout", "30", "--engine", "torch", "--set", "max_concurrent_requests=8")
    seconds = 600 * SHARE
    answered: list[float] = []  # seconds of each
    statuses: Counter[int] = Counter()
    with command(folders["plain"], *words) as (process, port):
        server = Running(port, None)  # type: ignore[arg-type]
        end = time.monotonic() + seconds

        def client(number: int) -> None:
            while time.monotonic() < end:
                began = time.monotonic()
                answer = server.ask("POST", "/embed", {"inputs": texts[number % 50 : number % 50 + 20]})
                statuses[answer.status] += 1
                if answer.status == 200:
                    answered.append(time.monotonic() - began)
                else:
                    time.sleep(0.02)  # else the clients leave the server no CPU

        threads = [threading.Thread(target=client, args=(number,)) for number in range(24)]
        for one in threads:
            one.start()
        time.sleep(seconds / 5)
        early = memory(process.pid)
        for one in threads:
            one.join()
        late = memory(process.pid)
        sizes = f"{early / 2**20:.1f} MB early, {late / 2**20:.1f} MB at the end"
        print(f"{statuses}, p99 {np.quantile(answered, 0.99):.2f} s, {sizes}")
        assert set(statuses) == {200, 429}
        assert statuses[429] >= statuses[200]  # at least twice what can be done was asked for
        assert np.quantile(answered, 0.99) < 30
        assert late <= 1.1 * early
        assert b"te_queue_size 0.0" in server.ask("GET", "/metrics").body
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0


def test_what_is_too_large_or_too_deep_is_refused_within_a_second(start: Start) -> None:
    server = start("plain")
    head = b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
    bomb = gzip.compress(b"0" * 100_000_000)
    for name, sent, expected in (
        ("a body that is too large", head + b"Content-Length: 3000000\r\n\r\n" + b"x" * 3_000_000, 413),
        ("a length that lies", head + b"Content-Length: 1000000000000\r\n\r\n{}", 413),
        ("a gzip bomb", head + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb) + bomb, 415),
        ("JSON 100,000 deep", head + b"Content-Length: 100000\r\n\r\n" + b"[" * 100_000, 422),
    ):
        took = []
        for _ in range(5):
            began = time.monotonic()
            assert status_of(server, sent) == expected, name
            took.append(time.monotonic() - began)
        print(f"{name}: {min(took):.3f} s")
        assert min(took) < 1


def test_slow_clients_are_closed_and_others_unharmed(start: Start) -> None:
    server = start("plain", header_timeout=3, body_timeout=3)
    slow_body = (
        b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"
    )
    slow = []
    for sent in (b"POST /embed HTTP/1.1\r\nHost: loc", slow_body):
        for _ in range(scaled(500)):
            one = socket.create_connection(("127.0.0.1", server.port), timeout=300)
            one.sendall(sent)
            slow.append(one)
    for _ in range(10):
        assert server.ask("POST", "/embed", {"inputs": "a ship"}).status == 200
    for one in slow:
        while one.recv(65536):
            pass
        one.close()
    assert server.service.running == 0
    assert server.ask("POST", "/embed", {"inputs": "a ship"}).status == 200


def memory(pid: int) -> int:
    """Return the bytes that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
