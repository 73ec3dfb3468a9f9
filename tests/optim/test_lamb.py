"""LAMB against a NumPy reference written from the description of lamb_optimizer.py in google-research/albert."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import nn

from albert.optim import Lamb

Array = npt.NDArray[np.float64]


def reference(weight: Array, gradients: list[Array], *, lr: float, decay: float, adapt: bool) -> Array:
    """Run LAMB in double precision."""
    mean, square = np.zeros_like(weight), np.zeros_like(weight)
    for gradient in gradients:
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        update = mean / (np.sqrt(square) + 1e-6) + decay * weight
        ratio = 1.0
        if adapt:
            weight_norm, update_norm = np.linalg.norm(weight), np.linalg.norm(update)
            if weight_norm > 0 and update_norm > 0:
                ratio = weight_norm / update_norm
        weight = weight - ratio * lr * update
    return weight


@pytest.mark.parametrize("adapt", [True, False])
@pytest.mark.parametrize("decay", [0.0, 0.01])
@pytest.mark.parametrize("start", ["random", "zero"])
def test_lamb_equals_the_reference(adapt: bool, decay: float, start: str) -> None:
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(7, 5)) if start == "random" else np.zeros((7, 5))
    gradients = [rng.normal(size=(7, 5)) * 10.0**-step for step in range(6)]
    parameter = nn.Parameter(torch.tensor(weight, dtype=torch.float64))
    optimizer = Lamb([parameter], lr=0.01, weight_decay=decay, adapt=adapt)
    for gradient in gradients:
        parameter.grad = torch.tensor(gradient)
        optimizer.step()
    expected = reference(weight, gradients, lr=0.01, decay=decay, adapt=adapt)
    assert np.allclose(parameter.detach().numpy(), expected, rtol=1e-12, atol=1e-14)


def test_a_zero_gradient_moves_a_weight_by_its_decay_alone() -> None:
    parameter = nn.Parameter(torch.ones(3))
    optimizer = Lamb([parameter], lr=0.1, weight_decay=0.0)
    parameter.grad = torch.zeros(3)
    optimizer.step()
    assert torch.equal(parameter.detach(), torch.ones(3))
