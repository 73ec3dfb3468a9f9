"""What a report shows of decisions about texts: classes, several labels at once, numbers."""

from __future__ import annotations

from collections.abc import Iterator

from albert.tasks.decision import Decision
from albert.tasks.dev_view import Binned, ByClass, Confusion, DevView, Figure, Scatter, Scores, mean, mean_score


class ClassView(DevView):
    """Which classes are confused, and the scores of each."""

    title = "Classes"

    def figures(self) -> Iterator[Figure]:
        yield Confusion(self.labels, [(one.truth[0], one.guess[0]) for one in self.decisions])
        yield by_class(self)


class LabelsView(DevView):
    """The scores of each label; every label of every text is a decision."""

    title = "Labels"
    probability_note = "Every label of every text counts."

    def figures(self) -> Iterator[Figure]:
        yield by_class(self)

    def scores(self) -> Scores:
        return {"all labels right": mean_score}

    def trials(self, one: Decision) -> Iterator[tuple[float, bool]]:
        yield from ((p, label in one.truth) for label, p in zip(self.labels, one.probabilities, strict=True))

    def mistake(self, one: Decision) -> tuple[float, str] | None:
        wrong = set(one.truth) ^ set(one.guess)
        if not wrong:
            return None
        sure = dict(zip(self.labels, one.probabilities, strict=True))
        weight = max(sure[label] if label in one.guess else 1 - sure[label] for label in wrong)
        said, true = (", ".join(labels) or "nothing" for labels in (one.guess, one.truth))
        return weight, f"said {said}, is {true} (as sure as {weight:.1%})"


class NumberView(DevView):
    """True numbers beside the guessed ones; a number has an error and no probability."""

    title = "Numbers"
    mistakes_title = "Largest errors"

    def figures(self) -> Iterator[Figure]:
        yield Scatter([one.values for one in self.decisions if one.values is not None])
        yield Binned("true number", self.decisions, lambda one: one.values[0] if one.values else 0.0)

    def scores(self) -> Scores:
        return {"mean error": lambda some: f"{mean([one.score for one in some]):.3f}"}

    def trials(self, one: Decision) -> Iterator[tuple[float, bool]]:
        yield from ()

    def mistake(self, one: Decision) -> tuple[float, str] | None:
        return one.score, f"said {one.guess[0]}, is {one.truth[0]}"


def by_class(view: DevView) -> ByClass:
    """Return the scores of each class."""
    some = view.decisions
    return ByClass("class", view.labels, [one.truth for one in some], [one.guess for one in some])
