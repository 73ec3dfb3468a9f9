"""What int8 and early exit cost: scores of models tuned here on real tasks, with intervals.

Each start is tuned once per task with `--early-exit` on some thousand rows, and scored on all of dev. int8 is compared
with fp32 in the same engine, text by text: the interval is that of the difference over 2,000 bootstrap samples of dev.
The 12-layer model is tiny-en opened at 12 layers (its layers share their weights) and tuned so. Scores don't
depend on what else the machine does, and what is done is not done again, so it may be stopped at any time. `--speed`
measures the curves of early exit (run nothing beside it) and draws them; `--record` alone writes down what is done.

    python benchmarks/inference_accuracy.py [--work FOLDER] [--only TEXT] [--rows 3000] [--speed] [--record]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import pearsonr, rankdata
from tuning_runs import Cell, Job, find, recording

import albert
from albert.evaluate import draw_exits, exit_curve
from albert.evaluate.exits import rules_of
from albert.evaluate.scoring import score_splits
from albert.evaluate.tuned import open_labelled
from albert.files import write_json
from albert.inference.choose_engine import NEEDS, installed
from albert.inference.early_exit import EarlyExitEngine, ExitRule
from albert.inference.predictor import Predictor
from albert.labelled.request import DataRequest
from albert.model.folder import load_model, save_model
from albert.model.locate import locate
from albert.tokenizer import Tokenizer

DEEP = "tiny-en at 12 layers"
MODELS = ("tiny-en", DEEP, "tiny-en-vectors")
SAMPLES = 2_000
INT8_LIMIT = 0.5  # points


def cells(rows: int) -> list[Cell]:
    """List the tasks: `rows` of training each, all of dev."""
    reading = {"limit_train": rows}
    mnli = {"task": "mnli", "dev": "nli/mnli.dev-matched.jsonl"}
    return [
        Cell("SST-2", "glue/SST-2", reading={"limit_train": 2 * rows}, epochs=2),
        Cell("STS-B", "glue/STS-B", reading=reading, epochs=3),
        Cell("MNLI", "nli/mnli.subset-train.jsonl", **mnli, reading=reading | {"limit_dev": 4_000}, epochs=2),
    ]


def start_of(model: str, work: Path) -> str:
    """Return what to tune: a shipped model, or one of them opened at 12 layers."""
    if model != DEEP:
        return model
    folder = work / "deep"
    if not (folder / "config.json").exists():
        shipped = locate("tiny-en")
        config = load_model(shipped).model.config.with_settings({"num_hidden_layers": 12})
        save_model(load_model(shipped, config=config).model, folder, tokenizer=Tokenizer.load(shipped))
    return str(folder)


def request_of(cell: Cell, work: Path) -> DataRequest:
    """Return the dev rows of a task."""
    return DataRequest(find(work, cell.dev or cell.data), task=cell.task, limit_dev=cell.reading.get("limit_dev"))


class Dev:
    """The dev set of a task, and what a model decides about it."""

    def __init__(self, run: Path, request: DataRequest) -> None:
        self.run, self.model = run, albert.load(run / "model", engine="torch")
        assert self.model.task is not None
        self.task = self.model.task
        self.opened = open_labelled(request, self.task, self.model.columns)

    def decide(self, engine: Any) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the score in points, and for each text what was decided and what is right."""
        predictor = Predictor(engine, self.model.predictor.tokenizer)
        decided = next(iter(score_splits(predictor, self.opened.task, self.opened.splits, test=False).values()))
        assert decided.scores is not None
        said = np.array([getattr(one, "value", getattr(one, "label", None)) for one in decided.predictions])
        right = np.array([one.target for one in decided.examples])
        right = right if said.dtype.kind == "f" else np.array(self.task.labels)[right]
        return 100 * decided.scores[self.task.best], said, right


def points(said: np.ndarray, right: np.ndarray) -> float:
    """Return accuracy, or the mean of Pearson's and Spearman's correlation, in points."""
    if said.dtype.kind != "f":
        return 100 * float(np.mean(said == right))
    return 50 * float(pearsonr(said, right)[0] + pearsonr(rankdata(said), rankdata(right))[0])


def interval(one: np.ndarray, other: np.ndarray, right: np.ndarray) -> tuple[float, float]:
    """Return the 95% interval of `other` minus `one` in points, from samples of the texts."""
    rng, found = np.random.default_rng(0), []
    for _ in range(SAMPLES):
        rows = rng.integers(0, len(right), len(right))
        found.append(points(other[rows], right[rows]) - points(one[rows], right[rows]))
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


def scores_of(model: str, cell: Cell, run: Path, request: DataRequest) -> dict[str, Any]:
    """Score a tuned model in all engines and precisions, and by all rules of early exit; done once."""
    file = run / "accuracy.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"int8": {}, "exits": {}}
    dev = Dev(run, request)
    names = [name for name in NEEDS if installed(name) and name not in found["int8"]]
    rules = [rule for rule in rules_of(dev.task, dev.model.predictor.engine.config) if rule not in found["exits"]]
    if not names and not rules:
        return found
    score, said, right = dev.decide(dev.model.predictor.engine)
    if abs(points(said, right) - score) > 0.01:
        raise SystemExit(f"{model}, {cell.name}: {points(said, right)} is not the task's score {score}")
    found |= {
        "metric": dev.task.best,
        "texts": len(right),
        "fp32": score,
        "layers": dev.model.predictor.engine.config.num_hidden_layers,
    }
    for name in names:
        fp32 = dev.decide(albert.load(run / "model", engine=name).predictor.engine)
        int8 = dev.decide(albert.load(run / "model", engine=name, precision="int8").predictor.engine)
        low, high = interval(fp32[1], int8[1], right)
        changed = float(np.mean(fp32[1] != int8[1])) if said.dtype.kind != "f" else None
        found["int8"][name] = {"fp32": fp32[0], "int8": int8[0], "low": low, "high": high, "changed": changed}
        write_json(file, found)
    for rule in rules:
        engine = EarlyExitEngine(dev.model.predictor.engine, ExitRule.parse(rule))  # type: ignore[arg-type]
        early, decided, _ = dev.decide(engine)
        low, high = interval(said, decided, right)
        found["exits"][rule] = {"score": early, "layers": engine.mean_layers, "low": low, "high": high}
        write_json(file, found)
    return found


def int8_rows(model: str, cell: Cell, found: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "model": model,
            "task": f"{cell.name}, {found['metric']}, {found['texts']:,} texts",
            "engine": name,
            "fp32": f"{own['fp32']:.2f}",
            "int8": f"{own['int8']:.2f}",
            "difference": f"{own['int8'] - own['fp32']:+.2f} ({own['low']:+.2f} to {own['high']:+.2f})",
            "decisions changed": "–" if own["changed"] is None else f"{own['changed']:.1%}",
        }
        for name, own in found["int8"].items()
    ]


def exit_rows(model: str, cell: Cell, found: dict[str, Any]) -> list[dict[str, Any]]:
    whole = {"score": found["fp32"], "layers": found["layers"], "low": 0.0, "high": 0.0}
    return [
        {
            "model": model,
            "task": cell.name,
            "rule": rule,
            found["metric"]: f"{own['score']:.2f}",
            "difference": f"{own['score'] - found['fp32']:+.2f} ({own['low']:+.2f} to {own['high']:+.2f})",
            "layers": f"{own['layers']:.2f}",
        }
        for rule, own in [("all layers", whole), *found["exits"].items()]
    ]


def speed_rows(
    model: str, cell: Cell, run: Path, request: DataRequest, *, picture: Path | None
) -> list[dict[str, Any]]:
    """Measure a curve in the fastest engine and draw it."""
    curve = exit_curve(str(run / "model"), request)
    (run / "exits.svg").write_text(draw_exits(curve), encoding="utf-8")
    print(f"plot: {run / 'exits.svg'}")
    if picture is not None:
        picture.write_text(draw_exits(curve), encoding="utf-8")
    whole = curve.points[0]
    return [
        {
            "model": model,
            "task": cell.name,
            "engine": curve.engine,
            "rule": one.rule or "all layers",
            "score": f"{100 * one.score:.2f}",
            "points lost": f"{100 * (whole.score - one.score):.2f}",
            "layers": f"{one.layers:.2f}",
            "texts/s": f"{one.texts_per_second:.1f}",
            "times as fast": f"{one.texts_per_second / whole.texts_per_second:.2f}",
        }
        for one in curve.points
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=recording.ROOT / "runs" / "inference-accuracy")
    parser.add_argument("--only", action="append", help="models or tasks whose name has this in it")
    parser.add_argument("--rows", type=int, default=3_000, help="training rows of a task; twice as many of SST-2's")
    parser.add_argument("--tune-only", action="store_true", help="tune what is not tuned yet, and stop")
    parser.add_argument("--speed", action="store_true", help="measure the curves of what is tuned")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    jobs = [
        (model, cell)
        for models in (MODELS[:2], MODELS[2:])  # what the claims are about first
        for cell in cells(options.rows)
        for model in models
        if not options.only or any(part in f"{model}, {cell.name}" for part in options.only)
    ]
    tables: dict[str, list[dict[str, Any]]] = {"int8": [], "exits": [], "speed": []}
    for model, cell in jobs:
        work = options.work / model.replace(" ", "-")
        job = Job(cell, start_of(model, options.work), "trained", tune=(("early_exit", True),))
        needed = work / job.folder / ("job.json" if options.speed else "accuracy.json")
        if (options.speed or options.record) and not needed.exists():
            print(f"left out: {model} on {cell.name}: not done yet", flush=True)
            continue
        job.run(work)
        if options.tune_only:
            continue
        request, run = request_of(cell, work), work / job.folder
        if options.speed:
            tables["speed"] += speed_rows(model, cell, run, request, picture=_picture(model, cell, options.record))
            continue
        if options.record:
            found = json.loads((run / "accuracy.json").read_text())
        else:
            found = scores_of(model, cell, run, request)
        tables["int8"] += int8_rows(model, cell, found)
        tables["exits"] += exit_rows(model, cell, found)
        recording.print_table(int8_rows(model, cell, found))
    for rows in tables.values():
        if rows:
            recording.print_table(rows)
    if options.record:
        _record(tables)


def _picture(model: str, cell: Cell, recorded: bool) -> Path | None:
    return (
        recording.ROOT / "benchmarks/results/early_exit.svg"
        if recorded and (model, cell.name) == (DEEP, "SST-2")
        else None
    )


def _record(tables: dict[str, Sequence[dict[str, Any]]]) -> None:
    if tables["int8"]:
        title = "int8 against fp32, on tuned models"
        recording.record(
            "int8", tables["int8"], title=title, difference=f"points, with its 95% interval; aim: {INT8_LIMIT}"
        )
    if tables["exits"]:
        recording.record(
            "early_exit",
            tables["exits"],
            title="Early exit: score and layers",
            difference="points, with its 95% interval",
        )
    if tables["speed"]:
        recording.record("early_exit_speed", tables["speed"], title="Early exit: score against measured speed")


if __name__ == "__main__":
    main()
