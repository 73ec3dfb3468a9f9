"""Two operations of a training step that PyTorch's CPU kernels do more slowly than they need to be.

GELU in the tanh form costs 4x its erf form, and as much again in the backward pass; here both passes share one
sigmoid. Scoring a vocabulary keeps up to six arrays of predictions x pieces, far larger than all else in a small model;
here a few rows at a time are scored and turned into gradients while they are in the cache. Each is used in fp32 and
bf16 on a CPU with gradients on, and is PyTorch's own everywhere else: on GPUs, in compiled graphs, in inference.
Knows no model.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

CHUNK = 1 << 18  # elements worked on at once: 1 MB, so that the passes over them stay in the cache
SCORES = 1 << 21  # scores at once: 8 MB in fp32
WHOLE = 32  # rows of scores come in multiples: oneDNN compiles kernels for every number of rows that it meets
LINEAR = 2 * math.sqrt(2 / math.pi)
CUBIC = 0.044715 * LINEAR


def gelu_tanh(x: Tensor) -> Tensor:
    """Apply GELU in the tanh form."""
    return _Gelu.apply(x) if _wanted(x) else F.gelu(x, approximate="tanh")  # type: ignore[no-untyped-call]


def vocabulary_loss(x: Tensor, weight: Tensor, bias: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Score pieces, `x` [P, E] against `weight` [V, E] and `bias` [V]; add up the cross-entropy, count those right."""
    if _wanted(x):
        precision = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype
        if precision in PRECISIONS:
            return _VocabularyLoss.apply(x, weight, bias, labels, precision)  # type: ignore[no-untyped-call]
    scores = F.linear(x, weight, bias).float()
    return F.cross_entropy(scores, labels, reduction="sum"), count_right(scores, labels)


@torch.no_grad()
def count_right(logits: Tensor, labels: Tensor) -> Tensor:
    """Count the rows [n, C] whose highest score is their label's, the first of equal ones.

    The place is looked for only where the label's score is the highest: on CPUs argmax takes many times as long as max.
    """
    highest = logits.gather(1, labels.clamp_min(0).unsqueeze(1)).squeeze(1) == logits.amax(-1)
    rows = highest.nonzero().squeeze(1)
    return (logits.index_select(0, rows).argmax(-1) == labels.index_select(0, rows)).sum()


PRECISIONS = (torch.float32, torch.bfloat16)


def _wanted(x: Tensor) -> bool:
    if torch.compiler.is_compiling() or not torch.is_grad_enabled() or not x.requires_grad:
        return False
    return x.device.type == "cpu" and x.dtype in PRECISIONS and x.ndim == 2


class _Gelu(torch.autograd.Function):
    """x·s, where (1 + tanh(u)) / 2 = s = sigmoid(2u) and 2u = x·(LINEAR + CUBIC·x²); keeps its derivative."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        if x.dtype is torch.bfloat16:
            places = x.view(torch.int16).to(torch.int32).bitwise_and_(0xFFFF).view(-1)
            y, slope = (table.index_select(0, places).view_as(x) for table in _gelu_tables())
        else:
            y, slope = _gelu_with_slope(x)
        ctx.save_for_backward(slope)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (slope,) = ctx.saved_tensors
        return gradient * slope


@functools.cache
def _gelu_tables() -> tuple[Tensor, Tensor]:
    """Return GELU and its derivative of all 65,536 numbers of bf16: looking them up takes half the time."""
    with torch.no_grad():
        numbers = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
        y, slope = _gelu_with_slope(numbers.float().unsqueeze(1))
        return y.squeeze(1).bfloat16(), slope.squeeze(1).bfloat16()


def _gelu_with_slope(x: Tensor) -> tuple[Tensor, Tensor]:
    y, slope = torch.empty_like(x), torch.empty_like(x)
    linear = torch.tensor(LINEAR)
    rows = max(1, CHUNK // max(1, x.shape[1]))
    for z, y_part, slope_part in zip(x.split(rows), y.split(rows), slope.split(rows), strict=True):  # type: ignore[no-untyped-call]
        factor = torch.addcmul(linear, z, z, value=CUBIC)  # 2u / x
        s = torch.mul(factor, z).sigmoid_()
        rest = torch.mul(z, s, out=y_part).addcmul(y_part, s, value=-1)  # x·s·(1 - s)
        s.addcmul_(factor, rest, value=3)  # s + rest·d(2u)/dx: 3·factor - 2·LINEAR
        torch.add(s, rest, alpha=-2 * LINEAR, out=slope_part)
    return y, slope


class _VocabularyLoss(torch.autograd.Function):
    """Scores, loss and all gradients in the forward pass, some rows at a time; products in the precision asked for."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, labels: Tensor, precision: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        of_x, of_weight, of_bias = torch.empty_like(x), torch.zeros_like(weight), torch.zeros_like(bias)
        total, right = x.new_zeros((), dtype=torch.float32), torch.zeros((), dtype=torch.int64)
        rows = max(1, SCORES // weight.shape[0] // WHOLE) * WHOLE
        with torch.autocast("cpu", enabled=False):
            decoder, offset = weight.to(precision), bias.to(precision)
            for some, own, gradient in zip(x.split(rows), labels.split(rows), of_x.split(rows), strict=True):  # type: ignore[no-untyped-call]
                count, label = own.shape[0], own.unsqueeze(1)
                filler = (0, 0, 0, -count % WHOLE)
                asked = F.pad(some.to(precision), filler)
                scores = F.linear(asked, decoder, offset)[:count].float()
                shares = torch.softmax(scores, dim=-1)
                # the largest share is 1 / sum(exp(scores - largest)): no second pass of exponentials
                total += (scores.amax(-1) - shares.amax(-1).log() - scores.gather(1, label).squeeze(1)).sum()
                right += count_right(scores, own)
                shares.scatter_add_(1, label, torch.full_like(label, -1.0, dtype=shares.dtype))
                of_bias += shares.sum(0)
                of_scores = F.pad(shares.to(precision), filler)  # shares minus one-hot
                gradient.copy_((of_scores @ decoder)[:count])
                of_weight += of_scores.T @ asked
        ctx.save_for_backward(of_x, of_weight, of_bias)
        ctx.mark_non_differentiable(right)
        return total, right

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        of_x, of_weight, of_bias = ctx.saved_tensors
        return of_x * gradient, of_weight * gradient, of_bias * gradient, None, None
