"""How fast text becomes ids on one core: ours, bare SentencePiece, `tokenizers` and transformers' ALBERT tokenizer.

The text is wiki.valid and books.valid of the real data, a paragraph at a time, in the official vocabulary. Rounds are
interleaved, so that a busy moment hits everybody. "other ids" counts texts whose ids are not those of transformers 4's
slow tokenizer, which ours gives (tests/tokenizer/test_oracle.py).

    python benchmarks/bench_tokenizer.py [--rounds 7] [--record]
"""

from __future__ import annotations

import os

os.environ |= {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}  # one core for everybody

import argparse
import lzma
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import sentencepiece
import tokenizers
import transformers
from recording import data_folder, print_table, record

from albert.tokenizer import Tokenizer

MB = 10**6
Encode = Callable[[Sequence[str]], list[list[int]]]


def real_texts() -> list[str]:
    """Return the paragraphs of the two validation sets."""
    texts = []
    for name in ("wiki", "books"):
        with lzma.open(data_folder() / "corpus" / f"{name}.valid.txt.xz", "rt", encoding="utf-8") as lines:
            texts += [line.rstrip("\n") for line in lines if line.strip()]
    return texts


def contenders(ours: Tokenizer, folder: Path) -> dict[str, Encode]:
    """Return every way to encode, by name."""
    vocabulary = folder / "bare"
    vocabulary.mkdir()
    (vocabulary / "spiece.model").write_bytes(ours.model)
    engine = sentencepiece.SentencePieceProcessor(model_proto=ours.model)
    pipeline = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    theirs = transformers.AlbertTokenizer.from_pretrained(vocabulary)
    auto = transformers.AutoTokenizer.from_pretrained(folder)
    plain: dict[str, Any] = {
        "add_special_tokens": False,
        "return_attention_mask": False,
        "return_token_type_ids": False,
    }
    return {
        "albert, ids": ours.encode_many,
        "albert, ids and offsets": lambda texts: [ours.encode_with_offsets(text).ids for text in texts],
        "SentencePiece alone, raw text": lambda texts: engine.encode(texts, out_type=int, num_threads=1),
        "tokenizers, our tokenizer.json, ids": lambda texts: [
            encoding.ids for encoding in pipeline.encode_batch_fast(texts, add_special_tokens=False)
        ],
        "tokenizers, our tokenizer.json, ids and offsets": lambda texts: [
            encoding.ids for encoding in pipeline.encode_batch(texts, add_special_tokens=False)
        ],
        f"transformers {transformers.__version__}, our folder": lambda texts: auto(texts, **plain)["input_ids"],
        f"transformers {transformers.__version__}, AlbertTokenizer": lambda texts: theirs(texts, **plain)["input_ids"],
    }


def compare(ways: dict[str, Encode], texts: list[str], *, rounds: int) -> list[dict[str, Any]]:
    """Time every way in turn, so many rounds, and count the texts with other ids than ours."""
    num_bytes = sum(len(text.encode()) for text in texts)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    right = ways["albert, ids"](texts)
    others = {}
    for number in range(rounds):
        for name, encode in ways.items():
            started = time.perf_counter()
            ids = encode(texts)
            seconds[name].append(time.perf_counter() - started)
            if number == 0:
                others[name] = sum(one != other for one, other in zip(right, ids, strict=True))
    ours = statistics.median(seconds["albert, ids"])
    return [
        {
            "encoder": name,
            "MB/s": round(num_bytes / MB / statistics.median(times), 2),
            "worst MB/s": round(num_bytes / MB / max(times), 2),
            "times our time": round(statistics.median(times) / ours, 2),
            "other ids": f"{others[name]:,} of {len(texts):,}",
        }
        for name, times in seconds.items()
    ]


def lengths(ours: Tokenizer, texts: list[str], *, rounds: int) -> list[dict[str, Any]]:
    """Time one string of growing length: the speed stays the same if time is linear."""
    whole = " ".join(texts)
    rows = []
    for size in (1_000, 10_000, 100_000, 1_000_000):
        text = whole[:size]
        speeds = []
        for encode in (ours.encode, ours.encode_with_offsets):
            times = []
            for _ in range(rounds):
                started = time.perf_counter()
                for _ in range(1_000_000 // size):
                    encode(text)
                times.append(time.perf_counter() - started)
            speeds.append(round(len(text.encode()) * (1_000_000 // size) / MB / statistics.median(times), 2))
        rows.append({"one string of characters": size, "ids MB/s": speeds[0], "with offsets MB/s": speeds[1]})
    return rows


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--record", action="store_true", help="write benchmarks/results/tokenizer.json and .md")
    options = parser.parse_args()
    ours = Tokenizer.load(data_folder() / "vocab" / "spiece.model")
    texts = real_texts()
    with tempfile.TemporaryDirectory() as folder:
        ours.save(folder)
        rows = compare(contenders(ours, Path(folder)), texts, rounds=options.rounds)
    print_table(rows)
    long = lengths(ours, texts, rounds=options.rounds)
    print_table(long)
    if options.record:
        record("tokenizer", [*rows, *long], title="Encoding text: speed and ids")


if __name__ == "__main__":
    main()
