"""What `albert predict` does to a file, in plain values: a process or a whole cluster can do it, and give the same.

Knows nothing of where the results go, or who asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from albert.errors import UsageError
from albert.inference.inputs import column_notes, read_examples, read_plain, with_words
from albert.inference.model import Model, load
from albert.inference.records import decide_records
from albert.text.documents import ReadReport

OTHERS = ("fill", "embed")  # what a model can do besides its own task


@dataclass(frozen=True)
class Use:
    """A model, how it runs, and what it is to do."""

    model: str
    engine: str | None = None
    precision: str = "fp32"
    early_exit: str | None = None
    long: str | None = None
    task: str | None = None  # fill or embed; None: what it was tuned for
    top: int = 3  # guesses per blank

    def open(self) -> Model:
        """Load the model."""
        loaded = load(self.model, engine=self.engine, precision=self.precision, early_exit=self.early_exit)
        if self.long is not None:
            loaded.read_long(self.long)
        return loaded

    def what(self, model: Model) -> str:
        """Return what to do: the model's own task, fill or embed."""
        own = model.task.kind if model.task is not None else None
        if self.task is None:
            return own or "fill"
        if self.task in OTHERS or self.task == own or (own is not None and self.task == model.abilities[0]):
            return self.task if self.task in OTHERS else str(own)
        raise UsageError(f"--task {self.task}: {model.name} can {', '.join(model.abilities)}")

    def decides(self, model: Model, *, strict: bool) -> Any:
        """Return how examples are decided; `strict` refuses those that can't be, else their records say it."""
        match self.what(model):
            case "fill":
                return model.filling(top=self.top, strict=strict)
            case "embed":
                return model.embedding(strict=strict)
        return model.task

    def results(self, model: Model, examples: Iterable[Any], *, strict: bool, vectors: bool) -> Iterator[Any]:
        """Return records, or vectors as they are, in the order of the examples."""
        decides = self.decides(model, strict=strict)
        if vectors:
            return model.predictor.predict(decides, examples)
        return decide_records(model.predictor, decides, examples)


@dataclass(frozen=True)
class FileJob:
    """A model that is used on a file or folder; `vectors`: the results are rows of a matrix, not records."""

    use: Use
    path: Path
    columns: Mapping[str, str]
    vectors: bool = False

    def read(self, model: Model, report: ReadReport) -> Iterator[Any]:
        """Return the examples of the file."""
        if self.use.what(model) not in OTHERS:
            return read_examples(model, self.path, self.columns, report)
        texts = read_plain(model.columns, self.path, self.columns, report)
        return with_words(texts, report, keep=True) if self.vectors else texts

    def notes(self, model: Model) -> list[str]:
        """Say what a user may not expect of how the file is read."""
        return column_notes(model, self.path, self.columns) if self.use.what(model) not in OTHERS else []

    def results(self, model: Model, examples: Iterable[Any]) -> Iterator[Any]:
        """Return records, or vectors, in the order of the examples; what can't be decided is said in its record."""
        return self.use.results(model, examples, strict=False, vectors=self.vectors)
