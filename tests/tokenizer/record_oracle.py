"""Record the ids of transformers 4's slow AlbertTokenizer on all of the real data: the oracle of our tokenizer.

Run in an environment with transformers 4.57.1 (`make test-oracle`). Writes the ids to an ignored folder, and with
`--fixture` also the digests and the tricky lines that are checked in. Imports nothing of ours.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[2]
RECORDING = ROOT / "build" / "oracle"
FIXTURE = Path(__file__).with_name("oracle.json")
SETTINGS = [(lower, accents) for lower in (True, False) for accents in (False, True)]


def real_texts(data: Path) -> Iterator[tuple[str, list[str]]]:
    """Return every text of the shared data sets, by file: every cell of a table, every string of a JSON file."""
    for path in sorted((data / "glue").glob("*/*.tsv")):
        lines = path.read_text(encoding="utf-8").split("\n")
        yield path.relative_to(data).as_posix(), [cell for line in lines for cell in line.split("\t")]
    for path in sorted((data / "nli").glob("*.jsonl")):
        rows = path.read_text(encoding="utf-8").splitlines()
        yield path.relative_to(data).as_posix(), [text for row in rows for text in _strings(json.loads(row))]
    for path in sorted((data / "squad").glob("*.json")):
        yield path.relative_to(data).as_posix(), list(_strings(json.loads(path.read_bytes())))
    for folder in sorted((data / "race").glob("*/*")):
        files = sorted(folder.glob("*.txt"))
        yield (
            folder.relative_to(data).as_posix(),
            [text for file in files for text in _strings(json.loads(file.read_bytes()))],
        )
    for path in sorted((data / "corpus").glob("*.valid.txt.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            yield path.relative_to(data).as_posix(), [line.rstrip("\n") for line in lines]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)


def flatten(batch: Iterable[list[int]]) -> npt.NDArray[np.int32]:
    """Put ids one after the other, each text led by its length."""
    return np.array([number for ids in batch for number in (len(ids), *ids)], dtype="<i4")


def digest(numbers: npt.NDArray[np.int32]) -> str:
    return hashlib.sha256(numbers.tobytes()).hexdigest()


def slow_encoder(vocabulary: Path, *, lower_case: bool, keep_accents: bool) -> Callable[[str], list[int]]:
    """Make the oracle; special tokens written out in a text stay text, as in training data."""
    from transformers import AlbertTokenizer

    slow = AlbertTokenizer(str(vocabulary), do_lower_case=lower_case, keep_accents=keep_accents)
    return lambda text: slow.convert_tokens_to_ids(slow.tokenize(text, split_special_tokens=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fixture", action="store_true", help="write the checked-in digests and tricky lines anew")
    write_fixture = parser.parse_args().fixture
    data = Path(os.environ.get("ALBERT_DATA", ROOT.parent / "shared" / "data"))
    vocabulary = data / "vocab" / "spiece.model"
    if not vocabulary.exists():
        raise SystemExit(f"no real data at {data}: set ALBERT_DATA")
    encode = slow_encoder(vocabulary, lower_case=True, keep_accents=False)
    RECORDING.mkdir(parents=True, exist_ok=True)
    fixture = json.loads(FIXTURE.read_bytes())
    digests = {}
    for name, texts in real_texts(data):
        numbers = flatten(map(encode, texts))
        np.save(RECORDING / f"{name.replace('/', '.')}.npy", numbers)
        digests[name] = {"texts": len(texts), "sha256": digest(numbers)}
        print(f"{name}: {len(texts):,} texts, {len(numbers) - len(texts):,} ids")
    if write_fixture:
        fixture["digests"] = digests
        for lower_case, keep_accents in SETTINGS:
            encode = slow_encoder(vocabulary, lower_case=lower_case, keep_accents=keep_accents)
            for line in fixture["lines"]:
                line["ids"][f"lower={lower_case:d} accents={keep_accents:d}"] = encode(line["text"])
        FIXTURE.write_text(json.dumps(fixture, indent=1, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()
