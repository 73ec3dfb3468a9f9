"""Spans of tagged words, and their F1 by the rules of the CoNLL shared tasks.

Tags say how a word stands in a span (B begins, I inside, E ends, S alone; L and U mean E and S) and of which type the
span is: `B-PER`. O is outside. One set of rules, that of the tasks' own `conlleval`, reads IOB1, IOB2, IOBES and
BILOU, also where a model breaks them: a span begins wherever the tag before can't be continued. A span counts only
if its first word, last word and type are all right. Knows nothing of models or files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

OUTSIDE = "O"
_SAME = {"L": "E", "U": "S"}
_POSITIONS = frozenset("BIESLU")


@dataclass(frozen=True, order=True)
class Span:
    """The words from `first` to `last`, both included, are one thing of a type."""

    first: int
    last: int
    type: str


def has_spans(tags: Iterable[str]) -> bool:
    """Tell whether tags say spans: all but O have a position and a type; others (parts of speech) are of a word."""
    inside = [tag for tag in tags if tag != OUTSIDE]
    return bool(inside) and all(tag[:1] in _POSITIONS and tag[1:2] == "-" and len(tag) > 2 for tag in inside)


def scheme_of(sentences: Iterable[Sequence[str]]) -> str:
    """Name the scheme that tag sequences are written in: IOB1, IOB2, IOBES, BILOU, or "none" for tags without spans."""
    positions: set[str] = set()
    lonely_inside = lonely_begin = 0  # an I that begins a span: only IOB1 writes that; a B that no span is before
    seen: set[str] = set()
    for tags in sentences:
        seen.update(tags)
        for before, tag in zip([OUTSIDE, *tags], tags, strict=False):
            position, kind = _split(tag)
            positions.add(tag[:1])
            alone = before == OUTSIDE or _split(before)[1] != kind
            lonely_inside += position == "I" and alone
            lonely_begin += position == "B" and alone
    if not has_spans(seen):
        return "none"
    if positions & {"L", "U"}:
        return "BILOU"
    if positions & {"E", "S"}:
        return "IOBES"
    if lonely_inside and lonely_begin:
        return f"IOB2, but {lonely_inside:,} of {lonely_inside + lonely_begin:,} spans begin with I"
    return "IOB1" if lonely_inside else "IOB2"


def spans_of(tags: Sequence[str]) -> list[Span]:
    """Find the spans of a tagged sentence, in order."""
    spans: list[Span] = []
    first: int | None = None
    position, kind = OUTSIDE, ""
    for place, tag in enumerate([*tags, OUTSIDE]):
        before, kind_before = position, kind
        position, kind = _split(tag)
        if first is not None and _ends(before, kind_before, position, kind):
            spans.append(Span(first, place - 1, kind_before))
            first = None
        if first is None and position != OUTSIDE:
            first = place
    return spans


def span_scores(truth: Sequence[Sequence[str]], guesses: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return F1, precision and recall of spans over all sentences, and the F1 of each type."""
    right: dict[str, int] = {}
    said: dict[str, int] = {}
    real: dict[str, int] = {}
    for true_tags, guessed_tags in zip(truth, guesses, strict=True):
        true_spans, guessed_spans = set(spans_of(true_tags)), set(spans_of(guessed_tags))
        for counts, spans in ((right, true_spans & guessed_spans), (said, guessed_spans), (real, true_spans)):
            for span in spans:
                counts[span.type] = counts.get(span.type, 0) + 1
    all_right, all_said, all_real = sum(right.values()), sum(said.values()), sum(real.values())
    scores = {
        "f1": _f1(all_right, all_said, all_real),
        "precision": all_right / all_said if all_said else 0.0,
        "recall": all_right / all_real if all_real else 0.0,
    }
    types = sorted(said.keys() | real.keys())
    return scores | {f"f1_{kind}": _f1(right.get(kind, 0), said.get(kind, 0), real.get(kind, 0)) for kind in types}


def _f1(right: int, said: int, real: int) -> float:
    return 2 * right / (said + real) if said + real else 0.0


def _split(tag: str) -> tuple[str, str]:
    """Return the position, one of O B I E S, and the type."""
    position, _, kind = tag.partition("-")
    return _SAME.get(position, position), kind


def _ends(before: str, kind_before: str, position: str, kind: str) -> bool:
    """Tell whether a span that goes up to the word before ends there."""
    return position in (OUTSIDE, "B", "S") or before in ("E", "S") or kind != kind_before
