"""What a study is: a table of rows, each a name and the settings that differ from the base, and what the paper says.

A study is data: adding one is adding a table to catalog.py. Its findings, with the direction that the paper states,
are written down with it, before any run. Knows neither torch nor files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Says = Literal["better", "worse", "same"]


@dataclass(frozen=True)
class Of:
    """A value that depends on the scale: a multiple of one field of its shape, rounded."""

    field: str
    factor: float

    def at(self, shape: Mapping[str, Any]) -> int:
        """Return the value for a shape."""
        return max(1, round(shape[self.field] * self.factor))


@dataclass(frozen=True)
class Column:
    """Something that is measured of every row."""

    title: str
    better: Literal["higher", "lower"]
    form: Literal["percent", "loss", "count", "number", "bytes"]
    margin: float = 0.0  # a difference smaller than this is none, for a finding that says "same"


COLUMNS: dict[str, Column] = {
    "mlm_loss": Column("MLM loss", "lower", "loss", margin=0.02),
    "mlm_accuracy": Column("MLM", "higher", "percent", margin=0.01),
    "sop_accuracy": Column("SOP", "higher", "percent", margin=0.02),
    "nsp_accuracy": Column("NSP", "higher", "percent", margin=0.02),
    "gap": Column("gap to training loss", "lower", "loss", margin=0.02),
    "parameters": Column("parameters", "lower", "count"),
    "tokens_per_second": Column("tokens/s", "higher", "count"),
    "minutes": Column("minutes", "lower", "number"),
    "memory": Column("peak memory", "lower", "bytes"),
    "reduced_bytes": Column("reduced per step", "lower", "bytes"),
    "roughness": Column("roughness over depth", "lower", "number"),
    "last_change": Column("last layer's change", "higher", "number"),
}
INTRINSIC = ("mlm_loss", "mlm_accuracy", "sop_accuracy", "nsp_accuracy", "gap")
COST = ("parameters", "tokens_per_second", "minutes")
QUALITY = ("mlm_loss", "sop_accuracy", "sst-2", "mnli")  # what the paper's averages over tasks are compared by


def column(name: str) -> Column:
    """Return a column by name; any other name is that of a task, whose main metric it holds."""
    return COLUMNS.get(name) or Column(name, "higher", "percent", margin=0.01)


@dataclass(frozen=True)
class Row:
    """A row: what differs from the study's base, and what the paper prints for it."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # dotted names; a value may be an `Of`
    paper: Mapping[str, str] = field(default_factory=dict)  # as printed, by the paper's own columns
    start: str | None = None  # the row whose trained model it goes on from
    text: float | None = None  # learns from this much text only, as a share of the tokens that a run reads
    processes: int | None = None  # measured in this many processes of their own; None: a row like any other


@dataclass(frozen=True)
class Finding:
    """What the paper says of two rows, or of one row and a fixed value; judged on each column apart."""

    text: str
    row: str
    says: Says
    against: str | float
    columns: tuple[str, ...] = QUALITY
    margin: float | None = None  # of "same"; None: the column's


@dataclass(frozen=True)
class Study:
    """A table of the paper, or one in its manner."""

    name: str
    question: str
    source: str  # the table or figure
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...] = ()
    base: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] = (*INTRINSIC, *COST)
    equal: Literal["tokens", "time"] = "tokens"  # what every row is given the same of
    curves: str | None = None  # a metric of the log that is drawn over the steps
    tasks: bool = True  # whether rows are tuned on tasks
    layers: bool = False  # whether the change from layer to layer is measured (Figure 1)

    def row(self, name: str) -> Row:
        """Return a row by its name."""
        return next(row for row in self.rows if row.name == name)
