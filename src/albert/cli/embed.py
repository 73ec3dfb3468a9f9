"""`albert embed` and `albert search`: parse, call, print."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from albert.cli.engine_options import EngineOption, PrecisionOption
from albert.cli.finetune import parse_columns
from albert.cli.predict import is_there
from albert.cli.progress import count_read, counted, progress_line
from albert.errors import DataError, UsageError

MODEL_HELP = "A model folder, a run, or a model that comes with the package."
SHOWN = 200  # characters of a text


def embed(
    model: Annotated[str, typer.Argument(help=MODEL_HELP)],
    source: Annotated[str, typer.Argument(metavar="FILE|-", help="A file of texts, or - for standard input.")],
    out: Annotated[Path, typer.Option(help="A .npy for the vectors alone, or a folder to search in.")],
    normalize: Annotated[bool, typer.Option("--normalize", help="Vectors of length 1; in a folder they are.")] = False,
    columns: Annotated[
        list[str] | None, typer.Option(help="A column by its role: --columns text=body --columns id=key.")
    ] = None,
    engine: EngineOption = None,
    precision: PrecisionOption = "fp32",
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Write the vectors of texts.

    One row per text, in the order of the file.
    """
    from albert.inference.inputs import as_file, line_notes, read_plain, with_words
    from albert.inference.model import load
    from albert.inference.records import check_output
    from albert.inference.vectors import save_matrix, unit
    from albert.text.documents import ReadReport

    if out.suffix not in ("", ".npy"):
        raise UsageError(f"--out {out}: end it in .npy for the vectors alone, or name a folder to search in")
    if source != "-" and not is_there(source):
        raise DataError(
            f"{source[:80]}: no such file: check the path; for one text: albert predict MODEL TEXT --task embed"
        )
    told, report = parse_columns(columns or []), ReadReport()
    with ExitStack() as stack:
        path = stack.enter_context(as_file(sys.stdin.buffer)) if source == "-" else Path(source)
        check_output("--out", out, path)
        loaded = load(model, engine=engine, precision=precision)
        show = stack.enter_context(progress_line("embedding"))
        total = count_read(read_plain(loaded.columns, path, told, ReadReport()), show)
        for note in line_notes(path, total) if source != "-" else []:
            show.say(f"note: {note}")
        texts = counted(read_plain(loaded.columns, path, told, report), show, total=total)
        if out.suffix:
            rows = loaded.predictor.predict(loaded.embedding(strict=False), with_words(texts, report, keep=True))
            count = save_matrix(out, (unit(row) for row in rows) if normalize else rows, width=loaded.width)
        else:
            count = loaded.save_vectors(with_words(texts, report, keep=False), out)
    for line in report.lines():
        print(f"note: {line.replace(str(path), 'standard input' if source == '-' else source)}", file=sys.stderr)
    facts = {"texts": count, "width": loaded.width, "out": str(out)}
    print(json.dumps(facts) if json_ else f"{count:,} vectors of {loaded.width} numbers in {out}")


def search(
    folder: Annotated[Path, typer.Argument(help="A folder that `albert embed` wrote.")],
    query: Annotated[str, typer.Argument(help="What to look for.")],
    model: Annotated[str | None, typer.Option(help="The model that wrote the vectors, where it has moved.")] = None,
    top: Annotated[int, typer.Option(min=1, help="How many texts.")] = 10,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Find the texts most similar to a query, in a folder of vectors.

    By the cosines with all of them.
    """
    from albert.inference.model import load
    from albert.inference.vectors import open_vectors

    found = load(model or open_vectors(folder).model).search(query, folder, top=top)
    if json_:
        print(json.dumps([asdict(one) for one in found], ensure_ascii=False, indent=2))
        return
    for one in found:
        text = " ".join(one.text.split())
        print(f"{one.similarity:7.4f}  {one.id}  {text if len(text) <= SHOWN else text[: SHOWN - 1] + '…'}")
