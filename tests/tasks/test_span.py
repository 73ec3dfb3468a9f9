"""Spans: both heads learn, decisions keep the rules, thresholds are chosen and remembered."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from albert.errors import UsageError
from albert.inference.predictor import Predictor
from albert.inference.torch_engine import TorchEngine
from albert.model import AlbertConfig, Packed, new_model
from albert.model.folder import save_model
from albert.tasks.span import CONDITIONAL, PLAIN, Answer, AnswerText, QuestionExample, SpanTask
from albert.tasks.task import batch_of
from albert.tasks.windows import Window
from albert.tokenizer.runtime import Encoding

CONFIG = AlbertConfig(
    vocab_size=60, embedding_size=16, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, classifier_dropout_prob=0.0,
)  # fmt: skip


class Letters:
    """A tokenizer for tests: a letter or a digit is a token; an opening bracket has a bare marker before it."""

    cls_id, sep_id = 2, 3

    def encode(self, text: str) -> list[int]:
        return self.encode_with_offsets(text).ids

    def encode_with_offsets(self, text: str) -> Encoding:
        ids, offsets = [], []
        for place, character in enumerate(text):
            if character == "(":
                ids.append(5)
                offsets.append((place, place))
            if not character.isspace():
                ids.append(6 + ord(character) % 50)
                offsets.append((place, place + 1))
        return Encoding(ids, offsets)


TOKENIZER: Any = Letters()


def encode(task: SpanTask, example: QuestionExample) -> list[Window]:
    return task.encode(example, TOKENIZER)


def plain_outputs(windows: list[Window], *, starts: dict[int, float], ends: dict[int, float]) -> list[Any]:
    """Make outputs of the plain head that are high at some characters of the passage, -1 being [CLS]."""
    outputs = []
    for window in windows:
        scores = np.zeros((2, len(window.token_ids)), dtype=np.float32)
        for row, side, wanted in ((scores[0], 0, starts), (scores[1], 1, ends)):
            for character, value in wanted.items():
                if character < 0:
                    row[0] = value
                row[window.first + np.flatnonzero(window.offsets[:, side] == character + side)] = value
        outputs.append((scores[0], scores[1]))
    return outputs


def test_an_answer_is_cut_from_the_original_passage() -> None:
    task = SpanTask(max_length=64)
    example = QuestionExample("who", "In 1066  (DUKE William) won.")
    windows = encode(task, example)
    answer = task.decide(example, windows, plain_outputs(windows, starts={10: 5.0}, ends={21: 5.0}))
    assert (answer.text, answer.start, answer.end) == ("DUKE William", 10, 22)
    assert answer.candidates[0].score == pytest.approx(10.0)
    assert len(answer.candidates) == 20
    assert sum(candidate.probability for candidate in answer.candidates) == pytest.approx(1.0)
    assert all(example.passage[c.start : c.end] == c.text for c in answer.candidates)
    assert len({c.text for c in answer.candidates}) == 20


def test_a_bare_marker_neither_begins_nor_ends_an_answer() -> None:
    task = SpanTask(max_length=64)
    example = QuestionExample("q", "ab (cd", (AnswerText("(cd", 3),))
    [window] = encode(task, example)
    assert window.target == (window.first + 3, window.first + 5)  # a b ▁ ( c d
    scores = np.zeros(len(window.token_ids), dtype=np.float32)
    scores[window.first + 2] = 9.0  # the marker
    answer = task.decide(example, [window], [(scores, scores)])
    assert all(c.text == c.text.strip() != "" for c in answer.candidates)
    assert answer.candidates[0].score == 0.0


def test_an_answer_is_not_longer_than_it_may_be() -> None:
    task = SpanTask(max_length=64, max_answer=3)
    example = QuestionExample("q", "abcdefgh")
    windows = encode(task, example)
    answer = task.decide(example, windows, plain_outputs(windows, starts={0: 5.0}, ends={7: 5.0}))
    assert max(len(candidate.text) for candidate in answer.candidates) == 3


def test_a_start_counts_only_in_the_window_of_most_context() -> None:
    task = SpanTask(max_length=24, stride=8, max_answer=4)
    example = QuestionExample("q", "abcdefghijklmnopqrstuvwxyz0123456789")
    windows = encode(task, example)
    assert len(windows) > 1
    outputs = plain_outputs(windows, starts={}, ends={})
    poorer = 14  # of the first window's tokens this one has more context in the second
    assert not windows[0].counts[poorer]
    assert windows[1].counts[poorer - 8]
    outputs[0][0][windows[0].first + poorer] = 9.0
    outputs[1][0][windows[1].first + poorer - 8] = 4.0
    answer = task.decide(example, windows, outputs)
    assert answer.start == poorer
    assert answer.candidates[0].score == pytest.approx(4.0)


@pytest.mark.parametrize(("null", "text"), [(4.0, "cd"), (6.0, "")])
def test_the_plain_head_says_by_cls_that_there_is_no_answer(null: float, text: str) -> None:
    task = SpanTask(unanswerable=True, null_threshold=1.0, max_length=64)
    example = QuestionExample("q", "abcdef")
    windows = encode(task, example)
    outputs = plain_outputs(windows, starts={2: 4.0, -1: null}, ends={3: 4.0, -1: null})
    answer = task.decide(example, windows, outputs)
    assert answer.null_odds == pytest.approx(2 * null - 8.0)
    assert answer.no_answer == pytest.approx(1 / (1 + math.exp(8.0 - 2 * null)))
    assert answer.text == text
    assert (answer.start is None) == (text == "")
    assert replace(task, unanswerable=False).decide(example, windows, outputs).text == "cd"


def test_an_empty_passage_has_no_answer() -> None:
    for head in (PLAIN, CONDITIONAL):
        task = SpanTask(head=head, max_length=32)
        model = new_model(CONFIG, (head,), seed=1)
        [answer] = Predictor(TorchEngine(model), TOKENIZER).predict(task, [QuestionExample("who", "  ")])
        assert (answer.text, answer.start, answer.candidates) == ("", None, ())
        assert math.isfinite(answer.null_odds)


def questions(count: int, *, unanswerable: bool) -> list[QuestionExample]:
    """Ask for what stands in brackets; some passages have none."""
    rng = np.random.default_rng(0)
    examples = []
    for _ in range(count):
        letters = "".join(rng.choice(list("abcdefgh"), 30))
        if unanswerable and rng.random() < 0.4:
            examples.append(QuestionExample("which", letters, ()))
            continue
        place = int(rng.integers(0, 30))
        passage = f"{letters[:place]}(XYZ){letters[place:]}"
        examples.append(QuestionExample("which", passage, (AnswerText("XYZ", place + 1),)))
    return examples


@pytest.mark.parametrize(("head", "unanswerable"), [(PLAIN, False), (PLAIN, True), (CONDITIONAL, True)])
def test_a_small_model_learns_to_answer(head: str, unanswerable: bool) -> None:
    task = SpanTask(head=head, unanswerable=unanswerable, max_length=32, stride=16, max_answer=5)
    examples = questions(40, unanswerable=unanswerable)
    model = new_model(CONFIG, (head,), seed=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    features = [feature for example in examples for feature in encode(task, example)]
    assert any(feature.impossible for feature in features)
    packed = Packed.from_batch(batch_of(features))
    losses = []
    for _ in range(40):
        loss = task.loss(model, packed, model(packed), features=features, count=task.count(features))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]
    predictions = list(Predictor(TorchEngine(model), TOKENIZER).predict(task, examples))
    settled = task.settled(examples, predictions)
    scores = settled.score(examples, [settled.decided(prediction) for prediction in predictions])
    assert scores["f1"] > 0.9
    if unanswerable:
        again = SpanTask(**settled.remembered())
        assert again == settled
        decided = list(Predictor(TorchEngine(model), TOKENIZER).predict(again, examples))
        assert again.score(examples, decided) == pytest.approx(scores)
        assert np.mean([answer.text == "" for answer in decided]) == pytest.approx(0.4, abs=0.15)


@pytest.mark.parametrize("head", [PLAIN, CONDITIONAL])
def test_the_loss_of_parts_adds_up_to_the_loss_of_the_whole(head: str) -> None:
    task = SpanTask(head=head, unanswerable=True, max_length=32)
    features = [f for example in questions(6, unanswerable=True) for f in encode(task, example)]
    model = new_model(CONFIG, (head,), seed=1).eval()

    def loss(some: list[Window]) -> float:
        packed = Packed.from_batch(batch_of(some))
        return task.loss(model, packed, model(packed), features=some, count=len(features)).item()

    assert loss(features[:3]) + loss(features[3:]) == pytest.approx(loss(features), rel=1e-5)


def test_the_plain_loss_is_that_of_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    task = SpanTask(max_length=64)
    features = [f for example in questions(3, unanswerable=False) for f in encode(task, example)]
    model = new_model(CONFIG, (PLAIN,), seed=1).eval()
    save_model(model, tmp_path / "model")
    packed = Packed.from_batch(batch_of(features))
    loss = task.loss(model, packed, model(packed), features=features, count=task.count(features))
    theirs = transformers.AlbertForQuestionAnswering.from_pretrained(tmp_path / "model").eval()
    expected = theirs(  # all texts are of one length: it would let padding be an answer
        input_ids=torch.tensor([list(feature.token_ids) for feature in features]),
        token_type_ids=torch.tensor([list(feature.segment_ids) for feature in features]),
        start_positions=torch.tensor([feature.target[0] for feature in features if feature.target]),
        end_positions=torch.tensor([feature.target[1] for feature in features if feature.target]),
    ).loss
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_a_threshold_that_is_there_is_not_chosen_again() -> None:
    task = SpanTask(unanswerable=True, null_threshold=-2.0)
    assert task.settled([], []) is task
    assert SpanTask().settled([], []) == SpanTask()


def test_scores_of_parts_are_named_and_the_baseline_is_no_answer() -> None:
    task = SpanTask(unanswerable=True, null_threshold=0.0)
    examples = questions(20, unanswerable=True)
    decide = task.baseline(examples)
    assert decide is not None
    guesses: list[Answer] = [decide(example) for example in examples]
    scores = task.score(examples, guesses)
    share = np.mean([example.answers == () for example in examples])
    assert scores["f1"] == scores["exact"] == pytest.approx(share)
    assert (scores["answerable_f1"], scores["unanswerable_f1"]) == (0.0, 1.0)
    assert SpanTask().baseline(examples) is None


def test_a_head_that_finds_no_spans_is_refused() -> None:
    with pytest.raises(UsageError, match="did you mean 'span'"):
        SpanTask(head="spann")
    with pytest.raises(UsageError, match="use 16 or more"):
        SpanTask(max_length=10)


@pytest.mark.parametrize("name", ["max_question", "stride", "max_answer", "n_best"])
def test_a_size_below_1_is_refused(name: str) -> None:
    sizes: dict[str, Any] = {name: 0}
    with pytest.raises(UsageError, match=f"{name}=0 must be 1 or more"):
        SpanTask(**sizes)
