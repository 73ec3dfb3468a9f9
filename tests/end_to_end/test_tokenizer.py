"""`albert tokenizer train` as a user meets it: what it prints, writes and refuses, and its exit codes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from albert.tokenizer import Tokenizer
from albert.tokenizer.training import TrainSettings, train_tokenizer


def albert(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "albert", "tokenizer", "train", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def trained(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a tokenizer that the command trained."""
    out = tmp_path_factory.mktemp("trained") / "tokenizer"
    done = albert(corpus, "--vocab-size", 900, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    (out.parent / "facts.json").write_text(done.stdout)
    return out


def test_it_writes_a_tokenizer_and_says_how_good_it_is(trained: Path, corpus: Path) -> None:
    small = train_tokenizer([corpus], TrainSettings(vocab_size=900), progress=lambda done, words: None).tokenizer
    facts = json.loads((trained.parent / "facts.json").read_text())
    assert Tokenizer.load(trained).fingerprint == small.fingerprint == facts["fingerprint"]
    assert facts["vocab_size"] == 900
    assert set(facts["held_out"]) >= {"coverage", "unknown_rate", "pieces_per_word"}
    assert {path.name for path in trained.iterdir()} == {"spiece.model", "tokenizer.json", "tokenizer_config.json"}


def test_the_same_command_twice_gives_the_same_result(trained: Path, corpus: Path) -> None:
    before = {path.name: path.read_bytes() for path in trained.iterdir()}
    done = albert(corpus, "--vocab-size", 900, "--out", trained)
    assert done.returncode == 0, done.stderr
    assert "pieces" in done.stdout
    assert "coverage" in done.stdout
    assert {path.name: path.read_bytes() for path in trained.iterdir()} == before


def test_another_tokenizer_is_not_replaced_unasked(trained: Path, corpus: Path, tmp_path: Path) -> None:
    before = (trained / "spiece.model").read_bytes()
    done = albert(corpus, "--vocab-size", 700, "--cased", "--out", trained)
    assert done.returncode == 2
    assert "vocab_size is 900, not 700, lower_case is True, not False" in done.stderr
    other = tmp_path / "other.txt"
    other.write_text(corpus.read_text(encoding="utf-8").replace("ba", "ka"), encoding="utf-8")
    done = albert(other, "--vocab-size", 900, "--out", trained)
    assert done.returncode == 2
    assert "holds a tokenizer of other text" in done.stderr
    assert (trained / "spiece.model").read_bytes() == before


def test_force_replaces_a_tokenizer(trained: Path, corpus: Path, tmp_path: Path) -> None:
    Tokenizer.load(trained).save(tmp_path)
    assert albert(corpus, "--vocab-size", 700, "--keep-accents", "--out", tmp_path, "--force").returncode == 0
    loaded = Tokenizer.load(tmp_path)
    assert (loaded.vocab_size, loaded.normalisation.keep_accents) == (700, True)


def test_a_folder_of_something_else_is_refused(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_text("")
    done = albert(corpus, "--out", tmp_path, "--force")
    assert (done.returncode, "holds other files (model.safetensors)" in done.stderr) == (2, True)
    assert albert(corpus, "--out", tmp_path / "model.safetensors").returncode == 2


def test_a_dry_run_writes_nothing(corpus: Path, tmp_path: Path) -> None:
    done = albert(corpus, "--out", tmp_path / "new", "--dry-run", "--json")
    facts = json.loads(done.stdout)
    assert facts["vocab_size"] == 30_000
    assert facts["num_files"] == 1
    assert "about" in albert(corpus, "--out", tmp_path / "new", "--dry-run").stdout
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere.txt"], 3, "no such file"),
        (["{corpus}", "--vocab-size", "5"], 2, "vocab_size=5"),
        (["{corpus}", "--vocab-size", "50000"], 3, "use at most"),
        (["{corpus}", "--vocab-size", "many"], 2, "valid integer"),
    ],
)
def test_mistakes_are_said_in_a_line(corpus: Path, tmp_path: Path, arguments: list[str], code: int, words: str) -> None:
    done = albert(*(argument.format(corpus=corpus) for argument in arguments), "--out", tmp_path / "out")
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_stopping_it_leaves_nothing_behind(corpus: Path, tmp_path: Path, stop: signal.Signals) -> None:
    big = tmp_path / "big.txt"
    big.write_text(corpus.read_text(encoding="utf-8") * 100, encoding="utf-8")
    command = [sys.executable, "-m", "albert", "tokenizer", "train", str(big), "--out", str(tmp_path / "out")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={"TMPDIR": str(tmp_path)}) as process:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("albert-tokenizer-*/sample.txt")) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(stop)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert "interrupted: no tokenizer was written" in error
    assert [path.name for path in tmp_path.iterdir()] == ["big.txt"]
