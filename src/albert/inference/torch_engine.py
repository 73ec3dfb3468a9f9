"""The engine that is PyTorch: on any device, with any sharing, at any precision that the weights have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from albert.batch import STATES, Batch, Positions, Said, Wanted, places_of
from albert.model import HEADS, Albert, AlbertConfig, Packed
from albert.model.encoder import Encoded
from albert.model.heads import ConditionalSpanHead

Arrays = tuple[np.ndarray, ...]


class TorchEngine:
    """Runs the modules as they are, and sees the weights change when they are trained on."""

    def __init__(self, model: Albert) -> None:
        self.model = model.eval()

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
        return self._said(self.model(packed), packed, wanted)

    @torch.inference_mode()
    def run_layers(self, batch: Batch, wanted: Wanted) -> list[list[Said]]:
        """Return for every layer what the wanted heads would say of each text, were it the last."""
        packed = Packed.from_batch(batch, self.model.device)
        layers = self.model(packed, all_layers=True).layers
        pool = self.model.encoder.pool
        return [self._said(Encoded(states, pool(states, packed), ()), packed, wanted) for states in layers]

    def _said(self, encoded: Encoded, packed: Packed, wanted: Wanted) -> list[Said]:
        said = {head: self._say(head, encoded, packed, positions) for head, positions in wanted.items()}
        return [dict(zip(said, own, strict=True)) for own in zip(*said.values(), strict=True)]

    def _say(self, head: str, encoded: Encoded, packed: Packed, positions: Positions) -> list[Arrays]:
        """Return what one head says of each text."""
        if head != STATES and HEADS[head].pooled:
            assert positions == "class", f"{head} stands on [CLS]"
            return [(row,) for row in _to_numpy(self.model.heads[head](encoded.pooled))]
        places = places_of(packed.lengths, positions)
        if head == "conditional_span":
            return self._beam(encoded, packed, places)
        rows = self._rows(head, encoded, None if positions == "tokens" else torch.from_numpy(places))
        counts = [len(own) for own in positions] if not isinstance(positions, str) else packed.lengths
        if positions == "class":
            counts = [1] * len(packed.lengths)
        return [(own,) for own in np.split(rows, np.cumsum(counts)[:-1])]

    def _rows(self, head: str, encoded: Encoded, places: Tensor | None) -> np.ndarray:
        """Return what a head says of some tokens, or of all: [P, …]."""
        if head == "mlm":
            places = torch.arange(len(encoded.states), device=self.model.device) if places is None else places
            return _to_numpy(self.model.mlm_logits(encoded, places))
        states = encoded.states if places is None else encoded.states.index_select(0, places)
        return _to_numpy(states if head == STATES else self.model.heads[head](states))

    def _beam(self, encoded: Encoded, packed: Packed, places: np.ndarray) -> list[Arrays]:
        head = self.model.heads["conditional_span"]
        assert isinstance(head, ConditionalSpanHead)
        allowed = np.zeros(sum(packed.lengths), dtype=np.bool_)
        allowed[places] = True
        beam = head.beam(encoded.states, packed, allowed=torch.from_numpy(allowed).to(self.model.device))
        values = (beam.start_scores, beam.starts, beam.end_scores, beam.ends, beam.no_answer)
        return list(zip(*map(_to_numpy, values), strict=True))


def _to_numpy(values: Tensor) -> np.ndarray:
    array: np.ndarray = (values.float() if values.is_floating_point() else values).cpu().numpy()
    return array
