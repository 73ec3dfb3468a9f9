"""The models of a server: each under a name, with the lanes of the queue that its requests go through.

A model that was loaded again takes the old one's place between two requests: a request keeps the one it began with.
Each model has a known answer, computed when it was loaded, that readiness is judged by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from albert.errors import ModelError, UsageError
from albert.inference.embed import Vector
from albert.inference.fill import PlainText
from albert.inference.model import Model, load
from albert.inference.predictor import Predictor
from albert.inference.torch_engine import TorchEngine
from albert.model.locate import locate
from albert.serve.batching import Item, Lane
from albert.serve.depth import layer_lane
from albert.serve.refusals import Refusal, backend
from albert.serve.scores import WithLogits
from albert.serve.settings import ServeSettings
from albert.serve.token_states import TokenStates
from albert.tasks.classification import Classification, MultiLabel, Regression
from albert.tasks.similarity import Similarity
from albert.tokenizer.folder import FILES

PROBE = "The quick brown fox jumps over the lazy dog."
TOLERANCE = 1e-4  # of a known answer that is computed again
WATCHED = ("config.json", "model.safetensors", "task.json", *FILES)
VERBS = ("answer", "choose", "tag", "fill")


class Served:
    """A model, ready for requests."""

    def __init__(self, name: str, model: Model, settings: ServeSettings, *, signature: Mapping[str, Any]) -> None:
        self.name, self.model = name, model
        self.signature = signature  # of its folder, before it was read
        self.tokenizer = model.predictor.tokenizer
        budget = 1 if settings.exact else settings.batch_tokens  # a batch has one sequence at least
        self.predictor = Predictor(model.predictor.engine, self.tokenizer, batch_tokens=budget)
        embedding = model.embedding()
        self.max_length = embedding.max_length  # tokens of an input, special ones included
        longest = max(self.max_length, model.task.max_length if model.task is not None else 0)
        if longest > settings.batch_tokens:
            raise UsageError(
                f"--batch-tokens {settings.batch_tokens} is less than the longest sequence of {name} ({longest}): "
                f"use {longest} or more"
            )
        self.embed = Lane(self.predictor, embedding)
        self.embed_all = Lane(self.predictor, TokenStates(embedding.max_length))
        self.own = Lane(self.predictor, model.task) if model.task is not None else None
        self.scored: Lane | None = None  # of a model that classifies
        if isinstance(model.task, Classification | MultiLabel | Regression):
            self.scored = Lane(self.predictor, WithLogits(model.task))
        self._fills: dict[int, Lane] = {}
        self._layers: dict[Lane, Lane] = {}
        self._opening = Lock()
        self.probe = Item(PlainText(PROBE), embedding.encode(PlainText(PROBE), self.tokenizer))
        (self._known,) = self.predictor.predict_encoded(embedding, [(self.probe.example, self.probe.features)])
        if not np.isfinite(self._known).all():
            raise ModelError(f"{model.folder}: its vectors are not finite numbers: the weights are damaged")

    @cached_property
    def abilities(self) -> list[str]:
        """List what can be asked of the model, by the names of the routes."""
        own = self.model.abilities
        found = ["predict"] if "classify" in own else [verb for verb in VERBS if verb in own]
        found += ["fill"] if "fill" in own and "fill" not in found else []
        found += ["rerank"] if self.ranks else []
        return [*found, "embed", "similarity"]

    @property
    def ranks(self) -> bool:
        """Tell whether a number of the model's own says how well two texts belong together."""
        task = self.model.task
        pairs = "pair" in self.model.columns
        return isinstance(task, Similarity) or (isinstance(task, Regression) and pairs)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Return the classes of the model's own task."""
        return tuple(getattr(self.model.task, "labels", ()))

    def filling(self, top: int) -> Lane:
        """Return the lane for blanks."""
        if top not in self._fills:
            self._fills[top] = Lane(self.predictor, self.model.filling(top=top))
        return self._fills[top]

    def layers(self, lane: Lane) -> Lane:
        """Return the lane of the same task that stops at every layer; the first call may have to load the model."""
        with self._opening:
            if lane not in self._layers:
                self._layers[lane] = layer_lane(lane, self._torch)
            return self._layers[lane]

    @cached_property
    def _torch(self) -> TorchEngine:
        """Return the model in PyTorch: no other engine can stop at a layer."""
        engine = self.predictor.engine
        if not isinstance(engine, TorchEngine):
            engine = load(self.model.folder, engine="torch").predictor.engine
        assert isinstance(engine, TorchEngine)
        return engine

    def lane(self, verb: str) -> Lane:
        """Return the lane of the model's own task, if that is what is asked for."""
        if self.own is None or self.model.task is None or self.model.task.verb != verb:
            raise self.unable(verb)
        return self.own

    def unable(self, verb: str) -> Refusal:
        """Return that the model can't do something, and what it can."""
        return backend(f"the model {self.name} can't {verb}: it can {', '.join(self.abilities)}")

    def is_known(self, vector: Vector) -> bool:
        """Tell whether this is the known answer to the probe."""
        return bool(np.abs(vector - self._known).max() <= TOLERANCE * max(1.0, float(np.abs(self._known).max())))


def signature(folder: Path) -> dict[str, Any]:
    """Return the files of a model folder with their sizes, times and places on the disk."""
    found = {}
    for name in WATCHED:
        try:
            status = (folder / name).stat()
        except OSError:
            continue
        found[name] = (status.st_size, status.st_mtime_ns, status.st_ino)
    return found


@dataclass
class Models:
    """The models by name; the first is the default."""

    served: dict[str, Served]

    @classmethod
    def load(cls, settings: ServeSettings) -> Models:
        """Open all models."""
        return cls({name: open_model(name, model, settings) for name, model in settings.models.items()})

    def __iter__(self) -> Iterator[Served]:
        return iter(self.served.values())

    def get(self, name: str) -> Served | None:
        """Return the model of a name."""
        return self.served.get(name)

    def able(self, ability: str) -> Served:
        """Return the first model that can be asked for something, or else the first one, which will refuse it."""
        return next((one for one in self if ability in one.abilities), next(iter(self)))


def open_model(name: str, model: str, settings: ServeSettings) -> Served:
    """Open one model, and remember its folder as it was before it was read."""
    before = signature(locate(model))
    opened = load(model, engine=settings.engine, precision=settings.precision)
    return Served(name, opened, settings, signature=before)
