"""Muon for the matrices of the layers, AdamW for everything else, as one optimizer.

Muon (Jordan et al. 2024) replaces the momentum of a matrix by the nearest matrix whose singular values are all alike:
every direction that the gradient has moves at the same pace, also those that a few strong ones would drown. It costs
five small products per matrix and step, and a shared layer has each matrix once for all depths. What
`torch.optim.Muon` does, but in bf16 only where the run is (its products are slow on most CPUs, and differ between
them), and with AdamW beside it, so that a run has one optimizer and a checkpoint one state.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # Jordan's polynomial: singular values come out between 0.7 and 1.2
ITERATIONS = 5
MOMENTUM = 0.95


class Muon(torch.optim.Optimizer):
    """Orthogonalised momentum for groups with `matrices=True`, AdamW for the others."""

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
        matrices: bool = False,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "matrices": matrices}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move every parameter that has a gradient."""
        assert closure is None
        for group in self.param_groups:
            move = self._move_matrix if group["matrices"] else self._move_other
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.mul_(1 - group["lr"] * group["weight_decay"])
                    move(parameter, parameter.grad, group)

    def _move_matrix(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state["momentum"] = torch.zeros_like(parameter)
        mean = state["momentum"].lerp_(gradient, 1 - MOMENTUM)
        update = orthogonalised(gradient.lerp(mean, MOMENTUM))  # Nesterov's look ahead
        rows, columns = parameter.shape
        parameter.add_(update, alpha=-group["lr"] * math.sqrt(max(1.0, rows / columns)))

    def _move_other(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        state = self.state[parameter]
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        state["step"] += 1
        step = float(state["step"])
        mean = state["exp_avg"].lerp_(gradient, 1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        size = (square / (1 - beta2**step)).sqrt_().add_(group["eps"])
        parameter.addcdiv_(mean, size, value=-group["lr"] / (1 - beta1**step))


def orthogonalised(matrix: Tensor) -> Tensor:
    """Return the matrix with its singular values brought near to 1, by Newton and Schulz' iteration."""
    rows, columns = matrix.shape
    x = matrix.T if rows > columns else matrix  # the shorter side first: smaller products
    x = x / x.norm().clamp_min(1e-7)
    a, b, c = NEWTON_SCHULZ
    for _ in range(ITERATIONS):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if rows > columns else x
