"""The report of a pre-training run, from run folders made by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from albert.cli import app
from albert.errors import UsageError
from albert.report.writing import write_report

RUN = {
    "identity": {
        "stage": "pretrain",
        "model": "tiny",
        "settings": {"train": {"steps": 40}, "data": {"objective": "sop"}, "grow": {"depth": []}},
        "store": "5702e5702e",
        "valid": None,
    },
    "command": ["albert", "pretrain", "--data", "my store"],
    "started": "2026-01-02T03:04:05+00:00",
    "versions": {"torch": "2.13.0"},
    "processes": 1,
}


def training(step: int, loss: Any) -> dict[str, Any]:
    return {
        "step": step, "loss": loss, "lr": 0.001, "gradient_norm": 1.0, "mlm_loss": loss, "mlm_accuracy": 0.1,
        "order_accuracy": 0.5, "tokens_per_second": 1000.0,
    }  # fmt: skip


def held_out(step: int, loss: float) -> dict[str, Any]:
    return {"step": step, "valid_mlm_loss": loss, "valid_mlm_accuracy": 0.25, "valid_sop_accuracy": 0.625}


def run_folder(folder: Path, metrics: list[dict[str, Any]], **changes: Any) -> Path:
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(RUN | changes))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in metrics))
    return folder


def report_of(folder: Path) -> str:
    return write_report(folder).read_text(encoding="utf-8")


def captions(text: str) -> list[str]:
    return re.findall(r"<figcaption>(.*?)</figcaption>", text)


def test_a_finished_run_shows_figures_curves_settings_and_origins(tmp_path: Path) -> None:
    metrics = [training(10, 9.0), training(20, 8.0), held_out(20, 7.25), training(40, 7.0), held_out(40, 7.5)]
    text = report_of(run_folder(tmp_path / "run", metrics))
    assert "Finished: 40 steps." in text
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>.*?</tr>", text)]
    assert ["MLM loss", "7.500", "7.250", "20"] in rows
    assert ["sentence order (SOP)", "62.5%", "62.5%", "20"] in rows
    assert "MLM loss in training: 7.000" in text
    assert "+0.500" in text
    assert captions(text) == [
        "Loss in training, all objectives", "Masked words: loss", "Masked words: accuracy",
        "Order of segments: accuracy", "Learning rate", "Norm of the gradient", "Tokens per second",
    ]  # fmt: skip
    for fact in (
        "<dt>train.steps</dt><dd>40</dd>",
        "<dt>store</dt><dd>5702e5702e</dd>",
        "<dt>torch</dt><dd>2.13.0</dd>",
    ):
        assert fact in text
    assert "albert pretrain --data &#x27;my store&#x27;" in text


def test_the_file_loads_nothing(tmp_path: Path) -> None:
    text = report_of(run_folder(tmp_path / "run", [training(10, 9.0), held_out(10, 8.0)]))
    assert not re.findall(r"""(?:src|href)=["'](?!#)|url\((?!#)|@import|https?:""", text)
    assert "<script" not in text


def test_what_a_folder_says_is_escaped(tmp_path: Path) -> None:
    hostile = "</style><script>alert(1)</script>"
    identity = RUN["identity"] | {"model": hostile, "settings": {hostile: hostile}}  # type: ignore[operator]
    folder = run_folder(
        tmp_path / "<b>run", [training(10, 9.0)], identity=identity, command=[hostile], started=hostile,
        versions={hostile: hostile},
    )  # fmt: skip
    text = report_of(folder)
    assert "<script" not in text
    assert "<b>" not in text
    assert text.count("&lt;script&gt;") >= 6


def test_an_unfinished_run_says_how_far_it_is(tmp_path: Path) -> None:
    text = report_of(run_folder(tmp_path / "run", [training(10, 9.0)]))
    assert "Not finished: 10 of 40 steps" in text
    assert "No held-out evaluation" in text
    assert "Masked words: loss" in captions(text)


def test_a_run_that_logged_nothing_has_a_report_all_the_same(tmp_path: Path) -> None:
    text = report_of(run_folder(tmp_path / "run", []))
    assert "Nothing is logged yet." in text
    assert captions(text) == []


def test_losses_that_are_no_numbers_are_counted_and_not_drawn(tmp_path: Path) -> None:
    text = report_of(run_folder(tmp_path / "run", [training(10, 9.0), training(20, "nan"), training(30, "inf")]))
    assert "not finite numbers: 2." in text
    assert "nan" not in "".join(re.findall(r' d="(.*?)"', text))


def test_a_run_json_without_the_usual_fields_is_survived(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", [training(10, 9.0)])
    (folder / "run.json").write_text('{"identity": {"settings": 3}, "versions": [], "command": "x"}')
    assert "of unknown steps" in report_of(folder)


def test_the_command_writes_the_file_and_names_it(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", [training(10, 9.0)])
    result = CliRunner().invoke(app, ["report", str(folder), "--json"])
    assert json.loads(result.stdout) == {"report": str(folder / "report.html")}
    assert (folder / "report.html").exists()


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no run\.json: give the folder that was --out"):
        write_report(tmp_path)
