"""Question data: SQuAD's files, tables in SQuAD form, what is wrong with them, splits and prediction files."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from albert.errors import DataError, UsageError
from albert.labelled.catalog import DataRequest, open_data, read_inputs
from albert.labelled.squad import read_squad, write_predictions
from albert.tasks.span import CONDITIONAL, PLAIN, Answer, AnswerText, SpanTask

PASSAGE = "In 1066 Duke William of Normandy won the Battle of Hastings."


def squad(*, articles: int = 1, impossible: bool = False) -> dict[str, Any]:
    """Make a SQuAD document; every article has two passages with one question each."""
    data = []
    for number in range(articles):
        paragraphs = []
        for part in range(2):
            question: dict[str, Any] = {
                "id": f"{number}-{part}",
                "question": f"Who won battle {number}?",
                "answers": [{"text": "Duke William", "answer_start": 8}],
            }
            if impossible:
                question["is_impossible"] = part == 1
                question["answers"] = [] if part else question["answers"]
            paragraphs.append({"context": f"{PASSAGE} ({number}.{part})", "qas": [question]})
        data.append({"title": f"Battle {number}", "paragraphs": paragraphs})
    return {"version": "1.1", "data": data}


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_real_files_are_read_whole(real_data: Path) -> None:
    first = list(read_squad(real_data / "squad" / "dev-v1.1.json", labelled=True))
    assert len(first) == 10570
    assert sum(len(example.answers or ()) for example in first) == 34726
    second = list(read_squad(real_data / "squad" / "dev-half-v2.0.json", labelled=True))
    assert len(second) == 6078
    assert sum(example.answers == () for example in second) == 3168
    assert len({example.article for example in second}) == 16


def test_the_half_of_dev_2_is_split_by_article(real_data: Path) -> None:
    opened = open_data(DataRequest(real_data / "squad" / "dev-half-v2.0.json", holdout=0.25))
    train, dev = opened.splits.train, opened.splits.dev["dev"]
    assert isinstance(opened.task, SpanTask)
    assert (opened.task.head, opened.task.unanswerable, opened.task.max_length) == (CONDITIONAL, True, 512)
    assert len(train) + len(dev) == 6078
    assert {example.article for example in train} & {example.article for example in dev} == set()
    assert any("held out by article" in note for note in opened.notes)


def test_the_head_follows_the_data_unless_it_is_named(tmp_path: Path) -> None:
    plain = write(tmp_path / "one.json", squad(articles=3))
    mixed = write(tmp_path / "two.json", squad(articles=3, impossible=True))
    assert open_data(DataRequest(plain)).task == SpanTask(head=PLAIN, max_length=384)
    assert open_data(DataRequest(mixed)).task == SpanTask(head=CONDITIONAL, unanswerable=True, max_length=512)
    named = open_data(DataRequest(mixed, head=PLAIN, max_length=256)).task
    assert named == SpanTask(head=PLAIN, unanswerable=True, max_length=256)
    with pytest.raises(UsageError, match="did you mean 'span'"):
        open_data(DataRequest(mixed, head="spam"))


def test_a_folder_is_opened_by_the_names_of_its_files(tmp_path: Path) -> None:
    write(tmp_path / "train-v1.1.json", squad(articles=2))
    write(tmp_path / "dev-v1.1.json", squad(articles=1))
    opened = open_data(DataRequest(tmp_path))
    assert (len(opened.splits.train), len(opened.splits.dev["dev"])) == (4, 2)
    assert any("warning: 2 of 2 rows of dev are in the training data too" in note for note in opened.notes)
    evaluated = open_data(DataRequest(tmp_path), task=SpanTask())
    assert (len(evaluated.splits.train), len(evaluated.splits.dev["dev"])) == (0, 2)
    write(tmp_path / "dev-v2.0.json", squad())
    with pytest.raises(DataError, match=r"dev-v1\.1\.json, dev-v2\.0\.json: which one"):
        open_data(DataRequest(tmp_path))


def test_one_article_is_split_by_passage(tmp_path: Path) -> None:
    opened = open_data(DataRequest(write(tmp_path / "one.json", squad(articles=1))))
    assert (len(opened.splits.train), len(opened.splits.dev["dev"])) == (1, 1)
    assert "held out by passage" in opened.notes


def test_a_model_of_1_1_is_scored_on_2_0_with_a_threshold_sought_there(tmp_path: Path) -> None:
    opened = open_data(DataRequest(write(tmp_path / "two.json", squad(impossible=True))), task=SpanTask())
    assert opened.task == SpanTask(unanswerable=True)
    assert any("has not been told of" in note for note in opened.notes)


def test_questions_without_answers_in_test_alone_are_scored_or_have_none_to_give_away(tmp_path: Path) -> None:
    train = write(tmp_path / "train.json", squad(articles=4))
    opened = open_data(DataRequest(train, test=write(tmp_path / "two.json", squad(articles=1, impossible=True))))
    assert isinstance(opened.task, SpanTask)
    assert any("warning: test: 1 questions have no answer" in note for note in opened.notes)
    said = [Answer("Duke William", 8, 20, 1.0, 0.0, 0.0, ()) for _ in opened.splits.test["test"]]
    assert opened.task.score(opened.splits.test["test"], said)["f1"] == 0.5
    hidden = squad(articles=1)
    for paragraph in hidden["data"][0]["paragraphs"]:
        paragraph["qas"][0]["answers"] = []
    opened = open_data(DataRequest(train, test=write(tmp_path / "hidden.json", hidden)))
    assert [example.answers for example in opened.splits.test["test"]] == [None, None]  # type: ignore[attr-defined]


def change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Return a function that sets, or with `...` removes, one place of a document."""

    def apply(document: Any) -> None:
        *steps, last = [int(step) if step.isdecimal() else step for step in path.split(".")]
        for step in steps:
            document = document[step]
        if value is ...:
            del document[last]
        else:
            document[last] = value

    return apply


FIRST = "data.0.paragraphs.1.qas.0"
SHOWN = r"bad\.json: data\[0\]\.paragraphs\[1\]\.qas\[0\]"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("data", ..., r"bad\.json: data: is missing"),
        ("data", "x", r"bad\.json: data='x': must be a list"),
        ("data", [], r"bad\.json: no questions"),
        ("data.0", 7, r"bad\.json: data\[0\]: a JSON int, must be an object with 'paragraphs'"),
        ("data.0.paragraphs.1.context", "  ", r"data\[0\]\.paragraphs\[1\]\.context: is empty"),
        (f"{FIRST}.question", ..., SHOWN + r"\.question: is missing"),
        (f"{FIRST}.id", 12, SHOWN + r"\.id='12': must be a text"),
        (f"{FIRST}.id", "0-0", SHOWN + r": id '0-0' is also at .*paragraphs\[0\]\.qas\[0\]: give every"),
        (f"{FIRST}.answers", ..., SHOWN + r"\.answers: is missing"),
        (f"{FIRST}.answers.0.answer_start", "8", SHOWN + r"\.answers\[0\]\.answer_start='8': must be a whole number"),
        (f"{FIRST}.answers.0.answer_start", True, r"answer_start='True': must be a whole number"),
        (f"{FIRST}.answers.0.answer_start", 900, r"answer_start=900 is outside .* has 66 .* stands at 8"),
        (f"{FIRST}.answers.0.answer_start", -1, r"answer_start=-1 is outside the passage"),
        (
            f"{FIRST}.answers.0.answer_start",
            9,
            SHOWN + r"\.answers\[0\]: answer 'Duke William' does not stand at answer_start=9, where the passage has "
            r"'uke William ': it stands at 8: correct answer_start",
        ),
        (f"{FIRST}.answers.0.text", "duke William", r"'duke William' does not stand .* nowhere in the passage"),
        (f"{FIRST}.answers.0.text", " ", r"answers\[0\]: the answer's text is empty"),
        (f"{FIRST}.is_impossible", True, SHOWN + r": is_impossible=True with 1 answers"),
    ],
)  # fmt: skip
def test_wrong_json_is_named_by_its_place(tmp_path: Path, path: str, value: Any, message: str) -> None:
    document = squad()
    change(path, value)(document)
    with pytest.raises(DataError, match=message):
        open_data(DataRequest(write(tmp_path / "bad.json", document)))


def test_what_is_not_json_and_what_cannot_be_split_are_refused(tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_text('{"data": [', encoding="utf-8")
    with pytest.raises(DataError, match=r"cut\.json: is not valid JSON"):
        open_data(DataRequest(tmp_path / "cut.json"))
    document = squad()
    del document["data"][0]["paragraphs"][1]
    with pytest.raises(DataError, match="can't be divided into train and dev"):
        open_data(DataRequest(write(tmp_path / "one.json", document)))
    (tmp_path / "folder").mkdir()
    write(tmp_path / "folder" / "dev.json", squad())
    with pytest.raises(DataError, match=r"no file train\*\.json"):
        open_data(DataRequest(tmp_path / "folder"))


ROWS = [
    {"id": "a", "title": "One", "context": PASSAGE, "question": "Who?", "answer": "Duke William", "answer_start": 8},
    {"id": "b", "title": "Two", "context": PASSAGE + "!", "question": "When?", "answer": "1066", "answer_start": 3},
    {"id": "c", "title": "Three", "context": PASSAGE + "?", "question": "Why?", "answer": None, "answer_start": None},
]
EXPECTED = {"a": (AnswerText("Duke William", 8),), "b": (AnswerText("1066", 3),), "c": ()}


def write_table(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("name", ["q.csv", "q.jsonl", "q.parquet"])
def test_tables_in_squad_form_give_the_same_questions(tmp_path: Path, name: str) -> None:
    opened = open_data(DataRequest(write_table(tmp_path / name, ROWS)))
    examples = [*opened.splits.train, *opened.splits.dev["dev"]]
    assert {example.id: example.answers for example in examples} == EXPECTED
    assert {example.article for example in examples} == {"One", "Two", "Three"}
    assert opened.columns["context"] == "context"
    assert opened.task.head == CONDITIONAL


@pytest.mark.parametrize("name", ["q.jsonl", "q.parquet"])
@pytest.mark.parametrize("form", ["public", "official"])
def test_tables_may_hold_lists_of_answers(tmp_path: Path, name: str, form: str) -> None:
    rows = []
    for row in ROWS:
        pairs = [] if row["answer"] is None else [(row["answer"], row["answer_start"])]
        answers: Any = [{"text": text, "answer_start": start} for text, start in pairs]
        if form == "public":
            answers = {"text": [text for text, _ in pairs], "answer_start": [start for _, start in pairs]}
        rows.append({"id": row["id"], "context": row["context"], "question": row["question"], "answers": answers})
    opened = open_data(DataRequest(write_table(tmp_path / name, rows)))
    examples = [*opened.splits.train, *opened.splits.dev["dev"]]
    assert {example.id: example.answers for example in examples} == EXPECTED


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("answer_start", 9, r"q\.jsonl:2: answer '1066' does not stand at answer_start=9, .* it stands at 3"),
        ("answer_start", 3.5, r"q\.jsonl:2: answer_start=3\.5 must be a whole number"),
        ("answer_start", None, r"q\.jsonl:2: answer_start=None must be a whole number"),
        ("answer_start", "x", r"q\.jsonl:2: column 'answer_start' holds 'x', must be a finite number"),
        ("context", "", r"q\.jsonl:2: column 'context' is empty"),
        ("id", "a", r"q\.jsonl:2: id 'a' is also at .*q\.jsonl:1"),
    ],
)
def test_a_wrong_row_is_named_by_its_line(tmp_path: Path, field: str, value: Any, message: str) -> None:
    rows = [dict(row) for row in ROWS]
    rows[1][field] = value
    with pytest.raises(DataError, match=message):
        open_data(DataRequest(write_table(tmp_path / "q.jsonl", rows)))


def test_columns_can_be_named_and_a_missing_one_is_said(tmp_path: Path) -> None:
    rows = [{("body" if key == "context" else key): value for key, value in row.items()} for row in ROWS]
    path = write_table(tmp_path / "q.jsonl", rows)
    with pytest.raises(DataError, match=r"q\.jsonl:1: no column 'context' among 'id', .*--columns context=NAME"):
        open_data(DataRequest(path, task="squad"))
    opened = open_data(DataRequest(path, task="squad", columns={"context": "body"}))
    assert opened.columns["context"] == "body"
    assert len(opened.splits.train) + len(opened.splits.dev["dev"]) == 3
    bare = write_table(tmp_path / "bare.jsonl", [{"context": PASSAGE, "question": "Who?"}])
    with pytest.raises(DataError, match=r"no column 'answers' \(or answer and answer_start\)"):
        open_data(DataRequest(bare, task="squad"))


def test_questions_to_answer_need_no_answers(tmp_path: Path) -> None:
    rows = [{"context": PASSAGE, "question": f"Who {number}?"} for number in range(3)]
    path = write_table(tmp_path / "q.jsonl", rows)
    examples: list[Any] = list(read_inputs(SpanTask(), path, {}))
    assert [(example.id, example.question, example.answers) for example in examples] == [
        ("1", "Who 0?", None),
        ("2", "Who 1?", None),
        ("3", "Who 2?", None),
    ]
    document = squad()
    document["data"][0]["paragraphs"][0]["qas"][0]["answers"][0]["answer_start"] = 999  # not looked at
    assert len(list(read_inputs(SpanTask(), write(tmp_path / "q.json", document), {}))) == 2


def test_half_a_surrogate_pair_is_mended_and_counted(tmp_path: Path) -> None:
    document = squad(articles=10)
    document["data"][3]["title"] = "\ud83d"
    paragraph = document["data"][4]["paragraphs"][0]
    paragraph["context"] = "\ud83d" + paragraph["context"]
    paragraph["qas"][0]["answers"] = [{"text": "\ud83dIn", "answer_start": 0}]
    path = write(tmp_path / "q.json", document)
    opened = open_data(DataRequest(path))
    examples = [*opened.splits.train, *opened.splits.dev["dev"]]
    assert len(examples) == 20
    assert [example.answers for example in examples if example.passage[0] == "\ufffd"] == [(("\ufffdIn", 0),)]
    assert any(note.endswith(f"U+FFFD: 3, the first at {path}:1") for note in opened.notes)
    for article in document["data"]:
        del article["title"]
    assert open_data(DataRequest(write(path, document))).splits.dev["dev"]


def test_predictions_are_written_as_the_official_scripts_take_them(tmp_path: Path) -> None:
    examples = list(read_squad(write(tmp_path / "two.json", squad(impossible=True)), labelled=True))
    answers = [Answer("Düke", 8, 12, 0.9, 0.1, -2.2, ()), Answer("", None, None, 0.8, 0.8, 1.4, ())]
    files = write_predictions(tmp_path / "out", examples, answers, null_odds=True)
    assert [json.loads(file.read_text(encoding="utf-8")) for file in files] == [
        {"0-0": "Düke", "0-1": ""},
        {"0-0": -2.2, "0-1": 1.4},
    ]
    assert [file.name for file in files] == ["predictions.json", "null_odds.json"]
    assert [file.name for file in write_predictions(tmp_path, examples, answers, null_odds=False)] == [
        "predictions.json"
    ]
