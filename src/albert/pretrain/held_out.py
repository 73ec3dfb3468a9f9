"""Scores of a pre-trained model on held-out text: the intrinsic columns of Table 5.

Masked-word accuracy, sentence-order accuracy and next-sentence accuracy, each on fixed examples: the same seed and
epoch and the paper's masking always, so two models, two moments of a run, and runs that mask otherwise are compared on
the same questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from albert.batch import Ints, PretrainingBatch
from albert.data.settings import ExampleSettings, Objective
from albert.data.store import TokenStore
from albert.data.stream import BatchStream
from albert.model import Albert, Packed
from albert.model.kernels import count_right
from albert.train.world import World

FIXED_SEED = 1909_11942
BATCH_TOKENS = 8192


class IntrinsicEvaluation:
    """Fixed held-out examples, and the scores of a model on them."""

    def __init__(self, store: TokenStore, *, max_length: int, examples: int, world: World) -> None:
        """Choose `examples` pairs of each objective (fewer if the store has fewer)."""
        self._world = world
        size = max(1, BATCH_TOKENS // max_length)
        self._streams = {
            objective: BatchStream(
                store, ExampleSettings(max_length=max_length, seed=FIXED_SEED, objective=objective), batch_size=size
            )
            for objective in _objectives(store)
        }
        self._examples, self._vocab_size = examples, store.tokenizer.vocab_size

    @property
    def num_examples(self) -> dict[Objective, int]:
        """Count the examples of each objective."""
        return {name: min(self._examples, stream.epoch_size(0)) for name, stream in self._streams.items()}

    def count_labelled(self) -> dict[Objective, int]:
        """Count the examples of each objective that have a label: a chunk of one sentence has none."""
        return {
            name: sum(int((batch.order_labels >= 0).sum()) for batch in self._batches(name)) for name in self._streams
        }

    @torch.no_grad()
    def score(
        self, model: Albert, *, depth: int | None = None, observe: Callable[[float], None] = lambda _: None
    ) -> dict[str, float]:
        """Return MLM loss and accuracy, SOP and NSP accuracy, over all processes; `observe` hears the share done."""
        training = model.training
        model.eval()
        sums: dict[str, float] = {}
        done, total = 0, sum(self.num_examples.values())
        for objective in self._streams:
            for batch in self._batches(objective):
                _add(sums, _score_batch(model, batch, objective, depth=depth))
                done += batch.lengths.size * self._world.size
                observe(min(done / total, 1.0))
        names = sorted(
            ["mlm_loss", "mlm_right", "mlm_count", *(f"{o}_{k}" for o in self._streams for k in ("right", "count"))]
        )
        totals = dict(zip(names, self._world.sum([sums.get(name, 0.0) for name in names]), strict=True))
        model.train(training)
        scores = {}
        if "mlm" in model.heads:
            scores["mlm_loss"] = totals["mlm_loss"] / max(totals["mlm_count"], 1)
            scores["mlm_accuracy"] = totals["mlm_right"] / max(totals["mlm_count"], 1)
        if "order" in model.heads:
            for objective in self._streams:
                scores[f"{objective}_accuracy"] = totals[f"{objective}_right"] / max(totals[f"{objective}_count"], 1)
        return scores

    def baseline(self) -> dict[str, float]:
        """Return the scores of the baseline: always the most frequent masked piece, always the more frequent order."""
        scores = {}
        for objective in self._streams:
            batches = list(self._batches(objective))
            scores[f"{objective}_accuracy"] = self._most_frequent([batch.order_labels for batch in batches], kinds=2)
            if objective == "sop":
                labels = [batch.masked_labels for batch in batches]
                scores["mlm_accuracy"] = self._most_frequent(labels, kinds=self._vocab_size)
        return scores

    def _most_frequent(self, labels: Sequence[Ints], *, kinds: int) -> float:
        """Return the share of the most frequent label, over all processes; -1 is none."""
        own = np.concatenate([*labels, np.empty(0, dtype=np.int64)])
        counts = self._world.sum(np.bincount(own[own >= 0], minlength=kinds).tolist())
        return max(counts) / max(sum(counts), 1)

    def _batches(self, objective: Objective) -> Iterator[PretrainingBatch]:
        """Return this process's share of the fixed examples."""
        stream = self._streams[objective]
        count, size = self.num_examples[objective], stream.batch_size
        for first in range(self._world.rank * size, count, self._world.size * size):
            yield stream.samples(0, np.arange(first, min(first + size, count)))


def _objectives(store: TokenStore) -> list[Objective]:
    return ["sop", "nsp"] if store.num_documents > 1 else ["sop"]


def _score_batch(
    model: Albert, batch: PretrainingBatch, objective: Objective, *, depth: int | None
) -> dict[str, float]:
    device = model.device
    encoded = model(Packed.from_batch(batch, device), depth=depth)
    sums: dict[str, float] = {}
    if objective == "sop" and "mlm" in model.heads and batch.masked_positions.size:
        labels = torch.from_numpy(batch.masked_labels).to(device)
        loss, right = model.mlm_loss(encoded, torch.from_numpy(batch.masked_positions).to(device), labels)
        sums["mlm_loss"], sums["mlm_right"] = loss.item(), float(right)
        sums["mlm_count"] = float(labels.numel())
    if "order" in model.heads:
        labels = torch.from_numpy(batch.order_labels).to(device)
        right = count_right(model.heads["order"](encoded.pooled), labels)
        sums |= {f"{objective}_right": float(right), f"{objective}_count": float((labels >= 0).sum())}
    return sums


def _add(sums: dict[str, float], more: dict[str, float]) -> None:
    for name, value in more.items():
        sums[name] = sums.get(name, 0.0) + value
