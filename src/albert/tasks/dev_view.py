"""What a report shows of the decisions about dev: each task says it here in plain values, the report draws it.

All tasks have a score by length, the mistakes that the model was surest of and, where it gives probabilities, a check
whether they can be believed. What else tells a task's decisions apart are figures of its own: a confusion matrix,
scores of classes, true and guessed numbers, scores of parts. Knows nothing of pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from albert.tasks.decision import Decision, shorten

Scores = Mapping[str, Callable[[Sequence[Decision]], str]]


@dataclass(frozen=True)
class Confusion:
    """How often each name was taken for each: pairs of what is and what was said."""

    names: Sequence[str]
    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class ByClass:
    """Precision, recall and F1 of each label; an item has one label, several, or none."""

    what: str  # a label is called: class, tag
    labels: Sequence[str]
    truth: Sequence[Sequence[str]]
    guesses: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Scatter:
    """True numbers and the guessed ones."""

    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Parts:
    """The scores of parts of the decisions."""

    what: str
    parts: Sequence[tuple[str, Sequence[Decision]]]


@dataclass(frozen=True)
class Binned:
    """The scores of decisions in bins by a measure."""

    what: str
    decisions: Sequence[Decision]
    measure: Callable[[Decision], float]


@dataclass(frozen=True)
class Remark:
    """A sentence below a figure."""

    text: str


Figure = Confusion | ByClass | Scatter | Parts | Binned | Remark


@dataclass(frozen=True)
class DevView:
    """The decisions of a task whose decision is one of several, right or wrong; a task overrides what differs."""

    labels: tuple[str, ...]
    decisions: tuple[Decision, ...]

    title: ClassVar[str] = ""  # of the section with the figures of the task
    mistakes_title: ClassVar[str] = "Surest mistakes"  # the title of their section
    length_name: ClassVar[str] = "words"  # what Decision.length counts
    probability_note: ClassVar[str] = "The probability is that of the decision."  # what is compared with the truth

    def figures(self) -> Iterator[Figure]:
        """Return the figures of the task; none."""
        yield from ()

    def scores(self) -> Scores:
        """Return the scores of some decisions by name, each as a report writes it."""
        return {"right": mean_score}

    def trials(self, one: Decision) -> Iterator[tuple[float, bool]]:
        """Return the probabilities of a decision, and whether they came true."""
        yield from zip(one.probabilities, map(str.__eq__, one.truth, one.guess), strict=True)

    def mistake(self, one: Decision) -> tuple[float, str] | None:
        """Return how much a wrong decision weighs and what is wrong with it; None: it is right."""
        if one.score == 1.0:
            return None
        p = one.probabilities[0]
        said, true = shorten(one.guess[0], 200) or "no answer", shorten(" | ".join(dict.fromkeys(one.truth)), 200)
        return p, f"said {said} ({p:.1%}), is {true or 'no answer'}"

    def groups(self) -> Iterator[Figure]:
        """Return the scores of the parts of the data, where it has parts."""
        names = sorted({one.group for one in self.decisions})
        if len(names) > 1:
            yield Parts("part", [(n or "others", [one for one in self.decisions if one.group == n]) for n in names])


def mean_score(some: Sequence[Decision]) -> str:
    """Return the mean score of some decisions, as a share."""
    return f"{mean([one.score for one in some]):.1%}"


def mean(values: Sequence[float]) -> float:
    """Return the mean; 0 of nothing."""
    return sum(values) / max(1, len(values))
