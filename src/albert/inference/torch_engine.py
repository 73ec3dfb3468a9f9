"""The engine that is PyTorch: on any device, with any sharing, at any precision that the weights have."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from albert.batch import STATES, Batch, Positions, Said, Wanted, places_of, rounded
from albert.model import HEADS, Albert, AlbertConfig, Packed
from albert.model.encoder import Encoded
from albert.model.heads import ConditionalSpanHead

Arrays = tuple[np.ndarray, ...]


class TorchEngine:
    """Runs the modules as they are, and sees the weights change when they are trained on."""

    name = "torch"

    def __init__(self, model: Albert) -> None:
        self.model = model.eval()
        self._blocks = model.encoder.steps()

    @property
    def config(self) -> AlbertConfig:
        """Return the shape of the model."""
        return self.model.config

    @property
    def heads(self) -> Sequence[str]:
        """Return the names of its heads."""
        return tuple(self.model.heads)

    @torch.inference_mode()
    def run(self, batch: Batch, wanted: Wanted) -> list[Said]:
        """Return what the wanted heads say of each text."""
        packed = Packed.from_batch(batch, self.model.device)
        first = all(positions == "class" for positions in wanted.values()) and not self.config.is_relaxed
        with self.threads():
            return self._said(self.states(packed, first=first), packed, wanted, first=first)

    def threads(self) -> AbstractContextManager[None]:
        """Return what a call holds while it runs: here torch has all threads."""
        return nullcontext()

    @torch.inference_mode()
    def run_layers(self, batch: Batch, wanted: Wanted) -> list[list[Said]]:
        """Return for every layer what the wanted heads would say of each text, were it the last."""
        packed = Packed.from_batch(batch, self.model.device)
        layers = self.model(packed, all_layers=True).layers
        return [self._said(states, packed, wanted, first=False) for states in layers]

    def _said(self, states: Tensor, packed: Packed, wanted: Wanted, *, first: bool) -> list[Said]:
        said = {head: self._say(head, states, packed, positions, first) for head, positions in wanted.items()}
        return [dict(zip(said, own, strict=True)) for own in zip(*said.values(), strict=True)]

    def states(self, packed: Packed, *, first: bool) -> Tensor:
        """Run all layers: [T, H], or [B, H] of the first tokens alone, which the last layer then computes alone."""
        encoder = self.model.encoder
        x = _filled(encoder.embed(packed))
        *before, (attention, ffn, own) = self._blocks
        for step in before:
            x = encoder.layer(x, packed, *step)
        if first:
            return encoder.class_layer(x, packed, attention, ffn)
        return encoder.layer(x, packed, attention, ffn, own)[: packed.token_ids.shape[0]]

    def step(self, number: int, x: Tensor, packed: Packed) -> Tensor:
        """Run one layer, counted from 0: [T, H] → [T, H]."""
        return self.model.encoder.layer(_filled(x), packed, *self._blocks[number])[: len(x)]

    def _say(self, head: str, states: Tensor, packed: Packed, positions: Positions, first: bool) -> list[Arrays]:
        """Return what one head says of each text; `first`: states are of the first tokens alone."""
        if head != STATES and HEADS[head].pooled:
            assert positions == "class", f"{head} stands on [CLS]"
            pool = self.model.encoder.pool_class
            pooled = pool(states if first else states.index_select(0, packed.starts))
            return [(row,) for row in _to_numpy(self.model.heads[head](pooled))]
        places = places_of(packed.lengths, positions)
        if head == "conditional_span":
            return self._beam(states, packed, places)
        everywhere = first or positions == "tokens"
        rows = self._rows(head, states, None if everywhere else torch.from_numpy(places).to(states.device))
        counts = [len(own) for own in positions] if not isinstance(positions, str) else packed.lengths
        if positions == "class":
            counts = [1] * len(packed.lengths)
        return [(own,) for own in np.split(rows, np.cumsum(counts)[:-1])]

    def _rows(self, head: str, states: Tensor, places: Tensor | None) -> np.ndarray:
        """Return what a head says of some tokens, or of all: [P, …]."""
        if head == "mlm":
            places = torch.arange(len(states), device=states.device) if places is None else places
            return _to_numpy(self.model.mlm_logits(Encoded(states, None, ()), places))
        states = states if places is None else states.index_select(0, places)
        return _to_numpy(states if head == STATES else self.model.heads[head](states))

    def _beam(self, states: Tensor, packed: Packed, places: np.ndarray) -> list[Arrays]:
        head = self.model.heads["conditional_span"]
        assert isinstance(head, ConditionalSpanHead)
        allowed = np.zeros(sum(packed.lengths), dtype=np.bool_)
        allowed[places] = True
        beam = head.beam(states, packed, allowed=torch.from_numpy(allowed).to(self.model.device))
        values = (beam.start_scores, beam.starts, beam.end_scores, beam.ends, beam.no_answer)
        return list(zip(*map(_to_numpy, values), strict=True))


def _filled(x: Tensor) -> Tensor:
    """Return states with rows of zeros up to a rounded number, once, so that no product of a layer need do it."""
    added = rounded(x.shape[0]) - x.shape[0]
    return F.pad(x, (0, 0, 0, added)) if added else x


def _to_numpy(values: Tensor) -> np.ndarray:
    array: np.ndarray = (values.float() if values.is_floating_point() else values).cpu().numpy()
    return array
