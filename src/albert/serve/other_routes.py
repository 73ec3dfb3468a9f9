"""Routes about tokens and the server: `/tokenize`, `/decode`, `/info`, `/models`, `/health`, `/ping`, `/metrics`.

`/ping` says that the process lives; `/health` that it is ready: each model gives its known answer, through the queue.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

import albert
from albert.serve.bodies import DecodeRequest, Token, TokenizeRequest
from albert.serve.call import Call, Service, begin
from albert.serve.encoding import normal_length
from albert.serve.metrics import CONTENT_TYPE
from albert.serve.refusals import Refusal, empty, unhealthy, untokenizable
from albert.serve.served import Served
from albert.tasks.similarity import Similarity
from albert.tokenizer import Encoding, Tokenizer

Begun = Annotated[Call, Depends(begin)]
TOKEN_NUMBERS = 3  # of a token: its id, and where it starts and stops
HEALTHY_FOR = 1.0  # seconds that a probe's result is believed


def add_model_routes(router: APIRouter) -> None:
    """Add what is asked of one model."""
    router.post("/tokenize", response_model=list[list[Token]], tags=["tokens"])(tokenize)
    router.post("/decode", response_model=list[str], tags=["tokens"])(decode)
    router.get("/info", response_model=dict[str, Any], tags=["server"])(info)


def add_server_routes(router: APIRouter) -> None:
    """Add what is asked of the server."""
    router.get("/models", response_model=list[dict[str, Any]], tags=["server"])(models)
    router.get("/v1/models", response_model=dict[str, Any], tags=["server"])(openai_models)
    router.get("/health", response_class=Response, tags=["server"])(health)
    router.get("/ping", response_class=Response, tags=["server"])(ping)
    router.get("/metrics", response_class=Response, tags=["server"])(metrics)


async def tokenize(body: TokenizeRequest, call: Begun) -> Response:
    """Return the tokens of texts, and the characters that each came from."""
    served = call.model("tokenize")
    single = isinstance(body.inputs, str)
    texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
    call.count(texts, single=single)

    def tokens() -> list[list[dict[str, Any]]]:
        found, numbers = [], 0
        for text in texts:
            if not text:
                raise empty("an input is empty: leave it out")
            call.refuse_characters(normal_length(text))
            encoding = served.tokenizer.encode_with_offsets(text)
            numbers += TOKEN_NUMBERS * len(encoding.ids)
            call.refuse_numbers(numbers)
            found.append(_tokens(served.tokenizer, encoding, special=body.add_special_tokens))
        return found

    found = await call.encode(tokens, characters=sum(map(len, texts)))
    return await call.answer(lambda: found, numbers=TOKEN_NUMBERS * sum(map(len, found)))


async def decode(body: DecodeRequest, call: Begun) -> Response:
    """Return the texts of token ids."""
    served = call.model("decode")
    tokenizer = served.tokenizer
    single = bool(body.ids) and isinstance(body.ids[0], int)
    lists: Any = [body.ids] if single else body.ids
    call.count(lists, single=single)
    for number, ids in enumerate(lists):
        if not all(0 <= one < tokenizer.vocab_size for one in ids):
            raise untokenizable(f"ids[{number}]: an id is not from 0 to {tokenizer.vocab_size - 1}")

    def text(ids: list[int]) -> str:
        if body.skip_special_tokens:
            return tokenizer.decode(ids)
        special = {tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id}
        parts: list[str] = []
        plain: list[int] = []
        for one in [*ids, tokenizer.pad_id]:
            if one in special:
                parts += [tokenizer.decode(plain), tokenizer.pieces[one]]
                plain = []
            else:
                plain.append(one)
        return " ".join(part for part in parts[:-1] if part)

    found = await call.encode(lambda: [text(ids) for ids in lists], characters=sum(map(len, lists)))
    return await call.answer(lambda: found)


async def info(call: Begun) -> dict[str, Any]:
    """Describe a model and the limits of the server."""
    return _info(call.model("info"), call)


async def models(call: Begun, request: Request) -> list[dict[str, Any]]:
    """Describe all models."""
    service: Service = request.app.state.service
    return [_info(served, call) for served in service.models]


async def openai_models(request: Request) -> dict[str, Any]:
    """List the models as OpenAI does."""
    service: Service = request.app.state.service
    data = [{"id": one.name, "object": "model", "created": 0, "owned_by": "albert-lite"} for one in service.models]
    return {"object": "list", "data": data}


async def health(request: Request) -> Response:
    """Say whether the server is ready: every model gives its known answer."""
    await check_health(request.app.state.service)
    return Response(status_code=200)


async def check_health(service: Service) -> None:
    """Raise unless every model gives its known answer."""
    if service.draining:
        raise unhealthy("the server is shutting down")
    if monotonic() - service.healthy_at > HEALTHY_FOR:
        async with service.probing:
            if monotonic() - service.healthy_at > HEALTHY_FOR:
                await asyncio.gather(*(_probe(service, served) for served in service.models))
                service.healthy_at = monotonic()


async def ping() -> Response:
    """Say that the process lives."""
    return Response(status_code=200)


async def metrics(request: Request) -> Response:
    """Return the numbers that Prometheus collects."""
    service: Service = request.app.state.service
    return Response(service.metrics.text(), media_type=CONTENT_TYPE)


async def _probe(service: Service, served: Served) -> None:
    try:
        decided = await service.batcher.decide(
            served.embed, [served.probe], seconds=service.settings.timeout, urgent=True
        )
    except Refusal as problem:
        raise unhealthy(f"the model {served.name} does not answer: {problem.message}") from None
    if not served.is_known(decided.results[0]):
        raise unhealthy(f"the model {served.name} does not give its known answer")


def _tokens(tokenizer: Tokenizer, encoding: Encoding, *, special: bool) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"id": number, "text": tokenizer.pieces[number], "special": False, "start": start, "stop": stop}
        for number, (start, stop) in zip(encoding.ids, encoding.offsets, strict=True)
    ]
    if not special:
        return found
    around = [
        {"id": number, "text": tokenizer.pieces[number], "special": True, "start": None, "stop": None}
        for number in (tokenizer.cls_id, tokenizer.sep_id)
    ]
    return [around[0], *found, around[1]]


def _info(served: Served, call: Call) -> dict[str, Any]:
    """Return text-embeddings-inference's fields, and what the page needs."""
    model, config, settings = served.model, served.model.predictor.engine.config, call.settings
    kind: dict[str, Any] = {"embedding": {"pooling": "mean"}}
    if served.scored is not None:
        names = config.labels
        kind = {"classifier": {"id2label": dict(enumerate(names)), "label2id": {n: i for i, n in enumerate(names)}}}
    if served.ranks and not isinstance(model.task, Similarity):
        kind = {"reranker": kind["classifier"]}
    return {
        "model_id": served.name,
        "model_sha": None,
        "model_dtype": "float32",
        "model_type": kind,
        "served_model_name": served.name,
        "max_concurrent_requests": settings.max_concurrent_requests,
        "max_input_length": served.max_length,
        "max_batch_tokens": settings.batch_tokens,
        "max_batch_requests": None,
        "max_client_batch_size": settings.max_inputs,
        "auto_truncate": True,
        "tokenization_workers": 1,
        "version": albert.__version__,
        "sha": None,
        "docker_label": None,
        "task": model.task.kind if model.task is not None else None,
        "abilities": served.abilities,
        "labels": list(served.labels),
        "threshold": getattr(model.task, "threshold", None),
        "pairs": "pair" in model.columns,
        "width": model.width,
        "layers": config.num_hidden_layers,
        "depth": True,
        "exact": settings.exact,
    }
