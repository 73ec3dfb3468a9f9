"""Which files a command line means, and that damaged ones are never read as shorter ones."""

from __future__ import annotations

import gzip
import lzma
import random
from pathlib import Path

import pytest
import zstandard

from albert.errors import DataError
from albert.text.sources import Source, find_sources, open_source

COMPRESS = {"gz": gzip.compress, "xz": lzma.compress, "zst": zstandard.ZstdCompressor().compress}


def _read(path: Path) -> bytes:
    with open_source(find_sources([path]).files[0]) as (stream, _):
        return stream.read()


def test_folders_and_globs_expand_in_the_order_of_names(tmp_path: Path) -> None:
    for name in ("b.txt", "a.jsonl.gz", "deep/c.parquet", "notes.md", ".hidden/d.txt", ".e.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = find_sources([tmp_path]).files
    assert found == (
        Source(tmp_path / "a.jsonl.gz", "jsonl", "gz"),
        Source(tmp_path / "b.txt", "txt", ""),
        Source(tmp_path / "deep/c.parquet", "parquet", ""),
    )
    assert find_sources([tmp_path / "**/*.parquet", f"{tmp_path}/[ab].*"]).files == (found[2], found[0], found[1])


def test_arguments_keep_their_order_and_capital_endings_count(tmp_path: Path) -> None:
    for name in ("Z.TXT", "a.txt"):
        (tmp_path / name).touch()
    assert [file.path.name for file in find_sources([tmp_path / "Z.TXT", tmp_path / "a.txt"]).files] == [
        "Z.TXT",
        "a.txt",
    ]


def test_a_path_that_is_met_twice_counts_once_and_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    (tmp_path / "link.txt").symlink_to(tmp_path / "a.txt")
    found = find_sources([tmp_path / "a.txt", tmp_path])
    assert [file.path.name for file in found.files] == ["a.txt"]
    assert [path.name for path in found.duplicates] == ["a.txt", "link.txt"]


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("missing.txt", "no such file or folder"),
        ("*.txt", "no text file has such a name"),
        ("empty", "no text in this folder"),
        ("notes.md", "format of a text file is told by its name"),
    ],
)
def test_what_names_no_text_is_refused_with_the_fix(tmp_path: Path, argument: str, reason: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.md").touch()
    with pytest.raises(DataError, match=reason):
        find_sources([tmp_path / argument])


@pytest.mark.parametrize("ending", COMPRESS)
def test_compressed_files_give_their_contents(tmp_path: Path, ending: str) -> None:
    text = random.Random(1).randbytes(300_000) + b"a" * 3_000_000
    path = tmp_path / f"a.txt.{ending}"
    path.write_bytes(COMPRESS[ending](text))
    assert _read(path) == text


@pytest.mark.parametrize("ending", COMPRESS)
def test_several_compressed_streams_in_one_file_are_all_read(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.txt.{ending}"
    path.write_bytes(COMPRESS[ending](b"one ") + COMPRESS[ending](b"two"))
    assert _read(path) == b"one two"


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize("kept", [0.5, 0.99])
def test_a_compressed_file_that_is_cut_short_is_an_error(tmp_path: Path, ending: str, kept: float) -> None:
    path = tmp_path / f"a.txt.{ending}"
    whole = COMPRESS[ending](random.Random(1).randbytes(100_000))
    path.write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(DataError, match=r"a\.txt\.\w+: damaged or cut short"):
        _read(path)


@pytest.mark.parametrize("ending", COMPRESS)
def test_a_file_that_is_not_compressed_as_its_name_says_is_an_error(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.txt.{ending}"
    path.write_bytes(b"plain text")
    with pytest.raises(DataError, match="damaged or cut short"):
        _read(path)
