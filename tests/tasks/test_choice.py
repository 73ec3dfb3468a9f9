"""Choosing between answers: sequences, loss, decision and scores."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from albert.inference.predictor import Predictor
from albert.inference.torch_engine import TorchEngine
from albert.model import Albert, AlbertConfig, Packed, new_model
from albert.tasks.choice import QUESTION_TOKENS, Choice, ChoiceExample, Chosen
from albert.tasks.task import batch_of
from albert.tokenizer import Tokenizer

PASSAGE = "The old harbour was quiet when the small grey ship came in."
QUESTION = "What came in ?"
CHOICES = ("a ship", "a dog", "a letter", "nobody")


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> Albert:
    config = AlbertConfig(
        vocab_size=tokenizer.vocab_size, embedding_size=8, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=512, initializer_range=0.5, classifier_dropout_prob=0.0,
    )  # fmt: skip
    return new_model(config, ("choice",), seed=3)


def test_a_sequence_is_the_passage_then_the_question_and_the_choice(tokenizer: Tokenizer) -> None:
    features = Choice().encode(ChoiceExample(PASSAGE, QUESTION, CHOICES, 2), tokenizer)
    passage, asked = tokenizer.encode(PASSAGE), tokenizer.encode(f"{QUESTION} a dog")
    assert len(features) == 4
    assert features[1].token_ids == [tokenizer.cls_id, *passage, tokenizer.sep_id, *asked, tokenizer.sep_id]
    assert features[1].segment_ids == [0] * (len(passage) + 2) + [1] * (len(asked) + 1)
    assert features[1].target == 2


def test_the_question_and_choice_keep_their_last_128_tokens_and_the_passage_what_is_left(tokenizer: Tokenizer) -> None:
    question = "every word of the text " * 100
    feature = Choice(max_length=200).encode(ChoiceExample(PASSAGE * 40, question, ("a dog", "x")), tokenizer)[0]
    asked = tokenizer.encode(f"{question} a dog")
    assert len(feature.token_ids) == 200
    assert feature.token_ids[-1 - QUESTION_TOKENS : -1] == asked[-QUESTION_TOKENS:]
    assert (
        feature.token_ids[1 : 200 - QUESTION_TOKENS - 2] == tokenizer.encode(PASSAGE * 40)[: 200 - QUESTION_TOKENS - 3]
    )


def test_a_length_below_the_questions_leaves_the_end_of_the_question(tokenizer: Tokenizer) -> None:
    asked = tokenizer.encode("every word of the text " * 100 + " a dog")
    feature = Choice(max_length=32).encode(
        ChoiceExample(PASSAGE, "every word of the text " * 100, ("a dog",)), tokenizer
    )[0]
    assert feature.token_ids == [tokenizer.cls_id, tokenizer.sep_id, *asked[-29:], tokenizer.sep_id]


@pytest.mark.parametrize(
    ("blank", "question", "asked"),
    [
        ("_", "The  _  ship came in .", "The  grey  ship came in ."),
        ("_", "from _ to _", "from grey to grey"),
        ("_", "Which ship ?", "Which ship ? grey"),
        ("", "What is a _ name ?", "What is a _ name ? grey"),
    ],
)
def test_a_blank_is_filled_with_the_choice_where_the_data_has_blanks(
    tokenizer: Tokenizer, blank: str, question: str, asked: str
) -> None:
    feature = Choice(blank=blank).encode(ChoiceExample("", question, ("grey",)), tokenizer)[0]
    assert feature.token_ids == [tokenizer.cls_id, tokenizer.sep_id, *tokenizer.encode(asked), tokenizer.sep_id]


def test_the_loss_is_the_softmax_over_the_choices_of_each_example(model: Albert, tokenizer: Tokenizer) -> None:
    task = Choice()
    examples = [ChoiceExample(PASSAGE, QUESTION, CHOICES, 1), ChoiceExample("", "Who ?", CHOICES[::-1], 3)]
    features = [feature for example in examples for feature in task.encode(example, tokenizer)]
    packed = Packed.from_batch(batch_of(features))
    with torch.no_grad():
        encoded = model(packed)
        loss = task.loss(model, packed, encoded, features=features, count=task.count(features))
        scores = model.heads["choice"](encoded.pooled).squeeze(-1).double().numpy()
    expected = [-math.log(math.exp(s[t]) / sum(map(math.exp, s))) for s, t in ((scores[:4], 1), (scores[4:], 3))]
    assert task.count(features) == 2
    assert loss.item() == pytest.approx(sum(expected) / 2, rel=1e-5)
    assert np.ptp(scores) > 1e-3


def test_any_number_of_choices_can_be_decided_and_results_do_not_depend_on_the_batch(
    model: Albert, tokenizer: Tokenizer
) -> None:
    task = Choice()
    examples = [ChoiceExample(PASSAGE, QUESTION, CHOICES[: 2 + number % 3]) for number in range(7)]
    together = list(Predictor(TorchEngine(model), tokenizer).predict(task, examples))
    alone = [
        next(Predictor(TorchEngine(model), tokenizer, batch_tokens=1).predict(task, [example])) for example in examples
    ]
    for example, one, other in zip(examples, together, alone, strict=True):
        assert sum(one.probabilities) == pytest.approx(1)
        assert len(one.probabilities) == len(example.choices)
        assert one.text == example.choices[one.choice]
        assert one.choice == other.choice
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)


def test_groups_are_scored_by_themselves_too() -> None:
    groups, targets, guesses = ("middle", "middle", "high", "high", "high"), (0, 1, 2, 3, 0), (0, 2, 2, 3, 1)
    examples = [ChoiceExample("", "", CHOICES, t, group=g) for t, g in zip(targets, groups, strict=True)]
    predictions = [Chosen(guess, CHOICES[guess], ()) for guess in guesses]
    assert Choice().score(examples, predictions) == {
        "accuracy": 3 / 5,
        "accuracy_middle": 1 / 2,
        "accuracy_high": pytest.approx(2 / 3),
    }


def test_the_baseline_is_the_most_frequent_number() -> None:
    examples = [ChoiceExample("", "", CHOICES, target) for target in (3, 1, 3, 0)]
    baseline = Choice().baseline(examples)(examples[0])
    assert (baseline.choice, baseline.text, baseline.probabilities) == (3, "nobody", (0.25, 0.25, 0.0, 0.5))
