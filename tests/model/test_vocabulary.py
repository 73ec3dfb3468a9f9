"""Another vocabulary under the same encoder: what both have is carried over exactly, the rest from sub-pieces."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from albert.batch import pack
from albert.model import Albert, AlbertConfig, new_model
from albert.model.folder import load_model, save_model
from albert.model.vocabulary import change_vocabulary
from albert.tokenizer import Tokenizer
from albert.tokenizer.folder import SPECIAL_PIECES
from albert.tokenizer.normalisation import Normalisation
from albert.tokenizer.proto import write_model

OLD = ["▁", "▁the", "▁cat", "▁sat", "s", "un", "do", "▁re", "t"]
NEW = ["▁sat", "▁cats", "undo", "▁the", "▁redo", "§", "s"]  # shared: ▁sat, ▁the, s
SUB_PIECES = {"▁cats": ["▁cat", "s"], "undo": ["un", "do"], "▁redo": ["▁re", "do"], "§": ["<unk>"]}


def tokenizer(pieces: list[str]) -> Tokenizer:
    """Make a tokenizer of some pieces, the longer the likelier."""
    vocabulary = [(piece, 0.0) for piece in SPECIAL_PIECES] + [(piece, -1.0 / len(piece)) for piece in pieces]
    return Tokenizer(write_model(vocabulary, b""), Normalisation())


@pytest.fixture
def old() -> Tokenizer:
    return tokenizer(OLD)


@pytest.fixture
def new() -> Tokenizer:
    return tokenizer(NEW)


def model_for(vocabulary: Tokenizer) -> Albert:
    config = AlbertConfig(
        vocab_size=vocabulary.vocab_size, embedding_size=8, hidden_size=16, num_attention_heads=2, intermediate_size=32
    )
    model = new_model(config, ("mlm", "order"), seed=3)
    torch.nn.init.normal_(model.heads["mlm"].get_parameter("bias"), generator=torch.Generator().manual_seed(1))
    return model.eval()


def moved(old: Tokenizer, new: Tokenizer) -> tuple[Albert, Albert, int]:
    """Return the model as it was, the model with the new vocabulary, and how many pieces were carried over."""
    before, after = model_for(old), model_for(old)
    return before, after, change_vocabulary(after, old=old, new=new)


def test_pieces_that_both_have_keep_their_embedding_and_bias_exactly(old: Tokenizer, new: Tokenizer) -> None:
    before, after, carried = moved(old, new)
    shared = [*SPECIAL_PIECES, "▁sat", "▁the", "s"]
    assert carried == len(shared)
    for piece in shared:
        first, second = old.pieces.index(piece), new.pieces.index(piece)
        assert torch.equal(before.encoder.embeddings.word.weight[first], after.encoder.embeddings.word.weight[second])
        biases = (model.heads["mlm"].get_parameter("bias") for model in (before, after))
        assert next(biases)[first] == next(biases)[second]


def test_a_new_piece_is_the_mean_of_what_the_old_tokenizer_makes_of_it(old: Tokenizer, new: Tokenizer) -> None:
    before, after, _ = moved(old, new)
    for piece, parts in SUB_PIECES.items():
        ids = [old.pieces.index(part) for part in parts]
        number = new.pieces.index(piece)
        expected = before.encoder.embeddings.word.weight[ids].mean(0)
        assert torch.allclose(after.encoder.embeddings.word.weight[number], expected), piece
        bias = before.heads["mlm"].get_parameter("bias")[ids].mean()
        assert torch.isclose(after.heads["mlm"].get_parameter("bias")[number], bias), piece


@torch.no_grad()
def test_the_model_thinks_of_known_pieces_as_before_and_scores_new_ones_like_their_parts(
    old: Tokenizer, new: Tokenizer
) -> None:
    before, after, _ = moved(old, new)
    text = ["[CLS]", "▁the", "[MASK]", "s", "▁sat", "[SEP]"]
    scores = []
    for model, vocabulary in ((before, old), (after, new)):
        encoded = model(pack([[vocabulary.pieces.index(piece) for piece in text]]))
        scores.append(model.mlm_logits(encoded, torch.tensor([2]))[0])
    assert scores[1].shape == (new.vocab_size,)
    for number, piece in enumerate(new.pieces):
        ids = [old.pieces.index(part) for part in SUB_PIECES.get(piece, [piece])]
        assert torch.isclose(scores[1][number], scores[0][ids].mean(), atol=1e-5), piece


def test_everything_but_the_vocabulary_stays_and_the_model_can_be_saved(
    old: Tokenizer, new: Tokenizer, tmp_path: Path
) -> None:
    before, after, _ = moved(old, new)
    assert after.config.vocab_size == after.encoder.config.vocab_size == new.vocab_size
    for (name, first), second in zip(before.named_parameters(), after.parameters(), strict=True):
        if first.shape == second.shape:
            assert torch.equal(first, second), name
        else:
            assert name in ("encoder.embeddings.word.weight", "heads.mlm.bias")
    assert all(parameter.requires_grad for parameter in after.parameters())
    save_model(after, tmp_path / "model", tokenizer=new)
    again = load_model(tmp_path / "model").model
    assert all(torch.equal(first, second) for first, second in zip(after.parameters(), again.parameters(), strict=True))
