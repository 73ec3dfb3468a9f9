"""CoNLL files: one word per line, its tag in the last column; an empty line between sentences.

Columns are separated by tabs where a line has any, else by spaces. In CoNLL-U (Universal Dependencies) the word is the
second of ten columns and its part of speech, the fourth, is the tag. `-DOCSTART-` lines are passed over, and so are
comments (`# …` before a sentence, where it does not have the columns of a word). Sentences are given as rows, like
those of any other file with lists of tokens and tags.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

from albert.errors import DataError
from albert.labelled.column_names import TAGS, TOKENS, plain
from albert.labelled.rows import OnBad, Row, refuse
from albert.text.documents import ReadReport, mend
from albert.text.records import RECORD_LIMIT
from albert.text.sources import COMPRESSIONS, Source, open_source, source_of, text_of

OWN_FORMATS = ("conll", "conllu", "iob", "iob2", "bio", "bioes")  # names that mean nothing else
FORMATS = (*OWN_FORMATS, "txt", "tsv")
OTHER_FORMATS = ("csv", "jsonl", "json", "parquet")  # that sentences with their tags come in
PUBLISHED = re.compile(r"(eng|deu|esp|ned)\.(train|testa|testb)(\.(gz|xz|zst))?")  # the shared tasks of 2002 and 2003
START = "-DOCSTART-"
SPAN_TAG = re.compile(r"O|[BIESLU]-\S+")
UNIVERSAL = 10  # columns of CoNLL-U: number, word, lemma, part of speech, …
NUMBER_OF_WORD = re.compile(r"\d+([-.]\d+)?")
SURE = 0.9  # of the words at the beginning: a few tags may be mistakes
BEGINNING = 2**16  # bytes that tell


def is_conll(path: Path) -> bool:
    """Tell whether a file can be CoNLL: tagged words in a file of no other format are, unless a .tsv is a table."""
    return source_of(path, OTHER_FORMATS) is None and not _is_table(path)


def _is_table(path: Path) -> bool:
    """Tell whether a .tsv names columns of tokens and tags and has several of them in a cell below."""
    if source_of(path, ("tsv",)) is None or not path.is_file():
        return False
    header, *rows = [line.split("\t") for line in _beginning(path).decode("utf-8-sig", errors="replace").split("\n")]
    names = [plain(name) for name in header]
    known = [next((names.index(name) for name in usual if name in names), None) for usual in (TOKENS, TAGS)]
    if None in known or len(set(known)) < len(known):
        return False
    return any(len(row) == len(names) and all(len(row[place or 0].split()) > 1 for place in known) for row in rows)


def conll_name(path: Path) -> str | None:
    """Recognise a CoNLL file by a name that means nothing else, or by tags of spans in the last column."""
    known = source_of(path, OWN_FORMATS) is not None or PUBLISHED.fullmatch(path.name.lower())
    return "tagging" if known or (path.is_file() and is_conll(path) and _begins_tagged(path)) else None


def _begins_tagged(path: Path) -> bool:
    """Tell whether the first lines of a file have the same number of columns, and mostly tags of spans in the last."""
    beginning = _beginning(path)
    if b"\0" in beginning:
        return False
    lines = beginning.decode("utf-8-sig", errors="replace").split("\n")
    whole = lines[:-1] if len(beginning) == BEGINNING else lines
    words = [cells for cells in map(_cells, whole) if cells and cells[0] not in ("#", START) and cells[0][:2] != "# "]
    tags = [cells[-1] for cells in words]
    spans = [tag for tag in tags if SPAN_TAG.fullmatch(tag)]
    is_table = len({len(cells) for cells in words}) == 1 and len(words[0]) > 1
    return is_table and any(tag != "O" for tag in spans) and len(spans) >= SURE * len(tags)


def _beginning(path: Path) -> bytes:
    with open_source(Source(path, "", _compression(path))) as (stream, _):
        return stream.read(BEGINNING)


def read_conll(
    path: Path, *, tagged: bool = True, on_bad: OnBad = refuse, report: ReadReport | None = None
) -> Iterator[Row]:
    """Return the sentences of a file as rows with `tokens` and `tags`; untagged files need only the first column.

    A line that can't be read is told to `on_bad`, and left out where that does not raise.
    """
    report = report if report is not None else ReadReport()
    source = source_of(path, FORMATS) or Source(path, "conll", _compression(path))
    if path.is_dir():
        raise DataError(f"{path}: is a folder: name a file of it")
    if not path.exists():
        raise DataError(f"{path}: no such file: check the path")
    with open_source(source) as (stream, _):
        lines = text_of(source, stream, newline="\n")
        yield from _sentences(source, lines, tagged=tagged, on_bad=on_bad, report=report)


def _compression(path: Path) -> str:
    ending = path.suffix[1:].lower()
    return ending if ending in COMPRESSIONS else ""


def _sentences(
    source: Source, lines: io.TextIOWrapper, *, tagged: bool, on_bad: OnBad, report: ReadReport
) -> Iterator[Row]:
    words: list[list[str]] = []
    width, first = 0, 1  # columns of the file; the line that the sentence begins at
    tabs = False  # whether they divide the columns
    for number, line in enumerate(iter(lambda: lines.readline(RECORD_LIMIT), ""), 1):
        cells = _cells(mend(line, source, number, report))
        place = f"{source.path}:{number}"
        if not cells or cells[0] == START:
            if words:
                yield _row(words, source, first)
            words = []
        elif not words and _is_comment(cells, line, width, tabs=tabs):
            continue
        elif tagged and len(cells) < 2:
            on_bad(place, f"{line.strip()[:60]!r} has one column: a line is a word and, last, its tag")
        elif width and len(cells) != width:
            on_bad(place, f"{len(cells)} columns where the lines before have {width}: every word needs them all")
        else:
            width, tabs = len(cells), "\t" in line
            first = first if words else number
            words.append(cells)
    if words:
        yield _row(words, source, first)


def _is_comment(cells: list[str], line: str, width: int, *, tabs: bool) -> bool:
    """Tell whether a line before a sentence is a comment: a word's line has the columns of all others."""
    if cells[0].startswith("# "):  # "# id 12<tab>domain=train"
        return True
    return cells[0] == "#" and (len(cells) != width or (tabs and "\t" not in line))


def _row(words: list[list[str]], source: Source, line: int) -> Row:
    if all(len(cells) == UNIVERSAL and NUMBER_OF_WORD.fullmatch(cells[0]) for cells in words):
        words = [[cells[1], cells[3]] for cells in words if cells[0].isdecimal()]  # not 1-2 (a contraction), not 1.1
    values = {"tokens": [cells[0] for cells in words]}
    if len(words[0]) > 1:
        values["tags"] = [cells[-1] for cells in words]
    return Row(values, source.path, line)


def _cells(line: str) -> list[str]:
    """Divide a line at its tabs, or else at spaces; a word may be a no-break space."""
    line = line.strip("\r\n\t ")
    return [cell.strip(" ") for cell in line.split("\t")] if "\t" in line else line.split()
