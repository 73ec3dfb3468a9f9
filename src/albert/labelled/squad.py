"""SQuAD's own files: questions from its JSON, predictions and null odds as its official scripts take them.

The JSON is articles of passages of questions; 2.0 marks a question without an answer by `is_impossible`. Everything
that is read is checked, and an error says where in the file it stands: a wrong answer_start would silently train a
model on wrong words. Answers are checked by `checked_answer` wherever they come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from albert.errors import DataError
from albert.files import read_json, write_json
from albert.labelled.request import OnProblem, refuse, sift
from albert.tasks.span import Answer, AnswerText, QuestionExample
from albert.text.documents import ReadReport, mend_json
from albert.text.sources import Source

LIMIT = 2**31  # bytes of a JSON file, which is read as a whole; larger data goes into .jsonl or .parquet
SHOWN = 60  # characters of a text in a message

PREDICTIONS = "predictions.json"
NULL_ODDS = "null_odds.json"


def read_squad(
    path: Path, *, labelled: bool | None, on_problem: OnProblem = refuse, report: ReadReport | None = None
) -> Iterator[QuestionExample]:
    """Return the questions of a file; answers are required, or not looked at, or (None) taken where they are."""
    count = 0
    values = mend_json(_load(path), Source(path, "json", ""), 1, report if report is not None else ReadReport())
    for number, article in enumerate(_get(values, "data", list, f"{path}: ")):
        at = f"{path}: data[{number}]"
        try:
            title = _get(article, "title", str, f"{at}.") if isinstance(article, dict) and "title" in article else ""
            paragraphs = list(enumerate(_get(article, "paragraphs", list, f"{at}.")))
        except DataError as problem:
            on_problem(problem)
            continue
        for which, paragraph in paragraphs:
            place = f"{at}.paragraphs[{which}]"
            for example in _paragraph(paragraph, place, labelled=labelled, article=title, on_problem=on_problem):
                yield example
                count += 1
    if not count:
        raise DataError(f"{path}: no questions: data[].paragraphs[].qas must hold some")


def _load(path: Path) -> dict[str, Any]:
    try:
        return read_json(path, error=DataError, limit=LIMIT)
    except DataError as problem:
        raise DataError(
            f'{problem}: .json is for data in SQuAD\'s form ({{"data": [{{"paragraphs": …}}]}}); '
            "a table goes into .jsonl, one object per line"
        ) from problem


def _paragraph(
    value: Any, place: str, *, labelled: bool | None, article: str, on_problem: OnProblem
) -> list[QuestionExample]:
    try:
        passage = _text(value, "context", f"{place}.", empty=not labelled)
        questions = list(enumerate(_get(value, "qas", list, f"{place}.")))
    except DataError as problem:
        on_problem(problem)
        return []
    return sift(
        questions,
        lambda one: _question(one[1], passage, f"{place}.qas[{one[0]}]", labelled=labelled, article=article),
        on_problem,
    )


def _question(value: Any, passage: str, place: str, *, labelled: bool | None, article: str) -> QuestionExample:
    question = _text(value, "question", f"{place}.", empty=not labelled)
    name = _text(value, "id", f"{place}.")
    answers: tuple[AnswerText, ...] | None = None
    if labelled or (labelled is None and "answers" in value):
        answers = tuple(
            checked_answer(
                _get(answer, "text", str, f"{place}.answers[{number}]."),
                _get(answer, "answer_start", int, f"{place}.answers[{number}]."),
                passage,
                place=f"{place}.answers[{number}]",
            )
            for number, answer in enumerate(_get(value, "answers", list, f"{place}."))
        )
        impossible = value.get("is_impossible")
        if impossible is not None and bool(impossible) == bool(answers):
            raise DataError(
                f"{place}: is_impossible={impossible!r} with {len(answers)} answers: a question has answers, "
                "or is impossible: correct one of the two"
            )
    return QuestionExample(question, passage, answers, name, article, place=place)


def checked_answer(text: str, start: int, passage: str, *, place: str) -> AnswerText:
    """See that an answer stands in its passage where it says."""
    if not text.strip():
        raise DataError(f"{place}: the answer's text is empty: a question without an answer has no answers at all")
    if not 0 <= start < len(passage):
        raise DataError(
            f"{place}: answer_start={start} is outside the passage, which has {len(passage):,} characters "
            f"counted from 0: {_whereabouts(text, passage, start)}"
        )
    there = passage[start : start + len(text)]
    if there != text:
        raise DataError(
            f"{place}: answer {text[:SHOWN]!r} does not stand at answer_start={start}, where the passage has "
            f"{there[:SHOWN]!r}: {_whereabouts(text, passage, start)}"
        )
    return AnswerText(text, start)


def _whereabouts(text: str, passage: str, start: int) -> str:
    """Say what to do: the nearest place where the answer does stand, if there is one."""
    after, before = passage.find(text, max(start, 0)), passage.rfind(text, 0, max(start, 0) + len(text))
    found = [place for place in (after, before) if place >= 0]
    if found:
        return f"it stands at {min(found, key=lambda place: abs(place - start))}: correct answer_start"
    return "it is nowhere in the passage: copy the answer from the passage, or leave the question out"


def _get(value: Any, name: str, kind: type, place: str) -> Any:
    """Return a field of a JSON object; `place` ends where the field's name goes."""
    if not isinstance(value, dict):
        raise DataError(f"{place.rstrip('.')}: a JSON {type(value).__name__}, must be an object with {name!r}")
    if name not in value:
        raise DataError(f"{place}{name}: is missing: SQuAD's files have it, as {_KINDS[kind]}")
    item = value[name]
    if not isinstance(item, kind) or isinstance(item, bool):
        raise DataError(f"{place}{name}={str(item)[:SHOWN]!r}: must be {_KINDS[kind]}")
    return item


_KINDS: dict[type, str] = {list: "a list", str: "a text", int: "a whole number"}


def _text(value: Any, name: str, place: str, *, empty: bool = False) -> str:
    text: str = _get(value, name, str, place)
    if not empty and not text.strip():
        raise DataError(f"{place}{name}: is empty, must be a text: fill it in or leave it out")
    return text


def write_predictions(
    folder: Path, examples: Sequence[QuestionExample], predictions: Sequence[Answer], *, null_odds: bool
) -> list[Path]:
    """Write predictions.json, and where questions may have no answer null_odds.json."""
    ids = [example.id for example in examples]
    assert len(set(ids)) == len(ids), "whoever opened the data has seen to it that every question has its own id"
    files: dict[str, list[str] | list[float]] = {PREDICTIONS: [answer.text for answer in predictions]}
    if null_odds:
        files[NULL_ODDS] = [answer.null_odds for answer in predictions]
    for name, values in files.items():
        write_json(folder / name, dict(zip(ids, values, strict=True)))
    return [folder / name for name in files]
