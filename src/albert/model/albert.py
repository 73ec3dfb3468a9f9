"""A model: the encoder and any set of heads on it.

`HEADS` says what each head is called, whether it needs the pooler, and how it is built. A new model is drawn from a
truncated normal (Google's initialisation) with a generator of its own. Knows nothing of files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from albert.batch import Batch
from albert.errors import UsageError, did_you_mean
from albert.model.config import AlbertConfig
from albert.model.encoder import Attention, Encoded, Encoder
from albert.model.heads import (
    ConditionalSpanHead,
    MaskedLMHead,
    OrderHead,
    PooledHead,
    SpanHead,
    TagHead,
)
from albert.model.packing import Packed
from albert.model.relaxed import OwnParameters

WORD_SIZE = 0.1  # root mean square of word embeddings that start from given vectors


@dataclass(frozen=True)
class HeadKind:
    """How a head is built, and whether it stands on the pooled [CLS]."""

    build: Callable[[AlbertConfig], nn.Module]
    pooled: bool


HEADS: dict[str, HeadKind] = {
    "mlm": HeadKind(MaskedLMHead, pooled=False),
    "order": HeadKind(OrderHead, pooled=True),
    "classifier": HeadKind(lambda config: PooledHead(config, outputs=len(config.labels)), pooled=True),
    "choice": HeadKind(lambda config: PooledHead(config, outputs=1), pooled=True),
    "tags": HeadKind(TagHead, pooled=False),
    "span": HeadKind(SpanHead, pooled=False),
    "conditional_span": HeadKind(ConditionalSpanHead, pooled=False),
}


class Albert(nn.Module):
    """The encoder with the heads asked for."""

    encoder: Encoder
    heads: nn.ModuleDict

    def __init__(self, config: AlbertConfig, heads: Sequence[str] = (), *, pooler: bool | None = None) -> None:
        """Build without initialising; `pooler` defaults to what the heads need (and to True without heads)."""
        super().__init__()
        for name in heads:
            if name not in HEADS:
                raise UsageError(f"head '{name}' is unknown: {did_you_mean(name, HEADS)}")
        self.config = config
        if pooler is None:
            pooler = not heads or any(HEADS[name].pooled for name in heads)
        self.encoder = Encoder(config, pooler=pooler)
        self.heads = nn.ModuleDict({name: HEADS[name].build(config) for name in heads})

    def forward(self, batch: Batch | Packed, *, depth: int | None = None, all_layers: bool = False) -> Encoded:
        """Encode a batch."""
        if isinstance(batch, Batch):
            _check_range(batch, self.config)
            batch = Packed.from_batch(batch, self.device)
        return self.encoder(batch, depth=depth, all_layers=all_layers)

    def mlm_logits(self, encoded: Encoded, positions: Tensor) -> Tensor:
        """Score the vocabulary at some positions: [P] → [P, V]."""
        return self.heads["mlm"](encoded.states, positions, self.encoder.embeddings.word.weight)

    def mlm_loss(self, encoded: Encoded, positions: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return the cross-entropy of the vocabulary summed over some positions, and how many are right."""
        head, words = self.heads["mlm"], self.encoder.embeddings.word.weight
        assert isinstance(head, MaskedLMHead)
        return head.loss(encoded.states, positions, words, labels)

    @property
    def device(self) -> torch.device:
        """Return the device of the parameters."""
        return self.encoder.embeddings.word.weight.device


def _check_range(batch: Batch, config: AlbertConfig) -> None:
    """Refuse ids that have no embedding; on a GPU the index would end the process."""
    for what, ids, size, fix in (
        ("token id", batch.token_ids, config.vocab_size, "use the tokenizer of this model"),
        ("segment", batch.segment_ids, config.type_vocab_size, "0 is the first segment, 1 the second"),
    ):
        if (wrong := np.flatnonzero((ids < 0) | (ids >= size))).size:
            text = np.searchsorted(batch.starts, wrong[0], side="right")
            raise UsageError(f"{what} {ids[wrong[0]]} in text {text}: must be from 0 to {size - 1}: {fix}")


def new_model(config: AlbertConfig, heads: Sequence[str] = (), *, seed: int = 0, pooler: bool | None = None) -> Albert:
    """Build a model and draw its weights."""
    model = Albert(config, heads, pooler=pooler)
    initialise(model, config.initializer_range, generator=torch.Generator().manual_seed(seed))
    return model.eval()


@torch.no_grad()
def initialise(module: nn.Module, std: float, *, generator: torch.Generator) -> None:
    """Draw weights from a normal cut at two deviations; biases 0, norms 1 and 0."""
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.trunc_normal_(part.weight, std=std, a=-2 * std, b=2 * std, generator=generator)
        elif isinstance(part, nn.LayerNorm):
            nn.init.ones_(part.weight)
        if isinstance(bias := getattr(part, "bias", None), nn.Parameter):
            nn.init.zeros_(bias)
    for part in module.modules():
        if isinstance(part, OwnParameters):
            part.start_as_shared()


def remove_dropout(model: Albert) -> None:
    """Train without dropout from now on, as the paper's largest model at the end (section 4.7)."""
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
        elif isinstance(part, Attention):
            part.attention_dropout = 0.0


@torch.no_grad()
def init_sinusoidal_positions(model: Albert) -> None:
    """Start the position embeddings as sines and cosines of 2π to 200π positions instead of noise, at the same size.

    Neighbours then look alike from the first step, so that attention to a neighbour is one pattern to learn and not one
    a position; and a position that was never seen is like those beside it, which matters when the length grows.
    """
    weight = model.encoder.embeddings.position.weight
    places = torch.arange(weight.shape[0], device=weight.device)
    dimensions = torch.arange(0, weight.shape[1], 2, device=weight.device)
    angles = places.unsqueeze(1) * torch.exp(-math.log(100) * dimensions / weight.shape[1])  # [positions, E / 2]
    both = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)  # in turn: [positions, E], one more if E is odd
    weight.copy_(both[:, : weight.shape[1]] * math.sqrt(2) * model.config.initializer_range)


@torch.no_grad()
def init_words(model: Albert, vectors: Tensor, frequencies: Tensor) -> None:
    """Start the word embeddings from given vectors [V, E], and the masked-word head's bias from frequencies [V].

    A rare piece's vector is short and a common one's long: half of that, on a logarithmic scale, is kept. They are
    larger than noise would be, so that as decoder they make a difference from the first step.
    """
    vectors, frequencies = vectors.to(model.device), frequencies.to(model.device)
    word = model.encoder.embeddings.word.weight
    lengths = vectors.norm(dim=1, keepdim=True)
    seen = lengths.squeeze(1) > 0
    start = vectors[seen] / lengths[seen].sqrt()
    word[seen] = start * (WORD_SIZE / start.pow(2).mean().sqrt())
    shares = (frequencies + 1) / (frequencies + 1).sum()
    bias = model.heads["mlm"].bias
    assert isinstance(bias, nn.Parameter)
    bias.copy_(shares.log() - shares.log().mean())
