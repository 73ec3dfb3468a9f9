"""From tables to runs: every row at every seed with its settings resolved, and the hash that is its identity.

A run is a row with one seed. Its key is the hash of all that its scores depend on: model, settings, text, held-out
text, seed. Two tables with a row in common therefore have a run in common. Trains nothing.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from albert.data.store import TokenStore
from albert.errors import UsageError
from albert.model.config import AlbertConfig
from albert.model.presets import preset
from albert.pretrain.settings import PretrainSettings
from albert.settings import flatten, read_settings
from albert.study.tables import Of, Row, Study

# What the tables have in common: the recipe `laptop` with Muon, without its model and without growing depth, which only
# an all-shared model can do. The rate is `auto`, which knows the width.
BASE: dict[str, Any] = {
    "model_init.positions": "sinusoidal",
    "model_init.words": "ppmi",
    "model.initializer_range": 0.03,
    "data.max_length": 128,
    "data.mask_prob": 0.25,
    "grow.length": [[0.0, 16], [0.1, 32], [0.25, 64], [0.45, 128]],
    "optimizer.name": "muon",
    "train.steps": 2_000,
    "train.batch_size": 16,
    "evaluation.examples": 4_000,  # so that the choice of examples alone is within a margin of 2 points
}
EVALUATIONS = 10  # of a run, for its curves; as many checkpoints
LOGGED = 50
MEASURED_STEPS = 40  # of a row that is only there to be timed
KEY_LENGTH = 16
LATER = {"order_weight": 1.0}  # settings that the first studies did not have: without them their runs keep their names

SecondsPerStep = Callable[["Run"], float]


def read_recipe(file: Path) -> dict[str, Any]:
    """Return what a recipe sets, by dotted names."""
    return flatten(read_settings(PretrainSettings, file=file).model_dump(exclude_unset=True, exclude={"start_from"}))


@dataclass(frozen=True)
class Request:
    """What a user asks for: text, scale, budget, and settings for all rows."""

    data: Path
    valid: Path
    scale: str = "tiny"
    seeds: int = 1
    tokens: int | None = None  # that every run reads, at most; None: as many steps as the settings say
    steps: int | None = None
    recipe: Mapping[str, Any] = field(default_factory=lambda: BASE)  # dotted names
    changes: Mapping[str, Any] = field(default_factory=dict)  # of every row; a row's own settings win

    @cached_property
    def store(self) -> TokenStore:
        """Open the text to learn from."""
        return TokenStore.open(self.data)

    @cached_property
    def held_out(self) -> TokenStore:
        """Open the text to measure on."""
        return TokenStore.open(self.valid)

    def require(self) -> None:
        """Refuse what no study can be made of, before any run."""
        self.held_out.require_tokenizer(self.store.tokenizer)
        if self.store.fingerprint == self.held_out.fingerprint:
            raise UsageError(f"--valid {self.valid}: is the text that is learnt from: hold other text out")
        if self.tokens is not None and self.steps is not None:
            raise UsageError("--tokens and --steps: give one of them")


@dataclass(frozen=True)
class Run:
    """One row with one seed: all that its scores depend on."""

    model: str  # a preset; with `start`, that of the first run of the chain
    settings: PretrainSettings
    store: str  # fingerprints
    valid: str
    start: Run | None = None  # the run whose model it goes on from
    text: int | None = None  # tokens of the store that it learns from; None: all
    processes: int | None = None

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Return what makes the run this run; a setting of later versions is named where it is not its default."""
        settings = self.settings.model_dump(mode="json", exclude={"start_from"})
        later = {name for name, value in LATER.items() if settings[name] == value}
        return {
            "model": self.start.key if self.start else self.model,
            "settings": {name: value for name, value in settings.items() if name not in later},
            "store": self.store,
            "valid": self.valid,
            "text": self.text,
            "processes": self.processes,
        }

    @cached_property
    def key(self) -> str:
        """Return the name of its folder: the hash of its identity."""
        return hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()[:KEY_LENGTH]

    @cached_property
    def config(self) -> AlbertConfig:
        """Return the shape of its model, but for the vocabulary."""
        return (self.start.config if self.start else preset(self.model)).with_settings(self.settings.model)

    def from_preset(self) -> PretrainSettings:
        """Return settings that make a new model of this run's shape, whatever it goes on from."""
        return self.settings.model_copy(update={"model": _differing(preset(self.model), self.config)})

    @property
    def seed(self) -> int:
        """Return its seed."""
        return self.settings.train.seed

    @property
    def tokens(self) -> int:
        """Return the tokens that it reads, at most."""
        train = self.settings.train
        return train.steps * train.batch_size * self.settings.data.max_length


@dataclass(frozen=True)
class Resolved:
    """A study at some scale: its runs by row and seed."""

    study: Study
    runs: Mapping[tuple[str, int], Run]

    def differences(self, row: Row) -> dict[str, Any]:
        """Return what a row sets otherwise than its study's base, as resolved."""
        run = self.runs[row.name, 0]
        values = flatten(run.identity["settings"]) | {
            f"model.{name}": value for name, value in vars(run.config).items()
        }
        own = {"text": run.text, "processes": run.processes, "start": row.start}
        return {name: values[name] for name in row.settings} | {n: value for n, value in own.items() if value}


def resolve(study: Study, request: Request, *, pace: SecondsPerStep) -> Resolved:
    """Return the runs of a study; `pace` measures seconds per step, for rows that get equal time."""
    runs: dict[tuple[str, int], Run] = {}
    for seed in range(request.seeds):
        for row in study.rows:
            start = runs[row.start, seed] if row.start else None
            run = _run(study, row, request, seed=seed, start=start)
            first = runs.get((study.rows[0].name, seed))
            if study.equal == "time" and first is not None:
                steps = max(1, round(first.settings.train.steps * pace(first) / pace(run)))
                run = _run(study, row, request, seed=seed, start=start, steps=steps)
            runs[row.name, seed] = run
    return Resolved(study, runs)


def _run(
    study: Study, row: Row, request: Request, *, seed: int, start: Run | None = None, steps: int | None = None
) -> Run:
    values = {**request.recipe, "grow.depth": [], **study.base, **request.changes}
    shape = vars(preset(request.scale)) | {
        name.removeprefix("model."): value for name, value in values.items() if name.startswith("model.")
    }
    values |= _resolved(row, shape)
    settings = read_settings(PretrainSettings, defaults=values)
    steps = steps or request.steps or _steps(request.tokens, settings)
    if row.processes:
        steps = min(steps, MEASURED_STEPS)
    every = {"train.eval_every": EVALUATIONS, "train.save_every": EVALUATIONS, "train.log_every": LOGGED}
    values |= {name: math.ceil(steps / parts) for name, parts in every.items() if name not in request.changes}
    values |= {"train.steps": steps, "train.seed": seed, "train.keep": 1}
    if start:  # a trained model has its own words and positions
        values |= {"model_init.positions": "random", "model_init.words": "random"}
    settings = read_settings(PretrainSettings, defaults=values)
    before = start.config if start else preset(request.scale)
    config = preset(request.scale).with_settings(settings.model)
    settings = settings.model_copy(update={"start_from": None, "model": _differing(before, config)})
    tokens = steps * settings.train.batch_size * settings.data.max_length
    text = None if row.text is None else max(1, round(row.text * tokens))
    if text is not None and text >= (there := request.store.num_tokens):
        raise UsageError(
            f"study {study.name}: the row {row.name} learns from a part of {text:,} tokens, and {request.store.folder} "
            f"has {there:,} in all: build a larger store, or give the rows fewer tokens (--tokens)"
        )
    return Run(
        model=request.scale,
        settings=settings,
        store=request.store.fingerprint,
        valid=request.held_out.fingerprint,
        start=start,
        text=text,
        processes=row.processes,
    )


def _resolved(row: Row, shape: Mapping[str, Any]) -> dict[str, Any]:
    def value(given: Any) -> Any:
        if isinstance(given, list):
            return [value(item) for item in given]
        return given.at(shape) if isinstance(given, Of) else given

    return {name: value(given) for name, given in row.settings.items()}


def _steps(tokens: int | None, settings: PretrainSettings) -> int:
    if tokens is None:
        return settings.train.steps
    return max(1, tokens // (settings.train.batch_size * settings.data.max_length))


def _differing(before: AlbertConfig, config: AlbertConfig) -> dict[str, Any]:
    """Return the fields in which a shape differs from another: one spelling for one shape."""
    return {
        item.name: getattr(config, item.name)
        for item in fields(config)
        if getattr(config, item.name) != getattr(before, item.name)
    }
