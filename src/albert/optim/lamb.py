"""LAMB exactly as in google-research/albert (lamb_optimizer.py there; You et al. 2019).

Adam's direction m / (sqrt(v) + eps) without bias correction, plus decay, is scaled by |w| / |update| of the whole
tensor. LayerNorm and bias have neither decay nor that ratio. A shared layer is one tensor, so it has one ratio for all
depths. timm's and apex' LAMB correct the bias or clip the ratio: they are other optimizers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor


class Lamb(torch.optim.Optimizer):
    """Layer-wise adaptive moments; a group with `adapt=False` has no trust ratio."""

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
        adapt: bool = True,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "adapt": adapt}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move every parameter that has a gradient."""
        assert closure is None
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for parameter in group["params"]:
                gradient = parameter.grad
                if gradient is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["exp_avg"] = torch.zeros_like(parameter)
                    state["exp_avg_sq"] = torch.zeros_like(parameter)
                mean = state["exp_avg"].lerp_(gradient, 1 - beta1)
                square = state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
                update = mean / square.sqrt().add_(group["eps"])
                if group["weight_decay"]:
                    update.add_(parameter, alpha=group["weight_decay"])
                ratio = _trust(parameter, update) if group["adapt"] else 1.0
                parameter.add_(update.mul_(ratio), alpha=-group["lr"])


def _trust(parameter: Tensor, update: Tensor) -> Tensor:
    """Return |w| / |update|, or 1 where either is zero; on the device, without waiting for it."""
    weight_norm, update_norm = parameter.norm(), update.norm()
    usable = (weight_norm > 0) & (update_norm > 0)
    return torch.where(usable, weight_norm / update_norm.clamp_min(1e-38), torch.ones_like(weight_norm))
