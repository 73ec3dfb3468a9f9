"""What a training example is: the choices of the paper, each with its value and its range.

A store, these settings and a sample's number decide an example to the last bit. Knows nothing of batches or processes.
"""

from __future__ import annotations

import math
from typing import Literal, Self, get_args

from pydantic import ConfigDict, field_validator, model_validator

from albert.errors import UsageError, did_you_mean
from albert.settings import Section

Objective = Literal["sop", "nsp", "none"]

SHORTEST, LONGEST = 16, 8192  # the sequence lengths that can be asked for
NUM_SPECIAL = 3  # [CLS], [SEP], [SEP]


class PairSettings(Section):
    """How segment pairs are cut and words are masked; the defaults are the paper's."""

    model_config = ConfigDict(allow_inf_nan=True)  # the checks below name them

    max_length: int = 512  # tokens of a sequence, special ones included
    objective: Objective = "sop"
    short_prob: float = 0.1  # share of sequences with a target drawn from 2..max_length-3
    mask_prob: float = 0.15  # share of a sequence's tokens to predict
    max_ngram: int = 3  # words of the longest masked span
    max_predictions: int | None = None  # per sequence; the paper's code stops at 20, which is 3.9% at length 512
    overlap: float = 0.0  # share of pairs whose segments have text in common, without a label; not in the paper
    alone: float = 0.0  # share of pairs that become one segment, without a label; not in the paper

    @field_validator("objective", mode="before")
    @classmethod
    def _known(cls, value: object) -> object:
        if value not in get_args(Objective):
            known = did_you_mean(str(value), get_args(Objective))
            raise UsageError(f"objective='{value}' is not one of sop, nsp, none: {known}")
        return value

    @model_validator(mode="after")
    def _in_range(self) -> Self:
        _check(SHORTEST <= self.max_length <= LONGEST, "max_length", self.max_length, f"{SHORTEST} to {LONGEST} tokens")
        _check(0 <= self.short_prob <= 1, "short_prob", self.short_prob, "0 to 1")
        _check(0 < self.mask_prob <= 1, "mask_prob", self.mask_prob, "more than 0, at most 1")
        _check(1 <= self.max_ngram <= 16, "max_ngram", self.max_ngram, "1 to 16 words")
        limit = self.max_predictions
        _check(limit is None or limit >= 1, "max_predictions", limit, "at least 1, or none for no limit")
        _check(0 <= self.overlap <= 1, "overlap", self.overlap, "0 to 1")
        _check(0 <= self.alone <= 1, "alone", self.alone, "0 to 1")
        for name, share in (("overlap", self.overlap), ("alone", self.alone)):
            if share and self.objective == "nsp":
                raise UsageError(f"{name}={share} is for segments of one document: not with objective='nsp'")
        return self


class ExampleSettings(PairSettings):
    """All that decides the examples of a store."""

    seed: int = 0

    @model_validator(mode="after")
    def _seed_in_range(self) -> Self:
        _check(0 <= self.seed < 2**63, "seed", self.seed, "0 to 2^63 - 1")
        return self

    @property
    def capacity(self) -> int:
        """Return the tokens of text that fit between the special ones."""
        return self.max_length - NUM_SPECIAL


def _check(holds: bool, field: str, value: float | None, rule: str) -> None:
    if not holds or (isinstance(value, float) and not math.isfinite(value)):
        raise UsageError(f"{field}={value} is out of range: use {rule}")
