"""A bag of words: what TF-IDF and a linear model decide about the same texts, in seconds.

The baseline that a tuned encoder has to beat to be worth its cost. One text: words and pairs of words. Two texts: the
words of each, the words they share and how much that is. Logistic regression for classes, ridge regression for numbers;
for similarity the cosine alone. Decisions are made and scored by the task itself. Tasks about spans, choices and tags
have no such baseline.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse  # type: ignore[import-untyped]
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer

from albert.tasks.classification import Classification, MultiLabel, Regression, TextExample
from albert.tasks.similarity import Likeness, PairExample, Similarity
from albert.tasks.task import AnyTask

MOST_EXAMPLES = 100_000  # to fit on: more take longer than the seconds that a baseline is worth
WORDS = r"(?u)\b\w+\b"  # words of one letter too
WEIGHTS = 4_000_000  # of all classes together: fitting takes 225 bytes for each, and minutes beyond
FEATURES, FEWEST_FEATURES = 300_000, 1_000
CERTAIN = 30.0  # the logit of a class that was never seen, or always


def bag_of_words(task: AnyTask, train: Sequence[Any], dev: Sequence[Any]) -> list[Any] | None:
    """Return the decisions about `dev` of a linear model fitted on `train`; None where there is nothing to fit."""
    if isinstance(task, Similarity) and train and dev:
        return _likenesses(train[:: -(-len(train) // MOST_EXAMPLES)], dev)
    if not isinstance(task, Classification | MultiLabel | Regression) or not train or not dev:
        return None
    train = train[:: -(-len(train) // MOST_EXAMPLES)]
    features = _Features(_most_features(task, is_pair=train[0].pair is not None))
    try:
        known = features.fit(train)
    except ValueError:  # no words at all
        return None
    unknown, targets = features.of(dev), [example.target for example in train]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        match task:
            case Classification():
                outputs = _classes(known, targets, unknown, count=len(task.labels))
            case MultiLabel():
                outputs = _label_sets(known, targets, unknown, count=len(task.labels))
            case Regression():
                outputs = ((Ridge(alpha=1.0).fit(known, targets).predict(unknown) - task.centre) / task.scale)[:, None]
    return [task.decide(example, (), [output]) for example, output in zip(dev, outputs, strict=True)]


def _likenesses(train: Sequence[PairExample], dev: Sequence[PairExample]) -> list[Likeness] | None:
    """Return the similarities of TF-IDF vectors, whose words are weighed by how rare they are in `train`."""
    words = TfidfVectorizer(sublinear_tf=True, token_pattern=WORDS, dtype=np.float32)
    texts = [[text for text in (one.text, one.pair, one.negative) if text is not None] for one in dev]
    try:
        words.fit([text for one in train for text in (one.text, one.pair) if text is not None])
    except ValueError:  # no words at all
        return None
    vectors = [tuple(words.transform(own)) for own in texts]
    return [Likeness(float(own[0].multiply(own[-1 if len(own) < 3 else 1]).sum()), own) for own in vectors]


def _most_features(task: Classification | MultiLabel | Regression, *, is_pair: bool) -> int:
    """Return how many words to look at, so that many classes do not take gigabytes; the frequent ones stay."""
    at_once = len(task.labels) if isinstance(task, Classification) and len(task.labels) > 2 else 1
    return min(FEATURES, max(FEWEST_FEATURES, WEIGHTS // (at_once * (4 if is_pair else 1))))


class _Features:
    """TF-IDF of texts, and of pairs what their words have in common."""

    def __init__(self, most: int) -> None:
        self._words = TfidfVectorizer(
            ngram_range=(1, 2), sublinear_tf=True, token_pattern=WORDS, max_features=most, dtype=np.float32
        )

    def fit(self, examples: Sequence[TextExample]) -> Any:
        """Learn the words, and return the features of the examples."""
        self._words.fit([text for example in examples for text in (example.text, example.pair) if text is not None])
        return self.of(examples)

    def of(self, examples: Sequence[TextExample]) -> Any:
        """Return a sparse row for each example."""
        first = self._words.transform([example.text for example in examples])
        if all(example.pair is None for example in examples):
            return first
        second = self._words.transform([example.pair or "" for example in examples])
        shared = first.multiply(second)
        return sparse.hstack(
            [first, second, shared, abs(first - second), _overlap(first, second, shared)], format="csr"
        )


def _overlap(first: Any, second: Any, shared: Any) -> Any:
    """Return what two texts have in common as a few numbers: their cosine, and shares of common words."""
    counts = [np.asarray((matrix > 0).sum(axis=1)).ravel() for matrix in (first, second, shared)]
    one, other, both = (np.maximum(count, 1) if i < 2 else count for i, count in enumerate(counts))
    cosine = np.asarray(shared.sum(axis=1)).ravel()
    shares = [
        cosine,
        both / one,
        both / other,
        both / (one + other - both),
        np.minimum(one, other) / np.maximum(one, other),
    ]
    return sparse.csr_matrix(np.stack(shares, axis=1).astype(np.float32) * 3.0)  # beside many small weights


def _classes(known: Any, targets: list[int], unknown: Any, *, count: int) -> np.ndarray:
    """Return log-probabilities [examples, count]; a class that was not seen has next to none."""
    outputs = np.full((unknown.shape[0], count), -CERTAIN)
    if len(set(targets)) == 1:
        outputs[:, targets[0]] = 0.0
        return outputs
    model = LogisticRegression(C=10.0, max_iter=200).fit(known, targets)
    outputs[:, model.classes_] = model.predict_log_proba(unknown)
    return outputs


def _label_sets(known: Any, targets: list[tuple[int, ...]], unknown: Any, *, count: int) -> np.ndarray:
    """Return a logit for each label [examples, count]."""
    wanted = MultiLabelBinarizer(classes=range(count)).fit_transform(targets)
    outputs = np.where(wanted.mean(axis=0) == 1, CERTAIN, -CERTAIN) * np.ones((unknown.shape[0], 1))
    varied = np.flatnonzero((wanted.min(axis=0) == 0) & (wanted.max(axis=0) == 1))
    if varied.size:
        model = OneVsRestClassifier(LogisticRegression(C=10.0, max_iter=200)).fit(known, wanted[:, varied])
        logits = model.decision_function(unknown)
        outputs[:, varied] = logits.reshape(unknown.shape[0], -1)
    return outputs
