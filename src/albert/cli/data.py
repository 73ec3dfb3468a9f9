"""`albert data …`: parse, call, print."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from albert.cli import examples as example_text
from albert.cli import stores, tables
from albert.cli.progress import progress_line
from albert.errors import DataError, Interrupted, UsageError

if TYPE_CHECKING:
    from albert.data.build import BuildProgress
    from albert.data.plan import BuildSettings
    from albert.data.store import TokenStore
    from albert.tokenizer import Tokenizer

app = typer.Typer(no_args_is_help=True, help="Turn text into a token store; check stores and labelled data.")

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.command()
def build(
    text: Annotated[
        list[str], typer.Argument(help="Files, folders or globs: .txt, .jsonl, .parquet [.gz, .xz, .zst].")
    ],
    tokenizer: Annotated[Path, typer.Option(help="Folder of the tokenizer, or a spiece.model.")],
    out: Annotated[Path, typer.Option(help="Folder of the store; run again to continue or mend it.")],
    sentences: Annotated[Literal["auto", "lines"], typer.Option(help="Split by rule, or take one per line.")] = "auto",
    language: Annotated[str, typer.Option(help="Language whose rules split sentences, as in 'en' or 'de'.")] = "en",
    field: Annotated[str, typer.Option(help="Field of .jsonl, or column of .parquet, that holds the text.")] = "text",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes (default: one per core).")] = None,
    engine: Annotated[Literal["local", "ray"], typer.Option(help="This machine, or a Ray cluster.")] = "local",
    address: Annotated[str | None, typer.Option(help="Address of the Ray cluster.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done and what it costs.")] = False,
    as_json: AsJson = False,
) -> None:
    """Build a token store from text.

    Documents, sentences and token ids, in shards that are read without loading them.
    """
    from albert.data.build import build_store
    from albert.data.engines import LocalEngine, RayEngine
    from albert.data.plan import BuildSettings
    from albert.hardware import count_threads
    from albert.tokenizer import Tokenizer

    if engine == "ray" and workers:
        raise UsageError("--workers is for the local engine: Ray takes all CPUs of its cluster")
    if engine == "local" and address:
        raise UsageError("--address is for the Ray engine: add --engine ray")
    workers = workers or count_threads()
    settings = BuildSettings(sentences=sentences, language=language, text_field=field)
    started = time.monotonic()
    try:
        loaded = Tokenizer.load(tokenizer)
        if dry_run:
            facts = _plan(text, loaded, settings, out=out, workers=workers if engine == "local" else None)
            print(_json(facts) if as_json else stores.plan_text(facts))
            return
        runner = RayEngine(address) if engine == "ray" else LocalEngine(workers)
        with progress_line("building") as show:

            def progress(state: BuildProgress) -> None:
                speed = state.num_new_tokens / (time.monotonic() - started)
                show(state.bytes_done / state.bytes_total, f"{state.num_tokens:,} tokens, {speed:,.0f} tokens/s")

            result = build_store(text, out, tokenizer=loaded, settings=settings, engine=runner, progress=progress)
    except KeyboardInterrupt as problem:  # `build_store` handles its own once shards are being made
        raise Interrupted("interrupted before anything was built") from problem
    facts = stores.build_facts(result, seconds=time.monotonic() - started)
    print(_json(facts) if as_json else stores.build_text(facts))


def _plan(
    text: list[str], tokenizer: Tokenizer, settings: BuildSettings, *, out: Path, workers: int | None
) -> dict[str, Any]:
    from albert.data.estimate import estimate_build
    from albert.data.plan import plan_build, read_earlier, refuse_other_build, refuse_other_folder

    refuse_other_folder(out)
    sources, plan = plan_build(text, tokenizer, settings)
    state = "new"
    if earlier := read_earlier(out):
        refuse_other_build(out, earlier.plan, plan)
        state = "complete" if earlier.complete else f"{len(earlier.finished)} shards are finished"
    return stores.plan_facts(plan, estimate_build(sources, plan, tokenizer), out=out, state=state, workers=workers)


@app.command()
def check(
    data: Annotated[Path, typer.Argument(help="Folder of a token store, or labelled data: a table, a GLUE folder, …")],
    task: Annotated[str | None, typer.Option(help="Task of labelled data; else found by its columns.")] = None,
    columns: Annotated[
        list[str] | None, typer.Option(help="A column by its role: --columns text=body --columns label=topic.")
    ] = None,
    dev: Annotated[Path | None, typer.Option(help="Dev data, checked against the classes of the data.")] = None,
    test: Annotated[
        Path | None, typer.Option(help="Test data, with or without labels, checked in the same way.")
    ] = None,
    examples: Annotated[int, typer.Option(min=0, help="Training examples of a store to show.")] = 3,
    length: Annotated[int, typer.Option(help="Tokens of the longest example of a store.")] = 128,
    as_json: AsJson = False,
) -> None:
    """Show what is in a token store, or in labelled data.

    Of labelled data: task, columns, classes, lengths, every problem with its line.
    """
    from albert.data.store import MANIFEST

    if data.is_dir() and ((data / MANIFEST).exists() or any(data.glob("shard-*.bin"))):
        _check_store(data, examples, length, as_json=as_json)
    else:
        _check_labelled(data, task, columns or [], dev=dev, test=test, as_json=as_json)


def _check_store(store: Path, examples: int, length: int, *, as_json: bool) -> None:
    from albert.data.check import check_store
    from albert.data.store import TokenStore

    opened = TokenStore.open(store)
    with progress_line("checking") as show:
        found = check_store(opened, progress=lambda done: show(done, ""))
    facts = stores.check_facts(opened, found)
    shown = _examples(opened, examples, length)
    if as_json:
        print(_json(facts | {"examples": shown}))
        return
    print(stores.check_text(facts, found))
    _print_examples(opened, shown)


def _check_labelled(
    data: Path, task: str | None, columns: list[str], *, dev: Path | None, test: Path | None, as_json: bool
) -> None:
    from albert.cli.finetune import parse_columns
    from albert.labelled.check import check_labelled
    from albert.labelled.request import DataRequest
    from albert.labelled.table_check import TableCheck

    found = check_labelled(DataRequest(data, task, dev=dev, test=test, columns=parse_columns(columns)))
    checks = [
        tables.table_facts(check) if isinstance(check, TableCheck) else tables.opened_facts(check) for check in found
    ]
    print(_json({"checks": checks}) if as_json else "\n\n".join(tables.labelled_text(facts) for facts in checks))
    count = sum(facts["num_problems"] for facts in checks)
    if count:
        first = next(facts["problems"][0] for facts in checks if facts["problems"])
        raise DataError(f"{stores.number_of(count, 'problem')}, the first: {first}")


def _examples(store: TokenStore, count: int, length: int) -> list[dict[str, Any]]:
    from albert.data.settings import ExampleSettings
    from albert.data.stream import BatchStream

    if not count:
        return []
    stream = BatchStream(store, ExampleSettings(max_length=length), batch_size=count)
    return list(example_text.split_batch(stream.batch(0)))


def _print_examples(store: TokenStore, shown: list[dict[str, Any]]) -> None:
    from rich.console import Console

    if not shown:
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"\ntraining examples: {example_text.LEGEND}", markup=False)
    for number, example in enumerate(shown, start=1):
        console.print(f"\n{number}: {example_text.headline(example)}", style="bold", markup=False)
        console.print(example_text.render(example, store.tokenizer))


def _json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, indent=2, ensure_ascii=False)
