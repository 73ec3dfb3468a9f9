"""Engines that run one compiled layer again and again: what ONNX Runtime and OpenVINO have in common.

Tokens stay packed; only attention lays them out in rows. Embedding and heads, a few percent of the work, are the torch
modules themselves, so there is one set of them. Each different layer is compiled once: one for a model that shares all.
Shapes are rounded up to a few sizes, because the caches of both runtimes keep something for every shape that they meet
(onnxruntime#9313, openvino#15831). The last layer computes the class positions alone where nothing else is wanted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from albert.batch import Ints, rounded
from albert.errors import UsageError
from albert.hardware import count_threads
from albert.inference.int8 import FULL, SAFE, has_vnni
from albert.inference.torch_engine import TorchEngine
from albert.model import Albert, Packed
from albert.model.encoder import Attention, FeedForward

Floats = npt.NDArray[np.float32]
Feeds = dict[str, np.ndarray]
Compiled = Callable[[Feeds], Floats]  # a layer: the arrays of `Layout.feeds` to states [R, H]


@dataclass(frozen=True)
class Layout:
    """Where tokens stand in rows for attention, and which of them a layer goes on with, as arrays of rounded shapes."""

    rows: Ints  # [R] tokens that are gone on with
    queries: Ints  # [B, Q] places among these
    keys: Ints  # [B, S] places among all tokens
    bias: Floats  # [B, 1, 1, S] 0 at tokens, -10000 past the end
    back: Ints  # [R] the place of each token among the rows' queries

    def feeds(self, states: Floats) -> Feeds:
        """Return the inputs of a layer by name."""
        return {"states": states} | {name: getattr(self, name) for name in ("rows", "queries", "keys", "bias", "back")}


def lay_out(lengths: Sequence[int], *, first: bool) -> Layout:
    """Lay texts out; `first`: only their first tokens are gone on with."""
    own = np.array(lengths)
    starts, tokens = np.cumsum(own) - own, int(own.sum())
    texts, longest = rounded(len(own)), rounded(int(own.max()))
    place = np.minimum(np.arange(longest), own[:, None] - 1) + starts[:, None]
    keys = np.zeros((texts, longest), dtype=np.int64)
    keys[: len(own)] = place
    bias = np.zeros((texts, 1, 1, longest), dtype=np.float32)
    bias[: len(own), 0, 0] = np.where(np.arange(longest) < own[:, None], 0.0, -10000.0)
    if first:
        rows, back = np.zeros(texts, dtype=np.int64), np.arange(texts)
        rows[: len(own)] = starts
        return Layout(rows, np.arange(texts)[:, None], keys, bias, back)
    back = np.zeros(rounded(tokens), dtype=np.int64)
    back[:tokens] = np.repeat(np.arange(len(own)), own) * longest + np.arange(tokens) - np.repeat(starts, own)
    return Layout(np.arange(rounded(tokens)), keys, keys, bias, back)


class LayerEngine(TorchEngine, ABC):
    """A model whose layers something else than torch runs."""

    def __init__(self, model: Albert, *, precision: str) -> None:
        super().__init__(model)
        if model.config.is_relaxed:
            raise UsageError("layers with parameters of their own per depth (norm_per_depth, adapter_rank): use torch")
        if model.device.type != "cpu":
            raise UsageError(f"the model is on {model.device.type}, and this engine runs on the CPU: use torch")
        largest = FULL if has_vnni() else SAFE
        compiled: dict[tuple[int, int], Compiled] = {}
        self._steps: list[Compiled] = []
        for attention, ffn, _ in model.encoder.steps():
            assert isinstance(attention, Attention)
            assert isinstance(ffn, FeedForward)
            key = (id(attention), id(ffn))
            if key not in compiled:
                compiled[key] = self.compile(
                    attention, ffn, precision=precision, largest=largest, threads=count_threads()
                )
            self._steps.append(compiled[key])

    @abstractmethod
    def compile(
        self, attention: Attention, ffn: FeedForward, *, precision: str, largest: int, threads: int
    ) -> Compiled:
        """Make a layer ready to run."""

    def states(self, packed: Packed, *, first: bool) -> Tensor:
        """Run all layers: [T, H], or [B, H] of the first tokens alone."""
        every = lay_out(packed.lengths, first=False)
        padded, tokens = _padded(self.model.encoder.embed(packed), every), sum(packed.lengths)
        last = lay_out(packed.lengths, first=True) if first else every
        for layer in self._steps[:-1]:
            padded = layer(every.feeds(padded))
        padded = self._steps[-1](last.feeds(padded))
        return torch.from_numpy(padded[: len(packed.lengths) if first else tokens])

    def step(self, number: int, x: Tensor, packed: Packed) -> Tensor:
        """Run one layer, counted from 0: [T, H] → [T, H]."""
        every = lay_out(packed.lengths, first=False)
        return torch.from_numpy(self._steps[number](every.feeds(_padded(x, every)))[: len(x)])


def _padded(x: Tensor, layout: Layout) -> Floats:
    padded = np.zeros((len(layout.rows), x.shape[1]), dtype=np.float32)
    padded[: len(x)] = x.numpy()
    return padded
