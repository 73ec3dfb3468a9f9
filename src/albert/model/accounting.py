"""What a model costs: parameters by part, bytes, arithmetic a token, memory to run and to train it.

Parameters are counted on real modules on the meta device, so nothing is allocated. Memory is an estimate of what our
own training step keeps (measured in benchmarks/results), not a promise. Knows no files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from albert.model.albert import Albert
from albert.model.config import AlbertConfig

FLOAT = 4  # bytes


@dataclass(frozen=True)
class Parameters:
    """Parameters by part."""

    embeddings: int
    projection: int
    layers: int
    pooler: int
    heads: dict[str, int]

    @property
    def backbone(self) -> int:
        """Count what Table 1 counts: embeddings, projection, layers, pooler."""
        return self.embeddings + self.projection + self.layers + self.pooler

    @property
    def total(self) -> int:
        """Count everything."""
        return self.backbone + sum(self.heads.values())


def count_parameters(config: AlbertConfig, heads: Sequence[str] = (), *, pooler: bool | None = None) -> Parameters:
    """Count the parameters of a model of this shape."""
    with torch.device("meta"):
        model = Albert(config, heads, pooler=pooler)
    return parameters_of(model)


def parameters_of(model: Albert) -> Parameters:
    """Count the parameters of a model."""

    def size(module: torch.nn.Module | None) -> int:
        return sum(parameter.numel() for parameter in module.parameters()) if module is not None else 0

    encoder = model.encoder
    return Parameters(
        embeddings=size(encoder.embeddings),
        projection=size(encoder.projection),
        layers=size(encoder.attention) + size(encoder.ffn) + size(encoder.own),
        pooler=size(encoder.pooler),
        heads={name: size(head) for name, head in model.heads.items()},
    )


def flops_per_token(config: AlbertConfig, *, length: int, depth: int | None = None) -> int:
    """Count multiply-adds of the layers as two operations, for a token of a text of this length.

    Sharing does not change it: every layer is computed.
    """
    steps = (depth or config.num_hidden_layers) * config.inner_group_num
    linear = (
        4 * config.hidden_size**2
        + 4 * config.hidden_size * config.adapter_rank
        + 2 * config.hidden_size * config.intermediate_size
    )
    attention = 2 * length * config.hidden_size
    return 2 * steps * (linear + attention)


def inference_bytes(config: AlbertConfig, heads: Sequence[str] = (), *, batch: int, length: int) -> int:
    """Estimate the memory to run a batch: the weights and the widest moment of one layer."""
    tokens = batch * length
    widest = max(config.intermediate_size + 2 * config.hidden_size, 6 * config.hidden_size)
    return FLOAT * (count_parameters(config, heads).total + tokens * widest)


def training_bytes(
    config: AlbertConfig,
    *,
    batch: int,
    length: int,
    masked: float = 0.15,
    checkpointing: bool = False,
    kept_bytes: int = FLOAT,
) -> int:
    """Estimate the memory of a pre-training step: weights, gradients, two moments, and what backward keeps.

    A layer keeps, per token: its input, q, k, v, the mixed heads, both sums before their norms, the output of the
    first norm (8 H) and both sides of GELU (2 FFN). Attention keeps no S x S matrix, but in bf16 on a CPU,
    where its weights come on top. With checkpointing a layer keeps
    its input, and one layer at a time is recomputed, with gradients and temporaries about as large again. The
    vocabulary is scored at masked positions only, four times over (logits, log-probabilities, their gradients).
    The factors 3 and 4 were fitted to the two shapes of benchmarks/results/model.md, and seen nowhere else: there it
    is within 6% without checkpointing, and with it the measured memory is 0.9 to 1.6 times this. `kept_bytes` are those
    of a number that backward keeps: 2 in half precision, which nobody has measured.
    """
    parameters = count_parameters(config, ("mlm", "order")).total
    tokens = batch * length
    steps = config.num_hidden_layers * config.inner_group_num
    layer = 8 * config.hidden_size + 2 * config.intermediate_size
    kept = steps * config.hidden_size + 3 * layer if checkpointing else steps * layer
    vocabulary = 4 * masked * config.vocab_size
    return int(FLOAT * (4 * parameters + tokens * vocabulary) + kept_bytes * tokens * kept)
