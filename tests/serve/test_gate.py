"""What stands before the routes: hosts, keys, forms, sizes, depths and deadlines; and what is logged."""

from __future__ import annotations

import gzip
import io
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.exceptions import RequestValidationError

from albert.serve.bodies import (
    AnswerRequest,
    Body,
    ChooseRequest,
    DecodeRequest,
    EmbedRequest,
    FillRequest,
    OpenAIRequest,
    PredictRequest,
    RerankRequest,
    SimilarityRequest,
    TagRequest,
    TokenizeRequest,
    validated,
)
from albert.serve.logs import JsonLines
from albert.serve.server import bind
from servers import Running, Start

BODY = {"inputs": "the old harbour"}


def request(body: bytes, *headers: str, path: str = "/embed", length: int | None = None) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", "Connection: close"]
    lines += [f"Content-Length: {len(body) if length is None else length}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


CHUNKED = request(b"", "Transfer-Encoding: chunked").replace(b"Content-Length: 0\r\n", b"")


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", 200),
        ("LOCALHOST:8080", 200),
        ("127.0.0.1:80", 200),
        ("[::1]:8080", 200),
        ("192.168.1.7", 200),
        ("evil.example", 421),
        ("evil.example:8080", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example", 421),
        ("", 421),
    ],
)
def test_only_our_own_names_and_addresses_are_answered(server: Running, host: str, expected: int) -> None:
    answer = server.ask("GET", "/ping", Host=host)
    assert answer.status == expected
    if expected == 421:
        assert "--allow-host" in answer.body["error"]


def test_names_and_sites_can_be_allowed(start: Start) -> None:
    server = start(hosts=("search.internal",), cors_origins=("https://good.example",))
    assert server.ask("GET", "/ping", Host="search.internal:80").status == 200
    assert server.ask("GET", "/ping", Host="other.internal").status == 421
    allowed = server.ask("POST", "/embed", BODY, Origin="https://good.example")
    assert allowed.headers["access-control-allow-origin"] == "https://good.example"
    assert "access-control-allow-origin" not in server.ask("POST", "/embed", BODY, Origin="https://bad.example").headers


def test_other_sites_get_no_permission(server: Running) -> None:
    answer = server.ask("POST", "/embed", BODY, Origin="https://bad.example")
    assert not [name for name in answer.headers if name.startswith("access-control")]
    preflight = server.ask("OPTIONS", "/embed", Origin="https://bad.example", Access_Control_Request_Method="POST")
    assert preflight.status == 405


def test_a_page_of_an_allowed_site_can_ask_with_a_key_and_read_refusals(start: Start) -> None:
    server = start(api_keys=("sesame",), cors_origins=("https://good.example",), max_body=100)
    wanted = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "authorization,content-type"}
    good = {"Origin": "https://good.example"}
    preflight = server.ask("OPTIONS", "/embed", **wanted, **good)
    assert (preflight.status, preflight.headers["access-control-allow-origin"]) == (200, "https://good.example")
    assert "Authorization" in preflight.headers["access-control-allow-headers"]
    assert preflight.headers["x-content-type-options"] == "nosniff"
    key = {"Authorization": "Bearer sesame"}
    refused = [
        server.ask("POST", "/embed", BODY, **good),
        server.ask("POST", "/embed", {"inputs": "a" * 99}, **good, **key),
    ]
    assert [one.status for one in refused] == [401, 413]
    for one in [*refused, server.ask("POST", "/embed", BODY, **good, **key)]:
        assert one.headers["access-control-allow-origin"] == "https://good.example"


def test_a_preflight_opens_nothing_to_other_sites_and_names(start: Start) -> None:
    server = start(api_keys=("sesame",), cors_origins=("https://good.example",))
    wanted = {"Access_Control_Request_Method": "POST"}
    other = server.ask("OPTIONS", "/embed", **wanted, Origin="https://bad.example")
    assert (other.status, "access-control-allow-origin" in other.headers) == (400, False)
    assert "access-control-allow-origin" not in server.ask("POST", "/embed", BODY, Origin="https://bad.example").headers
    rebound = server.ask("OPTIONS", "/embed", **wanted, Origin="https://good.example", Host="evil.example")
    assert (rebound.status, "access-control-allow-origin" in rebound.headers) == (421, False)
    assert server.ask("OPTIONS", "/embed", Origin="https://good.example").status == 401  # no preflight
    assert server.ask("POST", "/embed", BODY, **wanted, Origin="https://good.example").status == 401


def test_a_key_is_asked_for_everywhere_but_at_probes(start: Start) -> None:
    server = start(api_keys=("sesame", "другой"))
    for given in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "sesame"},
        {"Authorization": "Basic sesame"},
    ):
        assert server.ask("POST", "/embed", BODY, **given).status == 401
        assert server.ask("POST", "/", BODY, **given).status == 401, "it runs the model, and GET / is the page"
        assert server.ask("GET", "/metrics", **given).status == 401
        assert server.ask("GET", "/info", **given).status == 401
    assert server.ask("POST", "/embed", BODY, Authorization="Bearer sesame").status == 200
    assert server.ask("POST", "/embed", BODY, Authorization="bearer sesame").status == 200
    assert [server.ask("GET", path).status for path in ("/ping", "/health")] == [200, 200]
    assert "sesame" not in repr(server.service.settings)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (request(b"x" * 3000), 413),
        (request(b"{}", length=10**15), 413),
        (request(b"{}", length=10**30), (400, 413)),
        (CHUNKED + b"fff\r\n" + b"x" * 4095, 413),
        (request(b"[" * 1900), 422),
        (request(b'{"a":' * 380), 422),
        (request(b'{"inputs": NaN}'), 422),
        (request(b'{"inputs": "\\ud800"}'), 422),
        (request(b'{"inputs": "\xff"}'), 422),
        (request(b"not json"), 422),
        (request(b""), 422),
        (request(b"[]"), 422),
        (request(b"null"), 422),
        (request(gzip.compress(b"0" * 1_000_000), "Content-Encoding: gzip"), 415),
        (request(b"{}").replace(b"application/json", b"text/plain"), 415),
        (request(b"{}").replace(b"application/json", b"application/x-www-form-urlencoded"), 415),
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000, 400),
        (request(b"{}", path="/" + "a" * 5000), 404),
        (request(b"{}", path="/%ff%00"), 404),
        (request(b"{}").replace(b"POST", b"BREW"), (400, 405)),
    ],
)  # fmt: skip
def test_a_bad_request_is_refused_at_once(small: Running, sent: bytes, expected: object) -> None:
    found = status(small.raw(sent))
    assert found in (expected if isinstance(expected, tuple) else (expected,))


@pytest.fixture(scope="module")
def small(folders: dict[str, str]) -> object:
    """Serve with small limits."""
    from servers import serving

    with serving({"plain": folders["plain"]}, max_body=2000, max_inputs=3, max_numbers=200) as running:
        yield running


def test_a_client_that_sends_too_much_is_told_so_before_the_connection_ends(small: Running) -> None:
    sent = request(b"x" * 3_000_000)  # more than a socket takes at once
    with socket.create_connection(("127.0.0.1", small.port), timeout=120) as one:
        one.sendall(sent)
        assert status(one.recv(65536)) == 413


def test_lists_and_answers_have_limits(small: Running) -> None:
    assert small.refusal("/embed", inputs=["a"] * 4) == (413, "Validation")
    assert small.ask("POST", "/embed", {"inputs": ["a"] * 3}).status == 200
    assert small.refusal("/embed_all", inputs=["the old harbour was quiet"] * 3) == (413, "Validation")
    assert small.refusal("/tokenize", inputs=["the old harbour was quiet " * 5] * 3) == (413, "Validation")


def test_every_choice_counts_as_an_input(start: Start) -> None:
    server = start("exam", max_inputs=3)
    assert server.ask("POST", "/choose", {"question": "who", "choices": ["a"] * 3}).status == 200
    assert server.refusal("/choose", question="who", choices=["a"] * 4) == (413, "Validation")
    assert server.refusal("/choose", question=["who", "what"], choices=[["a", "b"]] * 2) == (413, "Validation")
    asked = {"question": "who", "choices": ["a"] * 4, "context": ""}
    assert server.refusal("/depth", verb="choose", request=asked) == (413, "Validation")


def test_a_text_that_several_inputs_share_counts_with_each(start: Start) -> None:
    server = start("exam", "reader", "score", max_characters=60)
    long = "a harbour " * 3
    assert server.ask("POST", "/choose", {"question": "who", "choices": ["a", "b"]}).status == 200
    assert server.refusal("/choose", question=long, choices=["a", "b", "c"]) == (413, "Validation")
    assert server.refusal("/answer", question=["who", "what", "why"], context=long) == (413, "Validation")
    assert server.refusal("/rerank", query=long, texts=["a", "b", "c"]) == (413, "Validation")


def test_characters_count_as_they_are_read(start: Start) -> None:
    server = start("reader", max_characters=60)
    grows = "\ufdfa" * 4  # eighteen characters each, once normalised
    assert server.refusal("/tokenize", inputs=grows) == (413, "Validation")
    assert server.refusal("/answer", question="who", context=grows) == (413, "Validation")
    assert server.ask("POST", "/tokenize", {"inputs": grows[:2]}).status == 200


def test_a_shared_context_is_encoded_no_further_than_the_queue_holds(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start("reader", batch_tokens=64, queue_tokens=1000)
    encoded: list[str] = []
    task = server.service.models.served["reader"].lane("answer").task
    encode = type(task).encode
    monkeypatch.setattr(
        type(task), "encode", lambda self, one, by: encoded.append(one.question) or encode(self, one, by)
    )
    body = {"question": [f"who {i}" for i in range(100)], "context": "the old harbour was quiet " * 20}
    refused = server.ask("POST", "/answer", body)
    assert (refused.status, "more than 1,000 tokens" in refused.body["error"]) == (413, True)
    assert 1 <= len(encoded) < 20


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (EmbedRequest, {"inputs": [None] * 5000}),
        (EmbedRequest, {"inputs": [[None] * 50] * 100}),
        (PredictRequest, {"inputs": [None] * 5000}),
        (PredictRequest, {"inputs": [["a", None]] * 5000}),
        (RerankRequest, {"query": "a", "texts": [None] * 5000}),
        (SimilarityRequest, {"inputs": {"source_sentence": "a", "sentences": [None] * 5000}}),
        (TokenizeRequest, {"inputs": [None] * 5000}),
        (DecodeRequest, {"ids": [[None]] * 5000}),
        (OpenAIRequest, {"input": [None] * 5000}),
        (AnswerRequest, {"question": [None] * 5000, "context": [None] * 5000}),
        (ChooseRequest, {"question": "a", "choices": [[None]] * 5000}),
        (TagRequest, {"inputs": [[None]] * 5000}),
        (FillRequest, {"inputs": [None] * 5000}),
    ],
)
def test_a_list_is_read_no_further_than_its_first_wrong_element(kind: type[Body], body: dict[str, Any]) -> None:
    with pytest.raises(RequestValidationError) as refused:
        validated(kind, body)
    assert len(refused.value.errors()) < 10


def test_json_100_000_deep_is_refused(server: Running) -> None:
    assert status(server.raw(request(b"[" * 100_000, "X: y"))) == 422
    assert status(server.raw(request(b'{"inputs":' * 100_000))) == 422


def test_slow_headers_slow_bodies_and_silence_are_closed_and_others_unharmed(start: Start) -> None:
    server = start(header_timeout=2, body_timeout=2)  # a busy machine takes a second to send what it has
    sent = [b"", b"POST /embed HTT", b"POST /embed HTTP/1.1\r\nHost: localhost\r\n", request(b"{}", length=50)]
    slow = []
    for text in sent * 5:
        one = socket.create_connection(("127.0.0.1", server.port), timeout=120)
        one.sendall(text)
        slow.append((text, one))
    assert server.ask("POST", "/embed", BODY).status == 200
    for text, one in slow:
        answer = one.recv(65536)  # the server ends it; the test's own deadline would raise
        assert (status(answer) == 408) if text == sent[-1] else (answer == b"")
        one.close()
    wait_until(lambda: server.service.running == 0)
    assert server.ask("POST", "/embed", BODY).status == 200


def test_an_answer_does_not_wait_for_the_clients_acknowledgement() -> None:
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        with socket.create_connection(taken.getsockname(), timeout=30):
            accepted, _ = taken.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_line_ends_between_requests_do_not_hold_a_connection(start: Start) -> None:
    server = start(header_timeout=2)
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as one:
        one.sendall(b"GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" in one.recv(65536)
        one.sendall(b"\r\n")
        assert one.recv(65536) == b""


@pytest.fixture
def held(start: Start, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[Running, threading.Event]]]:
    """Return a function that starts a server whose model computes only when the test lets it."""
    go = threading.Event()

    def begin(**settings: Any) -> tuple[Running, threading.Event]:
        server = start(**settings)
        engine = server.service.models.served["plain"].predictor.engine
        run = engine.run
        monkeypatch.setattr(engine, "run", lambda *given: run(*given) if go.wait(120) else None)
        return server, go

    yield begin
    go.set()


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def test_a_client_that_leaves_takes_its_request_out_of_the_queue(held: Any, texts: list[str]) -> None:
    server, go = held(batch_tokens=64)
    batcher = server.service.batcher
    for _ in range(3):  # each leaves an empty queue behind: what the next one sees there is its own
        with socket.create_connection(("127.0.0.1", server.port), timeout=120) as one:
            one.sendall(request(json.dumps({"inputs": texts}).encode()))
            wait_until(lambda: batcher.queued_tokens > 0)
        wait_until(lambda: not batcher.queued_tokens and not server.service.running)
    go.set()
    assert 'te_request_failure{err="canceled"} 3.0' in server.ask("GET", "/metrics").body.decode()
    assert server.ask("POST", "/embed", BODY).status == 200


def test_too_many_at_once_get_429_with_a_time_to_try_again(held: Any) -> None:
    server, go = held(max_concurrent_requests=1)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(server.ask, "POST", "/embed", BODY)
        wait_until(lambda: server.service.running == 1)
        refused = server.ask("POST", "/embed", BODY)
        go.set()
        assert first.result().status == 200
    assert refused.status == 429
    assert (refused.headers["retry-after"], refused.body["error_type"]) == ("1", "Overloaded")
    wait_until(lambda: server.service.running == 0)  # a moment after the answer
    assert server.ask("POST", "/embed", BODY).status == 200


def test_readiness_is_lost_when_the_model_gives_another_answer(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server = start()
    served = server.service.models.served["plain"]
    assert server.ask("GET", "/health").status == 200
    monkeypatch.setattr(served, "_known", served._known + 1)
    server.service.healthy_at = float("-inf")
    refused = server.ask("GET", "/health")
    assert (refused.status, refused.body["error_type"]) == (503, "Unhealthy")
    assert server.ask("GET", "/ping").status == 200


def test_logs_are_json_and_hold_neither_texts_nor_keys(start: Start) -> None:
    server = start(api_keys=("sesame",), access_log=True)
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("albert")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        server.ask("POST", "/embed?secret=words", {"inputs": "secret words"}, Authorization="Bearer sesame")
        server.ask("POST", "/secret/words", {"inputs": "secret words"}, Authorization="Bearer sesame")
        try:
            raise ValueError("secret words")
        except ValueError:
            logging.getLogger("albert.serve").exception("it failed")
        end = time.monotonic() + 30
        while stream.getvalue().count('"request"') < 2 and time.monotonic() < end:  # written after the answer is sent
            time.sleep(0.01)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    requests = [line for line in lines if line["message"] == "request"]
    assert [(one["route"], one["status"]) for one in requests] == [("/embed", 200), ("(none)", 404)]
    assert requests[0]["tokens"] > 2
    assert [line["exception"] for line in lines if "exception" in line] == ["ValueError"]
    assert "secret" not in stream.getvalue()
    assert "sesame" not in stream.getvalue()
