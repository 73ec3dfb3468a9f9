"""The `albert` command: parse, call a stage, print. Errors become one line and an exit code.

Commands import their stage inside the function, so that `albert --help` loads neither torch nor NumPy.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

import albert
from albert.cli import data, doctor, tokenizer
from albert.errors import AlbertError, Interrupted, ResourceError
from albert.files import resource_error

app = typer.Typer(
    name="albert",
    help="From a folder of text to a small encoder in production.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("doctor")(doctor.doctor)
app.add_typer(tokenizer.app, name="tokenizer")
app.add_typer(data.app, name="data")


def _version(value: bool) -> None:
    if value:
        typer.echo(f"albert-lite {albert.__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Hold the options that every command shares; `main` reads --debug."""


def main() -> None:
    """Run the command line and end the process with the documented exit code."""
    debug = "--debug" in sys.argv[1:]
    arguments = [word for word in sys.argv[1:] if word != "--debug"]  # accepted anywhere on the line
    try:
        app(args=arguments, prog_name="albert", standalone_mode=True)
    except (AlbertError, OSError, MemoryError, KeyboardInterrupt) as error:
        if debug:
            raise
        if isinstance(error, BrokenPipeError):  # `albert … | head`: the reader left, nothing is wrong
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        failure = _named(error)
        print(f"error: {failure}", file=sys.stderr)
        sys.exit(failure.exit_code)
    except Exception as error:  # a defect of ours: still no traceback, but say how to get it
        if debug:
            raise
        print(f"error: {type(error).__name__}: {error}\n(a defect: run again with --debug)", file=sys.stderr)
        sys.exit(1)


def _named(error: BaseException) -> AlbertError:
    match error:
        case AlbertError():
            return error
        case KeyboardInterrupt():
            return Interrupted("interrupted")
        case MemoryError():
            return ResourceError("out of memory: use smaller batches or pieces")
        case OSError():
            named = resource_error(error, error.filename or "output")
            return named or AlbertError(f"{error.filename or 'file'}: {error.strerror or error}")
    raise AssertionError(error)
