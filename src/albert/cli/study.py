"""`albert study …`: the paper's experiments."""

from __future__ import annotations

import json
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="The paper's experiments.")


@app.callback()
def study() -> None:
    """The paper's experiments."""


@app.command()
def params(json_: Annotated[bool, typer.Option("--json", help="Print a JSON list of rows.")] = False) -> None:
    """Count the parameters of Tables 1, 3 and 4 beside the paper's figures."""
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
