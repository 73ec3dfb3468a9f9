"""From data to question answering: SQuAD's JSON and folders, and people's own tables in SQuAD form.

A table has a context, a question, and either `answers` as the public SQuAD tables have it ({text: […], answer_start:
[…]}, or a list of {text, answer_start}) or a column `answer` with a column `answer_start`; both empty means that the
question has no answer. Without dev data, whole articles are held out (whole passages where there is one article):
questions about one text on both sides of a split would measure memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from albert.errors import DataError, UsageError
from albert.labelled.cells import beside_columns, cell, number_cell, text_cell
from albert.labelled.detection import question_columns
from albert.labelled.holdout import content_key
from albert.labelled.recognition import is_squad_json, squad_files
from albert.labelled.request import DataRequest, Opened, sift, sift_rows
from albert.labelled.rows import Row, read_rows
from albert.labelled.splits import divide, fingerprint
from albert.labelled.squad import checked_answer, read_squad
from albert.tasks.span import CONDITIONAL, PLAIN, AnswerText, QuestionExample, SpanTask
from albert.tasks.task import AnyTask
from albert.text.documents import ReadReport

PARTS = ("train", "dev", "test")


def open_questions(request: DataRequest, task: AnyTask | None) -> Opened:
    """Open questions; the head is the conditional one where some have no answer, unless the request names one."""
    paths, report = _paths(request, training=task is None), ReadReport()
    parts = {
        part: _read_part(path, request, labelled=None if part == "test" else True, report=report)
        for part, path in paths.items()
    }
    read = {part: examples for part, (examples, _) in parts.items()}
    _, columns = next(iter(parts.values()))
    unanswerable = any(not example.answers for part in ("train", "dev") for example in read.get(part, ()))
    told = []
    if "test" in read and all(not example.answers for example in read["test"]):
        read["test"] = [replace(example, answers=None) for example in read["test"]]  # they are not given away
    elif not unanswerable and (none := sum(example.answers == () for example in read.get("test", ()))):
        told = [f"warning: test: {none:,} questions have no answer, all others have: every answer to them is wrong"]
    notes = [f"{part}: {_counts(examples)}" for part, examples in read.items()]
    notes += [*told, *(f"{role} = {name!r}" for role, name in columns.items())]
    if task is None:
        task = SpanTask(
            head=request.head or (CONDITIONAL if unanswerable else PLAIN),
            unanswerable=unanswerable,
            max_length=request.max_length or (512 if unanswerable else 384),  # Table 14
        )
        notes.append(f"head: {task.head}")
    assert isinstance(task, SpanTask)
    if unanswerable and not task.unanswerable:
        task = replace(task, unanswerable=True)
        notes.append(
            "some questions have no answer, which the model has not been told of: their threshold is sought here"
        )
    train = read.get("train", [])
    name, group = _group(train)
    if train and "dev" not in read:
        notes.append(f"held out by {name}")
    splits = divide(
        request,
        train,
        dev={"dev": read["dev"]} if "dev" in read else {},
        test={"test": read["test"]} if "test" in read else {},
        key=lambda example: content_key(example.question, example.passage),
        group=group,
        notes=notes,
    )
    return Opened(task, splits, [*notes, *report.lines()], fingerprint(paths.values(), request), columns)


def _read_part(
    path: Path, request: DataRequest, *, labelled: bool | None, report: ReadReport
) -> tuple[list[QuestionExample], Mapping[str, str]]:
    """Read the questions of a file, and say by which columns (JSON has none).

    No two may have one id, which would be one in the prediction file.
    """
    seen: dict[str, str] = {}
    columns: Mapping[str, str] = {}

    def unique(example: QuestionExample) -> QuestionExample:
        if (earlier := seen.setdefault(example.id, example.place)) != example.place:
            raise DataError(f"{example.place}: id {example.id!r} is also at {earlier}: give every question its own")
        return example

    if is_squad_json(path):
        if request.columns:
            raise UsageError(f"{path}: SQuAD's JSON has no columns: leave --columns out")
        examples: Iterable[QuestionExample] = read_squad(
            path, labelled=labelled, on_problem=request.on_problem, report=report
        )
    else:
        rows = list(read_rows(path, on_bad=request.on_bad_row, report=report))
        if not rows:
            raise DataError(f"{path}: no rows: there must be at least one question")
        found = request.found if path == request.data else None
        columns = found.columns if found else question_columns(rows[0], request.columns)
        reader = _RowReader(rows[0], columns, labelled=labelled)
        examples = sift_rows(rows, columns, reader.example, request.on_problem)
    return sift(examples, unique, request.on_problem), columns


def read_question_inputs(
    task: AnyTask, path: Path, columns: Mapping[str, str], report: ReadReport
) -> Iterator[QuestionExample]:
    """Read questions to answer, one at a time; answers are not looked at."""
    assert isinstance(task, SpanTask)
    if is_squad_json(path):
        yield from read_squad(path, labelled=False, report=report)
        return
    reader: _RowReader | None = None
    for row in read_rows(path, report=report):
        reader = reader or _RowReader(row, question_columns(row, columns), labelled=False)
        yield beside_columns(reader.example(row), row, reader.columns, "question", "id")


class _RowReader:
    """The questions of a table that begins with this row."""

    def __init__(self, row: Row, columns: Mapping[str, str], *, labelled: bool | None) -> None:
        self.columns = columns
        self._required = labelled is not False
        self._labelled = labelled is not False and (
            "answers" in self.columns or {"answer", "answer_start"} <= self.columns.keys()
        )
        needed = ["context", "question", *(["answers"] if labelled and not self._labelled else [])]
        for role in needed:
            if role not in self.columns:
                hint = " (or answer and answer_start)" if role == "answers" else ""
                raise DataError(
                    f"{row.place}: no column {role!r}{hint} among {', '.join(map(repr, row.values))}: "
                    f"add it, or say which it is (--columns {role}=NAME)"
                )

    def example(self, row: Row) -> QuestionExample:
        passage = text_cell(row, "context", self.columns, empty=not self._required)
        question = text_cell(row, "question", self.columns, empty=not self._required)
        name = cell(row, "id", self.columns) if "id" in self.columns else row.line
        article = cell(row, "article", self.columns) if "article" in self.columns else ""
        answers = None
        if self._labelled:
            given = self._listed(row) if "answers" in self.columns else self._single(row)
            answers = tuple(checked_answer(text, start, passage, place=row.place) for text, start in given)
        return QuestionExample(question, passage, answers, str(name), str(article or ""), place=row.place)

    def _single(self, row: Row) -> list[AnswerText]:
        text = text_cell(row, "answer", self.columns, empty=True)
        start = number_cell(row, "answer_start", self.columns)
        if not text.strip() and (start is None or start < 0):
            return []
        return [AnswerText(text, _whole(start, row))]

    def _listed(self, row: Row) -> list[AnswerText]:
        value = cell(row, "answers", self.columns)
        if isinstance(value, dict) and {"text", "answer_start"} <= value.keys():
            texts, starts = value["text"], value["answer_start"]
            if isinstance(texts, list) and isinstance(starts, list) and len(texts) == len(starts):
                value = [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]
        items = [] if value is None else value
        if not isinstance(items, list) or not all(
            isinstance(item, dict) and isinstance(item.get("text"), str) for item in items
        ):
            raise DataError(
                f"{row.place}: column {self.columns['answers']!r} holds {str(value)[:60]!r}, must be "
                '{"text": ["…"], "answer_start": [0]}, with empty lists where there is no answer'
            )
        return [AnswerText(item["text"], _whole(item.get("answer_start"), row)) for item in items]


def _whole(value: Any, row: Row) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not float(value).is_integer():
        raise DataError(f"{row.place}: answer_start={value!r} must be a whole number: the answer's first character")
    return int(value)


def _paths(request: DataRequest, *, training: bool) -> dict[str, Path]:
    """Say which file is train, dev and test."""
    if request.data.is_dir():
        found = {part: files for part in PARTS if (files := squad_files(request.data, part))}
        for files in found.values():
            if len(files) > 1:
                names = ", ".join(file.name for file in files)
                raise DataError(f"{request.data}: {names}: which one? Name the files (--data FILE --dev FILE)")
        paths = {part: files[0] for part, files in found.items()}
    else:
        paths = {"train" if training else "dev": request.data}
    paths |= {part: path for part, path in (("dev", request.dev), ("test", request.test)) if path is not None}
    if not training:
        paths.pop("train", None)
    elif "train" not in paths:
        raise DataError(f"{request.data}: no file train*.json to train on: name one")
    if not paths:
        raise DataError(f"{request.data}: no file dev*.json or test*.json to evaluate on: name one")
    return {part: paths[part] for part in PARTS if part in paths}


def _group(examples: Sequence[QuestionExample]) -> tuple[str, Callable[[QuestionExample], str] | None]:
    """Find the largest parts that a data set can be divided by."""
    rules: dict[str, Callable[[QuestionExample], str]] = {
        "article": lambda example: example.article or example.passage,
        "passage": lambda example: example.passage,
    }
    if not any(example.article for example in examples):
        del rules["article"]
    for name, rule in rules.items():
        if len(set(map(rule, examples))) > 1:
            return name, rule
    return "question", None


def _counts(examples: Sequence[QuestionExample]) -> str:
    none = sum(example.answers == () for example in examples)
    passages = len({example.passage for example in examples})
    return f"{len(examples):,} questions about {passages:,} passages" + (
        f", {none:,} without an answer" if none else ""
    )
