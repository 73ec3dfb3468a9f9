"""Decisions as records, and records as files of every format."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from albert.errors import DataError, UsageError
from albert.inference.embed import Embed
from albert.inference.fill import Blank, Fill, Guess, PlainText
from albert.inference.records import check_output, decide_records, lines_of, output_format, write_records
from albert.labelled.catalog import read_inputs
from albert.tasks.candidates import Candidate
from albert.tasks.choice import Choice, ChoiceExample, Chosen
from albert.tasks.classification import Classification, MultiLabel, Regression, TextExample
from albert.tasks.classified import Label, Labels, Number
from albert.tasks.span import Answer, QuestionExample, SpanTask
from albert.tasks.tagging import TagExample, Tagged, TaggedSpan, TaggedWord, Tagging
from albert.tokenizer import Tokenizer

RECORDS = [
    {"text": 'a "b", c\td\ne', "label": "x", "probability": 0.5, "probabilities": {"x": 0.5, "é": 0.5}},
    {"text": "\ud800", "label": None, "probability": 1.0},
]


def test_every_kind_of_decision_has_its_record() -> None:
    text = TextExample("a text")
    assert Classification(("x", "y")).record(text, Label("x", {"x": 0.9, "y": 0.1})) == {
        "text": "a text", "label": "x", "probability": 0.9, "probabilities": {"x": 0.9, "y": 0.1},
    }  # fmt: skip
    assert MultiLabel(("x",)).record(TextExample("a", "b"), Labels(("x",), {"x": 0.9})) == {
        "text": "a", "pair": "b", "labels": ["x"], "probabilities": {"x": 0.9},
    }  # fmt: skip
    assert Regression().record(text, Number(2.5)) == {"text": "a text", "value": 2.5}
    assert Choice().record(ChoiceExample("p", "Who?", ("a", "b")), Chosen(1, "b", (0.2, 0.8))) == {
        "question": "Who?", "choice": 1, "answer": "b", "probability": 0.8, "probabilities": [0.2, 0.8],
    }  # fmt: skip
    assert Embed(16).record(PlainText("x"), np.array([0.12345678, 1], dtype=np.float64))["vector"] == [0.123457, 1.0]
    blank = Blank(2, 8, (Guess("b", "▁b", 0.7),))
    assert Fill((), 16).record(PlainText("a [MASK]"), (blank,))["blanks"][0]["guesses"][0]["probability"] == 0.7


def test_an_answer_keeps_its_best_candidates_and_the_id_of_its_question() -> None:
    candidates = tuple(Candidate(f"c{i}", i, i + 1, -float(i), 0.1) for i in range(9))
    answer = Answer("c0", 0, 1, 0.6, 0.1, -3.0, candidates)
    record = SpanTask().record(QuestionExample("Who?", "passage", id="q7"), answer)
    assert list(record)[:3] == ["id", "question", "answer"]
    assert (record["answer"], record["start"], record["end"], record["no_answer"]) == ("c0", 0, 1, 0.1)
    assert [one["text"] for one in record["candidates"]] == ["c0", "c1", "c2", "c3", "c4"]
    assert "id" not in SpanTask().record(QuestionExample("Who?", "passage"), answer)


def test_tags_come_with_the_text_that_their_places_are_of() -> None:
    given = Tagged((TaggedWord("Ann", "B-PER", 0.8, 0, 3),), (TaggedSpan("Ann", "PER", 0.8, 0, 3),))
    record = Tagging(("O", "B-PER")).record(TagExample(("Ann", "left"), text="Ann left!"), given)
    assert record["text"] == "Ann left!"
    assert record["spans"] == [{"text": "Ann", "type": "PER", "probability": 0.8, "start": 0, "end": 3}]
    assert record["words"][0]["tag"] == "B-PER"
    assert Tagging(("O", "B-PER")).record(TagExample(("Ann", "left")), given)["text"] == "Ann left"


def test_a_stream_is_decided_as_it_comes_with_each_input_beside_its_decision(word_tokenizer: Tokenizer) -> None:
    taken: list[str] = []

    def examples() -> Iterator[TextExample]:
        for name in "abcd":
            taken.append(name)
            yield TextExample(name)

    class InPairs:
        tokenizer = word_tokenizer

        def predict_encoded(self, task: Any, given: Iterator[tuple[TextExample, Any]]) -> Iterator[Number]:
            for (one, _), (other, _) in zip(given, given, strict=True):
                yield Number(float(ord(one.text)))
                yield Number(float(ord(other.text)))

    records = decide_records(InPairs(), Regression(), examples())  # type: ignore[arg-type]
    assert next(records) == {"text": "a", "value": 97.0}
    assert taken == ["a", "b"]
    assert [record["text"] for record in records] == ["b", "c", "d"]


def test_columns_that_were_read_as_one_text_are_not_written_again_as_one(
    word_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    path = tmp_path / "news.jsonl"
    path.write_text('{"nr": 7, "title": "A ship", "body": "came in"}\n{"nr": 8, "title": "", "body": ""}\n')
    examples = read_inputs(Regression(), path, {"text": "title,body"})

    class Lengths:
        tokenizer = word_tokenizer

        def predict_encoded(self, task: Any, given: Iterator[tuple[TextExample, Any]]) -> Iterator[Number]:
            return (Number(float(len(one.text))) for one, _ in given)

    assert list(decide_records(Lengths(), Regression(), examples)) == [  # type: ignore[arg-type]
        {"nr": 7, "title": "A ship", "body": "came in", "value": 14.0, "warning": None},
        {"nr": 8, "title": "", "body": "", "value": 0.0, "warning": "empty text"},
    ]


@pytest.mark.parametrize("name", ["out.jsonl", "out.json", "out.csv", "out.tsv"])
def test_the_number_of_records_is_given_whatever_lines_a_format_adds(name: str, tmp_path: Path) -> None:
    for records in (RECORDS, RECORDS[:1], []):
        assert write_records(tmp_path / name, iter(records)) == len(records)
        assert (tmp_path / name).exists()


def test_json_comes_back_as_it_was_also_half_characters(tmp_path: Path) -> None:
    write_records(tmp_path / "a.jsonl", RECORDS)
    text = (tmp_path / "a.jsonl").read_text(encoding="utf-8", errors="surrogatepass")
    assert [json.loads(line) for line in text.splitlines()] == RECORDS
    assert "é" in text, "written as it reads"
    write_records(tmp_path / "a.json", RECORDS)
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8", errors="surrogatepass")) == RECORDS


def test_a_table_has_the_columns_of_the_first_record_and_json_in_cells(tmp_path: Path) -> None:
    write_records(tmp_path / "a.csv", RECORDS)
    with (tmp_path / "a.csv").open(encoding="utf-8", errors="surrogatepass", newline="") as file:
        head, first, second = csv.reader(file)
    assert head == ["text", "label", "probability", "probabilities"]
    assert first == ['a "b", c\td\ne', "x", "0.5", '{"x": 0.5, "é": 0.5}']
    assert second[1:] == ["", "1.0", ""]


def test_a_column_that_only_later_records_have_is_kept_or_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [{"text": "a"}, {"text": "b", "id": 1}, {"text": "c", "id": 2}]
    write_records(tmp_path / "a.csv", rows)
    assert (tmp_path / "a.csv").read_text().splitlines()[1:] == ["a", "b", "c"]
    (warning,) = [line for line in caplog.messages if "left out" in line]
    assert warning.startswith("row 2 has id, which the first row has not")
    write_records(tmp_path / "a.parquet", rows)
    assert pq.read_table(tmp_path / "a.parquet").column("id").to_pylist() == [None, 1, 2]


def test_line_ends_and_numbers_that_are_none_come_back(tmp_path: Path) -> None:
    records = [{"text": "one\rtwo", "value": math.nan}, {"text": 'a "b"\nc', "value": 2.0}]
    write_records(tmp_path / "a.csv", records)
    with (tmp_path / "a.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["text", "value"], ["one\rtwo", ""], ['a "b"\nc', "2.0"]]
    write_records(tmp_path / "a.jsonl", [{"text": "one", "list": [math.inf, 1]}])
    assert (tmp_path / "a.jsonl").read_text() == '{"text": "one", "list": [null, 1]}\n'


def test_tsv_has_no_quoting_so_spaces_stand_for_tabs_and_line_ends() -> None:
    assert list(lines_of(RECORDS[:1], "tsv"))[1].split("\t")[:2] == ['a "b", c d e', "x"]


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    def broken() -> Iterator[dict[str, Any]]:
        yield RECORDS[0]
        raise ZeroDivisionError

    (tmp_path / "a.csv").write_text("as before")
    with pytest.raises(ZeroDivisionError):
        write_records(tmp_path / "a.csv", broken())
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
    assert (tmp_path / "a.csv").read_text() == "as before"


def test_an_unknown_format_and_the_input_itself_are_refused(tmp_path: Path) -> None:
    assert output_format(Path("x.tsv")) == "tsv"
    with pytest.raises(UsageError, match=r"--out x\.xlsx: the format is told by the name: end it in \.jsonl, \.csv"):
        output_format(Path("x.xlsx"))
    data, link = tmp_path / "a.csv", tmp_path / "b.csv"
    data.touch()
    link.symlink_to(data)
    with pytest.raises(UsageError, match=r"--out .*b\.csv: is the input itself"):
        check_output("--out", link, None, data)
    check_output("--out", tmp_path / "new.csv", None, data)


def test_a_column_of_parquet_may_be_empty_for_a_long_while_and_must_have_one_type(tmp_path: Path) -> None:
    rows = [{"start": None, "nothing": None, "part": {"x": 1}}] * 5000 + [
        {"start": 7, "nothing": None, "part": {"y": 2.0}}
    ]
    assert write_records(tmp_path / "a.parquet", rows) == 5001
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.column("start").to_pylist()[-2:] == [None, 7]
    assert table.column("part").to_pylist()[-1] == {"x": None, "y": 2.0}
    assert write_records(tmp_path / "none.parquet", []) == 0
    with pytest.raises(DataError, match=r"b\.parquet: a column holds values that have no common type .*write \.jsonl"):
        write_records(tmp_path / "b.parquet", [{"id": 7}, {"id": "x"}])
    assert not (tmp_path / "b.parquet").exists()
