"""`albert finetune`: parse, call, print."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from albert.cli.processes import PROCESSES_HELP, run_in_processes
from albert.cli.progress import duration, progress_line
from albert.cli.stores import number_of
from albert.errors import UsageError
from albert.labelled.column_names import ALL_ROLES
from albert.train.launch import is_first_process

if TYPE_CHECKING:
    from albert.finetune import Finetuned, FinetunePlan, Outcome
    from albert.train.loop import Progress


def finetune(
    model: Annotated[str, typer.Option(help="Model folder, run folder, shipped name or hub id to start from.")],
    data: Annotated[Path, typer.Option(help="Labelled data: .csv .tsv .jsonl .parquet, a GLUE or RACE folder, SQuAD.")],
    out: Annotated[Path, typer.Option(help="Run folder; the same command again resumes.")],
    task: Annotated[
        str | None, typer.Option(help="cola, sst-2, mrpc, …, squad, race, classification, …; else found in the data.")
    ] = None,
    dev: Annotated[Path | None, typer.Option(help="Dev data; else part of the data is held out.")] = None,
    test: Annotated[Path | None, typer.Option(help="Test data: scored once at the end, by the best model.")] = None,
    columns: Annotated[
        list[str] | None, typer.Option(help="Columns by their roles: --columns text=title,body --columns label=topic.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="TOML file of settings.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="One setting: --set optimizer.lr=1e-4.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs from different seeds; the best by dev is kept.")] = 1,
    retry: Annotated[
        bool, typer.Option("--retry", help="Start a run that learns nothing again: half the rate, another seed.")
    ] = False,
    adapt: Annotated[
        bool, typer.Option("--adapt", help="First train masked words on the task's own texts, into OUT-adapted.")
    ] = False,
    adapt_on: Annotated[
        list[Path] | None,
        typer.Option(help="Further text for --adapt: .jsonl .parquet, or .txt with blank lines between."),
    ] = None,
    early_exit: Annotated[
        bool, typer.Option("--early-exit", help="Train the head on every layer, for `predict --exit`.")
    ] = False,
    processes: Annotated[int, typer.Option(min=1, help=PROCESSES_HELP)] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and stop.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> None:
    """Tune a model for a task, on labelled data.

    The data is your own table, or GLUE, SQuAD, RACE, CoNLL as they are published.
    """
    adapt = adapt or bool(adapt_on)
    if adapt and processes > 1:
        raise UsageError(f"--adapt is for one process: adapt first, then tune {out}-adapted with --processes")
    if processes > 1:
        run_in_processes(processes)
    from albert import finetune as stage
    from albert.finetune.settings import FinetuneSettings
    from albert.labelled.catalog import DataRequest, open_data
    from albert.settings import read_settings

    assignments = [*(set_ or []), *(["tune.early_exit=true"] if early_exit else [])]
    settings = read_settings(FinetuneSettings, file=config, assignments=assignments)
    request = DataRequest(
        data, task=task, dev=dev, test=test, columns=parse_columns(columns or []), **settings.data.model_dump()
    )
    opened = open_data(request)
    if adapt:
        from albert.adapt import adapt as adapted
        from albert.adapt import task_texts

        more = adapt_on or []
        with progress_line("adapting") as show:
            if dry_run:
                texts = task_texts(opened, more, tell=show.say)
                show.say(f"adapting: {len(texts):,} texts first, into {out}-adapted; the plan is of the tuning alone")
            else:
                folder = adapted(
                    opened,
                    model,
                    out,
                    settings=settings.adapt,
                    more=more,
                    seed=settings.train.seed,
                    observe=lambda progress: show(progress.step / progress.steps, _words(progress)),
                    tell=show.say,
                )
                model = str(folder)
    with progress_line("fine-tuning") as show:
        result = stage.finetune(
            opened,
            model,
            out,
            settings=settings,
            seeds=seeds,
            retry=retry,
            dry_run=dry_run,
            observe=lambda progress: show(progress.step / progress.steps, _words(progress)),
            tell=show.say,
        )
    if not is_first_process():
        return
    if isinstance(result, stage.FinetunePlan):
        print(json.dumps(asdict(result), indent=2) if json_ else _plan_text(result))
    elif json_:
        facts = {"folder": str(result.folder), "model": str(result.folder / "model")}
        print(json.dumps(facts | result.summary(), indent=2))
    else:
        print(_result_text(result))


def parse_columns(words: list[str]) -> dict[str, str]:
    """Read `role=name` words; one word may have several of them, as in `text=title,body,label=topic`."""
    columns: dict[str, str] = {}
    next_role = re.compile(rf",\s*(?=(?:{'|'.join(ALL_ROLES)})=)")
    for word in (part for given in words for part in next_role.split(given)):
        role, equals, name = word.partition("=")
        if not equals or not role or not name:
            raise UsageError(f"--columns {word}: write it as role=name, for example text=body")
        if role in columns or name in columns.values():
            raise UsageError(f"--columns {word}: the role or the column has been given already: give each once")
        columns[role] = name
    return columns


def _words(progress: Progress) -> str:
    parts = [f"step {progress.step:,}"]
    for name, value in progress.metrics.items():
        if name == "loss":
            parts.append(f"loss {value:.3f}")
        elif name == "tokens_per_second":
            parts.append(f"{value:,.0f} tokens/s")
        elif name.startswith("valid_"):
            parts.append(f"dev {name.removeprefix('valid_').replace('_', ' ')} {value:.3f}")
    return ", ".join(parts[:4])


def _plan_text(plan: FinetunePlan) -> str:
    labels = f", {len(plan.labels)} labels: {', '.join(plan.labels[:8])}{' …' if len(plan.labels) > 8 else ''}"
    sets = [f"{count:,} of {name}" for some in (plan.dev_examples, plan.test_examples) for name, count in some.items()]
    lines = [
        f"task           {plan.task} ({plan.kind}{labels if plan.labels else ''})",
        f"data           {plan.train_examples:,} training examples; {', '.join(sets)}",
        f"sequences      {plan.sequences:,} of {plan.mean_length:.0f} tokens on average, {plan.max_length} at most",
        f"parameters     {plan.parameters:,}, {plan.trainable:,} of them trained",
        f"steps          {plan.steps:,} of {plan.batch_size} ({plan.epochs:.1f} epochs), dev every {plan.eval_every:,}",
        f"learning rate  {plan.peak_rate:.3g} after {number_of(plan.warmup_steps, 'step')} of warm-up",
        f"to beat        {plan.score.replace('_', ' ')} {_to_beat(plan)}",
        f"memory         about {plan.training_bytes / 1e9:.2f} GB",
        f"time           about {duration(plan.seconds)} on this machine ({plan.device}), "
        + number_of(plan.seeds, "seed"),
    ]
    for note in plan.notes:
        kind = "warning" if note.startswith("warning: ") else "note"
        lines.append(f"{kind:<15}{note.removeprefix('warning: ')}")
    return "\n".join(lines)


def _result_text(result: Finetuned) -> str:
    chosen, facts = result.chosen, result.summary()
    lines = [f"{result.folder}: the run is finished, nothing was left to do"] if result.was_finished else []
    lines += [f"{result.folder / 'model'}: best at step {chosen.best_step:,} of {chosen.steps:,}"]
    lines += [
        f"  {name.removeprefix('valid_').replace('_', ' '):<18} {value:.4f}" for name, value in chosen.scores.items()
    ]
    lines.append(f"  {'baseline':<18} {result.baseline:.4f}")
    if result.bag_of_words is not None:
        lines.append(f"  {'bag of words':<18} {result.bag_of_words:.4f}")
    lines += [f"  {name.replace('_', ' '):<18} {value:.4f}" for name, value in result.test.items()]
    if len(result.runs) > 1:
        lines.append(
            f"  {len(result.final_runs())} seeds: median {facts['median']:.4f}, mean {facts['mean']:.4f}, "
            f"from {facts['lowest']:.4f} to {facts['highest']:.4f}, deviation {facts['deviation']:.4f}"
        )
        lines += [
            f"  {run.folder:<18} {'-' if run.score is None else f'{run.score:.4f}'} at rate {run.lr:.2g}{_remark(run)}"
            for run in result.runs
        ]
    if chosen.problem:
        lines.append(f"warning: {chosen.problem}")
    if result.is_beaten_by_words:
        how = "as good" if chosen.score == result.bag_of_words else "better"
        more = ", or try more epochs, another rate, more pre-training or a larger model" if chosen.score != 1.0 else ""
        lines.append(f"warning: a bag of words (TF-IDF and a linear model) is {how} on the same split: use it{more}")
    return "\n".join(lines)


def _to_beat(plan: FinetunePlan) -> str:
    baseline = f"{plan.baseline:.4f}, the baseline that reads no text"
    return baseline if plan.bag_of_words is None else f"{baseline}; {plan.bag_of_words:.4f}, a bag of words"


def _remark(run: Outcome) -> str:
    if run.problem is None:
        return ""
    return f", stopped at step {run.steps:,} by its loss" if run.score is None or run.learnt else ", learnt nothing"
