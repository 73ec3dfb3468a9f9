"""Similarity: its losses against NumPy, what is no negative, and its scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from scipy import stats

from albert.errors import UsageError
from albert.model import Albert, AlbertConfig, Packed, new_model
from albert.tasks.bag_of_words import bag_of_words
from albert.tasks.scores import search_scores
from albert.tasks.similarity import Likeness, PairExample, PairFeature, Similarity
from albert.tasks.task import batch_of
from albert.tokenizer import Tokenizer

TASK = Similarity(max_length=32, temperature=0.1)
PAIRS = [
    PairExample("the old harbour", "a small grey ship", "nobody had seen such a winter"),
    PairExample("coal and bread", "the town was quiet"),
    PairExample("a long letter", "her sister in paris", "the dog waits"),
]
SCORED = [PairExample("the film", "a wonderful surprise", target=0.8), PairExample("the end", "monday", target=0.0)]


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> Albert:
    config = AlbertConfig(
        vocab_size=tokenizer.vocab_size, embedding_size=8, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=64, initializer_range=0.5,
    )  # fmt: skip
    return new_model(config, (), seed=3)


def encoded(examples: Sequence[PairExample], tokenizer: Tokenizer) -> list[PairFeature]:
    return [feature for example in examples for feature in TASK.encode(example, tokenizer)]


def loss_of(model: Albert, features: Sequence[PairFeature], *, count: float, task: Similarity = TASK) -> float:
    packed = Packed.from_batch(batch_of(features))
    with torch.no_grad():
        return task.loss(model, packed, model(packed), features=features, count=count).item()


def unit_vectors(model: Albert, features: Sequence[PairFeature]) -> np.ndarray:
    with torch.no_grad():
        means = [model(batch_of([feature])).states.mean(0).double().numpy() for feature in features]
    return np.array([mean / np.linalg.norm(mean) for mean in means])


def test_pairs_are_found_among_the_answers_and_negatives_of_the_batch(model: Albert, tokenizer: Tokenizer) -> None:
    features = encoded(PAIRS, tokenizer)
    vectors = unit_vectors(model, features)
    queries, answers, negatives = vectors[[0, 3, 5]], vectors[[1, 4, 6]], vectors[[2, 7]]
    logits = queries @ np.concatenate([answers, negatives]).T / 0.1
    expected = (np.log(np.exp(logits).sum(1)) - logits[np.arange(3), np.arange(3)]).mean()
    assert TASK.count(features) == 3
    assert loss_of(model, features, count=3) == pytest.approx(expected, abs=1e-4)


def test_scored_pairs_add_up_over_micro_batches_to_the_mean_squared_error(model: Albert, tokenizer: Tokenizer) -> None:
    parts = [encoded([example], tokenizer) for example in SCORED]
    cosines = [float(np.dot(*unit_vectors(model, part))) for part in parts]
    expected = np.mean([(c - e.target) ** 2 for c, e in zip(cosines, SCORED, strict=True) if e.target is not None])
    whole = loss_of(model, [*parts[0], *parts[1]], count=2)
    assert whole == pytest.approx(expected / (2 * 0.1), abs=1e-4)
    assert sum(loss_of(model, part, count=2) for part in parts) == pytest.approx(whole, abs=1e-5)


def test_all_kinds_mix_in_one_batch(model: Albert, tokenizer: Tokenizer) -> None:
    mixed = encoded([PAIRS[0], SCORED[0], PAIRS[1], SCORED[1], PAIRS[2]], tokenizer)
    apart = loss_of(model, encoded(PAIRS, tokenizer), count=5) + loss_of(model, encoded(SCORED, tokenizer), count=5)
    assert TASK.count(mixed) == 5
    assert loss_of(model, mixed, count=5) == pytest.approx(apart, abs=1e-4)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_cosines_are_compared_in_full_precision_under_autocast(
    model: Albert, tokenizer: Tokenizer, kind: torch.dtype
) -> None:
    features = encoded(PAIRS, tokenizer)
    packed = Packed.from_batch(batch_of(features))
    with torch.no_grad():
        states = model(packed)
        expected = TASK.loss(model, packed, states, features=features, count=3).item()
        with torch.autocast("cpu", dtype=kind):
            found = TASK.loss(model, packed, states, features=features, count=3).item()
    assert found == pytest.approx(expected, rel=1e-6)


def test_the_same_query_and_the_same_answer_are_no_negatives(model: Albert, tokenizer: Tokenizer) -> None:
    same_query = [PairExample("a long letter", "the post office"), PairExample("a long letter", "her sister")]
    same_answer = [PairExample("a question", "ten quick answers"), PairExample("the class", "ten quick answers")]
    swapped = [PairExample("rain", "sun"), PairExample("sun", "rain")]
    for examples in (same_query, same_answer, swapped):
        assert loss_of(model, encoded(examples, tokenizer), count=2) == pytest.approx(0, abs=1e-6)
    other = [PairExample("a long letter", "the post office"), PairExample("a short letter", "her sister")]
    assert loss_of(model, encoded(other, tokenizer), count=2) > 0.01


def test_texts_alone_need_dropout(model: Albert, tokenizer: Tokenizer) -> None:
    task = Similarity(max_length=32, alone=True)
    config = task.configure(model.config)
    assert (model.config.hidden_dropout_prob, config.hidden_dropout_prob) == (0, 0.1)
    assert config.attention_probs_dropout_prob == 0.1
    features = encoded([PairExample("the old harbour"), PairExample("the film is warm")], tokenizer)
    assert [feature.part for feature in features] == [0, 1, 0, 1]
    with pytest.raises(UsageError, match=r"tune\.dropout=0: texts alone"):
        loss_of(model, features, count=2, task=task)
    noisy = new_model(config, (), seed=3).train()
    torch.manual_seed(0)
    vectors = noisy(batch_of(features)).states.split([len(feature.token_ids) for feature in features])
    assert not torch.equal(vectors[0], vectors[1])
    assert loss_of(noisy, features, count=2, task=task) > 0


def test_scored_pairs_are_scored_by_rank_and_others_by_search() -> None:
    rng = np.random.default_rng(0)
    truth, said = rng.random(50), rng.random(50)
    scored = [PairExample("a", "b", target=float(one)) for one in truth]
    scores = TASK.score(scored, [Likeness(float(one)) for one in said])
    assert scores["spearman"] == pytest.approx(stats.spearmanr(truth, said)[0])
    axes = np.eye(3, dtype=np.float32)
    searched = [PairExample("q1", "a1"), PairExample("q2", "a2", "n2"), PairExample("q1", "a3")]
    near = [Likeness(0, (axes[0], axes[0])), Likeness(0, (axes[1], axes[2], axes[1])), Likeness(0, (axes[0], axes[1]))]
    scores = TASK.score(searched, near)  # q2 finds n2 and a3 before a2, which is as near as a1: half a rank
    assert scores["recall_at_1"] == 0.5
    assert scores["recall_at_5"] == scores["recall_at_10"] == 1.0
    assert scores["mrr"] == pytest.approx((1 + 1 / 3.5) / 2)
    decide = TASK.baseline(searched)
    assert TASK.score(searched, [decide(one) for one in searched])["mrr"] < 0.5


def test_a_query_that_answers_another_is_no_wrong_answer_to_itself() -> None:
    near, far = np.eye(2, dtype=np.float32)
    pairs = [PairExample("a", "b"), PairExample("b", "a"), PairExample("c", "d")]
    said = [Likeness(1, (near, near)), Likeness(1, (near, near)), Likeness(1, (far, far))]
    assert TASK.score(pairs, said)["recall_at_1"] == TASK.score(pairs, said)["mrr"] == 1.0


def test_ranks_are_those_of_sorting_all_candidates() -> None:
    rng = np.random.default_rng(1)
    queries, candidates = rng.standard_normal((30, 8)), rng.standard_normal((40, 8))
    right = [[int(number)] for number in rng.integers(40, size=30)]
    ranks = [
        1 + list(np.argsort(-(candidates @ query))).index(own[0]) for query, own in zip(queries, right, strict=True)
    ]
    found = search_scores(list(queries), list(candidates), right)
    assert found["mrr"] == pytest.approx(np.mean([1 / rank for rank in ranks]))
    assert found["recall_at_5"] == np.mean([rank <= 5 for rank in ranks])


def test_a_bag_of_words_compares_texts_by_tf_idf() -> None:
    dev = [
        PairExample("the red ship came", "a red ship came in", target=0.9),
        PairExample("the red ship came", "nobody knows", target=0.0),
        PairExample("a dog waits", "the dog waits at home", "rain on monday"),
    ]
    decided = bag_of_words(TASK, dev, dev)
    assert decided is not None
    assert decided[0].similarity > 0.5 > decided[1].similarity
    assert TASK.score(dev, decided)["mrr"] == 1.0
