"""What early exit costs and gains: the score and the measured speed of a model at many rules, so that one is picked.

Speed is texts per second on this machine, not layers saved: small batches of those that stay run less well.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from albert.errors import UsageError
from albert.evaluate.scoring import score_splits
from albert.evaluate.tuned import open_labelled
from albert.inference.early_exit import EarlyExitEngine, ExitRule
from albert.inference.engine import Engine
from albert.inference.model import load
from albert.inference.predictor import Predictor
from albert.inference.torch_engine import TorchEngine
from albert.labelled.request import DataRequest
from albert.tasks.classification import Regression

CONFIDENCES = (0.7, 0.8, 0.9, 0.95, 0.98, 0.99)


@dataclass(frozen=True)
class Point:
    """A rule and what it gave on the first dev set; the first point has no rule: all layers."""

    rule: str | None
    score: float  # the task's main metric
    layers: float  # on average
    texts_per_second: float


@dataclass(frozen=True)
class ExitCurve:
    """The points of a model."""

    model: str
    metric: str
    engine: str
    texts: int
    points: list[Point]


def exit_curve(
    name: str,
    request: DataRequest,
    *,
    engine: str | None = None,
    precision: str = "fp32",
    observe: Callable[[float, str], None] = lambda *_: None,
) -> ExitCurve:
    """Score a model tuned for early exit with every rule."""
    model = load(name, engine=engine, precision=precision)
    task, plain = model.task, model.predictor.engine
    if task is None or not task.early_exit:
        raise UsageError(f"{name}: was not tuned for early exit: tune it with `albert finetune --early-exit`")
    assert isinstance(plain, TorchEngine)
    opened = open_labelled(request, task, model.columns)
    rules = [f"patience={layers}" for layers in range(1, plain.config.num_hidden_layers)]
    rules += [f"confidence={share}" for share in CONFIDENCES] if not isinstance(task, Regression) else []
    points, texts = [], 0
    for number, rule in enumerate([None, *rules]):
        observe(number / (len(rules) + 1), rule or "all layers")
        engine_: Engine = plain if rule is None else EarlyExitEngine(plain, ExitRule.parse(rule))
        started = time.perf_counter()
        decided = score_splits(Predictor(engine_, model.predictor.tokenizer), opened.task, opened.splits, test=False)
        taken = time.perf_counter() - started
        first = next(iter(decided.values()))
        assert first.scores is not None
        texts = sum(len(own.examples) for own in decided.values())
        layers = engine_.mean_layers if isinstance(engine_, EarlyExitEngine) else plain.config.num_hidden_layers
        points.append(Point(rule, first.scores[task.best], float(layers), texts / max(taken, 1e-9)))
    return ExitCurve(name, task.best, plain.name, texts, points)
