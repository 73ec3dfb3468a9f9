"""The operations that replace PyTorch's in training: the same values and gradients, and only where they are meant."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch.nn import functional as F

from albert.model import kernels
from albert.model.kernels import gelu_tanh, vocabulary_loss


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


def test_gelu_in_bf16_is_that_of_fp32_but_for_the_last_bit() -> None:
    x, upstream = values(300, 1000, scale=3.0).bfloat16(), values(300, 1000).bfloat16()
    exact, ours = x.double().requires_grad_(), x.clone().requires_grad_()
    expected, got = F.gelu(exact, approximate="tanh"), gelu_tanh(ours)
    expected.backward(upstream.double())
    got.backward(upstream)
    assert got.dtype is torch.bfloat16
    assert got.grad_fn is not None
    assert "Gelu" in got.grad_fn.name()
    torch.testing.assert_close(got.double(), expected, rtol=2**-8, atol=1e-6)
    assert exact.grad is not None
    assert ours.grad is not None
    torch.testing.assert_close(ours.grad.double(), exact.grad, rtol=2**-7, atol=1e-3)  # the slope is rounded, then this


PIECES, WIDTH = 501, 24


@dataclass(frozen=True)
class Scored:
    """Vectors, a vocabulary, and the true pieces."""

    x: torch.Tensor
    weight: torch.Tensor
    bias: torch.Tensor
    labels: torch.Tensor

    @classmethod
    def draw(cls, count: int, *, scale: float = 1.0, precise: bool = False) -> Scored:
        parts = values(count + PIECES + 1, WIDTH).split([count, PIECES, 1])
        x, weight, bias = parts[0] * scale, parts[1], parts[2].expand(PIECES, -1).mean(1)
        kind = torch.float64 if precise else torch.float32
        leaves = [part.to(kind).detach().requires_grad_() for part in (x, weight, bias)]
        return cls(*leaves, torch.randint(0, PIECES, (count,), generator=torch.Generator().manual_seed(1)))

    def loss(self) -> tuple[torch.Tensor, torch.Tensor]:
        return vocabulary_loss(self.x, self.weight, self.bias, self.labels)

    def gradients(self) -> list[torch.Tensor]:
        found = [part.grad for part in (self.x, self.weight, self.bias)]
        return [gradient.double() for gradient in found if gradient is not None]


@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize("rows", [1, 7, 40, 1000])
def test_the_loss_over_a_vocabulary_is_pytorchs_in_double_precision_however_it_is_divided(
    scale: float, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "SCORES", rows * PIECES)
    exact, ours = Scored.draw(40, scale=scale, precise=True), Scored.draw(40, scale=scale)
    expected, expected_right = exact.loss()
    got, right = ours.loss()
    assert got.grad_fn is not None
    assert "VocabularyLoss" in got.grad_fn.name()
    assert "VocabularyLoss" not in str(expected.grad_fn)
    (expected / 7).backward()
    (got / 7).backward()
    torch.testing.assert_close(got.double(), expected.double(), rtol=1e-6, atol=0)
    assert int(right) == int(expected_right)
    for own, true in zip(ours.gradients(), exact.gradients(), strict=True):
        assert (own - true).norm() <= 1e-6 * scale * true.norm()  # a score of 30 x is rounded 30 x as much


def test_the_loss_over_a_vocabulary_multiplies_in_bf16_under_autocast() -> None:
    exact, ours = Scored.draw(40, precise=True), Scored.draw(40)
    expected, _ = exact.loss()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got, _ = ours.loss()
    expected.backward()
    got.backward()
    assert got.dtype is torch.float32
    assert got.item() != pytest.approx(expected.item(), rel=1e-7), "it was not in bf16"
    assert got.item() == pytest.approx(expected.item(), rel=5e-3)
    for own, true in zip(ours.gradients(), exact.gradients(), strict=True):
        assert (own - true).norm() < 0.02 * true.norm()


def test_a_piece_counts_as_found_only_if_it_is_the_first_of_equal_ones() -> None:
    x, weight = torch.ones(2, 1, requires_grad=True), torch.tensor([[1.0], [2.0], [2.0]], requires_grad=True)
    _, right = vocabulary_loss(x, weight, torch.zeros(3, requires_grad=True), torch.tensor([1, 2]))
    assert int(right) == 1


def test_the_loss_of_bad_scores_is_not_a_number() -> None:
    for bad in (float("nan"), float("inf")):
        scored = Scored.draw(4)
        with torch.no_grad():
            scored.weight[3] = bad
        assert not scored.loss()[0].isfinite()


def test_the_loss_of_nothing_is_zero() -> None:
    scored = Scored.draw(0)
    total, right = scored.loss()
    total.backward()
    assert total.item() == right.item() == 0
    assert not any(gradient.any() for gradient in scored.gradients())


@pytest.mark.parametrize("x", [values(4, 9), values(4, 9).half().requires_grad_(), values(4, 9).double()])
def test_without_gradients_and_in_other_precisions_pytorch_computes(x: torch.Tensor) -> None:
    assert torch.equal(gelu_tanh(x), F.gelu(x, approximate="tanh"))
    weight, bias, labels = torch.eye(9).to(x), torch.zeros(9).to(x), torch.arange(4)
    total, _ = vocabulary_loss(x, weight, bias, labels)
    assert torch.equal(total, F.cross_entropy(F.linear(x, weight, bias).float(), labels, reduction="sum"))
