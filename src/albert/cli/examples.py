"""Training examples as a reader wants them: the text that the model sees, and at each masked piece what stood there.

[MASK]⟨word⟩ was hidden, other⟨word⟩ was replaced by a random piece, word⟨=⟩ was kept; all are to be predicted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.text import Text

    from albert.batch import PretrainingBatch
    from albert.tokenizer import Tokenizer

LEGEND = "[MASK]⟨hidden⟩  random⟨replaced⟩  kept⟨=⟩"
ORDERS = {0: "0 (in order)", 1: "1 (swapped)", -1: "none"}
SPECIAL, HIDDEN, REPLACED, KEPT, LABEL = "dim", "bold yellow", "bold red", "bold green", "italic magenta"
SEGMENTS = ("", "cyan")


def split_batch(batch: PretrainingBatch) -> Iterator[dict[str, Any]]:
    """Return the examples of a batch one by one, positions counted within each."""
    for start, length, order in zip(batch.starts, batch.lengths, batch.order_labels, strict=True):
        own = (batch.masked_positions >= start) & (batch.masked_positions < start + length)
        yield {
            "token_ids": batch.token_ids[start : start + length].tolist(),
            "segment_ids": batch.segment_ids[start : start + length].tolist(),
            "masked_positions": (batch.masked_positions[own] - start).tolist(),
            "masked_labels": batch.masked_labels[own].tolist(),
            "order_label": int(order),
        }


def headline(example: dict[str, Any]) -> str:
    """Say in one line what an example is."""
    length, second = len(example["token_ids"]), sum(example["segment_ids"])
    return (
        f"{length} tokens, segments of {length - second} and {second}, {len(example['masked_positions'])} to predict, "
        f"order label {ORDERS[example['order_label']]}"
    )


def render(example: dict[str, Any], tokenizer: Tokenizer) -> Text:
    """Write an example as text, with styles for where there is colour."""
    from rich.text import Text

    labels = dict(zip(example["masked_positions"], example["masked_labels"], strict=True))
    text = Text()
    for position, (token, segment) in enumerate(zip(example["token_ids"], example["segment_ids"], strict=True)):
        piece, label = tokenizer.pieces[token], labels.get(position)
        if label is not None:
            truth = tokenizer.pieces[label]
            if token == tokenizer.mask_id and truth.startswith("▁"):
                piece = f"▁{piece}"
            style = HIDDEN if token == tokenizer.mask_id else KEPT if token == label else REPLACED
            text.append(piece.replace("▁", " "), style)
            text.append("⟨=⟩" if token == label else f"⟨{truth.replace('▁', '') or truth}⟩", LABEL)
        elif token in (tokenizer.cls_id, tokenizer.sep_id):
            text.append(f" {piece}" if position else piece, SPECIAL)
        else:
            text.append(piece.replace("▁", " "), SEGMENTS[segment])
    return text
