"""A folder of vectors: written once by a model, memory-mapped, searched exactly by a matrix product.

`vectors.npy` has one row of length 1 per text, `texts.jsonl` its id and text, `offsets.npy` where each line begins, and
`vectors.json` the model, with the fingerprint of all that its vectors depend on. Vectors of two models have nothing to
do with each other, so another model is refused by name. Knows nothing of how vectors are made.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from albert.errors import DataError, ModelError, UsageError
from albert.files import atomic_folder, atomic_write, read_json, write_json
from albert.inference.fill import PlainText

VECTORS, TEXTS, OFFSETS, MANIFEST = "vectors.npy", "texts.jsonl", "offsets.npy", "vectors.json"
BLOCK = 2**24  # numbers of vectors that are multiplied at once: 64 MB

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Found:
    """A text that a search found: its row, its id, and the cosine with the query."""

    row: int
    id: str
    text: str
    similarity: float


def unit(vectors: Floats) -> Floats:
    """Return vectors, the last dimension, at length 1; one of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    result: Floats = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return result


def write_matrix(file: IO[bytes], rows: Iterable[Floats], *, width: int) -> int:
    """Write rows as a .npy as they come, and return their number; NumPy leaves room for it in the header."""
    _write_header(file, 0, width)
    start, count = file.tell(), 0
    for row in rows:
        file.write(np.ascontiguousarray(row, dtype="<f4").tobytes())
        count += 1
    end = file.tell()
    file.seek(0)
    _write_header(file, count, width)
    assert file.tell() == start, "a header of another size"
    file.seek(end)
    return count


def _write_header(file: IO[bytes], count: int, width: int) -> None:
    facts = {"descr": "<f4", "fortran_order": False, "shape": (count, width)}
    np.lib.format.write_array_header_1_0(file, facts)


def save_matrix(path: Path, rows: Iterable[Floats], *, width: int) -> int:
    """Write rows as a .npy, which appears when all are written; return their number."""
    with atomic_write(path) as file:
        return write_matrix(file, rows, width=width)


def write_vectors(
    folder: str | Path,
    texts: Iterable[PlainText],
    embed: Callable[[Iterable[PlainText]], Iterator[Floats]],
    *,
    width: int,
    model: str,
    fingerprint: str,
) -> int:
    """Write the vectors of texts into a folder, which appears when all are there; return their number."""
    _check_free(Path(folder))
    offsets = [0]
    with atomic_folder(folder) as temporary:
        with (temporary / TEXTS).open("wb") as lines, (temporary / VECTORS).open("wb") as file:

            def noted() -> Iterator[PlainText]:
                for number, one in enumerate(texts):
                    facts = {"id": str(number) if one.id is None else one.id, "text": one.text}
                    line = (json.dumps(facts) + "\n").encode()
                    lines.write(line)
                    offsets.append(offsets[-1] + len(line))
                    yield one

            count = write_matrix(file, (unit(vector) for vector in embed(noted())), width=width)
        if not count:
            raise DataError(f"{folder}: no texts: there must be one at least")
        np.save(temporary / OFFSETS, np.array(offsets, dtype="<i8"))
        facts = {"model": model, "fingerprint": fingerprint, "count": count, "width": width}
        write_json(temporary / MANIFEST, facts)
    return count


def _check_free(folder: Path) -> None:
    """Refuse a place that holds something else before anything is computed, not after hours of it."""
    if folder.is_file():
        raise UsageError(f"{folder}: is a file: name a folder for the vectors")
    there = {item.name for item in folder.iterdir()} if folder.is_dir() else set()
    if foreign := sorted(there - {VECTORS, TEXTS, OFFSETS, MANIFEST}):
        raise UsageError(f"{folder}: holds {', '.join(foreign[:5])}, which would be lost: choose another folder")


@dataclass(frozen=True)
class Vectors:
    """An open folder of vectors; nothing of it is in memory before it is searched."""

    folder: Path
    model: str  # as it was given when they were written
    fingerprint: str
    rows: Floats  # [count, width]
    offsets: npt.NDArray[np.int64]  # [count + 1] of the lines of texts

    def refuse_other_model(self, name: str, fingerprint: str) -> None:
        """Refuse a model that did not write these vectors."""
        if fingerprint != self.fingerprint:
            raise ModelError(
                f"{self.folder}: its vectors are of {self.model} ({self.fingerprint[:12]}), the model is {name} "
                f"({fingerprint[:12]}): use that model, or write the vectors again with this one (albert embed)"
            )

    def search(self, queries: Floats, *, top: int) -> list[list[Found]]:
        """Return the `top` rows of the largest product with each query, [queries, width], best first."""
        at_once = max(1, BLOCK // self._step)
        parts = [queries[first : first + at_once] for first in range(0, len(queries), at_once)]
        return [found for part in parts for found in self._search(part, top=top)]

    @property
    def _step(self) -> int:
        """Return how many rows are looked at in one go."""
        return min(len(self.rows), max(1, BLOCK // self.rows.shape[1]))

    def _search(self, queries: Floats, *, top: int) -> list[list[Found]]:
        count, step = min(top, len(self.rows)), self._step
        scores = np.full((len(queries), 0), -np.inf, dtype=np.float32)
        places = np.zeros((len(queries), 0), dtype=np.int64)
        for first in range(0, len(self.rows), step):
            block = queries @ self.rows[first : first + step].T  # [queries, rows]
            scores = np.concatenate([scores, block], axis=1)
            places = np.concatenate([places, np.tile(np.arange(first, first + block.shape[1]), (len(queries), 1))], 1)
            best = np.argsort(-scores, axis=1, kind="stable")[:, :count]  # ties in the order of the rows
            scores, places = np.take_along_axis(scores, best, axis=1), np.take_along_axis(places, best, axis=1)
        with (self.folder / TEXTS).open("rb") as lines:
            return [
                [self._found(lines, int(row), float(score)) for row, score in zip(own, values, strict=True)]
                for own, values in zip(places, scores, strict=True)
            ]

    def _found(self, lines: IO[bytes], row: int, score: float) -> Found:
        begin, end = (int(offset) for offset in self.offsets[row : row + 2])
        lines.seek(begin)
        try:
            facts = json.loads(lines.read(end - begin))
            return Found(row, str(facts["id"]), str(facts["text"]), score)
        except (ValueError, KeyError, TypeError) as problem:
            raise _damaged(self.folder / TEXTS, f"line {row + 1} is no id and text") from problem


def open_vectors(folder: str | Path) -> Vectors:
    """Open a folder of vectors."""
    folder = Path(folder)
    if not (folder / MANIFEST).is_file():
        what = "holds no vectors" if folder.is_dir() else "no such folder"
        raise DataError(f"{folder}: {what}: write them with `albert embed MODEL FILE --out {folder}`")
    facts = read_json(folder / MANIFEST, error=DataError)
    shape = tuple(facts.get(name) for name in ("count", "width"))
    for name, kind in (("model", str), ("fingerprint", str), ("count", int), ("width", int)):
        if not isinstance(facts.get(name), kind):
            raise _damaged(folder / MANIFEST, f"{name}={facts.get(name)!r}")
    rows = _mapped(folder / VECTORS, "<f4", shape)
    offsets = _mapped(folder / OFFSETS, "<i8", (facts["count"] + 1,))
    return Vectors(folder, facts["model"], facts["fingerprint"], rows, offsets)


def _mapped(path: Path, kind: str, shape: Sequence[Any]) -> Any:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as problem:
        raise _damaged(path, str(problem)) from problem
    if array.shape != tuple(shape) or array.dtype != np.dtype(kind):
        raise _damaged(path, f"{array.dtype} {array.shape}, must be {np.dtype(kind)} {tuple(shape)}")
    return array


def _damaged(path: Path, what: str) -> DataError:
    return DataError(f"{path}: is damaged ({what}): write the vectors again with `albert embed`")
