"""The cost model of `albert plan` against measured training steps on this machine, for five configurations.

The machine is described by two measurements (a bare fp32 product, a copy of memory), taken anew in every round beside
the steps, because its speed drifts. Medians of the rounds' ratios are printed. Run nothing beside it: 5 minutes on 2
cores.

    python benchmarks/bench_plan.py [--rounds 5] [--only 0 1] [--efficiency 1.0] [--traffic 6] [--record]
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from recording import print_table, record

from albert.model import Packed, new_model, preset  # first: it sets the CPU up

import torch  # isort: skip

from albert.batch import pack
from albert.hardware import keep_memory
from albert.model.losses import cross_entropy
from albert.optim import OptimizerSettings, build_optimizer
from albert.pretrain.cost import Assumptions, Work, estimate, measure_here


@dataclass(frozen=True)
class Case:
    """A model, and the sequences of a step."""

    model: str
    sequences: int
    length: int
    changes: tuple[tuple[str, Any], ...] = ()


CASES = (
    Case("tiny", 64, 128),
    Case("small", 32, 128),
    Case("small", 4, 512),
    Case("base", 4, 128),
    Case("small", 32, 128, (("sharing", "none"), ("embedding_size", 256))),  # the BERT of this shape
)
MASKED = 0.15


class Trainer:
    """A model that is trained on random tokens, which take as long as any."""

    def __init__(self, case: Case) -> None:
        self.config = preset(case.model).with_settings(dict(case.changes))
        self._model = new_model(self.config, ("mlm", "order")).train()
        self._optimizer = build_optimizer(OptimizerSettings(name="lamb"), self._model, lr=1e-3)
        rng = np.random.default_rng(0)
        ids = rng.integers(5, self.config.vocab_size, (case.sequences, case.length))
        self._packed = Packed.from_batch(pack(ids.tolist()), torch.device("cpu"))
        places = rng.choice(ids.size, round(MASKED * ids.size), replace=False)
        self._places, self._labels = torch.from_numpy(places), torch.from_numpy(ids.reshape(-1)[places])
        self._orders = torch.zeros(case.sequences, dtype=torch.int64)

    def step(self) -> float:
        """Train one step; return its seconds."""
        before = time.monotonic()
        encoded = self._model(self._packed)
        loss = self._model.mlm_loss(encoded, self._places, self._labels)[0] / self._labels.numel()
        order = self._model.heads["order"](encoded.pooled)
        (loss + cross_entropy(order, self._orders, count=self._orders.numel())).backward()
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return time.monotonic() - before


def measure(case: Case, *, rounds: int, assumed: Assumptions) -> dict[str, Any]:
    """Compare modelled and measured steps, round by round."""
    trainer = Trainer(case)
    work = Work(trainer.config, 1.0, batch=case.sequences, length=case.length, count=1, half=False)
    trainer.step()
    ratios, seconds = [], []
    for _ in range(rounds):
        modelled = estimate(work, measure_here(0.5), assumed).step
        seconds.append(trainer.step())
        ratios.append(modelled / seconds[-1])
    return {
        "model": " ".join([case.model, *(f"{name}={value}" for name, value in case.changes)]),
        "sequences": case.sequences,
        "length": case.length,
        "measured, s": round(median(seconds), 4),
        "modelled / measured": round(median(ratios), 2),
        "lowest": round(min(ratios), 2),
        "highest": round(max(ratios), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", type=int, nargs="*", default=range(len(CASES)))
    parser.add_argument("--efficiency", type=float, default=1.0)
    parser.add_argument("--traffic", type=float, default=Assumptions().traffic)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    keep_memory()
    assumed = Assumptions(efficiency=options.efficiency, traffic=options.traffic, masked=MASKED)
    rows = [measure(CASES[number], rounds=options.rounds, assumed=assumed) for number in options.only]
    print_table(rows)
    if options.record:
        record("plan", rows, title="The cost model against measured steps")


if __name__ == "__main__":
    main()
