"""The decisions of a run's best model about its dev examples, as its folder keeps them for the report.

One line an example in `decisions.jsonl`: what was decided, what is true, how probable the model held it. Texts are
cut to what a reader looks at. They stay in the run folder and never go into the model folder, which is given away.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from albert.errors import UsageError
from albert.files import atomic_write
from albert.tasks.answer_scores import score_answer
from albert.tasks.choice import ChoiceExample, Chosen
from albert.tasks.classification import Label, Labels, Number, TextExample
from albert.tasks.saved_task import KINDS
from albert.tasks.span import Answer, QuestionExample, SpanTask
from albert.tasks.tagging import TagExample, Tagged
from albert.tasks.task import AnyTask

FILE = "decisions.jsonl"
SHOWN = 400  # characters of a text
AROUND = 120  # characters of a passage on each side of an answer


@dataclass(frozen=True)
class Decision:
    """One example: `guess` and `truth` are a class, several, the tags of all words, or an answer and the true ones."""

    text: str
    length: int  # words
    truth: tuple[str, ...]
    guess: tuple[str, ...]
    score: float  # 1 is right; the F1 of an answer, the share of a sentence's words; of a number, how far it is off
    place: str = ""  # file:line
    probabilities: tuple[float, ...] = ()  # of each guess; of several labels at once, of each label
    values: tuple[float, float] | None = None  # the true number and the guessed one
    exact: float | None = None  # of an answer
    words: tuple[str, ...] = ()  # that have tags
    asked: int = 0  # words of a question
    group: str = ""  # a part of the data


@dataclass(frozen=True)
class Decided:
    """All decisions about a dev set, with what is needed to read them."""

    kind: str  # of the task
    labels: tuple[str, ...]
    best: str  # the score that decides
    baseline: float  # it without reading
    decisions: tuple[Decision, ...] = ()


_LINE, _HEAD = TypeAdapter(Decision), TypeAdapter(Decided)


def keep_decisions(
    folder: Path, task: AnyTask, *, examples: Sequence[Any], predictions: Sequence[Any], baseline: float
) -> None:
    """Write the decisions of a task into a run folder."""
    if task.kind not in KINDS:  # somebody's own: nothing is known of its decisions
        return
    head = asdict(Decided(task.kind, tuple(getattr(task, "labels", ())), task.best, baseline))
    with atomic_write(folder / FILE) as file:
        file.write(_to_line(head))
        for example, prediction in zip(examples, predictions, strict=True):
            file.write(_to_line(asdict(to_decision(task, example, prediction))))


def _to_line(values: dict[str, Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False).encode(errors="replace") + b"\n"  # texts may hold half characters


def read_decisions(folder: Path) -> Decided | None:
    """Read the decisions of a run; None where it has not come to any."""
    path = folder / FILE
    if not path.exists():
        return None
    lines = path.read_bytes().splitlines()
    try:
        head = _HEAD.validate_json(lines[0] if lines else b"")
    except ValidationError as problem:
        raise UsageError(f"{path}:1: not the head of a file of decisions: delete it to report without") from problem
    return replace(head, decisions=tuple(_read_lines(lines[1:], path)))


def _read_lines(lines: Sequence[bytes], path: Path) -> Iterator[Decision]:
    for number, line in enumerate(lines, 2):
        try:
            yield _LINE.validate_json(line)
        except ValidationError as problem:
            raise UsageError(
                f"{path}:{number}: no decision: the file is damaged: delete it to report without"
            ) from problem


def to_decision(task: AnyTask, example: Any, prediction: Any) -> Decision:
    """Keep of an example and its decision what a report shows."""
    match example, prediction:
        case TextExample(), Label() | Labels() | Number():
            return _of_text(tuple(getattr(task, "labels", ())), example, prediction)
        case ChoiceExample(), Chosen():
            return _of_choice(example, prediction)
        case QuestionExample(), Answer():
            assert isinstance(task, SpanTask)
            return _of_question(example, prediction, unanswerable=task.unanswerable)
        case TagExample(), Tagged():
            return _of_tags(tuple(getattr(task, "labels", ())), example, prediction)
    raise TypeError(f"no report of {type(example).__name__} and {type(prediction).__name__}")


def _of_text(labels: Sequence[str], example: TextExample, given: Label | Labels | Number) -> Decision:
    pair = example.pair or ""
    text = shorten(example.text) + (f" ‖ {shorten(pair)}" if pair else "")
    length = len(example.text.split()) + len(pair.split())
    target: Any = example.target  # a number, a label's, or those of several, as the task has it
    if isinstance(given, Number):
        value = float(target)
        shown = (f"{value:.4g}",), (f"{given.value:.4g}",)
        return Decision(text, length, *shown, abs(given.value - value), example.place, values=(value, given.value))
    truth: tuple[str, ...]
    guess: tuple[str, ...]
    sure: tuple[float, ...]
    if isinstance(given, Label):
        truth, guess, sure = (labels[target],), (given.label,), (given.probabilities[given.label],)
    else:
        truth = tuple(labels[number] for number in sorted(target))
        guess, sure = given.labels, tuple(given.probabilities[label] for label in labels)
    return Decision(text, length, truth, guess, float(set(truth) == set(guess)), example.place, probabilities=sure)


def _of_choice(example: ChoiceExample, given: Chosen) -> Decision:
    assert example.target is not None
    truth, guess = (f"{number + 1}: {shorten(example.choices[number])}" for number in (example.target, given.choice))
    length = len(example.passage.split()) + len(example.question.split())
    passage = f" ‖ {shorten(example.passage)}" if example.passage else ""
    return Decision(
        shorten(example.question) + passage, length, (truth,), (guess,), float(example.target == given.choice),
        example.place, probabilities=(given.probabilities[given.choice],), group=example.group or "",
    )  # fmt: skip


def _of_question(example: QuestionExample, given: Answer, *, unanswerable: bool) -> Decision:
    answers = example.answers or ()
    truth = tuple(answer.text for answer in answers)
    scores = score_answer(given.text, truth, unanswerable=unanswerable)
    start = answers[0].start if answers else given.start or 0
    first, last = max(0, start - AROUND), start + AROUND
    passage = ("…" if first else "") + example.passage[first:last] + ("…" if last < len(example.passage) else "")
    return Decision(
        f"{shorten(example.question)} ‖ {passage}", len(example.passage.split()), truth, (given.text,), scores.f1,
        example.place, probabilities=(given.probability,), exact=scores.exact, asked=len(example.question.split()),
        group=("with an answer" if truth else "without an answer") if unanswerable else "",
    )  # fmt: skip


def _of_tags(labels: Sequence[str], example: TagExample, given: Tagged) -> Decision:
    truth = tuple(labels[number] for number in example.target or ())
    guess = tuple(word.tag for word in given.words)
    right = sum(one == other for one, other in zip(truth, guess, strict=True))
    text = shorten(" ".join(example.words) if example.text is None else example.text)
    return Decision(
        text, len(truth), truth, guess, right / max(1, len(truth)), example.place,
        probabilities=tuple(word.probability for word in given.words), words=example.words,
    )  # fmt: skip


def shorten(text: str, most: int = SHOWN) -> str:
    """Cut a text after so many characters, saying that it goes on."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
