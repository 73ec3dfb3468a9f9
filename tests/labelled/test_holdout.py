"""Holding out: in proportion, reproducible, copies on one side; what two parts share; weights of classes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from albert.errors import DataError, UsageError
from albert.labelled.holdout import balanced_weights, content_key, copies, held_out, seeded_sample, shared

KEYS = [f"text {number}" for number in range(1000)]
CLASSES = ["a"] * 700 + ["b"] * 250 + ["c"] * 50


def test_every_class_is_held_out_in_proportion() -> None:
    train, dev = held_out(KEYS, CLASSES, share=0.1, seed=1)
    assert sorted(train + dev) == list(range(1000))
    assert Counter(CLASSES[i] for i in dev) == {"a": 70, "b": 25, "c": 5}


def test_the_split_depends_on_seed_and_content_and_not_on_the_order_of_rows() -> None:
    dev = {KEYS[i] for i in held_out(KEYS, CLASSES, share=0.1, seed=1)[1]}
    assert dev == {KEYS[i] for i in held_out(KEYS, CLASSES, share=0.1, seed=1)[1]}
    order = np.random.default_rng(0).permutation(1000)
    keys, classes = [KEYS[i] for i in order], [CLASSES[i] for i in order]
    assert dev == {keys[i] for i in held_out(keys, classes, share=0.1, seed=1)[1]}
    other = {KEYS[i] for i in held_out(KEYS, CLASSES, share=0.1, seed=2)[1]}
    assert len(dev & other) < 40


def test_copies_of_a_row_stay_on_one_side_even_with_other_labels() -> None:
    keys = [f"text {number % 50}" for number in range(200)]
    train, dev = held_out(keys, ["a", "b"] * 100, share=0.2, seed=0)
    assert dev
    assert not {keys[i] for i in train} & {keys[i] for i in dev}


def test_a_class_with_a_single_text_stays_in_training() -> None:
    train, _ = held_out([*KEYS, "alone"], [*CLASSES, "rare"], share=0.5, seed=0)
    assert 1000 in train


def test_few_rows_still_give_a_dev_row_and_one_row_is_an_error() -> None:
    train, dev = held_out(["x", "y", "z"], ["a", "a", "b"], share=0.1, seed=0)
    assert (len(train), len(dev)) == (2, 1)
    assert 2 in train
    for keys in (["x"], ["x", "x"]):
        with pytest.raises(DataError, match="can't be divided into train and dev: add rows, or give a dev file"):
            held_out(keys, ["a"] * len(keys), share=0.1, seed=0)
    with pytest.raises(UsageError, match=r"holdout=1\.5"):
        held_out(["x", "y"], share=1.5, seed=0)


def test_case_and_spaces_do_not_make_another_text_but_the_side_of_a_pair_does() -> None:
    assert content_key("The  Cat\n") == content_key("the cat")
    assert content_key("a", "b") != content_key("b", "a")
    assert content_key("a b", None) != content_key("a", "b")


def test_copies_and_shared_rows_name_the_first_of_their_kind() -> None:
    assert [(c.place, c.earlier) for c in copies(["x", "y", "x", "x"])] == [(2, 0), (3, 0)]
    assert [(c.place, c.earlier) for c in shared(["x", "y", "x"], ["z", "x", "y"])] == [(1, 0), (2, 1)]


def test_a_sample_is_seeded_without_repeats_and_a_prefix_of_a_larger_one() -> None:
    small, large = (seeded_sample(KEYS, limit=n, seed=3) for n in (50, 200))
    assert small == large[:50]
    assert len(set(large)) == 200
    assert abs(np.mean(large) - 500) < 80
    assert seeded_sample(KEYS, limit=5000, seed=3) == list(range(1000))


def test_balanced_weights_give_every_class_the_same_total_and_rows_a_mean_of_one() -> None:
    classes = [0] * 6 + [1] * 3 + [3]
    weights = balanced_weights(classes, num_classes=4)
    assert weights == pytest.approx((10 / 18, 10 / 9, 1.0, 10 / 3))
    assert sum(weights[c] for c in classes) == pytest.approx(len(classes))
