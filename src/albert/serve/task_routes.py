"""Routes that decide: `/predict` and `/rerank`, and our own `/answer`, `/choose`, `/tag` and `/fill`.

Ours take one input or a list and give one record or a list of them, the records of `albert predict` with `truncated`
beside: whether something of the input was not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from albert.errors import UsageError
from albert.inference.fill import MASK, PlainText
from albert.serve.batching import Lane
from albert.serve.bodies import (
    AnswerRequest,
    ChooseRequest,
    EmbedRequest,
    FillRequest,
    Prediction,
    PredictRequest,
    Rank,
    Record,
    RerankRequest,
    TagRequest,
    validated,
)
from albert.serve.call import Call, begin
from albert.serve.embedding_routes import compare, embed
from albert.serve.encoding import Truncation, characters_of, encode_examples, encode_pairs
from albert.serve.refusals import backend, empty, invalid
from albert.serve.scores import ScoredPooled
from albert.serve.served import Served
from albert.tasks.similarity import Similarity
from albert.tasks.task import Example

Begun = Annotated[Call, Depends(begin)]
Records = Record | list[Record]
NUMBERS_OF_GUESS = 20  # a guess is written in about as many characters as these numbers of a vector


def add_task_routes(router: APIRouter) -> None:
    """Add the routes."""
    router.post("" if router.prefix else "/", include_in_schema=False)(default)
    router.post("/predict", response_model=list[Prediction] | list[list[Prediction]], tags=["decisions"])(predict)
    router.post("/rerank", response_model=list[Rank], tags=["decisions"])(rerank)
    router.post("/answer", response_model=Records, tags=["decisions"])(answer)
    router.post("/choose", response_model=Records, tags=["decisions"])(choose)
    router.post("/tag", response_model=Records, tags=["decisions"])(tag)
    router.post("/fill", response_model=Records, tags=["decisions"])(fill)


async def default(request: Request, call: Begun) -> Response:
    """Do what the model is for, as text-embeddings-inference does at `/`: classify, sort by a query, or embed."""
    body = await request.json()
    if isinstance(body, dict) and "query" in body:
        return await rerank(validated(RerankRequest, body), call)
    if "predict" in call.model("info").abilities:
        return await predict(validated(PredictRequest, body), call)
    return await embed(validated(EmbedRequest, body), call)


async def predict(body: PredictRequest, call: Begun) -> Response:
    """Return the classes of a text, a pair, or a list of them, with their scores, best first; or a number."""
    served = call.model("predict")
    pairs, single = pairs_of(body.inputs)
    call.count(pairs, single=single)
    numbers = len(pairs) * max(1, len(served.labels))
    call.refuse_numbers(numbers)
    scored = await _scored(call, served, pairs, body.truncation(), verb="predict")

    def found() -> Any:
        ranked = [one.ranked(raw=body.raw_scores) for one in scored]
        return ranked[0] if single else ranked

    return await call.answer(found, numbers=numbers)


async def rerank(body: RerankRequest, call: Begun) -> Response:
    """Return texts by how well they belong to a query, best first."""
    served = call.model("rerank")
    if not served.ranks:
        raise served.unable("rerank")
    call.count(body.texts, single=len(body.texts) == 1)
    if isinstance(served.model.task, Similarity):
        scores = await compare(call, served, body.query, body.texts, body.truncation())
    else:
        pairs = [(body.query, text) for text in body.texts]
        scored = await _scored(call, served, pairs, body.truncation(), verb="rerank")
        scores = np.array([one.ranked(raw=body.raw_scores)[0]["score"] for one in scored])
    ranks = [
        {"index": int(i), "score": float(scores[i])} | ({"text": body.texts[i]} if body.return_text else {})
        for i in np.argsort(-scores, kind="stable")
    ]
    return await call.answer(lambda: ranks)


async def answer(body: AnswerRequest, call: Begun) -> Response:
    """Find the answer to a question in a text, or that there is none; several questions may share the text."""
    served = call.model("answer")
    return await _asked(call, served, "answer", body.question, body.context)


async def choose(body: ChooseRequest, call: Begun) -> Response:
    """Choose one of several answers to a question, about a text where there is one."""
    served = call.model("choose")
    return await _asked(call, served, "choose", body.question, body.choices, body.context)


async def tag(body: TagRequest, call: Begun) -> Response:
    """Tag the words of a text."""
    served = call.model("tag")
    return await _asked(call, served, "tag", body.inputs)


async def fill(body: FillRequest, call: Begun) -> Response:
    """Return the best words for each [MASK] of a text."""
    served = call.model("fill")
    if "fill" not in served.abilities:
        raise served.unable("fill")
    texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
    examples, single = [PlainText(text) for text in texts], texts is not body.inputs
    call.refuse_numbers(NUMBERS_OF_GUESS * body.top * sum(text.count(MASK) for text in texts))
    return await _recorded(call, served, served.filling(body.top), examples, single=single, verb="fill")


async def _asked(call: Call, served: Served, verb: str, *given: Any) -> Response:
    """Decide what was given to a verb of the model's own task."""
    lane = served.lane(verb)
    assert served.model.task is not None
    try:
        examples, many = served.model.task.asked(*given)
    except UsageError as problem:
        raise invalid(str(problem)) from None
    return await _recorded(call, served, lane, examples, single=not many, verb=verb)


async def _recorded(
    call: Call, served: Served, lane: Lane, examples: Sequence[Example], *, single: bool, verb: str
) -> Response:
    task: Any = lane.task
    call.count(examples, single=single)
    encoded = encode_examples(served, task, examples, refuse=call.refuse_characters)
    items = await call.encode_items(encoded, characters=characters_of(examples))
    if any(not item.tokens for item in items):
        raise empty("an input is empty: leave it out")
    decided = await call.decide(verb, lane, items)

    def records() -> Any:
        found = [
            task.record(item.example, one) | {"truncated": item.truncated}
            for item, one in zip(items, decided, strict=True)
        ]
        return found[0] if single else found

    return await call.answer(records, numbers=sum(item.tokens for item in items))


async def _scored(
    call: Call, served: Served, pairs: Sequence[tuple[str, str | None]], truncation: Truncation, *, verb: str
) -> list[ScoredPooled]:
    if served.scored is None:
        raise served.unable(verb)
    size = sum(len(text) + len(pair or "") for text, pair in pairs)
    items = await call.encode_items(encode_pairs(served, pairs, truncation), characters=size)
    scored = await call.decide(verb, served.scored, items)
    if not all(np.isfinite(one.logits).all() for one in scored):
        raise backend("the model gave numbers that are not finite")
    return scored


def pairs_of(inputs: Any) -> tuple[list[tuple[str, str | None]], bool]:
    """Return texts and pairs, and whether it is a single one: `["a", "b"]` is a pair, `[["a"], ["b"]]` a list."""
    if isinstance(inputs, str):
        return [(inputs, None)], True
    single = bool(inputs) and isinstance(inputs[0], str)
    pairs = []
    for number, one in enumerate([inputs] if single else inputs):
        if len(one) not in (1, 2):
            where = "" if single else f"[{number}]"
            raise invalid(
                f"inputs{where} has {len(one)} texts: give a text, a pair, or a list such as [[text], [text, text]]"
            )
        pairs.append((one[0], one[1] if len(one) == 2 else None))
    return pairs, single
