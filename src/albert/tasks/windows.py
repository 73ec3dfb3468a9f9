"""A question and its passage as sequences: `[CLS] question [SEP] a window of the passage [SEP]`.

A passage that is too long is covered by windows that overlap; each of its tokens counts in the one window where it
has most context on its poorer side (Google's rule). Answers are characters of the original passage; a window knows
which characters each of its tokens came from, in both directions, through the tokenizer's offsets: no text is
compared, so nothing is lost where normalisation changes lengths (Google's code aligns the two texts by a quadratic
search and drops the passages where that fails). Knows nothing of models, scores and files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from albert.tasks.task import Feature, join_segments
from albert.tokenizer import Tokenizer


class Span(NamedTuple):
    """From and up to, without the end: characters of a passage, or its tokens."""

    start: int
    end: int


@dataclass(frozen=True)
class Sizes:
    """How long the parts of a sequence may be, in tokens."""

    max_length: int  # special tokens included
    max_question: int
    stride: int  # from a window's first token to the next one's
    max_answer: int


@dataclass(frozen=True, eq=False)
class Passage:
    """The tokens of a passage, and the characters that each came from."""

    ids: Sequence[int]
    offsets: npt.NDArray[np.int32]  # [n, 2]; a bare word marker has an empty span

    @classmethod
    def read(cls, text: str, tokenizer: Tokenizer) -> Passage:
        """Encode a passage."""
        encoding = tokenizer.encode_with_offsets(text)
        return cls(encoding.ids, np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2))

    def tokens_of(self, characters: Span) -> Span:
        """Return the tokens that some characters stand in: the fewest that cover them, none if there are none."""
        solid = np.flatnonzero(_solid(self.offsets))
        starts, ends = self.offsets[solid].T
        first = int(np.searchsorted(ends, characters.start, side="right"))
        last = int(np.searchsorted(starts, characters.end, side="left")) - 1
        if first > last:
            return Span(0, 0)
        return Span(int(solid[first]), int(solid[last]) + 1)


@dataclass(frozen=True, eq=False)
class Window(Feature):
    """One sequence, and what finding an answer in it needs; positions count from [CLS]."""

    first: int  # the position of the window's first passage token
    offsets: npt.NDArray[np.int32]  # [n, 2] characters of its passage tokens
    counts: npt.NDArray[np.bool_]  # [n] which of them have no better window
    target: tuple[int, int] | None  # first and last position of the answer; (0, 0): not here; None: not known

    @property
    def impossible(self) -> bool:
        """Tell whether the true answer is known not to be here."""
        return self.target == (0, 0)

    @property
    def solid(self) -> npt.NDArray[np.bool_]:
        """Tell of each passage token whether an answer may begin or end with it: it came from some character."""
        return _solid(self.offsets)

    @property
    def allowed(self) -> npt.NDArray[np.bool_]:
        """Tell of each position whether an answer may begin or end there; [CLS] stands for no answer."""
        allowed = np.zeros(len(self.token_ids), dtype=np.bool_)
        allowed[0] = True
        allowed[self.first : self.first + len(self.offsets)] = self.solid
        return allowed

    def characters(self, start: int, last: int) -> Span:
        """Return the characters from the start of one passage token of the window to the end of another."""
        return Span(int(self.offsets[start, 0]), int(self.offsets[last, 1]))


def cut_windows(
    question: Sequence[int], passage: Passage, *, tokenizer: Tokenizer, sizes: Sizes, answer: Span | None
) -> list[Window]:
    """Cut a passage into windows, at least one; `answer` are its true tokens, (0, 0) for none, None if not known."""
    question = question[: min(sizes.max_question, (sizes.max_length - 3) // 2)]
    room = sizes.max_length - 3 - len(question)
    spans = window_spans(len(passage.ids), room=room, stride=sizes.stride, overlap=sizes.max_answer)
    first = len(question) + 2
    windows = []
    for span, counts in zip(spans, best_context(spans), strict=True):
        token_ids, segment_ids = join_segments(tokenizer, question, passage.ids[span.start : span.end])
        offsets = passage.offsets[span.start : span.end]
        own = None if answer is None else _positions(answer, span, first=first)
        windows.append(Window(token_ids, segment_ids, first, offsets, counts, own))
    return windows


def even_spans(length: int, *, room: int) -> list[Span]:
    """Cut `length` tokens into as few windows as there is room for, as long as one another to a token."""
    count = max(1, -(-length // room))
    return [Span(i * length // count, (i + 1) * length // count) for i in range(count)]


def window_spans(length: int, *, room: int, stride: int, overlap: int) -> list[Span]:
    """Cover `length` tokens with windows of `room`.

    Where windows are short the stride is shortened, so that anything of `overlap` tokens (or half a window) lies whole
    in one; at Google's 384 and 512 tokens it never is.
    """
    step = max(1, min(stride, max(room - overlap, (room + 1) // 2)))
    spans = [Span(0, min(room, length))]
    while spans[-1].end < length:
        start = spans[-1].start + step
        spans.append(Span(start, min(start + room, length)))
    return spans


def best_context(spans: Sequence[Span]) -> list[npt.NDArray[np.bool_]]:
    """Tell of each token of each window whether it has most context there.

    Context is the shorter of the two sides, plus a hundredth of the window's length; the earlier window wins a tie.
    """
    assert all(one.start < other.start for one, other in pairwise(spans))
    scores = np.full(spans[-1].end, -1.0)
    owner = np.zeros(spans[-1].end, dtype=np.int64)
    for number, (start, end) in enumerate(spans):
        place = np.arange(end - start)
        score = np.minimum(place, place[::-1]) + 0.01 * (end - start)
        better = score > scores[start:end]
        scores[start:end][better] = score[better]
        owner[start:end][better] = number
    return [owner[start:end] == number for number, (start, end) in enumerate(spans)]


def _positions(answer: Span, window: Span, *, first: int) -> tuple[int, int]:
    """Return the positions of an answer's first and last token in a window, or those of [CLS]."""
    if answer.start == answer.end or answer.start < window.start or answer.end > window.end:
        return 0, 0
    return answer.start - window.start + first, answer.end - 1 - window.start + first


def _solid(offsets: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    solid: npt.NDArray[np.bool_] = offsets[:, 0] < offsets[:, 1]
    return solid
