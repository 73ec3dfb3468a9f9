"""The scores of classes, sets of classes, numbers and search, by scikit-learn and scipy; those of GLUE by its rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse, stats  # type: ignore[import-untyped]
from sklearn import metrics

Scores = dict[str, float]
FIRST = (1, 5, 10)  # results of a search that are looked at
BLOCK = 1024  # queries at once


def accuracy_scores(truth: np.ndarray, guesses: np.ndarray) -> Scores:
    """Accuracy, and F1 as the mean over classes (those of the data, present in neither are left out)."""
    return {
        "accuracy": float(metrics.accuracy_score(truth, guesses)),
        "macro_f1": float(metrics.f1_score(truth, guesses, average="macro", zero_division=0.0)),
    }


def accuracy_f1_scores(truth: np.ndarray, guesses: np.ndarray) -> Scores:
    """MRPC and QQP: accuracy and the F1 of class 1, and their mean."""
    accuracy = float(metrics.accuracy_score(truth, guesses))
    f1 = float(metrics.f1_score(truth, guesses, zero_division=0.0))
    return {"accuracy": accuracy, "f1": f1, "accuracy_f1": (accuracy + f1) / 2}


def matthews_scores(truth: np.ndarray, guesses: np.ndarray) -> Scores:
    """CoLA: Matthews' correlation; 0 when all guesses are the same."""
    return {
        "matthews": float(metrics.matthews_corrcoef(truth, guesses)),
        "accuracy": float(metrics.accuracy_score(truth, guesses)),
    }


def multi_label_scores(truth: np.ndarray, guesses: np.ndarray) -> Scores:
    """F1 over all decisions and as the mean over labels, and the share of texts with every label right."""
    exact = float((truth == guesses).all(axis=1).mean())
    if truth.shape[1] == 1:  # scikit-learn would take the one label for two classes, and micro F1 would be accuracy
        f1 = float(metrics.f1_score(truth[:, 0], guesses[:, 0], zero_division=0.0))
        return {"micro_f1": f1, "macro_f1": f1, "exact": exact}
    return {
        "micro_f1": float(metrics.f1_score(truth, guesses, average="micro", zero_division=0.0)),
        "macro_f1": float(metrics.f1_score(truth, guesses, average="macro", zero_division=0.0)),
        "exact": exact,
    }


def regression_scores(truth: np.ndarray, guesses: np.ndarray) -> Scores:
    """STS-B: both correlations and their mean (0 where a side is constant), and the mean squared error."""
    varied = truth.size > 1 and np.ptp(truth) > 0 and np.ptp(guesses) > 0
    pearson = float(stats.pearsonr(truth, guesses)[0]) if varied else 0.0
    spearman = float(stats.spearmanr(truth, guesses)[0]) if varied else 0.0
    return {
        "pearson_spearman": (pearson + spearman) / 2,
        "pearson": pearson,
        "spearman": spearman,
        "mean_squared_error": float(metrics.mean_squared_error(truth, guesses)),
    }


def search_scores(
    queries: Sequence[Any],
    candidates: Sequence[Any],
    relevant: Sequence[Sequence[int]],
    *,
    own: Sequence[int | None] = (),
) -> Scores:
    """Recall at k, the share of queries with a right candidate among the first k, and the mean of 1 / its rank (MRR).

    Vectors are of length 1, dense or sparse rows. Other right candidates are passed over, and the candidate that is the
    query's `own` text; a tie costs half a rank.
    """
    all_candidates, ranks = _stacked(candidates), np.zeros(len(queries))
    for first in range(0, len(queries), BLOCK):
        product = _stacked(queries[first : first + BLOCK]) @ all_candidates.T
        for place, row in enumerate(product.toarray() if sparse.issparse(product) else product, first):
            best = row[list(relevant[place])].max()
            row[list(relevant[place])] = -np.inf
            if own and own[place] is not None:
                row[own[place]] = -np.inf
            ranks[place] = 1 + (row > best).sum() + (row == best).sum() / 2
    return {f"recall_at_{k}": float((ranks <= k).mean()) for k in FIRST} | {"mrr": float((1 / ranks).mean())}


def _stacked(vectors: Sequence[Any]) -> Any:
    return sparse.vstack(vectors, format="csr") if sparse.issparse(vectors[0]) else np.stack(vectors)


SCORES: dict[str, Callable[[np.ndarray, np.ndarray], Scores]] = {
    "accuracy": accuracy_scores,
    "accuracy_f1": accuracy_f1_scores,
    "matthews": matthews_scores,
}
