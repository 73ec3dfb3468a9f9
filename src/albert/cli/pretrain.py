"""`albert pretrain`: parse, call, print."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from albert.cli.processes import PROCESSES_HELP, run_in_processes
from albert.cli.progress import Line, duration, progress_line
from albert.cli.stores import number_of
from albert.recipes import locate_recipe, shipped_recipes
from albert.train.launch import is_first_process

if TYPE_CHECKING:
    from albert.pretrain import Plan
    from albert.recipes.curves import Reference
    from albert.train.loop import Progress


DEFAULT_MODEL = "small"
DAY = 86_400.0


def pretrain(
    data: Annotated[Path, typer.Option(help="Token store to learn from (albert data build).")],
    out: Annotated[Path, typer.Option(help="Run folder; the same command again resumes.")],
    model: Annotated[
        str | None,
        typer.Option(
            help="A preset (tiny, small, base, …) or a model folder to go on from; else the recipe's or small."
        ),
    ] = None,
    valid: Annotated[Path | None, typer.Option(help="Held-out token store, for evaluation during training.")] = None,
    config: Annotated[
        str | None, typer.Option(help=f"TOML file of settings, or a shipped recipe: {', '.join(shipped_recipes())}.")
    ] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="One setting: --set train.steps=20000.")] = None,
    processes: Annotated[int, typer.Option(min=1, help=PROCESSES_HELP)] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and stop.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> None:
    """Pre-train a model on a token store.

    It learns masked n-grams and sentence order.
    """
    if processes > 1:
        run_in_processes(processes)
    from albert import pretrain as stage
    from albert.data.store import TokenStore
    from albert.model.locate import refuse_two_meanings
    from albert.pretrain.settings import PretrainSettings
    from albert.recipes.curves import find_reference
    from albert.settings import assigned_names, flatten, read_settings

    if model is not None:
        refuse_two_meanings(model)
    file = locate_recipe(config) if config is not None else None
    settings = read_settings(PretrainSettings, file=file, assignments=set_ or [])
    start = model or settings.start_from or DEFAULT_MODEL
    settings = stage.settings_for(start, settings, asked=assigned_names(PretrainSettings, set_ or []))
    store = TokenStore.open(data)
    held_out = TokenStore.open(valid) if valid else None
    facts = flatten(settings.model_dump()) | {"start_from": start, "vocab_size": store.tokenizer.vocab_size}
    reference = find_reference(config, facts)
    if is_first_process() and not dry_run:
        print(f"pre-training: {reference if isinstance(reference, str) else _compared(reference)}", file=sys.stderr)
    with progress_line("pre-training") as show:
        result = stage.pretrain(
            store,
            start,
            out,
            settings=settings,
            valid=held_out,
            dry_run=dry_run,
            observe=lambda progress: _observe(show, progress, reference),
            tell=show.say,
        )
    if not is_first_process():
        return
    if isinstance(result, stage.Plan):
        planned: dict[str, Any] = asdict(result) | {"settings": settings.model_dump()}
        print(json.dumps(planned, indent=2) if json_ else _plan_text(result))
        return
    facts = {
        "folder": str(result.folder),
        "model": str(result.folder / "model"),
        "steps": result.trained.state.step,
        "resumed_from": result.trained.resumed_from,
        "evaluation": result.trained.last_evaluation,
    }
    if json_:
        print(json.dumps(facts, indent=2))
        return
    if result.was_finished:
        print(f"{result.folder}: the run is finished, nothing was left to do")
    print(f"{facts['model']}: a model trained for {facts['steps']:,} steps")
    for name, value in result.trained.last_evaluation.items():
        print(f"  {name.removeprefix('valid_').replace('_', ' '):<14} {value:.4f}")


def _observe(show: Line, progress: Progress, reference: Reference | str) -> None:
    """Show how far it is; held-out scores stay on the screen."""
    words = _words(progress, reference)
    if "valid_mlm_loss" in progress.metrics:
        show.say(words)
    else:
        show(progress.step / progress.steps, words)


def _compared(reference: Reference) -> str:
    return f"in brackets, what recipe '{reference.recipe}' had at the same step ({reference.origin})"


def _words(progress: Progress, reference: Reference | str) -> str:
    metrics, normal = progress.metrics, {} if isinstance(reference, str) else reference.at(progress.step)
    parts = [f"step {progress.step:,}"]
    for name, label in (
        ("loss", "loss"),
        ("mlm_accuracy", "mlm"),
        ("order_accuracy", "order"),
        ("teacher_loss", "teacher"),
        ("valid_mlm_loss", "held-out mlm loss"),
        ("valid_mlm_accuracy", "held-out mlm"),
        ("valid_sop_accuracy", "held-out sop"),
    ):
        if name in metrics:
            expected = f" ({normal[name]:.3f})" if name in normal else ""
            parts.append(f"{label} {metrics[name]:.3f}{expected}")
    if "tokens_per_second" in metrics:
        parts.append(f"{metrics['tokens_per_second']:,.0f} tokens/s")
    return ", ".join(parts)


def _plan_text(plan: Plan) -> str:
    tokens = f"{plan.tokens_per_step:,} tokens at most, {plan.mean_length:.0f} a sequence on average"
    lines = [
        f"parameters     {plan.parameters:,}",
        f"steps          {plan.steps:,} ({plan.epochs:.2f} epochs) of {tokens}",
        f"learning rate  {plan.peak_rate:.3g} after {number_of(plan.warmup_steps, 'step')} of warm-up",
        f"memory         about {plan.training_bytes / 1e9:.2f} GB per process",
        f"device         {plan.device}, {plan.processes} process{'' if plan.processes == 1 else 'es'}",
    ]
    if pace := plan.pace:
        known = "on this machine, as busy as it is" if pace.measured else "on this machine, not all of it measured"
        lines.append(f"time           about {_time(pace.seconds)} {known}; evaluation and saving come on top")
        lines.append(f"               ({pace.basis})")
    return "\n".join(lines)


def _time(seconds: float) -> str:
    return duration(seconds) if seconds < 3 * DAY else f"{seconds / DAY:,.0f} days"
