"""Studies at toy size: made once, resumed after a kill, more seeds, failures, tasks, several workers, the report."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from albert.cli import app
from albert.data.part import write_part
from albert.data.store import TokenStore, write_store
from albert.errors import DataError, UsageError
from albert.study.catalog import STUDIES
from albert.study.workshop import TIMES
from albert.tokenizer import Tokenizer
from stores import WORDS

Study = Callable[..., dict[str, Any]]
Words = Callable[..., list[str]]


def scores(out: Path) -> dict[str, dict[str, Any]]:
    """Return every file of scores by its place, without times."""
    found = {}
    for path in sorted([*out.glob("rows/*/scores.json"), *out.glob("rows/*/layers.json")]):
        values = json.loads(path.read_text())
        found[str(path.relative_to(out))] = {name: value for name, value in values.items() if name not in TIMES}
    return found


def written(out: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in out.glob("rows/*/pretrain/metrics.jsonl")}


def kill_in_the_middle(command: list[str], out: Path) -> int:
    """Start a study and kill it with everything that it started, once a run has saved; return the runs that ended."""
    process = subprocess.Popen(
        [sys.executable, "-m", "albert", *command], env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 240
    before = len(list(out.glob("rows/*/scores.json")))
    while process.poll() is None and time.monotonic() < deadline:
        ended = len(list(out.glob("rows/*/scores.json"))) - before
        if ended and list(out.glob("rows/*/pretrain/checkpoints/step-*")):  # one ended, the next has saved
            break
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return len(list(out.glob("rows/*/scores.json")))


def resumes_to_the_same_scores(study: Study, words: Words, name: str, folder: Path) -> None:
    study(name, folder / "whole", "--steps", "20")
    command = words(name, folder / "cut", "--steps", "20")
    ended = kill_in_the_middle(command, folder / "cut")
    assert 0 < ended < len(scores(folder / "whole"))
    before = written(folder / "cut")
    study(name, folder / "cut", "--steps", "20")
    assert scores(folder / "cut") == scores(folder / "whole")
    assert sum(written(folder / "cut").get(path) == when for path, when in before.items()) >= ended  # not made again


def test_a_killed_study_resumes_to_the_same_scores(study: Study, words: Words, tmp_path: Path) -> None:
    resumes_to_the_same_scores(study, words, "data", tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("name", [name for name in STUDIES if name not in ("time", "speed")])
def test_every_killed_study_resumes_to_the_same_scores(name: str, study: Study, words: Words, tmp_path: Path) -> None:
    resumes_to_the_same_scores(study, words, name, tmp_path)


@pytest.mark.soak
def test_equal_time_and_speed_run_at_toy_size_and_again_from_their_folder(study: Study, tmp_path: Path) -> None:
    first = study("time", tmp_path / "out", "--steps", "20")["time"]["rows"]
    assert study("time", tmp_path / "out", "--steps", "20")["time"]["rows"] == first  # the pace was measured once
    rows = study("speed", tmp_path / "out", "--steps", "4")["speed"]["rows"]
    two = [rows[f"{name}, 2 processes"]["seeds"]["0"] for name in ("ALBERT", "BERT")]
    assert 0 < two[0]["reduced_bytes"] == 4 * two[0]["parameters"] < two[1]["reduced_bytes"]
    assert rows["BERT, 1 process"]["seeds"]["0"]["reduced_bytes"] == 0
    assert all(one["memory"] > 2**20 for one in two)


def test_more_seeds_add_to_what_is_there_and_two_tables_share_a_run(study: Study, tmp_path: Path) -> None:
    out = tmp_path / "out"
    study("sentence-order", out, "--steps", "4")
    before = written(out)
    found = study("sentence-order", out, "--steps", "4", "--seeds", "2")["sentence-order"]
    assert {name: len(row["seeds"]) for name, row in found["rows"].items()} == {"none": 2, "NSP": 2, "SOP": 2}
    assert before.items() <= written(out).items()
    assert len(written(out)) == 6
    study("optimizer", out, "--steps", "4")  # LAMB is the row SOP
    assert len(written(out)) == 8
    page = (out / "report.html").read_text()
    assert "sentence-order (Table 5)" in page
    assert "optimizer (not in the paper" in page
    assert "| SOP | 2 |" in (out / "report.md").read_text()


def test_a_loss_that_explodes_is_a_row_of_the_table_and_not_tried_again(study: Study, tmp_path: Path) -> None:
    out = tmp_path / "out"
    more = ("--steps", "8", "--set", "optimizer.clip=1e9", "--set", "optimizer.warmup_steps=0")
    found = study("optimizer", out, *more, "--set", "optimizer.lr=9.9")["optimizer"]["rows"]
    assert "problem" in found["AdamW"]["seeds"]["0"]
    before = written(out)
    study("optimizer", out, *more, "--set", "optimizer.lr=9.9")
    assert written(out) == before
    assert "(1 diverged)" in (out / "report.md").read_text()


def test_layers_are_measured_and_drawn_and_tasks_are_tuned(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = list[int]()
    monkeypatch.setattr("albert.finetune.words.bag_of_words", lambda task, train, dev: fitted.append(len(train)))
    table = tmp_path / "moods.csv"
    rows = (f"the {word} cat sat {other},{'good' if n % 2 else 'bad'}"
            for n, (word, other) in enumerate(product(WORDS[:6], WORDS[6:12])))  # fmt: skip
    table.write_text("\n".join(["text,label", *rows]))
    out = tmp_path / "out"
    tune = ("--tasks", f"classification={table}", "--tune", "train.steps=4", "--tune", "train.batch_size=4")
    found = study("dropout", out, "--steps", "10", *tune)["dropout"]["rows"]
    assert all(0 <= row["seeds"]["0"]["classification"] <= 1 for row in found.values())
    assert "(1 diverged)" not in (out / "report.md").read_text(), "four steps learn nothing, which is no divergence"
    assert len(fitted) == 1, "a bag of words is the same for all rows"
    rows = study("layers", out, "--steps", "4")["layers"]["rows"]
    assert [len(row["seeds"]["0"]["distances"]) for row in rows.values()] == [12, 12]
    for name in ("layers-distances", "layers-angles", "dropout"):
        picture = (out / "figures" / f"{name}.svg").read_text()
        assert picture.startswith("<svg xmlns=")
        assert f"figures/{name}.svg" in (out / "report.md").read_text()
    assert (out / "report.html").read_text().count("<svg") == 3
    assert not list(out.glob("rows/*/pretrain/checkpoints/*"))


def test_the_layers_of_any_model_can_be_looked_at_on_text_of_its_vocabulary(
    model_folder: Path, store_folder: Path, word_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    own = write_store(
        tmp_path / "own", [word_tokenizer.encode_many(["the cat sat", "a ship left"])], tokenizer=word_tokenizer
    )
    words = ["study", "layers", "--model", str(model_folder), "--json", "--data"]
    found = json.loads(CliRunner().invoke(app, [*words, str(own.folder)], catch_exceptions=False).stdout)
    assert len(found["distances"]) == len(found["angles"]) == 2
    assert all(0 < angle < 180 for angle in found["angles"])
    with pytest.raises(DataError, match="built with tokenizer"):
        CliRunner().invoke(app, [*words, str(store_folder)], catch_exceptions=False)


def test_two_workers_give_the_scores_of_one(study: Study, tmp_path: Path) -> None:
    study("data", tmp_path / "one", "--steps", "4")
    study("data", tmp_path / "two", "--steps", "4", "--workers", "2")
    assert scores(tmp_path / "one") == scores(tmp_path / "two")


def test_a_dry_run_tells_rows_differences_and_time_and_writes_nothing(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("albert.pretrain.pace.BUDGET", 0.05)
    plan = study("optimizer", tmp_path / "out", "--steps", "4", "--seeds", "3", "--dry-run")
    assert [row["differences"] for row in plan["rows"]] == [{"optimizer.name": n} for n in ("lamb", "adamw", "muon")]
    assert [row["runs"] for row in plan["rows"]] == [3, 3, 3]
    assert plan["seconds"] > 0
    assert not (tmp_path / "out").exists()


def test_a_part_of_a_store_is_whole_documents_from_all_of_it(store: TokenStore, tmp_path: Path) -> None:
    part = write_part(store, tmp_path / "part", tokens=store.num_tokens // 3)
    assert abs(part.num_documents - store.num_documents / 3) <= 1
    assert 0.2 < part.num_tokens / store.num_tokens < 0.5
    whole = {tuple(store.shards[0].tokens[a:b]) for a, b in _documents(store)}
    assert {tuple(part.shards[0].tokens[a:b]) for a, b in _documents(part)} < whole
    with pytest.raises(UsageError, match="a part was to have"):
        write_part(store, tmp_path / "more", tokens=store.num_tokens)


def _documents(store: TokenStore) -> list[tuple[int, int]]:
    (shard,) = store.shards
    ends = shard.sentences[shard.documents]
    return list(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
