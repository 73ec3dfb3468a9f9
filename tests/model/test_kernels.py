"""The operations that replace PyTorch's in training: the same values and gradients, and only where they are meant."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from albert.model import kernels
from albert.model.kernels import gelu_tanh, summed_cross_entropy


def values(*shape: int, scale: float = 1.0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)) * scale


@pytest.mark.parametrize("shape", [(5, 7), (0, 8), (300, 1000), (3, kernels.CHUNK + 1)])
def test_gelu_and_its_gradient_are_those_of_pytorch_in_double_precision(shape: tuple[int, int]) -> None:
    x, upstream = values(*shape, scale=3.0), values(*shape)
    exact, ours = x.double().requires_grad_(), x.clone().requires_grad_()
    expected, got = F.gelu(exact, approximate="tanh"), gelu_tanh(ours)
    expected.backward(upstream.double())
    got.backward(upstream)
    assert got.grad_fn is not None
    assert "Gelu" in got.grad_fn.name()
    assert torch.allclose(got.double(), expected, atol=2e-6)
    assert exact.grad is not None
    assert ours.grad is not None
    assert torch.allclose(ours.grad.double(), exact.grad, atol=1e-5)


def test_gelu_of_huge_and_bad_values_is_what_it_should_be() -> None:
    x = torch.tensor([[1e4, -1e4, 0.0, float("nan")]], requires_grad=True)
    y = gelu_tanh(x)
    y.sum().backward()
    assert y[0, :3].tolist() == [1e4, 0.0, 0.0]
    assert x.grad is not None
    assert x.grad[0, :3].tolist() == [1.0, 0.0, 0.5]
    assert y[0, 3].isnan()
    assert x.grad[0, 3].isnan()


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_cross_entropy_and_its_gradient_are_those_of_pytorch_in_double_precision(scale: float) -> None:
    logits = values(40, 501, scale=scale)
    labels = torch.randint(0, 501, (40,), generator=torch.Generator().manual_seed(1))
    labels[::5] = -1
    exact, ours = logits.double().requires_grad_(), logits.clone().requires_grad_()
    expected = F.cross_entropy(exact, labels, ignore_index=-1, reduction="sum") / 7
    got = summed_cross_entropy(ours, labels, ignored=-1) / 7
    expected.backward()
    got.backward()
    assert torch.allclose(got.double(), expected, rtol=1e-6)
    assert exact.grad is not None
    assert ours.grad is not None
    assert torch.allclose(ours.grad.double(), exact.grad, atol=1e-6)
    assert torch.equal(ours.detach(), logits), "the logits are left alone"


def test_cross_entropy_of_bad_logits_is_not_a_number() -> None:
    for bad in (float("nan"), float("inf")):
        logits = torch.tensor([[1.0, bad, 0.0]], requires_grad=True)
        assert not summed_cross_entropy(logits, torch.tensor([0]), ignored=-1).isfinite()


def test_cross_entropy_of_nothing_is_zero() -> None:
    logits = torch.zeros(0, 9, requires_grad=True)
    total = summed_cross_entropy(logits, torch.zeros(0, dtype=torch.long), ignored=-1)
    total.backward()
    assert total.item() == 0


def test_a_second_backward_pass_is_refused_not_wrong() -> None:
    logits = values(4, 9).requires_grad_()
    total = summed_cross_entropy(logits, torch.arange(4), ignored=-1)
    total.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()


@pytest.mark.parametrize("x", [values(4, 9), values(4, 9).half().requires_grad_(), values(4, 9).double()])
def test_without_gradients_and_in_other_precisions_pytorch_computes(x: torch.Tensor) -> None:
    assert torch.equal(gelu_tanh(x), F.gelu(x, approximate="tanh"))
    labels = torch.arange(4)
    assert torch.equal(
        summed_cross_entropy(x, labels, ignored=-1), F.cross_entropy(x, labels, ignore_index=-1, reduction="sum")
    )
