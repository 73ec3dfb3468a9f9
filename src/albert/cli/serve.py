"""`albert serve`: parse, call, print."""

from __future__ import annotations

import ipaddress
import json
import os
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from albert.cli.engine_options import EngineOption, PrecisionOption
from albert.errors import UsageError

KEY = "ALBERT_API_KEY"


def serve(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL [NAME=MODEL …]", help="Model folders, runs or shipped names.")
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any that is free.")] = 8080,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0: all.")] = "127.0.0.1",
    workers: Annotated[int, typer.Option(min=1, help="Processes, each with the models.")] = 1,
    exact: Annotated[
        bool, typer.Option("--exact", help="Run every text alone: bitwise the same whatever else is asked; slower.")
    ] = False,
    engine: EngineOption = None,
    precision: PrecisionOption = "fp32",
    reload: Annotated[
        bool, typer.Option("--reload", help="Take up a changed model folder without dropping a request.")
    ] = False,
    batch_tokens: Annotated[int, typer.Option(min=1, help="Tokens of a batch at most.")] = 4096,
    timeout: Annotated[float, typer.Option(help="Seconds for an answer.")] = 30.0,
    api_key_file: Annotated[
        Path | None, typer.Option(help=f"Keys that clients must send, one per line (or the variable {KEY}).")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name that the server may be called by, besides localhost; *: any.")
    ] = None,
    cors_origin: Annotated[
        list[str] | None, typer.Option(help="A site whose pages may ask: https://example.org")
    ] = None,
    access_log: Annotated[bool, typer.Option("--access-log", help="Log a line per request.")] = False,
    set_: Annotated[list[str] | None, typer.Option("--set", help="A limit: --set max_body=1000000.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Open the models, show the settings, and stop.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Serve models over HTTP, with a page to try them.

    Routes: text-embeddings-inference's, OpenAI's, and ours.
    """
    from albert.settings import read_settings

    _check_extra()
    from albert.serve.logs import log_as_json
    from albert.serve.served import Models
    from albert.serve.server import bind, run
    from albert.serve.settings import ServeSettings, name_models
    from albert.serve.workers import supervise

    values = {
        "models": name_models(models),
        "host": host,
        "port": port,
        "workers": workers,
        "exact": exact,
        "engine": engine,
        "precision": precision,
        "reload": reload,
        "batch_tokens": batch_tokens,
        "timeout": timeout,
        "api_keys": _read_keys(api_key_file),
        "hosts": tuple(allow_host or ()),
        "cors_origins": tuple(cors_origin or ()),
        "access_log": access_log,
    }
    settings = read_settings(ServeSettings, assignments=set_ or [], defaults=values)
    taken = bind(settings.host, settings.port)
    loaded = Models.load(settings)
    address = f"[{settings.host}]" if ":" in settings.host else settings.host
    url = f"http://{address}:{taken.getsockname()[1]}"
    facts = {"url": url, "models": {one.name: one.abilities for one in loaded}}
    if dry_run:
        print(json.dumps(facts | {"settings": settings.model_dump(exclude={"api_keys", "models"})}, indent=2))
        return
    if not _is_loopback(settings.host) and not settings.api_keys:
        print(f"note: whoever reaches {settings.host} can ask: --api-key-file restricts it", file=sys.stderr)
    ready = partial(_say, facts, json_=json_)
    if settings.workers == 1:
        run(settings, loaded, taken, ready=ready)
    else:
        del loaded  # the workers have their own
        log_as_json()
        supervise(settings, taken, ready=ready)


def _say(facts: dict[str, Any], *, json_: bool) -> None:
    if json_:
        print(json.dumps(facts), flush=True)
        return
    for name, abilities in facts["models"].items():
        print(f"{name}: {', '.join(abilities)}")
    print(f"serving on {facts['url']} (a page to try it; Ctrl-C ends)", flush=True)


def _check_extra() -> None:
    """Refuse to begin without the packages of the extra."""
    for name in ("fastapi", "uvicorn", "httptools", "prometheus_client", "orjson"):
        if find_spec(name) is None:
            raise UsageError(f"serving needs {name}: pip install 'albert-lite[serve]'")


def _read_keys(path: Path | None) -> tuple[str, ...]:
    """Return the keys of a file, or of the environment; a file without one would let everybody in."""
    if path is None:
        return tuple(os.environ.get(KEY, "").split())
    keys = tuple(path.read_text(encoding="utf-8").split())
    if not keys:
        raise UsageError(f"--api-key-file {path}: is empty: write a key per line")
    return keys


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
