"""Heads: the conditional span head against a plain reference, pooling, and what each one stands on."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from albert.batch import Batch, pack
from albert.errors import UsageError
from albert.model import Albert, AlbertConfig, Packed, new_model
from albert.model.heads import ConditionalSpanHead, pool

SMALL = AlbertConfig(
    vocab_size=300, embedding_size=16, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    labels=("a", "b", "c"), initializer_range=0.2,
)  # fmt: skip
LENGTHS = [9, 30, 4]


@pytest.fixture
def batch() -> Batch:
    rng = np.random.default_rng(0)
    return pack([rng.integers(5, 300, n) for n in LENGTHS])


def allowed_tokens(batch: Batch) -> torch.Tensor:
    """Let answers stand anywhere but on the first two tokens of a text."""
    position = np.arange(batch.token_ids.size) - np.repeat(batch.starts, batch.lengths)
    return torch.from_numpy(position >= 2)


def test_each_head_has_its_shape(batch: Batch) -> None:
    model = new_model(SMALL, ("mlm", "order", "classifier", "choice", "tags", "span"))
    encoded = model(batch)
    tokens = int(batch.lengths.sum())
    assert model.mlm_logits(encoded, torch.tensor([3, 7])).shape == (2, 300)
    assert model.heads["order"](encoded.pooled).shape == (3, 2)
    assert model.heads["classifier"](encoded.pooled).shape == (3, 3)
    assert model.heads["choice"](encoded.pooled).shape == (3, 1)
    assert model.heads["tags"](encoded.states).shape == (tokens, 3)
    assert model.heads["span"](encoded.states).shape == (tokens, 2)


def test_an_unknown_head_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match="did you mean 'classifier'"):
        Albert(SMALL, ("clasifier",))


def test_masked_logits_are_those_of_all_positions(batch: Batch) -> None:
    model = new_model(SMALL, ("mlm",))
    encoded = model(batch)
    everywhere = model.mlm_logits(encoded, torch.arange(batch.token_ids.size))
    some = torch.tensor([1, 5, 20])
    assert torch.allclose(model.mlm_logits(encoded, some), everywhere[some], atol=1e-6)


def test_the_decoder_is_the_word_embedding(batch: Batch) -> None:
    model = new_model(SMALL, ("mlm",))
    loss = model.mlm_logits(model(batch), torch.tensor([3])).logsumexp(-1).sum()
    loss.backward()
    gradient = model.encoder.embeddings.word.weight.grad
    assert gradient is not None
    assert (gradient.abs().sum(1) > 0).all(), "pieces that are not in the text learn through the decoder"


def reference(
    head: ConditionalSpanHead, states: torch.Tensor, allowed: torch.Tensor, start: int
) -> tuple[torch.Tensor, ...]:
    """Compute one text by hand, following the description of Google's run_squad_v2."""
    start_logits = torch.stack([head.start(state)[0] for state in states])
    start_logits = torch.where(allowed, start_logits, torch.tensor(-1e30))
    end_logits = torch.stack(
        [
            head.end(F.layer_norm(torch.tanh(head.end_dense(torch.cat([state, states[start]]))), (32,), eps=1e-12))[0]
            for state in states
        ]
    )
    end_logits = torch.where(allowed, end_logits, torch.tensor(-1e30))
    feature = (start_logits.softmax(0).unsqueeze(1) * states).sum(0)
    no_answer = head.answer(torch.tanh(head.answer_dense(torch.cat([feature, states[0]]))))[0]
    return start_logits, end_logits, no_answer


def test_the_conditional_span_head_equals_its_description(batch: Batch) -> None:
    model = new_model(SMALL, ("conditional_span",))
    head = model.heads["conditional_span"]
    assert isinstance(head, ConditionalSpanHead)
    packed, allowed = Packed.from_batch(batch), allowed_tokens(batch)
    with torch.no_grad():
        states = model(packed).states
        scores = head(states, packed, allowed=allowed, true_starts=torch.tensor([2, 17, 3]))
        beam = head.beam(states, packed, allowed=allowed)
        for i, (start, length) in enumerate(zip(batch.starts, batch.lengths, strict=True)):
            part = slice(start, start + length)
            starts, ends, none = reference(head, states[part], allowed[part], [2, 17, 3][i])
            assert torch.allclose(scores.start_logits[i, :length], starts, atol=1e-5)
            assert torch.allclose(scores.end_logits[i, :length], ends, atol=1e-5)
            assert (scores.start_logits[i, length:] <= -1e29).all()
            assert torch.allclose(scores.no_answer[i], none, atol=1e-5)
            best = starts.argmax()
            assert beam.starts[i, 0] == best
            assert torch.allclose(beam.start_scores[i, 0], starts.log_softmax(0)[best], atol=1e-5)
            _, ends, _ = reference(head, states[part], allowed[part], int(best))
            assert beam.ends[i, 0, 0] == ends.argmax()
            assert torch.allclose(beam.end_scores[i, 0, 0], ends.log_softmax(0).max(), atol=1e-5)


def test_a_text_shorter_than_the_beam_works() -> None:
    model = new_model(SMALL, ("conditional_span",))
    packed = Packed.from_batch(pack([[2, 9, 3], [2, 7, 8, 9, 10, 11, 3]]))
    allowed = torch.ones(10, dtype=torch.bool)
    beam = model.heads["conditional_span"].beam(model(packed).states, packed, allowed=allowed)  # type: ignore[operator, union-attr]
    assert beam.ends.shape == (2, 5, 5)
    assert torch.isfinite(beam.start_scores[0, :3]).all()


def test_pooling_is_per_text(batch: Batch) -> None:
    model = new_model(SMALL)
    packed = Packed.from_batch(batch)
    encoded = model(packed)
    mean, cls = pool(encoded, packed), pool(encoded, packed, how="cls")
    for i, (start, length) in enumerate(zip(batch.starts, batch.lengths, strict=True)):
        assert torch.allclose(mean[i], encoded.states[start : start + length].mean(0), atol=1e-6)
        assert torch.equal(cls[i], encoded.states[start])


def test_only_the_classifier_drops_at_training_and_the_order_head_never() -> None:
    model = new_model(SMALL, ("order", "classifier")).train()
    pooled = torch.ones(64, 32)
    assert torch.equal(model.heads["order"](pooled), model.heads["order"](pooled))
    assert not torch.equal(model.heads["classifier"](pooled), model.heads["classifier"](pooled))


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float16])
def test_the_conditional_span_head_runs_in_half_precision(batch: Batch, precision: torch.dtype) -> None:
    model = new_model(SMALL, ("conditional_span",), seed=1).eval()
    head = model.heads["conditional_span"]
    assert isinstance(head, ConditionalSpanHead)
    packed = Packed.from_batch(batch)
    allowed = torch.ones(sum(packed.lengths), dtype=torch.bool)
    with torch.no_grad(), torch.autocast("cpu", precision):
        states = model(packed).states
        scores = head(states, packed, allowed=allowed, true_starts=torch.ones(len(packed.lengths), dtype=torch.long))
        beam = head.beam(states, packed, allowed=allowed)
    assert scores.start_logits.isfinite().all()
    assert beam.end_scores.isfinite().all()
