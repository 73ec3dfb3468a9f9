"""`albert study …`: the paper's experiments."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from albert.cli.progress import duration, progress_line
from albert.errors import UsageError
from albert.study.catalog import STUDIES

if TYPE_CHECKING:
    from albert.study.report import Cells
    from albert.study.resolve import Request
    from albert.study.run import PlannedRow
    from albert.study.tables import Study
    from albert.study.workshop import Workshop

app = typer.Typer(no_args_is_help=True, help="The paper's experiments.")


@app.callback()
def study() -> None:
    """The paper's experiments."""


@app.command()
def params(json_: Annotated[bool, typer.Option("--json", help="Print a JSON list of rows.")] = False) -> None:
    """Tables 1, 3 and 4: parameters."""
    from albert.study.params import parameter_rows

    rows = parameter_rows()
    if json_:
        print(json.dumps([row.to_json() for row in rows], indent=2))
        return
    for number, title in ((1, "sizes"), (3, "embedding size (base)"), (4, "what is shared (base)")):
        print(f"Table {number}: {title}")
        for row in (row for row in rows if row.table == number):
            name = row.model or f"sharing {row.sharing}, E = {row.embedding_size}"
            note = "  (the paper's figure can't be had from the architecture)" if row.model == "albert-xxlarge" else ""
            print(f"  {name:<28} paper {row.paper:>5}   here {row.parameters:>12,}{note}")
        print()


def _command(name: str, studies: Sequence[Study]) -> Callable[..., None]:
    def run(
        data: Annotated[Path | None, typer.Option(help="Token store to learn from (albert data build).")] = None,
        valid: Annotated[Path | None, typer.Option(help="Held-out token store.")] = None,
        out: Annotated[Path | None, typer.Option(help="Folder of runs and report; the same command resumes.")] = None,
        scale: Annotated[str, typer.Option(help="The preset whose shape the rows vary: tiny, small, base.")] = "tiny",
        seeds: Annotated[int, typer.Option(min=1, help="Runs of every row; a verdict needs three.")] = 1,
        tokens: Annotated[int | None, typer.Option(min=1, help="Tokens that every run reads.")] = None,
        steps: Annotated[int | None, typer.Option(min=1, help="Steps of every run, instead of tokens.")] = None,
        tasks: Annotated[
            list[str] | None, typer.Option(help="Also tune on this: --tasks sst-2=PATH --tasks mnli=PATH.")
        ] = None,
        tune: Annotated[
            list[str] | None, typer.Option(help="A setting of fine-tuning: --tune data.limit_train=10000.")
        ] = None,
        config: Annotated[
            str | None, typer.Option(help="A recipe or TOML file for what the rows have in common.")
        ] = None,
        set_: Annotated[
            list[str] | None, typer.Option("--set", help="A setting of pre-training, of every row.")
        ] = None,
        workers: Annotated[int, typer.Option(min=1, help="Runs at once.")] = 1,
        threads: Annotated[int, typer.Option(min=1, help="Threads of a run; others round otherwise.")] = 1,
        cluster: Annotated[Literal["none", "ray"], typer.Option(help="Runs on a Ray cluster.")] = "none",
        address: Annotated[str | None, typer.Option(help="Address of the Ray cluster.")] = None,
        model: Annotated[str | None, typer.Option(help="Of `layers` alone: a model folder to look at.")] = None,
        dry_run: Annotated[bool, typer.Option("--dry-run", help="Show rows and total time, and stop.")] = False,
        json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    ) -> None:
        if model is not None:
            if name != "layers" or data is None:
                raise UsageError("--model: for `albert study layers --model FOLDER --data STORE`")
            _show_layers(model, data, json_=json_)
            return
        if data is None or valid is None or out is None:
            raise UsageError(f"albert study {name}: needs --data STORE, --valid STORE and --out FOLDER")
        from albert.recipes import locate_recipe
        from albert.settings import parse_assignments
        from albert.study.engines import Engine
        from albert.study.resolve import BASE, Request, read_recipe
        from albert.study.run import plan_studies, run_studies

        request = Request(
            data.resolve(),
            valid.resolve(),
            scale=scale,
            seeds=seeds,
            tokens=tokens,
            steps=steps,
            recipe=read_recipe(locate_recipe(config)) if config else BASE,
            changes=parse_assignments(set_ or []),
        )
        request.require()
        shop = _workshop(request, out.resolve(), tasks or [], tune or [], threads)
        if dry_run:
            with progress_line("timing") as show:
                planned = plan_studies(studies, request, shop, show)
            _print_plan(planned, json_=json_)
            return
        engine = Engine(workers, cluster=cluster == "ray", address=address)
        with progress_line("study") as show:
            tables = run_studies(studies, request, shop, engine=engine, observe=show)
        from albert.study.report import score_cells, to_json, verdict_cells

        asked = [table for table in tables if table.study in studies]
        if json_:
            print(json.dumps({table.study.name: to_json(table) for table in asked}, indent=2))
            return
        for table in asked:
            print(f"{table.study.name}: {table.study.question} ({table.study.source})")
            _print_cells(score_cells(table))
            _print_cells(verdict_cells(table.verdicts))
        print(f"{out / 'report.html'}: all tables beside the paper's")

    return run


for _name, _study in STUDIES.items():
    _help = f"{_study.question} ({_study.source})"
    app.command(_name, help=_help, short_help=_help)(_command(_name, [_study]))
app.command("all", help="All studies, in the order of their importance.")(_command("all", list(STUDIES.values())))


def _workshop(request: Request, out: Path, tasks: list[str], tune: list[str], threads: int) -> Workshop:
    from albert.finetune.settings import FinetuneSettings
    from albert.settings import read_settings
    from albert.study.workshop import Workshop, find_task

    settings = read_settings(FinetuneSettings, assignments=tune)
    found = []
    for word in tasks:
        name, equals, path = word.partition("=")
        if not equals or not name or not path:
            raise UsageError(f"--tasks {word}: write it as task=PATH, for example sst-2=glue/SST-2")
        found.append(find_task(name, Path(path), settings))
    return Workshop(out, request.data, request.valid, tasks=tuple(found), tune=settings, threads=threads)


def _show_layers(model: str, data: Path, *, json_: bool) -> None:
    from albert.data.store import TokenStore
    from albert.model.folder import load_model
    from albert.model.locate import locate
    from albert.study.layers import measure_layers
    from albert.tokenizer import Tokenizer
    from albert.tokenizer.folder import has_tokenizer

    folder = Path(model) / "model" if (Path(model) / "run.json").exists() else locate(model)
    store = TokenStore.open(data)
    if has_tokenizer(folder):
        store.require_tokenizer(Tokenizer.load(folder))
    changes = measure_layers(load_model(folder).model, store)
    if json_:
        print(json.dumps(changes.to_json(), indent=2))
        return
    print("layer   L2 distance   angle")
    for layer, (distance, angle) in enumerate(zip(changes.distances, changes.angles, strict=True), start=1):
        print(f"{layer:>5}   {distance:>11.3f}   {angle:>4.0f}°")
    print(f"the last layer moves its input by {changes.last_change:.0%} of its size")


def _print_plan(planned: Sequence[PlannedRow], *, json_: bool) -> None:
    total = sum(row.runs * row.seconds for row in planned)
    if json_:
        print(json.dumps({"rows": [vars(row) for row in planned], "seconds": total}, indent=2, default=str))
        return
    last = None
    for row in planned:
        if row.study != last:
            print(f"{row.study}: {STUDIES[row.study].question} ({STUDIES[row.study].source})")
            last = row.study
        differences: Any = ", ".join(f"{name}={value}" for name, value in row.differences.items()) or "the base"
        cost = f"{row.runs} x {duration(row.seconds)}" if row.runs else "made, or in a table above"
        print(f"  {row.row:<34} {row.parameters:>12,} parameters  {row.steps:>7,} steps  {cost:<26} {differences}")
    print(f"pre-training takes about {duration(total)} with one worker; evaluation and tasks come on top")


def _print_cells(cells: Cells) -> None:
    rows = [cells.head, *cells.rows]
    widths = [max(len(row[place]) for row in rows) for place in range(len(cells.head))]
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print()
