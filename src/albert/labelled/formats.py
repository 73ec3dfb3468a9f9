"""The format of a labelled file whose name does not tell it: JSON, one row per line, fastText, a table.

`.json` is a list of objects, or one object per line. fastText's lines begin with `__label__NAME`, one or
several, before the text. The rest is told by the first line. Knows nothing of what columns mean.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from albert.errors import DataError
from albert.text.sources import COMPRESSIONS, Source, open_source

MARK = "__label__"
OTHERS = ("xlsx", "xls", "ods", "pdf", "docx", "html", "xml", "zip", "tar", "pkl", "npy", "arrow")  # not read here
BEGINNING = 2**16  # bytes that tell


def source_by_contents(path: Path) -> Source | None:
    """Tell the format of a file by how it begins; None where it is no text that can be rows."""
    ending = path.suffix[1:].lower()
    if ending in OTHERS:
        return None
    source = Source(path, "", ending if ending in COMPRESSIONS else "")
    with open_source(source) as (stream, _):
        beginning = stream.read(BEGINNING)
    if beginning.startswith(b"PAR1"):
        return Source(path, "parquet", source.compression)
    if b"\0" in beginning or not beginning.strip():
        return None
    text = beginning.decode("utf-8-sig", errors="replace").lstrip()
    first = text.partition("\n")[0]
    match text[:1]:
        case "[":
            form = "json"
        case "{":
            form = "jsonl" if first.rstrip().endswith("}") else "json"
        case _:
            form = "txt" if first.startswith(MARK) else "tsv" if "\t" in first else "csv" if "," in first else "txt"
    return Source(path, form, source.compression)


def json_items(source: Source, stream: io.BufferedReader) -> Iterator[tuple[int, Any]]:
    """Return the items of a JSON list, numbered from 1."""
    try:
        value = json.loads(stream.read())
    except (ValueError, RecursionError) as problem:
        reason = "nested too deeply" if isinstance(problem, RecursionError) else str(problem)
        raise DataError(f"{source.path}: is not valid JSON ({reason}): write the file again") from problem
    if not isinstance(value, list):
        raise DataError(
            f"{source.path}: a JSON {type(value).__name__}, must be a list of objects with the columns as their fields"
        )
    yield from enumerate(value, 1)


def fasttext_values(lines: Iterable[tuple[int, str]], *, several: bool) -> Iterator[tuple[int, dict[str, Any]]]:
    """Return text and label of fastText's lines; `several`: a list of labels each, in a column of the same name."""
    for number, line in lines:
        words = line.split()
        labels = []
        while words and words[0].startswith(MARK):
            labels.append(words.pop(0).removeprefix(MARK))
        if labels or words:
            label: Any = labels if several else labels[0] if labels else ""
            yield number, {"text": " ".join(words), "label": label}


def has_several_labels(lines: Iterable[str]) -> bool:
    """Tell whether any line of fastText has more than one label."""
    return any(line.split(maxsplit=2)[1:2] and line.split(maxsplit=2)[1].startswith(MARK) for line in lines)
