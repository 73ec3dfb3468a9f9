"""A model folder, ready to use: `albert.load(folder)`.

The methods are the verbs of the tasks (classify, answer, choose, tag), fill, and what vectors are for: embed,
similarity, search. Each takes one input or a list and gives one result or several in the same order; all go through the
one predictor. What a verb takes its task says; here it has types. What a model can't do it refuses, saying what it can.
The task of a folder is that of its task.json, or what its heads and configuration say (tasks/saved_task.py).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, get_args, overload

import numpy as np

from albert.errors import DataError, ModelError, UsageError, did_you_mean
from albert.files import sha256
from albert.hardware import find_device
from albert.inference.choose_engine import open_engine
from albert.inference.early_exit import EarlyExitEngine, ExitRule
from albert.inference.embed import Embed, Vector
from albert.inference.engine import Engine
from albert.inference.fill import Blank, Fill, PlainText
from albert.inference.predictor import Decides, Predictor
from albert.inference.torch_engine import TorchEngine
from albert.inference.vectors import Found, open_vectors, unit, write_vectors
from albert.model.config import to_json
from albert.model.folder import load_model, load_tokenizer, weights_path
from albert.model.locate import locate
from albert.tasks.asking import Texts, column
from albert.tasks.choice import Chosen
from albert.tasks.classification import LongRule
from albert.tasks.classified import Label, Labels, Number
from albert.tasks.saved_task import read_task
from albert.tasks.similarity import Similarity
from albert.tasks.span import Answer
from albert.tasks.tagging import Tagged
from albert.tasks.task import AnyTask

OneClass = Literal["classification"]
SeveralClasses = Literal["multi-label"]
AValue = Literal["regression"]
LONGEST = 512  # tokens of a sequence to fill or embed; longer texts are read in windows

T = TypeVar("T")
ExampleT = TypeVar("ExampleT")


class Model:
    """A model with its tokenizer and its task."""

    def __init__(
        self, predictor: Predictor, *, name: str, folder: Path, task: AnyTask | None, columns: Mapping[str, str]
    ) -> None:
        self.predictor, self.name, self.folder, self.task = predictor, name, folder, task
        self.columns = columns  # that it was trained on, by role
        self._longest = min(LONGEST, predictor.engine.config.max_position_embeddings)

    def __repr__(self) -> str:
        """Return the name and what the model can do."""
        return f"<Model {'; '.join(f'{name}: {value}' for name, value in self._facts().items())}>"

    def _repr_html_(self) -> str:
        """Return a small table, for notebooks."""
        rows = (f"<tr><th>{name}</th><td>{escape(value)}</td></tr>" for name, value in self._facts().items())
        return f"<table>{''.join(rows)}</table>"

    def _facts(self) -> dict[str, str]:
        config = self.predictor.engine.config
        labels = ", ".join(getattr(self.task, "labels", ()))
        task = {"task": self.task.kind + (f" ({labels})" if labels else "")} if self.task is not None else {}
        shape = f"{config.num_hidden_layers} layers, {config.hidden_size} wide, {config.vocab_size:,} pieces"
        facts = {"name": repr(self.name), **task, "can": ", ".join(self.abilities), "shape": shape}
        return facts | {"engine": self.predictor.engine.name}

    @property
    def abilities(self) -> list[str]:
        """List the methods that this model can be asked by."""
        own = [self.task.verb] if self.task is not None else []
        fill = ["fill"] if "mlm" in self.predictor.engine.heads else []
        return list(dict.fromkeys([*own, *fill, "embed", "similarity", "search"]))

    @overload
    def classify(self, text: str, pair: str | None = None, *, kind: OneClass | None = None) -> Label: ...
    @overload
    def classify(self, text: Texts, pair: Texts | None = None, *, kind: OneClass | None = None) -> list[Label]: ...
    @overload
    def classify(self, text: str, pair: str | None = None, *, kind: SeveralClasses) -> Labels: ...
    @overload
    def classify(self, text: Texts, pair: Texts | None = None, *, kind: SeveralClasses) -> list[Labels]: ...
    @overload
    def classify(self, text: str, pair: str | None = None, *, kind: AValue) -> Number: ...
    @overload
    def classify(self, text: Texts, pair: Texts | None = None, *, kind: AValue) -> list[Number]: ...
    def classify(self, text: str | Texts, pair: str | Texts | None = None, *, kind: str | None = None) -> Any:
        """Decide the class of a text or a pair of texts, its classes, or its value.

        `kind` says which, for type checkers: "classification" (where it is left out), "multi-label" or "regression".
        """
        if self.task is not None and kind not in (None, self.task.kind):
            raise UsageError(f"kind={kind!r}: {self.name} was tuned for {self.task.kind}: say that, or leave it out")
        return self._do("classify", text, pair)

    @overload
    def answer(self, question: str, context: str) -> Answer: ...
    @overload
    def answer(self, question: Texts, context: str | Texts) -> list[Answer]: ...
    def answer(self, question: str | Texts, context: str | Texts) -> Any:
        """Find the answer to a question in a text, or that there is none; several questions may share the text."""
        return self._do("answer", question, context)

    @overload
    def choose(self, question: str, choices: Texts, context: str = "") -> Chosen: ...
    @overload
    def choose(self, question: Texts, choices: Sequence[Texts], context: str | Texts = "") -> list[Chosen]: ...
    def choose(self, question: str | Texts, choices: Texts | Sequence[Texts], context: str | Texts = "") -> Any:
        """Choose one of several answers to a question, about a text where there is one."""
        return self._do("choose", question, choices, context)

    @overload
    def tag(self, text: str) -> Tagged: ...
    @overload
    def tag(self, text: Texts | Sequence[Texts]) -> list[Tagged]: ...
    @overload
    def tag(self, *, words: Texts) -> Tagged: ...
    def tag(self, text: str | Texts | Sequence[Texts] | None = None, *, words: Texts | None = None) -> Any:
        """Tag the words of a text, or of several: each is a string or a list of words. `words` are one sentence."""
        return self._do("tag", text, words=words)

    @overload
    def fill(self, text: str, *, top: int = 3) -> tuple[Blank, ...]: ...
    @overload
    def fill(self, text: Texts, *, top: int = 3) -> list[tuple[Blank, ...]]: ...
    def fill(self, text: str | Texts, *, top: int = 3) -> tuple[Blank, ...] | list[tuple[Blank, ...]]:
        """Return the best words for each [MASK] of a text; a piece that only continues a word says so."""
        many = not isinstance(text, str)
        examples = [PlainText(one) for one in column("text", text)]
        return self._each(self.filling(top=top), self._numbered(examples) if many else examples, many=many)

    def embed(self, text: str | Texts, *, normalize: bool = False) -> Vector:
        """Return a text as a vector, or several as the rows of a matrix; `normalize`: of length 1."""
        examples = [PlainText(one) for one in column("text", text)]
        vectors = self._vectors(examples if isinstance(text, str) else self._numbered(examples))
        rows = np.stack(list(vectors)) if examples else np.zeros((0, self.width), dtype=np.float32)
        rows = unit(rows) if normalize else rows
        return rows[0] if isinstance(text, str) else rows

    @overload
    def similarity(self, text: str, pair: str) -> float: ...
    @overload
    def similarity(self, text: Texts, pair: str | Texts) -> list[float]: ...
    @overload
    def similarity(self, text: str, pair: Texts) -> list[float]: ...
    def similarity(self, text: str | Texts, pair: str | Texts) -> float | list[float]:
        """Return the cosine of two texts, of pairs from two lists, or of one text with each of a list."""
        examples, many = Similarity().asked(text, pair)
        texts = list(dict.fromkeys(one for example in examples for one in (example.text, example.pair or "")))
        vectors = dict(zip(texts, self.embed(texts, normalize=True), strict=True))
        cosines = [float(vectors[example.text] @ vectors[example.pair or ""]) for example in examples]
        return cosines if many else cosines[0]

    @overload
    def search(self, query: str, folder: str | Path, *, top: int = 10) -> list[Found]: ...
    @overload
    def search(self, query: Texts, folder: str | Path, *, top: int = 10) -> list[list[Found]]: ...
    def search(self, query: str | Texts, folder: str | Path, *, top: int = 10) -> list[Found] | list[list[Found]]:
        """Return the texts of a folder of vectors that are most similar to a query, best first, by all cosines."""
        if top < 1:
            raise UsageError(f"top={top}: must be 1 at least")
        if not all(one.strip() for one in column("query", query)):
            raise DataError("the query is empty: write what to look for")
        vectors = open_vectors(folder)
        vectors.refuse_other_model(self.name, self.fingerprint)
        found = vectors.search(self.embed(column("query", query), normalize=True), top=top)
        return found[0] if isinstance(query, str) else found

    def save_vectors(self, texts: Iterable[str | PlainText], folder: str | Path) -> int:
        """Write the vectors of texts into a folder to search in, in constant memory; return how many they are."""
        examples = (
            one if isinstance(one, PlainText) else PlainText(one, place=f"text {number}")
            for number, one in enumerate(texts, 1)
        )
        name = str(self.folder.resolve()) if Path(self.name).is_dir() else self.name
        return write_vectors(
            folder, examples, self._vectors, width=self.width, model=name, fingerprint=self.fingerprint
        )

    @property
    def width(self) -> int:
        """Return the numbers of a vector."""
        return self.predictor.engine.config.hidden_size

    @cached_property
    def fingerprint(self) -> str:
        """Return what tells whether vectors are of this model: a hash of all that they depend on."""
        embedding, config = self.embedding(), to_json(self.predictor.engine.config)
        parts = [
            sha256(weights_path(self.folder)),
            self.predictor.tokenizer.fingerprint,
            json.dumps(config, sort_keys=True),
        ]
        return hashlib.sha256("\n".join([*parts, repr(embedding)]).encode()).hexdigest()

    def _vectors(self, examples: Iterable[PlainText]) -> Iterator[Vector]:
        return self.predictor.predict(self.embedding(), examples)

    @staticmethod
    def _numbered(examples: Sequence[PlainText]) -> list[PlainText]:
        """Return texts of a list with their places in it, for messages."""
        return [replace(one, place=f"text {number}") for number, one in enumerate(examples, 1)]

    def filling(self, *, top: int = 3, strict: bool = True) -> Fill:
        """Return what fills in blanks, for the predictor; `strict` refuses texts without any."""
        if "mlm" not in self.predictor.engine.heads:
            raise self._unable("fill")
        if top < 1:
            raise UsageError(f"top={top}: must be 1 at least")
        words = self.predictor.tokenizer
        special = frozenset((words.pad_id, words.unk_id, words.cls_id, words.sep_id, words.mask_id))
        return Fill(words.pieces, self._longest, top, special, strict)

    def embedding(self, *, strict: bool = True) -> Embed:
        """Return what embeds texts, for the predictor; `strict` refuses empty ones, else they are rows of NaN."""
        tuned = isinstance(self.task, Similarity)
        length = self.task.max_length if self.task is not None and tuned else self._longest
        return Embed(length, cut=tuned, empty_width=None if strict else self.width)

    def read_long(self, rule: str) -> Self:
        """Say how texts that are too long are classified from now on: `first` window, or `mean` of all windows."""
        known = get_args(LongRule)
        if rule not in known:
            raise UsageError(f"long={rule!r} is unknown: {did_you_mean(rule, known)}")
        if self.task is None or not hasattr(self.task, "long"):
            if rule != "first":
                raise UsageError(f"long={rule}: is for classification, and {self.name} can {', '.join(self.abilities)}")
            return self
        self.task = replace(self.task, long=rule)  # type: ignore[type-var]
        return self

    def pair_problem(self, *, given: bool) -> str | None:
        """Say what is wrong with giving one text or two, where it is known what the model was trained on."""
        if not self.columns or given == ("pair" in self.columns):
            return None
        if given:
            return "was trained on one text at a time, and this is a pair: leave the second text out"
        return f"was trained on pairs of texts (the second was {self.columns['pair']!r}): give both"

    def predict(self, examples: Iterable[Any]) -> Iterator[Any]:
        """Decide a stream of examples of the model's own task, in order and in constant memory."""
        if self.task is None:
            raise self._unable("predict")
        return self.predictor.predict(self.task, examples)

    def _do(self, verb: str, *given: Any, **named: Any) -> Any:
        """Decide what a caller gives to the verb of the model's own task."""
        if self.task is None or self.task.verb != verb:
            raise self._unable(verb)
        examples, many = self.task.asked(*given, **named)
        if examples and (problem := self.pair_problem(given=is_pair(examples[0]))):
            raise UsageError(f"{self.name}: {problem}")
        return self._each(self.task, examples, many=many)

    if not TYPE_CHECKING:  # only the verbs above have types

        def __getattr__(self, name: str) -> Any:
            """Return the verb of a task that has another one than those above."""
            task = self.__dict__.get("task")
            if task is None or name != task.verb:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return partial(self._do, name)

    def _unable(self, verb: str) -> UsageError:
        heads = ", ".join(self.predictor.engine.heads) or "none"
        task = f", for {self.task.kind}" if self.task is not None else ""
        return UsageError(f"{self.name}: can't {verb}: its heads are {heads}{task}: it can {', '.join(self.abilities)}")

    def _each(self, task: Decides[ExampleT, Any, T], examples: Sequence[ExampleT], *, many: bool) -> Any:
        results = list(self.predictor.predict(task, examples))
        return results if many else results[0]


def load(
    name: str | Path,
    *,
    device: str | None = None,
    engine: str | None = None,
    precision: str = "fp32",
    early_exit: str | None = None,
) -> Model:
    """Open a model folder, a run folder, or a model that comes with the package.

    `engine` is torch, onnx, openvino or auto, the fastest that is installed (the default); `precision` fp32, bf16
    or int8; `early_exit` a rule (patience=3, confidence=0.95) by which texts leave before the last layer.
    """
    folder = locate(name)
    loaded = load_model(folder)
    if loaded.new and len(loaded.model.heads):
        lost = ", ".join(sorted({part.split(".")[1] for part in loaded.new}))
        raise ModelError(f"{folder}: has no weights for {lost}, which its config.json names: it was never trained")
    tokenizer = load_tokenizer(folder, loaded.model.config)
    model = loaded.model.to(device or find_device())
    remembered = read_task(folder, model.config, list(model.heads))
    opened: Engine = open_engine(model, engine=engine, precision=precision)
    if early_exit is not None:
        rule = ExitRule.parse(early_exit)
        if remembered is None or not remembered.task.early_exit:
            raise UsageError(f"{name}: was not tuned for early exit: tune it with `albert finetune --early-exit`")
        assert isinstance(opened, TorchEngine)
        opened = EarlyExitEngine(opened, rule)
    return Model(
        Predictor(opened, tokenizer),
        name=str(name),
        folder=folder,
        task=remembered.task if remembered else None,
        columns=remembered.columns if remembered else {},
    )


def is_pair(example: Any) -> bool:
    """Tell whether an example has a second text."""
    return getattr(example, "pair", None) is not None
