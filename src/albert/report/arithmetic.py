"""The arithmetic of a report on decisions: bins, calibration, counts by class. Knows numbers and names only."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

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
    """How well one class is found."""

    label: str
    real: int
    said: int
    right: int

    @property
    def precision(self) -> float:
        """Give the share of what was said that is right."""
        return self.right / self.said if self.said else 0.0

    @property
    def recall(self) -> float:
        """Give the share of what is there that was said."""
        return self.right / self.real if self.real else 0.0

    @property
    def f1(self) -> float:
        """Give the harmonic mean of both."""
        return 2 * self.right / (self.said + self.real) if self.said + self.real else 0.0


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
    labels: Sequence[str], truth: Sequence[Sequence[str]], guesses: Sequence[Sequence[str]]
) -> list[ClassScore]:
    """Count every label of some examples, each with one or several."""
    real, said, right = Counter[str](), Counter[str](), Counter[str]()
    for true_ones, guessed in zip(truth, guesses, strict=True):
        real.update(true_ones)
        said.update(guessed)
        right.update(set(true_ones) & set(guessed))
    return [ClassScore(label, real[label], said[label], right[label]) for label in labels]


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
