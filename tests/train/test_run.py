"""A run folder: what is said where it holds another run."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from albert.errors import UsageError
from albert.train.run import RunFolder


def test_other_data_is_said_in_words_not_in_sixty_four_digits(tmp_path: Path) -> None:
    with closing(RunFolder(tmp_path / "run", {"data": "a" * 64, "model": "tiny-en"})):
        pass
    message = (
        r"data was aaaaaaaa…, is bbbbbbbb… \(fingerprints: other files, columns or split\); model was 'tiny-en', is"
    )
    with pytest.raises(UsageError, match=message):
        RunFolder(tmp_path / "run", {"data": "b" * 64, "model": "other"})
