"""What can't be packed or encoded is refused with a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from albert.batch import pack
from albert.errors import UsageError
from albert.model import AlbertConfig, new_model


def test_nothing_and_empty_texts_are_refused() -> None:
    with pytest.raises(UsageError, match="no texts to pack: give at least one"):
        pack([])
    with pytest.raises(UsageError, match="text 2 of 3 has no tokens"):
        pack([[2, 3], [], []])
    with pytest.raises(UsageError, match="segments are not as long as their texts"):
        pack([[2, 3], [2]], [[0], [0, 0]])


@pytest.mark.parametrize("texts", [[2, 3], "abc", [["a"]], [[2, 3.5]]], ids=str)
def test_what_are_no_token_ids_are_refused_with_a_sentence(texts: Any) -> None:
    with pytest.raises(UsageError, match=r"tokenizer\.encode"):
        pack(texts)


@pytest.mark.parametrize(
    ("texts", "segment", "message"),
    [
        ([[2, 3], [2, 50]], 0, "token id 50 in text 2: must be from 0 to 49: use the tokenizer of this model"),
        ([[-1, 3], [2]], 0, "token id -1 in text 1"),
        ([[2, 3], [2]], 2, "segment 2 in text 1: must be from 0 to 1"),
    ],
)
def test_what_has_no_embedding_is_refused(texts: list[list[int]], segment: int, message: str) -> None:
    shape = {"embedding_size": 4, "hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 8}
    model = new_model(AlbertConfig(vocab_size=50, num_hidden_layers=1, max_position_embeddings=8, **shape))
    with pytest.raises(UsageError, match=message):
        model(pack(texts, [[segment] * len(text) for text in texts]))
