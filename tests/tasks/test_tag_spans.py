"""Spans and their F1, against the tables of CoNLL's own script and against arithmetic by hand."""

from __future__ import annotations

import random

import pytest

from albert.tasks.tag_spans import Span, has_spans, scheme_of, span_scores, spans_of

# Which neighbours begin and end a chunk of one type, as conlleval lists them (S as its IOBES versions do).
BEGINS = {"BB", "IB", "OB", "EB", "SB", "OI", "EE", "EI", "OE", "SI", "SE", "BS", "IS", "OS", "ES", "SS"}
ENDS = {"BB", "BO", "BS", "IB", "IO", "IS", "EE", "EI", "EO", "EB", "ES", "SB", "SI", "SE", "SO", "SS"}


def chunks_by_the_tables(tags: list[str]) -> list[tuple[int, int, str]]:
    """Walk through a sentence with the two tables, a flag and a start, as the script does."""
    found, inside, begin = [], False, -1
    before, kind_before = "O", ""
    for place, tag in enumerate([*tags, "O"]):
        position, kind = tag[0], tag[2:]
        ends = before + position in ENDS or (before != "O" and kind != kind_before)
        if inside and ends:
            found.append((begin, place - 1, kind_before))
            inside = False
        if before + position in BEGINS or (position != "O" and kind != kind_before):
            inside, begin = True, place
        before, kind_before = position, kind
    return found


@pytest.mark.parametrize("positions", ["IO", "BIO", "BIESO", "SEO"])
def test_spans_are_those_of_the_scripts_tables_on_any_sequence(positions: str) -> None:
    rng = random.Random(positions)
    tags = ["O", *(f"{position}-{kind}" for position in positions if position != "O" for kind in ("PER", "LOC"))]
    for _ in range(2000):
        sentence = rng.choices(tags, k=rng.randint(0, 9))
        assert [(s.first, s.last, s.type) for s in spans_of(sentence)] == chunks_by_the_tables(sentence), sentence


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("B-PER I-PER O B-LOC", [Span(0, 1, "PER"), Span(3, 3, "LOC")]),  # IOB2
        ("I-PER I-PER O I-LOC B-LOC", [Span(0, 1, "PER"), Span(3, 3, "LOC"), Span(4, 4, "LOC")]),  # IOB1
        ("B-PER E-PER O S-LOC S-LOC", [Span(0, 1, "PER"), Span(3, 3, "LOC"), Span(4, 4, "LOC")]),  # IOBES
        ("B-PER L-PER O U-LOC", [Span(0, 1, "PER"), Span(3, 3, "LOC")]),  # BILOU
        ("B-PER I-LOC", [Span(0, 0, "PER"), Span(1, 1, "LOC")]),
        ("B-A-B I-A-B", [Span(0, 1, "A-B")]),
        ("", []),
    ],
)
def test_every_scheme_is_read(tags: str, spans: list[Span]) -> None:
    assert spans_of(tags.split()) == spans


def test_scores_count_exact_spans_and_types_over_all_sentences() -> None:
    truth = [["B-PER", "I-PER", "O", "B-LOC"], ["B-ORG", "O", "O"], ["O", "O"]]
    guesses = [["B-PER", "I-PER", "O", "B-ORG"], ["B-ORG", "I-ORG", "O"], ["B-LOC", "O"]]
    scores = span_scores(truth, guesses)  # right: PER. Said: PER ORG ORG LOC. Real: PER LOC ORG.
    assert scores == {
        "f1": pytest.approx(2 * (1 / 4) * (1 / 3) / (1 / 4 + 1 / 3)),
        "precision": 1 / 4,
        "recall": pytest.approx(1 / 3),
        "f1_LOC": 0.0,
        "f1_ORG": 0.0,
        "f1_PER": 1.0,
    }
    assert span_scores([["O"]], [["O"]])["f1"] == 0.0


@pytest.mark.parametrize(
    ("sentences", "scheme"),
    [
        (["B-PER I-PER O", "O B-LOC"], "IOB2"),
        (["I-PER I-PER O", "O I-LOC B-LOC"], "IOB1"),
        (["B-PER I-PER O", "O B-LOC", "I-ORG"], "IOB2, but 1 of 3 spans begin with I"),
        (["B-PER E-PER O S-LOC"], "IOBES"),
        (["B-PER L-PER U-LOC"], "BILOU"),
        (["NOUN VERB", "B-PER"], "none"),
        (["O O"], "none"),
    ],
)
def test_the_scheme_is_named(sentences: list[str], scheme: str) -> None:
    assert scheme_of(sentence.split() for sentence in sentences) == scheme


def test_parts_of_speech_are_not_spans() -> None:
    assert has_spans(["O", "B-PER", "S-LOC"])
    assert not has_spans(["NOUN", "VERB"])
    assert not has_spans(["O", "B-"])
    assert not has_spans(["O"])
