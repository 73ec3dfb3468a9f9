"""How far each layer moves its input: Figure 1 of the paper, on any model and text.

For every layer, the mean over tokens of the L2 distance between its input and its output, and of the angle between
them in degrees. The input of the first layer is the projected embedding.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from albert.data.settings import ExampleSettings
from albert.data.store import TokenStore
from albert.data.stream import BatchStream
from albert.hardware import find_device
from albert.model import Albert, Packed
from albert.pretrain.held_out import FIXED_SEED

EXAMPLES, LENGTH = 64, 128


@dataclass(frozen=True)
class LayerChanges:
    """The change from layer to layer, one value per layer."""

    distances: tuple[float, ...]  # L2
    angles: tuple[float, ...]  # degrees
    sizes: tuple[float, ...]  # L2 norm of the outputs

    @property
    def roughness(self) -> float:
        """Return how much the distance differs from one layer to the next, as a share of their mean."""
        steps = [abs(b - a) for a, b in zip(self.distances[1:-1], self.distances[2:], strict=True)]
        return mean(steps) / mean(self.distances[1:]) if steps else 0.0  # the first layer leaves the embedding

    @property
    def last_change(self) -> float:
        """Return the last layer's distance as a share of the size of its output: 0 at a fixed point."""
        return self.distances[-1] / self.sizes[-1]

    def to_json(self) -> dict[str, Any]:
        """Return the values and both figures."""
        return asdict(self) | {"roughness": self.roughness, "last_change": self.last_change}


@torch.no_grad()
def measure_layers(model: Albert, store: TokenStore, *, examples: int = EXAMPLES) -> LayerChanges:
    """Measure a model on fixed segment pairs of a store, masked as the paper masks."""
    device = torch.device(find_device())
    model = model.to(device).eval()
    length = min(LENGTH, model.config.max_position_embeddings)
    stream = BatchStream(store, ExampleSettings(max_length=length, seed=FIXED_SEED), batch_size=1)
    batch = stream.samples(0, np.arange(min(examples, stream.epoch_size(0))))
    packed = Packed.from_batch(batch, device)
    x = model.encoder.embeddings(packed)
    if model.encoder.projection is not None:
        x = model.encoder.projection(x)
    distances, angles, sizes = [], [], []
    for output in model(packed, all_layers=True).layers:
        distances.append((output - x).norm(dim=-1).mean().item())
        cosine = F.cosine_similarity(output, x, dim=-1).clamp(-1, 1)
        angles.append(torch.rad2deg(torch.acos(cosine)).mean().item())
        sizes.append(output.norm(dim=-1).mean().item())
        x = output
    return LayerChanges(tuple(distances), tuple(angles), tuple(sizes))
