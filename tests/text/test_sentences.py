"""Sentences: by rule and by line, and never longer than the limit."""

from __future__ import annotations

import pytest

from albert.text import sentences
from albert.text.sentences import SENTENCE_LIMIT, split_sentences


def _split(text: str, language: str | None) -> list[str]:
    return [sentence.strip() for sentence in split_sentences(text, language=language)]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "Mr. Smith came at 3.30 p.m. today. He left!", ["Mr. Smith came at 3.30 p.m. today.", "He left!"]),
        (
            "de",
            "Er kam am 3. Mai z. B. nach Köln. Dann ging er.",
            ["Er kam am 3. Mai z. B. nach Köln.", "Dann ging er."],
        ),
        ("zh", "你好。我是学生。", ["你好。", "我是学生。"]),
        ("hi", "वह आया। वह गया।", ["वह आया।", "वह गया।"]),
    ],
)
def test_sentences_end_where_the_language_ends_them(language: str, text: str, expected: list[str]) -> None:
    assert _split(text, language) == expected


def test_a_line_end_always_ends_a_sentence() -> None:
    assert _split("A heading\nOne. Two.", "en") == ["A heading", "One.", "Two."]


def test_lines_are_sentences_where_no_language_is_given() -> None:
    assert _split("One. Two.\nthree", None) == ["One. Two.", "three"]


@pytest.mark.parametrize("language", ["en", None])
@pytest.mark.parametrize("text", ["word " * 30_000, "x" * 100_000, "x" * SENTENCE_LIMIT + " y", "(" * 70_000])
def test_a_sentence_beyond_the_limit_is_cut_at_a_space_and_nothing_is_lost(text: str, language: str | None) -> None:
    found = list(split_sentences(text, language=language))
    assert "".join(found) == text
    assert max(map(len, found)) <= SENTENCE_LIMIT
    assert len(found) <= 2 + len(text) // (SENTENCE_LIMIT - 10)
    if text.startswith("word"):
        assert all(part.endswith(" ") for part in found)


def test_a_line_of_many_sentences_is_split_like_short_lines() -> None:
    written = [f"Dr. Smith bought {number} ships." for number in range(2000)]
    assert _split(" ".join(written), "en") == written


def test_a_quotation_that_is_never_closed_does_not_swallow_the_line() -> None:
    found = _split('He said: "no. ' + "The rain came. " * 5000, "en")
    assert len(found) > 4000


def test_the_splitter_is_never_given_more_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    segment = sentences.sentencex.segment
    monkeypatch.setattr(
        sentences.sentencex, "segment", lambda code, text: given.append(len(text)) or segment(code, text)
    )
    text = "A “quoted” line, with (brackets). " * 2000
    assert "".join(split_sentences(text, language="en")) == text
    assert max(given) <= SENTENCE_LIMIT


@pytest.mark.parametrize("space", ["\xa0", "\u2003", "\u3000", "\x85"])
def test_a_space_of_more_than_a_byte_before_a_full_stop_is_kept(space: str) -> None:
    """Such a space after a capital made the splitter panic, which no handler of exceptions catches."""
    text = f"We met C{space}. Then we left. " * 200 + "So."
    assert "".join(split_sentences(text, language="en")) == text
    assert _split(f"We met C{space}.", "en") == [f"We met C{space}."]
