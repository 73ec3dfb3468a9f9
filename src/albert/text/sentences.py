"""Sentences of a document: by rule for many languages (sentencex), or one a line.

A sentence never crosses a line end. One of more than SENTENCE_LIMIT characters (a table, a text without punctuation) is
cut at a space: it is longer than the longest sequence of 8,192 tokens, and memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Iterator

import sentencex

SENTENCE_LIMIT = 32 * 2**10  # characters


def split_sentences(text: str, *, language: str | None) -> Iterator[str]:
    """Give the sentences of a text in the language of that ISO 639 code, or its lines where no language is given."""
    for line in text.split("\n"):
        # sentencex is given one line at a time: on a whole document it is half as fast and joins lines.
        for sentence in sentencex.segment(language, line) if language else (line,):
            if len(sentence) <= SENTENCE_LIMIT:
                yield sentence
            else:
                yield from _cut(sentence)


def _cut(sentence: str) -> Iterator[str]:
    start = 0
    while start < len(sentence):
        end = start + SENTENCE_LIMIT
        if end < len(sentence):
            end = sentence.rfind(" ", start + 1, end) + 1 or end
        yield sentence[start:end]
        start = end
