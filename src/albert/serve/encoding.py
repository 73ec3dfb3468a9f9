"""From what a request holds to sequences for the queue: texts, token ids, pairs; what is too long is cut and marked.

`truncate` as text-embeddings-inference has it: true cuts, false refuses; where nothing is said, the text is read as
`albert predict` and `albert embed` read it (in windows, or cut where the model was trained so). Token ids are taken as
they are, with or without [CLS] and [SEP] around them. Items are encoded as they are asked for: a request that has too
many tokens is refused before all of it is encoded.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from albert.errors import AlbertError, DataError
from albert.inference.embed import Embed
from albert.inference.fill import PlainText
from albert.serve.batching import Item
from albert.serve.refusals import empty, invalid, untokenizable
from albert.serve.served import Served
from albert.tasks.choice import QUESTION_TOKENS, ChoiceExample
from albert.tasks.classification import TextExample, TextFeature
from albert.tasks.span import QuestionExample
from albert.tasks.task import Example, Feature, join_segments, truncate_pair
from albert.tasks.windows import Window

Direction = Literal["Left", "Right", "left", "right"]


@dataclass(frozen=True)
class Truncation:
    """Whether a text that is too long is cut (None: as the model would), and at which end."""

    cut: bool | None = None
    left: bool = False


def encode_texts(
    served: Served, inputs: Sequence[str | list[int]], truncation: Truncation, *, whole: bool = True
) -> Iterator[Item]:
    """Encode texts or ids to embed; not `whole`: in one sequence each."""
    task = served.embed.task
    assert isinstance(task, Embed)
    room = served.max_length - 2
    for number, given in enumerate(inputs):
        ids = _ids(served, given, number)
        cuts = task.cut or not whole if truncation.cut is None else truncation.cut
        _refuse_long(len(ids), room, number, refused=truncation.cut is False)
        truncated = len(ids) > room and cuts
        if truncated:
            ids = ids[-room:] if truncation.left else ids[:room]
        features = task.windows(ids, served.tokenizer)
        yield Item(PlainText(""), features, truncated)


def encode_pairs(served: Served, inputs: Sequence[tuple[str, str | None]], truncation: Truncation) -> Iterator[Item]:
    """Encode texts or pairs of them to classify, or to score."""
    task = served.model.task
    assert task is not None, "the caller has asked whether the model decides about texts"
    if truncation.cut and getattr(task, "long", "first") == "mean":
        task = replace(task, long="first")  # type: ignore[type-var]  # cut, and not read in windows
    max_length, tokenizer = task.max_length, served.tokenizer
    for number, (text, pair) in enumerate(inputs):
        if problem := served.model.pair_problem(given=pair is not None):
            raise invalid(f"inputs[{number}]: the model {served.name} {problem}")
        if not text.strip() and not (pair or "").strip():
            raise empty(f"inputs[{number}] is empty: leave it out")
        example = TextExample(text, pair)
        features: Sequence[Feature] = task.encode(example, tokenizer)
        special = 2 if pair is None else 3
        room = max_length - special
        length = sum(len(feature.token_ids) - special for feature in features) + features[0].unread
        _refuse_long(length, room, number, refused=truncation.cut is False)
        if length > room and truncation.left:
            cut = _cut_left(tokenizer.encode(text), tokenizer.encode(pair) if pair is not None else None, room=room)
            features = [TextFeature(*join_segments(tokenizer, *cut), None)]
        read = sum(len(feature.token_ids) - special for feature in features)
        yield Item(example, features, read < length)


def encode_examples(
    served: Served, task: Any, examples: Sequence[Example], *, refuse: Callable[[int], None]
) -> Iterator[Item]:
    """Encode what one of our own verbs was asked; `refuse` is told the characters of each, normalised."""
    for number, example in enumerate(examples):
        refuse(characters_of([example], length=normal_length))
        try:
            features = task.encode(example, served.tokenizer)
        except DataError as problem:
            raise invalid(f"inputs[{number}]: {problem}") from None
        except AlbertError as problem:
            raise untokenizable(f"inputs[{number}]: {problem}") from None
        yield Item(example, features, _is_cut(served, example, features))


def characters_of(examples: Sequence[Example], *, length: Callable[[str], int] = len) -> int:
    """Count the characters of all texts of examples; a question is read with each of its choices."""
    values = [value for example in examples for value in vars(example).values()]
    texts = [one for value in values for one in (value if isinstance(value, tuple) else (value,))]
    again = sum((len(one.choices) - 1) * length(one.question) for one in examples if isinstance(one, ChoiceExample))
    return again + sum(length(one) for one in texts if isinstance(one, str))


def normal_length(text: str) -> int:
    """Count the characters that are read of a text: normalised, one may become eighteen."""
    return len(text) if text.isascii() else len(unicodedata.normalize("NFKC", text))


def _is_cut(served: Served, example: Example, features: Sequence[Feature]) -> bool:
    """Tell whether something of a question, a passage or a choice was not read."""
    encode = served.tokenizer.encode
    if isinstance(example, QuestionExample):
        window = features[0]
        assert isinstance(window, Window)
        return window.first - 2 < len(encode(example.question))
    if isinstance(example, ChoiceExample):
        passage = len(encode(example.passage))
        asked = [sum(feature.segment_ids) - 1 for feature in features]
        read = [len(f.token_ids) - 3 - n for f, n in zip(features, asked, strict=True)]
        return min(read) < passage or max(asked) >= QUESTION_TOKENS
    return False


def _ids(served: Served, given: str | list[int], number: int) -> Sequence[int]:
    tokenizer = served.tokenizer
    if isinstance(given, str):
        if not given.strip():
            raise empty(f"inputs[{number}] is empty, so it has no vector: leave it out")
        return tokenizer.encode(given)
    if wrong := next((one for one in given if not 0 <= one < tokenizer.vocab_size), None):
        raise untokenizable(f"inputs[{number}]: token id {wrong}: must be from 0 to {tokenizer.vocab_size - 1}")
    ids = given[1:] if given[:1] == [tokenizer.cls_id] else given
    ids = ids[:-1] if ids[-1:] == [tokenizer.sep_id] else ids
    if not ids:
        raise empty(f"inputs[{number}] has no tokens: leave it out")
    return ids


def _refuse_long(length: int, room: int, number: int, *, refused: bool) -> None:
    if refused and length > room:
        raise untokenizable(
            f"inputs[{number}] has {length:,} tokens, and the model reads {room} of a text: shorten it, "
            "or leave `truncate` out"
        )


def _cut_left(
    first: Sequence[int], second: Sequence[int] | None, *, room: int
) -> tuple[Sequence[int], Sequence[int] | None]:
    """Cut one or two token lists at their beginnings, as much of each as `truncate_pair` would at their ends."""
    if second is None:
        return first[-room:], None
    kept, other = truncate_pair(first[::-1], second[::-1], room=room)
    return kept[::-1], other[::-1]
