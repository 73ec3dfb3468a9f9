"""Where each piece stands in the original text, from the pieces alone.

The pieces of a text, joined, are the text as SentencePiece normalised it, so their lengths add up to positions in it.
From there to the original: SentencePiece's own alignment where its normaliser changed something, then ours
(normalisation.py). A piece covers the characters that it was made from and those after them that normalisation
dropped, without white space at the ends; a bare word marker covers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

from albert.tokenizer.normalisation import Aligned
from albert.tokenizer.words import MARKER

Spans = list[tuple[int, int]]
Normalise = Callable[[str], tuple[str, list[int]]]  # SentencePiece's normaliser: the text, and each character's origin


def spans(original: str, aligned: Aligned, pieces: Sequence[str], *, normalise: Normalise) -> Spans:
    """Return the part of the original text that each piece covers."""
    cuts = pairwise((0, *accumulate(map(len, pieces))))
    unchanged = "".join(pieces) == MARKER + aligned.text.replace(" ", MARKER)
    if unchanged and isinstance(aligned.origins, range):  # character i of the pieces is character i - 1 of the original
        return [
            (start if piece[0] == MARKER else start - 1, stop - 1)
            for piece, (start, stop) in zip(pieces, cuts, strict=True)
        ]
    if not pieces:
        return []
    if unchanged:
        origins = [0, *aligned.origins]
    else:
        origins = [aligned.origins[place] for place in normalise(aligned.text)[1]]
        origins[-1] = len(original)
    _start_at(origins, len(original) - len(original.lstrip()))
    return _spans(original, origins, list(cuts))


def _start_at(origins: list[int], begin: int) -> None:
    """Give the first character all that was dropped before it."""
    first, place = origins[1], 1
    while begin < first == origins[place]:
        origins[place] = begin
        place += 1


def _spans(original: str, origins: Sequence[int], cuts: Sequence[tuple[int, int]]) -> Spans:
    found = []
    for start, stop in cuts:
        if stop == 1:  # a bare marker in front of the text, which comes from nowhere
            found.append((origins[1], origins[1]))
            continue
        begin = origins[start or 1]
        while origins[stop] == origins[stop - 1]:  # one character became several, as ﬁ does
            stop += 1
        end = origins[stop]
        while begin < end and original[begin].isspace():
            begin += 1
        while begin < end and original[end - 1].isspace():
            end -= 1
        found.append((begin, end))
    return found
