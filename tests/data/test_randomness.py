"""Draws that depend on their key, purpose and counter only."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albert.data.randomness import Purpose, below, epoch_key, keyed, shuffled, uniform

KEYS = keyed(epoch_key(1, 0), np.arange(200_000))


def test_draws_are_uniform():
    counts = np.bincount((uniform(KEYS, Purpose.NGRAM) * 100).astype(int), minlength=100)
    # Chi-square with 99 degrees of freedom: mean 99, sigma sqrt(198) = 14; 5 sigma.
    assert abs(((counts - 2000) ** 2 / 2000).sum() - 99) < 5 * 14.1


@pytest.mark.parametrize("shift", ["purpose", "counter", "key", "epoch", "seed"])
def test_draws_that_differ_in_one_thing_are_independent(shift):
    first = uniform(KEYS, Purpose.NGRAM)
    second = {
        "purpose": lambda: uniform(KEYS, Purpose.ORDER),
        "counter": lambda: uniform(KEYS, Purpose.NGRAM, 1),
        "key": lambda: np.roll(first, 1),
        "epoch": lambda: uniform(keyed(epoch_key(1, 1), np.arange(KEYS.size)), Purpose.NGRAM),
        "seed": lambda: uniform(keyed(epoch_key(2, 0), np.arange(KEYS.size)), Purpose.NGRAM),
    }[shift]()
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(KEYS.size)


def test_below_reaches_every_number_and_no_other():
    drawn = below(7, KEYS, Purpose.CUT)
    counts = np.bincount(drawn, minlength=7)
    assert counts.size == 7
    assert np.abs(counts - KEYS.size / 7).max() < 5 * np.sqrt(KEYS.size / 7)


def test_a_limit_of_zero_or_one_gives_zero():
    assert below(np.zeros(9, dtype=np.int64), KEYS[:9], Purpose.CUT).max() == 0
    assert below(1, KEYS, Purpose.CUT).max() == 0


@settings(deadline=None, derandomize=True)
@given(size=st.integers(1, 3000), seed=st.integers(0, 2**63 - 1))
def test_a_shuffle_holds_every_number_once(size, seed):
    places = shuffled(np.arange(size), size, key=epoch_key(seed, 0))
    assert np.array_equal(np.sort(places), np.arange(size))


def test_a_number_has_the_same_place_whatever_is_asked_with_it():
    key = epoch_key(3, 1)
    everything = shuffled(np.arange(1000), 1000, key=key)
    some = np.array([999, 0, 517, 3])
    assert np.array_equal(shuffled(some, 1000, key=key), everything[some])


def test_a_shuffle_leaves_no_trace_of_the_order():
    size = 100_000
    places = shuffled(np.arange(size), size, key=epoch_key(3, 1))
    assert abs(np.corrcoef(places, np.arange(size))[0, 1]) < 5 / np.sqrt(size)
    assert abs(np.corrcoef(places[1:], places[:-1])[0, 1]) < 5 / np.sqrt(size)
    other = shuffled(np.arange(size), size, key=epoch_key(3, 2))
    assert abs(np.corrcoef(places, other)[0, 1]) < 5 / np.sqrt(size)
    # A random permutation has one fixed point on average (Poisson); 12 or more has probability 1e-9.
    assert np.count_nonzero(places == np.arange(size)) < 12
