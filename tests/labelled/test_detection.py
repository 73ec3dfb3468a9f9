"""Which task a table is for: by names, by contents, and an error where both leave a choice."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from albert.errors import DataError, UsageError
from albert.labelled.detection import detect, find_columns
from albert.labelled.rows import Row

WORDS = ["the", "cat", "sat", "on", "the", "old", "mat", "and", "looked", "at", "rain"]


def text(number: int) -> str:
    return " ".join(WORDS[(number + k) % 10] for k in range(6)) + f" {number}"


def table(count: int = 20, **columns: Any) -> list[Row]:
    """Make rows; a column is a function of the row's number or a list that repeats."""
    return [
        Row({n: c(i) if callable(c) else c[i % len(c)] for n, c in columns.items()}, Path("t.csv"), i + 2)
        for i in range(count)
    ]


@pytest.mark.parametrize(
    ("columns", "task", "found"),
    [
        ({"text": text, "label": ["a", "b"]}, "classification", {"text": "text", "label": "label"}),
        ({"Text": text, "Label": ["0", "1"]}, "classification", {"text": "Text", "label": "Label"}),
        ({"idx": str, "body_text": text, "kind": ["a", "b"]}, "classification", {"text": "body_text", "label": "kind"}),
        (
            {"premise": text, "hypothesis": text, "label": ["x", "y", "z"]},
            "classification",
            {"text": "premise", "pair": "hypothesis", "label": "label"},
        ),
        (
            {"id": str, "sentence1": text, "sentence2": text, "score": lambda i: f"{i / 7:.3f}"},
            "regression",
            {"text": "sentence1", "pair": "sentence2", "label": "score"},
        ),
        ({"review": text, "stars": ["1", "2", "5"]}, "classification", {"text": "review", "label": "stars"}),
        ({"review": text, "price": lambda i: 1000 + 37 * i * i}, "regression", {"text": "review", "label": "price"}),
        ({"text": text, "labels": [["a"], ["a", "b"], []]}, "multi-label", {"text": "text", "label": "labels"}),
        ({"text": text, "labels": ["a|b", "b", ""]}, "multi-label", {"text": "text", "label": "labels"}),
        ({"text": text, "label": ["a|b", "b"]}, "classification", {"text": "text", "label": "label"}),
        (
            {"comment_text": text, "toxic": ["0", "1"], "rude": ["0", "0", "1"]},
            "multi-label",
            {"text": "comment_text", "label": "toxic,rude"},
        ),
        (
            {"tokens": [["a", "b"]], "ner_tags": [["O", "B-X"]]},
            "tagging",
            {"tokens": "tokens", "tags": "ner_tags"},
        ),
        (
            {"nr": int, "etiquettes": [["O", "B-X"], ["O"]], "mots": lambda i: ["le", f"chat{i}"][i % 2 :]},
            "tagging",
            {"tokens": "mots", "tags": "etiquettes"},
        ),
        ({"nr": str, "body_text": text, "kind": ["a", "b"]}, "classification", {"text": "body_text", "label": "kind"}),
        (
            {"article": text, "question": text, "options": [["a", "b"]], "answer": ["A"]},
            "choice",
            {"question": "question", "choices": "options", "context": "article", "label": "answer"},
        ),
        (
            {"context": text, "question": text, "answers": [{"text": ["a"], "answer_start": [0]}]},
            "squad",
            {"context": "context", "question": "question", "answers": "answers"},
        ),
    ],
)
def test_tasks_are_found_with_their_columns_and_reasons(
    columns: dict[str, Any], task: str, found: dict[str, str]
) -> None:
    result = detect(table(120, **columns), "t.csv")
    assert (result.task, dict(result.columns)) == (task, found)
    assert result.reasons[0].startswith(f"{task}: ")


@pytest.mark.parametrize(
    ("columns", "told", "message"),
    [
        (
            {"tale": text, "story": text, "label": ["a", "b"]},
            {},
            "'tale' or 'story' may be the text.*--columns text=",
        ),
        ({"text": text, "x": ["a", "b"], "z": ["c", "d"]}, {}, "'x' or 'z' may be the label.*--columns label="),
        ({"text": text, "other": text}, {}, "no column of labels among 'text', 'other'.*header"),
        (
            {"great movie": text, "label": ["a"]},
            {"text": "txt"},
            "no column 'txt' for text: .*'great movie', 'label'|known",
        ),
        ({"a": ["1", "2"], "label": ["a", "b"]}, {}, "no column of text among 'a', 'label'.*header"),
        ({"text": text, "label": ["a", "b"]}, {"label": "lable"}, "no column 'lable' for label: did you mean 'label'"),
    ],
)
def test_what_can_be_read_in_two_ways_or_none_is_refused_with_the_option_to_give(
    columns: dict[str, Any], told: dict[str, str], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        detect(table(**columns), "t.csv", columns=told)


def test_only_tables_are_told_to_have_a_header() -> None:
    row = Row({"words": ["a"], "more": ["b", "c"], "count": 3}, Path("t.jsonl"), 1)
    with pytest.raises(
        DataError, match=r"no column of text among 'words', 'more', 'count': name the right one \(--columns text"
    ):
        detect([row], "t.jsonl")


def test_what_a_user_says_holds() -> None:
    rows = table(title=text, story=text, label=["1", "2"], other=["a", "b"])
    found = detect(rows, "t.csv", columns={"text": "story", "pair": "title", "label": "other"})
    assert found.columns == {"text": "story", "pair": "title", "label": "other"}
    assert detect(rows, "t.csv", columns={"text": "story"}, task="regression").task == "regression"
    with pytest.raises(UsageError, match="needs --columns text="):
        detect(rows, "t.csv", columns={"pair": "title"})
    with pytest.raises(DataError, match="not what tagging needs: tokens and tags"):
        detect(rows, "t.csv", task="tagging")


def test_a_label_that_is_not_a_number_once_is_not_hidden_by_its_being_NaN() -> None:
    assert detect(table(text=text, score=["1.5", "nan", "2.5"]), "t.csv").task == "regression"


@pytest.mark.parametrize("bad", ["nan", "inf"])
def test_a_value_that_is_not_finite_ends_no_search_for_the_label(bad: str) -> None:
    columns = {"text": text, "price": lambda i: str(7 * i % 20), "amount": ["3", bad, "5"]}
    with pytest.raises(DataError, match="'price' or 'amount' may be the label: say which"):
        detect(table(**columns), "t.csv")
    found = detect(table(text=text, label=["0", "1", bad], label_text=["no", "yes", "yes"]), "t.csv")
    assert found.columns["label"] == "label", "the names are not one for every whole number"


def test_a_gap_in_a_column_of_whole_numbers_does_not_make_quantities_of_them() -> None:
    found = detect(table(text=text, label=[0.0, math.nan, 1.0]), "t.parquet")
    assert (found.task, found.reasons[0]) == (
        "classification",
        "classification: 'label' holds 2 different whole numbers",
    )


@pytest.mark.parametrize("day", ["2026-03-{:02}", "{}.3.2026", "2026-03-{:02}T10:00:00", date])
def test_a_column_of_days_is_not_taken_for_the_label(day: Any) -> None:
    opened = [day.format(1 + k) if isinstance(day, str) else day(2026, 3, 1 + k) for k in range(4)]
    rows = table(title=text, opened=opened, queue=["Billing", "Outage", "Account"])
    assert detect(rows, "t.csv").columns == {"text": "title", "label": "queue"}


def test_rows_to_predict_need_only_texts() -> None:
    assert find_columns(Row({"text": "a"}, Path("t"), 1), {"label": "gone"}) == {"text": "text"}
    with pytest.raises(DataError, match="no column 'sentence' for text"):
        find_columns(Row({"text": "a"}, Path("t"), 1), {"text": "sentence"})
    assert find_columns(Row({"id": "1", "sentence": "a b c d"}, Path("t"), 1), {}) == {"text": "sentence"}
    pair = find_columns(Row({"premise": "a", "hypothesis": "b", "label": ""}, Path("t"), 1), {"label": "gone"})
    assert pair == {"text": "premise", "pair": "hypothesis"}


def test_no_rows_are_an_error() -> None:
    with pytest.raises(DataError, match="no rows"):
        detect([], "t.csv")


@pytest.mark.parametrize("body", ["content", "description"])
def test_a_title_and_its_text_are_read_as_one(body: str) -> None:
    rows = table(label=["0", "1", "2"], title=lambda i: f"Ship {i}", **{body: text})
    found = detect(rows, "news.csv")
    assert found.columns == {"text": f"title,{body}", "label": "label"}
    assert f"--columns text={body} reads it alone" in " ".join(found.reasons)
    assert detect(rows, "news.csv", columns={"text": body}).columns["text"] == body
    pairs = table(title=text, premise=text, hypothesis=lambda i: f"so {i}", label=["x", "y"])
    assert detect(pairs, "nli.csv").columns == {"text": "premise", "pair": "hypothesis", "label": "label"}


def test_the_name_of_a_column_decides_where_whole_numbers_can_be_both() -> None:
    intents = {"text": text, "label": lambda i: i % 77}
    assert detect(table(400, **intents), "banking.csv").task == "classification"
    assert detect(table(400, text=text, price=lambda i: i % 77), "prices.csv").task == "regression"
    assert detect(table(400, text=text, label=lambda i: 3 * (i % 77)), "gaps.csv").task == "regression"
    pair = {"sentence1": text, "sentence2": text}
    assert detect(table(60, **pair, score=lambda i: i % 6), "sts.tsv").task == "regression"
    assert detect(table(60, **pair, score=lambda i: i % 2), "same.tsv").task == "classification"
    assert detect(table(60, **pair, label=lambda i: i % 3), "nli.tsv").task == "classification"
    assert detect(table(60, text=text, score=lambda i: i % 6), "stars.tsv").task == "classification"
