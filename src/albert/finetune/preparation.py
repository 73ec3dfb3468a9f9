"""What the runs of a fine-tuning have in common: task, start, settings, encoded examples, and what there is to beat."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from albert.errors import DataError, UsageError
from albert.finetune.job import Items, encode_items
from albert.finetune.notes import case_notes, cut_notes, markup_notes
from albert.finetune.reading import reading
from albert.finetune.rules import resolve, table_row
from albert.finetune.settings import FinetuneSettings
from albert.finetune.start import Start
from albert.finetune.words import WordBaseline
from albert.labelled.request import Opened
from albert.model import Albert
from albert.tasks.similarity import PairExample
from albert.tasks.task import AnyTask, Example

log = logging.getLogger(__name__)

# Settings that a run may say or leave to the rule: what they come to is in its task.
READ_BY = frozenset({"tune.long", "tune.capitals"})


@dataclass(frozen=True)
class Prepared:
    """Everything a run needs but a seed and a place."""

    name: str  # of the task: mrpc, classification
    model: str  # as it was given
    task: AnyTask
    start: Start
    items: Items
    dev: Mapping[str, Sequence[Example]]  # the first decides
    test: Mapping[str, Sequence[Example]]  # with labels, to be scored once at the end
    settings: FinetuneSettings  # nothing left open
    baseline: float  # the main metric of the best constant prediction
    words: WordBaseline  # the main metric of TF-IDF and a linear model
    data: str  # fingerprint
    columns: Mapping[str, str]
    notes: tuple[str, ...]

    def build(self, settings: FinetuneSettings) -> Albert:
        """Return the model that a run starts from."""
        return self.start.build(self.task, settings.tune, name=self.name, seed=settings.train.seed)

    @property
    def deciding(self) -> str:
        """Name the metric that decides which model is best."""
        return f"valid_{self.task.best}"

    @property
    def bag_of_words(self) -> float | None:
        """Return the main metric of a bag of words; None: no task for it."""
        return self.words.score

    def facts(self) -> dict[str, Any]:
        """Say what beside its settings makes a run this run: another one on its folder is refused."""
        return {
            "stage": "finetune",
            "task": {"name": self.name, "kind": self.task.kind, **self.task.remembered()},
            "model": self.model,
            "weights": self.start.fingerprint,
            "data": self.data,
            "examples": {"train": self.items.examples, "dev": {name: len(rows) for name, rows in self.dev.items()}},
        }


def prepare(opened: Opened, model: str, settings: FinetuneSettings) -> Prepared:
    """Find the model, fill in the settings, encode the training examples."""
    splits, name = opened.splits, opened.name or opened.task.kind
    dev = {key: rows for key, rows in splits.dev.items() if rows}
    if not dev:
        raise DataError("there are no dev examples to choose the best model by: give --dev, or more rows")
    start = Start.find(model)
    row = table_row(name, opened.task, model=model)
    task = reading(opened.task, splits.train, start, settings, row=row)
    if settings.tune.early_exit:
        if task.head != "classifier":
            raise UsageError(f"tune.early_exit=true: is for classification and regression, this is {task.kind}")
        task = replace(task, early_exit=True)  # type: ignore[type-var]
    items = encode_items(task, splits.train, start.tokenizer)
    deciding = next(iter(dev.values()))
    resolved = resolve(
        settings,
        start.config,
        row=row,
        examples=items.examples,
        items=len(items.items),
        dev=sum(len(rows) for rows in dev.values()),
        tuned=start.is_tuned,
    )
    decide = task.baseline(deciding)  # of dev itself: its majority class may be another than that of training
    baseline = task.score(deciding, [decide(example) for example in deciding])[task.best] if decide else 0.0
    return Prepared(
        name=name,
        model=model,
        task=task,
        start=start,
        items=items,
        dev=dev,
        test=_labelled_sets(splits.test),
        settings=resolved,
        baseline=baseline,
        words=WordBaseline(task, splits.train, deciding, opened.fingerprint),
        data=opened.fingerprint,
        columns=opened.columns,
        notes=(
            *opened.notes,
            *_notes(name, start, task, settings),
            *cut_notes(task, splits.train, items, start),
            *case_notes(task, splits.train, start),
            *markup_notes(splits.train),
        ),
    )


def _labelled_sets(sets: Mapping[str, Sequence[Example]]) -> dict[str, Sequence[Example]]:
    """Return the sets whose examples say what is true."""
    return {name: examples for name, examples in sets.items() if examples and all(map(_is_labelled, examples))}


def _is_labelled(example: Example) -> bool:
    known = (getattr(example, "target", None), getattr(example, "answers", None))
    return isinstance(example, PairExample) or any(value is not None for value in known)


def _notes(name: str, start: Start, task: AnyTask, settings: FinetuneSettings) -> list[str]:
    if settings.tune.start == "random":
        return ["all weights are new: only the shape and the tokenizer of the model are used"]
    if not task.heads:
        config, trained = start.config, task.configure(start.config)
        turned_on = trained.hidden_dropout_prob if trained != config else 0.0
        why = "texts alone are learnt from by what it changes"
        return [f"dropout {turned_on:g} is turned on for training: the model has none, and {why}"] if turned_on else []
    if start.keeps_head(task, name=name):
        return ["the model's own head for these labels is taken over"]
    if name in ("rte", "sts-b", "mrpc") and not start.is_tuned:
        return ["a new head; the paper starts RTE, STS-B and MRPC from a model tuned on MNLI (--model MNLI-RUN)"]
    return ["a new head on the encoder of a tuned model" if start.is_tuned else "a new head"]
