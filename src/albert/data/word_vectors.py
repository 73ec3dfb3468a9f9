"""PPMI word vectors: what the word embeddings of a new model may start from.

How often two pieces stand near each other in the text, against how often they would by chance, is known after one pass
over the tokens: half a minute for 20 million, where training finds it out over a thousand steps. The positive
logarithm of that ratio is the positive pointwise mutual information (PPMI); a truncated SVD of the matrix of pieces by
neighbours gives word vectors (Levy and Goldberg, 2014). Sentences of one document are neighbours, documents are not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.utils.extmath import randomized_svd

from albert.data.shard import Shard
from albert.data.store import TokenStore

WINDOW = 6  # pieces to each side; the weight falls with the distance, from 6 to 1
MOST_TOKENS = 2**25  # of a larger store, every n-th shard is read
MOST_CELLS = 2**26  # of the matrix: for large vocabularies only the more frequent pieces count as neighbours

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class WordVectors:
    """Word vectors and frequencies of a vocabulary."""

    vectors: Floats  # [V, E], zero for a piece that was not seen; a common direction and length are left in
    frequencies: npt.NDArray[np.int64]  # [V], how often each piece was seen


def ppmi_word_vectors(store: TokenStore, size: int) -> WordVectors:
    """Read a store once and give every piece a vector."""
    pieces, vocabulary = _pieces(store), store.tokenizer.vocab_size
    frequencies = np.bincount(pieces, minlength=vocabulary + 1)[:vocabulary]
    neighbours = np.argsort(-frequencies, kind="stable")[: max(1, MOST_CELLS // vocabulary)]
    matrix = _ppmi(_count_pairs(pieces, neighbours, vocabulary))
    rank = min(size, *matrix.shape)
    left, strength, _ = randomized_svd(matrix, rank, n_oversamples=rank, n_iter=4, random_state=0)
    vectors = np.zeros((vocabulary, size), np.float32)
    vectors[:, :rank] = left * np.sqrt(strength)
    vectors[frequencies == 0] = 0  # and not what rounding left there
    return WordVectors(vectors, frequencies)


def _pieces(store: TokenStore) -> npt.NDArray[np.int32]:
    """Lay documents end to end, with gaps (the id behind the last piece) that no window reaches across."""
    parts, left = [], MOST_TOKENS
    for index in range(0, len(store.shards), -(-store.num_tokens // MOST_TOKENS)):
        part = _with_gaps(store.shards[index], gap=store.tokenizer.vocab_size)[:left]
        parts.append(part)
        left -= len(part)
    return np.concatenate(parts)


def _with_gaps(shard: Shard, *, gap: int) -> npt.NDArray[np.int32]:
    ends = shard.sentences[shard.documents[1:]]  # [D], in tokens
    return np.insert(shard.tokens.astype(np.int32), np.repeat(ends, WINDOW), gap)


def _count_pairs(pieces: npt.NDArray[np.int32], neighbours: npt.NDArray[np.int64], vocabulary: int) -> Floats:
    """Count how often each piece has each neighbour near it: [V, N]."""
    columns = np.full(vocabulary + 1, len(neighbours))  # the last column is for all that is no neighbour
    columns[neighbours] = np.arange(len(neighbours))
    counts = np.zeros((vocabulary + 1, len(neighbours) + 1), np.float32)
    rows, column = pieces.astype(np.int64) * counts.shape[1], columns[pieces]
    for distance in range(1, WINDOW + 1):
        weights = np.full(len(pieces) - distance, WINDOW + 1 - distance, np.float32)  # whole numbers: sums are exact
        for cells in (rows[distance:] + column[:-distance], rows[:-distance] + column[distance:]):
            np.add.at(counts.reshape(-1), cells, weights)
    return counts[:-1, :-1]


def _ppmi(counts: Floats) -> Floats:
    """Return the logarithm of how much oftener than by chance a pair was seen, where it is positive."""
    of_row, of_column = counts.sum(1, keepdims=True), counts.sum(0, keepdims=True)
    ratio = of_row * (of_column / max(counts.sum(), 1))  # how often by chance; what follows is in its place
    oftener = counts > ratio
    np.divide(counts, ratio, out=ratio, where=oftener)
    ratio[~oftener] = 1
    return np.log(ratio, out=ratio)
