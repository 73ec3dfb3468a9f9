"""Growing depth and length against constant ones: the wall-clock time to the same held-out MLM loss.

Two pre-training runs of a narrow model with the same seed, text, steps, tokens a step and final configuration, 12
layers and 512 tokens; each has its own whole schedule of the rate. The target is what the constant run ends with, so
nobody chooses it. The growing run reaches it at the first evaluation that is as good and in the final configuration:
those of its shallow stages don't count. Time is that of training: evaluations and the last checkpoint are taken out.

Runs of minutes can't be interleaved. The speed of a bare matrix product before each run shows whether the machine
changed in between, and with several seeds the order of the runs alternates. Run nothing beside it: 20 minutes a seed on
2 cores.

    python benchmarks/bench_growing.py [--seeds 0 1] [--steps 700] [--record]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from recording import data_folder, print_table, record

from albert.data.build import BuildSettings, build_store
from albert.data.engines import LocalEngine
from albert.data.store import TokenStore
from albert.pretrain import pretrain  # sets the CPU up
from albert.pretrain.settings import PretrainSettings
from albert.text.documents import iter_documents
from albert.tokenizer.training import TrainSettings, train_tokenizer
from albert.train.loop import Progress

import torch  # isort: skip

LAYERS, LENGTH, SEQUENCES = 12, 512, 4
FINAL = 0.8  # the share of the steps after which a growing run has its final configuration
GROWTH: dict[str, Any] = {
    "depth": [[0.0, 3], [0.5, 6], [FINAL, LAYERS]],
    "length": [[0.0, 16], [0.2, 32], [0.4, 128], [FINAL, LENGTH]],
}
EVALUATIONS, EXAMPLES = 20, 48  # of a run; of each evaluation
CHARACTERS = 24_000_000  # of text: more than a run reads


@dataclass(frozen=True)
class Point:
    """An evaluation: after how many steps and seconds of training, and the held-out loss."""

    step: int
    seconds: float
    loss: float


@dataclass
class Watch:
    """Hears a run's progress and keeps its curve; the time of an evaluation is not counted."""

    points: list[Point] = field(default_factory=list)
    _begun: float = field(default_factory=time.perf_counter)
    _heard: float = 0.0

    def observe(self, progress: Progress) -> None:
        """Note an evaluation; the log line of the same step comes right before it."""
        now = time.perf_counter()
        if "valid_mlm_loss" in progress.metrics:
            self.points.append(Point(progress.step, self._heard - self._begun, progress.metrics["valid_mlm_loss"]))
            self._begun += now - self._heard
        self._heard = now


def run(seed: int, steps: int, *, growth: dict[str, Any], train: TokenStore, valid: TokenStore) -> list[Point]:
    """Pre-train once and give its curve."""
    every = max(1, steps // EVALUATIONS)
    settings = PretrainSettings.model_validate(
        {
            "model": {"num_hidden_layers": LAYERS},
            "data": {"max_length": LENGTH},
            "optimizer": {"name": "lamb", "lr": 0.01, "warmup_steps": min(100, steps // 4)},
            "train": {
                "steps": steps,
                "batch_size": SEQUENCES,
                "seed": seed,
                "log_every": every,
                "eval_every": every,
                "save_every": steps,
            },
            "evaluation": {"examples": EXAMPLES},
            "grow": growth,
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        watch = Watch()
        pretrain(train, "tiny", Path(folder) / "run", settings=settings, valid=valid, observe=watch.observe)
    return watch.points


def compare(seed: int, steps: int, *, train: TokenStore, valid: TokenStore) -> tuple[list[dict[str, Any]], float]:
    """Run both ways with one seed; the ratio of times is 0 if the growing run never gets there."""
    growths: list[tuple[str, dict[str, Any]]] = [("constant", {}), ("growing", GROWTH)]
    curves, speeds = {}, {}
    for name, growth in growths if seed % 2 == 0 else growths[::-1]:
        speeds[name] = matrix_speed()
        curves[name] = run(seed, steps, growth=growth, train=train, valid=valid)
    target = curves["constant"][-1].loss
    reached = {
        name: next((point.seconds for point in curve if point.loss <= target and point.step >= first), None)
        for (name, curve), first in zip(sorted(curves.items()), (0, FINAL * steps), strict=True)
    }
    rows = [
        {
            "seed": seed,
            "run": name,
            "minutes": f"{curve[-1].seconds / 60:.1f}",
            "MLM loss at the end": f"{curve[-1].loss:.3f}",
            "minutes to the target": f"{reached[name] / 60:.1f}" if reached[name] else "not reached",
            "bare product before, GFLOP/s": round(speeds[name]),
        }
        for name, curve in sorted(curves.items())
    ]
    constant, growing = reached["constant"], reached["growing"]
    assert constant is not None
    return rows, constant / growing if growing else 0.0


def matrix_speed() -> float:
    """Return the billions of operations a second of a bare matrix product, the median of a few seconds."""
    left, right, out = torch.ones(2048, 1024), torch.ones(1024, 1024), torch.empty(2048, 1024)
    speeds = []
    for _ in range(50):
        started = time.perf_counter()
        torch.mm(left, right, out=out)
        speeds.append(2 * 2048 * 1024 * 1024 / 1e9 / (time.perf_counter() - started))
    return median(speeds)


def build_stores(folder: Path) -> tuple[TokenStore, TokenStore]:
    """Build stores of the beginning of the shared Wikipedia, and of its held-out part, with 8,000 pieces."""
    corpus = data_folder() / "corpus"
    text, size = folder / "train.txt", 0
    with text.open("w", encoding="utf-8") as file:
        for document in iter_documents([corpus / "wiki.train.txt.xz"]):
            file.write(document.text + "\n\n")
            size += len(document.text)
            if size > CHARACTERS:
                break
    trained = train_tokenizer([text], TrainSettings(vocab_size=8_000), progress=lambda done, words: None)
    train, valid = (
        build_store(
            [path],
            folder / name,
            tokenizer=trained.tokenizer,
            settings=BuildSettings(),
            engine=LocalEngine(2),
        ).store
        for name, path in (("train", text), ("valid", corpus / "wiki.valid.txt.xz"))
    )
    return train, valid


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--steps", type=int, default=700)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    rows, ratios = [], []
    with tempfile.TemporaryDirectory() as folder:
        train, valid = build_stores(Path(folder))
        for seed in options.seeds:
            found, ratio = compare(seed, options.steps, train=train, valid=valid)
            print_table(found)
            rows += found
            ratios.append(ratio)
    words = ", ".join(f"{ratio:.2f}" if ratio else "not reached" for ratio in ratios)
    print(f"constant time / growing time: {words}")
    if options.record:
        record(
            "growing",
            rows,
            title="Growing depth and length against constant ones",
            model=f"tiny preset at {LAYERS} layers, 8,000 pieces, {SEQUENCES} × {LENGTH} tokens a step",
            steps=options.steps,
            growth=GROWTH,
            **{"constant time / growing time": words},
        )


if __name__ == "__main__":
    main()
