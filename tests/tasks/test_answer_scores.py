"""SQuAD's scores against the official arithmetic, on the real dev files and on made-up answers."""

from __future__ import annotations

import hashlib
import json
import string
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albert.tasks.answer_scores import best_threshold, normalise_answer, score_answer

PUNCTUATION = set(string.punctuation)


class Question(NamedTuple):
    """A question of a real file, with a made-up answer and made-up odds that it has none."""

    answers: list[str]
    guess: str
    odds: float


def real_questions(path: Path) -> list[Question]:
    """Answer every question by a rule: rightly, nearly, wrongly, not at all, with an article, with a full stop."""
    questions = []
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            words = paragraph["context"].split()
            for question in paragraph["qas"]:
                digest = hashlib.sha256(question["id"].encode()).digest()
                answers = [answer["text"] for answer in question["answers"]]
                first, last = (answers[0], answers[-1]) if answers else (" ".join(words[:3]), words[0])
                guesses = ["", last, f"the {first.upper()}!", first.rpartition(" ")[0], f"{last} {words[1]}"]
                guesses += [".", "The", f"An {last}", " ".join(words[:5]), first, first, first]
                odds = int.from_bytes(digest[1:5]) / 2**29 - 4 + (0 if answers else 2)
                questions.append(Question(answers, guesses[digest[0] % len(guesses)], odds))
    return questions


def words_of(text: str) -> list[str]:
    """Normalise in another way than the library: by runs of letters and of other characters."""
    kept = [character for character in text.lower() if character not in PUNCTUATION]
    runs = ["".join(run) for _, run in groupby(kept, key=lambda character: character.isalnum())]
    return "".join(" " if run in {"a", "an", "the"} else run for run in runs).split()


def overlap(guess: list[str], truth: list[str]) -> float:
    """Return F1 from precision and recall, counting common words by crossing them out of a list."""
    left, common = sorted(truth), 0
    for word in guess:
        if word in left:
            left.remove(word)
            common += 1
    if not common:
        return 0.0
    precision, recall = common / len(guess), common / len(truth)
    return 2 * precision * recall / (precision + recall)


def independently(question: Question, *, version: int) -> tuple[float, float]:
    guess = words_of(question.guess)
    truths = [words_of(answer) for answer in question.answers]
    if version == 2:
        truths = [truth for truth in truths if truth]
        if not truths:
            return float(not guess), float(not guess)
    return max(float(guess == truth) for truth in truths), max(overlap(guess, truth) for truth in truths)


# The same answers scored by the official script of 2.0 as transformers 4.57.1 keeps it (data/metrics/squad_metrics.py);
# for 1.1 with the same functions, but an F1 of 0 without common words, and no answer left out.
RECORDED = {
    ("dev-v1.1.json", 1): (51.30558183538316, 61.74045490823329),
    ("dev-v1.1.json", 2): (51.2961210974456, 61.74045490823329),
    ("dev-half-v2.0.json", 2): (40.75353734781178, 45.65537934083928),
}


@pytest.mark.parametrize(("name", "version"), RECORDED)
def test_exact_match_and_f1_are_the_official_ones_on_real_dev_files(real_data: Path, name: str, version: int) -> None:
    questions = real_questions(real_data / "squad" / name)
    ours = [score_answer(q.guess, q.answers, unanswerable=version == 2) for q in questions]
    theirs = [independently(question, version=version) for question in questions]
    assert [score.exact for score in ours] == [exact for exact, _ in theirs]
    assert np.allclose([score.f1 for score in ours], [f1 for _, f1 in theirs], rtol=0, atol=1e-12)
    means = 100 * np.mean([(score.exact, score.f1) for score in ours], axis=0)
    assert means == pytest.approx(RECORDED[name, version], abs=1e-9)


def test_people_agree_with_each_other_as_they_do(real_data: Path) -> None:
    # As in the paper of SQuAD 1.0: everybody's second answer against the other ones.
    data = json.loads((real_data / "squad" / "dev-v1.1.json").read_text(encoding="utf-8"))["data"]
    questions = [
        Question([answer["text"] for answer in answers[:1] + answers[2:]], answers[1]["text"], 0.0)
        for article in data
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
        if len(answers := question["answers"]) > 1
    ]
    scores = [score_answer(q.guess, q.answers, unanswerable=False) for q in questions]
    means = 100 * np.mean([(score.exact, score.f1) for score in scores], axis=0)
    assert means == pytest.approx(100 * np.mean([independently(q, version=1) for q in questions], axis=0), abs=1e-9)
    assert means == pytest.approx((81.5274, 91.0445), abs=1e-4)


def test_the_threshold_is_the_best_of_all_and_the_official_one(real_data: Path) -> None:
    questions = real_questions(real_data / "squad" / "dev-half-v2.0.json")
    scores = [
        score_answer(q.guess, q.answers, unanswerable=True).f1 if q.answers else float(q.guess == "") for q in questions
    ]
    odds = np.array([question.odds for question in questions])
    answerable = np.array([bool(question.answers) for question in questions])
    found = best_threshold(scores, odds.tolist(), answerable=answerable.tolist())
    some = [-100.0, found.odds, *odds[::10].tolist()]
    tried = {limit: np.where(odds > limit, ~answerable, scores).mean() for limit in some}
    assert found.score == pytest.approx(max(tried.values()), abs=1e-12)
    assert tried[found.odds] == pytest.approx(found.score, abs=1e-12)
    official = -2.007443690672517  # the odds of a question: ours lie halfway to the next
    assert 100 * found.score == pytest.approx(59.195309007740924, abs=1e-9)
    assert found.odds == pytest.approx((official + odds[odds > official + 1e-9].min()) / 2, abs=1e-9)


def test_where_answering_nothing_is_best_nothing_is_answered() -> None:
    odds = [-3.0, 1.0, 2.0]
    found = best_threshold([0.0, 0.0, 0.5], odds, answerable=[False, False, True])
    assert found.score == pytest.approx(2 / 3)
    assert found.odds == -4.0


def test_rounding_does_not_carry_a_question_over_the_threshold() -> None:
    found = best_threshold([1.0, 0.0, 1.0], [0.5, 2.0, 1.0], answerable=[True, False, True])
    assert (found.odds, found.score) == (1.5, 1.0)
    assert best_threshold([1.0], [0.5], answerable=[True]).odds == 1.5
    tied = best_threshold([1.0, 0.0, 0.0], [0.5, 0.5, 2.0], answerable=[True, False, False])
    assert (tied.odds, tied.score) == (-0.5, pytest.approx(2 / 3)), "equal odds are answered or withheld together"


@pytest.mark.parametrize(
    ("guess", "answers", "version", "expected"),
    [
        ("the Norman's", ["Normans"], 1, (1, 1)),
        ("in the year 1066", ["1066"], 1, (0, 0.5)),
        ("1066 1066", ["1066"], 1, (0, 2 / 3)),
        ("ten", ["eleven", "ten men"], 1, (0, 2 / 3)),
        (".", ["interventionism", "."], 1, (1, 0)),  # 1.1: compared, but without a word in common
        (".", ["interventionism", "."], 2, (0, 0)),  # 2.0: an answer that is nothing is left out
        ("", [], 2, (1, 1)),
        ("Normandy", [], 2, (0, 0)),
        ("", ["Normandy"], 2, (0, 0)),
    ],
)
def test_rules_by_hand(guess: str, answers: list[str], version: int, expected: tuple[float, float]) -> None:
    score = score_answer(guess, answers, unanswerable=version == 2)
    assert (score.exact, score.f1) == pytest.approx(expected)


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("aTheN.,’ \t\u00a0é—5'")), st.text(alphabet="an the.X’ "))
def test_any_two_texts_score_as_in_the_independent_way(guess: str, answer: str) -> None:
    for version in (1, 2):
        score = score_answer(guess, [answer], unanswerable=version == 2)
        assert (score.exact, score.f1) == pytest.approx(
            independently(Question([answer], guess, 0.0), version=version), abs=1e-12
        )


def test_normalising_keeps_what_is_not_ascii_punctuation() -> None:
    assert normalise_answer("The  “Étude”, a–b; an A") == "“étude” –b"
