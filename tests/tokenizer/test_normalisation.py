"""The normalisation is the reference's, character by character, and its alignment is true."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert.tokenizer.normalisation import Normalisation

ALL = [Normalisation(lower_case=lower, keep_accents=accents) for lower in (True, False) for accents in (True, False)]
TEXTS = st.text(
    st.characters(blacklist_categories=("Cs",)) | st.sampled_from(" \t\n\x0b\x1c\x85\u3000'`\u0301ﬁΣσİ𝚺´é"), max_size=40
)


def reference(text: str, normalisation: Normalisation) -> str:
    """Do what transformers' slow tokenizer does: letters first, one by one, then its preprocess_text."""
    if normalisation.lower_case:
        text = "".join(letter.lower() for letter in text)
    text = " ".join(text.strip().split()).replace("``", '"').replace("''", '"')
    if not normalisation.keep_accents:
        text = "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    return text.lower() if normalisation.lower_case else text


@pytest.mark.parametrize("normalisation", ALL)
@given(text=TEXTS)
def test_it_is_the_reference(normalisation: Normalisation, text: str) -> None:
    assert normalisation(text) == reference(text, normalisation)


@pytest.mark.parametrize("normalisation", [ALL[1], ALL[2]])
def test_it_is_the_reference_for_every_character(normalisation: Normalisation) -> None:
    letters = [letter for letter in map(chr, range(0x110000)) if unicodedata.category(letter) not in ("Cn", "Co", "Cs")]
    wrong = [letter for letter in letters if normalisation(f"a{letter}b") != reference(f"a{letter}b", normalisation)]
    assert wrong == []


@pytest.mark.parametrize("normalisation", ALL)
@given(text=TEXTS)
def test_alignment_gives_the_same_text(normalisation: Normalisation, text: str) -> None:
    aligned = normalisation.align(text)
    assert aligned.text == normalisation(text)
    assert len(aligned.origins) == len(aligned.text) + 1
    assert list(aligned.origins) == sorted(aligned.origins)
    assert aligned.origins[-1] == len(text)


def test_alignment_names_the_character_that_each_came_from() -> None:
    text = "  Ｈé\u0301ﬁ ``x''\n\ny "
    aligned = Normalisation().align(text)
    assert aligned.text == 'hefi "x" y'
    assert [text[origin] for origin in aligned.origins[:-1]] == list("Ｈéﬁﬁ `x'\ny")


def test_half_a_surrogate_pair_is_a_replacement_character() -> None:
    assert Normalisation()("a\ud800b") == "a\ufffdb" == Normalisation().align("a\ud800b").text
