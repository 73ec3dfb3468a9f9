"""Whether a study agrees with the paper: a stated rule over paired differences between seeds.

Two rows with the same seed have the same text in the same order, so their difference is taken seed by seed. Of these
differences the mean and its t-interval are looked at. `better` and `worse`: agrees when the whole interval lies on the
stated side of zero, disagrees when it lies on the other. `same`: agrees when the whole interval is within the margin,
disagrees when none of it is. Everything else, anything with fewer than three seeds, and anything of which a run has
diverged, is no verdict: the seeds that are left would be the lucky ones.

The interval is over seeds: all rows are scored on the same examples, whose choice cancels in a difference of two rows.
In the comparison of an accuracy with a fixed number it does not, and its binomial deviation is added.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any, Literal

from albert.study.tables import Finding, Study, column

CONFIDENCE = 0.95
NORMAL = 1.96  # deviations of a normal within which 95% lie
FAILED = "failed_tasks"  # of a run's scores: the tasks whose tuning has diverged
BINOMIAL = ("sop_accuracy", "nsp_accuracy")  # shares of as many examples as a run is scored on
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
    diverged: int = 0  # seeds of which a run has no scores because its loss exploded

    @property
    def sure(self) -> str:
        """Return how sure the answer is, in words."""
        if self.diverged:
            return f"{self.diverged} of the seeds diverged"
        if self.difference is None:
            return "not measured"
        if self.difference.seeds < FEWEST_SEEDS:
            return f"{self.difference.seeds} of the {FEWEST_SEEDS} seeds that a verdict needs"
        what = f"{self.difference.seeds} seeds, {CONFIDENCE:.0%} interval"
        if self.answer == "no verdict":
            return f"{what} on both sides of {'the margin' if self.margin else 'zero'}"
        return what


def interval(values: Sequence[float], *, deviation: float = 0.0) -> Interval:
    """Return the mean and its t-interval; of one value nothing is known but itself.

    `deviation` is that of an error which all values have in common.
    """
    centre = mean(values)
    if len(values) < 2:
        return Interval(centre, -math.inf, math.inf, len(values))
    from scipy.stats import t  # type: ignore[import-untyped]  # a second to load

    of_seeds = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    half = math.hypot(of_seeds, NORMAL * deviation)
    return Interval(centre, centre - half, centre + half, len(values))


def judge(study: Study, scores: Scores) -> list[Verdict]:
    """Return a verdict for each finding on each of its columns."""
    return [_judge(finding, name, scores) for finding in study.findings for name in finding.columns]


def _judge(finding: Finding, name: str, scores: Scores) -> Verdict:
    differences, diverged = _differences(finding, name, scores), _diverged(finding, name, scores)
    if not differences:
        return Verdict(finding, name, "no verdict", None, diverged=diverged)
    found = interval(differences, deviation=_deviation(finding, name, scores))
    margin = (finding.margin if finding.margin is not None else column(name).margin) if finding.says == "same" else None
    answer: Answer = "no verdict"
    if found.seeds >= FEWEST_SEEDS and not diverged:
        answer = _within(found, margin) if margin is not None else _on_side(found, finding.says, name)
    return Verdict(finding, name, answer, found, margin, diverged)


def _diverged(finding: Finding, column_name: str, scores: Scores) -> int:
    """Count the seeds of which a run of the rows compared, or its tuning on the task compared, has diverged."""
    rows = [scores.get(name, {}) for name in (finding.row, finding.against) if isinstance(name, str)]
    return len({seed for row in rows for seed, values in row.items() if has_diverged(values, column_name)})


def has_diverged(values: Mapping[str, Any], column_name: str | None = None) -> bool:
    """Tell whether a run has diverged, or its tuning on a task (None: on any)."""
    failed = values.get(FAILED, ())
    return "problem" in values or (bool(failed) if column_name is None else column_name in failed)


def _deviation(finding: Finding, name: str, scores: Scores) -> float:
    """Return the deviation of an accuracy by the choice of its examples, where it is compared with a fixed number."""
    known = [values for values in scores.get(finding.row, {}).values() if values.get(name) is not None]
    own = name.replace("accuracy", "examples")
    counts = [count for values in known if (count := values.get(own) or values.get("examples"))]
    if isinstance(finding.against, str) or name not in BINOMIAL or not counts:
        return 0.0
    share = mean(values[name] for values in known)
    return math.sqrt(share * (1 - share) / min(counts))


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
