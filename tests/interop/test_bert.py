"""BERT folders as teachers: transformers' BertModel is the oracle."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from albert.batch import pack
from albert.errors import ModelError
from albert.interop.bert import is_bert, load_bert

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

TEXTS = [[2, 5, 9, 30, 3], [2, 17, 3], [2, 8, 8, 40, 41, 42, 11, 3]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a small BERT with weights large enough to matter."""
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=24, num_hidden_layers=3, num_attention_heads=4, intermediate_size=40,
        max_position_embeddings=16, initializer_range=0.3,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(tmp_path / "bert")
    return tmp_path / "bert"


@torch.no_grad()
def test_the_states_are_those_of_transformers(folder: Path) -> None:
    model, oracle = load_bert(folder), transformers.BertModel.from_pretrained(folder).eval()
    states = model(pack(TEXTS)).states.split([len(text) for text in TEXTS])
    for text, own in zip(TEXTS, states, strict=True):
        torch.testing.assert_close(own, oracle(torch.tensor([text])).last_hidden_state[0], rtol=0, atol=2e-6)


@torch.no_grad()
def test_a_prefix_and_heads_make_no_difference(folder: Path) -> None:
    before = load_bert(folder)(pack(TEXTS)).states
    weights = load_file(folder / "model.safetensors")
    named = {f"bert.{name}": tensor for name, tensor in weights.items()} | {"cls.bias": torch.zeros(50)}
    save_file(named, folder / "model.safetensors")
    assert torch.equal(load_bert(folder)(pack(TEXTS)).states, before)


@torch.no_grad()
def test_the_first_names_of_layer_norm_are_known(folder: Path) -> None:
    before = load_bert(folder)(pack(TEXTS)).states
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    weights = load_file(folder / "model.safetensors")
    for new, first in old.items():
        weights = {name.replace(new, first): tensor for name, tensor in weights.items()}
    save_file(weights, folder / "model.safetensors")
    assert torch.equal(load_bert(folder)(pack(TEXTS)).states, before)


def test_what_does_not_fit_is_named(folder: Path, tmp_path: Path) -> None:
    assert is_bert(folder)
    assert not is_bert(tmp_path)
    weights = load_file(folder / "model.safetensors")
    save_file(weights | {"encoder.layer.1.output.dense.weight": torch.zeros(24, 41)}, folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"encoder\.layer\.1\.output\.dense\.weight is \(24, 41\), must be \(24, 40\)"):
        load_bert(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="save the model with safetensors"):
        load_bert(folder)
    values = json.loads((folder / "config.json").read_text()) | {"hidden_act": "silu"}
    (folder / "config.json").write_text(json.dumps(values))
    with pytest.raises(ModelError, match="hidden_act"):
        load_bert(folder)
