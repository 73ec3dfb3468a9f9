"""What a server is told: the models, where it listens, and every limit."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from albert.errors import UsageError
from albert.settings import Section

Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]


class ServeSettings(Section):
    """Settings of a server: times in seconds, sizes in bytes."""

    models: dict[str, str]  # model arguments by the name that they are served under; the first is the default
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8080  # 0: any that is free
    exact: bool = False  # every sequence runs alone: bitwise the same whatever else is asked
    workers: Count = 1  # processes
    engine: str | None = None  # torch, onnx, openvino; None: the fastest that is installed
    precision: str = "fp32"  # bf16, int8

    batch_tokens: Count = 4096
    batch_wait: Annotated[float, Field(ge=0, le=1)] = 0.002  # of a batch's first request for others, if nothing runs
    queue_tokens: Count = 262_144  # that wait; a request that does not fit is refused
    timeout: Seconds = 30.0  # for an answer, from the end of the request's body on

    max_concurrent_requests: Count = 512
    max_inputs: Count = 4096  # of one request
    max_body: Count = 2_000_000
    max_bodies: Count = 64_000_000  # of all requests that are being read or answered
    max_numbers: Count = 8_000_000  # of one answer
    max_characters: Count = 8_000_000  # to tokenize for one request
    max_connections: Count = 2048
    header_timeout: Seconds = 10.0
    body_timeout: Seconds = 20.0
    keep_alive: Count = 30  # seconds of a connection without a request
    drain: Annotated[float, Field(ge=0)] = 0.5  # how long connections are still accepted after SIGTERM

    api_keys: Annotated[tuple[str, ...], Field(repr=False)] = ()
    hosts: tuple[str, ...] = ()  # names that the server may be called by, besides localhost and addresses; *: any
    cors_origins: tuple[str, ...] = ()
    access_log: bool = False
    reload: bool = False
    reload_seconds: Seconds = 2.0  # between two looks at the model folders

    @model_validator(mode="after")
    def _sizes_fit(self) -> ServeSettings:
        if not self.models:
            raise ValueError("no model to serve: name one, such as tiny-en")
        if self.queue_tokens < self.batch_tokens:
            raise ValueError(
                f"queue_tokens={self.queue_tokens} is less than batch_tokens={self.batch_tokens}: make it larger"
            )
        return self


def name_models(words: list[str]) -> dict[str, str]:
    """Return model arguments by the names that they are served under: `NAME=MODEL`, or the last part of a path."""
    models: dict[str, str] = {}
    for word in words:
        name, equals, model = word.partition("=")
        if not equals:
            parts = [part for part in word.split("/") if part not in ("", ".", "..")]
            parts = parts[:-1] if parts[1:] and parts[-1] == "model" else parts  # of RUN/model, the run's name
            name, model = (parts or [""])[-1], word
        if not model or not name or not all(sign.isalnum() or sign in "-_." for sign in name):
            raise UsageError(
                f"{word}: write it as NAME=MODEL, with a name of letters, digits, '-', '_' and '.': sst=runs/sst"
            )
        if name in models:
            raise UsageError(f"{word}: the name {name!r} has been given already: write OTHER=MODEL")
        models[name] = model
    return models
