"""Choosing between answers to a question about a passage (RACE and its like).

Every choice is one sequence, `[CLS] passage [SEP] question and choice [SEP]`, scored by one number; a softmax over the
choices of an example decides, as in google-research/albert (race_utils.py). The question-and-choice part keeps its last
128 tokens and the passage is cut to what is left. A blank in the question (RACE writes `_`) is filled with the choice,
as there; without one the choice follows the question. Knows nothing of files.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from albert.errors import UsageError
from albert.model import Albert, Packed
from albert.model.config import AlbertConfig
from albert.model.encoder import Encoded
from albert.model.losses import cross_entropy
from albert.tasks.asking import Texts, column, shared, side_by_side
from albert.tasks.classification import softmax
from albert.tasks.decision import Decision, shorten
from albert.tasks.dev_view import Confusion, DevView, Figure, Remark
from albert.tasks.task import Example, Feature, Record, Task, join_segments
from albert.tokenizer import Tokenizer

QUESTION_TOKENS = 128  # max_qa_length of Google's run_race


@dataclass(frozen=True)
class ChoiceExample(Example):
    """A question about a passage, the answers to choose from, and the number of the right one."""

    passage: str
    question: str
    choices: tuple[str, ...]
    target: int | None = None
    group: str | None = None  # a part of the data that is also scored by itself


@dataclass(frozen=True)
class ChoiceFeature(Feature):
    """One choice, with the number of the right one."""

    target: int | None


@dataclass(frozen=True)
class Chosen:
    """A decision for one of the choices, counted from 0, with the probabilities of all in their order."""

    choice: int
    text: str
    probabilities: tuple[float, ...]


class ChoiceView(DevView):
    """Whether places are preferred, and the parts of the data."""

    title = "Choices"

    def figures(self) -> Iterator[Figure]:
        places = [(one.truth[0].partition(":")[0], one.guess[0].partition(":")[0]) for one in self.decisions]
        yield Confusion(sorted({place for pair in places for place in pair}, key=int), places)
        yield Remark("By the place of the choice: a model that prefers one has not understood the others.")
        yield from self.groups()


@dataclass(frozen=True)
class Choice(Task[ChoiceExample, ChoiceFeature, Chosen]):
    """One of several answers."""

    kind: ClassVar[str] = "choice"
    verb: ClassVar[str] = "choose"
    options: ClassVar[tuple[str, ...]] = ("question", "choice")
    usage: ClassVar[tuple[str, str]] = (
        'choose("Who came?", ["a man", "a dog"], "A man came.")',
        '"A man came." --question "Who came?" --choice "a man" --choice "a dog"',
    )
    view: ClassVar[type[DevView]] = ChoiceView
    num_choices: int = 4  # of a training example; any number can be chosen from
    max_length: int = 512
    blank: str = ""  # what a question has in place of the answer; empty: nothing
    first_label: int | None = None  # what the numbers of choices counted from in the data it was trained on
    best: str = "accuracy"

    @property
    def head(self) -> str:
        return "choice"

    def configure(self, config: AlbertConfig) -> AlbertConfig:
        return config.with_settings({"problem_type": None})

    def encode(self, example: ChoiceExample, tokenizer: Tokenizer) -> list[ChoiceFeature]:
        passage = tokenizer.encode(example.passage)
        room = self.max_length - 3
        features = []
        for choice in example.choices:
            asked = tokenizer.encode(self._asked(example.question, choice))[-min(QUESTION_TOKENS, room) :]
            token_ids, segment_ids = join_segments(tokenizer, passage[: room - len(asked)], asked)
            unread = max(0, len(passage) + len(asked) - room)
            features.append(ChoiceFeature(token_ids, segment_ids, example.target, unread=unread))
        return features

    def _asked(self, question: str, choice: str) -> str:
        if self.blank and self.blank in question:
            return question.replace(self.blank, choice.strip())
        return f"{question} {choice}"

    def count(self, features: Sequence[ChoiceFeature]) -> float:
        return len(features) / self.num_choices

    def loss(
        self, model: Albert, packed: Packed, encoded: Encoded, *, features: Sequence[ChoiceFeature], count: float
    ) -> Tensor:
        logits = model.heads["choice"](encoded.pooled).view(-1, self.num_choices)
        targets = [feature.target for feature in features[:: self.num_choices]]
        return cross_entropy(logits, torch.tensor(targets, device=logits.device), count=count)

    def decide(self, example: ChoiceExample, features: Sequence[ChoiceFeature], outputs: Sequence[Any]) -> Chosen:
        probabilities = softmax(np.concatenate(outputs))
        choice = int(probabilities.argmax())
        return Chosen(choice, example.choices[choice], tuple(probabilities.tolist()))

    def score(self, examples: Sequence[ChoiceExample], predictions: Sequence[Chosen]) -> dict[str, float]:
        """Return the accuracy, of all and of each group."""
        right: dict[str, list[bool]] = defaultdict(list)
        for example, prediction in zip(examples, predictions, strict=True):
            hit = prediction.choice == example.target
            right["accuracy"].append(hit)
            if example.group is not None:
                right[f"accuracy_{example.group}"].append(hit)
        return {name: sum(hits) / len(hits) for name, hits in right.items()}

    def baseline(self, examples: Sequence[ChoiceExample]) -> Callable[[ChoiceExample], Chosen]:
        counts = Counter(example.target for example in examples)
        shares = tuple(counts[number] / max(1, len(examples)) for number in range(self.num_choices))
        majority = max(range(self.num_choices), key=lambda number: shares[number])
        return lambda example: Chosen(majority, example.choices[majority], shares)

    def asked(
        self, question: str | Texts, choices: Texts | Sequence[Texts], context: str | Texts = ""
    ) -> tuple[list[ChoiceExample], bool]:
        many = not isinstance(question, str)
        questions = side_by_side(question=question, context=shared(context, question))
        sets = [_choices(own) for own in (choices if many else [choices])]
        if len(sets) != len(questions):
            raise UsageError(f"{len(questions)} questions and {len(sets)} sets of choices: give as many of each")
        return [ChoiceExample(text, one, own) for (one, text), own in zip(questions, sets, strict=True)], many

    def example(self, text: str, *, pair: str | None, question: str | None, choices: Sequence[str]) -> ChoiceExample:
        if question is None or len(choices) < 2:
            raise UsageError("--question and two or more --choice are needed: the model chooses between answers")
        return ChoiceExample(text, question, tuple(choices))

    def record(self, example: ChoiceExample, prediction: Chosen) -> Record:
        return {
            "question": example.question,
            "choice": prediction.choice,
            "answer": prediction.text,
            "probability": prediction.probabilities[prediction.choice],
            "probabilities": list(prediction.probabilities),
        }

    def decision(self, example: ChoiceExample, prediction: Chosen) -> Decision:
        right, chosen = example.target, prediction.choice
        assert right is not None
        truth, guess = (f"{number + 1}: {shorten(example.choices[number])}" for number in (right, chosen))
        passage = f" ‖ {shorten(example.passage)}" if example.passage else ""
        return Decision(
            shorten(example.question) + passage,
            len(example.passage.split()) + len(example.question.split()),
            (truth,),
            (guess,),
            float(right == chosen),
            example.place,
            probabilities=(prediction.probabilities[chosen],),
            group=example.group or "",
        )

    def remembered(self) -> dict[str, Any]:
        names = ("num_choices", "blank", "first_label")
        return super().remembered() | {name: getattr(self, name) for name in names}


def _choices(values: Any) -> tuple[str, ...]:
    found = () if isinstance(values, str) else column("choices", values)
    if len(found) < 2:
        raise UsageError(f"choices: {str(values)[:60]!r} must be a list of at least two texts")
    return found
