"""Which matrices int8 hurts: each one alone in int8, on the user's own texts, and what the answers lose.

A shared matrix is applied L times, and so is its error; in ALBERTs the feed-forward is the usual weak spot. Sensitive
matrices stay in fp32: the worst first, until the error, or the score on dev where there is one, is small enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from albert.batch import Batch
from albert.export.check import Recorded, relative_error
from albert.inference.int8 import EXPORTED, SAFE, matrices, quantise
from albert.inference.torch_engine import TorchEngine
from albert.model import Albert

LIMIT = 0.1  # of the error of the answers, where no dev set decides


@dataclass(frozen=True)
class Kept:
    """The matrices that stay in fp32, the error of each alone in int8, the error with all others in int8."""

    kept: tuple[str, ...]
    alone: dict[str, float]
    error: float
    score: float | None = None


class _Int8Like(nn.Module):
    """A linear layer that computes in fp32 what int8 gives, on any machine."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = _as_int8(linear.weight), linear.bias

    def forward(self, x: Tensor) -> Tensor:
        scale = x.abs().amax(dim=-1, keepdim=True).clamp_min(1e-12) / 127
        return nn.functional.linear((x / scale).round() * scale, self.weight, self.bias)


def _as_int8(weight: Tensor, *, largest: int = SAFE) -> Tensor:
    small, scales = quantise(weight.detach().float().numpy(), largest=largest)
    return torch.from_numpy(small * scales[:, None])


@contextmanager
def in_int8(model: Albert, names: Sequence[str]) -> Iterator[Albert]:
    """Let a model compute as if some matrices were int8, for a while."""
    encoder = model.encoder
    linears = [module for matrix, module in matrices(model) if matrix in names]
    linears += [name for name in ("projection", "pooler") if name in names and getattr(encoder, name) is not None]
    before = {module: encoder.get_submodule(module) for module in linears}
    word = encoder.embeddings.word.weight
    original = word.data
    try:
        for module, linear in before.items():
            assert isinstance(linear, nn.Linear)
            encoder.set_submodule(module, _Int8Like(linear))
        if "word" in names:
            word.data = _as_int8(original, largest=127)
        yield model
    finally:
        word.data = original
        for module, linear in before.items():
            encoder.set_submodule(module, linear)


def find_sensitive(
    model: Albert, batches: Sequence[Batch], *, score: Callable[[], float] | None = None, least: float = 0.0
) -> Kept:
    """Measure each matrix, and keep the worst in fp32 until the score is at least `least`, or the error small."""
    plain = TorchEngine(model)
    said = Recorded(plain, batches)

    def error(names: Sequence[str]) -> float:
        with in_int8(model, names):
            return relative_error(plain, said, batches)

    alone = {name: error([name]) for name in EXPORTED}
    kept: list[str] = []
    for worst in [*sorted(alone, key=lambda name: -alone[name]), None]:
        names = [name for name in EXPORTED if name not in kept]
        found = error(names)
        with in_int8(model, names):
            points = score() if score is not None else None
        good = found <= LIMIT if points is None else points >= least
        if good or worst is None or len(kept) == len(EXPORTED) - 1:
            break
        kept.append(worst)
    return Kept(tuple(kept), alone, found, points)
