"""Which task a table is for, and which column plays which role.

Columns are known by their usual names first, by what they hold second. Every decision comes with its reason, to be
shown before anything is trained. What can be read in two ways is an error that says which --columns or --task to
give: a wrong guess would cost hours. Knows the rows, and nothing of tasks but their names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from albert.errors import DataError, UsageError, did_you_mean
from albert.labelled.cells import SEPARATORS, has_columns
from albert.labelled.class_folders import class_notes
from albert.labelled.column_names import (
    ANSWERS,
    CHOICES,
    CLASS_NUMBERS,
    CONTEXTS,
    FILE,
    IGNORED,
    LABEL_NAMES,
    LABELS,
    LABELS_MANY,
    NEGATIVES,
    NUMBERS,
    PAIR_NUMBERS,
    PAIRS,
    QUESTION_ROLES,
    QUESTIONS,
    ROLES,
    TAGS,
    TEXTS,
    TITLES,
    TOKENS,
    plain,
)
from albert.labelled.rows import Row, read_rows
from albert.labelled.sample import SURE, Sample, as_number

DETECT_ROWS = 20_000  # rows that are enough to tell
MANY_CLASSES = 50  # whole numbers of more values than this are a quantity, not classes


@dataclass(frozen=True)
class Detected:
    """A task by name, the column of every role, and why."""

    task: str
    columns: Mapping[str, str]
    reasons: tuple[str, ...]


def detect(
    rows: Sequence[Row], path: Path | str, *, columns: Mapping[str, str] | None = None, task: str | None = None
) -> Detected:
    """Find the task and the columns of some rows; what a user has said about either holds."""
    if not rows:
        raise DataError(f"{path}: no rows: there must be at least one below the header")
    table = Sample(rows, str(path), dict(columns or {}))
    table.check_told()
    for name, find in _FORMS.items():
        if task in (None, name) and (found := find(table)):
            check_roles(table.told, name)
            return _complete(name, found, table)
    if task in _FORMS:
        raise DataError(f"{path}: columns {table.shown} are not what {task} needs: {_NEEDS[task]}")
    check_roles(table.told, task or "classification")
    texts = _texts(table, task)
    notes = [*class_notes(Path(path)), *table.fasttext_notes()]  # of data that has no columns to give reasons for
    return replace(texts, reasons=tuple(notes)) if notes else texts


def check_roles(columns: Mapping[str, str], task: str) -> None:
    """Refuse roles that the columns of a task don't have: a misspelt one would be passed over in silence."""
    for role, name in columns.items():
        known = ROLES.get(task, ("text", "pair", "label"))
        if role not in known:
            raise UsageError(f"--columns {role}={name}: {task} has no such role: {did_you_mean(role, known)}")


def find_columns(row: Row, columns: Mapping[str, str]) -> dict[str, str]:
    """Find the texts of rows without labels, to predict; a lone column `text`, as .txt has, is the text."""
    check_roles(columns, "classification")
    if list(row.values) == ["text"] and columns.get("text", "text") == "text" and "pair" not in columns:
        return {"text": "text"}
    table = Sample([row], str(row.path), {role: name for role, name in columns.items() if role != "label"})
    table.check_told()
    if not table.told and table.is_headless():
        raise table.headless()
    return _text_columns(table, label=table.called(LABELS))[0]


def similarity_columns(rows: Sequence[Row], path: Path | str, *, columns: Mapping[str, str]) -> Detected:
    """Find a text or two, a negative, and a score or a verdict of NLI; one text alone has neither of the others."""
    if not rows:
        raise DataError(f"{path}: no rows: there must be at least one")
    table = Sample(rows, str(path), dict(columns))
    table.check_told()
    check_roles(table.told, "similarity")
    if negative := table.told.get("negative") or table.called(NEGATIVES):
        table.told["negative"] = negative
    label = table.told.get("label") or table.called((*NUMBERS, *LABELS))
    found, reasons = _text_columns(table, label=label)
    if "pair" not in found:
        return Detected("similarity", found, (*reasons, "no second text: each is learnt from by itself"))
    others = {role: name for role, name in (("negative", negative), ("label", label)) if name}
    return Detected("similarity", found | others, (*reasons, *(f"{role} = {name!r}" for role, name in others.items())))


def columns_there(columns: Mapping[str, str], path: Path) -> dict[str, str]:
    """Return the columns that a model was trained on as far as a file has them."""
    row = next(read_rows(path, on_bad=lambda _place, _why: None), None)
    return {role: name for role, name in columns.items() if row is not None and has_columns(row, name)}


def question_columns(row: Row, columns: Mapping[str, str]) -> dict[str, str]:
    """Find the columns of a table of questions about passages, by the names of its first row."""
    check_roles(columns, "squad")
    by_plain = {plain(name): name for name in reversed(list(row.values))}
    found = {
        role: next((by_plain[name] for name in names if name in by_plain), None)
        for role, names in QUESTION_ROLES.items()
    }
    return {role: name for role, name in found.items() if name is not None} | dict(columns)


def _tagging(table: Sample) -> dict[str, str] | None:
    tokens, tags = table.told.get("tokens") or table.called(TOKENS), table.told.get("tags") or table.called(TAGS)
    told = "tokens" in table.told or "tags" in table.told
    if tokens and tags and tokens != tags and (told or not table.is_number(tokens)):  # a number of words is no word
        return {"tokens": tokens, "tags": tags}
    if table.told or any(map(table.is_text, table.names)):
        return None
    pair = table.parallel_lists()  # under names of any language
    return {"tokens": pair[0], "tags": pair[1]} if pair else None


def _choice(table: Sample) -> dict[str, str] | None:
    question = table.told.get("question") or table.called(QUESTIONS)
    choices = table.told.get("choices") or table.called(CHOICES) or _numbered(table)
    if not question or not choices:
        return None
    found = {"question": question, "choices": choices}
    if context := table.told.get("context") or table.told.get("text") or table.called(CONTEXTS):
        found["context"] = context
    if label := table.told.get("label") or table.called(("answer", "answerkey", "correct", *LABELS)):
        found["label"] = label
    return found


def _numbered(table: Sample) -> str | None:
    """Find one column per choice: choice0, choice1, … or option_a, option_b, …"""
    for stem in ("choice", "option", "ending", "answer", "sol"):
        own = [name for name in table.names if plain(name).startswith(stem) and len(plain(name)) == len(stem) + 1]
        if len(own) >= 2:
            return ",".join(own)
    return None


def _span(table: Sample) -> dict[str, str] | None:
    context, question = table.called(CONTEXTS), table.called(QUESTIONS)
    answers = table.told.get("answers") or table.called(ANSWERS)
    context, question = table.told.get("context", context), table.told.get("question", question)
    if not context or not question or not answers:
        return None
    return {"context": context, "question": question} | question_columns(table.rows[0], table.told)


_FORMS: dict[str, Callable[[Sample], dict[str, str] | None]] = {"tagging": _tagging, "choice": _choice, "squad": _span}
_NEEDS = {
    "tagging": "tokens and tags, as lists or separated by spaces (--columns tokens=NAME --columns tags=NAME)",
    "choice": "question, choices (a list, or a column each) and label (--columns question=NAME …)",
    "squad": "context, question and answers, or answer and answer_start (--columns context=NAME …)",
}


def _complete(task: str, columns: dict[str, str], table: Sample) -> Detected:
    roles = ", ".join(f"{role} = {name!r}" for role, name in columns.items())
    return Detected(task, {**columns, **table.told}, (f"{task}: by the columns {roles}",))


def _texts(table: Sample, task: str | None) -> Detected:
    try:
        label, why_label = _label_column(table, task)
        columns, why_text = _with_title(table, label=label) or _text_columns(table, label=label)
        if label is None:
            raise DataError(f"{table.path}: no column of labels among {table.shown}: {_unlabelled(table)}")
    except DataError as problem:
        if table.is_headless():
            raise table.headless() from problem
        raise
    if "label" not in table.told and table.is_headless(label):
        raise table.headless()
    kind, why_kind = (task, f"{task}: as told") if task else _kind(table, label, is_pair="pair" in columns)
    return Detected(kind, columns | {"label": label}, (why_kind, *why_text, why_label))


def _header(table: Sample) -> str:
    rule = "the first line must be a header with the columns' names; " if table.in_table else ""
    return f"{rule}name the right one"


def _unlabelled(table: Sample) -> str:
    """Say what is missing."""
    if table.called(CONTEXTS) and table.called(QUESTIONS):
        return f"for questions about a passage there must be {_NEEDS['squad']}"
    if table.names == [FILE, "text"]:
        return "texts alone can't be learned from: put the files into one folder per class"
    if table.names == ["text"]:
        return (
            "texts alone can't be learned from; where they are CoNLL, a word and its tag per line, say --task tagging"
        )
    return f"{_header(table)} (--columns label=NAME)"


def _label_column(table: Sample, task: str | None) -> tuple[str | None, str]:
    """Find the column of labels, or the columns of yes and no, a class each."""
    if told := table.told.get("label"):
        return told, f"label = {told!r}: as told"
    order = {"multi-label": (*LABELS_MANY, *LABELS), "regression": (*NUMBERS, *LABELS)}.get(task or "", ())
    if name := table.called(order or (*LABELS, *LABELS_MANY, *NUMBERS)):
        if task in (None, "classification") and (names := _names_of_numbers(table, name)):
            return names, f"label = {names!r}: the names of the numbers in {name!r}"
        return name, f"label = {name!r}: by its name"
    taken = set(table.told.values())
    usual = {*IGNORED, *TEXTS, *(name for pair in PAIRS for name in pair)}
    others = [name for name in table.names if plain(name) not in usual and name not in taken]
    flags = [name for name in others if table.is_flag(name)]
    if len(flags) >= 2:
        return ",".join(flags), f"label = {len(flags)} columns of 0 and 1, a class each: {', '.join(flags)}"
    candidates = [
        name for name in others if table.is_number(name) or (table.is_class(name) and not table.is_date(name))
    ]
    if len(candidates) > 1:
        candidates = [name for name in candidates if not table.numbers_rows(name)] or candidates
    if len(candidates) > 1:
        raise DataError(
            f"{table.path}: {' or '.join(map(repr, candidates))} may be the label: say which (--columns label=NAME)"
        )
    if candidates:
        return candidates[0], f"label = {candidates[0]!r}: the only column that holds classes or numbers"
    return None, ""


def _names_of_numbers(table: Sample, label: str) -> str | None:
    """Find a column that has a name for every whole number of the label (`label_text` beside `label`)."""
    names = table.called(LABEL_NAMES)
    numbers = [as_number(value) for value in table.values(label)]
    if names is None or not numbers or not all(number is not None and number.is_integer() for number in numbers):
        return None
    pairs = {(str(row.values.get(label)), str(row.values.get(names))) for row in table.rows}
    one_to_one = len(pairs) == len({number for number, _ in pairs}) == len({name for _, name in pairs})
    return names if one_to_one else None


def _with_title(table: Sample, *, label: str | None) -> tuple[dict[str, str], list[str]] | None:
    """Find a title and the one text that it belongs to, read as one."""
    if "text" in table.told or "pair" in table.told or (title := table.called(TITLES)) in (None, label):
        return None
    labels = {label, *(label or "").split(",")}
    texts = [
        n for n in table.names if n not in labels and plain(n) not in (*IGNORED, *LABEL_NAMES) and table.is_text(n)
    ]
    others = [name for name in texts if name != title]
    if len(others) != 1 or any(one in table.by_plain and two in table.by_plain for one, two in PAIRS):
        return None
    both = ",".join(name for name in table.names if name in (title, others[0]))
    return {"text": both}, [f"text = {both!r}: as one text (--columns text={others[0]} reads it alone)"]


def _text_columns(table: Sample, *, label: str | None) -> tuple[dict[str, str], list[str]]:
    """Find one text, or two."""
    if "text" in table.told:
        told = {role: table.told[role] for role in table.told if role in ("text", "pair")}
        return told, [f"{role} = {name!r}: as told" for role, name in told.items()]
    if "pair" in table.told:
        raise UsageError("--columns pair=… needs --columns text=… too")
    for first, second in PAIRS:
        if (one := table.called([first])) and (two := table.called([second])) and label not in (one, two):
            found = {"text": one, "pair": two}
            return found, [f"text = {one!r}, pair = {two!r}: by their names", *table.left_out(found, label)]
    if (name := table.called(TEXTS)) and name != label:
        return {"text": name}, [f"text = {name!r}: by its name", *table.left_out({"text": name}, label)]
    labels = set((label or "").split(",")) | {label}
    candidates = [name for name in table.names if name not in labels and plain(name) not in IGNORED]
    texts = [name for name in candidates if table.is_text(name)] or [
        name for name in candidates if len(candidates) == 1 and not table.is_number(name)
    ]
    if len(texts) > 1:
        raise DataError(
            f"{table.path}: {' or '.join(map(repr, texts))} may be the text: say which (--columns text=NAME), or "
            f"--columns text={','.join(texts)} to read them as one text, or --columns text={texts[0]} --columns "
            f"pair={texts[1]} to compare two"
        )
    if not texts:
        raise DataError(f"{table.path}: no column of text among {table.shown}: {_header(table)} (--columns text=NAME)")
    return {"text": texts[0]}, [
        f"text = {texts[0]!r}: the only column of text",
        *table.left_out({"text": texts[0]}, label),
    ]


def _are_counted(numbers: Sequence[float]) -> bool:
    """Tell whether whole numbers go from 0 or 1 up without a gap, each more than once: as those of 77 intents do."""
    counts = Counter(numbers)
    return min(counts) in (0, 1) and max(counts) - min(counts) + 1 == len(counts) and min(counts.values()) > 1


def _kind(table: Sample, label: str, *, is_pair: bool) -> tuple[str, str]:
    """Tell by the labels whether a row has one class, several, or a number; by their column's name where they can't."""
    if label not in table.names:
        return "multi-label", "multi-label: one column per class"
    if table.is_list(label):
        return "multi-label", f"multi-label: {label!r} holds lists"
    values = table.values(label)
    if plain(label) in LABELS_MANY:
        mark = next((mark for mark in SEPARATORS if any(mark in str(value) for value in values)), None)
        if mark:
            return "multi-label", f"multi-label: {label!r} holds names separated by {mark!r}"
    numbers = [number for value in values if (number := as_number(value)) is not None]
    whole = all(number.is_integer() for number in numbers)
    different = len(set(numbers))
    classes = whole and (different <= MANY_CLASSES or (plain(label) in CLASS_NUMBERS and _are_counted(numbers)))
    if is_pair and plain(label) in PAIR_NUMBERS and different > 2 and len(numbers) == len(values):
        return "regression", f"regression: {label!r} of two texts (--task classification takes its numbers as classes)"
    if not values or len(numbers) < (1.0 if classes else SURE) * len(values):
        return "classification", f"classification: {label!r} holds {len(set(map(str, values))):,} different names"
    if classes:
        more = " (--task regression takes them as a quantity)" if different > 2 else ""
        return "classification", f"classification: {label!r} holds {different} different whole numbers{more}"
    why = f"{different:,} different whole numbers" if whole else "numbers with fractions"
    others = f", and {len(values) - len(numbers)} other values" if len(numbers) < len(values) else ""
    return "regression", f"regression: {label!r} holds {why}{others}"
