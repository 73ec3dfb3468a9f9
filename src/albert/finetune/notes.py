"""What is to be known before hours are spent: how long texts are, how many are cut, what case is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from albert.finetune.job import Items
from albert.finetune.start import Start
from albert.tasks.tagging import Tagging
from albert.tasks.task import AnyTask, Example

UNCUT = 2**31  # tokens: more than any text has
LOOKED_AT = 1_000  # texts whose lengths decide how much room all get
WHOLE = 0.95  # of them are read whole, if the model has the positions


def room_for(task: AnyTask, examples: Sequence[Example], start: Start) -> int:
    """Return the tokens that nearly all training texts need, as far as the model has positions.

    There is no padding, so room that short texts don't need costs nothing. Windows need none.
    """
    positions = start.config.max_position_embeddings
    if task.apart or task.max_length >= positions:
        return 0
    roomy: AnyTask = replace(task, max_length=positions)  # type: ignore[type-var]
    some = examples[:: -(-len(examples) // LOOKED_AT)] if examples else []
    sizes = sorted(max(len(f.token_ids) for f in roomy.encode(example, start.tokenizer)) for example in some)
    return sizes[min(len(sizes) - 1, int(WHOLE * len(sizes)))] if sizes else 0


def cut_notes(task: AnyTask, examples: Sequence[Example], items: Items, start: Start) -> list[str]:
    """Say how many training texts are cut at the task's length, and how much of them is lost.

    Only those that fill a sequence are looked at again. Windows lose nothing.
    """
    if task.apart:
        return []
    whole: AnyTask = replace(task, max_length=UNCUT)  # type: ignore[type-var]
    cut = read = there = 0
    for example, item in zip(examples, items.items, strict=True):
        if all(len(feature.token_ids) < task.max_length for feature in item):
            continue
        kept = sum(len(feature.token_ids) for feature in item)
        length = sum(len(feature.token_ids) for feature in whole.encode(example, start.tokenizer))
        if length > kept:
            cut, read, there = cut + 1, read + kept, there + length
    if not cut:
        return []
    positions = start.config.max_position_embeddings
    advice = f" (--set data.max_length={min(2 * task.max_length, positions)} reads more)"
    return [
        f"{cut:,} of {len(examples):,} training texts are longer than {task.max_length} tokens and are cut: "
        f"{1 - read / there:.0%} of their tokens are not read{advice if positions > task.max_length else ''}"
    ]


def case_notes(task: AnyTask, examples: Sequence[Example], start: Start) -> list[str]:
    """Warn where words are to be tagged whose case the model does not see: names are told by it."""
    if not isinstance(task, Tagging) or not start.tokenizer.normalisation.lower_case:
        return []
    words = [word for example in examples for word in getattr(example, "words", ())]
    capitals = sum(word != word.lower() for word in words)
    if not capitals:
        return []
    return [
        f"warning: the model's vocabulary is lower-cased, and {capitals / len(words):.0%} of the words have capitals, "
        "which it does not see: for names, a model that keeps them does better (albert tokenizer train --cased)"
    ]
