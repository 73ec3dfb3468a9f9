"""ALBERT's digit-comma rule: a piece such as `▁28,` becomes `▁28` and `,`.

The reference encodes the piece again without its comma. What comes out depends on the piece alone, so it is worked out
once for each such piece of the vocabulary, and costs a look-up when text is encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from albert.tokenizer.words import MARKER

Item = TypeVar("Item")


@dataclass(frozen=True)
class Split:
    """What takes the place of a piece that ends in a digit and a comma."""

    pieces: tuple[str, ...]  # not always in the vocabulary: then unknown
    surfaces: tuple[str, ...]  # the characters that each stands for; joined, they are the piece


def comma_splits(pieces: Iterable[str], encode: Callable[[str], list[str]]) -> dict[str, Split]:
    """Find the vocabulary's pieces that end in a digit and a comma, and what becomes of them."""
    splits = {}
    for piece in pieces:
        if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
            parts = encode(piece[:-1].replace(MARKER, ""))
            if piece[0] != MARKER and parts[0][0] == MARKER:
                parts = parts[1:] if parts[0] == MARKER else [parts[0][1:], *parts[1:]]
            whole = "".join(parts) == piece[:-1]  # not so if the piece has a marker inside
            surfaces = parts if whole else [piece[:-1], *("" for _ in parts[1:])]
            splits[piece] = Split((*parts, ","), (*surfaces, ","))
    return splits


def replaced(items: list[Item], replacements: Mapping[Item, Sequence[Item]]) -> list[Item]:
    """Put others in the place of some items; most lists have none of those and are given back as they are."""
    if replacements.keys().isdisjoint(items):
        return items
    result: list[Item] = []
    done = 0
    for place, item in enumerate(items):
        if item in replacements:
            result += items[done:place]
            result += replacements[item]
            done = place + 1
    return result + items[done:]
