"""Candidates for an answer: spans of a passage with scores, from what a head says about a window.

A candidate begins at a token that counts in its window (windows.py), ends not before it and is not too long. The
plain head's candidates are sought among all such spans; Google's code looks at pairs of the 20 best starts and ends
only and can come back with none. The conditional head's come from its beam. Of several spans with one text the best
is kept. Knows no thresholds and no scores of answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from albert.tasks.classification import softmax
from albert.tasks.windows import Span, Window

SPARE = 5  # times n_best: spans kept of each window, because several can have the same text


@dataclass(frozen=True)
class Candidate:
    """A possible answer: characters `start` up to `end` of the passage."""

    text: str
    start: int
    end: int
    score: float  # the sum of what the head gives its start and its end
    probability: float  # among the candidates


class ScoredSpan(NamedTuple):
    """Some characters of a passage, and how good an answer they are."""

    score: float
    place: Span


def spans_of_logits(
    window: Window, output: tuple[np.ndarray, np.ndarray], *, max_answer: int, n_best: int
) -> Iterator[ScoredSpan]:
    """Return the best spans by the plain head: start and end scores of every position."""
    length = len(window.offsets)
    if not length:
        return
    starts, ends = (scores[window.first : window.first + length].astype(np.float64) for scores in output)
    starts = np.where(window.solid & window.counts, starts, -np.inf)
    ends = np.concatenate([np.where(window.solid, ends, -np.inf), np.full(max_answer - 1, -np.inf)])
    scores = (starts[:, None] + np.lib.stride_tricks.sliding_window_view(ends, max_answer)).reshape(-1)
    limit = min(SPARE * n_best, scores.size)
    best = np.argpartition(-scores, limit - 1)[:limit]
    for place in best[np.isfinite(scores[best])].tolist():
        first, more = divmod(place, max_answer)
        yield ScoredSpan(float(scores[place]), window.characters(first, first + more))


def spans_of_beam(window: Window, output: tuple[np.ndarray, ...], *, max_answer: int) -> Iterator[ScoredSpan]:
    """Return the spans in the conditional head's beam: best starts, best ends for each, as positions from [CLS]."""
    start_scores, starts, end_scores, ends, _ = output
    length = len(window.offsets)
    for start_score, start, row, lasts in zip(start_scores, starts - window.first, end_scores, ends, strict=True):
        # A beam can hold [CLS], and in a short text tokens that are not allowed or past its end.
        if not (0 <= start < length and window.solid[start] and window.counts[start]):
            continue
        for end_score, last in zip(row, lasts - window.first, strict=True):
            if start <= last < min(start + max_answer, length) and window.solid[last]:
                yield ScoredSpan(float(start_score) + float(end_score), window.characters(int(start), int(last)))


def distinct(passage: str, found: Iterable[ScoredSpan], *, n_best: int) -> tuple[Candidate, ...]:
    """Sort spans by score, keep the first of each text, and share probability among them."""
    kept: dict[str, ScoredSpan] = {}
    for span in sorted(found, key=lambda one: (-one.score, one.place)):
        if len(kept) == n_best:
            break
        kept.setdefault(passage[span.place.start : span.place.end], span)
    if not kept:
        return ()
    shares = softmax(np.array([span.score for span in kept.values()])).tolist()
    return tuple(
        Candidate(text, *span.place, span.score, share)
        for (text, span), share in zip(kept.items(), shares, strict=True)
    )
