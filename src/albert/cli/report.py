"""`albert report`: the report of a run, written again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def report(
    run: Annotated[Path, typer.Argument(help="Run folder (--out of a training command), finished or not.")],
    json_: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> None:
    """Write report.html in a run folder.

    Curves, final figures and settings, in one file that needs nothing else.
    """
    from albert.report.writing import write_report

    path = write_report(run)
    print(json.dumps({"report": str(path)}) if json_ else f"{path}: open it in a browser")
