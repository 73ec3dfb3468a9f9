"""`albert evaluate`: parse, call, print."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from albert.cli.engine_options import EngineOption, ExitOption, LongOption, PrecisionOption
from albert.cli.finetune import parse_columns
from albert.cli.progress import duration, progress_line
from albert.cli.stores import number_of
from albert.errors import UsageError
from albert.files import atomic_write

if TYPE_CHECKING:
    from albert.evaluate import EvaluationPlan, ExitCurve, PretrainingScores, Scores, TaskPlan, TaskScores

COLUMNS = {"mlm_loss": "MLM loss", "mlm_accuracy": "MLM", "sop_accuracy": "SOP", "nsp_accuracy": "NSP"}
CURVE = "curve"  # --exit: every rule, in a table
SOURCES = {
    "store": "the same weights and masking, on examples of the training store",
    "log": "as logged over the last tenth of the steps, while the weights moved; --train STORE measures it",
}


def evaluate(
    model: Annotated[
        str, typer.Argument(help="A run, a model folder, or a model that comes with the package.", metavar="MODEL")
    ],
    data: Annotated[
        Path,
        typer.Option(help="Labelled data (file, GLUE, SQuAD, RACE), or a held-out token store (albert data build)."),
    ],
    task: Annotated[
        str | None, typer.Option(help="Which task the data is of: mrpc, squad, … (default: found).")
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option(help="A column by its role: --columns text=body (default: found).")
    ] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="Write decisions: .jsonl, .csv, .tsv, .json; for SQuAD's format, a folder.")
    ] = None,
    submission: Annotated[
        Path | None, typer.Option(help="Decide GLUE's test sets too, into the zip that its leaderboard takes.")
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="Token store it learnt from: measures the gap to training text on it.")
    ] = None,
    examples: Annotated[
        int | None, typer.Option(min=1, help="So many rows, or pairs of each objective (default: all; the run's).")
    ] = None,
    length: Annotated[int | None, typer.Option(min=1, help="Tokens per sequence (default: as trained).")] = None,
    engine: EngineOption = None,
    precision: PrecisionOption = "fp32",
    long: LongOption = None,
    exit_: ExitOption = None,
    plot: Annotated[
        Path | None, typer.Option(help="With --exit curve: draw score against speed into this .svg file.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and stop.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> None:
    """Score a model, tuned or pre-trained.

    On labelled data for what it was tuned for, on a token store for what it was pre-trained for.
    """
    from albert import evaluate as stage
    from albert.data.store import MANIFEST, TokenStore

    if plot is not None and (exit_ != CURVE or plot.suffix != ".svg"):
        raise UsageError(f"--plot {plot}: is for --exit {CURVE}, and the file's name ends in .svg")
    if not (data / MANIFEST).is_file():
        from albert.labelled.request import DataRequest

        request = DataRequest(
            data, task=task, columns=parse_columns(columns or []), max_length=length, limit_dev=examples
        )
        if exit_ == CURVE:
            given = {"--predictions": predictions, "--submission": submission, "--long": long, "--dry-run": dry_run}
            if wrong := [name for name, value in given.items() if value]:
                raise UsageError(f"--exit {CURVE}: measures every rule, so it has no {', '.join(wrong)}: leave it out")
            with progress_line("evaluating") as show:
                curve = stage.exit_curve(model, request, engine=engine, precision=precision, observe=show)
            if plot is not None:
                with atomic_write(plot) as file:
                    file.write(stage.draw_exits(curve).encode())
            print(json.dumps(asdict(curve), indent=2) if json_ else _curve_text(curve))
            if plot is not None and not json_:
                print(f"plot in {plot}")
            return
        with progress_line("evaluating") as show:
            scored = stage.evaluate_task(
                model,
                request,
                predictions=predictions,
                submission=submission,
                engine=engine,
                precision=precision,
                long=long,
                early_exit=exit_,
                dry_run=dry_run,
                observe=show,
            )
        facts = _task_facts(scored)
        print(json.dumps(facts, indent=2) if json_ else _task_text(facts, data))
        return
    if task or columns or predictions or submission or engine or long or exit_ or precision != "fp32":
        raise UsageError(
            f"{data}: is a token store: --task, --columns, --predictions, --submission, --engine, --precision, "
            "--long and --exit need labelled data"
        )
    with progress_line("evaluating") as show:
        result = stage.evaluate_pretraining(
            model,
            TokenStore.open(data),
            train=TokenStore.open(train) if train else None,
            examples=examples,
            max_length=length,
            dry_run=dry_run,
            observe=show,
        )
    if json_:
        print(json.dumps(asdict(result), indent=2, default=str))
    elif isinstance(result, stage.EvaluationPlan):
        print(_plan_text(result))
    else:
        print(_scores_text(result))


def _curve_text(curve: ExitCurve) -> str:
    whole = curve.points[0]
    lines = [f"{curve.model}: {curve.texts:,} texts, {curve.engine}", f"{'':<18}{curve.metric:>16}  layers  texts/s"]
    for one in curve.points:
        faster = (
            f"  {one.texts_per_second / whole.texts_per_second:.2f}x, {100 * (one.score - whole.score):+.2f} points"
        )
        lines.append(
            f"{one.rule or 'all layers':<18}{one.score:16.4f}  {one.layers:6.2f}  {one.texts_per_second:7.1f}"
            + (faster if one.rule else "")
        )
    return "\n".join(lines)


def _task_facts(result: TaskScores | TaskPlan) -> dict[str, Any]:
    from albert.evaluate import TaskPlan

    facts: dict[str, Any] = {"model": result.model, "task": result.task, "fingerprint": result.fingerprint}
    if isinstance(result, TaskPlan):
        sets = {split: {"rows": count} for split, count in result.rows.items()}
        return facts | {"sets": sets, "seconds": result.seconds, "notes": list(result.notes)}
    facts["sets"] = {
        split: {"rows": len(own.examples), "scores": own.scores, "baseline": own.baseline}
        for split, own in result.sets.items()
    }
    if result.predictions is not None:
        facts["predictions"] = [str(path) for path in result.predictions]
    if result.submission is not None:
        facts["submission"] = str(result.submission)
    return facts | {"notes": list(result.notes)}


def _task_text(facts: dict[str, Any], data: Path) -> str:
    lines = [f"note: {note}" for note in facts["notes"]]
    for name, own in facts["sets"].items():
        lines.append(f"{facts['task']}, {_set_name(name, data)}: {number_of(own['rows'], 'row')}")
        for score, value in (own.get("scores") or {}).items():
            baseline = (own.get("baseline") or {}).get(score)
            lines.append(
                f"  {score.replace('_', ' '):<22} {value:8.4f}"
                + (f"   baseline {baseline:8.4f}" if baseline is not None else "")
            )
    lines += [f"decisions in {path}" for path in facts.get("predictions", [])]
    if "seconds" in facts:
        lines.append(f"time about {duration(facts['seconds'])}")
    return "\n".join(lines)


def _set_name(name: str, data: Path) -> str:
    """Return what a set is called: a file by its name, whatever it is for; a folder such as GLUE's has a dev set."""
    from albert.labelled.class_folders import is_class_folder

    return str(data) if name == "dev" and (data.is_file() or is_class_folder(data)) else name


def _plan_text(plan: EvaluationPlan) -> str:
    return "\n".join(
        [
            f"model       {plan.model}, {plan.parameters:,} parameters",
            f"examples    {_examples(plan)}, {plan.passes} times",
            f"memory      about {plan.memory / 1e9:.2f} GB",
            f"device      {plan.device}",
            f"time        about {duration(plan.seconds or 0.0)}",
        ]
    )


def _examples(plan: EvaluationPlan) -> str:
    pairs = " and ".join(f"{count:,} for {name.upper()}" for name, count in plan.examples.items())
    return f"pairs of up to {plan.max_length} tokens: {pairs}"


def _scores_text(result: PretrainingScores) -> str:
    named = {"this model": result.model, "untrained": result.untrained, "baseline": result.baseline}
    lines = [
        f"{result.plan.model}: {_examples(result.plan)}",
        f"{'':<16}" + "".join(f"{title:>10}" for title in COLUMNS.values()),
        *(f"{name:<16}" + "".join(f"{cell:>10}" for cell in _cells(scores)) for name, scores in named.items()),
    ]
    if result.gap is not None:
        lines.append(f"MLM loss on training text {result.gap.training_loss:.3f}, gap {result.gap.gap:+.3f}")
        lines.append(f"  ({SOURCES[result.gap.source]})")
    if result.held_out is False:
        lines.append("note: the run learnt from this very store: nothing here is held out")
    return "\n".join(lines)


def _cells(scores: Scores) -> list[str]:
    values = {name: getattr(scores, name) for name in COLUMNS}
    return [
        "–" if value is None else f"{value:.3f}" if name == "mlm_loss" else f"{value:.1%}"
        for name, value in values.items()
    ]
