"""What the server says when it does not answer: a status, a type and a sentence, as text-embeddings-inference does.

The types are its own: Empty 400, Validation and Tokenizer 422 (413 where something is too large), Backend 424,
Overloaded 429 with Retry-After, Unhealthy 503. A sentence names the field and the fix, and never quotes a text.
"""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException

RETRY_SECONDS = 1


class Refusal(HTTPException):
    """A request that gets no answer."""

    def __init__(self, status: int, kind: str, message: str, *, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, message, headers)
        self.kind, self.message = kind, message


def empty(message: str) -> Refusal:
    """Return that there is nothing to decide about."""
    return Refusal(400, "Empty", message)


def invalid(message: str) -> Refusal:
    """Return that a field is wrong."""
    return Refusal(422, "Validation", message)


def untokenizable(message: str) -> Refusal:
    """Return that a text can't become a sequence: it is too long, or its ids are not the model's."""
    return Refusal(422, "Tokenizer", message)


def too_large(message: str) -> Refusal:
    """Return that something is beyond its limit whatever the load."""
    return Refusal(413, "Validation", message)


def backend(message: str) -> Refusal:
    """Return that the model can't do it, or failed."""
    return Refusal(424, "Backend", message)


def overloaded(message: str) -> Refusal:
    """Return that there is more to do than can be done now."""
    return Refusal(429, "Overloaded", message, headers={"Retry-After": str(RETRY_SECONDS)})


def unhealthy(message: str) -> Refusal:
    """Return that the server can't be relied on."""
    return Refusal(503, "Unhealthy", message)


def error_body(path: str, status: int, kind: str, message: str) -> dict[str, Any]:
    """Return the body of an error: OpenAI's clients expect another form than all others."""
    if path.endswith("/embeddings"):
        return {"message": message, "code": status, "error_type": kind, "type": kind}
    return {"error": message, "error_type": kind}
