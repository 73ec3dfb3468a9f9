"""Relaxed sharing: norms and low-rank adapters of each depth on a shared layer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from albert.batch import pack
from albert.errors import ModelError, UsageError
from albert.model import AlbertConfig, new_model, preset
from albert.model.accounting import count_parameters
from albert.model.folder import load_model, save_model

BATCH = pack([[2, 10, 11, 12, 3], [2, 13, 3]])


def config(**changes: Any) -> AlbertConfig:
    small = {"vocab_size": 50, "embedding_size": 8, "hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 3}
    return AlbertConfig(**(small | {"intermediate_size": 32, "max_position_embeddings": 16} | changes))


def test_base_gets_as_many_parameters_as_one_works_out() -> None:
    shared = count_parameters(preset("base")).backbone
    norms = count_parameters(preset("base").with_settings({"norm_per_depth": True})).backbone
    adapters = count_parameters(preset("base").with_settings({"adapter_rank": 8})).backbone
    assert norms - shared == 12 * 4 * 768 - 4 * 768  # one pair is the shared layer's own
    assert adapters - shared == 294_912


@pytest.mark.parametrize(
    "changes",
    [
        {"norm_per_depth": True},
        {"adapter_rank": 4},
        {"norm_per_depth": True, "adapter_rank": 2, "num_hidden_groups": 2},
    ],
)
def test_a_new_model_starts_as_the_shared_one_and_every_depth_then_learns_its_own(changes: dict[str, Any]) -> None:
    relaxed, shared = new_model(config(**changes), ("mlm",), seed=1), new_model(config(), ("mlm",), seed=1)
    own = {name: value for name, value in relaxed.state_dict().items() if name in shared.state_dict()}
    if "num_hidden_groups" not in changes:
        shared.load_state_dict(shared.state_dict() | own)
        torch.testing.assert_close(relaxed(BATCH).states, shared(BATCH).states)
    relaxed(BATCH).states.pow(3).sum().backward()
    gradients = [p.grad for name, p in relaxed.named_parameters() if ".own." in name and "down" not in name]
    assert all(g is not None and g.abs().sum() > 0 for g in gradients)
    assert len(gradients) == 3 * (4 * bool(changes.get("norm_per_depth")) + 2 * bool(changes.get("adapter_rank")))


def test_each_depth_has_its_own_and_another_depth_takes_the_nearest() -> None:
    model = new_model(config(adapter_rank=4, norm_per_depth=True), (), seed=1)
    before = model(BATCH, all_layers=True).layers
    with torch.no_grad():
        model.encoder.own[1].value_up.weight.normal_()
    after = model(BATCH, all_layers=True).layers
    assert torch.equal(before[0], after[0])
    assert not torch.equal(before[1], after[1])
    assert [id(own) for *_, own in model.encoder.steps(6)] == [id(model.encoder.own[i]) for i in (0, 0, 1, 1, 2, 2)]


def test_a_folder_is_marked_as_ours_and_read_strictly(tmp_path: Path) -> None:
    model = new_model(config(adapter_rank=4, norm_per_depth=True), ("mlm", "order"), seed=1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.1)
    save_model(model, tmp_path / "model")
    written = json.loads((tmp_path / "model" / "config.json").read_text())
    assert (written["model_type"], written["adapter_rank"], written["norm_per_depth"]) == ("albert-lite", 4, True)
    loaded = load_model(tmp_path / "model").model
    assert loaded.config == model.config
    torch.testing.assert_close(loaded(BATCH).states, model(BATCH).states)
    (tmp_path / "model" / "config.json").write_text(json.dumps(written | {"adapter_rank": 2}))
    with pytest.raises(ModelError):
        load_model(tmp_path / "model")
    save_model(new_model(config()), tmp_path / "plain")
    assert "adapter_rank" not in json.loads((tmp_path / "plain" / "config.json").read_text())


@pytest.mark.parametrize(
    "changes", [{"adapter_rank": -1}, {"adapter_rank": 17}, {"adapter_rank": True}, {"norm_per_depth": 1}]
)
def test_values_that_make_no_sense_are_refused_by_name(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(changes))):
        config(**changes)
    with pytest.raises(UsageError, match="relax sharing='all'"):
        config(adapter_rank=2, sharing="none")
