"""`albert predict`: parse, call, print."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import albert
from albert.cli.engine_options import EngineOption, ExitOption, LongOption, PrecisionOption
from albert.cli.finetune import parse_columns
from albert.cli.progress import Show, count_read, counted, progress_line
from albert.errors import DataError, Interrupted, UsageError

if TYPE_CHECKING:
    from albert.inference.file_job import Use
    from albert.inference.model import Model
    from albert.tasks.task import Record
    from albert.text.documents import ReadReport

A_FILE = re.compile(r"\S+\.(csv|tsv|jsonl?|parquet|txt|conll|iob2?|bio(es)?)(\.(gz|xz|zst))?", re.IGNORECASE)
MATRIX = ".npy"
RESUMED = (".jsonl", ".csv", ".tsv")  # what a killed run is taken up in
TRIED = 64  # inputs of a dry run
BARS = 20  # characters of a probability's bar


def predict(
    model: Annotated[str, typer.Argument(help="A model folder, a run, or a model that comes with the package.")],
    source: Annotated[
        str, typer.Argument(metavar="TEXT|FILE|-", help="A text, a file or folder of inputs, or - for standard input.")
    ],
    pair: Annotated[str | None, typer.Option(help="The second text of a pair.")] = None,
    question: Annotated[str | None, typer.Option(help="What to ask about the text: answering and choosing.")] = None,
    choice: Annotated[
        list[str] | None, typer.Option(help="An answer to choose from: --choice yes --choice no.")
    ] = None,
    task: Annotated[str | None, typer.Option(help="fill or embed, in place of what the model was tuned for.")] = None,
    top: Annotated[int, typer.Option(min=1, help="Guesses per blank.")] = 3,
    columns: Annotated[
        list[str] | None, typer.Option(help="A column by its role: --columns text=body (default: found).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write: .jsonl, .csv, .tsv, .json, .parquet; vectors: .npy.")
    ] = None,
    engine: EngineOption = None,
    precision: PrecisionOption = "fp32",
    long: LongOption = None,
    exit_: ExitOption = None,
    cluster: Annotated[Literal["none", "ray"], typer.Option(help="Decide a file on a Ray cluster.")] = "none",
    address: Annotated[
        str | None, typer.Option(help="Address of the Ray cluster (default: a Ray started here).")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide the first inputs of a file, and stop.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Use a model: classify, answer, choose, tag, fill in, embed.

    Results are in the order of the inputs.
    """
    from albert.inference.file_job import FileJob, Use
    from albert.inference.inputs import as_file, line_notes
    from albert.inference.ray_data import decide_on_cluster
    from albert.inference.records import check_output, output_format
    from albert.text.documents import ReadReport

    path = _input_path(source)
    one = path is None and source != "-"
    _check_cluster(cluster, address, a_file=path is not None)
    if out is not None:  # a wrong name is said before anything is loaded
        if out.suffix != MATRIX:
            output_format(out)
        check_output("--out", out, path)
    use = Use(model, engine, precision, exit_, long, task, top)
    loaded = use.open()
    what, vectors = use.what(loaded), out is not None and out.suffix == MATRIX
    if vectors and what != "embed":
        raise UsageError(f"--out {out}: {MATRIX} is for vectors (--task embed), this is {what}: use .jsonl or .parquet")
    decides = use.decides(loaded, strict=one)  # of a file, what can't be decided is said in its row
    if one:
        if not source.strip():
            print("note: the text is empty: nothing is read", file=sys.stderr)
        example = _example(loaded, use, source, pair=pair, question=question, choices=choice or [])
        _finish(
            use.results(loaded, [example], strict=True, vectors=vectors), out, width=loaded.width, one=True, json_=json_
        )
        return
    if pair is not None or question is not None or choice:
        raise UsageError("--pair, --question and --choice go with one text; a file has columns for them")
    report = ReadReport()
    with ExitStack() as stack:
        path = path or stack.enter_context(as_file(sys.stdin.buffer))
        job = FileJob(use, path, parse_columns(columns or []), vectors)
        stack.callback(_say, report, path, "standard input" if source == "-" else str(path))
        if dry_run:
            _try(job.results(loaded, islice(job.read(loaded, report), TRIED)), what, json_=json_)
            return
        show = stack.enter_context(progress_line("predicting"))
        total = count_read(job.read(loaded, report if cluster == "ray" else ReadReport()), show)
        notes = [*line_notes(path, total), *job.notes(loaded)] if source != "-" else []
        for note in notes:
            show.say(f"note: {note}")

        def results(skip: int) -> Iterator[Any]:
            if cluster == "ray":
                return decide_on_cluster(job, address=address, skip=skip)
            return job.results(loaded, islice(job.read(loaded, report), skip, None))

        if out is not None and out.suffix in RESUMED and source != "-" and path.is_file():
            facts: dict[str, Any] = {"model": loaded.fingerprint, "what": what, "decides": repr(decides)}
            facts |= {"columns": job.columns, "precision": precision, "exit": exit_}
            if precision != "fp32":  # engines round in ways of their own
                facts["engine"] = loaded.predictor.engine.name
            _resume(results, out, path, facts, show=show, total=total, json_=json_)
            return
        _finish(counted(results(0), show, total=total), out, width=loaded.width, one=False, json_=json_)


def _check_cluster(cluster: str, address: str | None, *, a_file: bool) -> None:
    if cluster == "none" and address:
        raise UsageError("--address is for a Ray cluster: add --cluster ray")
    if cluster == "ray" and not a_file:
        raise UsageError("--cluster ray: is for a file or folder that all nodes see: leave it out, or give one")
    if cluster == "ray" and find_spec("ray") is None:
        raise UsageError("--cluster ray: Ray is missing: pip install 'albert-lite[ray]'")


def _input_path(source: str) -> Path | None:
    """Tell whether an input is a file: it exists, or it could be nothing else."""
    if source in ("-", ".", "..") or not source.strip():
        return None
    found = is_there(source)
    if not found and A_FILE.fullmatch(source):
        raise DataError(f"{source}: no such file: check the path")
    return Path(source) if found else None


def is_there(source: str) -> bool:
    """Tell whether a word of the command line is a file or folder that exists."""
    try:
        return Path(source).exists()
    except (OSError, ValueError):  # a text longer than any name, or with a NUL
        return False


def _example(model: Model, use: Use, text: str, *, pair: str | None, question: str | None, choices: list[str]) -> Any:
    """Make an example of what the command line says; refuse what the task has no use for, and one text for a pair."""
    from albert.inference.file_job import OTHERS
    from albert.inference.fill import PlainText

    what = use.what(model)
    task = None if what in OTHERS else model.task
    options = task.options if task is not None else ()
    for option, given in (("pair", pair is not None), ("question", question is not None), ("choice", bool(choices))):
        if given and option not in options:
            raise UsageError(f"--{option}: {what} has no use for it: leave it out")
    if task is None:
        return PlainText(text)
    if "pair" in options and (problem := model.pair_problem(given=pair is not None)):
        raise UsageError(f"{model.name} {problem} (--pair)")
    return task.example(text, pair=pair, question=question, choices=choices)


def _say(report: ReadReport, path: Path, name: str) -> None:
    """Say what was mended in the inputs."""
    for line in report.lines():
        print(f"note: {line.replace(str(path), name)}", file=sys.stderr)


def _try(records: Iterator[Record], what: str, *, json_: bool) -> None:
    """Say what the first inputs give and how fast."""
    started = time.monotonic()
    found = list(records)
    pace = len(found) / max(time.monotonic() - started, 1e-9)
    facts = {"task": what, "inputs_per_second": round(pace, 1), "first": found[0] if found else None}
    print(json.dumps(facts, ensure_ascii=False, indent=2) if json_ else f"{what}, about {pace:,.1f} inputs per second")
    if found and not json_:
        print("\n".join(["the first:", *_shown(found[0])]))


def _finish(records: Iterator[Any], out: Path | None, *, width: int, one: bool, json_: bool) -> None:
    """Write to a file, or print: a single result for people, several as JSON lines."""
    from albert.inference.records import WARNING, lines_of, write_records
    from albert.inference.vectors import save_matrix

    if out is not None:
        count = save_matrix(out, records, width=width) if out.suffix == MATRIX else write_records(out, records)
        print(json.dumps({"inputs": count, "out": str(out)}) if json_ else f"{count:,} results in {out}")
    elif one and json_:
        print(json.dumps(next(records), ensure_ascii=False, indent=2))
    elif one:
        record = next(records)
        print("\n".join(_shown(record)))
        if record.get(WARNING):
            print(f"note: {record[WARNING]}", file=sys.stderr)
    else:
        for line in lines_of(records, "json" if json_ else "jsonl"):
            sys.stdout.write(line)


def _resume(
    results: Callable[[int], Iterator[Record]],
    out: Path,
    path: Path,
    facts: dict[str, Any],
    *,
    show: Show,
    total: int,
    json_: bool,
) -> None:
    """Write to a file that a killed run may have begun; `results` are those after some rows."""
    from albert.inference.partial import file_facts, fingerprint_of, partial_output, rows_begun

    fingerprint = fingerprint_of(version=albert.__version__, input=file_facts(path), out=out.suffix, **facts)
    try:
        with partial_output(out, fingerprint) as partial:
            if partial.rows:
                print(f"note: going on after {partial.rows:,} rows that an earlier run wrote", file=sys.stderr)
            count = partial.write(counted(results(partial.rows), show, total=total - partial.rows))
    except KeyboardInterrupt:
        if rows := rows_begun(out):
            raise Interrupted(f"interrupted: {rows:,} rows are kept, run the same command to go on") from None
        raise
    print(json.dumps({"inputs": count, "out": str(out)}) if json_ else f"{count:,} results in {out}")


def _shown(record: Record) -> list[str]:
    """Show a decision to a person."""
    match record:
        case {"probabilities": dict(probabilities)}:
            chosen = record.get("labels", [record.get("label")])
            ranked = sorted(probabilities.items(), key=lambda item: -item[1])[:10]
            return [f"{'*' if label in chosen else ' '} {label:<20} {_bar(share)}" for label, share in ranked]
        case {"choice": choice, "probabilities": list(probabilities), "answer": answer}:
            lines = [
                f"{'*' if i == choice else ' '} choice {i:<13} {_bar(share)}" for i, share in enumerate(probabilities)
            ]
            return [*lines, answer]
        case {"value": float(value)} | {"similarity": float(value)}:
            return [f"{value:.4f}"]
        case {"answer": answer, "start": start, "end": end, "probability": share}:
            place = f"characters {start} to {end}, " if start is not None else "no answer, "
            return [answer or "–", f"  ({place}probability {share:.1%})"]
        case {"spans": [*spans], "words": [*words]}:
            rows = [(part["text"], part["type"], part) for part in spans] or [(w["text"], w["tag"], w) for w in words]
            return [
                f"{text:<28} {kind:<10} {p['start']:>5}–{p['end']:<5} {p['probability']:.1%}" for text, kind, p in rows
            ]
        case {"blanks": [*blanks]}:
            return [
                ", ".join(
                    f"{'…' * guess['continues']}{guess['text']} {guess['probability']:.1%}"
                    for guess in blank["guesses"]
                )
                for blank in blanks
            ]
    return [json.dumps(record.get("vector", record))]


def _bar(share: float) -> str:
    return f"{share:7.1%} {'█' * round(share * BARS)}"
