"""What `albert data check` says of a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from albert.data.check import Duplicate, check_store
from albert.data.store import write_store
from albert.errors import DataError
from albert.tokenizer import Tokenizer


def test_counts_and_lengths_are_those_of_the_store(tmp_path: Path, real_tokenizer: Tokenizer) -> None:
    documents = [[[5] * 3, [1]], [[6] * 4], [[7] * 5, [8] * 100, [9]]]
    found = check_store(write_store(tmp_path, documents, tokenizer=real_tokenizer, documents_per_shard=2))
    assert (found.num_documents, found.num_sentences, found.num_tokens, found.num_unknown) == (3, 6, 114, 1)
    assert found.num_single == 1
    lengths = found.sentence_lengths
    assert (lengths.shortest, lengths.median, lengths.mean, lengths.longest) == (1, 3, 19.0, 100)
    assert lengths.histogram == ((1, 2), (2, 0), (4, 2), (8, 1), (16, 0), (32, 0), (64, 0), (128, 1))
    assert found.document_lengths.histogram == ((4, 2), (8, 0), (16, 0), (32, 0), (64, 0), (128, 1))


def test_documents_that_are_copies_are_found_across_shards(tmp_path: Path, real_tokenizer: Tokenizer) -> None:
    documents = [[[5, 6]], [[7]], [[5], [6]], [[8, 9]], [[7]], [[5, 6]]]
    found = check_store(write_store(tmp_path, documents, tokenizer=real_tokenizer, documents_per_shard=2))
    assert found.duplicates == (Duplicate(2, 0), Duplicate(4, 1), Duplicate(5, 0))


def test_damaged_shards_are_all_named(tmp_path: Path, real_tokenizer: Tokenizer) -> None:
    store = write_store(tmp_path, [[[5]], [[6]], [[7]]], tokenizer=real_tokenizer, documents_per_shard=1)
    for number in (0, 2):
        path = tmp_path / f"shard-00000{number}.bin"
        path.write_bytes(path.read_bytes()[:-1] + b"\7")
    with pytest.raises(DataError, match=r"shard-000000\.bin: its checksum.*shard-000002\.bin: its checksum"):
        check_store(store)


def test_a_store_without_text_is_an_error(tmp_path: Path, real_tokenizer: Tokenizer) -> None:
    with pytest.raises(DataError, match="holds no text"):
        check_store(write_store(tmp_path, [], tokenizer=real_tokenizer))
