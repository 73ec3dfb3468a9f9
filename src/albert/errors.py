"""The errors a user can meet, each with the exit code that `albert` ends with.

An error names the field or file:line, the value, the rule and the fix, in one message. Everything else that
escapes is a defect of ours. Nothing here knows about any other part of the package.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AlbertError(Exception):
    """An expected failure: its text is all that a user sees."""

    exit_code = 1


class UsageError(AlbertError):
    """A wrong argument or setting."""

    exit_code = 2


class DataError(AlbertError):
    """Input that breaks a rule: the message names file:line, the rule and the fix."""

    exit_code = 3


class ModelError(AlbertError):
    """A model folder, checkpoint or tokenizer that can't be used."""

    exit_code = 4


class ResourceError(AlbertError):
    """Out of disk or memory."""

    exit_code = 5


class Interrupted(AlbertError):
    """Stopped by SIGINT or SIGTERM, after saving."""

    exit_code = 130


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Say which known words are near, by spelling or by containing the word, or list them when none is."""
    names = sorted(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.6) or [name for name in names if word in name]
    return f"did you mean {' or '.join(repr(name) for name in near)}?" if near else f"known: {', '.join(names)}"
