"""What runs a model in prediction: packed sequences in, what its heads say out, as plain arrays.

An engine holds the weights in the form that it runs best, and knows nothing of tasks: it is told which heads are wanted
and at which positions (batch.py), so that it need not compute others. What it says of a text does not depend on what
else is in the batch, within 1e-5 in fp32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from albert.batch import Batch, Said, Wanted
from albert.model.config import AlbertConfig


class Engine(Protocol):
    """A model, ready to run."""

    @property
    def name(self) -> str:
        """Return what `--engine` calls it."""

    @property
    def config(self) -> AlbertConfig:
        """Return the shape of the model."""

    @property
    def heads(self) -> Sequence[str]:
        """Return the names of its heads, which it can be asked for; it can always be asked for its states."""

    def run(self, batch: Batch, wanted: Wanted) -> list[Said]:
        """Return what the wanted heads say of each text.

        A head on the pooled [CLS] gives one row, other heads one row per wanted position, `conditional_span` its beam
        among the wanted positions (`model.heads.SpanBeam`, its fields in order).
        """
