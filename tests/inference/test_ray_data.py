"""`albert predict --cluster ray` on a real Ray of two nodes: the rows, notes and errors of one process."""

from __future__ import annotations

import csv
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from albert.cli import app
from albert.errors import DataError, ResourceError, UsageError
from albert.inference import ray_data
from albert.inference.file_job import FileJob, Use
from albert.tasks.classification import Classification
from ray_nodes import two_nodes

WORDS = ["the", "old", "harbour", "was", "quiet", "when", "a", "small", "grey", "ship", "and", "nobody", "winter"]
ROWS = 3 * ray_data.CHUNK + 7
run = CliRunner()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Start two nodes of one CPU each on this machine."""
    with two_nodes() as nodes:
        yield nodes.address


@pytest.fixture
def classifier(make_folder: Any) -> str:
    task = Classification(("bad", "good"), max_length=32)
    return str(make_folder(task=task, columns={"text": "review", "label": "stars"}))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Write a table of many lengths, with texts that are empty, too long, and full of odd signs."""
    path = tmp_path / "reviews.csv"
    rng = np.random.default_rng(3)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "review", "stars"])
        for number in range(ROWS):
            text = " ".join(rng.choice(WORDS, size=rng.integers(1, 60)))
            rows.writerow([f"r{number}", {5: "", 700: 'é\u202e🙂, "quoted"\nline'}.get(number, text), number % 2])
    path.write_bytes(path.read_bytes().replace(b"\nr9,", b"\nr9,\xff", 1))  # no UTF-8: there is a note about it
    return path


def predict(*words: str) -> str:
    result = run.invoke(app, ["predict", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stderr


def notes(said: str) -> list[str]:
    """Return what was said of the inputs; the progress is another in every run."""
    return [line for line in said.splitlines() if line.startswith("note:")]


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def alike(found: Any, truth: Any) -> bool:
    """Compare records: all the same, numbers within 1e-5."""
    if isinstance(truth, dict):
        return list(found) == list(truth) and all(alike(found[name], truth[name]) for name in truth)
    if isinstance(truth, list):
        return len(found) == len(truth) and all(map(alike, found, truth))
    return abs(found - truth) <= 1e-5 if isinstance(truth, float) else found == truth


@pytest.mark.cluster
def test_a_file_has_the_rows_order_and_notes_of_one_process(
    classifier: str, table: Path, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a path that workers, which run elsewhere, could not follow
    said = {}
    for name, more in (("here", []), ("there", ["--cluster", "ray", "--address", address])):
        said[name] = predict(classifier, table.name, "--out", f"{name}.jsonl", *more)
    here, there = records(tmp_path / "here.jsonl"), records(tmp_path / "there.jsonl")
    assert [one["id"] for one in there] == [f"r{number}" for number in range(ROWS)]
    assert there[5]["warning"] == "empty text"
    assert any("tokens were not read" in (one["warning"] or "") for one in there)
    assert alike(there, here)
    assert notes(said["there"]) == notes(said["here"])
    assert "not UTF-8" in said["there"]


@pytest.mark.cluster
def test_vectors_are_those_of_one_process(classifier: str, table: Path, tmp_path: Path, address: str) -> None:
    for name, more in (("here", []), ("there", ["--cluster", "ray", "--address", address])):
        predict(classifier, str(table), "--task", "embed", "--out", str(tmp_path / f"{name}.npy"), *more)
    here, there = np.load(tmp_path / "here.npy"), np.load(tmp_path / "there.npy")
    assert np.isnan(there[5]).all()
    np.testing.assert_allclose(there, here, atol=1e-5)


@pytest.mark.cluster
def test_a_bad_row_is_the_same_error(classifier: str, tmp_path: Path, address: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"review": "a ship"}\n' * 600 + '{"review": 7}\n')
    said = []
    for more in ([], ["--cluster", "ray", "--address", address]):
        with pytest.raises(DataError) as refused:
            predict(classifier, str(path), "--out", str(tmp_path / "out.jsonl"), *more)
        said.append(str(refused.value))
    assert said[1] == said[0]
    assert "bad.jsonl:601" in said[1]
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.cluster
def test_what_goes_wrong_on_a_node_is_said_in_one_line(classifier: str, table: Path, address: str) -> None:
    nowhere = FileJob(Use(classifier), table.with_name("nowhere.csv"), {})
    with pytest.raises(UsageError, match=r"nowhere\.csv: is not seen by a node of the cluster"):
        list(ray_data.decide_on_cluster(nowhere, address=address))
    unable = FileJob(Use(classifier, task="fill"), table, {})
    with pytest.raises(UsageError, match="can't fill: its heads are"):
        list(ray_data.decide_on_cluster(unable, address=address))
    with pytest.raises(ResourceError, match=r"no Ray cluster at 127\.0\.0\.1:1"):
        list(ray_data.decide_on_cluster(unable, address="127.0.0.1:1"))


@pytest.mark.cluster
def test_a_killed_worker_changes_nothing_and_a_resumed_run_skips_what_is_there(
    classifier: str, table: Path, address: str
) -> None:
    job = FileJob(Use(classifier), table, {"text": "review"})
    model = job.use.open()
    from albert.text.documents import ReadReport

    truth = list(job.results(model, job.read(model, ReadReport())))
    killed: list[int] = []

    def kill() -> None:
        end = time.monotonic() + 120
        while not killed and time.monotonic() < end:
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    if b"MapWorker" in (process / "cmdline").read_bytes():
                        os.kill(int(process.name), signal.SIGKILL)
                        killed.append(int(process.name))
                        return
                except OSError:
                    continue
            time.sleep(0.01)

    killing = threading.Thread(target=kill)
    killing.start()
    found = list(ray_data.decide_on_cluster(job, address=address, skip=600))
    killing.join()
    assert killed
    assert alike(found, truth[600:])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["one text", "--cluster", "ray"], "is for a file or folder that all nodes see"),
        (["-", "--cluster", "ray"], "is for a file or folder that all nodes see"),
        (["one text", "--address", "here:1"], "add --cluster ray"),
    ],
)
def test_options_that_do_not_fit_are_refused(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        run.invoke(app, ["predict", "tiny-en", *words], catch_exceptions=False)


def test_without_ray_the_fix_is_named(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("albert.cli.predict.find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"pip install 'albert-lite\[ray\]'"):
        run.invoke(app, ["predict", "tiny-en", str(table), "--cluster", "ray"], catch_exceptions=False)
