"""Which optimizer, which rate, which warm-up.

`paper` is the square-root rule from 0.00176 at a batch of 4096, with its warm-up. `auto` is ours for the batches and
budgets that people have: 0.00176 copied to a small batch is how most pre-trainings of ALBERT fail, and the paper's
rule, made for 125,000 steps, hardly moves a model in a few thousand (docs/lab_log.md has the runs behind `auto`).
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import nn

from albert.optim.lamb import Lamb

OptimizerName = Literal["lamb", "adamw"]
PAPER_RATE, PAPER_BATCH = 0.00176, 4096
LONG = 10_000  # steps beyond which `auto` becomes careful: large rates are known to explode late


def learning_rate(
    optimizer: OptimizerName, lr: float | Literal["auto", "paper"], *, batch_size: int, steps: int, hidden: int
) -> float:
    """Resolve a rate; `batch_size` counts sequences."""
    if lr == "paper":
        return PAPER_RATE * math.sqrt(batch_size / PAPER_BATCH)
    if lr == "auto":
        # Found with batches of 8 to 32 sequences, 256 wide, 600 to 6,400 steps: LAMB at twice this never left the
        # frequencies of single words, half of it was slower. Beyond that it is a guess, which for LAMB meets the
        # paper's rate to a factor of 2.
        peak = 1e-2 if optimizer == "lamb" else 1e-3
        return peak * math.sqrt(256 / max(hidden, 256)) * math.sqrt(LONG / max(steps, LONG))
    return lr


def warmup(lr: float | Literal["auto", "paper"], *, batch_size: int, steps: int) -> int:
    """Resolve the warm-up steps: the paper's share of the steps, or at least 2% and 100 steps."""
    if lr == "paper":
        return max(1, round(steps * 0.025 * batch_size / PAPER_BATCH))
    return min(max(100, math.ceil(0.02 * steps)), max(1, steps // 2))


def build_optimizer(
    name: OptimizerName, model: nn.Module, *, lr: float, weight_decay: float = 0.01
) -> torch.optim.Optimizer:
    """Build an optimizer; LayerNorm and bias have neither decay nor trust ratio."""
    decayed = [p for n, p in model.named_parameters() if p.requires_grad and not is_plain(n)]
    plain = [p for n, p in model.named_parameters() if p.requires_grad and is_plain(n)]
    if name == "lamb":
        return Lamb(
            [
                {"params": decayed, "weight_decay": weight_decay, "adapt": True},
                {"params": plain, "weight_decay": 0.0, "adapt": False},
            ],
            lr=lr,
        )
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.999), eps=1e-6)


def is_plain(name: str) -> bool:
    """Tell whether a parameter is a bias or belongs to a norm."""
    *_, module, kind = ("", *name.split("."))
    return kind == "bias" or module.endswith("norm")
