"""Tagging: words and windows, loss, decision, scores."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from albert.inference.predictor import Predictor
from albert.inference.torch_engine import TorchEngine
from albert.model import Albert, AlbertConfig, Packed, new_model
from albert.tasks.tagging import TagExample, Tagged, TaggedWord, Tagging, split_words
from albert.tasks.task import batch_of
from albert.tokenizer import Tokenizer

LABELS = ("O", "B-LOC", "B-PER", "I-PER")
WORDS = ("Peter", "Smith", "works", "in", "Paris")


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> Albert:
    config = AlbertConfig(
        vocab_size=tokenizer.vocab_size, embedding_size=8, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=64, initializer_range=0.5, classifier_dropout_prob=0.0,
        labels=LABELS,
    )  # fmt: skip
    return new_model(config, ("tags",), seed=5)


def test_the_first_piece_of_a_word_carries_its_tag(tokenizer: Tokenizer) -> None:
    (feature,) = Tagging(LABELS).encode(TagExample(WORDS, (2, 3, 0, 0, 1)), tokenizer)
    pieces = [tokenizer.encode(word) for word in WORDS]
    assert feature.token_ids == [tokenizer.cls_id, *(p for word in pieces for p in word), tokenizer.sep_id]
    assert [feature.token_ids[position] for position in feature.positions] == [word[0] for word in pieces]
    assert feature.targets == [2, 3, 0, 0, 1]


def test_all_pieces_of_words_with_capitals_are_of_segment_1_if_the_task_says_so(tokenizer: Tokenizer) -> None:
    example = TagExample((*WORDS, "iPhone", "\u00c9t\u00e9", "3", "?") * 5)
    for task in (Tagging(LABELS, max_length=32), Tagging(LABELS, max_length=32, capitals=True)):
        for feature in task.encode(example, tokenizer):
            assert len(feature.segment_ids) == len(feature.token_ids)
            if not task.capitals:
                assert set(feature.segment_ids) == {0}
    marks = [task.capitals and word != word.lower() for word in example.words for _ in tokenizer.encode(word)]
    (whole,) = Tagging(LABELS, max_length=512, capitals=True).encode(example, tokenizer)
    assert whole.segment_ids == [0, *marks, 0]
    first, *_ = Tagging(LABELS, max_length=32, capitals=True).encode(example, tokenizer)
    assert first.segment_ids == [0, *marks[:30], 0]


@pytest.mark.parametrize("count", [0, 1, 20, 21, 60, 333])
def test_every_word_of_a_long_sentence_is_decided_exactly_once_and_in_order(tokenizer: Tokenizer, count: int) -> None:
    rng = np.random.default_rng(count)
    words = tuple(rng.choice(["Paris", "harbour", "a", "questionable", "\u200b", "x" * 90], count))
    features = Tagging(LABELS, max_length=32).encode(TagExample(words, tuple(range(count))), tokenizer)
    assert [target for feature in features for target in feature.targets or ()] == list(range(count))
    assert all(len(feature.token_ids) <= 32 for feature in features)
    firsts = [feature.token_ids[position] for feature in features for position in feature.positions]
    assert firsts == [(tokenizer.encode(word) or [tokenizer.unk_id])[0] for word in words]


def test_the_loss_is_the_mean_over_words(model: Albert, tokenizer: Tokenizer) -> None:
    task = Tagging(LABELS, max_length=32)
    examples = [TagExample(WORDS * 8, (2, 3, 0, 0, 1) * 8), TagExample(("Paris",), (1,))]
    features = [feature for example in examples for feature in task.encode(example, tokenizer)]
    packed = Packed.from_batch(batch_of(features))
    with torch.no_grad():
        encoded = model(packed)
        loss = task.loss(model, packed, encoded, features=features, count=task.count(features))
        logits = model.heads["tags"](encoded.states).double().numpy()
    start, each = 0, []
    for feature in features:
        for position, target in zip(feature.positions, feature.targets or (), strict=True):
            row = logits[start + position]
            each.append(np.log(np.exp(row).sum()) - row[target])
        start += len(feature.token_ids)
    assert task.count(features) == 41
    assert loss.item() == pytest.approx(np.mean(each), rel=1e-5)


def test_words_and_spans_have_their_characters_in_the_text() -> None:
    text = "  Peter Smith, in\tParis! 🙂 "
    example = split_words(text)
    assert example.words == ("Peter", "Smith", ",", "in", "Paris", "!", "🙂")
    row = np.eye(4)
    outputs = [row[[2, 3, 0, 0]] * 0.7, row[[1, 0, 0]]]
    tagged = Tagging(LABELS).decide(example, [], outputs)
    assert [text[word.start : word.end] for word in tagged.words] == list(example.words)
    assert [(span.text, span.type, span.probability) for span in tagged.spans] == [
        ("Peter Smith", "PER", 0.7),
        ("Paris", "LOC", 1.0),
    ]
    assert all(text[span.start : span.end] == span.text for span in tagged.spans)
    joined = Tagging(LABELS).decide(TagExample(("Peter", "Smith")), [], [row[[2, 3]]])
    assert (joined.spans[0].text, joined.spans[0].start, joined.spans[0].end) == ("Peter Smith", 0, 11)


@pytest.mark.parametrize("text", ["", " \n ", "🙂", "Paris " * 3000])
def test_any_text_is_tagged(model: Albert, tokenizer: Tokenizer, text: str) -> None:
    (tagged,) = Predictor(TorchEngine(model), tokenizer).predict(Tagging(LABELS, max_length=64), [split_words(text)])
    assert len(tagged.words) == len(text.split())
    assert all(0.25 <= word.probability <= 1 for word in tagged.words)


def test_scores_are_f1_for_spans_and_accuracy_for_other_tags() -> None:
    def tagged(tags: str) -> Tagged:
        return Tagged(tuple(TaggedWord("x", tag, 1.0, 0, 1) for tag in tags.split()), ())

    task = Tagging(LABELS)
    scores = task.score([TagExample(("x",) * 3, (2, 3, 1))], [tagged("B-PER I-PER O")])
    assert (task.best, scores["f1"], scores["accuracy"]) == ("f1", pytest.approx(2 / 3), pytest.approx(2 / 3))
    speech = Tagging(("NOUN", "VERB"))
    assert speech.best == "accuracy"
    assert speech.score([TagExample(("x", "y"), (0, 1))], [tagged("NOUN NOUN")]) == {"accuracy": 0.5}
    baseline = task.baseline([TagExample(("x",) * 3, (0, 0, 1))])(TagExample(("y", "z")))
    assert [word.tag for word in baseline.words] == ["O", "O"]


def test_accents_and_vowel_signs_belong_to_their_word() -> None:
    text = "हिन्दी भाषा, Sa\u0303o می\u200cروم _x"
    example = split_words(text)
    assert example.words == ("हिन्दी", "भाषा", ",", "Sa\u0303o", "می\u200cروم", "_x")
    assert example.offsets is not None
    assert [text[start:end] for start, end in example.offsets] == list(example.words)
    assert split_words("\u0301 a").words == ("\u0301", "a"), "one that stands alone is still there"
