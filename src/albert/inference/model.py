"""A model folder, ready to use: `albert.load(folder)`.

The methods are the tasks: classify, answer, choose, tag, fill, embed. Each takes one input or a list and gives one
result or a list in the same order; all go through the one predictor. What a model can't do it refuses, saying what it
can. The task of a folder is that of its task.json, or what its heads and configuration say (tasks/saved_task.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, overload

from albert.errors import ModelError, UsageError
from albert.hardware import find_device
from albert.inference.embed import Embed, Vector
from albert.inference.fill import Blank, Fill, PlainText
from albert.inference.predictor import Decides, Predictor
from albert.model.folder import load_model
from albert.model.locate import locate
from albert.tasks.choice import Choice, ChoiceExample, Chosen
from albert.tasks.classification import Classification, Label, Labels, MultiLabel, Number, Regression, TextExample
from albert.tasks.saved_task import read_task
from albert.tasks.span import Answer, QuestionExample, SpanTask
from albert.tasks.tagging import TagExample, Tagged, Tagging, split_words
from albert.tasks.task import AnyTask
from albert.tokenizer import Tokenizer

LONGEST = 512  # tokens of a sequence to fill or embed; longer texts are read in windows
VERBS: dict[str, str] = {
    Classification.kind: "classify",
    MultiLabel.kind: "classify",
    Regression.kind: "classify",
    SpanTask.kind: "answer",
    Choice.kind: "choose",
    Tagging.kind: "tag",
}

T = TypeVar("T")
ExampleT = TypeVar("ExampleT")
Texts = list[str] | tuple[str, ...]


class Model:
    """A model with its tokenizer and its task."""

    def __init__(self, predictor: Predictor, *, name: str, task: AnyTask | None, columns: Mapping[str, str]) -> None:
        self.predictor, self.name, self.task = predictor, name, task
        self.columns = columns  # that it was trained on, by role
        self._longest = min(LONGEST, predictor.model.config.max_position_embeddings)

    @property
    def abilities(self) -> list[str]:
        """List the methods that this model can be asked by."""
        own = [VERBS[self.task.kind]] if self.task is not None else []
        return [*own, *(["fill"] if "mlm" in self.predictor.model.heads else []), "embed"]

    @overload
    def classify(self, text: str, pair: str | None = None) -> Label | Labels | Number: ...
    @overload
    def classify(self, text: Texts, pair: Texts | None = None) -> list[Label] | list[Labels] | list[Number]: ...
    def classify(self, text: str | Texts, pair: str | Texts | None = None) -> Any:
        """Decide the class of a text or a pair of texts, its classes, or its value."""
        task = self._own("classify")
        if problem := self.pair_problem(given=pair is not None):
            raise UsageError(f"{self.name}: {problem}")
        if pair is None:
            examples = [TextExample(one) for one in _column("text", text)]
        else:
            examples = [TextExample(one, other) for one, other in _side_by_side(text=text, pair=pair)]
        return self._each(task, examples, many=not isinstance(text, str))

    @overload
    def answer(self, question: str, context: str) -> Answer: ...
    @overload
    def answer(self, question: Texts, context: str | Texts) -> list[Answer]: ...
    def answer(self, question: str | Texts, context: str | Texts) -> Answer | list[Answer]:
        """Find the answer to a question in a text, or that there is none; several questions may share the text."""
        task = self._own("answer")
        asked = _side_by_side(question=question, context=_shared(context, question))
        return self._each(task, [QuestionExample(one, text) for one, text in asked], many=not isinstance(question, str))

    @overload
    def choose(self, question: str, choices: Texts, context: str = "") -> Chosen: ...
    @overload
    def choose(self, question: Texts, choices: Sequence[Texts], context: str | Texts = "") -> list[Chosen]: ...
    def choose(
        self, question: str | Texts, choices: Texts | Sequence[Texts], context: str | Texts = ""
    ) -> Chosen | list[Chosen]:
        """Choose one of several answers to a question, about a text where there is one."""
        task = self._own("choose")
        many = not isinstance(question, str)
        asked = _side_by_side(question=question, context=_shared(context, question))
        sets = [_choices(own) for own in (choices if many else [choices])]
        if len(sets) != len(asked):
            raise UsageError(f"{len(asked)} questions and {len(sets)} sets of choices: give as many of each")
        examples = [ChoiceExample(text, one, own) for (one, text), own in zip(asked, sets, strict=True)]
        return self._each(task, examples, many=many)

    @overload
    def tag(self, text: str) -> Tagged: ...
    @overload
    def tag(self, text: Texts | Sequence[Texts]) -> list[Tagged]: ...
    def tag(self, text: str | Texts | Sequence[Texts]) -> Tagged | list[Tagged]:
        """Tag the words of a text; in a list, a text can also be given as a list of its words."""
        task = self._own("tag")
        examples = [
            split_words(one) if isinstance(one, str) else TagExample(_column("words", one))
            for one in ([text] if isinstance(text, str) else text)
        ]
        return self._each(task, examples, many=not isinstance(text, str))

    @overload
    def fill(self, text: str, *, top: int = 3) -> tuple[Blank, ...]: ...
    @overload
    def fill(self, text: Texts, *, top: int = 3) -> list[tuple[Blank, ...]]: ...
    def fill(self, text: str | Texts, *, top: int = 3) -> tuple[Blank, ...] | list[tuple[Blank, ...]]:
        """Give the best pieces for each [MASK] of a text."""
        examples = [PlainText(one) for one in _column("text", text)]
        return self._each(self.filling(top=top), examples, many=not isinstance(text, str))

    @overload
    def embed(self, text: str) -> Vector: ...
    @overload
    def embed(self, text: Texts) -> list[Vector]: ...
    def embed(self, text: str | Texts) -> Vector | list[Vector]:
        """Give a text as a vector."""
        examples = [PlainText(one) for one in _column("text", text)]
        return self._each(self.embedding(), examples, many=not isinstance(text, str))

    def filling(self, *, top: int = 3) -> Fill:
        """Give what fills in blanks, for the predictor."""
        if "mlm" not in self.predictor.model.heads:
            raise self._unable("fill")
        if top < 1:
            raise UsageError(f"top={top}: must be 1 at least")
        return Fill(self.predictor.tokenizer.pieces, self._longest, top)

    def embedding(self) -> Embed:
        """Give what embeds texts, for the predictor."""
        return Embed(self._longest)

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

    def _own(self, verb: str) -> AnyTask:
        if self.task is None or VERBS[self.task.kind] != verb:
            raise self._unable(verb)
        return self.task

    def _unable(self, verb: str) -> UsageError:
        heads = ", ".join(self.predictor.model.heads) or "none"
        task = f", for {self.task.kind}" if self.task is not None else ""
        return UsageError(f"{self.name}: can't {verb}: its heads are {heads}{task}: it can {', '.join(self.abilities)}")

    def _each(self, task: Decides[ExampleT, Any, T], examples: Sequence[ExampleT], *, many: bool) -> Any:
        results = list(self.predictor.predict(task, examples))
        return results if many else results[0]


def load(name: str | Path, *, device: str | None = None) -> Model:
    """Open a model folder, a run folder, or a model that comes with the package."""
    folder = locate(name)
    loaded = load_model(folder)
    if loaded.new and len(loaded.model.heads):
        lost = ", ".join(sorted({part.split(".")[1] for part in loaded.new}))
        raise ModelError(f"{folder}: has no weights for {lost}, which its config.json names: it was never trained")
    model = loaded.model.to(device or find_device())
    remembered = read_task(folder, model.config, list(model.heads))
    return Model(
        Predictor(model, Tokenizer.load(folder)),
        name=str(name),
        task=remembered.task if remembered else None,
        columns=remembered.columns if remembered else {},
    )


def _column(name: str, texts: Any) -> tuple[str, ...]:
    """Give texts as a column; a single one is a column of one."""
    found = (texts,) if isinstance(texts, str) else tuple(texts) if isinstance(texts, Iterable) else (None,)
    if not all(isinstance(text, str) for text in found):
        raise UsageError(f"{name}: {str(texts)[:60]!r} is neither a text nor a list of texts")
    return found


def _side_by_side(**columns: str | Texts) -> list[tuple[str, str]]:
    """Put two columns of texts side by side."""
    first, second = (_column(name, texts) for name, texts in columns.items())
    if len({isinstance(texts, str) for texts in columns.values()}) > 1 or len(first) != len(second):
        one, other = columns
        raise UsageError(
            f"{len(first)} of {one} and {len(second)} of {other}: give one text each, or equally long lists"
        )
    return list(zip(first, second, strict=True))


def _shared(context: str | Texts, question: str | Texts) -> str | Texts:
    """Give every question of a list the one text that they are all about."""
    return [context] * len(question) if isinstance(context, str) and not isinstance(question, str) else context


def _choices(values: Any) -> tuple[str, ...]:
    found = () if isinstance(values, str) else _column("choices", values)
    if len(found) < 2:
        raise UsageError(f"choices: {str(values)[:60]!r} must be a list of at least two texts")
    return found
