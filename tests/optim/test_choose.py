"""Which parameters are moved how, and how fast."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from albert.errors import UsageError
from albert.model import Albert, AlbertConfig, new_model
from albert.optim import Lamb, Muon, OptimizerSettings, build_optimizer, learning_rate, rate_at, set_rate, warmup
from albert.optim.choose import is_plain
from albert.optim.table import OPTIMIZERS
from albert.settings import check_settings


def small_model() -> Albert:
    shape = {"embedding_size": 8, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
    return new_model(AlbertConfig(vocab_size=50, **shape), ("mlm", "order"))


def groups_of(settings: OptimizerSettings, model: Albert, *, lr: float = 0.1) -> list[tuple[set[str], dict[str, Any]]]:
    """Return the parameter groups with the names of their parameters."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    optimizer = build_optimizer(settings, model, lr=lr)
    return [({names[id(p)] for p in group["params"]}, group) for group in optimizer.param_groups]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_moves_every_parameter_once_and_takes_its_rate_from_the_loop(name: str) -> None:
    model = small_model()
    optimizer = build_optimizer(OptimizerSettings(name=name), model, lr=0.1)
    moved = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    assert sorted(map(id, moved)) == sorted(map(id, model.parameters()))
    before = [parameter.detach().clone() for parameter in model.parameters()]
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    set_rate(optimizer, 0.0)
    optimizer.step()
    assert all(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
    set_rate(optimizer, 0.01)
    optimizer.step()
    assert not any(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))


def test_an_unknown_optimizer_is_refused_with_the_near_one() -> None:
    with pytest.raises(UsageError, match=r"optimizer\.name='muom' is unknown: did you mean 'muon'"):
        check_settings(OptimizerSettings, {"name": "muom"}, source="settings")


def test_muon_moves_the_matrices_of_the_layer_and_adamw_the_rest() -> None:
    model = small_model()
    settings = OptimizerSettings(name="muon", other_lr=0.003)
    assert isinstance(build_optimizer(settings, model, lr=0.01), Muon)
    groups = groups_of(settings, model, lr=0.01)
    matrices = set().union(*(names for names, group in groups if group["matrices"]))
    assert matrices == {
        *(f"encoder.attention.0.{part}.weight" for part in ("query", "key", "value", "output")),
        *(f"encoder.ffn.0.{part}.weight" for part in ("up", "down")),
    }
    assert {group["scale"] for _, group in groups if group["matrices"]} == {1.0}
    assert all(group["scale"] == pytest.approx(0.3) for _, group in groups if not group["matrices"])


def test_without_a_rate_of_its_own_the_rest_has_a_tenth_of_muons() -> None:
    groups = groups_of(OptimizerSettings(name="muon"), small_model(), lr=0.02)
    assert [group["scale"] for _, group in groups if not group["matrices"]] == pytest.approx([0.1, 0.1])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_word_embeddings_can_have_a_multiple_of_the_rate(name: str) -> None:
    plain = dict(_scales(OptimizerSettings(name=name)))
    raised = dict(_scales(OptimizerSettings(name=name, embedding_lr_factor=5.0)))
    words = "encoder.embeddings.word.weight"
    assert raised.pop(words) == pytest.approx(5 * plain.pop(words))
    assert raised == plain


def _scales(settings: OptimizerSettings) -> list[tuple[str, float]]:
    return [(name, group["scale"]) for names, group in groups_of(settings, small_model()) for name in names]


def test_norms_and_biases_have_neither_decay_nor_ratio_and_embeddings_have_both() -> None:
    model = small_model()
    optimizer = build_optimizer(OptimizerSettings(name="lamb"), model, lr=0.1)
    assert isinstance(optimizer, Lamb)
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


def test_a_late_decay_leaves_the_rate_constant_until_then() -> None:
    rates = [rate_at(step, peak=1.0, warmup=10, steps=100, decay=0.2) for step in range(100)]
    assert rates[5] == 0.5
    assert rates[10:80] == [1.0] * 70
    assert rates[90] == pytest.approx(0.5)
    assert rates[99] == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("batch", "rate", "share"), [(256, 4.4e-4, 0.0016), (1024, 8.8e-4, 0.0063), (4096, 1.76e-3, 0.025)]
)
def test_the_papers_rule_is_the_square_root_of_the_batch(batch: int, rate: float, share: float) -> None:
    paper = OptimizerSettings(name="lamb", lr="paper")
    assert learning_rate(paper, batch_size=batch, steps=125_000, hidden=768) == pytest.approx(rate, rel=1e-6)
    assert warmup(paper, batch_size=batch, steps=125_000) == pytest.approx(share * 125_000, rel=0.03)


def test_our_rule_warms_up_for_at_least_100_steps_and_two_percent() -> None:
    auto = OptimizerSettings()
    assert warmup(auto, batch_size=64, steps=1_000) == 100
    assert warmup(auto, batch_size=64, steps=100_000) == 2_000
    assert warmup(auto, batch_size=64, steps=20) == 10
    assert warmup(OptimizerSettings(warmup_steps=7), batch_size=64, steps=1_000) == 7


def test_our_rule_is_set_per_optimizer_and_falls_with_width_and_length_of_the_run() -> None:
    def rate(optimizer: str, steps: int, hidden: int) -> float:
        return learning_rate(OptimizerSettings(name=optimizer), batch_size=32, steps=steps, hidden=hidden)

    assert rate("lamb", 600, 128) == rate("lamb", 10_000, 256) == 0.01
    assert rate("adamw", 600, 256) == 0.001
    assert rate("lamb", 600, 1024) == pytest.approx(0.005)
    assert 0.00176 / 2 < rate("lamb", 125_000, 768) < 0.00176 * 2
    assert learning_rate(OptimizerSettings(lr=0.123), batch_size=64, steps=600, hidden=256) == 0.123
