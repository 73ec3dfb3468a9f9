"""`albert demo`: the whole job in a few steps on a part of the text, twice; folders that it refuses."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from albert.cli.demo import _comparison, demo
from albert.errors import UsageError
from albert.text import installed


def test_the_demo_runs_all_stages_and_a_second_time_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = installed.library_folders()
    parts = {"python": "email", "numpy": "lib", "torch": "optim"}
    monkeypatch.setattr(installed, "library_folders", lambda: {name: whole[name] / parts[name] for name in whole})
    monkeypatch.setattr("albert.cli.demo.VOCABULARY", 1_000)
    out = tmp_path / "demo"
    demo(out=out, steps=20)
    first = capsys.readouterr().out
    titles = ("Text:", "Vocabulary:", "Token store:", "One training example:", "Pre-training:", "A labelled task:",
              "Fine-tuning:", "The same without pre-training:",
              "The same from tiny-en,", "=> ", "Predictions:", "Hidden words:")  # fmt: skip
    places = [first.find(f"\n{title}") for title in titles]
    assert -1 not in places, first
    assert places == sorted(places)
    assert (out / "tuned" / "report.html").is_file()
    assert str(out / "tuned" / "report.html") in first
    written = {file: file.read_bytes() for file in out.rglob("*.safetensors")}

    demo(out=out, steps=20)
    second = capsys.readouterr().out
    results = re.compile(r"^(=>.*|   loss.*|   on held-out.*)$", re.MULTILINE)
    assert results.findall(second) == results.findall(first)
    assert len(results.findall(first)) == 3
    assert {file: file.read_bytes() for file in out.rglob("*.safetensors")} == written

    command = next(line for line in first.splitlines() if " predict " in line)  # as a reader would copy it
    words = [sys.executable, "-m", "albert", *shlex.split(command)[2:]]
    assert "*" in subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_a_folder_of_another_demo_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with pytest.raises(UsageError, match="delete the folder, or give another one with --out"):
        demo(out=tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["run"]


def test_only_a_difference_beyond_chance_is_called_one() -> None:
    scores = {"one's own": 0.62, "new weights": 0.6, "tiny-en": 0.8}
    said = _comparison(scores, {"a bag of words": 0.7}, rows=500)
    assert said == (
        "62.0% from one's own (no clear difference; ±6 are chance), 60.0% from new weights, "
        "80.0% from tiny-en (+20 points; ±6 are chance), 70.0% by a bag of words."
    )
    assert "50.0% from tiny-en (-10 points" in _comparison({"new weights": 0.6, "tiny-en": 0.5}, {}, rows=500)
