"""The number of heads is told from predictions: a trained model knows how many it was trained with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn.functional import cross_entropy

from albert.batch import pack
from albert.interop.head_count import EVERY, TEXT, judge_head_count, masked_losses
from albert.model import Albert, AlbertConfig, new_model
from albert.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def trained(spiece: Path) -> tuple[Albert, Tokenizer]:
    """Return a small model whose predictions depend on attention with 2 heads.

    The encoder is drawn with wide weights, so that attention matters; only the head learns, from the states that the
    encoder has with 2 heads at the places that the check masks.
    """
    tokenizer = Tokenizer.load(spiece)
    config = AlbertConfig(
        vocab_size=tokenizer.vocab_size,
        embedding_size=32,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=128,
        initializer_range=0.4,
    )
    model = new_model(config, ["mlm", "order"])
    ids = [tokenizer.cls_id, *tokenizer.encode(TEXT), tokenizer.sep_id]
    positions = list(range(EVERY, len(ids) - 1, EVERY))
    truth = torch.tensor([ids[position] for position in positions])
    masked = [tokenizer.mask_id if place in positions else piece for place, piece in enumerate(ids)]
    encoded = model(pack([masked]))
    encoded = replace(encoded, states=encoded.states.detach())
    optimizer = torch.optim.Adam(model.heads["mlm"].parameters(), lr=0.03)
    for _ in range(80):
        loss = cross_entropy(model.mlm_logits(encoded, torch.tensor(positions)), truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval(), tokenizer


def test_the_loss_is_least_with_the_heads_it_was_trained_with(trained: tuple[Albert, Tokenizer]) -> None:
    model, tokenizer = trained
    losses = masked_losses(model, tokenizer, candidates=(1, 2, 4))
    assert min(losses, key=losses.__getitem__) == 2
    assert "num_attention_heads=2 is right" in judge_head_count(model, tokenizer, candidates=(2, 4))


def test_a_wrong_configuration_is_called_wrong_with_the_right_number(trained: tuple[Albert, Tokenizer]) -> None:
    model, tokenizer = trained
    wrong = Albert(model.config.with_settings({"num_attention_heads": 8}), ["mlm", "order"])
    wrong.load_state_dict(model.state_dict())
    note = judge_head_count(wrong.eval(), tokenizer, candidates=(2, 8))
    assert "num_attention_heads=8 is WRONG" in note
    assert "a --config that says 2" in note


def test_an_untrained_model_and_one_without_words_cannot_tell(trained: tuple[Albert, Tokenizer]) -> None:
    model, tokenizer = trained
    fresh = new_model(model.config, ["mlm"])
    assert "does not tell them apart" in judge_head_count(fresh, tokenizer, candidates=(2, 4))
    assert "can't be checked" in judge_head_count(fresh, None, candidates=(2, 4))
    assert "can't be checked" in judge_head_count(new_model(model.config), tokenizer, candidates=(2, 4))
