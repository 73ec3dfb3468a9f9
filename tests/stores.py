"""A store of text that can be learnt, small enough to train on in a second: fixtures for every folder of tests."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from albert.data.store import TokenStore
    from albert.tokenizer import Tokenizer

TEXT = (
    "the a cat ship sister winter town coal bread letter dog harbour rain noon man sat left wrote came looked at on in "
    "and of with to her his old small long grey forty two never nobody"
)
WORDS = TEXT.split()


@pytest.fixture(scope="session")
def store_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a store of 60 documents of sentences in which each word often brings the same next one."""
    return _write(tmp_path_factory.mktemp("corpus") / "store", vocab_size=100)


@pytest.fixture
def store(store_folder: Path) -> TokenStore:
    from albert.data.store import TokenStore

    return TokenStore.open(store_folder)


@pytest.fixture
def store_of_other_pieces(tmp_path: Path) -> TokenStore:
    """Return a store of the same text in another vocabulary."""
    from albert.data.store import TokenStore

    return TokenStore.open(_write(tmp_path / "other-pieces", vocab_size=60))


def _write(folder: Path, *, vocab_size: int) -> Path:
    from albert.data.store import write_store

    documents = _documents()
    tokenizer = _train_tokenizer([sentence for document in documents for sentence in document], vocab_size=vocab_size)
    write_store(folder, [tokenizer.encode_many(document) for document in documents], tokenizer=tokenizer)
    return folder


def _documents() -> list[list[str]]:
    import numpy as np

    rng = np.random.default_rng(0)
    follower = rng.permutation(len(WORDS))
    documents = []
    for _ in range(60):
        sentences = []
        for _ in range(int(rng.integers(4, 30))):
            word, words = int(rng.integers(len(WORDS))), []
            for _ in range(int(rng.integers(4, 15))):
                words.append(WORDS[word])
                word = int(follower[word]) if rng.random() < 0.9 else int(rng.integers(len(WORDS)))
            sentences.append(" ".join(words) + ".")
        documents.append(sentences)
    return documents


def _train_tokenizer(lines: list[str], *, vocab_size: int) -> Tokenizer:
    import sentencepiece

    from albert.tokenizer import Tokenizer
    from albert.tokenizer.normalisation import Normalisation

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=vocab_size, hard_vocab_limit=False, pad_id=0,
        unk_id=1, bos_id=-1, eos_id=-1, control_symbols="[CLS],[SEP],[MASK]", minloglevel=2, num_threads=1,
    )  # fmt: skip
    return Tokenizer(model.getvalue(), Normalisation())
