"""Random numbers without a generator: each is a hash of who asks and for what.

A draw depends on nothing but its key (seed, epoch, sample), its purpose and its counter, so any sample can be made
anywhere, in any order and in any company, and comes out the same. The hash is the finaliser of SplitMix64, applied to
whole arrays; a shuffle is a keyed bijection that is computed, not stored. Knows nothing of text.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, odd: counters far apart and never repeating
_FEISTEL_ROUNDS = 6


class Purpose(IntEnum):
    """What a draw is for: two purposes never share a number. The values are part of every seed's meaning."""

    LENGTH = 1  # is this sequence a short one
    TARGET = 2  # how short
    SLACK = 3  # where a document's first chunk ends
    CUT = 4  # where segment A ends
    SWAP = 5  # which segment comes first
    FOREIGN = 6  # does B come from elsewhere (NSP)
    FOREIGN_DOCUMENT = 7
    FOREIGN_SENTENCE = 8
    SHUFFLE = 9  # the order of an epoch
    ORDER = 10  # in which order words are tried
    NGRAM = 11  # how many words a span has
    CORRUPTION = 12  # [MASK], kept or replaced
    REPLACEMENT = 13  # by which piece
    WORD_CUT = 14  # where a single sentence is cut in two
    OVERLAP = 15  # do the segments have text in common, how much, and which comes first
    ALONE = 16  # does the text stand alone


def mix(numbers: Words) -> Words:
    """Scatter 64-bit numbers: a bijection in which every input bit changes half of the output bits."""
    mixed = numbers ^ (numbers >> np.uint64(30))
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def epoch_key(seed: int, epoch: int) -> Words:
    """Return the key of an epoch, as an array of one."""
    key = mix(np.array([seed], dtype=np.uint64) + _GOLDEN)
    return mix(key + np.array([epoch + 1], dtype=np.uint64) * _GOLDEN)


def keyed(key: Words, numbers: Ints) -> Words:
    """Return the key of each numbered thing under a key."""
    return mix(key + (numbers.astype(np.uint64) + np.uint64(1)) * _GOLDEN)


def hashes(keys: Words, purpose: Purpose, counters: Ints | int = 0) -> Words:
    """Draw 64 random bits for each key and counter."""
    salted = np.atleast_1d(np.asarray(counters, dtype=np.uint64)) | np.uint64(purpose << 48)  # counters are below 2^48
    return mix(keys + salted * _GOLDEN)


def uniform(keys: Words, purpose: Purpose, counters: Ints | int = 0) -> Floats:
    """Draw a number in [0, 1) for each key and counter."""
    return (hashes(keys, purpose, counters) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def below(limits: Ints | int, keys: Words, purpose: Purpose, *, counters: Ints | int = 0) -> Ints:
    """Draw a whole number in [0, limit) for each key and counter."""
    return (uniform(keys, purpose, counters) * limits).astype(np.int64)


def shuffled(numbers: Ints, size: int, *, key: Words) -> Ints:
    """Return the place of each number in a random permutation of [0, size), in memory that doesn't grow with it.

    A Feistel network permutes the next power of four; numbers that land outside go round again until they are inside.
    """
    half = np.uint64(max(1, ((size - 1).bit_length() + 1) // 2))
    low = (np.uint64(1) << half) - np.uint64(1)
    places = numbers.astype(np.uint64)
    outside = np.arange(places.size)
    while outside.size:
        left, right = places[outside] >> half, places[outside] & low
        for turn in range(_FEISTEL_ROUNDS):
            left, right = right, left ^ (hashes(key + right, Purpose.SHUFFLE, turn) & low)
        places[outside] = (left << half) | right
        outside = outside[places[outside] >= np.uint64(size)]
    return places.astype(np.int64)
