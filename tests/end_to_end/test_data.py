"""`albert data build` and `albert data check`: what is printed, exit codes, and one JSON document."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from albert.cli import main

TOKENIZER_WORDS = "the cat sat on a mat and the ship left in the rain with old bread"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder with a text and a tokenizer."""
    import sentencepiece

    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("The cat sat. A ship left. Rain.\nBread and rain.\n\n" * 40)
    Path("tokenizer").mkdir()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([TOKENIZER_WORDS] * 4),
        model_prefix="tokenizer/spiece",
        vocab_size=60,
        hard_vocab_limit=False,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        minloglevel=2,
    )
    return tmp_path


@pytest.fixture
def albert(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Return the command as a function: exit code, stdout, stderr."""

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["albert", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run


BUILD = ("data", "build", "text.txt", "--tokenizer", "tokenizer", "--out", "store")


@pytest.mark.usefixtures("folder")
def test_build_says_what_it_made_and_a_second_run_that_it_is_complete(albert: Callable[..., Any]) -> None:
    code, out, err = albert(*BUILD)
    assert (code, err) == (0, "")
    assert out.startswith("store: 40 documents, 160 sentences, ")
    assert "built 1 shard in " in out
    code, out, _ = albert(*BUILD)
    assert code == 0
    assert "complete already, every checksum is right: nothing to do" in out


@pytest.mark.usefixtures("folder")
def test_json_is_one_document_on_stdout(albert: Callable[..., Any]) -> None:
    plan = json.loads(albert(*BUILD, "--dry-run", "--json")[1])
    assert plan["state"] == "new"
    assert plan["estimate"]["num_tokens"] > 500
    built = json.loads(albert(*BUILD, "--json")[1])
    assert (built["documents"], built["built"], built["findings"]) == (40, 1, {})
    checked = json.loads(albert("data", "check", "store", "--json")[1])
    assert (checked["documents"], checked["duplicate_documents"]) == (40, 39)
    assert checked["tokens"] == built["tokens"] == plan["estimate"]["num_tokens"]
    assert [len(example["token_ids"]) for example in checked["examples"]] == [
        len(example["segment_ids"]) for example in checked["examples"]
    ]


@pytest.mark.usefixtures("folder")
def test_a_dry_run_writes_nothing(albert: Callable[..., Any]) -> None:
    code, out, _ = albert(*BUILD, "--dry-run")
    assert code == 0
    assert "store      store (new)" in out
    assert not Path("store").exists()


@pytest.mark.usefixtures("folder")
def test_notes_name_what_was_mended(albert: Callable[..., Any]) -> None:
    Path("text.txt").write_bytes(b"The c\xffat.\n")
    out = albert(*BUILD)[1]
    assert "note: bytes that are not UTF-8, each replaced by U+FFFD: 1, the first at text.txt:1" in out


@pytest.mark.usefixtures("folder")
def test_check_shows_counts_lengths_copies_and_examples(albert: Callable[..., Any]) -> None:
    albert(*BUILD)
    code, out, _ = albert("data", "check", "store", "--examples", "2", "--length", "64")
    assert code == 0
    assert "documents that are copies: 39 (97.50%)" in out
    assert "tokens of sentences: " in out
    assert out.count("[CLS]") == 2
    assert out.count("[SEP]") == 4
    assert "order label" in out
    assert "[MASK]⟨" in out.split("training examples")[1].split("\n", 1)[1]
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("missing.txt",), 3, "missing.txt: no such file or folder"),
        (("text.txt", "--address", "x"), 2, "--address is for the Ray engine"),
        (("text.txt", "--engine", "ray", "--workers", "2"), 2, "--workers is for the local engine"),
        (("text.txt", "--workers", "0"), 2, "workers"),
        (("text.txt", "--sentences", "words"), 2, "sentences"),
        (("text.txt", "--tokenizer", "text.txt"), 4, "text.txt"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_errors_are_one_line_with_the_documented_exit_code(
    albert: Callable[..., Any], words: tuple[str, ...], code: int, message: str
) -> None:
    ended, out, err = albert("data", "build", "--tokenizer", "tokenizer", "--out", "store", *words)
    assert (ended, out) == (code, "")
    assert message in err
    assert "Traceback" not in err


@pytest.mark.usefixtures("folder")
def test_a_store_that_is_damaged_or_not_there_ends_with_3(albert: Callable[..., Any]) -> None:
    assert albert("data", "check", "nowhere")[0] == 3
    albert(*BUILD)
    path = Path("store/shard-000000.bin")
    path.write_bytes(path.read_bytes()[:-1] + b"\7")
    code, _, err = albert("data", "check", "store")
    assert code == 3
    assert "shard-000000.bin" in err


def test_a_build_never_imports_torch(folder: Path) -> None:
    program = (
        "import sys; from albert.cli import main\n"
        "try: main()\n"
        "except SystemExit: print('torch' in sys.modules, 'pyarrow' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", program, *BUILD], cwd=folder, capture_output=True, text=True)
    assert ended.stdout.splitlines()[-1] == "False False", ended.stderr
