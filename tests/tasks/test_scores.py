"""The scores of GLUE and of people's own data, against formulae written out here."""

from __future__ import annotations

import math

import numpy as np
import pytest

from albert.tasks.scores import (
    accuracy_f1_scores,
    accuracy_scores,
    matthews_scores,
    multi_label_scores,
    regression_scores,
)

RNG_SEEDS = [0, 1, 2]


def binary(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = (rng.random(200) < 0.7).astype(int)
    return truth, np.where(rng.random(200) < 0.75, truth, 1 - truth)


def counts(truth: np.ndarray, guesses: np.ndarray) -> tuple[int, int, int, int]:
    """Count true and false positives, false and true negatives."""
    pairs = list(zip(truth.tolist(), guesses.tolist(), strict=True))
    return tuple(pairs.count(pair) for pair in ((1, 1), (0, 1), (1, 0), (0, 0)))  # type: ignore[return-value]


def f1(tp: int, fp: int, fn: int) -> float:
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 0.0


@pytest.mark.parametrize("seed", RNG_SEEDS)
def test_matthews_is_that_of_the_four_counts(seed: int) -> None:
    truth, guesses = binary(seed)
    tp, fp, fn, tn = counts(truth, guesses)
    expected = (tp * tn - fp * fn) / math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    scores = matthews_scores(truth, guesses)
    assert scores["matthews"] == pytest.approx(expected, abs=1e-12)
    assert scores["accuracy"] == pytest.approx((tp + tn) / 200)


def test_matthews_of_three_classes_is_that_of_the_confusion_matrix() -> None:
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 3, 300)
    guesses = np.where(rng.random(300) < 0.6, truth, rng.integers(0, 3, 300))
    matrix = np.zeros((3, 3))
    np.add.at(matrix, (truth, guesses), 1)
    true, guessed, total = matrix.sum(1), matrix.sum(0), matrix.sum()
    above = np.trace(matrix) * total - true @ guessed
    below = math.sqrt((total**2 - guessed @ guessed) * (total**2 - true @ true))
    assert matthews_scores(truth, guesses)["matthews"] == pytest.approx(above / below, abs=1e-12)


def test_one_guess_for_all_has_a_matthews_of_nothing() -> None:
    assert matthews_scores(np.array([0, 1, 1]), np.ones(3, int))["matthews"] == 0


@pytest.mark.parametrize("seed", RNG_SEEDS)
def test_f1_is_that_of_class_one_and_its_mean_with_accuracy_decides(seed: int) -> None:
    truth, guesses = binary(seed)
    tp, fp, fn, tn = counts(truth, guesses)
    scores = accuracy_f1_scores(truth, guesses)
    assert scores["f1"] == pytest.approx(f1(tp, fp, fn))
    assert scores["accuracy_f1"] == pytest.approx(((tp + tn) / 200 + f1(tp, fp, fn)) / 2)
    assert accuracy_f1_scores(np.array([0, 0]), np.array([0, 0])) == {"accuracy": 1.0, "f1": 0.0, "accuracy_f1": 0.5}


def test_macro_f1_is_the_mean_over_classes() -> None:
    rng = np.random.default_rng(7)
    truth, guesses = rng.integers(0, 4, 120), rng.integers(0, 4, 120)
    each = [f1(*counts((truth == c).astype(int), (guesses == c).astype(int))[:3]) for c in range(4)]
    scores = accuracy_scores(truth, guesses)
    assert scores["macro_f1"] == pytest.approx(np.mean(each))
    assert scores["accuracy"] == pytest.approx(np.mean(truth == guesses))


def test_multi_label_scores_count_decisions_labels_and_whole_rows() -> None:
    rng = np.random.default_rng(9)
    truth = (rng.random((60, 5)) < 0.3).astype(np.float32)
    guesses = np.where(rng.random((60, 5)) < 0.8, truth, 1 - truth)
    tp, fp, fn, _ = counts(truth.ravel().astype(int), guesses.ravel().astype(int))
    each = [f1(*counts(truth[:, c].astype(int), guesses[:, c].astype(int))[:3]) for c in range(5)]
    scores = multi_label_scores(truth, guesses)
    assert scores["micro_f1"] == pytest.approx(f1(tp, fp, fn))
    assert scores["macro_f1"] == pytest.approx(np.mean(each))
    assert scores["exact"] == pytest.approx(sum((a == b).all() for a, b in zip(truth, guesses, strict=True)) / 60)


def test_a_single_label_is_scored_by_its_f1_not_by_accuracy() -> None:
    truth, never = np.array([[1.0]] + [[0.0]] * 9), np.zeros((10, 1))
    assert multi_label_scores(truth, never) == {"micro_f1": 0.0, "macro_f1": 0.0, "exact": 0.9}
    assert multi_label_scores(truth, truth)["micro_f1"] == 1.0


def ranks(values: np.ndarray) -> np.ndarray:
    """Rank values from 1; equal ones share the mean of their places."""
    return np.array([(np.sum(values < v) + np.sum(values <= v) + 1) / 2 for v in values])


def pearson(x: np.ndarray, y: np.ndarray) -> float:
    x, y = x - x.mean(), y - y.mean()
    return float((x * y).sum() / math.sqrt((x * x).sum() * (y * y).sum()))


@pytest.mark.parametrize("seed", RNG_SEEDS)
def test_correlations_are_those_of_values_and_of_ranks_with_ties(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 11, 150) / 2  # many ties, as STS-B has
    guesses = np.round(truth + rng.normal(0, 1.5, 150), 1)
    scores = regression_scores(truth, guesses)
    assert scores["pearson"] == pytest.approx(pearson(truth, guesses), abs=1e-12)
    assert scores["spearman"] == pytest.approx(pearson(ranks(truth), ranks(guesses)), abs=1e-12)
    assert scores["pearson_spearman"] == pytest.approx((scores["pearson"] + scores["spearman"]) / 2)
    assert scores["mean_squared_error"] == pytest.approx(np.mean((truth - guesses) ** 2))


@pytest.mark.parametrize(
    ("truth", "guesses"), [([1.0, 2.0, 3.0], [2.0] * 3), ([2.0] * 3, [1.0, 2.0, 3.0]), ([1.0], [2.0])]
)
def test_a_constant_side_has_no_correlation_and_no_warning(truth: list[float], guesses: list[float]) -> None:
    with np.errstate(all="raise"):
        scores = regression_scores(np.array(truth), np.array(guesses))
    assert (scores["pearson"], scores["spearman"], scores["pearson_spearman"]) == (0, 0, 0)
