"""Two operations of a training step that PyTorch's CPU kernels do more slowly than they need to be.

GELU in the tanh form costs 4x its erf form, and as much again in the backward pass; here both passes share one
sigmoid. Cross-entropy over a vocabulary keeps four arrays as large as the logits; here one. Each is used in fp32 on a
CPU with gradients on, and is PyTorch's own everywhere else: on GPUs, under autocast, in compiled graphs, in inference.
Knows no model.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

CHUNK = 1 << 18  # elements worked on at once: 1 MB, so that the passes over them stay in the cache
LINEAR = 2 * math.sqrt(2 / math.pi)
CUBIC = 0.044715 * LINEAR


def gelu_tanh(x: Tensor) -> Tensor:
    """Apply GELU in the tanh form."""
    return _Gelu.apply(x) if _wanted(x) else F.gelu(x, approximate="tanh")  # type: ignore[no-untyped-call]


def summed_cross_entropy(logits: Tensor, labels: Tensor, *, ignored: int) -> Tensor:
    """Add up the cross-entropy of classes [n, C] against labels [n], one label left out."""
    if _wanted(logits):
        return _CrossEntropy.apply(logits, labels, ignored)  # type: ignore[no-untyped-call]
    return F.cross_entropy(logits, labels, ignore_index=ignored, reduction="sum")


def _wanted(x: Tensor) -> bool:
    if torch.compiler.is_compiling() or not torch.is_grad_enabled() or not x.requires_grad:
        return False
    return x.device.type == "cpu" and x.dtype == torch.float32 and x.ndim == 2


class _Gelu(torch.autograd.Function):
    """x·s, where (1 + tanh(u)) / 2 = s = sigmoid(2u) and 2u = x·(LINEAR + CUBIC·x²); keeps its derivative."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y, slope = torch.empty_like(x), torch.empty_like(x)
        linear = x.new_tensor(LINEAR)
        rows = max(1, CHUNK // max(1, x.shape[1]))
        for x_part, y_part, slope_part in zip(x.split(rows), y.split(rows), slope.split(rows), strict=True):  # type: ignore[no-untyped-call]
            factor = torch.addcmul(linear, x_part, x_part, value=CUBIC)  # 2u / x
            s = torch.mul(factor, x_part).sigmoid_()
            torch.mul(x_part, s, out=y_part)
            rest = torch.addcmul(y_part, y_part, s, value=-1)  # x·s·(1 - s)
            torch.addcmul(s, factor, rest, value=3, out=slope_part)  # s + rest·d(2u)/dx: 3·factor - 2·LINEAR
            slope_part.add_(rest, alpha=-2 * LINEAR)
        ctx.save_for_backward(slope)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (slope,) = ctx.saved_tensors
        return gradient * slope


class _CrossEntropy(torch.autograd.Function):
    """The gradient, probabilities minus one-hot, is made in the forward pass and scaled in place in the backward."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, ignored: int) -> Tensor:
        kept = labels != ignored
        target = torch.where(kept, labels, 0).unsqueeze(1)
        probabilities = torch.softmax(logits, dim=-1)
        # the largest probability is 1 / sum(exp(logits - largest)): no second pass of exponentials
        normaliser = logits.amax(-1) - probabilities.amax(-1).log()
        total = torch.where(kept, normaliser - logits.gather(1, target).squeeze(1), 0.0).sum()
        probabilities.scatter_add_(1, target, torch.full_like(target, -1.0, dtype=logits.dtype))
        ctx.save_for_backward(probabilities, kept)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        probabilities, kept = ctx.saved_tensors
        return probabilities.mul_((kept * gradient).unsqueeze(1)), None, None
