"""`albert embed` and `albert search`: parse, call, print."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from albert.cli.engine_options import EngineOption, PrecisionOption
from albert.cli.finetune import parse_columns
from albert.cli.progress import Show, progress_line
from albert.errors import UsageError

if TYPE_CHECKING:
    from albert.inference.fill import PlainText

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
    """Write the vectors of texts, one row per text, in the order of the file."""
    from albert.inference.inputs import as_file, read_plain
    from albert.inference.model import load
    from albert.inference.records import check_output
    from albert.inference.vectors import save_matrix, unit
    from albert.text.documents import ReadReport

    if out.suffix not in ("", ".npy"):
        raise UsageError(f"--out {out}: end it in .npy for the vectors alone, or name a folder to search in")
    told, report = parse_columns(columns or []), ReadReport()
    with ExitStack() as stack:
        path = stack.enter_context(as_file(sys.stdin.buffer)) if source == "-" else Path(source)
        check_output("--out", out, path)
        loaded = load(model, engine=engine, precision=precision)
        show = stack.enter_context(progress_line("embedding"))
        texts = _counted(read_plain(path, told, report), show)
        if out.suffix:
            rows = loaded.predictor.predict(loaded.embedding(), texts)
            count = save_matrix(out, (unit(row) for row in rows) if normalize else rows, width=loaded.width)
        else:
            count = loaded.save_vectors(texts, out)
    for line in report.lines():
        print(f"note: {line}", file=sys.stderr)
    facts = {"texts": count, "width": loaded.width, "out": str(out)}
    print(json.dumps(facts) if json_ else f"{count:,} vectors of {loaded.width} numbers in {out}")


def search(
    folder: Annotated[Path, typer.Argument(help="A folder that `albert embed` wrote.")],
    query: Annotated[str, typer.Argument(help="What to look for.")],
    model: Annotated[str | None, typer.Option(help="The model that wrote the vectors, where it has moved.")] = None,
    top: Annotated[int, typer.Option(min=1, help="How many texts.")] = 10,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Find the texts of a folder that are most similar to a query: by the cosines with all of them."""
    from albert.inference.model import load
    from albert.inference.vectors import open_vectors

    found = load(model or open_vectors(folder).model).search(query, folder, top=top)
    if json_:
        print(json.dumps([asdict(one) for one in found], ensure_ascii=False, indent=2))
        return
    for one in found:
        text = " ".join(one.text.split())
        print(f"{one.similarity:7.4f}  {one.id}  {text if len(text) <= SHOWN else text[: SHOWN - 1] + '…'}")


def _counted(texts: Iterable[PlainText], show: Show) -> Iterator[PlainText]:
    for number, one in enumerate(texts, 1):
        show(0.0, f"{number:,} texts")
        yield one
