"""Routes that give vectors: `/embed`, `/embed_all`, `/similarity`, and OpenAI's embeddings."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends
from starlette.responses import Response

from albert.inference.vectors import unit
from albert.serve.batching import Item
from albert.serve.bodies import (
    EmbedAllRequest,
    EmbedRequest,
    OpenAIRequest,
    OpenAIResponse,
    SimilarityParameters,
    SimilarityRequest,
)
from albert.serve.call import Call, begin
from albert.serve.encoding import Truncation, encode_texts
from albert.serve.refusals import backend, invalid
from albert.serve.served import Served

Begun = Annotated[Call, Depends(begin)]
Given = Sequence[str | list[int]]


def add_embedding_routes(router: APIRouter) -> None:
    """Add the routes."""
    router.post("/embed", response_model=list[list[float]], tags=["vectors"])(embed)
    router.post("/embed_all", response_model=list[list[list[float]]], tags=["vectors"])(embed_all)
    router.post("/similarity", response_model=list[float], tags=["vectors"])(similarity)
    router.post("/v1/embeddings", response_model=OpenAIResponse, tags=["vectors"])(openai_embeddings)
    router.post("/embeddings", response_model=OpenAIResponse, tags=["vectors"])(openai_embeddings)


async def embed(body: EmbedRequest, call: Begun) -> Response:
    """Return the vector of each text: the mean of the last layer's states."""
    served = call.model("embed")
    texts = as_list(body.inputs)
    call.count(texts, single=texts is not body.inputs)
    width = _width(served, body.dimensions)
    call.refuse_numbers(len(texts) * width)
    _refuse_prompt(body.prompt_name)
    rows = await vectors(call, served, texts, body.truncation(), verb="embed")
    return await call.answer(lambda: _finished(rows, width, normalize=body.normalize), numbers=len(texts) * width)


async def embed_all(body: EmbedAllRequest, call: Begun) -> Response:
    """Return the vectors of all tokens of each text, [CLS] and [SEP] included."""
    served = call.model("embed")
    texts = as_list(body.inputs)
    call.count(texts, single=texts is not body.inputs)
    _refuse_prompt(body.prompt_name)
    items = await _encode(call, served, texts, body.truncation(), whole=False)
    numbers = sum(item.tokens for item in items) * served.model.width
    call.refuse_numbers(numbers)
    states = await call.decide("embed_all", served.embed_all, items)
    return await call.answer(lambda: [_finite(np.ascontiguousarray(rows)) for rows in states], numbers=numbers)


async def similarity(body: SimilarityRequest, call: Begun) -> Response:
    """Return the cosine of one text with each of several."""
    served = call.model("similarity")
    options = body.parameters or SimilarityParameters(truncate=None)
    _refuse_prompt(options.prompt_name)
    call.count(body.inputs.sentences, single=len(body.inputs.sentences) == 1)
    cosines = await compare(call, served, body.inputs.source_sentence, body.inputs.sentences, options.truncation())
    return await call.answer(lambda: cosines)


async def openai_embeddings(body: OpenAIRequest, call: Begun) -> Response:
    """Return the vectors of texts as OpenAI does: of length 1."""
    served = call.model("embed", body.model if body.model in _names(call) else None)
    texts = as_list(body.input)
    call.count(texts, single=texts is not body.input)
    width = _width(served, body.dimensions)
    call.refuse_numbers(len(texts) * width)
    rows = await vectors(call, served, texts, Truncation(), verb="embed")
    return await call.answer(
        lambda: _openai(_finished(rows, width, normalize=True), served.name, call.tokens, body.encoding_format),
        numbers=len(texts) * width,
    )


async def vectors(call: Call, served: Served, texts: Given, truncation: Truncation, *, verb: str) -> np.ndarray:
    """Return the vectors of texts, as the rows of a matrix."""
    items = await _encode(call, served, texts, truncation, whole=True)
    return _finite(np.stack(await call.decide(verb, served.embed, items)))


async def compare(call: Call, served: Served, text: str, others: Sequence[str], truncation: Truncation) -> np.ndarray:
    """Return the cosines of one text with others."""
    rows = unit(await vectors(call, served, [text, *others], truncation, verb="similarity"))
    return np.ascontiguousarray(rows[1:] @ rows[0])


def as_list(inputs: Any) -> Any:
    """Return a list of inputs, of one where a single one was given; a list of them is returned as it is."""
    single = isinstance(inputs, str) or (bool(inputs) and isinstance(inputs[0], int))
    return [inputs] if single else inputs


def size_of(given: Given) -> int:
    """Count the characters, or ids, of inputs."""
    return sum(map(len, given))


async def _encode(call: Call, served: Served, texts: Given, truncation: Truncation, *, whole: bool) -> list[Item]:
    return await call.encode_items(encode_texts(served, texts, truncation, whole=whole), characters=size_of(texts))


def _width(served: Served, dimensions: int | None) -> int:
    width = served.model.width
    if dimensions is not None and dimensions > width:
        raise invalid(f"dimensions={dimensions}: a vector has {width} numbers: use {width} or fewer")
    return dimensions or width


def _finished(rows: np.ndarray, width: int, *, normalize: bool) -> np.ndarray:
    """Return vectors cut to a width, at length 1 if wanted."""
    rows = np.ascontiguousarray(rows[:, :width])
    return unit(rows) if normalize else rows


def _finite(values: np.ndarray) -> np.ndarray:
    if not np.isfinite(values).all():
        raise backend("the model gave numbers that are not finite")
    return values


def _refuse_prompt(name: str | None) -> None:
    if name is not None:
        raise invalid("prompt_name: these models have no prompts: leave it out")


def _names(call: Call) -> Sequence[str]:
    return tuple(call.settings.models)


def _openai(rows: np.ndarray, model: str, tokens: int, encoding: str) -> dict[str, Any]:
    def value(row: np.ndarray) -> Any:
        return base64.b64encode(row.astype("<f4").tobytes()).decode() if encoding == "base64" else row

    data = [{"object": "embedding", "index": number, "embedding": value(row)} for number, row in enumerate(rows)]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": model, "usage": usage}
