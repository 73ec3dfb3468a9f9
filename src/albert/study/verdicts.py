"""Whether a study agrees with the paper: a stated rule over paired differences between seeds.

Two rows with the same seed have the same text in the same order, so their difference is taken seed by seed. Of these
differences the mean and its t-interval are looked at. `better` and `worse`: agrees when the whole interval lies on the
stated side of zero, disagrees when it lies on the other. `same`: agrees when the whole interval is within the margin,
disagrees when none of it is. Everything else, and anything with fewer than three seeds, is no verdict.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any, Literal

from albert.study.tables import Finding, Study, column

CONFIDENCE = 0.95
FEWEST_SEEDS = 3

Answer = Literal["agrees", "disagrees", "no verdict"]
Scores = Mapping[str, Mapping[int, Mapping[str, Any]]]  # row, seed, column


@dataclass(frozen=True)
class Interval:
    """A mean of some seeds, and where the true one lies with 95% confidence."""

    mean: float
    low: float
    high: float
    seeds: int


@dataclass(frozen=True)
class Verdict:
    """A finding on one column: what the paper says, what was seen, how sure that is."""

    finding: Finding
    column: str
    answer: Answer
    difference: Interval | None  # None: not measured
    margin: float | None = None

    @property
    def sure(self) -> str:
        """Return how sure the answer is, in words."""
        if self.difference is None:
            return "not measured"
        if self.difference.seeds < FEWEST_SEEDS:
            return f"{self.difference.seeds} of the {FEWEST_SEEDS} seeds that a verdict needs"
        what = f"{self.difference.seeds} seeds, {CONFIDENCE:.0%} interval"
        if self.answer == "no verdict":
            return f"{what} on both sides of {'the margin' if self.margin else 'zero'}"
        return what


def interval(values: Sequence[float]) -> Interval:
    """Return the mean and its t-interval; of one value nothing is known but itself."""
    centre = mean(values)
    if len(values) < 2:
        return Interval(centre, -math.inf, math.inf, len(values))
    from scipy.stats import t  # type: ignore[import-untyped]  # a second to load

    half = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return Interval(centre, centre - half, centre + half, len(values))


def judge(study: Study, scores: Scores) -> list[Verdict]:
    """Return a verdict for each finding on each of its columns."""
    return [_judge(finding, name, scores) for finding in study.findings for name in finding.columns]


def _judge(finding: Finding, name: str, scores: Scores) -> Verdict:
    differences = _differences(finding, name, scores)
    if not differences:
        return Verdict(finding, name, "no verdict", None)
    found = interval(differences)
    margin = (finding.margin if finding.margin is not None else column(name).margin) if finding.says == "same" else None
    answer: Answer = "no verdict"
    if found.seeds >= FEWEST_SEEDS:
        answer = _within(found, margin) if margin is not None else _on_side(found, finding.says, name)
    return Verdict(finding, name, answer, found, margin)


def _differences(finding: Finding, name: str, scores: Scores) -> list[float]:
    """Return the row less what it is compared with, seed by seed, where both are known."""
    found = []
    for seed, values in sorted(scores.get(finding.row, {}).items()):
        other: Any = finding.against
        if isinstance(other, str):
            other = scores.get(other, {}).get(seed, {}).get(name)
        if values.get(name) is not None and other is not None:
            found.append(values[name] - other)
    return found


def _within(found: Interval, margin: float) -> Answer:
    if -margin <= found.low and found.high <= margin:
        return "agrees"
    return "disagrees" if found.low > margin or found.high < -margin else "no verdict"


def _on_side(found: Interval, says: str, name: str) -> Answer:
    upwards = (says == "better") == (column(name).better == "higher")
    low, high = (found.low, found.high) if upwards else (-found.high, -found.low)
    return "agrees" if low > 0 else "disagrees" if high < 0 else "no verdict"
