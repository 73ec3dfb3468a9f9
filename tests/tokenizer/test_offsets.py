"""Offsets point into the original text: in range, in order, leaving nothing out, for any text."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from albert.tokenizer import Encoding, Tokenizer
from albert.tokenizer.normalisation import Normalisation

ODD = (
    " \t\n\x00\x01\x0b\x1c\x85\u00a0\u200b\u200d\ufeff\ufffd\u2581\u0301\u0327\u3000\ufe0f\u0e33\u1100\u1161\u11a8"
    "´¨ﬁ…½ΣİIı'`\"(.,123Aa漢각☃<[]>𝚺𝐀ａ～"
)
TEXTS = st.text(st.characters(blacklist_categories=("Cs",)) | st.sampled_from(ODD), max_size=40)
SETTINGS = [(True, False), (False, False), (True, True), (False, True)]


def check(tokenizer: Tokenizer, text: str) -> Encoding:
    """Check everything that is promised about the offsets of a text."""
    encoding = tokenizer.encode_with_offsets(text)
    assert encoding.ids == tokenizer.encode(text)
    assert len(encoding.ids) == len(encoding.offsets)
    assert all(0 <= start <= end <= len(text) for start, end in encoding.offsets)
    assert all(one[0] <= two[0] and one[1] <= two[1] for one, two in pairwise(encoding.offsets))
    covered = {place for start, end in encoding.offsets for place in range(start, end)}
    if encoding.ids:
        assert all(letter.isspace() or place in covered for place, letter in enumerate(text))
    for start, end in encoding.offsets:
        assert start == end or not (text[start].isspace() or text[end - 1].isspace())
    return encoding


def parts(tokenizer: Tokenizer, text: str) -> list[tuple[str, str]]:
    encoding = check(tokenizer, text)
    return [
        (tokenizer.pieces[number], text[start:end])
        for number, (start, end) in zip(encoding.ids, encoding.offsets, strict=True)
    ]


@pytest.mark.parametrize(("lower_case", "keep_accents"), SETTINGS)
@settings(max_examples=300, deadline=None)
@given(text=TEXTS)
@example(text="\x1b\x85:")
@example(text="0¯\x85:")
@example(text="\u0301ﬁ \u200b x")
@example(text="½\u0e33 12, ▁a▁ \u200d")
def test_any_text_has_sound_offsets(small: Tokenizer, lower_case: bool, keep_accents: bool, text: str) -> None:
    normalisation = Normalisation(lower_case=lower_case, keep_accents=keep_accents)
    check(Tokenizer(small.model, normalisation), text)


@settings(max_examples=500, deadline=None)
@given(text=TEXTS)
def test_any_text_has_sound_offsets_in_the_official_vocabulary(official: Tokenizer, text: str) -> None:
    check(official, text)


@settings(max_examples=200, deadline=None)
@given(words=st.lists(st.text("abcdefghijklmnopqrstuvwxyzABCDEFéüß0123456789,.()'-", min_size=1), min_size=1))
def test_ordinary_text_gives_each_piece_its_own_characters(small: Tokenizer, words: list[str]) -> None:
    text = " ".join(words).replace("''", "'")
    for piece, surface in parts(small, text):
        known = small.normalisation(surface) == piece.removeprefix("▁")
        assert known or piece == "<unk>", (piece, surface)


def test_pieces_cover_what_they_were_made_from(official: Tokenizer) -> None:
    text = "the ﬁnal café (born 28, 1990) ``so''\n\nx☃☃ cafe\u0301"
    assert parts(official, text) == [
        ("▁the", "the"), ("▁final", "ﬁnal"), ("▁cafe", "café"), ("▁", ""), ("(", "("), ("born", "born"),
        ("▁28", "28"), (",", ","), ("▁1990", "1990"), (")", ")"), ("▁", ""), ('"', "``"), ("so", "so"), ('"', "''"),
        ("▁x", "x"), ("<unk>", "☃☃"), ("▁cafe", "cafe\u0301"),
    ]  # fmt: skip


def test_one_character_that_becomes_several_belongs_to_each_of_its_pieces(small: Tokenizer) -> None:
    accents = Tokenizer(small.model, Normalisation(keep_accents=True))
    assert [surface for _, surface in parts(accents, "12…3")][-4:] == ["…", "…", "…", "3"]


@pytest.mark.parametrize("unit", ["word ", "a", "é ", "12,", "\u0301", "…☃"])
def test_a_million_characters_are_no_trouble(small: Tokenizer, unit: str) -> None:
    text = (unit * (1_000_000 // len(unit) + 1))[:1_000_000]
    encoding = small.encode_with_offsets(text)
    assert encoding.ids == small.encode(text)
    assert not encoding.offsets or encoding.offsets[-1][1] == len(text.rstrip())


def test_answers_of_squad_are_found_again(official: Tokenizer, real_data: Path) -> None:
    squad = json.loads((real_data / "squad" / "dev-v1.1.json").read_bytes())
    found = total = 0
    for paragraph in (paragraph for article in squad["data"] for paragraph in article["paragraphs"]):
        offsets = official.encode_with_offsets(paragraph["context"]).offsets
        starts, ends = {start for start, end in offsets if end > start}, {end for _, end in offsets}
        for answer in (answer for question in paragraph["qas"] for answer in question["answers"]):
            start = answer["answer_start"]
            found += start in starts and start + len(answer["text"]) in ends
            total += 1
    assert (found, total) == (34_619, 34_726)  # the others begin or end inside a word, as "Japan" in "Japanese"
