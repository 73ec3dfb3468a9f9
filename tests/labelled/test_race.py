"""RACE's folders, made by hand and real."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from albert.errors import DataError, UsageError
from albert.labelled.catalog import DataRequest, open_data, read_inputs
from albert.labelled.race import read_passage
from albert.tasks.choice import Choice, Chosen
from albert.tasks.classification import Regression

PASSAGE: dict[str, Any] = {
    "article": "The ship came in.",
    "questions": ["What came  _ ?", "Who was there?"],
    "options": [["in", "out", "up", "down"], ["nobody", "a dog", "Maria", "Peter"]],
    "answers": ["A", "D"],
    "id": "high1.txt",
}


def write(folder: Path, **changes: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{len(list(folder.glob('*')))}.txt"
    file.write_text(json.dumps(PASSAGE | changes))
    return file


@pytest.fixture
def race(tmp_path: Path) -> Path:
    for split, level, count in (("train", "middle", 3), ("train", "high", 2), ("dev", "middle", 1), ("dev", "high", 2)):
        for number in range(count):
            write(tmp_path / split / level, article=f"{split} {level} {number}")
    return tmp_path


def test_a_folder_is_recognised_and_its_levels_are_groups(race: Path) -> None:
    opened = open_data(DataRequest(race))
    assert opened.task == Choice(4, max_length=512, blank="_")
    assert len(opened.splits.train) == 10
    assert [example.group for example in opened.splits.dev["dev"]] == ["middle"] * 2 + ["high"] * 4
    assert opened.splits.train[1].question == "Who was there?"
    assert opened.splits.train[1].target == 3


def test_the_questions_about_one_passage_are_held_out_together(race: Path) -> None:
    opened = open_data(DataRequest(race / "train", holdout=0.2))
    train, dev = ({example.passage for example in part} for part in (opened.splits.train, opened.splits.dev["dev"]))
    assert dev
    assert not train & dev
    assert len(train | dev) == 5


def test_half_a_surrogate_pair_is_mended_and_counted(race: Path) -> None:
    file = write(race / "train" / "high", article="A \ud83d ship")
    opened = open_data(DataRequest(race / "train"))
    assert "A \ufffd ship" in {example.passage for example in [*opened.splits.train, *opened.splits.dev["dev"]]}
    assert any(note.endswith(f"U+FFFD: 1, the first at {file}:1") for note in opened.notes)


def test_a_model_is_evaluated_on_dev_alone(race: Path) -> None:
    opened = open_data(DataRequest(race), task=Choice(4, max_length=128, blank="_"))
    assert opened.task.max_length == 128
    assert not opened.splits.train
    assert len(opened.splits.dev["dev"]) == 6
    split = open_data(DataRequest(race / "dev"), task=Choice(4))
    assert len(split.splits.dev["dev"]) == 6
    with pytest.raises(UsageError, match="race is a choice task, the model was made for regression"):
        open_data(DataRequest(race, task="race"), task=Regression())


def test_questions_to_predict_need_no_answers(race: Path) -> None:
    write(race / "test" / "high", answers=None)
    examples = list(read_inputs(Choice(4), race / "test", {}))
    assert [example.target for example in examples] == [None, None]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"options": [["in", "out", "up", "down"], ["nobody", "a dog", "Maria"]]}, "question 2: 3 choices, must be 4"),
        ({"options": [["in", "out", "up", ""], PASSAGE["options"][1]]}, "question 1, choice D: '' must be a text"),
        ({"answers": ["A", "E"]}, "question 2: answer 'E' must be one of the letters A, B, C, D"),
        ({"answers": ["A"]}, "2 questions, 2 options, 1 answers: there must be as many of each"),
        ({"answers": "AD"}, "answers is not a list"),
        ({"questions": None}, "questions is missing"),
        ({"questions": ["", "x"]}, "question 1: '' must be a text"),
        ({"article": " "}, "article=' ': a passage needs its text"),
    ],
)
def test_a_defect_is_named_with_its_file_and_question(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    file = write(tmp_path / "dev" / "high", **changes)
    with pytest.raises(DataError) as caught:
        list(read_passage(file))
    assert str(caught.value).startswith(f"{file}: {message}")


def test_wrong_json_and_empty_folders_are_named(tmp_path: Path) -> None:
    file = write(tmp_path / "dev" / "high")
    file.write_text("{")
    with pytest.raises(DataError, match=r"0\.txt: is not valid JSON"):
        list(read_passage(file))
    file.unlink()
    with pytest.raises(DataError, match="no passages"):
        open_data(DataRequest(tmp_path / "dev"))
    with pytest.raises(DataError, match="not RACE"):
        open_data(DataRequest(tmp_path / "dev" / "high", task="race"))


def test_the_real_dev_set_is_whole(real_data: Path) -> None:
    dev = open_data(DataRequest(real_data / "race"), task=Choice(4)).splits.dev["dev"]
    assert len(dev) == 4887
    assert sum(example.group == "middle" for example in dev) == 1436
    assert sum("_" in example.question for example in dev) == 2575


def test_the_score_of_one_letter_on_the_real_dev_set_is_its_share_counted_from_the_files(real_data: Path) -> None:
    task = Choice(4)
    dev = open_data(DataRequest(real_data / "race"), task=task).splits.dev["dev"]
    scores = task.score(dev, [Chosen(2, example.choices[2], ()) for example in dev])
    counts = {}
    for level in ("middle", "high"):
        files = (real_data / "race" / "dev" / level).iterdir()
        letters = "".join("".join(json.loads(file.read_text())["answers"]) for file in files)
        counts[level] = (letters.count("C"), len(letters))
        assert scores[f"accuracy_{level}"] == letters.count("C") / len(letters)
    right, total = (sum(column) for column in zip(*counts.values(), strict=True))
    assert scores["accuracy"] == right / total
