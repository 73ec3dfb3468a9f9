"""The zip of GLUE's leaderboard: names, columns, classes, and several models in one file."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from albert.errors import UsageError
from albert.labelled.glue_submission import SIZES, write_submission
from albert.tasks.classified import Label, Number


def labels(*names: str) -> list[Label]:
    return [Label(name, {}) for name in names]


def test_files_have_the_official_names_columns_and_classes(tmp_path: Path) -> None:
    path = tmp_path / "glue.zip"
    done = write_submission(
        path, "mnli", {"matched": labels("neutral", "ENTAILMENT"), "mismatched": labels("contradiction")}
    )
    assert done.written == ("MNLI-m.tsv", "MNLI-mm.tsv")
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["MNLI-m.tsv", "MNLI-mm.tsv"]
        assert archive.read("MNLI-m.tsv") == b"index\tprediction\n0\tneutral\n1\tentailment\n"
    assert "MNLI-m.tsv has 2 rows, the official test set has 9,796" in done.notes[0]


def test_models_one_after_another_fill_one_zip_and_the_missing_files_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "glue.zip"
    write_submission(path, "cola", {"test": labels("0", "1")})
    write_submission(path, "cola", {"test": labels("1")})
    write_submission(path, "ax", {"ax": labels("neutral")})
    done = write_submission(path, "sts-b", {"test": [Number(5.7), Number(-0.2), Number(2.34567)]})
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["AX.tsv", "CoLA.tsv", "STS-B.tsv"]
        assert archive.read("CoLA.tsv") == b"index\tprediction\n0\t1\n"
        assert archive.read("STS-B.tsv") == b"index\tprediction\n0\t5.000\n1\t0.000\n2\t2.346\n"
    assert set(done.missing) == set(SIZES) - {"AX.tsv", "CoLA.tsv", "STS-B.tsv"}
    assert len(SIZES) == 11


def test_the_right_number_of_rows_needs_no_warning_and_the_same_decisions_give_the_same_bytes(tmp_path: Path) -> None:
    decided = labels(*["0"] * SIZES["WNLI.tsv"])
    assert write_submission(tmp_path / "a.zip", "wnli", {"test": decided}).notes == ()
    write_submission(tmp_path / "b.zip", "wnli", {"test": decided})
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_what_the_leaderboard_does_not_take_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "glue.zip"
    with pytest.raises(UsageError, match="not a task of GLUE"):
        write_submission(path, "squad", {"test": labels("0")})
    with pytest.raises(UsageError, match="no test set"):
        write_submission(path, "cola", {})
    with pytest.raises(UsageError, match="the model says 'maybe', the leaderboard knows 0, 1"):
        write_submission(path, "cola", {"test": labels("maybe")})
    path.write_bytes(b"precious")
    with pytest.raises(UsageError, match="not a zip"):
        write_submission(path, "cola", {"test": labels("1")})
    assert path.read_bytes() == b"precious"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("thesis.doc", "x")
    with pytest.raises(UsageError, match=r"holds thesis\.doc, so it is no submission"):
        write_submission(path, "cola", {"test": labels("1")})
