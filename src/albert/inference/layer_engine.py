"""Engines whose layers something else than torch runs: what ONNX Runtime and OpenVINO have in common.

Tokens stay packed; only attention lays them out in rows. Embedding and heads, a few percent of the work, are the torch
modules themselves, so there is one set of them. The layers are one graph, a call for a batch: a call for every layer
cost a short text up to a third of its time (docs/lab_log.md). One layer alone is compiled where texts leave early.
Shapes are rounded up to a few sizes, because the caches of both runtimes keep something for every shape that they meet
(onnxruntime#9313, openvino#15831). The last layer computes the class positions alone where nothing else is wanted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from albert.batch import Ints, rounded
from albert.errors import UsageError
from albert.hardware import count_threads
from albert.inference.int8 import FULL, SAFE, has_vnni
from albert.inference.layer_graph import Blocks
from albert.inference.torch_engine import TorchEngine
from albert.model import Albert, Packed
from albert.model.encoder import Attention, FeedForward

Floats = npt.NDArray[np.float32]
Feeds = dict[str, np.ndarray]
Compiled = Callable[[Feeds], Floats]  # a layer: the arrays of `Layout.feeds` to states [R, H]


@dataclass(frozen=True)
class Layout:
    """Where tokens stand in rows for attention, and which are gone on with in the end, as arrays of rounded shapes."""

    keys: Ints  # [B, S] places of the tokens of each text; its queries too, in all layers but the last
    bias: Floats  # [B, 1, 1, S] 0 at tokens, -10000 past the end
    back: Ints  # [T] the place of each token among the rows
    rows: Ints  # [R] tokens that the last layer goes on with
    queries: Ints  # [B, Q] the tokens of each text that it asks for
    last_back: Ints  # [R] the place of each among these

    def feeds(self, states: Floats) -> Feeds:
        """Return the inputs of the layers by name."""
        return {"states": states} | vars(self)


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
    back = np.zeros(rounded(tokens), dtype=np.int64)
    back[:tokens] = np.repeat(np.arange(len(own)), own) * longest + np.arange(tokens) - np.repeat(starts, own)
    if not first:
        return Layout(keys, bias, back, np.arange(rounded(tokens)), keys, back)
    rows = np.zeros(texts, dtype=np.int64)
    rows[: len(own)] = starts
    return Layout(keys, bias, back, rows, rows[:, None], np.arange(texts))


class LayerEngine(TorchEngine, ABC):
    """A model whose layers something else than torch runs."""

    def __init__(self, model: Albert, *, precision: str) -> None:
        super().__init__(model)
        if model.config.is_relaxed:
            raise UsageError("layers with parameters of their own per depth (norm_per_depth, adapter_rank): use torch")
        if model.device.type != "cpu":
            raise UsageError(f"the model is on {model.device.type}, and this engine runs on the CPU: use torch")
        self.precision = precision
        self._all = self._compiled(self._blocks)
        self._single: dict[tuple[int, int], Compiled] = {}  # layers by themselves, where somebody asked for them

    def _compiled(self, steps: Sequence[tuple[nn.Module, nn.Module, nn.Module | None]]) -> Compiled:
        blocks = []
        for attention, ffn, _ in steps:
            assert isinstance(attention, Attention)
            assert isinstance(ffn, FeedForward)
            blocks.append((attention, ffn))
        return self.compile(blocks, largest=FULL if has_vnni() else SAFE, threads=count_threads())

    @contextmanager
    def threads(self) -> Iterator[None]:
        """Leave torch one thread: its others would wait for work by spinning, on the cores that run the layers.

        A short text of tiny-en's shape took 8.0 ms so, not 2.8, in ONNX Runtime, and 5.0, not 3.2, in OpenVINO.
        """
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    @abstractmethod
    def compile(self, blocks: Blocks, *, largest: int, threads: int) -> Compiled:
        """Make layers ready to run, one after the other."""

    def states(self, packed: Packed, *, first: bool) -> Tensor:
        """Run all layers: [T, H], or [B, H] of the first tokens alone."""
        layout = lay_out(packed.lengths, first=first)
        states = self._all(layout.feeds(_padded(self.model.encoder.embed(packed), layout)))
        return torch.from_numpy(states[: len(packed.lengths) if first else sum(packed.lengths)])

    def step(self, number: int, x: Tensor, packed: Packed) -> Tensor:
        """Run one layer, counted from 0: [T, H] → [T, H]."""
        attention, ffn, _ = self._blocks[number]
        key = (id(attention), id(ffn))
        if key not in self._single:
            self._single[key] = self._compiled([self._blocks[number]])
        layout = lay_out(packed.lengths, first=False)
        return torch.from_numpy(self._single[key](layout.feeds(_padded(x, layout)))[: len(x)])


def _padded(x: Tensor, layout: Layout) -> Floats:
    padded = np.zeros((len(layout.back), x.shape[1]), dtype=np.float32)
    padded[: len(x)] = x.numpy()
    return padded
