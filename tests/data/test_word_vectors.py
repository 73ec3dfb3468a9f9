"""PPMI word vectors, against counts by plain loops."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from albert.data import word_vectors
from albert.data.word_vectors import WINDOW, ppmi_word_vectors

FIRST = 5  # of the pieces that are not special
WORDS = [f"▁{letter}" for letter in "abcdefghijkl"]


def documents(*, seed: int) -> list[list[list[int]]]:
    draw = random.Random(seed)
    return [
        [
            [draw.randrange(FIRST, FIRST + len(WORDS) - 1) for _ in range(draw.randint(1, 9))]
            for _ in range(draw.randint(1, 4))
        ]
        for _ in range(30)
    ]


def ppmi_by_loops(texts: list[list[list[int]]], vocabulary: int) -> npt.NDArray[np.float64]:
    counts = np.zeros((vocabulary, vocabulary))
    for text in texts:
        pieces = [piece for sentence in text for piece in sentence]
        for place, piece in enumerate(pieces):
            for other in range(max(0, place - WINDOW), min(len(pieces), place + WINDOW + 1)):
                if other != place:
                    counts[piece, pieces[other]] += (WINDOW + 1 - abs(other - place)) / WINDOW
    by_chance = counts.sum(1, keepdims=True) * counts.sum(0) / counts.sum()
    return np.log(np.maximum(np.divide(counts, by_chance, out=np.ones_like(counts), where=by_chance > 0), 1))


def test_whole_vectors_hold_the_whole_matrix(
    make_store: Callable[..., Any], make_tokenizer: Callable[..., Any]
) -> None:
    texts, tokenizer = documents(seed=0), make_tokenizer(WORDS)
    counted = ppmi_word_vectors(make_store(texts, per_shard=7, tokenizer=tokenizer), tokenizer.vocab_size)
    excess = ppmi_by_loops(texts, tokenizer.vocab_size)
    alike = counted.vectors.astype(np.float64) @ counted.vectors.T  # U S Uᵀ, whose square is that of the matrix
    np.testing.assert_allclose(alike @ alike, excess @ excess.T, atol=1e-4)


def test_short_vectors_are_the_first_directions_of_a_full_decomposition(
    make_store: Callable[..., Any], make_tokenizer: Callable[..., Any]
) -> None:
    texts, tokenizer = documents(seed=5), make_tokenizer(WORDS)
    counted = ppmi_word_vectors(make_store(texts, tokenizer=tokenizer), 3)
    strength = np.linalg.svd(ppmi_by_loops(texts, tokenizer.vocab_size)).S
    np.testing.assert_allclose(np.square(counted.vectors).sum(0), strength[:3], rtol=0.01)


def test_frequencies_are_counted_and_unseen_pieces_have_no_vector(
    make_store: Callable[..., Any], make_tokenizer: Callable[..., Any]
) -> None:
    texts, tokenizer = documents(seed=1), make_tokenizer(WORDS)
    counted = ppmi_word_vectors(make_store(texts, tokenizer=tokenizer), 4)
    expected = Counter(piece for text in texts for sentence in text for piece in sentence)
    assert counted.frequencies.tolist() == [expected[piece] for piece in range(tokenizer.vocab_size)]
    assert counted.vectors.shape == (tokenizer.vocab_size, 4)
    lengths = np.linalg.norm(counted.vectors, axis=1)
    assert (lengths[counted.frequencies == 0] == 0).all()
    assert (lengths[counted.frequencies > 0] > 1e-3).all()


def test_pieces_of_one_kind_of_text_come_out_alike(
    make_store: Callable[..., Any], make_tokenizer: Callable[..., Any]
) -> None:
    draw, half = random.Random(2), len(WORDS) // 2
    texts = [[[FIRST + kind * half + draw.randrange(half) for _ in range(20)]] for kind in (0, 1) for _ in range(40)]
    vectors = ppmi_word_vectors(make_store(texts, tokenizer=make_tokenizer(WORDS)), 2).vectors[FIRST:]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    alike = vectors @ vectors.T
    assert alike[:half, :half].min() > 0.9
    assert abs(alike[:half, half:]).max() < 0.1


def test_a_large_store_is_read_in_part_and_a_large_vocabulary_by_its_commoner_neighbours(
    make_store: Callable[..., Any], make_tokenizer: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, tokenizer = documents(seed=3), make_tokenizer(WORDS)
    store = make_store(texts, per_shard=5, tokenizer=tokenizer)
    monkeypatch.setattr(word_vectors, "MOST_TOKENS", store.num_tokens // 3)
    monkeypatch.setattr(word_vectors, "MOST_CELLS", 4 * tokenizer.vocab_size)
    counted = ppmi_word_vectors(store, 8)
    assert 0 < counted.frequencies.sum() <= store.num_tokens // 3
    assert np.linalg.matrix_rank(counted.vectors, tol=1e-4) <= 4  # neighbours
    assert not counted.vectors[:, 4:].any()


def test_the_vectors_are_the_same_each_time(make_store: Callable[..., Any], make_tokenizer: Callable[..., Any]) -> None:
    store = make_store(documents(seed=4), tokenizer=make_tokenizer(WORDS))
    assert np.array_equal(ppmi_word_vectors(store, 4).vectors, ppmi_word_vectors(store, 4).vectors)
