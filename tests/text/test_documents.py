"""Documents from files: formats, bounded memory, and what happens to broken input."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from albert.errors import DataError
from albert.text import documents, records
from albert.text.documents import Finding, ReadReport, iter_documents


def _texts(*paths: Path, text_field: str = "text", report: ReadReport | None = None) -> list[str]:
    return [document.text for document in iter_documents(paths, text_field=text_field, report=report)]


def _write(path: Path, contents: bytes | str) -> Path:
    path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
    return path


def _jsonl(path: Path, *records: object) -> Path:
    return _write(path, "".join(json.dumps(record) + "\n" for record in records))


def test_a_blank_line_ends_a_document_and_a_line_is_a_paragraph(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.txt", "one\ntwo\n\n \t\n\nthree\r\nfour\r\n\r\nfive")
    found = list(iter_documents([path]))
    assert [document.text for document in found] == ["one\ntwo", "three\nfour", "five"]
    assert [(document.source, document.line) for document in found] == [(path, 1), (path, 6), (path, 9)]


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    assert _texts(_write(tmp_path / "a.txt", b"\xef\xbb\xbfone")) == ["one"]


def test_records_of_jsonl_and_parquet_are_documents(tmp_path: Path) -> None:
    _jsonl(tmp_path / "a.jsonl", {"text": "one\n\nstill one", "id": 1}, {"text": "two"})
    parquet.write_table(pyarrow.table({"id": [1, 2], "text": ["three", "vier 🐱"]}), tmp_path / "b.parquet")
    _write(tmp_path / "c.parquet.gz", gzip.compress((tmp_path / "b.parquet").read_bytes()))
    assert _texts(tmp_path) == ["one\n\nstill one", "two", "three", "vier 🐱", "three", "vier 🐱"]


def test_dictionary_and_large_string_columns_are_text_too(tmp_path: Path) -> None:
    column = pyarrow.array(["one", "two", "one"])
    for name, values in (("a", column.dictionary_encode()), ("b", column.cast(pyarrow.large_string()))):
        parquet.write_table(pyarrow.table({"text": values}), tmp_path / f"{name}.parquet")
    assert _texts(tmp_path) == ["one", "two", "one"] * 2


def test_another_field_can_be_named(tmp_path: Path) -> None:
    _jsonl(tmp_path / "a.jsonl", {"body": "one"})
    parquet.write_table(pyarrow.table({"body": ["two"]}), tmp_path / "b.parquet")
    assert _texts(tmp_path, text_field="body") == ["one", "two"]


def test_a_wrong_field_is_an_error_that_names_the_right_ones(tmp_path: Path) -> None:
    _jsonl(tmp_path / "a.jsonl", {"body": "one", "id": 7})
    with pytest.raises(DataError, match=r"a\.jsonl:1: no field 'text', only 'body', 'id'.*--field"):
        _texts(tmp_path / "a.jsonl")
    parquet.write_table(pyarrow.table({"body": ["two"], "id": [1]}), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"b\.parquet: no column 'text', only 'body', 'id'.*--field"):
        _texts(tmp_path / "b.parquet")


@pytest.mark.parametrize("line", ["not json", "[1]", '{"text": 5}', "[" * 100_000, "1" * 5000])
def test_a_file_whose_first_record_is_wrong_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(DataError, match=r"a\.jsonl:2: "):
        _texts(_write(tmp_path / "a.jsonl", f"\n{line}\n"))


def test_later_records_that_are_wrong_are_skipped_and_counted(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.jsonl", '{"text": "one"}\noops\n{"text": 3}\n{}\n{"text": " "}\n{"text": "two"}\n{"te')
    report = ReadReport()
    assert _texts(path, report=report) == ["one", "two"]
    assert report.findings == {"bad_record": Finding(2, f"{path}:2"), "no_text": Finding(3, f"{path}:3")}


def test_a_first_record_without_a_text_is_skipped_like_a_later_one(tmp_path: Path) -> None:
    report = ReadReport()
    assert _texts(_jsonl(tmp_path / "a.jsonl", {"text": None}, {"text": "one"}), report=report) == ["one"]
    assert report.findings == {"no_text": Finding(1, f"{tmp_path / 'a.jsonl'}:1")}


def test_missing_values_of_a_parquet_column_are_skipped_and_counted(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"text": ["one", None, "two", ""]}), tmp_path / "a.parquet")
    report = ReadReport()
    assert _texts(tmp_path, report=report) == ["one", "two"]
    assert report.findings == {"no_text": Finding(2, f"{tmp_path / 'a.parquet'}:2")}


def test_a_column_of_numbers_and_a_file_that_is_no_parquet_are_refused(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"text": [[1], [2]]}), tmp_path / "a.parquet")
    with pytest.raises(
        DataError, match=r"a\.parquet:1: can't be read as Parquet .*'text' must be a column of text: .*--field"
    ):
        _texts(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"b\.parquet:1: can't be read as Parquet"):
        _texts(_write(tmp_path / "b.parquet", "plain text"))


def test_bytes_that_are_not_utf8_are_replaced_counted_and_placed(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.txt", b"fine\n\nok\nbro\xffken \xc3\nand \xed\xa0\x80.\n")
    report = ReadReport()
    assert _texts(path, report=report) == ["fine", "ok\nbro\ufffdken \ufffd\nand \ufffd\ufffd\ufffd."]
    assert report.findings == {"broken_utf8": Finding(5, f"{path}:4")}


def test_broken_bytes_and_escapes_inside_records_are_replaced_and_counted(tmp_path: Path) -> None:
    first = _write(tmp_path / "a.jsonl", b'{"text": "fine \\ud83d\\ude00"}\n{"text": "a\xff \\ud800"}\n')
    broken = pyarrow.array([b"ok", b"b\xfe"]).cast(pyarrow.string(), safe=False)
    parquet.write_table(pyarrow.table({"text": broken}), tmp_path / "b.parquet")
    report = ReadReport()
    assert _texts(tmp_path, report=report) == ["fine 😀", "a\ufffd \ufffd", "ok", "b\ufffd"]
    assert report.findings == {"broken_utf8": Finding(3, f"{first}:2")}


def test_nuls_become_spaces_and_are_counted(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.txt", b"one\ntw\0o\0\n\n\0\0\n")
    report = ReadReport()
    assert _texts(path, report=report) == ["one\ntw o "]
    assert report.findings == {"nul": Finding(4, f"{path}:2")}


def test_utf16_is_refused_with_the_fix(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.txt:1: the file is UTF-16.*iconv"):
        _texts(_write(tmp_path / "a.txt", "text".encode("utf-16")))


def test_empty_files_are_counted_and_give_nothing(tmp_path: Path) -> None:
    for name in ("a.txt", "b.jsonl", "c.txt"):
        _write(tmp_path / name, " \n\n" if name == "c.txt" else "")
    report = ReadReport()
    assert _texts(tmp_path, report=report) == []
    assert report.findings == {"empty_file": Finding(3, str(tmp_path / "a.txt"))}


def test_duplicate_paths_are_read_once_and_reported(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.txt", "one")
    report = ReadReport()
    assert _texts(path, path, report=report) == ["one"]
    assert report.lines() == [f"paths named more than once, read once: 1, the first at {path}"]


def test_a_long_document_is_cut_at_lines_then_at_spaces_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "DOCUMENT_LIMIT", 100)
    for text in ("word " * 20 + "\n" + "line of words\n" * 30, "w" * 777, "some words " * 70 + "end"):
        report = ReadReport()
        for name, contents in (("a.txt", text), ("a.jsonl", json.dumps({"text": text}))):
            path = _write(tmp_path / name, f"{contents}\n")
            parts = [document.text for document in iter_documents([path], report=report)]
            assert "".join(parts).replace("\n", "") == text.replace("\n", "")
            assert max(map(len, parts)) <= 100
            assert len(parts) < 3 * len(text) / 100
            if " " in text:
                assert all(part.endswith((" ", "words")) for part in parts[:-1])
        assert report.findings == {"long_document": Finding(2, f"{tmp_path / 'a.txt'}:1")}


def test_the_place_of_broken_bytes_is_right_after_a_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "DOCUMENT_LIMIT", 40)
    path = _write(tmp_path / "a.txt", b"a line of text\n" * 20 + b"bro\xffken\n" + b"a line of text\n" * 20)
    report = ReadReport()
    list(iter_documents([path], report=report))
    assert report.findings["broken_utf8"] == Finding(1, f"{path}:21")


def test_a_record_that_is_too_long_to_parse_is_skipped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "RECORD_LIMIT", 1000)
    path = _jsonl(tmp_path / "a.jsonl", {"text": "one"}, {"text": "x" * 5000}, {"text": "two"})
    report = ReadReport()
    assert _texts(path, report=report) == ["one", "two"]
    assert report.findings == {"long_record": Finding(1, f"{path}:2")}


def test_memory_does_not_grow_with_the_length_of_a_line(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.txt", b"word " * 8 * 2**20)  # 40 MiB, no line end
    tracemalloc.start()
    total = sum(len(document.text) for document in iter_documents([path]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == path.stat().st_size
    assert peak < 5 * documents.DOCUMENT_LIMIT


def test_the_report_tells_how_many_bytes_are_read(tmp_path: Path) -> None:
    paths = [_write(tmp_path / name, "text\n\n" * 10) for name in ("a.txt", "b.txt")]
    report = ReadReport()
    for document in iter_documents(paths, report=report):
        assert report.bytes_read == 60 * (1 + (document.source == paths[1]))
    assert report.bytes_read == 120
