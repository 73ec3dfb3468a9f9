"""Our ids are those of transformers 4.57.1's slow AlbertTokenizer, on every text of the real data."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from albert.tokenizer import Tokenizer
from albert.tokenizer.normalisation import Normalisation

FIXTURE = json.loads(Path(__file__).with_name("oracle.json").read_bytes())


def test_every_real_text_gives_the_ids_of_the_slow_tokenizer(
    official: Tokenizer, real_data: Path, oracle: ModuleType
) -> None:
    seen = {}
    for name, texts in oracle.real_texts(real_data):
        numbers = oracle.flatten(official.encode_many(texts))
        seen[name] = {"texts": len(texts), "sha256": oracle.digest(numbers)}
    assert {name: seen[name] for name in seen if name in FIXTURE["digests"]} == FIXTURE["digests"]
    assert sum(file["texts"] for file in seen.values()) > 600_000


@pytest.mark.parametrize("lower_case", [True, False])
@pytest.mark.parametrize("keep_accents", [True, False])
def test_tricky_lines_give_the_ids_of_the_slow_tokenizer(
    official: Tokenizer, lower_case: bool, keep_accents: bool
) -> None:
    tokenizer = Tokenizer(official.model, Normalisation(lower_case=lower_case, keep_accents=keep_accents))
    key = f"lower={lower_case:d} accents={keep_accents:d}"
    wrong = {
        line["text"]: tokenizer.encode(line["text"])
        for line in FIXTURE["lines"]
        if tokenizer.encode(line["text"]) != line["ids"][key]
    }
    assert wrong == {}
    assert len(FIXTURE["lines"]) > 60


@pytest.mark.oracle
def test_every_recorded_text_gives_the_same_ids(official: Tokenizer, real_data: Path, oracle: ModuleType) -> None:
    for name, texts in oracle.real_texts(real_data):
        recorded = np.load(oracle.RECORDING / f"{name.replace('/', '.')}.npy").tolist()
        place = 0
        for text, ids in zip(texts, official.encode_many(texts), strict=True):
            length = recorded[place]
            assert ids == recorded[place + 1 : place + 1 + length], f"{name}: {text!r}"
            place += 1 + length


@pytest.mark.oracle
def test_ids_with_offsets_are_the_same_on_every_real_text(
    official: Tokenizer, real_data: Path, oracle: ModuleType
) -> None:
    for _, texts in oracle.real_texts(real_data):
        for text, ids in zip(texts, official.encode_many(texts), strict=True):
            assert official.encode_with_offsets(text).ids == ids, text
