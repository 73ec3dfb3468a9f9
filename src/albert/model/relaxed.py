"""What a depth may have of its own on a shared layer: norms, and low-rank adapters on query and value.

Relaxed sharing, beyond the paper (as in Relaxed Recursive Transformers, arXiv 2410.20672): next to no parameters, and
the layers need not all do the same. A new adapter adds nothing: the model starts as the shared one. Transformers has
no class for it, so such folders are marked as ours. Legend: T tokens, H hidden, R rank.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from albert.model.config import AlbertConfig
from albert.model.norm import LayerNorm


class OwnParameters(nn.Module):
    """The norms and adapters of one depth; each None where the configuration has none."""

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__()
        width, rank = config.hidden_size, config.adapter_rank
        norms, adapters = config.norm_per_depth, rank > 0
        self.attention_norm = LayerNorm(width, eps=config.layer_norm_eps) if norms else None
        self.ffn_norm = LayerNorm(width, eps=config.layer_norm_eps) if norms else None
        self.query_down = nn.Linear(width, rank, bias=False) if adapters else None
        self.query_up = nn.Linear(rank, width, bias=False) if adapters else None
        self.value_down = nn.Linear(width, rank, bias=False) if adapters else None
        self.value_up = nn.Linear(rank, width, bias=False) if adapters else None

    def adapt(self, x: Tensor, query: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Add what this depth asks and tells otherwise: [T, H] each."""
        if self.query_down is None or self.query_up is None or self.value_down is None or self.value_up is None:
            return query, value
        return query + self.query_up(self.query_down(x)), value + self.value_up(self.value_down(x))

    @torch.no_grad()
    def start_as_shared(self) -> None:
        """Make the adapters add nothing."""
        for up in (self.query_up, self.value_up):
            if up is not None:
                nn.init.zeros_(up.weight)
