"""Losses as a sum over predictions divided by a count that the caller gives.

The count is that of the whole global batch. So micro-batches and processes with different numbers of predictions add
up to the mean over all predictions; the mean of their means would not be that. Without a count it is the mean over
this batch.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from albert.model.heads import SpanScores

IGNORED = -1  # the label of an example that has none


def cross_entropy(logits: Tensor, labels: Tensor, *, count: float | None = None) -> Tensor:
    """Score classes [n, C] against labels [n]; label -1 is left out. In fp32 whatever the logits are."""
    if count is None:
        count = float((labels != IGNORED).sum())
    total = F.cross_entropy(logits.float(), labels, ignore_index=IGNORED, reduction="sum")
    return total / max(count, 1.0)


def squared_error(predictions: Tensor, targets: Tensor, *, count: float | None = None) -> Tensor:
    """Score numbers against numbers, [n] each."""
    total = F.mse_loss(predictions.float(), targets.float(), reduction="sum")
    return total / max(count if count is not None else float(targets.numel()), 1.0)


def binary_cross_entropy(logits: Tensor, targets: Tensor, *, count: float | None = None) -> Tensor:
    """Score independent yes/no decisions, any shape, against 0 and 1."""
    total = F.binary_cross_entropy_with_logits(logits.float(), targets.float(), reduction="sum")
    return total / max(count if count is not None else float(targets.numel()), 1.0)


def span_loss(
    start_logits: Tensor, end_logits: Tensor, starts: Tensor, ends: Tensor, *, count: float | None = None
) -> Tensor:
    """Mean of the start's and the end's cross-entropy; rows [B, S], true positions [B]."""
    start_loss = cross_entropy(start_logits, starts, count=count)
    return (start_loss + cross_entropy(end_logits, ends, count=count)) / 2


def conditional_span_loss(
    scores: SpanScores, starts: Tensor, ends: Tensor, impossible: Tensor, *, count: float | None = None
) -> Tensor:
    """SQuAD 2.0: the span loss plus half the answerability loss (Google's run_squad_v2)."""
    spans = span_loss(scores.start_logits, scores.end_logits, starts, ends, count=count)
    return spans + 0.5 * binary_cross_entropy(scores.no_answer, impossible.to(torch.float32), count=count)
