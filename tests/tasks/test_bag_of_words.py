"""The bag of words: what a linear model on TF-IDF decides, in the task's own terms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from albert.tasks.bag_of_words import _most_features, bag_of_words
from albert.tasks.classification import Classification, MultiLabel, Regression, TextExample
from albert.tasks.tagging import Tagging

GOOD, BAD = ("fine film", "a fine story", "fine and warm"), ("dull film", "a dull story", "dull and cold")


def examples(*rows: tuple[Any, ...]) -> list[TextExample]:
    return [TextExample(*row) for row in rows]


def test_words_decide_the_class_with_probabilities_of_all() -> None:
    task = Classification(labels=("bad", "good", "never seen"))
    train = examples(*((text, None, 1) for text in GOOD), *((text, None, 0) for text in BAD))
    dev = examples(("a fine day", None, 1), ("so dull", None, 0))
    decided = bag_of_words(task, train, dev)
    assert decided is not None
    assert [one.label for one in decided] == ["good", "bad"]
    assert decided[0].probabilities["never seen"] < 1e-9
    assert sum(decided[0].probabilities.values()) == pytest.approx(1)
    assert task.score(dev, decided)["accuracy"] == 1.0


def test_a_single_class_is_said_of_everything() -> None:
    decided = bag_of_words(
        Classification(labels=("a", "b")), examples(("x", None, 1), ("y", None, 1)), examples(("z",))
    )
    assert decided is not None
    assert decided[0].label == "b"


def test_each_label_of_several_is_decided_by_itself() -> None:
    task = MultiLabel(labels=("sea", "war", "always", "never"))
    texts = {"ships and waves": (0, 2), "guns and ships": (0, 1, 2), "guns": (1, 2), "waves": (0, 2), "tea": (2,)}
    decided = bag_of_words(
        task, examples(*((text, None, t) for text, t in texts.items())) * 3, examples(("guns",), ("waves",))
    )
    assert decided is not None
    assert [one.labels for one in decided] == [("war", "always"), ("sea", "always")]


def test_what_two_texts_share_tells_how_alike_they_are() -> None:
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(200)]

    def pairs(number: int) -> list[TextExample]:
        made = []
        for _ in range(number):
            first = rng.choice(words, 10, replace=False).tolist()
            shared = int(rng.integers(0, 11))
            second = [*first[:shared], *rng.choice(words, 10 - shared, replace=False).tolist()]
            made.append(TextExample(" ".join(first), " ".join(second), float(shared)))
        return made

    dev = pairs(100)
    task = Regression(centre=5.0, scale=3.0)
    decided = bag_of_words(task, pairs(300), dev)
    assert decided is not None
    assert task.score(dev, decided)["pearson"] > 0.95


def test_without_words_or_for_another_task_there_is_no_such_baseline() -> None:
    two = examples(("!", None, 0), ("?", None, 1))
    assert bag_of_words(Classification(labels=("a", "b")), two, two) is None
    assert bag_of_words(Classification(labels=("a", "b")), [], two) is None
    assert bag_of_words(Tagging(labels=("O", "B-PER")), two, two) is None


@pytest.mark.parametrize(
    ("classes", "is_pair", "most"),
    [(2, False, 300_000), (13, False, 300_000), (40, False, 100_000), (10, True, 100_000)],
)
def test_many_classes_look_at_fewer_words(classes: int, is_pair: bool, most: int) -> None:
    task = Classification(labels=tuple(map(str, range(classes))))
    assert _most_features(task, is_pair=is_pair) == most
    assert _most_features(MultiLabel(labels=task.labels), is_pair=False) == 300_000  # one class at a time
