"""`albert report` on real fine-tuning runs: one run, several seeds, and runs that are not finished."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from albert.cli import app
from albert.finetune import Finetuned, finetune
from albert.finetune.settings import FinetuneSettings
from albert.labelled.request import Opened
from albert.train.loop import Progress

MakeData = Callable[..., Opened]
MakeSettings = Callable[..., FinetuneSettings]


def report(folder: Path) -> str:
    """Delete the report that the run wrote and ask for it again."""
    path = folder / "report.html"
    path.unlink()
    done = CliRunner().invoke(app, ["report", str(folder), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {"report": str(path)}
    return path.read_text(encoding="utf-8")


def rows(text: str) -> list[list[str]]:
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>.*?</tr>", text)]


def sections(text: str) -> list[str]:
    return re.findall(r"<h2[^>]*>(.*?)</h2>", text)


def test_the_report_of_one_run_has_its_best_step_and_its_decisions(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    result = finetune(opened(noise=0.2), str(model_folder), out, settings=settings())
    assert isinstance(result, Finetuned)
    text = report(out)
    assert "Finished: 60 of 60 steps." in text
    assert f"best model (step {result.chosen.best_step})" in text
    found = {row[0]: row[1] for row in rows(text) if row}
    assert found["accuracy"] == f"{result.chosen.score:.4f}"
    assert f"(the best decision that reads no text): accuracy {result.baseline:.4f}" in text
    assert "Runs" not in sections(text)
    assert text.count("said ") >= 1, "mistakes are shown"


def test_the_report_of_several_seeds_lists_all_runs_and_shows_the_best(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    result = finetune(opened(noise=0.3), str(model_folder), out, settings=settings(train__steps=20), seeds=3)
    assert isinstance(result, Finetuned)
    text = report(out)
    assert "Runs" in sections(text)
    listed = {row[0].removesuffix(" (kept)"): row[1] for row in rows(text) if row and row[0].startswith("seed-")}
    assert listed == {run.folder: f"{run.score:.4f}" for run in result.runs}
    assert [row[0] for row in rows(text) if row and row[0].endswith("(kept)")] == [f"{result.chosen.folder} (kept)"]
    median = json.loads((out / "summary.json").read_text())["median"]
    assert f"<dt>median</dt><dd>{median:.4f}</dd>" in text
    assert f"best model (step {result.chosen.best_step})" in text
    assert f"<dt>train.seed</dt><dd>{result.chosen.seed}</dd>" in text, "the settings are those of the best run"
    card = (out / "model" / "README.md").read_text()
    assert f"median {median:.4f}" in card
    for run in result.runs:
        assert f"| {run.folder} | {run.score:.4f} |" in card
        assert "Finished" in report(out / run.folder), "every run has its own"


def test_an_interrupted_command_of_several_seeds_reports_what_there_is(
    opened: MakeData, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    def stop_at(step: int) -> Callable[[Progress], None]:
        def stop(progress: Progress) -> None:
            if progress.step >= step:
                raise KeyboardInterrupt

        return stop

    out, chosen = tmp_path / "run", settings(train__steps=20, train__eval_every=10)
    for at, words in ((15, "No run is finished yet. Begun: seed-0;"), (35, "seed-0 (kept)")):
        with pytest.raises(KeyboardInterrupt):
            finetune(opened(), str(model_folder), out, settings=chosen, seeds=3, observe=stop_at(at))
        (out / "report.html").touch()
        assert words in report(out)
    assert not [row for row in rows(report(out)) if row and row[0].startswith("seed-1")]
    (out / "seed-1" / "report.html").touch()
    assert "Not finished: 15 of 20 steps." in report(out / "seed-1")
