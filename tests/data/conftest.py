"""Stores in memory, of the shape that `TokenStore` has; a small true tokenizer; text to build stores from."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sentencepiece

from albert.tokenizer import Tokenizer
from albert.tokenizer.normalisation import Normalisation
from albert.tokenizer.words import word_starts

SPECIAL = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
NUM_STARTS, NUM_INNER = 700, 300  # ids 5..704 begin a word, ids 705..1004 continue one


def _tokenizer(pieces: Sequence[str]) -> Any:
    pieces = [*SPECIAL, *pieces]
    return SimpleNamespace(
        pieces=pieces,
        vocab_size=len(pieces),
        word_starts=word_starts(pieces),
        **{f"{name}_id": number for number, name in enumerate(["pad", "unk", "cls", "sep", "mask"])},
    )


def _store(shards: list[Any], tokenizer: Any = None) -> Any:
    words = [f"▁w{i}" for i in range(NUM_STARTS)] + [f"p{i}" for i in range(NUM_INNER)]
    return SimpleNamespace(
        folder=Path("store"),
        shards=shards,
        tokenizer=tokenizer or _tokenizer(words),
        fingerprint="in-memory",
        num_tokens=sum(shard.tokens.size for shard in shards),
        num_documents=sum(shard.documents.size - 1 for shard in shards),
    )


@pytest.fixture(scope="session")
def make_tokenizer() -> Callable[[Sequence[str]], Any]:
    """Return the function that makes what examples see of a tokenizer: ids 0..4 are special, the pieces follow."""
    return _tokenizer


@pytest.fixture(scope="session")
def make_store() -> Callable[..., Any]:
    """Return the function that lays documents (lists of sentences, lists of ids) out as a store does."""

    def make(documents: Sequence[Sequence[Sequence[int]]], *, per_shard: int = 1000, tokenizer: Any = None) -> Any:
        shards = []
        for low in range(0, len(documents), per_shard):
            group = documents[low : low + per_shard]
            sentences = [sentence for document in group for sentence in document]
            shards.append(
                SimpleNamespace(
                    tokens=np.array([token for sentence in sentences for token in sentence], dtype=np.uint16),
                    sentences=np.cumsum([0, *map(len, sentences)]),
                    documents=np.cumsum([0, *map(len, group)]),
                )
            )
        return _store(shards, tokenizer)

    return make


@pytest.fixture(scope="session")
def english() -> Any:
    """Return a store with the lengths of English: 1.5 million tokens, 3 shards, 1.3 pieces a word, 27 a sentence."""
    rng = np.random.default_rng(20190926)
    shards = []
    for _ in range(3):
        counts = rng.integers(1, 250, size=150)  # sentences of each document
        lengths = np.clip(rng.lognormal(3.15, 0.55, size=int(counts.sum())), 1, 400).astype(np.int64)
        sentences = np.concatenate([[0], np.cumsum(lengths)])
        tokens = 5 + rng.integers(0, NUM_STARTS, size=int(lengths.sum()))
        inner = rng.random(tokens.size) < 0.23
        inner[sentences[:-1]] = False
        tokens[inner] = 5 + NUM_STARTS + rng.integers(0, NUM_INNER, size=int(inner.sum()))
        documents = np.concatenate([[0], np.cumsum(counts)])
        shards.append(SimpleNamespace(tokens=tokens.astype(np.uint16), sentences=sentences, documents=documents))
    return _store(shards)


WORDS = (
    "the a cat ship sister winter town coal bread letter dog harbour rain noon man sat left wrote came looked at on in "
    "and of with to her his old small long grey forty two never nobody"
)


@pytest.fixture(scope="session")
def real_tokenizer() -> Tokenizer:
    """Return a true tokenizer of a hundred pieces, trained in a twentieth of a second."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([f"{WORDS}."] * 4),
        model_writer=model,
        vocab_size=150,
        hard_vocab_limit=False,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=SPECIAL[2:],
        minloglevel=2,
    )
    return Tokenizer(model.getvalue(), Normalisation())


@pytest.fixture(scope="session")
def prose() -> Callable[..., str]:
    """Return the function that writes documents of paragraphs of sentences, a blank line between them."""

    def write(num_documents: int, *, paragraphs: int = 3, sentences: int = 4, seed: int = 0) -> str:
        rng = np.random.default_rng(seed)
        words = WORDS.split()

        def sentence() -> str:
            return " ".join(rng.choice(words, size=rng.integers(3, 15))).capitalize() + "."

        def document() -> str:
            return "\n".join(" ".join(sentence() for _ in range(sentences)) for _ in range(paragraphs))

        return "\n\n".join(document() for _ in range(num_documents)) + "\n"

    return write
