"""The `albert` command: parse, call a stage, print. Errors become one line and an exit code.

Commands import their stage inside the function, so that `albert --help` loads neither torch nor NumPy.
"""

from __future__ import annotations

import io
import os
import select
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TextIO, cast

import typer
from typer.core import TyperGroup

import albert
from albert.cli import (
    convert,
    data,
    demo,
    doctor,
    embed,
    evaluate,
    export,
    finetune,
    info,
    plan,
    predict,
    pretrain,
    report,
    serve,
    study,
    tokenizer,
)
from albert.cli.processes import SaidElsewhere
from albert.errors import AlbertError, Interrupted, ResourceError, UsageError
from albert.files import resource_error
from albert.train.launch import is_first_process

ORDER = (
    *("doctor", "demo", "tokenizer", "data", "pretrain", "finetune", "evaluate", "predict", "embed", "search"),
    *("serve", "export", "convert", "study", "plan", "info", "report"),
)


class InOrder(TyperGroup):
    """Lists commands in the order of the work; Typer puts groups of commands, the first steps here, at the end."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names for --help."""
        return sorted(super().list_commands(ctx), key=ORDER.index)


app = typer.Typer(
    name="albert",
    cls=InOrder,
    help="From a folder of text to a small encoder in production.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("doctor")(doctor.doctor)
app.command("demo")(demo.demo)
app.add_typer(tokenizer.app, name="tokenizer")
app.add_typer(data.app, name="data")
app.command("pretrain")(pretrain.pretrain)
app.command("finetune")(finetune.finetune)
app.command("evaluate")(evaluate.evaluate)
app.command("predict")(predict.predict)
app.command("embed")(embed.embed)
app.command("search")(embed.search)
app.command("serve")(serve.serve)
app.add_typer(export.app, name="export")
app.command("convert")(convert.convert)
app.add_typer(study.app, name="study")
app.command("plan")(plan.plan)
app.command("info")(info.info)
app.command("report")(report.report)


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
    _mend_streams()
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    debug = "--debug" in words[:end]
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C, in every command: nothing is half written
    arguments = [word for word in words[:end] if word != "--debug"] + words[end:]  # accepted anywhere on the line
    try:
        try:
            app(args=arguments, prog_name="albert")
        finally:
            sys.stdout.flush()  # here, where a reader that left or a full disk can still be reported
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError) and _stdout_is_left():
            _end_quietly()
        if stop.code == Interrupted.exit_code and not isinstance(stop, SaidElsewhere):
            print("interrupted", file=sys.stderr)
        raise
    except (Exception, KeyboardInterrupt) as error:
        if isinstance(error, BrokenPipeError) and _stdout_is_left():
            _end_quietly()
        if debug:
            traceback.print_exception(error)
        failure = _named(error)
        if is_first_process() or not isinstance(failure, Interrupted):  # all are interrupted: one says it
            print(f"error: {failure}", file=sys.stderr)
        sys.exit(failure.exit_code)


def _named(error: BaseException) -> AlbertError:
    """Return the error that a user sees; what has no name is a defect of ours: say how to get its traceback."""
    if isinstance(error, AlbertError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return Interrupted("interrupted")
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or "can't allocate" in str(error):
        return ResourceError("out of memory: use smaller batches or pieces")
    if isinstance(error, OSError) and (named := resource_error(error, error.filename or "output")):
        return named
    if isinstance(error, OSError) and error.filename is not None:
        return UsageError(f"{error.filename}: {error.strerror or error}")
    return AlbertError(f"{type(error).__name__}: {error}\n(a defect: run again with --debug)")


class _Unbreakable:
    """A stream whose reader may leave: what a command says beside its output is never worth the command."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _mend_streams() -> None:
    """Let no stream that is closed, left by its reader or of another encoding end a command."""
    nothing = Path(os.devnull)
    sys.stdin = sys.stdin or nothing.open(encoding="utf-8")
    sys.stdout = sys.stdout or nothing.open("w", encoding="utf-8")
    sys.stderr = sys.stderr or nothing.open("w", encoding="utf-8")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.stderr = cast(TextIO, _Unbreakable(sys.stderr))


def _stdout_is_left() -> bool:
    """Tell whether nobody reads stdout any more: other pipes, such as a worker's, break for worse reasons."""
    if sys.platform == "win32":  # nothing to ask
        return True
    asked = select.poll()
    asked.register(1, select.POLLOUT)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in asked.poll(0))


def _end_quietly() -> None:
    """End well: in `albert … | head` the reader left, and nothing is wrong."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(0)
