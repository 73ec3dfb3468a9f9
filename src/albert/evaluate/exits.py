"""What early exit costs and gains: the score and the measured speed of a model at many rules, so that one is picked.

Speed is texts per second on this machine, not layers saved: small batches of those that stay run less well. Every rule
runs once, then every one again, so that a machine that slows down does so for all.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from albert.errors import UsageError
from albert.evaluate.scoring import score_splits
from albert.evaluate.tuned import open_labelled, shortened
from albert.inference.early_exit import EarlyExitEngine, ExitRule
from albert.inference.engine import Engine
from albert.inference.model import load
from albert.inference.predictor import Predictor
from albert.inference.torch_engine import TorchEngine
from albert.labelled.request import DataRequest
from albert.model import AlbertConfig
from albert.report.drawing import Curve, as_file, draw_curves
from albert.tasks.classification import Regression
from albert.tasks.task import AnyTask

CONFIDENCES = (0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
ROUNDS = 3  # of every rule, for its speed
ENOUGH = 60.0  # seconds after which no further round begins


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
    if request.max_length is not None:
        task = shortened(model, task, request.max_length)
    opened = open_labelled(request, task, model.columns)
    rules: list[str | None] = [None, *rules_of(task, plain.config)]
    engines: list[Engine] = [EarlyExitEngine(plain, ExitRule.parse(rule)) if rule else plain for rule in rules]
    scores: list[float] = [0.0] * len(rules)
    times: list[list[float]] = [[] for _ in rules]
    texts, began = 0, time.perf_counter()
    for number in range(ROUNDS):
        for place, engine_ in enumerate(engines):
            observe((number + place / len(rules)) / ROUNDS, rules[place] or "all layers")
            started = time.perf_counter()
            predictor = Predictor(engine_, model.predictor.tokenizer)
            decided = score_splits(predictor, opened.task, opened.splits, test=False)
            times[place].append(time.perf_counter() - started)
            first = next(iter(decided.values()))
            assert first.scores is not None
            scores[place] = first.scores[task.best]
            texts = sum(len(own.examples) for own in decided.values())
        if time.perf_counter() - began > ENOUGH:
            break
    points = [
        Point(rule, score, _layers(engine_), texts / max(median(own), 1e-9))
        for rule, score, engine_, own in zip(rules, scores, engines, times, strict=True)
    ]
    return ExitCurve(name, task.best, plain.name, texts, points)


def rules_of(task: AnyTask, config: AlbertConfig) -> list[str]:
    """List the rules that a curve has."""
    rules = [f"patience={layers}" for layers in range(1, config.num_hidden_layers)]
    return rules + ([] if isinstance(task, Regression) else [f"confidence={share}" for share in CONFIDENCES])


def draw_exits(curve: ExitCurve) -> str:
    """Draw score against speed as an SVG file, a line for each kind of rule."""
    lines = []
    for kind in ("patience", "confidence"):
        own = [one for one in curve.points if one.rule is not None and one.rule.startswith(kind)]
        lines += [Curve(kind, [(one.texts_per_second, one.score) for one in own], markers=True)] if own else []
    whole = curve.points[0]
    lines.append(Curve("all layers", [(whole.texts_per_second, whole.score)], markers=True))
    across = f"{curve.metric.replace('_', ' ')} against texts per second ({curve.engine})"
    return as_file(draw_curves(lines, label=f"Early exit: {across}", unit="percent", across=across))


def _layers(engine: Engine) -> float:
    return engine.mean_layers if isinstance(engine, EarlyExitEngine) else float(engine.config.num_hidden_layers)
