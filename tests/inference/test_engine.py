"""The engine: what it says, where, and that a text's neighbours in the batch have no part in it."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import numpy as np
import pytest
import torch

from albert.batch import STATES, Batch, Said, Wanted, pack, places_of
from albert.inference.embed import Embed
from albert.inference.fill import Fill, PlainText
from albert.inference.predictor import Decides, Predictor
from albert.inference.torch_engine import TorchEngine
from albert.model import HEADS, AlbertConfig, Packed, new_model
from albert.tasks.choice import Choice, ChoiceExample
from albert.tasks.classification import Classification, TextExample
from albert.tasks.span import CONDITIONAL, QuestionExample, SpanTask
from albert.tasks.tagging import TagExample, Tagging
from albert.tokenizer import Tokenizer

LENGTHS = (2, 40, 33, 7)
SOME = [[1], list(range(39)), [0, 32], []]
SHAPE: dict[str, Any] = {
    "embedding_size": 8, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
    "max_position_embeddings": 64, "initializer_range": 0.5, "labels": ("O", "B-PER", "I-PER"),
}  # fmt: skip


def engine_of(vocab_size: int = 300) -> TorchEngine:
    return TorchEngine(new_model(AlbertConfig(vocab_size=vocab_size, **SHAPE), tuple(HEADS), seed=7))


def batch_of(lengths: tuple[int, ...]) -> Batch:
    rng = np.random.default_rng(3)
    return pack([rng.integers(5, 300, length) for length in LENGTHS][: len(lengths)])


def alone(batch: Batch, text: int) -> Batch:
    start = batch.starts[text]
    return pack([batch.token_ids[start : start + batch.lengths[text]]])


def test_a_head_is_asked_at_each_class_token_at_all_tokens_or_at_some() -> None:
    engine, batch = engine_of(), batch_of(LENGTHS)
    with torch.no_grad():
        encoded = engine.model(batch)
        tags = engine.model.heads["tags"](encoded.states).numpy()
        words = engine.model.mlm_logits(encoded, torch.arange(sum(LENGTHS))).numpy()
        order = engine.model.heads["order"](encoded.pooled).numpy()
    said = engine.run(batch, {"order": "class", "tags": "tokens", "mlm": SOME, STATES: "class"})
    assert len(said) == len(LENGTHS)
    for text, (start, length) in enumerate(zip(batch.starts, LENGTHS, strict=True)):
        about = {head: values for head, (values,) in said[text].items()}
        assert {values.dtype for values in about.values()} == {np.dtype(np.float32)}
        np.testing.assert_allclose(about["order"], order[text], atol=1e-6)
        np.testing.assert_allclose(about["tags"], tags[start : start + length], atol=1e-6)
        np.testing.assert_allclose(about["mlm"], words[[start + position for position in SOME[text]]], atol=1e-5)
        np.testing.assert_allclose(about[STATES], encoded.states[start : start + 1].numpy(), atol=1e-6)


@pytest.mark.parametrize(
    "wanted",
    [{"classifier": "class"}, {"choice": "class"}, {"tags": SOME}, {"span": "tokens"}, {"mlm": SOME}, {STATES: SOME}],
    ids=str,
)
def test_what_is_said_of_a_text_does_not_depend_on_its_neighbours(wanted: Any) -> None:
    engine, batch = engine_of(), batch_of(LENGTHS)
    together = engine.run(batch, wanted)
    for text in range(len(LENGTHS)):
        own = {head: where if isinstance(where, str) else [where[text]] for head, where in wanted.items()}
        (said,) = engine.run(alone(batch, text), own)
        for head, values in said.items():
            for one, other in zip(values, together[text][head], strict=True):
                np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)


def test_the_beam_is_sought_among_the_wanted_positions_and_does_not_depend_on_neighbours() -> None:
    engine, batch = engine_of(), batch_of(LENGTHS)
    allowed = [[0, 1], [0, 5, 6, 7, 8, 9, 30], [0, 20, 21, 22, 23], [0, 3, 4, 5, 6]]
    together = engine.run(batch, {CONDITIONAL: allowed})
    packed = Packed.from_batch(batch)
    mask = torch.zeros(sum(LENGTHS), dtype=torch.bool)
    mask[places_of(LENGTHS, allowed)] = True
    with torch.no_grad():
        beam = engine.model.heads[CONDITIONAL].beam(engine.model(packed).states, packed, allowed=mask)  # type: ignore[operator]
    for text, positions in enumerate(allowed):
        values = together[text][CONDITIONAL]
        for ours, module in zip(values, astuple(beam), strict=True):
            np.testing.assert_allclose(ours, module[text].numpy(), atol=1e-5)
        (said,) = engine.run(alone(batch, text), {CONDITIONAL: [positions]})
        count = min(len(positions), 5)
        start_scores, starts, _, _, no_answer = said[CONDITIONAL]
        assert set(starts[:count].tolist()) <= set(positions)
        np.testing.assert_allclose(start_scores[:count], values[0][:count], atol=1e-5)
        np.testing.assert_allclose(no_answer, values[4], atol=1e-5)


class Replayed:
    """An engine of plain arrays: it says again what another one said, and knows no module."""

    def __init__(self, engine: TorchEngine) -> None:
        self.config, self.heads, self._engine = engine.config, engine.heads, engine
        self.asked: list[Wanted] = []

    def run(self, batch: Batch, wanted: Wanted) -> list[Said]:
        self.asked.append(wanted)
        said = self._engine.run(batch, wanted)
        return [{head: tuple(np.array(value) for value in values) for head, values in own.items()} for own in said]


LABELS = SHAPE["labels"]
QUESTION = QuestionExample("Who came in?", "Peter Smith came in from the cold. " * 9)


@pytest.mark.parametrize(
    ("task", "example", "head"),
    [
        (Classification(LABELS, max_length=64), TextExample("the end"), "classifier"),
        (Choice(2, max_length=64), ChoiceExample("A man came.", "Who came?", ("a dog", "a man")), "choice"),
        (Tagging(LABELS, max_length=64), TagExample(("Peter", "Smith", "came") * 30), "tags"),
        (SpanTask(max_length=64), QUESTION, "span"),
        (SpanTask(head=CONDITIONAL, unanswerable=True, max_length=64), QUESTION, CONDITIONAL),
        (Embed(64), PlainText("the end"), STATES),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_task_decides_from_plain_arrays(
    task: Decides[Any, Any, Any], example: Any, head: str, tokenizer: Tokenizer
) -> None:
    engine = Replayed(engine_of(tokenizer.vocab_size))
    ((one,), (other,)) = (list(Predictor(own, tokenizer).predict(task, [example])) for own in (engine, engine._engine))
    assert {name for wanted in engine.asked for name in wanted} == {head}
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other)
    else:
        assert one == other


def test_blanks_are_filled_by_the_best_pieces_in_order(tokenizer: Tokenizer) -> None:
    engine = engine_of(tokenizer.vocab_size)
    fill = Fill(tokenizer.pieces, 64, top=4)
    (blanks,) = Predictor(engine, tokenizer).predict(fill, [PlainText("the [MASK] of the [MASK]")])
    (feature,) = fill.encode(PlainText("the [MASK] of the [MASK]"), tokenizer)
    with torch.no_grad():
        logits = engine.model.mlm_logits(engine.model(pack([feature.token_ids])), torch.tensor(feature.blanks))
        best = logits.softmax(-1).topk(4)
    assert [[guess.piece for guess in blank.guesses] for blank in blanks] == [
        [tokenizer.pieces[number] for number in row] for row in best.indices.tolist()
    ]
    found = np.array([[guess.probability for guess in blank.guesses] for blank in blanks])
    np.testing.assert_allclose(found, best.values.numpy(), rtol=1e-4)
