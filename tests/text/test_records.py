"""Lines of JSON and rows of Parquet: what stands where, and what can't be read."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from albert.errors import DataError
from albert.text import records
from albert.text.records import JsonLine, json_lines, numbered_lines, open_parquet
from albert.text.sources import Source, open_source


def lines_of(text: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8", newline="\n")


def rows_of(path: Path, *, fix: str = "write it again") -> Iterator[tuple[int, list[object]]]:
    source = Source(path, "parquet", "")
    with open_source(source) as (stream, _), open_parquet(source, stream, fix=fix) as table:
        for batch in table.batches(["text"]):
            yield table.rows_done, batch.column(0).to_pylist()


def test_lines_end_at_line_feeds_only_and_are_numbered() -> None:
    assert list(numbered_lines(lines_of("a\r\n\nb\u2028c\x85d\rd\ne"))) == [
        (1, "a"), (2, ""), (3, "b\u2028c\x85d\rd"), (4, "e"),
    ]  # fmt: skip


def test_a_line_that_is_too_long_is_passed_over_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "RECORD_LIMIT", 10)
    exact, longer = "x" * 9, "y" * 10
    assert list(numbered_lines(lines_of(f"{exact}\n{longer}\n{longer * 7}\nz\n"))) == [
        (1, exact), (2, None), (3, None), (4, "z"),
    ]  # fmt: skip
    (long, short) = json_lines(lines_of(f'"{longer}"\n7\n'))
    assert long.is_long
    assert "a line of more than 10 characters: split it" in long.problem
    assert (short.number, short.value) == (2, 7)


def test_every_line_of_json_has_a_value_or_the_reason_why_not() -> None:
    found = list(json_lines(lines_of('{"a": 1}\n \n[2]\n{"a": \n' + "[" * 100_000)))
    assert found[:2] == [JsonLine(1, '{"a": 1}', {"a": 1}), JsonLine(3, "[2]", [2])]
    assert found[2].number == 4
    assert found[2].problem.startswith("not JSON (Expecting value")
    assert found[3].problem == "not JSON (nested too deeply)"
    assert not any(line.is_long for line in found)


def test_rows_of_parquet_come_in_batches_that_know_their_first_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "PARQUET_ROWS", 2)
    parquet.write_table(pyarrow.table({"id": [1, 2, 3], "text": ["a", None, "c"]}), tmp_path / "a.parquet")
    assert list(rows_of(tmp_path / "a.parquet")) == [(0, ["a", None]), (2, ["c"])]


def test_what_is_wrong_with_a_table_is_named_with_its_row_and_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.parquet").write_text("no table")
    with pytest.raises(DataError, match=r"a\.parquet:1: can't be read as Parquet \(.*\): write it again"):
        list(rows_of(tmp_path / "a.parquet"))
    monkeypatch.setattr(records, "PARQUET_ROWS", 2)
    broken = pyarrow.array([b"one", b"two", b"\xff"]).cast(pyarrow.string(), safe=False)
    parquet.write_table(pyarrow.table({"text": broken}), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"b\.parquet:3: can't be read as Parquet"):
        list(rows_of(tmp_path / "b.parquet"))
