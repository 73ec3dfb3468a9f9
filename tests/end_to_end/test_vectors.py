"""`albert embed` and `albert search` as a user runs them, and the exit codes of what goes wrong."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import albert
from albert.cli import app
from albert.errors import AlbertError

run = CliRunner()


def ok(*words: object) -> str:
    result = run.invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stdout


def failure(*words: object) -> tuple[int, str]:
    problem = run.invoke(app, [str(word) for word in words]).exception
    assert isinstance(problem, AlbertError)
    return problem.exit_code, str(problem)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "texts.csv"
    path.write_text("key,text\nk1,the cat sat\nk2,a winter letter\nk3,the ship left at noon\n")
    return path


def test_a_file_becomes_vectors_or_a_folder_that_is_searched(model_folder: Path, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "vectors.npy"
    assert "3 vectors of 32 numbers" in ok("embed", model_folder, table, "--out", out)
    expected = albert.load(model_folder).embed(["the cat sat", "a winter letter", "the ship left at noon"])
    assert np.load(out) == pytest.approx(expected, abs=1e-5)
    ok("embed", model_folder, table, "--out", out, "--normalize")
    assert np.linalg.norm(np.load(out), axis=1) == pytest.approx(np.ones(3))

    facts = json.loads(ok("embed", model_folder, table, "--out", tmp_path / "v", "--columns", "id=key", "--json"))
    assert facts == {"texts": 3, "width": 32, "out": str(tmp_path / "v")}
    assert "k2  a winter letter" in ok("search", tmp_path / "v", "a winter letter", "--top", "1")
    found = json.loads(ok("search", tmp_path / "v", "the ship left at noon", "--json"))
    assert (found[0]["id"], len(found)) == ("k3", 3)


def test_an_empty_text_is_a_row_of_nan_or_left_out_of_a_search_and_said(model_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("key,text\nk1,the cat sat\nk2, \nk3,the ship left\n")
    for words in (["embed", "--normalize"], ["predict", "--task", "embed"]):
        said = run.invoke(
            app, [words[0], str(model_folder), str(tmp_path / "a.csv"), "--out", str(tmp_path / "v.npy"), *words[1:]]
        )
        assert "their rows are NaN: 1, the first at" in said.stderr
        assert "a.csv:3" in said.stderr
        assert np.isnan(np.load(tmp_path / "v.npy")).all(axis=1).tolist() == [False, True, False]
    said = run.invoke(app, ["embed", str(model_folder), str(tmp_path / "a.csv"), "--out", str(tmp_path / "v")])
    assert "no vector: left out: 1, the first at" in said.stderr
    found = json.loads(ok("search", tmp_path / "v", "the ship left", "--json"))
    assert [one["id"] for one in found] == ["2", "0"], "the numbers of the file's rows"
    (tmp_path / "b.csv").write_text("id,text\nk1,the cat sat\nk3,the ship left\n")
    ok("embed", model_folder, tmp_path / "b.csv", "--out", tmp_path / "w")
    found = json.loads(ok("search", tmp_path / "w", "the ship left", "--json"))
    assert [one["id"] for one in found] == ["k3", "k1"], "the column id, where there is one"


def test_several_columns_are_one_text_and_those_of_training_are_known(model_folder: Path, tmp_path: Path) -> None:
    rows = [f"the ship {i},it left at {i},{'in' if i % 2 else 'out'}" for i in range(12)]
    (tmp_path / "a.csv").write_text("\n".join(["synopsis,story,verdict", *rows]))
    out, text = tmp_path / "v.npy", "--columns=text=synopsis,story"
    ok("embed", model_folder, tmp_path / "a.csv", "--out", out, text)
    expected = albert.load(model_folder).embed("the ship 3\nit left at 3")
    assert np.load(out)[3] == pytest.approx(expected, abs=1e-5)
    words = ["finetune", "--model", model_folder, "--data", tmp_path / "a.csv", text, "--set", "train.steps=2"]
    ok(*words, "--out", tmp_path / "run", "--set", "data.max_length=32")
    ok("embed", tmp_path / "run", tmp_path / "a.csv", "--out", out)
    expected = albert.load(tmp_path / "run").embed("the ship 3\nit left at 3")
    assert np.load(out)[3] == pytest.approx(expected, abs=1e-5)


def test_a_document_is_a_file_of_a_folder_and_lines_of_a_file_are_said(model_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name, text in (("a.txt", "the cat sat\non the ship"), ("b.txt", "a winter letter\nleft at noon")):
        (tmp_path / "docs" / name).write_text(text)
    ok("embed", model_folder, tmp_path / "docs", "--out", tmp_path / "v")
    found = json.loads(ok("search", tmp_path / "v", "a winter letter left at noon", "--json"))
    assert (found[0]["id"], len(found)) == ("b.txt", 2)
    words = ["embed", str(model_folder), str(tmp_path / "docs" / "a.txt"), "--out", str(tmp_path / "w")]
    assert "a.txt: 2 texts, one per line; a folder of .txt files is one text per file" in run.invoke(app, words).stderr


def test_sigterm_ends_embed_as_ctrl_c_does(model_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("the old harbour was quiet\n" * 300_000)
    words = ["embed", str(model_folder), str(tmp_path / "in.txt"), "--out", str(tmp_path / "v")]
    with subprocess.Popen([sys.executable, "-m", "albert", *words], stderr=subprocess.PIPE) as process:
        while not list(tmp_path.glob("*v*")):
            assert process.poll() is None, "ended before it wrote anything"
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
    assert (process.returncode, b"interrupted" in errors) == (130, True)
    assert b"Traceback" not in errors
    assert not list(tmp_path.glob("*v*"))


def test_exit_codes_tell_bad_data_from_a_wrong_model_and_a_wrong_word(
    model_folder: Path, table: Path, tmp_path: Path
) -> None:
    ok("embed", model_folder, table, "--out", tmp_path / "v")
    code, message = failure("search", tmp_path / "none", "x")
    assert (code, "no such folder" in message) == (3, True)
    assert failure("search", tmp_path / "v", "x", "--model", "tiny-en")[0] == 4
    assert failure("search", tmp_path / "v", "x", "--model", tmp_path / "gone")[0] == 4
    assert failure("search", tmp_path / "v", " ")[0] == 3
    assert failure("embed", model_folder, table, "--out", tmp_path / "v.txt")[0] == 2
    assert failure("embed", model_folder, tmp_path / "none.csv", "--out", tmp_path / "w")[0] == 3
    code, message = failure("embed", model_folder, "one text " * 1000, "--out", tmp_path / "w")
    assert (code, "for one text: albert predict MODEL TEXT --task embed" in message) == (3, True)
    (tmp_path / "bad.csv").write_text("text,other\n,x\n,y\n")
    code, message = failure("embed", model_folder, tmp_path / "bad.csv", "--out", tmp_path / "w")
    assert (code, "no texts: there must be one at least" in message) == (3, True)
    assert not (tmp_path / "w").exists()
    code, message = failure("embed", model_folder, table, "--out", tmp_path / "w", "--columns", "id=kee")
    assert (code, "did you mean 'key'" in message) == (3, True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    assert failure("embed", model_folder, table, "--out", tmp_path / "mine")[0] == 2


def test_a_pair_is_compared_by_a_model_tuned_on_it(model_folder: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("\n".join(["text,pair", *(f"the cat sat {'a ' * n},the dog left {'a ' * n}" for n in range(12))]))
    words = ["finetune", "--model", model_folder, "--data", pairs, "--task", "similarity", "--out", tmp_path / "run"]
    assert "mrr" in ok(*words, "--set", "train.steps=2", "--set", "data.temperature=0.1")
    said = float(ok("predict", tmp_path / "run", "the cat", "--pair", "a dog"))
    assert said == pytest.approx(albert.load(tmp_path / "run").similarity("the cat", "a dog"), abs=1e-3)
    ok("predict", tmp_path / "run", pairs, "--out", tmp_path / "said.jsonl")
    assert "similarity" in json.loads((tmp_path / "said.jsonl").read_text().splitlines()[0])
    assert failure("predict", tmp_path / "run", "the cat")[0] == 2
    assert "recall" in ok("evaluate", tmp_path / "run", "--data", pairs)
    assert "similarity(" in (tmp_path / "run" / "model" / "README.md").read_text()


def test_the_commands_load_no_torch_to_show_their_help() -> None:
    script = "import sys; from albert.cli import app; app(['search', '--help'], standalone_mode=False); "
    done = subprocess.run(
        [sys.executable, "-c", script + "assert 'torch' not in sys.modules"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
