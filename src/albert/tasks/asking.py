"""What callers give to a verb of `albert.load`: one text or many, side by side, as columns of texts.

What is neither a text nor a list of texts is refused by name. Knows nothing of tasks and models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from albert.errors import UsageError

Texts = list[str] | tuple[str, ...]


def column(name: str, texts: Any) -> tuple[str, ...]:
    """Return texts as a column; a single one is a column of one."""
    several = isinstance(texts, Iterable) and not isinstance(texts, Mapping)
    found = (texts,) if isinstance(texts, str) else tuple(texts) if several else (None,)
    if not all(isinstance(text, str) for text in found):
        raise UsageError(f"{name}: {str(texts)[:60]!r} is neither a text nor a list of texts")
    return found


def side_by_side(**columns: str | Texts) -> list[tuple[str, str]]:
    """Return two columns of texts, side by side."""
    first, second = (column(name, texts) for name, texts in columns.items())
    if len({isinstance(texts, str) for texts in columns.values()}) > 1 or len(first) != len(second):
        one, other = columns
        raise UsageError(
            f"{len(first)} of {one} and {len(second)} of {other}: give one text each, or equally long lists"
        )
    return list(zip(first, second, strict=True))


def shared(context: str | Texts, question: str | Texts) -> str | Texts:
    """Return a text for every question of a list, where they are all about one."""
    return [context] * len(question) if isinstance(context, str) and not isinstance(question, str) else context
