"""How a task reads its texts, where nobody said: how long they may be, in how many windows, with which capitals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from albert.errors import UsageError
from albert.finetune.rules import PAPER_WIDTH, Row, followed, resolve_length
from albert.finetune.settings import FinetuneSettings
from albert.finetune.start import Start
from albert.tasks.tagging import Tagging, has_capital
from albert.tasks.task import AnyTask, Example

LOOKED_AT = 1_000  # texts whose lengths decide how much room all get
WHOLE = 0.95  # of them are read whole, if the model has the positions


def reading(
    task: AnyTask, examples: Sequence[Example], start: Start, settings: FinetuneSettings, *, row: Row | None
) -> AnyTask:
    """Return the task as it reads these texts.

    A small model classifies long texts by windows: it learns long sequences by heart, and few small models were trained
    on any. Others get the room that nearly all texts need.
    """
    rule = settings.tune.long
    if rule is not None:
        if not hasattr(task, "long"):
            raise UsageError(f"tune.long={rule}: is for classification and regression, this is {task.kind}")
        task = replace(task, long=rule)  # type: ignore[type-var]
    length = resolve_length(settings, task, start.config, row=row)
    alone = hasattr(task, "long") and all(getattr(example, "pair", None) is None for example in examples)
    windows = rule == "mean" and alone
    if not windows and settings.data.max_length is None and followed(settings, row, start.config) is None:
        room = room_for(task, examples, start)
        if rule is None and room > length and alone and start.config.hidden_size < PAPER_WIDTH:
            task = replace(task, long="mean")  # type: ignore[type-var]
        else:
            length = max(length, room)
    task = replace(task, max_length=length)  # type: ignore[type-var]
    return with_capitals(task, examples, start, wanted=settings.tune.capitals)


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


def with_capitals(task: AnyTask, examples: Sequence[Example], start: Start, *, wanted: bool | None) -> AnyTask:
    """Let a tagger see capitals that its vocabulary loses: names are told by them."""
    possible = isinstance(task, Tagging) and start.config.type_vocab_size > 1
    if wanted and not possible:
        why = (
            f"the model has {start.config.type_vocab_size} segment"
            if isinstance(task, Tagging)
            else f"this is {task.kind}"
        )
        raise UsageError(f"tune.capitals=true: is for tags and models with two segments; {why}")
    if wanted is None:
        lost = possible and start.tokenizer.normalisation.lower_case
        wanted = lost and any(has_capital(word) for example in examples for word in getattr(example, "words", ()))
    return replace(task, capitals=True) if wanted else task  # type: ignore[type-var]
