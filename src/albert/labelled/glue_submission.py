"""What GLUE's leaderboard takes: a zip with one file per test set, two columns, `index` and `prediction`.

The leaderboard wants all eleven files in one zip, and a model makes one of them, or two: writing into a zip that is
there already adds to it. Classes are written as the data set names them, STS-B's numbers between 0 and 5. Knows
decisions, not models.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from albert.errors import UsageError
from albert.files import atomic_write
from albert.labelled.glue_layouts import LAYOUTS, SCALE
from albert.tasks.classified import Label, Number

FILES = {
    ("cola", "test"): "CoLA.tsv",
    ("sst-2", "test"): "SST-2.tsv",
    ("mrpc", "test"): "MRPC.tsv",
    ("sts-b", "test"): "STS-B.tsv",
    ("qqp", "test"): "QQP.tsv",
    ("mnli", "matched"): "MNLI-m.tsv",
    ("mnli", "mismatched"): "MNLI-mm.tsv",
    ("qnli", "test"): "QNLI.tsv",
    ("rte", "test"): "RTE.tsv",
    ("wnli", "test"): "WNLI.tsv",
    ("ax", "ax"): "AX.tsv",
}
SIZES = {  # rows of the official test sets
    "CoLA.tsv": 1063,
    "SST-2.tsv": 1821,
    "MRPC.tsv": 1725,
    "STS-B.tsv": 1379,
    "QQP.tsv": 390965,
    "MNLI-m.tsv": 9796,
    "MNLI-mm.tsv": 9847,
    "QNLI.tsv": 5463,
    "RTE.tsv": 3000,
    "WNLI.tsv": 146,
    "AX.tsv": 1104,
}
MEMBER_LIMIT = 64 * 2**20  # bytes; QQP's file has 5 MB


@dataclass(frozen=True)
class Submission:
    """What a zip holds now, what the leaderboard still wants, and what it would not like."""

    written: tuple[str, ...]
    missing: tuple[str, ...]
    notes: tuple[str, ...]


def write_submission(path: Path | str, name: str, predictions: Mapping[str, Sequence[Label | Number]]) -> Submission:
    """Write decisions about the test sets of a task, by their names in Splits.test, into a zip, beside what it has."""
    path = Path(path)
    if name not in LAYOUTS:
        raise UsageError(f"{name} is not a task of GLUE, and its leaderboard takes no others")
    chosen = {FILES[name, split]: decided for split, decided in predictions.items() if (name, split) in FILES}
    if not chosen:
        raise UsageError(f"{name}: no test set to write decisions about: the folder must have its official test file")
    members = _members(path) | {file: _table(name, decided) for file, decided in chosen.items()}
    with atomic_write(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in sorted(members):
            archive.writestr(zipfile.ZipInfo(member), members[member], zipfile.ZIP_DEFLATED)  # of no date: same bytes
    notes = tuple(
        f"warning: {file} has {len(decided):,} rows, the official test set has {SIZES[file]:,}"
        for file, decided in chosen.items()
        if len(decided) != SIZES[file]
    )
    return Submission(tuple(chosen), tuple(file for file in SIZES if file not in members), notes)


def _table(name: str, predictions: Sequence[Label | Number]) -> bytes:
    text = io.StringIO()
    text.write("index\tprediction\n")
    for index, prediction in enumerate(predictions):
        text.write(f"{index}\t{_value(name, prediction)}\n")
    return text.getvalue().encode()


def _value(name: str, prediction: Label | Number) -> str:
    if isinstance(prediction, Number):
        return f"{min(max(prediction.value, SCALE[0]), SCALE[1]):.3f}"
    official = {label.casefold(): label for label in LAYOUTS[name].labels or ()}
    label = official.get(prediction.label.casefold())
    if label is None:
        raise UsageError(f"{name}: the model says {prediction.label!r}, the leaderboard knows {', '.join(official)}")
    return label


def _members(path: Path) -> dict[str, bytes]:
    """Read the files that an earlier submission left; anything else is not overwritten."""
    if not path.exists():
        return {}
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
            if foreign := [info.filename for info in infos if info.filename not in SIZES]:
                raise UsageError(f"{path}: holds {foreign[0]}, so it is no submission: choose another name")
            if any(info.file_size > MEMBER_LIMIT for info in infos):
                raise UsageError(f"{path}: holds files larger than any of GLUE: choose another name")
            return {info.filename: archive.read(info) for info in infos}
    except (zipfile.BadZipFile, OSError) as problem:
        raise UsageError(f"{path}: is not a zip that can be added to ({problem}): choose another name") from problem
