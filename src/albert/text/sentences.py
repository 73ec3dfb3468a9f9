"""Sentences of a document: by rule for many languages (sentencex), or one per line.

A sentence never crosses a line end and has at most SENTENCE_LIMIT characters: a longer one (a table, a text without
punctuation) is cut at a space. No character is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate, pairwise

import sentencex

SENTENCE_LIMIT = 8 * 2**10  # characters; some 2,000 tokens
# Characters that sentencex sees at once, if a sentence ends among them. On long lines its time grows with the square of
# their length (Chinese: 6 million characters per second in lines of 1,000, 0.5 in lines of 16,000), and a quotation
# mark that is never closed swallows every sentence after it.
BLOCK = 2 * 2**10
_OTHER_SPACE = re.compile(r"[^\S\x00-\x7f](?=\s*\.)")


# ISO 639-1. sentencex takes any code and falls back to its rules for related languages, or to those of English.
_CODES = """
aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo
es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg
ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn
no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta
te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
"""
LANGUAGES = frozenset(_CODES.split())


def split_sentences(text: str, *, language: str | None) -> Iterator[str]:
    """Return the sentences of a text in the language of that ISO 639 code, or its lines where no language is given."""
    for line in text.split("\n"):
        if language:
            yield from _by_rule(line, language)
        else:
            yield from _cut(line)


def _by_rule(line: str, language: str) -> Iterator[str]:
    start, size = 0, BLOCK
    while len(line) - start > size:
        block = line[start : start + size]
        complete = _segments(block, language)[:-1]  # the last one may go on after the block
        if not complete and size < SENTENCE_LIMIT:
            size *= 2
            continue
        complete = complete or [_up_to_a_space(block)]
        yield from complete
        start, size = start + sum(map(len, complete)), BLOCK
    yield from _segments(line[start:], language)


def _segments(text: str, language: str) -> list[str]:
    """Return the parts that the rules make of a text; they end the process on "C\\xa0.", so they see plain spaces."""
    ends = accumulate(map(len, sentencex.segment(language, _OTHER_SPACE.sub(" ", text))), initial=0)
    return [text[start:end] for start, end in pairwise(ends)]


def _cut(line: str) -> Iterator[str]:
    while len(line) > SENTENCE_LIMIT:
        part = _up_to_a_space(line[:SENTENCE_LIMIT])
        yield part
        line = line[len(part) :]
    yield line


def _up_to_a_space(block: str) -> str:
    return block[: block.rfind(" ", 1) + 1] or block
