"""Training examples as `albert data check` shows them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from albert.cli.examples import render


def test_a_hidden_piece_that_is_only_the_mark_of_a_word_is_shown() -> None:
    pieces = ["[CLS]", "[SEP]", "[MASK]", "▁", "▁cat"]
    tokenizer: Any = SimpleNamespace(pieces=pieces, cls_id=0, sep_id=1, mask_id=2)
    example = {
        "token_ids": [0, 2, 2, 1],
        "segment_ids": [0, 0, 0, 0],
        "masked_positions": [1, 2],
        "masked_labels": [3, 4],
    }
    assert render(example, tokenizer).plain == "[CLS] [MASK]⟨▁⟩ [MASK]⟨cat⟩ [SEP]"
