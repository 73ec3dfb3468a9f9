"""The one weight table: how each parameter is called here, in a Hugging Face folder, and in Google's checkpoints.

The table is read in both directions and by every converter. Rows name modules; parameters follow from the kind of
module. `{a}` and `{f}` count attention and feed-forward blocks: block i lies at group i // M, inner layer i % M of
transformers' nested lists, M = inner_group_num. With attention-only or FFN-only sharing the two counts differ, and
such files are marked as ours (folder.py). Knows names and shapes, nothing of files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch

from albert.model.albert import Albert
from albert.model.config import AlbertConfig

Kind = Literal["embedding", "linear", "norm", "plain_linear", "bias"]


@dataclass(frozen=True)
class Row:
    """A module: its name here, in transformers, in TensorFlow, and what kind it is there."""

    ours: str
    hf: str
    tf: str
    kind: Kind


_HF_LAYER = "albert.encoder.albert_layer_groups.{g}.albert_layers.{m}"
_TF_LAYER = "bert/encoder/transformer/group_{g}/inner_group_{m}"
_HF_OWN, _TF_OWN = "albert.encoder.own.{d}", "bert/encoder/own_{d}"  # relaxed sharing: ours alone

TABLE: tuple[Row, ...] = (
    Row(
        "encoder.embeddings.word",
        "albert.embeddings.word_embeddings",
        "bert/embeddings/word_embeddings",
        "embedding",
    ),
    Row(
        "encoder.embeddings.position",
        "albert.embeddings.position_embeddings",
        "bert/embeddings/position_embeddings",
        "embedding",
    ),
    Row(
        "encoder.embeddings.segment",
        "albert.embeddings.token_type_embeddings",
        "bert/embeddings/token_type_embeddings",
        "embedding",
    ),
    Row("encoder.embeddings.norm", "albert.embeddings.LayerNorm", "bert/embeddings/LayerNorm", "norm"),
    Row(
        "encoder.projection",
        "albert.encoder.embedding_hidden_mapping_in",
        "bert/encoder/embedding_hidden_mapping_in",
        "linear",
    ),
    Row("encoder.attention.{a}.query", f"{_HF_LAYER}.attention.query", f"{_TF_LAYER}/attention_1/self/query", "linear"),
    Row("encoder.attention.{a}.key", f"{_HF_LAYER}.attention.key", f"{_TF_LAYER}/attention_1/self/key", "linear"),
    Row("encoder.attention.{a}.value", f"{_HF_LAYER}.attention.value", f"{_TF_LAYER}/attention_1/self/value", "linear"),
    Row(
        "encoder.attention.{a}.output",
        f"{_HF_LAYER}.attention.dense",
        f"{_TF_LAYER}/attention_1/output/dense",
        "linear",
    ),
    Row("encoder.attention.{a}.norm", f"{_HF_LAYER}.attention.LayerNorm", f"{_TF_LAYER}/LayerNorm", "norm"),
    Row("encoder.ffn.{f}.up", f"{_HF_LAYER}.ffn", f"{_TF_LAYER}/ffn_1/intermediate/dense", "linear"),
    Row("encoder.ffn.{f}.down", f"{_HF_LAYER}.ffn_output", f"{_TF_LAYER}/ffn_1/intermediate/output/dense", "linear"),
    Row("encoder.ffn.{f}.norm", f"{_HF_LAYER}.full_layer_layer_norm", f"{_TF_LAYER}/LayerNorm_1", "norm"),
    Row("encoder.own.{d}.attention_norm", f"{_HF_OWN}.attention_norm", f"{_TF_OWN}/attention_norm", "norm"),
    Row("encoder.own.{d}.ffn_norm", f"{_HF_OWN}.ffn_norm", f"{_TF_OWN}/ffn_norm", "norm"),
    Row("encoder.own.{d}.query_down", f"{_HF_OWN}.query_down", f"{_TF_OWN}/query_down", "linear"),
    Row("encoder.own.{d}.query_up", f"{_HF_OWN}.query_up", f"{_TF_OWN}/query_up", "linear"),
    Row("encoder.own.{d}.value_down", f"{_HF_OWN}.value_down", f"{_TF_OWN}/value_down", "linear"),
    Row("encoder.own.{d}.value_up", f"{_HF_OWN}.value_up", f"{_TF_OWN}/value_up", "linear"),
    Row("encoder.pooler", "albert.pooler", "bert/pooler/dense", "linear"),
    Row("heads.mlm.dense", "predictions.dense", "cls/predictions/transform/dense", "linear"),
    Row("heads.mlm.norm", "predictions.LayerNorm", "cls/predictions/transform/LayerNorm", "norm"),
    Row("heads.mlm", "predictions", "cls/predictions/output", "bias"),
    Row("heads.order", "sop_classifier.classifier", "cls/seq_relationship/output", "plain_linear"),
    Row("heads.classifier.linear", "classifier", "output", "plain_linear"),
    Row("heads.choice.linear", "classifier", "output", "plain_linear"),
    Row("heads.tags.linear", "classifier", "output", "plain_linear"),
    Row("heads.span", "qa_outputs", "cls/squad/output", "plain_linear"),
    Row("heads.conditional_span.start", "start_logits.dense", "start_logits/dense", "linear"),
    Row("heads.conditional_span.end_dense", "end_logits.dense_0", "end_logits/dense_0", "linear"),
    Row("heads.conditional_span.end_norm", "end_logits.LayerNorm", "end_logits/LayerNorm", "norm"),
    Row("heads.conditional_span.end", "end_logits.dense_1", "end_logits/dense_1", "linear"),
    Row("heads.conditional_span.answer_dense", "answer_class.dense_0", "answer_class/dense_0", "linear"),
    Row("heads.conditional_span.answer", "answer_class.dense_1", "answer_class/dense_1", "linear"),
)

# Other files' extra tensors that carry nothing: buffers, tied copies, leftovers of old attention code.
IGNORED_SUFFIXES = (
    "embeddings.position_ids",
    "embeddings.token_type_ids",
    "predictions.decoder.weight",
    "predictions.decoder.bias",
)
BACKBONE = "albert."


@dataclass(frozen=True)
class Entry:
    """One parameter: its three names and its shape here; `transposed` says how TensorFlow stores it."""

    ours: str
    hf: str
    tf: str
    shape: tuple[int, ...]
    transposed: bool


def expand(config: AlbertConfig, heads: Iterable[str], *, pooler: bool) -> list[Entry]:
    """List every parameter of a model, with its names and shape, without allocating any."""
    with torch.device("meta"):
        model = Albert(config, list(heads), pooler=pooler)
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    entries = [entry for row in TABLE for entry in _entries(row, config, shapes)]
    assert {entry.ours for entry in entries} == set(shapes), "a parameter without a row in the weight table"
    return entries


def is_ignored(name: str) -> bool:
    """Tell whether a tensor in somebody's file carries no weight of its own."""
    return name.endswith(IGNORED_SUFFIXES) or ".dropout." in name or ".attention_dropout." in name


def _entries(row: Row, config: AlbertConfig, shapes: dict[str, tuple[int, ...]]) -> Iterator[Entry]:
    attention, ffn = config.num_blocks
    depths = config.num_hidden_layers * config.inner_group_num
    counts = {"{a}": attention, "{f}": ffn, "{d}": depths}
    count = next((number for mark, number in counts.items() if mark in row.ours), 1)
    for block in range(count):
        group, inner = divmod(block, config.inner_group_num)
        names = {"a": block, "f": block, "d": block, "g": group, "m": inner}
        for suffix in ("weight", "bias"):
            ours = f"{row.ours.format(**names)}.{suffix}"
            if ours in shapes and not (row.kind == "bias" and suffix == "weight"):
                tf, transposed = _tf_name(row.tf.format(**names), row.kind, suffix)
                yield Entry(ours, f"{row.hf.format(**names)}.{suffix}", tf, shapes[ours], transposed)


def _tf_name(module: str, kind: Kind, suffix: str) -> tuple[str, bool]:
    match kind:
        case "embedding":
            return module, False
        case "linear":
            return (f"{module}/kernel", True) if suffix == "weight" else (f"{module}/bias", False)
        case "norm":
            return f"{module}/{'gamma' if suffix == 'weight' else 'beta'}", False
        case "plain_linear":
            return f"{module}_{'weights' if suffix == 'weight' else 'bias'}", False
        case "bias":
            return f"{module}_bias", False
