"""ALBERT's encoder: a factorised embedding, then one layer applied again and again (Lan et al. 2019, section 3.1).

What a layer is made of is kept in two lists, attention blocks and feed-forward blocks. Sharing all means one block in
each list; sharing none means one per layer; sharing attention or the feed-forward alone means one in one list and many
in the other (Table 4). Each LayerNorm belongs to its block. A shared block is one module called many times, never
copies, so its gradient is the sum over depth and an optimizer sees it once.

Knows packed tokens and nothing of tasks. Legend: T tokens in all, E embedding, H hidden, B texts.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from albert.errors import DataError, UsageError
from albert.model.config import Activation, AlbertConfig
from albert.model.kernels import gelu_tanh
from albert.model.norm import LayerNorm
from albert.model.packing import Packed, attend
from albert.model.relaxed import OwnParameters


def activate(x: Tensor, name: Activation) -> Tensor:
    """Apply the non-linearity; ALBERT's GELU is the tanh form."""
    match name:
        case "gelu_new":
            return gelu_tanh(x)
        case "gelu":
            return F.gelu(x)
        case "relu":
            return F.relu(x)


def _table(rows: int, width: int) -> nn.Embedding:
    """Return a table whose weights whoever builds the model fills in.

    nn.Embedding would draw them, and drawing a normal on the meta device, where folders are planned, loads
    torch._dynamo: 3 seconds of every load.
    """
    return nn.Embedding(rows, width, _weight=torch.empty(rows, width))


class Embeddings(nn.Module):
    """Word + position + segment at width E, normalised there (not at H)."""

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__()
        self.word = _table(config.vocab_size, config.embedding_size)
        self.position = _table(config.max_position_embeddings, config.embedding_size)
        self.segment = _table(config.type_vocab_size, config.embedding_size)
        self.norm = LayerNorm(config.embedding_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, packed: Packed) -> Tensor:
        x = self.word(packed.token_ids) + self.segment(packed.segment_ids) + self.position(packed.position_ids)
        return self.dropout(self.norm(x))  # [T, E]


class Attention(nn.Module):
    """Self-attention, its residual, and the norm after it."""

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__()
        self.num_heads = config.num_attention_heads
        self.attention_dropout = config.attention_probs_dropout_prob
        width = config.hidden_size
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        self.together: nn.Module | None = None  # stands for query, key and value, as one product (cpu_linear.py)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.norm = LayerNorm(width, eps=config.layer_norm_eps) if not config.norm_per_depth else None

    def joined(self) -> nn.Linear:
        """Return query, key and value as one linear layer, for use alone."""
        parts = (self.query, self.key, self.value)
        shape = (self.query.in_features, 3 * self.query.out_features)
        linear: nn.Linear = nn.utils.skip_init(nn.Linear, *shape)  # type: ignore[no-untyped-call]
        linear.weight = nn.Parameter(torch.cat([part.weight.detach() for part in parts]), requires_grad=False)
        linear.bias = nn.Parameter(torch.cat([part.bias.detach() for part in parts]), requires_grad=False)
        return linear

    def forward(
        self, x: Tensor, packed: Packed, own: OwnParameters | None = None, *, first: Tensor | None = None
    ) -> Tensor:
        dropout = self.attention_dropout if self.training else 0.0
        asking = x if first is None else x.index_select(0, first)  # [T, H] or [B, H]
        if self.together is None:
            query, key, value = self.query(asking), self.key(x), self.value(x)
        else:
            query, key, value = self.together(x).chunk(3, dim=-1)
            query = query if first is None else query.index_select(0, first)
        if own is not None:
            assert first is None, "an adapter asks for all tokens"
            query, value = own.adapt(x, query, value)
        mixed = attend(query, key, value, packed=packed, num_heads=self.num_heads, dropout=dropout)
        norm = self.norm if own is None else own.attention_norm or self.norm
        assert norm is not None
        return norm(asking + self.dropout(self.output(mixed)))


class FeedForward(nn.Module):
    """Two linear layers with GELU between, their residual, and the norm after it."""

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__()
        self.activation: Activation | None = config.hidden_act  # None: what stands for `up` applies it (cpu_linear.py)
        self.up = nn.Linear(config.hidden_size, config.intermediate_size)
        self.down = nn.Linear(config.intermediate_size, config.hidden_size)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)  # Google has it; transformers never applies it
        self.norm = LayerNorm(config.hidden_size, eps=config.layer_norm_eps) if not config.norm_per_depth else None

    def forward(self, x: Tensor, own: OwnParameters | None = None) -> Tensor:
        norm = self.norm if own is None else own.ffn_norm or self.norm
        assert norm is not None
        inner = self.up(x) if self.activation is None else activate(self.up(x), self.activation)
        return norm(x + self.dropout(self.down(inner)))  # [T, H]


@dataclass(frozen=True)
class Encoded:
    """What the encoder says of a batch."""

    states: Tensor  # [T, H] after the last layer
    pooled: Tensor | None  # [B, H] tanh of a linear layer on [CLS]; None without a pooler
    layers: tuple[Tensor, ...]  # [T, H] after each layer, if asked for


class Encoder(nn.Module):
    """Embedding, projection, layers, pooler: `forward` is `embed`, a `layer` for each of the `steps`, and `pool`.

    The parts can be run by themselves: an engine runs the layers in its own way, a text that is done leaves
    the batch between two layers (`Packed.restrict`).
    """

    def __init__(self, config: AlbertConfig, *, pooler: bool = True) -> None:
        super().__init__()
        self.config = config
        self.checkpointing = False
        num_attention, num_ffn = config.num_blocks
        self.embeddings = Embeddings(config)
        self.projection = nn.Linear(config.embedding_size, config.hidden_size) if config.has_projection else None
        self.attention = nn.ModuleList(Attention(config) for _ in range(num_attention))
        self.ffn = nn.ModuleList(FeedForward(config) for _ in range(num_ffn))
        own = config.num_hidden_layers * config.inner_group_num if config.is_relaxed else 0
        self.own = nn.ModuleList(OwnParameters(config) for _ in range(own))
        self.pooler = nn.Linear(config.hidden_size, config.hidden_size) if pooler else None

    def forward(self, packed: Packed, *, depth: int | None = None, all_layers: bool = False) -> Encoded:
        """Encode a batch; an all-shared model runs at any depth."""
        steps = self.steps(depth)
        x, filler = self.embed(packed), 0 if packed.rows is None else packed.rows.filler
        if filler:  # oneDNN compiles kernels for every number of tokens that it meets: a tenth of a step in bf16
            x = F.pad(x, (0, 0, 0, filler))
        layers = []
        for step in steps:
            if self.checkpointing and torch.is_grad_enabled():
                # not re-entrant: a shared layer would be "marked ready twice" under DistributedDataParallel
                x = checkpoint(self.layer, x, packed, *step, use_reentrant=False)
            else:
                x = self.layer(x, packed, *step)
            if all_layers:
                layers.append(x)
        if filler:
            x, *layers = (state[:-filler] for state in (x, *layers))
        return Encoded(x, self.pool(x, packed), tuple(layers))

    def embed(self, packed: Packed) -> Tensor:
        """Return what the first layer reads: embeddings at the width of the layers, [T, H]."""
        if packed.longest > self.config.max_position_embeddings:
            raise DataError(
                f"a text of {packed.longest:,} tokens, but the model has {self.config.max_position_embeddings:,} "
                "positions: shorten it or train with a larger max_position_embeddings"
            )
        x = self.embeddings(packed)  # [T, E]
        return x if self.projection is None else self.projection(x)  # [T, H]

    @staticmethod
    def layer(x: Tensor, packed: Packed, attention: nn.Module, ffn: nn.Module, own: nn.Module | None = None) -> Tensor:
        """Return what one of the `steps` makes of the states: [T, H] → [T, H]."""
        return ffn(attention(x, packed, own), own)

    @staticmethod
    def class_layer(x: Tensor, packed: Packed, attention: nn.Module, ffn: nn.Module) -> Tensor:
        """Return what a last layer makes of each [CLS] alone: [T, H] → [B, H], the rest is not computed."""
        return ffn(attention(x, packed, first=packed.starts))

    def pool(self, x: Tensor, packed: Packed) -> Tensor | None:
        """Return tanh of a linear layer on each [CLS]: [T, H] → [B, H]; None without a pooler."""
        return None if self.pooler is None else self.pool_class(x.index_select(0, packed.starts))

    def pool_class(self, x: Tensor) -> Tensor | None:
        """Return the same of states that are of each [CLS] alone: [B, H] → [B, H]."""
        return None if self.pooler is None else torch.tanh(self.pooler(x))

    def steps(self, depth: int | None = None) -> list[tuple[nn.Module, nn.Module, nn.Module | None]]:
        """List which attention and which feed-forward block run, in order; a layer has `inner_group_num` of each.

        Beside them what a depth has of its own; at another depth, that of the same share of the way.
        """
        config = self.config
        inner, groups, layers = config.inner_group_num, config.num_hidden_groups, config.num_hidden_layers
        if depth is None:
            depth = layers
        elif depth < 1:
            raise UsageError(f"depth={depth} must be at least 1")
        elif depth != layers and config.num_blocks != (inner, inner):
            raise UsageError(
                f"depth={depth}: only a model that shares all its layers runs at another depth than its own; this one "
                f"has {layers} layers in {groups} groups and sharing={config.sharing}"
            )
        steps = []
        for layer in range(depth):
            group = layer * groups // depth  # contiguous runs, in integers
            for i in range(inner):
                a = (layer if config.sharing == "ffn" else group) * inner + i
                f = (layer if config.sharing == "attention" else group) * inner + i
                own = self.own[layer * layers // depth * inner + i] if config.is_relaxed else None
                steps.append((self.attention[a], self.ffn[f], own))
        return steps
