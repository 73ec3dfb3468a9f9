"""One decision about a dev example, as a run folder keeps it and as its report shows it.

Texts are cut to what a reader looks at. Knows nothing of tasks: each makes its own.
"""

from __future__ import annotations

from dataclasses import dataclass

SHOWN = 400  # characters of a text


@dataclass(frozen=True)
class Decision:
    """One example: `guess` and `truth` are a class, several, the tags of all words, or an answer and the true ones."""

    text: str
    length: int  # words
    truth: tuple[str, ...]
    guess: tuple[str, ...]
    score: float  # 1 is right; the F1 of an answer, the share of a sentence's words; of a number, how far it is off
    place: str = ""  # file:line
    probabilities: tuple[float, ...] = ()  # of each guess; of several labels at once, of each label
    values: tuple[float, float] | None = None  # the true number and the guessed one
    exact: float | None = None  # of an answer
    words: tuple[str, ...] = ()  # that have tags
    asked: int = 0  # words of a question
    group: str = ""  # a part of the data


def shorten(text: str, most: int = SHOWN) -> str:
    """Return a text cut to a number of characters, marked where it was cut."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
