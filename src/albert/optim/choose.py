"""Which rate, which warm-up, and an optimizer for a model.

`paper` is the square-root rule from 0.00176 at a batch of 4096, with its warm-up. `auto` is ours for the batches and
budgets that people have: 0.00176 copied to a small batch is how most pre-trainings of ALBERT fail, and the paper's
rule, made for 125,000 steps, hardly moves a model in a few thousand (docs/lab_log.md has the runs behind `auto`).
"""

from __future__ import annotations

import logging
import math

import torch
from torch import nn

from albert.optim.settings import OptimizerSettings
from albert.optim.table import OPTIMIZERS, Group

log = logging.getLogger(__name__)

PAPER_RATE, PAPER_BATCH = 0.00176, 4096
LONG = 10_000  # steps beyond which `auto` becomes careful: large rates are known to explode late
WORDS = "encoder.embeddings.word.weight"


def learning_rate(settings: OptimizerSettings, *, batch_size: int, steps: int, hidden: int) -> float:
    """Return the peak rate; `batch_size` counts sequences."""
    if settings.lr == "paper":
        return PAPER_RATE * math.sqrt(batch_size / PAPER_BATCH)
    if settings.lr == "auto":
        # LAMB at twice its rate never left the frequencies of single words, half of it was slower. Beyond the width and
        # steps that were tried it is a guess, which for LAMB meets the paper's rate to a factor of 2.
        peak = OPTIMIZERS[settings.name].auto_rate
        return peak * math.sqrt(256 / max(hidden, 256)) * math.sqrt(LONG / max(steps, LONG))
    return settings.lr


def warmup(settings: OptimizerSettings, *, batch_size: int, steps: int) -> int:
    """Return the warm-up steps: those set, the paper's share of the steps, or at least 2% and 100 steps."""
    if settings.warmup_steps is not None:
        return _fitted(settings.warmup_steps, steps)
    if settings.lr == "paper":
        return max(1, round(steps * 0.025 * batch_size / PAPER_BATCH))
    return min(max(100, math.ceil(0.02 * steps)), max(1, steps // 2))


def _fitted(warmup_steps: int, steps: int) -> int:
    """Return a warm-up that ends within the run: a recipe's, where somebody asks for fewer steps, would not."""
    if warmup_steps < steps:
        return warmup_steps
    log.warning(
        "optimizer.warmup_steps=%d does not end within the run of %d steps: %d are taken",
        warmup_steps,
        steps,
        steps // 2,
    )
    return steps // 2


def build_optimizer(settings: OptimizerSettings, model: nn.Module, *, lr: float) -> torch.optim.Optimizer:
    """Return the optimizer of a run whose peak rate is `lr`."""
    kind = OPTIMIZERS[settings.name]
    other = 1.0
    if kind.splits_matrices:
        other = (settings.other_lr or lr * OPTIMIZERS["adamw"].auto_rate / kind.auto_rate) / lr if lr else 1.0
    groups: dict[tuple[bool, bool, float], Group] = {}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        plain, matrix = is_plain(name), kind.splits_matrices and is_layer_matrix(name)
        scale = (1.0 if matrix else other) * (settings.embedding_lr_factor if name == WORDS else 1.0)
        group = groups.setdefault(
            (plain, matrix, scale),
            {"params": [], "weight_decay": 0.0 if plain else settings.weight_decay, "plain": plain, "scale": scale}
            | ({"matrices": True} if matrix else {}),
        )
        group["params"].append(parameter)
    return kind.build(list(groups.values()), lr)


def set_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Set the rate of every group."""
    for group in optimizer.param_groups:
        group["lr"] = lr * group["scale"]


def is_plain(name: str) -> bool:
    """Tell whether a parameter is a bias or belongs to a norm: it has neither decay nor trust ratio."""
    *_, module, kind = ("", *name.split("."))
    return kind == "bias" or module.endswith("norm")


def is_layer_matrix(name: str) -> bool:
    """Tell whether a parameter is a weight matrix of the repeated layer."""
    return name.startswith(("encoder.attention.", "encoder.ffn.")) and not is_plain(name)
