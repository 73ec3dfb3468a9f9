"""BERT folders as teachers: a BERT is an ALBERT that shares nothing and whose embeddings are as wide as its layers.

So our encoder runs it, packed and without padding. Only what computes states is read: heads and pooler stay behind.
"""

from __future__ import annotations

from pathlib import Path

from albert.errors import ModelError
from albert.files import read_json
from albert.model import Albert
from albert.model.config import AlbertConfig, from_json
from albert.model.folder import CONFIG_LIMIT
from albert.model.tensor_file import read_header, read_tensors
from albert.model.weights import is_ignored

WEIGHTS = "model.safetensors"
_EMBEDDINGS = {
    "encoder.embeddings.word": "embeddings.word_embeddings",
    "encoder.embeddings.position": "embeddings.position_embeddings",
    "encoder.embeddings.segment": "embeddings.token_type_embeddings",
    "encoder.embeddings.norm": "embeddings.LayerNorm",
}
_FIRST_NAMES = {"weight": "gamma", "bias": "beta"}  # of LayerNorm, in files from the first years
_LAYER = {
    "encoder.attention.{i}.query": "encoder.layer.{i}.attention.self.query",
    "encoder.attention.{i}.key": "encoder.layer.{i}.attention.self.key",
    "encoder.attention.{i}.value": "encoder.layer.{i}.attention.self.value",
    "encoder.attention.{i}.output": "encoder.layer.{i}.attention.output.dense",
    "encoder.attention.{i}.norm": "encoder.layer.{i}.attention.output.LayerNorm",
    "encoder.ffn.{i}.up": "encoder.layer.{i}.intermediate.dense",
    "encoder.ffn.{i}.down": "encoder.layer.{i}.output.dense",
    "encoder.ffn.{i}.norm": "encoder.layer.{i}.output.LayerNorm",
}


def is_bert(folder: Path) -> bool:
    """Tell whether a folder says that it holds a BERT."""
    path = folder / "config.json"
    return path.is_file() and read_json(path, limit=CONFIG_LIMIT).get("model_type") == "bert"


def load_bert(folder: Path) -> Albert:
    """Read the encoder of a BERT folder (config.json, model.safetensors), strictly."""
    config, path = _config(folder), folder / WEIGHTS
    if not path.is_file():
        raise ModelError(f"{folder}: no {WEIGHTS}: save the model with safetensors")
    model = Albert(config, pooler=False)
    there = read_header(path, ignore=is_ignored)
    prefix = "bert." if "bert.embeddings.word_embeddings.weight" in there else ""
    modules = {**_EMBEDDINGS}
    for i in range(config.num_hidden_layers):
        modules |= {ours.format(i=i): theirs.format(i=i) for ours, theirs in _LAYER.items()}
    wanted = {}
    for name, parameter in model.named_parameters():
        module, _, kind = name.rpartition(".")
        theirs = f"{prefix}{modules[module]}.{kind}"
        if theirs not in there and modules[module].endswith("LayerNorm"):
            theirs = f"{prefix}{modules[module]}.{_FIRST_NAMES[kind]}"
        if there.get(theirs) != tuple(parameter.shape):
            raise ModelError(f"{path}: {theirs} is {there.get(theirs, 'missing')}, must be {tuple(parameter.shape)}")
        wanted[name] = theirs
    tensors = read_tensors(path, list(wanted.values()))
    model.load_state_dict({name: tensor.float() for name, tensor in zip(wanted, tensors, strict=True)})
    return model.eval()


def _config(folder: Path) -> AlbertConfig:
    values = read_json(folder / "config.json", limit=CONFIG_LIMIT)
    shape = {"model_type": "albert", "embedding_size": values.get("hidden_size")}
    alone = {"num_hidden_groups": values.get("num_hidden_layers"), "inner_group_num": 1}
    return from_json(values | shape | alone, source=folder / "config.json").with_settings(
        {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    )
