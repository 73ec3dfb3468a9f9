"""Words begin at the marker, and at every piece of a script without spaces."""

from __future__ import annotations

import pytest

from albert.tokenizer import Tokenizer
from albert.tokenizer.words import word_starts


@pytest.mark.parametrize(
    "piece", ["▁the", "▁", "▁(", "▁漢", "漢字", "かな", "カナ", "ー", "ภาษา", "ລາວ", "ខ្មែរ", "မြန်", "བོད"]
)
def test_a_word_begins(piece: str) -> None:
    assert word_starts([piece])[0]


@pytest.mark.parametrize(
    "piece", ["ing", "(", ")", "'", ",", "12", "é", "он", "한국", "ية", "<unk>", "[MASK]", "<pad>", ""]
)
def test_a_word_goes_on(piece: str) -> None:
    assert not word_starts([piece])[0]


def test_every_id_has_an_answer(small: Tokenizer) -> None:
    assert small.word_starts.shape == (small.vocab_size,)
    assert small.word_starts.dtype == bool


def test_a_bracketed_word_is_one_word(official: Tokenizer) -> None:
    starts = official.word_starts[official.encode("it (born 1990) isn't ☃")]
    pieces = [official.pieces[number] for number in official.encode("it (born 1990) isn't ☃")]
    assert [piece for piece, start in zip(pieces, starts, strict=True) if start] == ["▁it", "▁", "▁1990", "▁isn", "▁"]
