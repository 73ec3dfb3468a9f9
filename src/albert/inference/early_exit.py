"""Early exit: a text leaves between two layers when its answer is settled, and the rest of the batch is packed anew.

Layers share their weights, and a model tuned with `--early-exit` its pooler and head too: they stand on every depth. By
patience a text leaves when its answer was the same at so many further layers (PABEE, Zhou et al. 2020; a number: when
it moved by less than 0.1 in the model's own scale), by confidence when its answer is as probable as asked. What is said
of a text does not depend on its neighbours. Knows the classifier head and nothing of tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch

from albert.batch import Batch, Said, Wanted
from albert.errors import UsageError
from albert.inference.torch_engine import TorchEngine
from albert.model import AlbertConfig, Packed

HEAD = "classifier"
SETTLED = 0.1  # of the model's scale: how far a number may move and count as the same
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class ExitRule:
    """When a text leaves: `patience=3`, `confidence=0.95`."""

    kind: Literal["patience", "confidence"]
    value: float

    @classmethod
    def parse(cls, words: str) -> ExitRule:
        """Read a rule."""
        kind, _, number = words.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = 0.0
        if kind == "patience" and value >= 1 and value.is_integer():
            return cls("patience", value)
        if kind == "confidence" and 0 < value <= 1:
            return cls("confidence", value)
        raise UsageError(f"exit {words!r}: write patience=3 (whole layers), or confidence=0.95 (up to 1)")


class _Watch:
    """What is known of the texts that are still in."""

    def __init__(self, rule: ExitRule, config: AlbertConfig, texts: int) -> None:
        self._rule, self._problem = rule, config.problem_type
        if self._problem is None and len(config.labels) == 1:
            self._problem = "regression"
        if self._problem == "regression" and rule.kind == "confidence":
            raise UsageError("exit by confidence: a number has none: use patience")
        self._before: Floats | None = None
        self._same = np.zeros(texts, dtype=np.int64)

    def settled(self, logits: Floats) -> npt.NDArray[np.bool_]:
        """Tell which texts are done after a layer that said these logits [texts, labels]."""
        if self._rule.kind == "confidence":
            return self._sure(logits) >= self._rule.value
        same = self._agrees(logits) if self._before is not None else np.zeros(len(logits), dtype=np.bool_)
        self._same = np.where(same, self._same + 1, 0)
        self._before = logits
        return self._same >= self._rule.value

    def keep(self, rows: npt.NDArray[np.int64]) -> None:
        """Go on with some of the texts."""
        self._same = self._same[rows]
        self._before = None if self._before is None else self._before[rows]

    def _agrees(self, logits: Floats) -> npt.NDArray[np.bool_]:
        assert self._before is not None
        if self._problem == "regression":
            same = np.abs(logits - self._before).max(axis=1) < SETTLED
        elif self._problem == "multi_label_classification":
            same = ((logits > 0) == (self._before > 0)).all(axis=1)
        else:
            same = logits.argmax(axis=1) == self._before.argmax(axis=1)
        return np.asarray(same, dtype=np.bool_)

    def _sure(self, logits: Floats) -> Floats:
        if self._problem == "multi_label_classification":
            sure: Floats = (1 / (1 + np.exp(-np.abs(logits)))).min(axis=1)
        else:
            sure = 1 / np.exp(logits - logits.max(axis=1, keepdims=True)).sum(axis=1)
        return sure


class EarlyExitEngine:
    """An engine whose texts leave early where the classifier alone is wanted."""

    def __init__(self, engine: TorchEngine, rule: ExitRule) -> None:
        _Watch(rule, engine.config, 0)  # refuses what does not fit
        self._engine, self._rule = engine, rule
        self.layers: Counter[int] = Counter()  # texts by the layers that they took

    @property
    def name(self) -> str:
        """Return what `--engine` calls it."""
        return self._engine.name

    @property
    def config(self) -> AlbertConfig:
        """Return the shape of the model."""
        return self._engine.config

    @property
    def heads(self) -> Sequence[str]:
        """Return the names of its heads."""
        return self._engine.heads

    @property
    def mean_layers(self) -> float:
        """Return the layers that a text took, on average."""
        return sum(depth * count for depth, count in self.layers.items()) / max(1, self.layers.total())

    def run(self, batch: Batch, wanted: Wanted) -> list[Said]:
        """Return what the wanted heads say of each text."""
        if dict(wanted) != {HEAD: "class"}:
            return self._engine.run(batch, wanted)
        with self._engine.threads():
            return [{HEAD: (row,)} for row in self._classify(batch)]

    @torch.inference_mode()
    def _classify(self, batch: Batch) -> Floats:
        model, encoder = self._engine.model, self._engine.model.encoder
        packed = Packed.from_batch(batch, model.device)
        x, left = encoder.embed(packed), np.arange(len(batch.lengths))
        watch, depth = _Watch(self._rule, self.config, len(left)), len(encoder.steps())
        said: Floats | None = None
        for layer in range(depth):
            x = self._engine.step(layer, x, packed)
            logits: Floats = model.heads[HEAD](encoder.pool(x, packed)).float().cpu().numpy()
            said = np.zeros((len(left), logits.shape[1]), dtype=np.float32) if said is None else said
            done = watch.settled(logits) if layer < depth - 1 else np.ones(len(left), dtype=np.bool_)
            said[left[done]] = logits[done]
            self.layers[layer + 1] += int(done.sum())
            if done.all():
                break
            if done.any():
                rows = np.flatnonzero(~done)
                packed, tokens = packed.restrict(rows.tolist())
                x, left = x.index_select(0, tokens), left[rows]
                watch.keep(rows)
        assert said is not None
        return said
