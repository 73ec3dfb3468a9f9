"""The route of the depth dial: one input, decided after each pass of the layers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from albert.errors import UsageError
from albert.inference.fill import MASK, PlainText
from albert.inference.model import is_pair
from albert.serve.batching import Lane
from albert.serve.bodies import (
    AnswerRequest,
    Body,
    ChooseRequest,
    DepthChart,
    DepthRequest,
    FillRequest,
    PredictRequest,
    SimilarityRequest,
    TagRequest,
    validated,
)
from albert.serve.call import Call, begin
from albert.serve.depth import GUESSES, chart, chart_cosines
from albert.serve.encoding import characters_of, encode_examples
from albert.serve.refusals import empty, invalid, too_large
from albert.serve.served import Served
from albert.serve.task_routes import pairs_of
from albert.tasks.task import Example

Begun = Annotated[Call, Depends(begin)]
MOST_BLANKS = 8  # the vocabulary is scored after each layer
OWN: Mapping[str, type[Body]] = {"answer": AnswerRequest, "choose": ChooseRequest, "tag": TagRequest}


def add_depth_route(router: APIRouter) -> None:
    """Add the route."""
    router.post("/depth", response_model=DepthChart, tags=["decisions"])(depth)


async def depth(body: DepthRequest, call: Begun) -> Response:
    """Return what a model would say of one input if it stopped after each pass of its layers."""
    served = call.model(body.verb)
    lane, examples, texts = _single(served, body)
    layers = await asyncio.to_thread(served.layers, lane)
    call.count(examples, single=True)
    encoded = encode_examples(served, lane.task, examples, refuse=call.refuse_characters)
    items = await call.encode_items(encoded, characters=characters_of(examples))
    decided = await call.decide("depth", layers, items)
    return await call.answer(lambda: chart_cosines(texts, decided) if texts else chart(body.verb, decided[0]))


def _single(served: Served, body: DepthRequest) -> tuple[Lane, Sequence[Example], Sequence[str]]:
    """Return the lane and the example of a request for one decision; of a similarity, its texts and their names."""
    match body.verb:
        case "similarity":
            one = validated(SimilarityRequest, body.request).inputs
            if not one.sentences:
                raise empty("`sentences` is empty: give one text at least")
            texts = [one.source_sentence, *one.sentences]
            return served.embed, [PlainText(text) for text in texts], one.sentences
        case "fill":
            text = validated(FillRequest, body.request).inputs
            given: tuple[Any, ...] = (text,)
            lane: Lane | None = served.filling(GUESSES) if "fill" in served.abilities else None
        case "predict":
            pairs, single = pairs_of(validated(PredictRequest, body.request).inputs)
            given = pairs[0] if single else (pairs,)
            lane = served.lane("classify")
        case _:
            kind = OWN[body.verb]
            given = tuple(validated(kind, body.request).model_dump().values())
            lane = served.lane(body.verb)
    if lane is None:
        raise served.unable(body.verb)
    if not isinstance(given[0], str):
        raise invalid("request: the depths of one input are shown, and this is a list: give one")
    if body.verb == "fill":
        if (blanks := given[0].count(MASK)) > MOST_BLANKS:
            raise too_large(f"request: {blanks:,} blanks, and the depths of {MOST_BLANKS} at most are shown")
        return lane, [PlainText(given[0])], ()
    assert served.model.task is not None
    try:
        examples = served.model.task.asked(*given)[0]
    except UsageError as problem:
        raise invalid(str(problem)) from None
    if wrong := served.model.pair_problem(given=is_pair(examples[0])):
        raise invalid(f"the model {served.name} {wrong}")
    return lane, examples, ()
