"""The text that is installed with Python: what is read of it, what is held out, what becomes a labelled row."""

from __future__ import annotations

from pathlib import Path

import pytest

from albert.text import installed
from albert.text.installed import InstalledDocument, hold_out, installed_documents, label_paragraphs

LONG = "This sentence of a docstring is long enough to make a document of it. " * 8
SOURCE = f'''"""First. {LONG}

>>> example.

no full stop
"""
raise SystemExit("never run")
class Outer:
    """Second."""
    def method(self):
        """Third."""
if True:
    try:
        def inner():
            "Fourth."
    finally:
        x = "not a docstring."
def last(): "Fifth."
'''


def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(installed, "library_folders", lambda: {"lib": tmp_path})


def test_docstrings_are_read_in_file_order_and_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library(tmp_path, monkeypatch, {"a.py": SOURCE, "tests/b.py": SOURCE, "broken.py": "def (", "small.py": '"Short."'})
    (document,) = installed_documents()
    assert document.library == "lib"
    assert document.paragraphs == (f"First. {LONG.strip()}", "Second.", "Third.", "Fourth.", "Fifth.")


def test_held_out_paragraphs_share_no_run_of_eight_words_with_training_text() -> None:
    shared = "one two three four five six seven eight"
    held = InstalledDocument(
        "lib", (f"Zero {shared} nine.", "one two three four five six seven, and no more.", "Short.")
    )
    others = [InstalledDocument("lib", (f"But {shared.upper()}.", "short!"))] * 9
    train, held_out = hold_out([held, *others])
    assert len(train) == 9
    assert [document.paragraphs for document in held_out] == [("one two three four five six seven, and no more.",)]


def test_a_held_out_document_of_which_nothing_is_left_is_dropped() -> None:
    assert hold_out([InstalledDocument("lib", ("Same.",))] * 10)[1] == []


def test_rows_are_balanced_distinct_and_name_no_library() -> None:
    words = "a paragraph that is long enough for a row of the labelled table, number"
    documents = [
        InstalledDocument("numpy", tuple(f"{words} {i}." for i in range(50))),
        InstalledDocument("python", tuple(f"Another: {words} {i}." for i in range(20)) * 2),
        InstalledDocument("python", (f"{words} of NumPy.", f"{words} np.sum.", f"{words} file.py here.", "Too short.")),
    ]
    rows = label_paragraphs(documents, 60)
    assert [sum(row.library == name for row in rows) for name in ("numpy", "python")] == [20, 20]
    assert len({row.text for row in rows}) == 40
    assert not any("NumPy" in row.text or "np." in row.text or ".py" in row.text for row in rows)
    assert rows == label_paragraphs(documents, 60) != label_paragraphs(documents, 60, seed=1)
    assert len(label_paragraphs(documents, 10)) == 10
