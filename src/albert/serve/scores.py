"""Decisions about texts and pairs with the logits that they were made from, as `/predict` shows either."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from albert.batch import Said, Wanted
from albert.tasks.classification import Classification, MultiLabel, Regression, mean_of_windows
from albert.tasks.classified import Number
from albert.tokenizer import Tokenizer

Pooled = Classification | MultiLabel | Regression
VALUE = "value"  # the only label of a regression


@dataclass(frozen=True, eq=False)
class ScoredPooled:
    """A decision and its logits."""

    decision: Any
    logits: np.ndarray
    labels: Sequence[str]

    def ranked(self, *, raw: bool) -> list[dict[str, Any]]:
        """Return the labels with their probabilities, or logits, best first; of a regression its number."""
        if isinstance(self.decision, Number):
            return [{"score": self.decision.value, "label": VALUE}]
        scores = dict(zip(self.labels, self.logits.tolist(), strict=True)) if raw else self.decision.probabilities
        return [{"score": score, "label": label} for label, score in sorted(scores.items(), key=lambda one: -one[1])]


@dataclass(frozen=True, eq=False)
class WithLogits:
    """A task on the pooled [CLS] whose decisions keep their logits."""

    task: Pooled

    def encode(self, example: Any, tokenizer: Tokenizer) -> list[Any]:
        """Encode as the task does."""
        return list(self.task.encode(example, tokenizer))

    def wanted(self, features: Sequence[Any]) -> Wanted:
        """Return what the task wants."""
        return self.task.wanted(features)

    def outputs(self, feature: Any, said: Said) -> Any:
        """Return the logits."""
        return self.task.outputs(feature, said)

    def decide(self, example: Any, features: Sequence[Any], outputs: Sequence[Any]) -> ScoredPooled:
        """Decide as the task does."""
        decision = self.task.decide(example, features, outputs)
        logits = mean_of_windows(np.stack(outputs), features)
        return ScoredPooled(decision, logits, getattr(self.task, "labels", (VALUE,)))
