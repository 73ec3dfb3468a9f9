"""Losses: accumulation and several processes must give the mean over the global batch."""

from __future__ import annotations

import torch

from albert.model.heads import SpanScores
from albert.model.kernels import count_right
from albert.model.losses import (
    binary_cross_entropy,
    conditional_span_loss,
    cross_entropy,
    span_loss,
    squared_error,
)


def test_parts_of_unequal_size_add_up_to_the_global_mean() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(30, 7, generator=generator)
    labels = torch.randint(0, 7, (30,), generator=generator)
    labels[::4] = -1
    count = float((labels >= 0).sum())
    whole = cross_entropy(logits, labels)
    parts = [slice(0, 4), slice(4, 25), slice(25, 30)]
    summed = sum(cross_entropy(logits[part], labels[part], count=count) for part in parts)
    assert torch.allclose(whole, torch.as_tensor(summed))
    naive = torch.stack([cross_entropy(logits[part], labels[part]) for part in parts]).mean()
    assert not torch.allclose(whole, naive, atol=1e-3), "the mean of means is another number"


def test_unlabelled_examples_count_for_nothing() -> None:
    logits = torch.randn(4, 2, generator=torch.Generator().manual_seed(1))
    labels = torch.tensor([0, -1, 1, -1])
    assert torch.allclose(cross_entropy(logits, labels), cross_entropy(logits[[0, 2]], labels[[0, 2]]))
    nothing = cross_entropy(logits.requires_grad_(), torch.full((4,), -1))
    nothing.backward()
    assert nothing.item() == 0
    assert logits.grad is not None
    assert not logits.grad.any()


def test_right_answers_are_those_of_argmax_also_where_scores_are_equal_or_labels_missing() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randint(0, 4, (500, 6), generator=generator).to(torch.bfloat16)  # many are equal
    labels = torch.randint(-1, 6, (500,), generator=generator)
    expected = float((logits.argmax(-1) == labels).sum())
    assert 50 < expected < 200
    assert count_right(logits, labels) == expected
    assert count_right(logits[:0], labels[:0]) == 0.0


def test_half_precision_logits_are_scored_in_fp32() -> None:
    assert cross_entropy(torch.randn(3, 5).half(), torch.tensor([0, 1, 2])).dtype == torch.float32


def test_regression_and_yes_no_losses_are_sums_over_the_count() -> None:
    values, targets = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 0.0, 1.0])
    assert torch.allclose(squared_error(values, targets), torch.tensor(13 / 3))
    assert torch.allclose(squared_error(values, targets, count=13.0), torch.tensor(1.0))
    expected = torch.nn.functional.binary_cross_entropy_with_logits(values, targets)
    assert torch.allclose(binary_cross_entropy(values, targets), expected)


def test_the_span_losses_are_googles_mean_and_half() -> None:
    generator = torch.Generator().manual_seed(0)
    start, end = torch.randn(3, 9, generator=generator), torch.randn(3, 9, generator=generator)
    no_answer = torch.randn(3, generator=generator)
    starts, ends, impossible = torch.tensor([1, 0, 5]), torch.tensor([2, 0, 8]), torch.tensor([False, True, False])
    plain = (torch.nn.functional.cross_entropy(start, starts) + torch.nn.functional.cross_entropy(end, ends)) / 2
    assert torch.allclose(span_loss(start, end, starts, ends), plain)
    yes_no = torch.nn.functional.binary_cross_entropy_with_logits(no_answer, impossible.float())
    loss = conditional_span_loss(SpanScores(start, end, no_answer), starts, ends, impossible)
    assert torch.allclose(loss, plain + 0.5 * yes_no)
