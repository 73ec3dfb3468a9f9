"""From people's files to pairs whose similarity is learnt: tables, texts alone, NLI, STS-B and other pairs of GLUE.

A row is a text and one that belongs to it, perhaps with a negative, or a pair with a score, or a text alone; a file may
mix them. Scores are brought to 0 to 1 by one scale for all files. Of NLI an entailed hypothesis belongs to its premise,
a contradiction of the same premise is its negative, and the rest is left out. Texts alone can't be scored: of those
held out the first half is to find the second.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from albert.errors import DataError
from albert.labelled.cells import beside_columns, number_cell, text_cell
from albert.labelled.detection import DETECT_ROWS, find_columns, similarity_columns
from albert.labelled.glue_layouts import LAYOUTS, glue_name
from albert.labelled.holdout import content_key
from albert.labelled.request import DataRequest, Opened, sift_rows
from albert.labelled.rows import Row, read_rows, sample_rows
from albert.labelled.sample import as_number
from albert.labelled.splits import divide, fingerprint
from albert.tasks.similarity import TEMPERATURE, PairExample, Similarity
from albert.tasks.task import AnyTask, Example
from albert.text.documents import ReadReport

ENTAILMENT, CONTRADICTION = "entailment", "contradiction"
OTHER_VERDICTS = ("neutral", "not_entailment", "-")  # of NLI: nothing is learnt from them
PREMISE = ("premise", "hypothesis")
MAX_LENGTH = 128


@dataclass(frozen=True)
class _Labelled(Example):
    """A row as it is read: with a score of any scale, or a verdict of NLI."""

    text: str
    pair: str | None
    negative: str | None
    score: float | None
    verdict: str | None


@dataclass
class _Reading:
    """What is gathered while files are read."""

    request: DataRequest
    report: ReadReport = field(default_factory=ReadReport)
    notes: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    columns: Mapping[str, str] = field(default_factory=dict)  # of the first file

    def read(self, path: Path) -> list[PairExample]:
        """Return the examples of a file, their scores as they stand."""
        columns, reasons, skip_ragged = _columns(path, self.request.columns)
        self.columns = self.columns or columns
        self.notes += [reason for reason in reasons if reason not in self.notes]
        self.files.append(path)
        skip: Callable[[str, str], None] = lambda place, _why: self.report.add("ragged_row", place)  # noqa: E731
        on_bad = skip if skip_ragged else self.request.on_bad_row
        rows = list(read_rows(path, on_bad=on_bad, report=self.report))
        if not rows:
            raise DataError(f"{path}: no rows: there must be at least one")
        found = sift_rows(rows, columns, lambda row: _labelled(row, columns), self.request.on_problem)
        _refuse_numbered_nli(found, columns, path)
        return list(_examples(found))


def open_similarity(request: DataRequest, task: AnyTask | None) -> Opened:
    """Open data to learn similarity from; or to evaluate a model on, whose `task` it then is."""
    assert task is None or isinstance(task, Similarity)
    reading = _Reading(request)
    train = reading.read(_part(request.data, "train")["train"]) if task is None else []
    has_dev = request.data.is_dir() and glue_name(request.data) is not None  # other folders and files are one part
    dev_paths = _part(request.dev or request.data, "dev") if request.dev or task or has_dev else {}
    dev = {name: reading.read(path) for name, path in dev_paths.items()}
    test = {name: reading.read(path) for name, path in _part(request.test, "test").items()} if request.test else {}
    scale = _Scale.of(one.target for some in (train, *dev.values(), *test.values()) for one in some)
    _refuse_one_score(train, request.data)
    notes = reading.notes
    splits = divide(
        request,
        [scale.apply(one) for one in train],
        dev={name: [scale.apply(one) for one in some] for name, some in dev.items()},
        test={name: [scale.apply(one) for one in some] for name, some in test.items()},
        key=lambda example: content_key(example.text, example.pair),
        group=lambda example: content_key(example.text, None),
        notes=notes,
    )
    splits = replace(
        splits,
        dev={name: _scorable(some, name, notes) for name, some in splits.dev.items()},
        test={name: _scorable(some, name, notes) for name, some in splits.test.items()},
    )
    notes += [f"to learn from: {_counts(splits.train)}"] if splits.train else []
    notes += scale.notes()
    deciding: Sequence[PairExample] = next(iter(splits.dev.values()), [])
    own = task or Similarity(max_length=request.max_length or MAX_LENGTH)
    own = replace(
        own,
        best="spearman" if any(one.target is not None for one in deciding) else "mrr",
        temperature=request.temperature or TEMPERATURE,
        alone=any(one.pair is None for one in splits.train),
    )
    columns = {role: name for role, name in reading.columns.items() if role != "negative"}
    return Opened(
        own,
        splits,
        notes=[*notes, *reading.report.lines()],
        fingerprint=fingerprint(reading.files, request),
        columns=columns if "pair" in columns else {},
    )


def read_pairs(_task: AnyTask, path: Path, columns: Mapping[str, str], report: ReadReport) -> Iterator[PairExample]:
    """Read pairs to compare, one at a time."""
    found: Mapping[str, str] | None = None
    for row in read_rows(path, report=report):
        found = found or find_columns(row, columns)
        if "pair" not in found:
            raise DataError(f"{row.place}: similarity is that of two texts: name the second (--columns pair=NAME)")
        example = PairExample(text_cell(row, "text", found), text_cell(row, "pair", found), place=row.place)
        yield beside_columns(example, row, found, "text", "pair")


def _part(path: Path, part: str) -> dict[str, Path]:
    """Return the files of a part of a GLUE folder by name; another path is itself that part."""
    name = glue_name(path)
    if name is None or not path.is_dir():
        return {part: path}
    layout = LAYOUTS[name]
    named = {"train": {"train": layout.train}, "dev": layout.dev, "test": layout.dev}[part]
    found = {key: path / file for key, file in named.items() if file and (path / file).is_file()}
    if not found:
        raise DataError(f"{path}: has no {part} file ({', '.join(map(str, named.values()))}): name a file")
    return found


def _columns(path: Path, told: Mapping[str, str]) -> tuple[Mapping[str, str], tuple[str, ...], bool]:
    """Return the columns of a file by role, why, and whether broken rows are usual in it: GLUE's are known."""
    name = glue_name(path)
    if name is not None and "pair" in (layout := LAYOUTS[name]).columns:
        return {**layout.columns, **told}, (), layout.skip_ragged
    found = similarity_columns(sample_rows(path, DETECT_ROWS), path, columns=told)
    return found.columns, found.reasons, False


def _labelled(row: Row, columns: Mapping[str, str]) -> _Labelled:
    pair = _optional(row, "pair", columns)
    score, verdict = _verdict(row, columns) if pair is not None and "label" in columns else (None, None)
    return _Labelled(
        text_cell(row, "text", columns),
        pair,
        _optional(row, "negative", columns) if pair is not None else None,
        score,
        verdict,
        place=row.place,
    )


def _optional(row: Row, role: str, columns: Mapping[str, str]) -> str | None:
    """Return a text that a row need not have."""
    if role not in columns or (columns[role] not in row.values and "," not in columns[role]):
        return None
    text = text_cell(row, role, columns, empty=True)
    return None if not text or text.isspace() else text


def _verdict(row: Row, columns: Mapping[str, str]) -> tuple[float | None, str | None]:
    """Return the score of a pair or what NLI says of it; neither where the cell is empty."""
    value = row.values.get(columns["label"])
    if isinstance(value, str) and value.strip() and as_number(value) is None:
        word = value.strip().lower()
        if word not in (ENTAILMENT, CONTRADICTION, *OTHER_VERDICTS):
            raise DataError(
                f"{row.place}: column {columns['label']!r} holds {value[:60]!r}, must be a number, or entailment, "
                "neutral or contradiction: correct it, or name another column (--columns label=NAME)"
            )
        return None, word
    return (number_cell(row, "label", columns), None) if columns["label"] in row.values else (None, None)


def _examples(rows: Sequence[_Labelled]) -> Iterator[PairExample]:
    """Return the examples of rows; those of NLI by their premise."""
    against: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row.verdict == CONTRADICTION and row.pair is not None:
            against[row.text].append(row.pair)
    used: dict[str, int] = defaultdict(int)
    for row in rows:
        negative = row.negative
        if row.verdict == ENTAILMENT and negative is None and (others := against.get(row.text)):
            negative = others[used[row.text] % len(others)]
            used[row.text] += 1
        if row.verdict in (None, ENTAILMENT):
            yield PairExample(row.text, row.pair, negative, row.score, place=row.place)


def _refuse_numbered_nli(rows: Sequence[_Labelled], columns: Mapping[str, str], path: Path) -> None:
    """Refuse NLI whose verdicts are numbers: as scores, 2 (contradiction) would mean the most alike."""
    names = tuple(str(columns.get(role, "")).casefold() for role in ("text", "pair"))
    scores = {row.score for row in rows if row.score is not None}
    if names == PREMISE and 2 in scores and scores <= {-1, 0, 1, 2}:
        raise DataError(
            f"{path}: column {columns['label']!r} holds numbers for the verdicts on premise and hypothesis, which "
            "would be read as scores: write entailment, neutral and contradiction"
        )


def _refuse_one_score(train: Sequence[PairExample], path: Path) -> None:
    scores = {one.target for one in train if one.target is not None}
    if len(scores) == 1 and all(one.target is not None for one in train):
        raise DataError(
            f"{path}: the score is {scores.pop():g} in all rows: there is nothing to learn: add pairs with other "
            "scores, or leave the column out, and pairs belong together"
        )


@dataclass(frozen=True)
class _Scale:
    """Which scores mean 0 and 1."""

    low: float
    high: float

    @classmethod
    def of(cls, scores: Iterable[float | None]) -> _Scale:
        """Return 0 to 1 where all scores are in it, else from 0 (or the lowest below it) to the highest."""
        known = [score for score in scores if score is not None]
        low, high = min([0.0, *known]), max([0.0, *known])
        return cls(low, high) if low < 0 or high > 1 else cls(0.0, 1.0)

    def apply(self, example: PairExample) -> PairExample:
        """Return an example with its score from 0 to 1."""
        if example.target is None:
            return example
        return replace(example, target=(example.target - self.low) / (self.high - self.low))

    def notes(self) -> list[str]:
        """Say how scores were read, where they are not from 0 to 1."""
        plain = (self.low, self.high) == (0.0, 1.0)
        return [] if plain else [f"scores from {self.low:g} to {self.high:g} are the cosines 0 to 1"]


def _scorable(examples: Sequence[PairExample], name: str, notes: list[str]) -> list[PairExample]:
    """Return examples that can be scored: a text alone becomes a search for its second half by its first."""
    found, halved = [], 0
    for one in examples:
        words = one.text.split()
        if one.pair is not None:
            found.append(one)
        elif len(words) > 1:
            middle = len(words) // 2
            found.append(replace(one, text=" ".join(words[:middle]), pair=" ".join(words[middle:])))
            halved += 1
    if halved:
        notes.append(
            f"{name}: {halved:,} texts alone are scored by finding their second half by their first, which says little "
            "of similarity: scored pairs say more (--dev)"
        )
    return found


def _counts(examples: Sequence[PairExample]) -> str:
    kinds: dict[str, Any] = {
        "pairs with a score": [one for one in examples if one.target is not None],
        "pairs": [one for one in examples if one.target is None and one.pair is not None and one.negative is None],
        "pairs with a negative": [one for one in examples if one.target is None and one.negative is not None],
        "texts alone, read twice with dropout": [one for one in examples if one.pair is None],
    }
    return ", ".join(f"{len(some):,} {kind}" for kind, some in kinds.items() if some)
