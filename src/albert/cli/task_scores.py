"""`albert evaluate` on labelled data: decide, score, write, show."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from albert.cli.progress import duration, progress_line
from albert.errors import DataError, UsageError

if TYPE_CHECKING:
    from albert.evaluate.scoring import Decided
    from albert.inference.model import Model
    from albert.inference.records import Record
    from albert.labelled.request import DataRequest, Opened

TRIED = 64  # examples that are timed for a dry run


def evaluate_task(
    name: str,
    request: DataRequest,
    *,
    predictions: Path | None,
    submission: Path | None,
    dry_run: bool,
    json_: bool,
) -> None:
    """Score a model on labelled data and show it; perhaps write its decisions."""
    from albert.evaluate.scoring import score_splits
    from albert.inference.model import load
    from albert.inference.records import check_output
    from albert.labelled.catalog import open_data

    if predictions is not None:
        check_output("--predictions", predictions, request.data)
    model = load(name)
    if model.task is None:
        raise UsageError(f"{name}: has no task: it can {', '.join(model.abilities)}; fine-tune it (albert finetune)")
    task = model.task if request.max_length is None else _shortened(model, request.max_length)
    opened = open_data(request, task=task)
    if "text" in opened.columns and (problem := model.pair_problem(given="pair" in opened.columns)):
        raise DataError(f"{request.data}: {name} {problem} (--columns text=NAME, and pair=NAME for two)")
    _check_outputs(task, opened.name, predictions=predictions, submission=submission)
    facts: dict[str, Any] = {"model": name, "task": opened.name, "fingerprint": opened.fingerprint}
    if dry_run:
        _show(facts | _plan(model, opened, submission=submission is not None), opened.notes, json_=json_)
        return
    with progress_line("evaluating") as show:
        decided = score_splits(model.predictor, opened.task, opened.splits, test=submission is not None, observe=show)
    facts["sets"] = {
        split: {"rows": len(own.examples), "scores": own.scores, "blind": own.blind} for split, own in decided.items()
    }
    notes = list(opened.notes)
    if predictions is not None:
        facts["predictions"] = _write_predictions(predictions, decided)
    if submission is not None:
        notes += _write_submission(submission, opened, decided)
        facts["submission"] = str(submission)
    _show(facts, notes, json_=json_)


def _check_outputs(task: Any, name: str, *, predictions: Path | None, submission: Path | None) -> None:
    """Refuse outputs that can't be written before anything is decided."""
    from albert.inference.records import FORMATS
    from albert.labelled.glue import LAYOUTS

    if predictions is not None and predictions.suffix not in (*FORMATS, *([""] if task.kind == "span" else [])):
        raise UsageError(f"--predictions {predictions}: the format is told by the name: end it in {', '.join(FORMATS)}")
    if submission is not None and name not in LAYOUTS:
        raise UsageError(f"--submission: {name} is not a task of GLUE, and its leaderboard takes no others")


def _shortened(model: Model, length: int) -> Any:
    positions = model.predictor.model.config.max_position_embeddings
    if not 16 <= length <= positions:
        raise UsageError(f"--length {length}: must be from 16 to the model's {positions} positions")
    return replace(model.task, max_length=length)  # type: ignore[type-var]


def _plan(model: Model, opened: Opened, *, submission: bool) -> dict[str, Any]:
    """Say what would be decided, and how long it takes by the time of a few."""
    sets = dict(opened.splits.dev) | (dict(opened.splits.test) if submission else {})
    rows = sum(map(len, sets.values()))
    few = [example for examples in sets.values() for example in examples[:: max(1, rows // TRIED)]]
    started = time.monotonic()
    list(model.predictor.predict(opened.task, few))
    seconds = (time.monotonic() - started) * rows / max(1, len(few))
    return {"sets": {name: {"rows": len(examples)} for name, examples in sets.items()}, "seconds": round(seconds, 1)}


def _write_predictions(path: Path, decided: Mapping[str, Decided]) -> list[str]:
    """Write decisions as records; without a suffix, those of questions in SQuAD's own format into a folder."""
    from albert.inference.records import write_records
    from albert.labelled.squad import write_predictions
    from albert.tasks.span import QuestionExample

    first = next(iter(decided.values()))
    if not path.suffix and isinstance(first.examples[0], QuestionExample):
        null_odds = any(not example.answers for example in first.examples)
        return [str(file) for file in write_predictions(path, first.examples, first.predictions, null_odds=null_odds)]
    write_records(path, _records(decided))
    return [str(path)]


def _records(decided: Mapping[str, Decided]) -> Iterator[Record]:
    from albert.inference.records import to_record

    for name, own in decided.items():
        for example, prediction in zip(own.examples, own.predictions, strict=True):
            record = to_record(example, prediction)
            yield {"set": name} | record if len(decided) > 1 else record


def _write_submission(path: Path, opened: Opened, decided: Mapping[str, Decided]) -> list[str]:
    from albert.labelled.glue_submission import write_submission

    tests = {name: own.predictions for name in opened.splits.test if (own := decided.get(_test_name(name)))}
    written = write_submission(path, opened.name, tests)
    missing = f"; the leaderboard still wants {', '.join(written.missing)}" if written.missing else ""
    return [*written.notes, f"{path}: {', '.join(written.written)}{missing}"]


def _test_name(split: str) -> str:
    return "test" if split == "test" else f"test {split}"


def _show(facts: dict[str, Any], notes: list[str], *, json_: bool) -> None:
    if json_:
        print(json.dumps(facts | {"notes": notes}, indent=2))
        return
    for note in notes:
        print(f"note: {note}")
    for name, own in facts["sets"].items():
        print(f"{facts['task']}, {name}: {own['rows']:,} rows")
        for score, value in (own.get("scores") or {}).items():
            blind = (own.get("blind") or {}).get(score)
            print(f"  {score:<22} {value:8.4f}" + (f"   without reading {blind:8.4f}" if blind is not None else ""))
    for path in facts.get("predictions", []):
        print(f"decisions in {path}")
    if "seconds" in facts:
        print(f"time about {duration(facts['seconds'])}")
