"""The token store: what is written is what is read, and what is damaged or foreign is refused by name."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from albert.data.shard import pack_shard, token_type
from albert.data.store import TokenStore, write_store
from albert.errors import DataError
from albert.tokenizer import Tokenizer
from albert.tokenizer.normalisation import Normalisation

DOCUMENTS = [[[5, 6, 7], [8, 1]], [[9]], [[10, 11], [12], [13, 14, 15]]]


@pytest.fixture
def store(tmp_path: Path, real_tokenizer: Tokenizer) -> TokenStore:
    return write_store(tmp_path / "store", DOCUMENTS, tokenizer=real_tokenizer, documents_per_shard=2)


def _documents(store: TokenStore) -> list[list[list[int]]]:
    return [
        [
            shard.tokens[shard.sentences[at] : shard.sentences[at + 1]].tolist()
            for at in range(shard.documents[number], shard.documents[number + 1])
        ]
        for shard in store.shards
        for number in range(shard.documents.size - 1)
    ]


def test_what_was_written_is_read(store: TokenStore) -> None:
    assert _documents(store) == DOCUMENTS
    assert (store.num_documents, store.num_sentences, store.num_tokens, store.num_unknown) == (3, 6, 12, 1)
    assert [shard.documents.tolist() for shard in store.shards] == [[0, 2, 3], [0, 3]]
    assert store.num_bytes == sum(path.stat().st_size for path in store.folder.glob("shard-*"))


def test_empty_sentences_and_documents_are_never_stored(tmp_path: Path, real_tokenizer: Tokenizer) -> None:
    store = write_store(tmp_path, [[[]], [[5], []], []], tokenizer=real_tokenizer)
    assert _documents(store) == [[[5]]]


def test_shards_are_mapped_not_loaded_and_can_not_be_written(store: TokenStore) -> None:
    tokens = store.shards[0].tokens
    assert tokens.dtype == np.uint16
    assert not tokens.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        tokens[0] = 1


def test_ids_beyond_sixteen_bits_get_thirty_two() -> None:
    assert token_type(2**16) == np.uint16
    assert token_type(2**16 + 1) == np.uint32
    contents, record = pack_shard([[70_000, 1]], [1], vocab_size=100_000, unk_id=1)
    assert (record.num_tokens, record.num_unknown) == (2, 1)
    assert np.frombuffer(contents[-8:], "<u4").tolist() == [70_000, 1]


def test_a_store_moves_to_another_process_and_another_place(store: TokenStore, tmp_path: Path) -> None:
    assert _documents(pickle.loads(pickle.dumps(store))) == DOCUMENTS
    shutil.move(store.folder, tmp_path / "elsewhere")
    moved = TokenStore.open(tmp_path / "elsewhere")
    assert _documents(moved) == DOCUMENTS
    assert moved.fingerprint == store.fingerprint
    assert moved.tokenizer.fingerprint == store.manifest.tokenizer


def test_the_fingerprint_names_the_contents(tmp_path: Path, real_tokenizer: Tokenizer) -> None:
    variants = [DOCUMENTS, [[[5, 6, 7], [8, 2]], *DOCUMENTS[1:]], [[[5, 6], [7, 8, 1]], *DOCUMENTS[1:]]]
    stores = [write_store(tmp_path / str(i), docs, tokenizer=real_tokenizer) for i, docs in enumerate(variants)]
    again = write_store(tmp_path / "again", DOCUMENTS, tokenizer=real_tokenizer)
    assert len({store.fingerprint for store in stores}) == 3
    assert again.fingerprint == stores[0].fingerprint


def test_another_tokenizer_is_refused_by_name(store: TokenStore, real_tokenizer: Tokenizer) -> None:
    store.require_tokenizer(real_tokenizer)
    cased = Tokenizer(real_tokenizer.model, Normalisation(lower_case=False))
    with pytest.raises(DataError, match=f"built with tokenizer {real_tokenizer.fingerprint[:12]}.*not with"):
        store.require_tokenizer(cased)


def test_a_store_whose_own_tokenizer_was_exchanged_is_refused(store: TokenStore, real_tokenizer: Tokenizer) -> None:
    Tokenizer(real_tokenizer.model, Normalisation(lower_case=False)).save(store.folder / "tokenizer")
    with pytest.raises(DataError, match="built with tokenizer"):
        _ = TokenStore.open(store.folder).tokenizer


def test_a_flipped_bit_is_found_and_its_shard_named(store: TokenStore) -> None:
    assert store.verify() == []
    path = store.folder / "shard-000001.bin"
    contents = bytearray(path.read_bytes())
    contents[-1] ^= 4
    path.write_bytes(contents)
    assert [(shard.path, shard.reason) for shard in store.verify()] == [(path, "its checksum is not the recorded one")]


@pytest.mark.parametrize("change", ["cut", "grown", "missing"])
def test_a_shard_of_another_size_is_refused_when_the_store_is_opened(store: TokenStore, change: str) -> None:
    path = store.folder / "shard-000001.bin"
    contents = path.read_bytes()
    if change == "missing":
        path.unlink()
    else:
        path.write_bytes(contents[:-1] if change == "cut" else contents + b"\0")
    with pytest.raises(DataError, match=r"shard-000001\.bin: .*run the same `albert data build` again"):
        TokenStore.open(store.folder)
    with pytest.raises(DataError, match=r"shard-000001\.bin"):
        _ = store.shards[1]


def test_a_folder_without_a_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no token store here"):
        TokenStore.open(tmp_path)
    with pytest.raises(DataError, match="no token store here"):
        TokenStore.open(tmp_path / "missing")


@pytest.mark.parametrize(
    "change",
    [
        {"format": 99},
        {"shards": [{"num_tokens": "many"}]},
        {"shards": [{"num_tokens": -1, "num_sentences": 0, "num_documents": 0, "num_unknown": 0, "sha256": ""}]},
        {"shards": 3},
        {"vocab_size": "x"},
        {"tokenizer": None},
    ],
)
def test_a_manifest_of_another_form_is_refused_by_name(store: TokenStore, change: dict[str, object]) -> None:
    path = store.folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DataError, match=r"manifest\.json: .*build it again"):
        TokenStore.open(store.folder)
