"""Classes, several classes and numbers: long texts in windows, learnt as they are decided."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from albert.batch import MICRO_TOKENS
from albert.model import Albert, AlbertConfig, Packed, new_model
from albert.tasks.classification import Classification, MultiLabel, Regression, TextExample
from albert.tasks.task import batch_of
from albert.tokenizer import Tokenizer

TEXTS = ("A ship came in. " * 9, "Nobody had seen such a winter.", "The dog waits at home every evening. " * 20)
TASKS: list[tuple[Any, tuple[Any, ...]]] = [
    (Classification(("bad", "good")), (0, 1, 1)),
    (Classification(("bad", "good"), class_weights=(1.0, 3.0)), (0, 1, 1)),
    (MultiLabel(("loud", "quiet", "cold")), ((0,), (0, 2), ())),
    (Regression(centre=2.0, scale=3.0), (1.0, 5.0, 2.5)),
]


def small_model(task: Any, tokenizer: Tokenizer) -> Albert:
    config = AlbertConfig(
        vocab_size=tokenizer.vocab_size, embedding_size=8, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=32, initializer_range=0.5, classifier_dropout_prob=0.0,
    )  # fmt: skip
    return new_model(task.configure(config), ("classifier",), seed=3).eval()


@pytest.mark.parametrize(("task", "targets"), TASKS)
def test_the_loss_of_a_text_in_windows_is_that_of_its_decision(
    task: Any, targets: tuple[Any, ...], tokenizer: Tokenizer
) -> None:
    task = replace(task, max_length=32, long="mean")
    examples = [TextExample(text, target=target) for text, target in zip(TEXTS, targets, strict=True)]
    encoded = [task.encode(example, tokenizer) for example in examples]
    assert [len(windows) > 1 for windows in encoded] == [True, False, True]
    model = small_model(task, tokenizer)
    features = [feature for windows in encoded for feature in windows]
    packed = Packed.from_batch(batch_of(features), torch.device("cpu"))
    with torch.no_grad():
        states = model(packed)
        loss = task.loss(model, packed, states, features=features, count=task.count(features)).item()
        logits = list(model.heads["classifier"](states.pooled).numpy())
    losses, weights = [], []
    for example, windows in zip(examples, encoded, strict=True):
        own = [logits.pop(0) for _ in windows]
        said, target = task.decide(example, windows, own), example.target
        if isinstance(task, Regression):
            losses.append((said.value - target) ** 2 / 3.0**2)
        elif isinstance(task, MultiLabel):
            sure = np.array(list(said.probabilities.values()))
            truth = np.isin(range(3), target)
            losses.append(-np.log(np.where(truth, sure, 1 - sure)).mean())
        else:
            weight = (task.class_weights or (1.0, 1.0))[target]
            losses.append(-weight * np.log(said.probabilities[task.labels[target]]))
            weights.append(weight)
    assert loss == pytest.approx(sum(losses) / (sum(weights) or len(losses)), rel=1e-5)


def test_every_layer_learns_of_the_whole_text(tokenizer: Tokenizer) -> None:
    task = Classification(("bad", "good"), max_length=32, long="mean", early_exit=True)
    windows = task.encode(TextExample(TEXTS[2], target=1), tokenizer)
    model = small_model(task, tokenizer)
    packed = Packed.from_batch(batch_of(windows), torch.device("cpu"))
    encoded = model(packed, all_layers=True)
    pooled = [model.encoder.pool(states, packed) for states in encoded.layers]
    sizes = torch.tensor([len(window.token_ids) for window in windows]) / sum(len(w.token_ids) for w in windows)
    means = [(model.heads["classifier"](own) * sizes[:, None]).sum(0) for own in pooled]
    losses = [-mean.log_softmax(-1)[1].item() for mean in means]
    expected = sum((i + 1) * loss for i, loss in enumerate(losses)) / sum(range(1, len(losses) + 1))
    loss = task.loss(model, packed, encoded, features=windows, count=1.0)
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_a_book_does_not_fill_the_memory_in_training(tokenizer: Tokenizer) -> None:
    task = Classification(("bad", "good"), max_length=32, long="mean")
    windows = task.encode(TextExample(TEXTS[2] * 1_000, target=1), tokenizer)
    assert sum(len(window.token_ids) for window in windows) > 2 * MICRO_TOKENS
    learnt = task.learnt(windows)
    assert learnt == windows[: len(learnt)]
    assert MICRO_TOKENS - 32 <= sum(len(window.token_ids) for window in learnt) <= MICRO_TOKENS
