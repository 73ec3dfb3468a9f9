"""RACE: four answers to a question about a school text, from the folders of the data set.

`train`, `dev` and `test` each hold `middle` and `high`, and these one file per passage: a JSON object with an article,
its questions, four options per question and the letters of the right ones. `_` in a question is where the answer goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from albert.errors import DataError, UsageError
from albert.files import read_json
from albert.labelled.holdout import content_key
from albert.labelled.recognition import RACE_LEVELS, RACE_SPLITS, is_race, is_race_split
from albert.labelled.request import DataRequest, OnProblem, Opened, refuse, sift
from albert.labelled.splits import divide, fingerprint
from albert.tasks.choice import Choice, ChoiceExample
from albert.tasks.task import AnyTask
from albert.text.documents import ReadReport, mend_json
from albert.text.sources import Source

LETTERS = "ABCD"
BLANK = "_"
MAX_LENGTH = 512


def open_race(request: DataRequest, task: AnyTask | None) -> Opened:
    """Open the folder of RACE, or of one split; the questions about one passage are held out together."""
    if not is_race(request.data):
        raise DataError(f"{request.data}: not RACE: its folder holds train, dev and test, and these middle and high")
    own = task or Choice(len(LETTERS), max_length=request.max_length or MAX_LENGTH, blank=BLANK)
    if request.columns:
        raise UsageError(f"{request.data}: RACE has no columns: leave --columns out")
    if not isinstance(own, Choice):
        raise UsageError(f"race is a choice task, the model was made for {own.kind}")
    folders = {split: request.data / split for split in RACE_SPLITS if is_race_split(request.data / split)}
    if is_race_split(request.data):
        folders = {"dev" if task else "train": request.data}
    folders |= {split: path for split, path in (("dev", request.dev), ("test", request.test)) if path is not None}
    if task is not None:
        folders.pop("train", None)
    report = ReadReport()
    read = {
        split: list(read_race(folder, on_problem=request.on_problem, report=report))
        for split, folder in folders.items()
    }
    notes: list[str] = []
    splits = divide(
        request,
        read.get("train", []),
        dev={"dev": read["dev"]} if "dev" in read else {},
        test={"test": read["test"]} if "test" in read else {},
        key=lambda example: content_key(example.passage, example.question, *example.choices),
        group=lambda example: content_key(example.passage),
        notes=notes,
    )
    files = [file for folder in folders.values() for file in race_files(folder)]
    return Opened(own, splits, [*notes, *report.lines()], fingerprint(files, request))


def read_race(
    folder: Path, *, labelled: bool = True, on_problem: OnProblem = refuse, report: ReadReport | None = None
) -> Iterator[ChoiceExample]:
    """Return the questions of a split, or of all splits, one passage at a time."""
    splits = [folder] if is_race_split(folder) else [folder / name for name in RACE_SPLITS]
    for split in filter(is_race_split, splits):
        for file in race_files(split):
            yield from read_passage(file, labelled=labelled, on_problem=on_problem, report=report)


def race_files(split: Path) -> list[Path]:
    """List the passages of a split: the middle school's, then the high school's, each in the order of their names."""
    files = [file for level in RACE_LEVELS for file in sorted((split / level).glob("*.txt"))]
    if not files:
        raise DataError(f"{split}: no passages: a split of RACE has the folders middle and high with .txt files")
    return files


def read_passage(
    file: Path, *, labelled: bool = True, on_problem: OnProblem = refuse, report: ReadReport | None = None
) -> list[ChoiceExample]:
    """Return the questions of a passage in order; the level is the name of the file's folder."""
    try:
        article, questions = _passage(file, labelled=labelled, report=report if report is not None else ReadReport())
    except DataError as problem:
        on_problem(problem)
        return []

    def example(numbered: tuple[int, tuple[Any, ...]]) -> ChoiceExample:
        number, (question, options, *answer) = numbered
        place = f"{file}: question {number}"
        target = _target(answer[0], place) if labelled else None
        return ChoiceExample(
            article, _text(question, place), _options(options, place), target, group=file.parent.name, place=place
        )

    return sift(enumerate(questions, 1), example, on_problem)


def _passage(file: Path, *, labelled: bool, report: ReadReport) -> tuple[str, list[tuple[Any, ...]]]:
    """Return the text of a passage, and question, options and answer of each of its questions."""
    values = mend_json(read_json(file, error=DataError), Source(file, "json", ""), 1, report)
    article = values.get("article")
    if not isinstance(article, str) or not article.strip():
        raise DataError(f"{file}: article={str(article)[:40]!r}: a passage needs its text")
    parts = ("questions", "options", "answers") if labelled else ("questions", "options")
    lists = [_list(values, part, file) for part in parts]
    if len({len(items) for items in lists}) > 1:
        counts = ", ".join(f"{len(items)} {part}" for part, items in zip(parts, lists, strict=True))
        raise DataError(f"{file}: {counts}: there must be as many of each")
    return article, list(zip(*lists, strict=True))


def _list(values: dict[str, Any], name: str, file: Path) -> list[Any]:
    items = values.get(name)
    if not isinstance(items, list):
        raise DataError(
            f"{file}: {name} is {'missing' if items is None else 'not a list'}: it needs one entry a question"
        )
    return items


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{place}: {value!r} must be a text that is not empty")
    return value


def _options(options: Any, place: str) -> tuple[str, ...]:
    if not isinstance(options, list) or len(options) != len(LETTERS):
        found = f"{len(options)} choices" if isinstance(options, list) else f"options {options!r}"
        raise DataError(f"{place}: {found}, must be {len(LETTERS)}: add or remove choices, or leave the question out")
    return tuple(_text(option, f"{place}, choice {letter}") for letter, option in zip(LETTERS, options, strict=True))


def _target(answer: Any, place: str) -> int:
    if not isinstance(answer, str) or answer not in tuple(LETTERS):
        raise DataError(f"{place}: answer {answer!r} must be one of the letters {', '.join(LETTERS)}")
    return LETTERS.index(answer)
