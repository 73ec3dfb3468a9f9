"""Pre-training as a job for the training loop: masked n-grams and sentence order (sections 3.1 and 4.1 of the paper).

The steps are divided into phases of one sequence length each; shorter sequences come in larger batches, so that a
step has the same number of tokens throughout. Depth may grow as well, with the same shared weights. A batch is a
function of its step: there is nothing to save.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from albert.batch import MICRO_TOKENS, PretrainingBatch
from albert.data.store import TokenStore
from albert.data.stream import BatchStream
from albert.errors import UsageError
from albert.model import Albert, Packed
from albert.model.albert import remove_dropout
from albert.model.kernels import count_right
from albert.model.losses import cross_entropy
from albert.pretrain.held_out import IntrinsicEvaluation
from albert.pretrain.lessons import Lessons
from albert.pretrain.settings import PretrainSettings, example_settings
from albert.train.loop import MicroLoss
from albert.train.settings import stage_at
from albert.train.world import World


@dataclass(frozen=True)
class _Phase:
    """A run of steps with one sequence length."""

    first: int
    end: int
    length: int
    batch_size: int  # sequences: as many as keep the tokens of a step the same
    read: int = 0  # batches of this length that earlier phases have read


def phases(settings: PretrainSettings) -> list[_Phase]:
    """Divide the steps by sequence length."""
    steps, final = settings.train.steps, settings.data.max_length
    stages = settings.grow.length or [(0.0, final)]
    if stages[-1][1] != final:
        raise UsageError(f"grow.length ends with {stages[-1][1]}, but data.max_length={final}: make them the same")
    firsts = [round(share * steps) for share, _ in stages]
    ends = [*firsts[1:], steps]
    found: list[_Phase] = []
    for (_, length), first, end in zip(stages, firsts, ends, strict=True):
        read = sum(phase.end - phase.first for phase in found if phase.length == length)
        if end > first:
            found.append(_Phase(first, end, length, settings.train.batch_size * final // length, read))
    return found


class PretrainJob:
    """Masked words and sentence order, for the training loop."""

    heavy_tails = False

    def __init__(
        self,
        model: Albert,
        store: TokenStore,
        settings: PretrainSettings,
        *,
        world: World,
        valid: TokenStore | None,
        lessons: Lessons | None = None,
    ) -> None:
        self.model, self._settings, self._world, self._lessons = model, settings, world, lessons
        self._phases = phases(settings)
        self._streams = {
            phase.length: BatchStream(
                store, example_settings(settings, length=phase.length), batch_size=phase.batch_size
            )
            for phase in self._phases
        }
        self._evaluation = (
            IntrinsicEvaluation(
                valid, max_length=settings.data.max_length, examples=settings.evaluation.examples, world=world
            )
            if valid is not None
            else None
        )
        self._encoder = torch.compile(model.encoder, dynamic=True) if settings.train.compile else model.encoder

    def batches(self, first_step: int) -> Iterator[list[PretrainingBatch]]:
        """Yield this process's micro-batches through the phases of length."""
        for phase in self._phases:
            if first_step >= phase.end:
                continue
            start = max(first_step, phase.first)
            own = self._streams[phase.length].batches(
                phase.read + start - phase.first,
                rank=self._world.rank,
                ranks=self._world.size,
                micro_batches=self._micro(phase),
            )
            try:
                for _, micro_batches in zip(range(start, phase.end), own, strict=False):
                    yield micro_batches
            finally:
                own.close()  # type: ignore[attr-defined]

    def _micro(self, phase: _Phase) -> int:
        """Count the micro-batches of a step in this process."""
        return count_micro_batches(self._settings, phase.batch_size, phase.length, processes=self._world.size)

    def counts(self, batch: PretrainingBatch) -> list[float]:
        """Count masked words, labelled pairs and texts that a teacher reads."""
        taught = self._lessons.taught(batch) if self._lessons is not None else 0
        return [float(batch.masked_positions.size), float((batch.order_labels >= 0).sum()), float(taught)]

    def loss(self, batch: PretrainingBatch, *, counts: list[float], step: int) -> MicroLoss:
        """Add the masked-word loss and the order loss, each the mean over the global batch."""
        device, compiled = self._world.device, self._settings.train.compile
        until = self._settings.dropout_until
        if until is not None and step >= round(until * self._settings.train.steps):
            remove_dropout(self.model)
        packed = Packed.from_batch(batch, device, padded=True if compiled else None)
        all_layers = self._lessons is not None and self._lessons.with_words
        encoded = self._encoder(packed, depth=self.depth_at(step), all_layers=all_layers)
        labels = torch.from_numpy(batch.masked_labels).to(device)
        positions = torch.from_numpy(batch.masked_positions).to(device)
        summed, right = self.model.mlm_loss(encoded, positions, labels)
        mlm = summed / max(counts[0], 1.0)
        sums = {
            "tokens": float(batch.token_ids.size),
            "mlm_loss": summed.item(),
            "mlm_right": float(right),
            "mlm_count": float(labels.numel()),
        }
        total = mlm
        order_logits = self.model.heads["order"](encoded.pooled)
        if self._lessons is not None:
            asked, likeness = self._settings.teacher, order_logits.sum(-1)
            taught = self._lessons.losses(
                batch, encoded, packed, likeness=likeness if asked.pairs else None, count=counts[2]
            )
            sums |= {
                "teacher_loss": taught.vectors.item() * counts[2],
                "teacher_count": float(self._lessons.taught(batch)),
            }
            if asked.pairs:
                sums["pairs_loss"] = taught.pairs.item() * counts[2]
            if asked.words:
                sums["words_loss"] = taught.words.item() * counts[2]
            total = total + taught.total(asked)
        if counts[1] == 0:
            return MicroLoss(total, sums)
        order_labels = torch.from_numpy(batch.order_labels).to(device)
        order = cross_entropy(order_logits, order_labels, count=counts[1])
        sums |= {
            "order_loss": order.item() * counts[1],
            "order_right": float(count_right(order_logits, order_labels)),
            "order_count": float((order_labels >= 0).sum()),
        }
        return MicroLoss(total + self._settings.order_weight * order, sums)

    def summarise(self, sums: dict[str, float]) -> dict[str, float]:
        """Return losses and accuracies of both objectives."""
        metrics = {}
        for kind in ("mlm", "order"):
            if count := sums.get(f"{kind}_count"):
                metrics[f"{kind}_loss"] = sums[f"{kind}_loss"] / count
                metrics[f"{kind}_accuracy"] = sums[f"{kind}_right"] / count
        if count := sums.get("teacher_count"):
            metrics |= {
                name: sums[name] / count for name in ("teacher_loss", "pairs_loss", "words_loss") if name in sums
            }
        return metrics

    def evaluate(self, step: int) -> dict[str, float]:
        """Score the held-out store, if there is one."""
        if self._evaluation is None:
            return {}
        scores = self._evaluation.score(self.model, depth=self.depth_at(step))
        return {f"valid_{name}": value for name, value in scores.items()}

    def depth_at(self, step: int) -> int | None:
        """Return the depth in force at a step."""
        if not self._settings.grow.depth:
            return None
        layers = self.model.config.num_hidden_layers
        return stage_at(self._settings.grow.depth, step, steps=self._settings.train.steps, constant=layers)


def count_micro_batches(settings: PretrainSettings, batch_size: int, length: int, *, processes: int) -> int:
    """Divide a step's sequences over processes and micro-batches, evenly."""
    share, rest = divmod(batch_size, processes)
    final, micro = settings.data.max_length, settings.train.micro_batch
    if final % length and (rest or (micro and share % micro)):
        raise UsageError(
            f"grow.length has {length}, where a step has {batch_size} sequences, which can't be divided evenly: use "
            f"lengths that divide data.max_length={final}"
        )
    if rest:
        raise UsageError(f"train.batch_size={batch_size} is not a multiple of the {processes} processes")
    if micro is None:
        wanted = -(-share * length // MICRO_TOKENS)
        return next(count for count in range(max(wanted, 1), share + 1) if share % count == 0)
    if share % micro:
        lower, upper = share // micro * micro, (share // micro + 1) * micro
        sizes = " or ".join(str(size * processes) for size in (lower, upper) if size)
        raise UsageError(f"train.batch_size={batch_size} is not a multiple of micro_batch={micro}: use {sizes}")
    return share // micro
