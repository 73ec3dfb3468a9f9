"""The arithmetic of a report on decisions: bins, calibration, counts by class. Knows numbers and names only."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from sklearn.metrics import precision_recall_fscore_support
from sklearn.preprocessing import MultiLabelBinarizer

LENGTH_BINS = 5
CALIBRATION_BINS = 10

T = TypeVar("T")


@dataclass(frozen=True)
class Bin:
    """Probabilities that are near each other: how many, their mean, and how often it came true."""

    count: int
    claimed: float
    came_true: float


@dataclass(frozen=True)
class Calibration:
    """How far probabilities can be believed; `error` is the expected calibration error (Guo et al. 2017)."""

    bins: tuple[Bin, ...]  # without the empty ones
    error: float


@dataclass(frozen=True)
class ClassScore:
    """How well one class is found: 0 where a score is not defined."""

    label: str
    real: int
    said: int
    precision: float
    recall: float
    f1: float


def calibrate(trials: Iterable[tuple[float, bool]], *, bins: int = CALIBRATION_BINS) -> Calibration | None:
    """Compare probabilities with what came true, in bins of equal width; None without any."""
    pairs = np.array([(p, float(came_true)) for p, came_true in trials if math.isfinite(p)], dtype=np.float64)
    if not len(pairs):
        return None
    number = np.minimum((pairs[:, 0] * bins).astype(int), bins - 1)
    found = []
    for own in (pairs[number == place] for place in range(bins)):
        if len(own):
            claimed, came_true = own.mean(axis=0)
            found.append(Bin(len(own), float(claimed), float(came_true)))
    error = sum(one.count * abs(one.claimed - one.came_true) for one in found) / len(pairs)
    return Calibration(tuple(found), error)


def class_scores(
    labels: Sequence[str], truth: Sequence[Collection[str]], guesses: Sequence[Collection[str]]
) -> list[ClassScore]:
    """Return the scores of every label, from examples that have one, several or none of them each."""
    if not truth:
        return []
    columns = [*labels, None]  # scikit-learn takes a single column for no labels at all: one more, which stays empty
    to_columns = MultiLabelBinarizer(classes=columns, sparse_output=True).fit([])
    is_true, is_said = to_columns.transform(truth), to_columns.transform(guesses)  # [examples, labels + 1]
    precision, recall, f1, real = precision_recall_fscore_support(is_true, is_said, average=None, zero_division=0.0)
    said = np.asarray(is_said.sum(axis=0)).reshape(-1)
    return [
        ClassScore(label, int(real[i]), int(said[i]), float(precision[i]), float(recall[i]), float(f1[i]))
        for i, label in enumerate(labels)
    ]


def in_bins(
    items: Sequence[T], measure: Callable[[T], float], *, bins: int = LENGTH_BINS
) -> list[tuple[float, float, list[T]]]:
    """Divide items into about equally many by a measure; equal ones stay together. Gives lowest, highest, items."""
    if not items:
        return []
    values = np.array([measure(item) for item in items], dtype=np.float64)
    edges = np.unique(np.quantile(values, np.arange(1, bins) / bins))
    number = np.searchsorted(edges, values, side="left")
    found = []
    for place in np.unique(number):
        chosen = np.flatnonzero(number == place)
        own = values[chosen]
        found.append((float(own.min()), float(own.max()), [items[int(i)] for i in chosen]))
    return found
