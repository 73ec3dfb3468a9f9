"""Two processes under torchrun: the losses and scores of one, and dev decided by both."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from albert.cli import app
from albert.labelled.request import Opened

ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
SETTINGS = {
    "train.steps": 12, "train.batch_size": 8, "train.eval_every": 4, "train.log_every": 1, "train.precision": "fp32",
    "train.timeout_minutes": 1.0, "optimizer.lr": 5e-3, "tune.dropout": 0.0, "tune.classifier_dropout": 0.0,
}  # fmt: skip


def tune(model: Path, data: Path, out: Path, *, processes: int) -> dict[str, Any]:
    words = ["finetune", "--model", str(model), "--data", str(data), "--out", str(out), "--json"]
    words += [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
    if processes == 1:
        return json.loads(CliRunner().invoke(app, words).stdout)
    meet = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]  # any free port
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes), *meet, "-m", "albert"]
    done = subprocess.run([*launch, *words], env=ENVIRONMENT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def logged(out: Path, name: str) -> list[float]:
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [line[name] for line in lines if name in line]


@pytest.mark.soak
def test_two_processes_have_the_losses_and_scores_of_one(
    opened: Callable[..., Opened], model_folder: Path, tmp_path: Path
) -> None:
    data, table = opened(), tmp_path / "reviews.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "label"])
        rows.writerows([one.text, data.task.labels[one.target]] for one in data.splits.train[:110])  # type: ignore[attr-defined]
    one, two = (tune(model_folder, table, tmp_path / str(count), processes=count) for count in (1, 2))
    losses = [logged(tmp_path / count, "loss") for count in ("1", "2")]
    assert len(losses[0]) == 12
    assert losses[1] == pytest.approx(losses[0], abs=2e-4)
    assert logged(tmp_path / "2", "valid_accuracy") == logged(tmp_path / "1", "valid_accuracy")
    assert one["runs"][0]["best_step"] == two["runs"][0]["best_step"]
    assert (tmp_path / "2" / "model" / "model.safetensors").exists()
    decisions = [(tmp_path / count / "decisions.jsonl").read_text().splitlines() for count in ("1", "2")]
    texts = [[json.loads(line)["text"] for line in lines[1:]] for lines in decisions]
    assert texts[0] == texts[1], "in the order of the examples"
