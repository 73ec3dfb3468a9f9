"""The vectors of all tokens of a text, [CLS] and [SEP] included: what `/embed_all` gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from albert.batch import STATES, Said, Wanted
from albert.inference.fill import PlainText
from albert.tasks.task import Feature, join_segments
from albert.tokenizer import Tokenizer


@dataclass(frozen=True)
class TokenStates:
    """The states of the last layer; a text that is too long is cut."""

    max_length: int

    def encode(self, example: PlainText, tokenizer: Tokenizer) -> list[Feature]:
        """Turn a text into one sequence."""
        return [Feature(*join_segments(tokenizer, tokenizer.encode(example.text)[: self.max_length - 2]))]

    def wanted(self, features: Sequence[Feature]) -> Wanted:
        """Return that the states of all tokens are wanted."""
        return {STATES: "tokens"}

    def outputs(self, feature: Feature, said: Said) -> Any:
        """Return the states."""
        (states,) = said[STATES]
        return states

    def decide(self, example: PlainText, features: Sequence[Feature], outputs: Sequence[Any]) -> Any:
        """Return the states of the only sequence."""
        (states,) = outputs
        return states
