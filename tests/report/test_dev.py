"""What a report shows of decisions, from decisions made by hand, for every kind of task."""

from __future__ import annotations

import re
from typing import Any

from albert.report.decisions import Decided, Decision
from albert.report.dev import MATRIX_LABELS, MOST_CASES, MOST_CLASSES, dev_sections


def decision(truth: Any, guess: Any, *, score: float | None = None, **changes: Any) -> Decision:
    """Make a decision; it is right if both are the same."""
    both = [(value,) if isinstance(value, str) else tuple(value) for value in (truth, guess)]
    values = {"text": "a text", "length": 2, "probabilities": (0.9,)} | changes
    return Decision(truth=both[0], guess=both[1], score=float(both[0] == both[1]) if score is None else score, **values)


def sections(kind: str, labels: tuple[str, ...], *decisions: Decision) -> dict[str, str]:
    """Return the sections by their headings."""
    found = "\n".join(dev_sections(Decided(kind, labels, "best", 0.4, decisions)))
    parts = re.findall(r"<section>\n<h2>(.*?)</h2>\n(.*?)\n</section>", found, re.DOTALL)
    return dict(parts)


def rows_of(text: str) -> list[list[str]]:
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>.*?</tr>", text)]


def test_without_decisions_there_is_nothing_to_show() -> None:
    assert sections("classification", ("a", "b")) == {}


def test_classes_have_a_matrix_and_scores_the_most_frequent_class_first() -> None:
    shown = sections("classification", ("a", "b"), decision("a", "b"), decision("b", "b"), decision("b", "b"))
    assert list(shown) == ["Classes", "By length", "Calibration", "Surest mistakes"]
    rows = rows_of(shown["Classes"])
    assert rows[:3] == [[r"is \ said", "a", "b"], ["a", "0", "1"], ["b", "0", "2"]]
    assert rows[4:] == [["b", "2", "3", "66.7%", "100.0%", "80.0%"], ["a", "1", "0", "0.0%", "0.0%", "0.0%"]]


def test_of_many_classes_the_confused_pairs_are_shown_instead_of_a_matrix() -> None:
    labels = tuple(f"c{number:03}" for number in range(MOST_CLASSES + 1))
    assert len(labels) > MATRIX_LABELS
    some = [decision("c001", "c002"), decision("c001", "c002"), decision("c003", "c001"), decision("c005", "c005")]
    text = sections("classification", labels, *some)["Classes"]
    rows = rows_of(text)
    assert rows[:3] == [["is", "said", "times"], ["c001", "c002", "2"], ["c003", "c001", "1"]]
    assert "101 classes are too many for a matrix" in text
    assert len(rows) == 3 + 1 + MOST_CLASSES


def test_several_labels_count_each_and_the_surest_wrong_one_weighs() -> None:
    some = [
        decision(("a",), ("a", "b"), probabilities=(0.6, 0.7), text="first"),
        decision(("a", "b"), ("a",), probabilities=(0.9, 0.05), text="second"),
        decision((), (), probabilities=(0.1, 0.2), text="right"),
    ]
    shown = sections("multi-label", ("a", "b"), *some)
    assert rows_of(shown["Labels"])[1:] == [
        ["a", "2", "2", "100.0%", "100.0%", "100.0%"],
        ["b", "1", "1", "0.0%", "0.0%", "0.0%"],
    ]
    mistakes = re.findall(r"<strong>(.*?)</strong>", shown["Surest mistakes"])
    assert mistakes == ["said a, is a, b (as sure as 95.0%)", "said a, b, is a (as sure as 70.0%)"]
    assert rows_of(shown["By length"])[-1] == ["2", "3", "33.3%"]
    assert "Every label of every text counts" in shown["Calibration"]


def test_numbers_have_a_scatter_and_their_errors_and_no_calibration() -> None:
    some = [
        decision("1", "2.5", score=1.5, values=(1.0, 2.5), probabilities=()),
        decision("4", "4", score=0.0, values=(4.0, 4.0), probabilities=()),
    ]
    shown = sections("regression", (), *some)
    assert list(shown) == ["Numbers", "By length", "Largest errors"]
    assert rows_of(shown["Numbers"])[1:] == [["1", "1", "1.500"], ["4", "1", "0.000"]]
    assert re.findall(r"<strong>(.*?)</strong>", shown["Largest errors"]) == ["said 2.5, is 1", "said 4, is 4"]


def test_choices_are_counted_by_place_and_scored_by_part() -> None:
    some = [
        decision("2: b", "10: j", group="high"),
        decision("2: b", "2: b", group="high"),
        decision("1: a", "1: a", group="middle"),
    ]
    rows = rows_of(sections("choice", (), *some)["Choices"])
    assert rows[:4] == [
        [r"is \ said", "1", "2", "10"], ["1", "1", "0", "0"], ["2", "0", "1", "1"], ["10", "0", "0", "0"],
    ]  # fmt: skip
    assert rows[5:] == [["high", "2", "50.0%"], ["middle", "1", "100.0%"]]


def test_answers_are_scored_by_part_and_length_and_overlap_is_no_clear_mistake() -> None:
    some = [
        decision(("a man", "man"), "dog", score=0.0, exact=0.0, asked=3, group="with an answer", text="wrong"),
        decision(("a man",), "man", score=0.7, exact=0.0, asked=3, group="with an answer", text="near"),
        decision((), "", score=1.0, exact=1.0, asked=5, group="without an answer", text="right"),
    ]
    shown = sections("span", (), *some)
    rows = rows_of(shown["Answers"])
    assert ["with an answer", "2", "0.0%", "35.0%"] in rows
    assert ["without an answer", "1", "100.0%", "100.0%"] in rows
    assert ["5", "1", "100.0%", "100.0%"] in rows
    assert rows[-2:] == [["1", "1", "0.0%", "0.0%"], ["2", "1", "0.0%", "70.0%"]], "words of the shortest true answer"
    assert re.findall(r"<strong>(.*?)</strong>", shown["Surest mistakes"]) == ["said dog (90.0%), is a man | man"]
    assert [row[0] for row in rows_of(shown["Calibration"])[1:]] == ["90.0%"]
    assert rows_of(shown["Calibration"])[1][1:] == ["33.3%", "3"], "an answer comes true if it matches exactly"


def test_tags_with_spans_are_scored_by_type_as_whole_spans() -> None:
    labels = ("O", "B-PER", "I-PER", "B-LOC")
    some = [
        decision(
            ("B-PER", "I-PER", "O", "B-LOC"), ("B-PER", "O", "O", "B-LOC"), score=0.75, length=4,
            probabilities=(0.9, 0.8, 0.7, 0.6), words=("Ann", "Lee", "in", "Rome"),
        ),
        decision(("O", "B-LOC"), ("B-PER", "B-LOC"), score=0.5, probabilities=(0.95, 0.6), words=("the", "Alps")),
    ]  # fmt: skip
    shown = sections("tagging", labels, *some)
    assert rows_of(shown["Tags"]) == [
        ["type", "there are", "said", "precision", "recall", "F1"],
        ["LOC", "2", "2", "100.0%", "100.0%", "100.0%"],
        ["PER", "1", "2", "0.0%", "0.0%", "0.0%"],
    ]
    assert rows_of(shown["By length"])[0] == ["words", "examples", "words right", "span F1"]
    assert rows_of(shown["By length"])[1:] == [["2", "1", "50.0%", "66.7%"], ["4", "1", "75.0%", "50.0%"]]
    mistakes = re.findall(r"<strong>(.*?)</strong>", shown["Surest mistakes"])
    assert mistakes == ["“the”: said B-PER (95.0%), is O", "“Lee”: said O (80.0%), is I-PER"]


def test_sentences_without_any_span_have_an_empty_table_of_types() -> None:
    shown = sections("tagging", ("O", "B-PER"), decision(("O",), ("O",), probabilities=(0.9,), words=("rain",)))
    assert len(rows_of(shown["Tags"])) == 1


def test_tags_without_spans_are_scored_word_by_word() -> None:
    some = decision(("NN", "VB"), ("NN", "NN"), score=0.5, probabilities=(0.9, 0.6), words=("rain", "falls"))
    shown = sections("tagging", ("NN", "VB"), some)
    assert rows_of(shown["Tags"])[1:] == [
        ["NN", "1", "2", "50.0%", "100.0%", "66.7%"],
        ["VB", "1", "0", "0.0%", "0.0%", "0.0%"],
    ]
    assert "span F1" not in shown["By length"]


def test_mistakes_are_the_surest_first_and_counted_where_there_are_too_many() -> None:
    some = [
        decision("a", "b", probabilities=(0.5 + i / 100,), text=f"text {i}", place=f"d.csv:{i}")
        for i in range(MOST_CASES + 5)
    ]
    text = sections("classification", ("a", "b"), *some)["Surest mistakes"]
    assert text.count('class="case"') == MOST_CASES
    assert text.index("text 24\nd.csv:24") < text.index("text 23\nd.csv:23")
    assert "text 4\n" not in text
    assert f"{MOST_CASES} of 25 examples that are not quite right" in text
    assert "None." in sections("classification", ("a", "b"), decision("a", "a"))["Surest mistakes"]
