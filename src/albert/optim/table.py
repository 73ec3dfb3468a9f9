"""The optimizers, by name: all that the rest of the package knows of them.

An entry says how an optimizer is built from parameter groups, what extra a group needs, and the rate that `auto` means.
A group's `scale` is its rate as a multiple of the run's: the training loop sets the rates of all groups by it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from albert.optim.lamb import Lamb
from albert.optim.muon import Muon

Group = dict[str, Any]


@dataclass(frozen=True)
class OptimizerKind:
    """One optimizer."""

    build: Callable[[list[Group], float], torch.optim.Optimizer]  # groups, rate
    auto_rate: float  # for models up to 256 wide and runs up to 10,000 steps (optim/choose.py)
    splits_matrices: bool = False  # the matrices of the layers are groups of their own


def _lamb(groups: list[Group], lr: float) -> torch.optim.Optimizer:
    return Lamb([{**group, "adapt": not group["plain"]} for group in groups], lr=lr)


def _adamw(groups: list[Group], lr: float) -> torch.optim.Optimizer:
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.999), eps=1e-6, fused=True)


# Each rate was found with batches of 8 to 32 sequences, 256 wide, 600 to 6,400 steps (docs/lab_log.md).
OPTIMIZERS: dict[str, OptimizerKind] = {
    "lamb": OptimizerKind(_lamb, auto_rate=1e-2),
    "adamw": OptimizerKind(_adamw, auto_rate=1e-3),
    "muon": OptimizerKind(lambda groups, lr: Muon(groups, lr=lr), auto_rate=1e-2, splits_matrices=True),
}
