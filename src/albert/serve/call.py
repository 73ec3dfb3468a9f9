"""One request on its way: the model that it means, its deadline, its numbers for metrics, logs and headers.

A call ends in one of three ways: an answer, a refusal, or a client that went away, whose work then leaves the queue.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypeVar

import orjson
from starlette.requests import Request
from starlette.responses import Response

from albert.serve.batching import Batcher, Item, Lane, gather_items
from albert.serve.metrics import Metrics
from albert.serve.refusals import Refusal, empty, overloaded, too_large
from albert.serve.served import Models, Served
from albert.serve.settings import ServeSettings
from albert.tasks.choice import ChoiceExample

INLINE_CHARACTERS = 4000  # fewer are tokenized at once: handing them to a thread would take longer
INLINE_NUMBERS = 20_000  # of an answer, as above
T = TypeVar("T")


@dataclass
class Service:
    """What all requests share."""

    settings: ServeSettings
    models: Models
    batcher: Batcher
    metrics: Metrics
    threads: ThreadPoolExecutor  # for texts that are long to tokenize and answers that are long to write
    running: int = 0
    draining: bool = False
    probing: asyncio.Lock = field(default_factory=asyncio.Lock)
    healthy_at: float = -math.inf  # when all models last gave their known answers


class Call:
    """A request."""

    def __init__(self, request: Request, service: Service) -> None:
        self._request, self._service = request, service
        self._began = perf_counter()
        self._tokenization = self._queue = self._inference = 0.0
        self._characters = self._tokens = 0
        self._truncated = 0
        self._single = True

    @property
    def settings(self) -> ServeSettings:
        """Return the settings of the server."""
        return self._service.settings

    def model(self, ability: str, name: str | None = None) -> Served:
        """Return the model that is meant: by the path, by a field, or else the first that can do it."""
        models = self._service.models
        wanted = self._request.path_params.get("name") or name
        if wanted is None:
            return models.able(ability)
        if (found := models.get(wanted)) is None:
            raise Refusal(404, "Validation", f"no model of that name is served: there are {', '.join(models.served)}")
        return found

    def count(self, inputs: Sequence[Any], *, single: bool) -> None:
        """Take note of the inputs, and refuse none and too many; every choice of a question counts."""
        self._single = single
        if not inputs:
            raise empty("`inputs` is empty: give one text at least")
        number = sum(len(one.choices) if isinstance(one, ChoiceExample) else 1 for one in inputs)
        if number > self.settings.max_inputs:
            raise too_large(
                f"{number:,} inputs, and at most {self.settings.max_inputs:,} are taken: send several requests"
            )
        self._service.metrics.request(single=single)

    async def encode(self, encode: Callable[[], T], *, characters: int) -> T:
        """Tokenize: at once where it is short, or else beside the event loop."""
        self.refuse_characters(characters)
        self._characters += characters
        began = perf_counter()
        try:
            return await self._apart(encode, small=characters <= INLINE_CHARACTERS)
        finally:
            self._tokenization += perf_counter() - began

    async def encode_items(self, encoded: Iterable[Item], *, characters: int) -> list[Item]:
        """Tokenize what is to be decided, up to the tokens that can wait."""
        most = self.settings.queue_tokens
        return await self.encode(lambda: gather_items(encoded, most=most), characters=characters)

    async def decide(self, verb: str, lane: Lane, items: Sequence[Item]) -> list[Any]:
        """Let the queue decide items, while the client is there."""
        lengths = [item.tokens for item in items]
        self._tokens += sum(lengths)
        self._truncated += sum(item.truncated for item in items)
        self._service.metrics.inputs(verb, lengths)
        seconds = self.settings.timeout - (perf_counter() - self._began)
        if seconds <= 0:
            raise overloaded(f"not answered within {self.settings.timeout:g} seconds: try again later")
        gone = asyncio.ensure_future(self._disconnected())
        try:
            decided = await self._service.batcher.decide(lane, items, seconds=seconds, gone=gone)
        finally:
            gone.cancel()
        self._queue += decided.queue_seconds
        self._inference += decided.inference_seconds
        return decided.results

    async def answer(self, value: Callable[[], Any], *, numbers: int = 0) -> Response:
        """Return an answer, with what it took in its headers; `numbers`: how many it holds."""
        body = await self._apart(
            lambda: orjson.dumps(value(), option=orjson.OPT_SERIALIZE_NUMPY), small=numbers <= INLINE_NUMBERS
        )
        total = perf_counter() - self._began
        self._service.metrics.success(
            single=self._single,
            total=total,
            tokenization=self._tokenization,
            queue=self._queue,
            inference=self._inference,
        )
        state = self._request.scope.setdefault("state", {})
        state["tokens"] = self._tokens
        headers = {
            "x-compute-type": "cpu",
            "x-compute-time": _milliseconds(total),
            "x-compute-characters": str(self._characters),
            "x-compute-tokens": str(self._tokens),
            "x-total-time": _milliseconds(total),
            "x-tokenization-time": _milliseconds(self._tokenization),
            "x-queue-time": _milliseconds(self._queue),
            "x-inference-time": _milliseconds(self._inference),
            "x-truncated": str(self._truncated),
        }
        return Response(body, media_type="application/json", headers=headers)

    def refuse_numbers(self, numbers: int) -> None:
        """Refuse an answer that would be too large."""
        if numbers > self.settings.max_numbers:
            raise too_large(
                f"the answer would hold {numbers:,} numbers, and at most {self.settings.max_numbers:,} are sent: "
                "send several requests"
            )

    def refuse_characters(self, characters: int) -> None:
        """Refuse to tokenize too much: a query, question or passage is read again with every text that it meets."""
        if characters > self.settings.max_characters:
            raise too_large(
                f"{characters:,} characters to read (a text that several inputs share counts with each), and at most "
                f"{self.settings.max_characters:,} are taken: shorten it, or send several requests"
            )

    @property
    def tokens(self) -> int:
        """Return how many tokens were read."""
        return self._tokens

    async def _apart(self, work: Callable[[], T], *, small: bool) -> T:
        if small:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._service.threads, work)

    async def _disconnected(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass


async def begin(request: Request) -> Call:  # async, though it waits for nothing: FastAPI runs others in threads
    """Begin a call: what a route depends on."""
    return Call(request, request.app.state.service)


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.3f}".rstrip("0").rstrip(".")
