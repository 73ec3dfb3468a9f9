"""A model's scores on labelled data: the same decisions as prediction's, compared with what is known.

Beside them stands the baseline, the best constant prediction on these very data, because a score alone says little.
Test sets without labels are decided, not scored. Knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from albert.errors import DataError
from albert.inference.predictor import Predictor
from albert.tasks.task import AnyTask, Splits

Observe = Callable[[float, str], None]  # share done, a few words


@dataclass(frozen=True)
class Decided:
    """A set of examples with the decisions about them; no scores where targets are not known."""

    examples: Sequence[Any]
    predictions: Sequence[Any]
    scores: dict[str, float] | None
    baseline: dict[str, float] | None  # of the best constant prediction


def score_splits(
    predictor: Predictor, task: AnyTask, splits: Splits[Any], *, test: bool, observe: Observe = lambda *_: None
) -> Mapping[str, Decided]:
    """Decide and score the dev sets; with `test`, decide the test sets too."""
    sets = {name: (examples, True) for name, examples in splits.dev.items()}
    if test or not sets:
        sets |= {f"test {name}".removesuffix(" test"): (examples, False) for name, examples in splits.test.items()}
    total = sum(len(examples) for examples, _ in sets.values())
    if not total:
        raise DataError("no rows to score: give data with a dev set")
    decided, before = {}, 0
    for name, (examples, labelled) in sets.items():
        title = f"{name}: " if len(sets) > 1 else ""
        seen = _observed(examples, title, observe, before=before, total=total)
        predictions = list(predictor.predict(task, seen))
        before += len(examples)
        scores = baseline = None
        if labelled:
            task = task.settled(examples, predictions)  # what training left open the first set decides, for all
            predictions = [task.decided(prediction) for prediction in predictions]
            scores = task.score(examples, predictions)
            guess = task.baseline(examples)
            baseline = task.score(examples, [guess(example) for example in examples]) if guess else None
        decided[name] = Decided(examples, predictions, scores, baseline)
    return decided


def _observed(examples: Sequence[Any], title: str, observe: Observe, *, before: int, total: int) -> Iterator[Any]:
    for number, example in enumerate(examples, 1):
        yield example
        observe((before + number) / total, f"{title}{number:,} of {len(examples):,}")
