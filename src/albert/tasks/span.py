"""Answering a question with a span of its passage, or saying that there is none: SQuAD 1.1, 2.0 and data like it.

Two heads can do it. The plain one scores every token as start and as end, and [CLS] as "no answer here". The
conditional one (Google's for 2.0: squad_utils.py in google-research/albert) scores the end given the start, and
answerability by itself. Either way the windows of a passage give candidates and null odds; a question is said to have
no answer when the odds are above a threshold that is chosen on dev. Answers are cut from the original passage. Knows
nothing of files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from albert.batch import Said, Wanted
from albert.errors import UsageError, did_you_mean
from albert.model import Albert, Packed
from albert.model.config import AlbertConfig
from albert.model.encoder import Encoded
from albert.model.heads import IMPOSSIBLE
from albert.model.losses import conditional_span_loss, span_loss
from albert.tasks.answer_scores import best_threshold, score_answer
from albert.tasks.asking import Texts, shared, side_by_side
from albert.tasks.candidates import Candidate, distinct, spans_of_beam, spans_of_logits
from albert.tasks.decision import Decision, shorten
from albert.tasks.dev_view import Binned, DevView, Figure, Scores, mean, mean_score
from albert.tasks.task import Example, Record, Task
from albert.tasks.windows import Passage, Sizes, Span, Window, cut_windows
from albert.tokenizer import Tokenizer

PLAIN, CONDITIONAL = "span", "conditional_span"
RECORDED = 5  # candidates of an answer in its record
AROUND = 120  # characters of a passage on each side of an answer that a report shows
ABSENT = -1e6  # the score of an answer where there is no candidate at all


class AnswerText(NamedTuple):
    """A true answer: its text, and the character of the passage that it begins at."""

    text: str
    start: int


@dataclass(frozen=True)
class QuestionExample(Example):
    """A question about a passage, with its true answers: none of them if it has no answer, None if not known."""

    question: str
    passage: str
    answers: tuple[AnswerText, ...] | None = None
    id: str = ""
    article: str = ""  # passages of one article never stand on both sides of a split


@dataclass(frozen=True)
class Answer:
    """A decision: the answer, or an empty text and no place where there is none; the candidates, best first."""

    text: str
    start: int | None
    end: int | None
    probability: float  # of the answer among the candidates; of no answer where that is the decision
    no_answer: float  # the probability that there is no answer
    null_odds: float  # its logit, which the threshold is compared with
    candidates: tuple[Candidate, ...]


class AnswerView(DevView):
    """Exact match and F1, by the length of questions and answers too."""

    title = "Answers"
    length_name = "words of the passage"
    probability_note = "An answer comes true if it matches exactly; its probability is that among the candidates."

    def figures(self) -> Iterator[Figure]:
        yield from self.groups()
        yield Binned("words of the question", self.decisions, lambda one: one.asked)
        if answered := [one for one in self.decisions if one.truth]:
            yield Binned("words of the answer", answered, lambda one: min(len(text.split()) for text in one.truth))

    def scores(self) -> Scores:
        return {"exact": lambda some: f"{mean([one.exact or 0.0 for one in some]):.1%}", "F1": mean_score}

    def trials(self, one: Decision) -> Iterator[tuple[float, bool]]:
        yield from ((p, one.exact == 1.0) for p in one.probabilities)

    def mistake(self, one: Decision) -> tuple[float, str] | None:
        """Return what is wrong; what overlaps is no clear mistake."""
        return None if one.score > 0 or one.exact else super().mistake(one)


@dataclass(frozen=True)
class SpanTask(Task[QuestionExample, Window, Answer]):
    """A span of the passage; with `unanswerable`, perhaps none."""

    kind: ClassVar[str] = "span"
    verb: ClassVar[str] = "answer"
    options: ClassVar[tuple[str, ...]] = ("question",)
    usage: ClassVar[tuple[str, str]] = (
        'answer("Who came?", "A man came.")',
        '"A man came." --question "Who came?"',
    )
    view: ClassVar[type[DevView]] = AnswerView
    apart: ClassVar[bool] = True
    head: str = PLAIN
    unanswerable: bool = False  # whether a question may have no answer
    null_threshold: float | None = None  # null odds above which it has none; None: not chosen yet
    max_length: int = 384
    max_question: int = 64
    stride: int = 128
    max_answer: int = 30  # tokens
    n_best: int = 20
    best: str = "f1"

    def __post_init__(self) -> None:
        if self.head not in (PLAIN, CONDITIONAL):
            raise UsageError(f"head '{self.head}' finds no spans: {did_you_mean(self.head, (PLAIN, CONDITIONAL))}")
        if self.max_length < 16:
            raise UsageError(f"max_length={self.max_length} has no room for a question and a passage: use 16 or more")
        for name in ("max_question", "stride", "max_answer", "n_best"):
            if (value := getattr(self, name)) < 1:  # windows a stride of 0 apart would never reach the passage's end
                raise UsageError(f"{name}={value} must be 1 or more")

    def configure(self, config: AlbertConfig) -> AlbertConfig:
        return config

    def encode(self, example: QuestionExample, tokenizer: Tokenizer) -> list[Window]:
        passage = Passage.read(example.passage, tokenizer)
        target = None
        if example.answers is not None:
            target = Span(0, 0)
            if example.answers:  # SQuAD trains on the first; the others are for scoring
                text, start = example.answers[0]
                target = passage.tokens_of(Span(start, start + len(text)))
        sizes = Sizes(self.max_length, self.max_question, self.stride, self.max_answer)
        question = tokenizer.encode(example.question)
        return cut_windows(question, passage, tokenizer=tokenizer, sizes=sizes, answer=target)

    def count(self, features: Sequence[Window]) -> float:
        return float(len(features))

    def loss(
        self, model: Albert, packed: Packed, encoded: Encoded, *, features: Sequence[Window], count: float
    ) -> Tensor:
        targets = torch.tensor([feature.target for feature in features], device=model.device)  # [B, 2]
        starts, ends = targets[:, 0], targets[:, 1]
        if self.head == PLAIN:
            logits = model.heads[PLAIN](encoded.states).float()  # [T, 2]
            rows = pad_sequence(list(logits.split(list(packed.lengths))), batch_first=True, padding_value=IMPOSSIBLE)
            return span_loss(rows[..., 0], rows[..., 1], starts, ends, count=count)
        scores = model.heads[CONDITIONAL](
            encoded.states, packed, allowed=_allowed(features, model.device), true_starts=starts
        )
        impossible = torch.tensor([feature.impossible for feature in features], device=model.device)
        return conditional_span_loss(scores, starts, ends, impossible, count=count)

    def wanted(self, features: Sequence[Window]) -> Wanted:
        if self.head == PLAIN:
            return {PLAIN: "tokens"}
        return {CONDITIONAL: [np.flatnonzero(feature.allowed).tolist() for feature in features]}

    def outputs(self, feature: Window, said: Said) -> tuple[np.ndarray, ...]:
        if self.head == CONDITIONAL:
            return said[CONDITIONAL]
        (logits,) = said[PLAIN]  # [tokens, 2]
        return logits[:, 0], logits[:, 1]

    def decide(self, example: QuestionExample, features: Sequence[Window], outputs: Sequence[Any]) -> Answer:
        windows = list(zip(features, outputs, strict=True))
        if self.head == PLAIN:
            found = [spans_of_logits(*one, max_answer=self.max_answer, n_best=self.n_best) for one in windows]
        else:
            found = [spans_of_beam(*one, max_answer=self.max_answer) for one in windows]
        candidates = distinct(example.passage, chain.from_iterable(found), n_best=self.n_best)
        if self.head == PLAIN:
            null = min(float(starts[0] + ends[0]) for starts, ends in outputs)
            return self._answer(candidates, null - (candidates[0].score if candidates else ABSENT))
        return self._answer(candidates, min(float(no_answer) for *_, no_answer in outputs))

    def score(self, examples: Sequence[QuestionExample], predictions: Sequence[Answer]) -> dict[str, float]:
        each = [
            score_answer(answer.text, _texts(example), unanswerable=self.unanswerable)
            for example, answer in zip(examples, predictions, strict=True)
        ]
        scores = {
            "f1": float(np.mean([one.f1 for one in each])),
            "exact": float(np.mean([one.exact for one in each])),
        }
        if not self.unanswerable:
            return scores
        for name, wanted in (("answerable", True), ("unanswerable", False)):
            if some := [one for one, example in zip(each, examples, strict=True) if bool(example.answers) == wanted]:
                scores[f"{name}_f1"] = float(np.mean([one.f1 for one in some]))
                scores[f"{name}_exact"] = float(np.mean([one.exact for one in some]))
        return scores

    def settled(self, examples: Sequence[QuestionExample], predictions: Sequence[Answer]) -> Self:
        """Choose the null threshold that gives the best F1, unless there is one already or none is needed."""
        if not self.unanswerable or self.null_threshold is not None:
            return self
        guesses = [given.candidates[0].text if given.candidates else "" for given in predictions]
        scores = [
            score_answer(guess, _texts(example), unanswerable=True).f1 if example.answers else float(guess == "")
            for example, guess in zip(examples, guesses, strict=True)
        ]
        answerable = [bool(example.answers) for example in examples]
        threshold = best_threshold(scores, [given.null_odds for given in predictions], answerable=answerable)
        return replace(self, null_threshold=threshold.odds)

    def decided(self, given: Answer) -> Answer:
        """Decide again, from the same candidates, by this task's threshold."""
        return self._answer(given.candidates, given.null_odds)

    def baseline(self, examples: Sequence[QuestionExample]) -> Callable[[QuestionExample], Answer] | None:
        """Say of every question that it has no answer, where some have none."""
        if not self.unanswerable:
            return None
        nothing = self._answer((), -ABSENT)
        return lambda _: nothing

    def asked(self, question: str | Texts, context: str | Texts) -> tuple[list[QuestionExample], bool]:
        questions = side_by_side(question=question, context=shared(context, question))
        return [QuestionExample(one, text) for one, text in questions], not isinstance(question, str)

    def example(self, text: str, *, pair: str | None, question: str | None, choices: Sequence[str]) -> QuestionExample:
        if question is None:
            raise UsageError("--question is missing: the model answers a question about the text")
        return QuestionExample(question, text)

    def record(self, example: QuestionExample, prediction: Answer) -> Record:
        values = asdict(prediction)
        return {
            **({"id": example.id} if example.id else {}),
            "question": example.question,
            "answer": values.pop("text"),
            **values,
            "candidates": values["candidates"][:RECORDED],
        }

    def decision(self, example: QuestionExample, prediction: Answer) -> Decision:
        answers = example.answers or ()
        truth = tuple(answer.text for answer in answers)
        scores = score_answer(prediction.text, truth, unanswerable=self.unanswerable)
        start = answers[0].start if answers else prediction.start or 0
        first, last = max(0, start - AROUND), start + AROUND
        passage = ("…" if first else "") + example.passage[first:last] + ("…" if last < len(example.passage) else "")
        return Decision(
            f"{shorten(example.question)} ‖ {passage}",
            len(example.passage.split()),
            truth,
            (prediction.text,),
            scores.f1,
            example.place,
            probabilities=(prediction.probability,),
            exact=scores.exact,
            asked=len(example.question.split()),
            group=("with an answer" if truth else "without an answer") if self.unanswerable else "",
        )

    def remembered(self) -> dict[str, Any]:
        names = ("head", "unanswerable", "null_threshold", "max_question", "stride", "max_answer", "n_best")
        return super().remembered() | {name: getattr(self, name) for name in names}

    def _answer(self, candidates: tuple[Candidate, ...], odds: float) -> Answer:
        no_answer = 1 / (1 + math.exp(-max(min(odds, 500.0), -500.0)))
        withheld = self.unanswerable and odds > (self.null_threshold or 0.0)
        if withheld or not candidates:
            return Answer("", None, None, no_answer, no_answer, odds, candidates)
        first = candidates[0]
        return Answer(first.text, first.start, first.end, first.probability, no_answer, odds, candidates)


def _allowed(features: Sequence[Window], device: torch.device) -> Tensor:
    return torch.from_numpy(np.concatenate([feature.allowed for feature in features])).to(device)  # [T]


def _texts(example: QuestionExample) -> list[str]:
    assert example.answers is not None, f"{example.place}: nothing to score against"
    return [answer.text for answer in example.answers]
