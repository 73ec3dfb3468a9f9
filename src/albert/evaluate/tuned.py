"""The scores of a tuned model on labelled data: decide, score, and write the decisions where they are wanted.

The data is opened with the model's own task, so its classes, columns and lengths are those of training. What a user
must know before using the figures is in the notes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from albert.errors import DataError, UsageError
from albert.evaluate.scoring import Decided, Observe, score_splits
from albert.inference.early_exit import EarlyExitEngine
from albert.inference.model import Model, load
from albert.inference.records import FORMATS, check_output, write_records
from albert.labelled.catalog import open_data
from albert.labelled.detection import columns_there
from albert.labelled.glue_layouts import LAYOUTS
from albert.labelled.glue_submission import write_submission
from albert.labelled.recognition import recognise
from albert.labelled.request import DataRequest, Opened
from albert.labelled.squad import write_predictions
from albert.tasks.span import QuestionExample
from albert.tasks.task import AnyTask, Record

TRIED = 64  # examples that are timed for a dry run


@dataclass(frozen=True)
class TaskPlan:
    """What would be decided: what `--dry-run` shows."""

    model: str
    task: str  # sst-2, classification
    fingerprint: str  # of the data
    rows: Mapping[str, int]  # of each set
    seconds: float
    notes: tuple[str, ...]


@dataclass(frozen=True)
class TaskScores:
    """A tuned model's decisions and scores, set by set."""

    model: str
    task: str
    fingerprint: str
    sets: Mapping[str, Decided]
    notes: tuple[str, ...]
    predictions: tuple[Path, ...] | None = None  # files that decisions were written to, where they were wanted
    submission: Path | None = None


def evaluate_task(
    name: str,
    request: DataRequest,
    *,
    predictions: Path | None = None,
    submission: Path | None = None,
    engine: str | None = None,
    precision: str = "fp32",
    long: str | None = None,
    early_exit: str | None = None,
    dry_run: bool = False,
    observe: Observe = lambda *_: None,
) -> TaskScores | TaskPlan:
    """Score a model on labelled data; perhaps write its decisions, as records or for GLUE's leaderboard."""
    if not request.data.exists():  # before the model is loaded
        raise DataError(f"{request.data}: no such file or folder: check the path (--data)")
    if predictions is not None:
        check_output("--predictions", predictions, request.data)
    model = load(name, engine=engine, precision=precision, early_exit=early_exit)
    if model.task is None:
        raise UsageError(f"{name}: has no task: it can {', '.join(model.abilities)}; fine-tune it (albert finetune)")
    if long is not None:
        model.read_long(long)
    task = model.task if request.max_length is None else shortened(model, model.task, request.max_length)
    opened = open_labelled(request, task, model.columns)
    if "text" in opened.columns and (problem := model.pair_problem(given="pair" in opened.columns)):
        raise DataError(f"{request.data}: {name} {problem} (--columns text=NAME, and pair=NAME for two)")
    _check_outputs(task, opened.name, predictions=predictions, submission=submission)
    if dry_run:
        return _plan(name, model, opened, submission=submission is not None)
    decided = score_splits(model.predictor, opened.task, opened.splits, test=submission is not None, observe=observe)
    written = _write_predictions(predictions, opened.task, decided) if predictions is not None else None
    submitted = _write_submission(submission, opened, decided) if submission is not None else []
    return TaskScores(
        name,
        opened.name,
        opened.fingerprint,
        sets=decided,
        notes=(*opened.notes, *submitted, *_exits(model)),
        predictions=written,
        submission=submission,
    )


def open_labelled(request: DataRequest, task: AnyTask, columns: Mapping[str, str]) -> Opened:
    """Open labelled data with a model's own task, by the columns that it was trained on where they are there."""
    if request.task is None and columns and request.data.is_file() and not recognise(request.data):
        request = replace(request, columns=columns_there(columns, request.data) | dict(request.columns))
    return open_data(request, task=task)


def _exits(model: Model) -> list[str]:
    """Say how many layers texts took, where they may leave early."""
    engine = model.predictor.engine
    if not isinstance(engine, EarlyExitEngine):
        return []
    return [f"early exit: {engine.mean_layers:.1f} of {engine.config.num_hidden_layers} layers on average"]


def _check_outputs(task: AnyTask, name: str, *, predictions: Path | None, submission: Path | None) -> None:
    """Refuse outputs that can't be written before anything is decided."""
    if predictions is not None and predictions.suffix not in (*FORMATS, *([""] if task.kind == "span" else [])):
        raise UsageError(f"--predictions {predictions}: the format is told by the name: end it in {', '.join(FORMATS)}")
    if submission is not None and name not in LAYOUTS:
        raise UsageError(f"--submission: {name} is not a task of GLUE, and its leaderboard takes no others")


def shortened(model: Model, task: AnyTask, length: int) -> AnyTask:
    """Return a task whose inputs are cut to that many tokens."""
    positions = model.predictor.engine.config.max_position_embeddings
    if not 16 <= length <= positions:
        raise UsageError(f"--length {length}: must be from 16 to the model's {positions} positions")
    return replace(task, max_length=length)  # type: ignore[type-var]


def _plan(name: str, model: Model, opened: Opened, *, submission: bool) -> TaskPlan:
    """Say what would be decided, and how long it takes by the time of a few."""
    sets = dict(opened.splits.dev) | (dict(opened.splits.test) if submission else {})
    rows = sum(map(len, sets.values()))
    few = [example for examples in sets.values() for example in examples[:: max(1, rows // TRIED)]]
    started = time.monotonic()
    list(model.predictor.predict(opened.task, few))
    seconds = (time.monotonic() - started) * rows / max(1, len(few))
    counts = {split: len(examples) for split, examples in sets.items()}
    return TaskPlan(name, opened.name, opened.fingerprint, counts, round(seconds, 1), tuple(opened.notes))


def _write_predictions(path: Path, task: AnyTask, decided: Mapping[str, Decided]) -> tuple[Path, ...]:
    """Write decisions as records; without a suffix, those of questions in SQuAD's own format into a folder."""
    first = next(iter(decided.values()))
    if not path.suffix and isinstance(first.examples[0], QuestionExample):
        null_odds = any(not example.answers for example in first.examples)
        return tuple(write_predictions(path, first.examples, first.predictions, null_odds=null_odds))
    write_records(path, _records(task, decided))
    return (path,)


def _records(task: AnyTask, decided: Mapping[str, Decided]) -> Iterator[Record]:
    for name, own in decided.items():
        for example, prediction in zip(own.examples, own.predictions, strict=True):
            record = task.record(example, prediction)
            yield {"set": name} | record if len(decided) > 1 else record


def _write_submission(path: Path, opened: Opened, decided: Mapping[str, Decided]) -> list[str]:
    tests = {name: own.predictions for name in opened.splits.test if (own := decided.get(_test_name(name)))}
    written = write_submission(path, opened.name, tests)
    missing = f"; the leaderboard still wants {', '.join(written.missing)}" if written.missing else ""
    return [*written.notes, f"{path}: {', '.join(written.written)}{missing}"]


def _test_name(split: str) -> str:
    return "test" if split == "test" else f"test {split}"
