"""LAMB against a NumPy reference written from the description of Google's optimizer (facts B4, F16)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import nn

from albert.model import AlbertConfig, new_model
from albert.optim import Lamb, build_optimizer, learning_rate, rate_at, warmup
from albert.optim.choose import is_plain

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


def test_norms_and_biases_have_neither_decay_nor_ratio_and_embeddings_have_both() -> None:
    shape = {"embedding_size": 8, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
    model = new_model(AlbertConfig(vocab_size=50, **shape), ("mlm", "order"))
    optimizer = build_optimizer("lamb", model, lr=0.1)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    adapted, plain = ({names[id(p)] for p in group["params"]} for group in optimizer.param_groups)
    assert [group["adapt"] for group in optimizer.param_groups] == [True, False]
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.01, 0.0]
    assert "encoder.embeddings.word.weight" in adapted
    assert "encoder.ffn.0.up.weight" in adapted
    assert {
        "encoder.embeddings.norm.weight",
        "heads.mlm.bias",
        "heads.mlm.norm.weight",
        "encoder.ffn.0.up.bias",
    } <= plain
    assert adapted | plain == set(names.values())
    assert all(name.endswith("bias") or "norm" in name for name in plain)
    assert sum(name.startswith("encoder.ffn") for name in adapted) == 2, "a shared layer is one tensor: one ratio"


def test_plain_parameters_are_told_by_name() -> None:
    assert is_plain("encoder.ffn.0.norm.weight")
    assert is_plain("heads.conditional_span.end_norm.weight")
    assert is_plain("bias")
    assert not is_plain("encoder.ffn.0.down.weight")


def test_the_schedule_rises_from_zero_and_falls_to_zero_over_all_steps() -> None:
    rates = [rate_at(step, peak=1.0, warmup=10, steps=100) for step in range(100)]
    assert rates[0] == 0
    assert rates[5] == 0.5
    assert rates[10] == 0.9  # counted from step 0: the peak is under the nominal rate
    assert rates[99] == pytest.approx(0.01)
    assert rate_at(3125, peak=0.00176, warmup=3125, steps=125_000) == pytest.approx(0.001716)


@pytest.mark.parametrize(
    ("batch", "rate", "share"), [(256, 4.4e-4, 0.0016), (1024, 8.8e-4, 0.0063), (4096, 1.76e-3, 0.025)]
)
def test_the_papers_rule_is_the_square_root_of_the_batch(batch: int, rate: float, share: float) -> None:
    assert learning_rate("lamb", "paper", batch_size=batch, steps=125_000, hidden=768) == pytest.approx(rate, rel=1e-6)
    assert warmup("paper", batch_size=batch, steps=125_000) == pytest.approx(share * 125_000, rel=0.03)


def test_our_rule_warms_up_for_at_least_100_steps_and_two_percent() -> None:
    assert warmup("auto", batch_size=64, steps=1_000) == 100
    assert warmup("auto", batch_size=64, steps=100_000) == 2_000
    assert warmup("auto", batch_size=64, steps=20) == 10


def test_our_rule_is_set_per_optimizer_and_falls_with_width_and_length_of_the_run() -> None:
    def rate(optimizer: Any, steps: int, hidden: int) -> float:
        return learning_rate(optimizer, "auto", batch_size=32, steps=steps, hidden=hidden)

    assert rate("lamb", 600, 128) == rate("lamb", 10_000, 256) == 0.01
    assert rate("adamw", 600, 256) == 0.001
    assert rate("lamb", 600, 1024) == pytest.approx(0.005)
    assert 0.00176 / 2 < rate("lamb", 125_000, 768) < 0.00176 * 2
    assert learning_rate("adamw", 0.123, batch_size=64, steps=600, hidden=256) == 0.123
