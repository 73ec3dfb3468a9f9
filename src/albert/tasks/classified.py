"""What `classify` gives: a Label, Labels or a Number, by what the model was tuned for."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any


class _Classified:
    """What the three have in common: asked for what only another one has, they say what they have."""

    if not TYPE_CHECKING:  # type checkers know the fields

        def __getattr__(self, name: str) -> Any:
            """Refuse a name that is none of the fields."""
            has = ", ".join(f".{field.name}" for field in fields(self))
            raise AttributeError(f"{type(self).__name__} has no .{name}: this model's decisions have {has}")


@dataclass(frozen=True)
class Label(_Classified):
    """A decision for a class, with the probabilities of all."""

    label: str
    probabilities: dict[str, float]


@dataclass(frozen=True)
class Labels(_Classified):
    """Decisions for any number of classes, with the probability of each."""

    labels: tuple[str, ...]
    probabilities: dict[str, float]


@dataclass(frozen=True)
class Number(_Classified):
    """A decision for a value."""

    value: float
