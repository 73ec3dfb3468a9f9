"""What is to be known before hours are spent: how long texts are, how many are cut, what case is lost."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from albert.batch import MICRO_TOKENS
from albert.finetune.job import Items
from albert.finetune.start import Start
from albert.tasks.tagging import Tagging, has_capital
from albert.tasks.task import AnyTask, Example

HTML = re.compile(r"</?(br|p|div|span|b|i)\s*/?>", re.IGNORECASE)
MARKED = 0.05  # of the texts: fewer are no habit
UNCUT = 2**31  # tokens: more than any text has


def cut_notes(task: AnyTask, examples: Sequence[Example], items: Items, start: Start) -> list[str]:
    """Say how many training texts are cut at the task's length, and how much of them is lost.

    Only those that fill a sequence are looked at again. Windows lose nothing.
    """
    if task.apart:
        return []
    if items.sequences > len(examples) and getattr(task, "long", "first") == "mean":
        parts = f"{items.sequences:,} windows of at most {task.max_length} tokens"
        how = "a text is decided by the mean over its windows (tune.long=first: by its first one)"
        fit = MICRO_TOKENS // task.max_length
        longest = sum(len(item) >= fit for item in items.items)
        ends = f"; of {longest:,} texts training takes the first {fit:,} windows alone" if longest else ""
        return [f"{len(examples):,} training texts are read in {parts}: {how}{ends}"]
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
    """Say how a tagger learns of capitals that its vocabulary loses, or warn that it does not."""
    if not isinstance(task, Tagging) or not start.tokenizer.normalisation.lower_case:
        return []
    words = [word for example in examples for word in getattr(example, "words", ())]
    capitals = sum(map(has_capital, words))
    if not capitals:
        return []
    share = f"{capitals / len(words):.0%} of the words have capitals, which the model's lower-cased vocabulary loses"
    if task.capitals:
        return [f"{share}: they are marked by segment 1 (token_type_ids), here and in prediction"]
    mended = " (tune.capitals=true marks such words)" if start.config.type_vocab_size > 1 else ""
    return [f"warning: {share}: names are told by them{mended}"]


def markup_notes(examples: Sequence[Example]) -> list[str]:
    """Say that texts hold HTML's tags for layout, which are read as words: each takes some pieces of a sequence."""
    marked = sum(HTML.search(text) is not None for text in map(_text, examples))
    if marked < MARKED * len(examples):
        return []
    return [
        f"{marked:,} of {len(examples):,} training texts hold HTML tags such as <br />, which are read as text: "
        "take them out, here and where the model is used"
    ]


def _text(example: Example) -> str:
    return getattr(example, "text", None) or ""
