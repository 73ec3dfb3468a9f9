"""Exact match and F1 of answers to questions, by the rules of SQuAD's two official scripts, and the null threshold.

An answer is compared with each of the given ones without case, ASCII punctuation, articles and white space, and the
best comparison counts. The scripts differ in one thing: where nothing is left of an answer (the real dev set has `.`
as an answer three times), 1.1 still compares it, exactly right and F1 0, and 2.0 leaves it out. In 2.0 a question
without answers is answered rightly by an empty text. All numbers are shares of 1. Knows texts only, no files or models.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


@dataclass(frozen=True)
class AnswerScore:
    """How right one answer is."""

    exact: float
    f1: float


@dataclass(frozen=True)
class Threshold:
    """Null odds above which a question is said to have no answer, and the mean score that gives."""

    odds: float
    score: float


def normalise_answer(text: str) -> str:
    """Leave out case, punctuation, articles and extra white space."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def score_answer(guess: str, answers: Sequence[str], *, unanswerable: bool) -> AnswerScore:
    """Score one answer by 2.0's rules if the data has questions without answers, else by 1.1's."""
    words = normalise_answer(guess).split()
    truths = [normalise_answer(answer).split() for answer in answers]
    if unanswerable:
        truths = [truth for truth in truths if truth]
    truths = truths or [[]]
    return AnswerScore(
        max(float(words == truth) for truth in truths),
        max(_f1(words, truth, empty=1.0 if unanswerable else 0.0) for truth in truths),
    )


def best_threshold(scores: Sequence[float], odds: Sequence[float], *, answerable: Sequence[bool]) -> Threshold:
    """Find the null odds up to which answering gives the best mean score, as the official script does.

    `scores` are those of the answers given if none were withheld. The official script takes the odds of a question for
    the threshold, which rounding in another batch may cross, and 0 where answering nothing is best, which is right for
    probabilities only: here it is halfway to the next question, and 1 away from the last.
    """
    order = sorted(range(len(odds)), key=lambda i: odds[i])
    total = best = float(len(answerable) - sum(answerable))  # all withheld
    threshold = odds[order[0]] - 1.0
    for i, after in zip(order, [*order[1:], None], strict=True):
        total += scores[i] if answerable[i] else scores[i] - 1.0
        if total > best and (after is None or odds[after] > odds[i]):
            best, threshold = total, odds[i] + 1.0 if after is None else (odds[i] + odds[after]) / 2
    return Threshold(threshold, best / len(scores))


def _f1(guess: Sequence[str], truth: Sequence[str], *, empty: float) -> float:
    if not guess or not truth:
        return empty if guess == truth else 0.0
    same = (Counter(guess) & Counter(truth)).total()
    return 2 * same / (len(guess) + len(truth))
