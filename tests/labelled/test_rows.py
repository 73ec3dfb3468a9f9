"""Rows of labelled tables: every format, quoting, line numbers, and what is wrong with its place."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path

import pyarrow
import pytest
import zstandard
from pyarrow import parquet

from albert.errors import DataError
from albert.labelled.rows import quoting_notes, read_rows
from albert.text.documents import ReadReport


def rows(path: Path) -> list[tuple[int, dict[str, object]]]:
    return [(row.line, dict(row.values)) for row in read_rows(path)]


def test_csv_with_line_ends_in_quotes_says_where_each_row_begins(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('text,label\n"one\ntwo, ""three""",x\n\nplain,y\r\n"last\r\nline",z')
    assert rows(path) == [
        (2, {"text": 'one\ntwo, "three"', "label": "x"}),
        (5, {"text": "plain", "label": "y"}),
        (6, {"text": "last\r\nline", "label": "z"}),
    ]


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_the_separator_of_csv_is_what_the_header_has_most_of(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f'"a text, or; two"{mark}label\nx{mark}1\n')
    assert rows(path) == [(2, {"a text, or; two": "x", "label": "1"})]


def test_tsv_has_no_quoting_and_ends_lines_with_line_feeds_only(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes('text\tlabel\n"open\tx\na "b" c\u2028d\x85e\ty\r\n\nlast\tz'.encode())
    assert rows(path) == [
        (2, {"text": '"open', "label": "x"}),
        (3, {"text": 'a "b" c\u2028d\x85e', "label": "y"}),
        (5, {"text": "last", "label": "z"}),
    ]


def test_a_byte_order_mark_is_not_part_of_the_first_column(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("\ufefftext\tlabel\na\tb\n", encoding="utf-8")
    assert rows(path) == [(2, {"text": "a", "label": "b"})]


def test_jsonl_and_parquet_keep_their_types_and_number_their_rows(tmp_path: Path) -> None:
    values = [{"text": "a", "label": ["x", "y"], "n": 1.5}, {"text": "b", "label": [], "n": 2.0}]
    lines = tmp_path / "a.jsonl"
    lines.write_text("\n\n".join(json.dumps(value) for value in values))
    assert rows(lines) == [(1, values[0]), (3, values[1])]
    table = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(values), table)
    assert rows(table) == [(1, values[0]), (2, values[1])]


@pytest.mark.parametrize(
    ("ending", "compress"), [("gz", gzip.compress), ("xz", lzma.compress), ("zst", zstandard.ZstdCompressor().compress)]
)
def test_every_format_may_be_compressed(tmp_path: Path, ending: str, compress) -> None:  # type: ignore[no-untyped-def]
    table = tmp_path / "t.parquet"
    parquet.write_table(pyarrow.Table.from_pylist([{"text": "a", "label": "b"}]), table)
    for name, content in (("t.csv", b"text,label\na,b\n"), ("t.parquet", table.read_bytes())):
        path = tmp_path / f"{name}.{ending}"
        path.write_bytes(compress(content))
        assert [values for _, values in rows(path)] == [{"text": "a", "label": "b"}]


def test_text_of_several_lines_of_txt_is_a_text_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n\ntwo\n")
    assert rows(path) == [(1, {"text": "one"}), (2, {"text": ""}), (3, {"text": "two"})], "as many as there are lines"


def test_json_in_a_table_and_columns_of_one_name_in_parquet_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('{"text": "one", "label": "a"}\n{"text": "two", "label": "b"}\n')
    with pytest.raises(DataError, match=r"a.csv:1: JSON where the names of columns must be: name it .jsonl"):
        rows(tmp_path / "a.csv")
    twice = pyarrow.table([["a"], ["b"]], names=["text", "text"])
    parquet.write_table(twice, tmp_path / "a.parquet")
    with pytest.raises(DataError, match="two columns are named 'text'"):
        rows(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.tsv",
            'text\tlabel\nok\tx\n"a\tb"\ty\n',
            r"a.tsv:3: 3 fields where the header has 2 \(text, label\).*no quoting",
        ),
        ("a.csv", "text,label\nok,x\na,b,y\n", r"a.csv:3: 3 fields .* quotation marks"),
        ("a.csv", 'text,label\nok,x\n"never closed,y\nmore,z\n', r"a.csv:3: wrong quoting"),
        ("a.csv", 'text,label\n"a"b,y\n', r"a.csv:2: wrong quoting"),
        ("a.csv", "text,text\na,b\n", r"a.csv:1: two columns are named 'text'"),
        ("a.csv", "", r"a.csv:1: no header"),
        ("a.jsonl", '{"text": "a"}\n{"text": "b"\n', r"a.jsonl:2: not JSON"),
        ("a.jsonl", '{"text": "a"}\n\n["b"]\n', r"a.jsonl:3: a JSON list, must be an object"),
        ("a.jsonl", "[" * 100_000, r"a.jsonl:1: not JSON \(nested too deeply"),
        ("a.parquet", "no parquet", r"a.parquet:1: can't be read as Parquet"),
        ("a.xlsx", "x", r"a.xlsx: the format .* use .csv, .tsv, .jsonl, .json or .parquet"),
        ("a.csv.gz", "x", r"a.csv.gz: damaged"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        list(read_rows(path))


def test_a_missing_file_a_folder_and_utf16_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        list(read_rows(tmp_path / "no.csv"))
    with pytest.raises(DataError, match="is a folder"):
        list(read_rows(tmp_path))
    (tmp_path / "a.csv").write_text("text,label\na,b\n", encoding="utf-16")
    with pytest.raises(DataError, match="UTF-16"):
        list(read_rows(tmp_path / "a.csv"))


def test_broken_characters_are_mended_and_counted_with_their_place(tmp_path: Path) -> None:
    table, lines = tmp_path / "a.csv", tmp_path / "a.jsonl"
    table.write_bytes(b"text,label\nok,x\ncaf\xe9,y\n")
    lines.write_text('{"text": "\\ud83d alone", "label": ["a\\u0000b"]}\n')
    report = ReadReport()
    assert [row.values["text"] for row in read_rows(table, report=report)] == ["ok", "caf\ufffd"]
    assert report.findings["broken_utf8"].first == f"{table}:3"
    assert [dict(row.values) for row in read_rows(lines, report=report)] == [{"text": "\ufffd alone", "label": ["a b"]}]
    assert (report.findings["broken_utf8"].count, report.findings["nul"].count) == (2, 1)


def test_bad_rows_can_be_collected_and_the_others_still_read(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\na\tb\nc\nd\te\tf\ng\th\n")
    bad: list[str] = []
    good = list(read_rows(path, on_bad=lambda place, _why: bad.append(place)))
    assert [row.line for row in good] == [2, 5]
    assert bad == [f"{path}:3", f"{path}:4"]


def test_reading_a_file_of_any_size_holds_one_row_at_a_time(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "a.csv"
    path.write_text("text,label\n" + f"{'word ' * 200},x\n" * 20_000)  # 20 MB
    tracemalloc.start()
    count = sum(1 for _ in read_rows(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 20_000
    assert peak < 2_000_000


def test_a_quoted_table_that_is_named_tsv_is_noticed(tmp_path: Path) -> None:
    assert quoting_notes(tmp_path / "a.tsv", ['"she said ""no"""', "plain"])
    assert not quoting_notes(tmp_path / "a.tsv", ['" the witness "', '" a " and " b "', "plain"])  # as MRPC has
    assert not quoting_notes(tmp_path / "a.csv", ['"she said ""no"""'])
