"""Muon against PyTorch's own (which computes in bf16), its other part against AdamW, the iteration against SVD."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from albert.optim import Muon
from albert.optim.muon import orthogonalised

SHAPES = [(32, 32), (64, 16), (16, 64)]


def gradients(shape: tuple[int, int], number: int = 4) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator) * 10.0**-i for i in range(number)]


def moved(optimizer: torch.optim.Optimizer, parameter: nn.Parameter, shape: tuple[int, int]) -> torch.Tensor:
    """Return a parameter after some steps."""
    for gradient in gradients(shape):
        parameter.grad = gradient.to(parameter.dtype)
        optimizer.step()
    return parameter.detach()


@pytest.mark.parametrize("shape", SHAPES)
def test_muon_moves_as_pytorchs_does_within_the_rounding_of_bf16(shape: tuple[int, int]) -> None:
    start = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    one, other = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    ours = moved(Muon([one], lr=0.05, weight_decay=0.1, matrices=True), one, shape)
    theirs = moved(torch.optim.Muon([other], lr=0.05, weight_decay=0.1), other, shape)
    movement = (theirs - start).norm()
    assert (ours - theirs).norm() < 0.02 * movement  # bf16 has 8 bits


def test_other_parameters_move_exactly_as_by_adamw() -> None:
    start = torch.randn(7, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    one, other = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    ours = moved(Muon([one], lr=0.05, weight_decay=0.1), one, (7, 5))
    theirs = moved(torch.optim.AdamW([other], lr=0.05, weight_decay=0.1, betas=(0.9, 0.999), eps=1e-6), other, (7, 5))
    assert torch.allclose(ours, theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("shape", SHAPES)
def test_singular_values_come_near_to_one_and_singular_vectors_stay(shape: tuple[int, int]) -> None:
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    result = left.T @ orthogonalised(matrix) @ right.T  # diagonal in the same vectors
    diagonal = result.diagonal()
    assert (result - diagonal.diag()).abs().max() < 1e-9
    strong = diagonal[values > 0.05 * values.norm()]  # five iterations do not reach the weakest
    assert 0.6 < float(strong.min()) <= float(strong.max()) < 1.3
    assert float(values.max() / values.min()) > 1.5


def test_a_matrix_of_zeros_stays_one() -> None:
    assert torch.equal(orthogonalised(torch.zeros(4, 3)), torch.zeros(4, 3))
