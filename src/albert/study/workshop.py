"""Where the runs of a study are made and what is known of them.

A run's folder is OUT/rows/KEY: `row.json` says what it is, `pretrain/` is the run folder of pre-training, `scores.json`
its scores, `layers.json` the change from layer to layer, `tasks/` the run folders of fine-tuning. Trains nothing.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from albert.data.part import write_part
from albert.data.store import TokenStore
from albert.files import read_json
from albert.finetune.settings import FinetuneSettings
from albert.labelled.catalog import DataRequest, open_data
from albert.labelled.request import Opened
from albert.study.resolve import KEY_LENGTH, Run

ROW, SCORES, LAYERS, SUMMARY = "row.json", "scores.json", "layers.json", "summary.json"
TIMES = ("tokens_per_second", "minutes", "memory")  # what is not the same bit for bit when a run is made again


@dataclass(frozen=True)
class TaskData:
    """Labelled data that every run is tuned on."""

    name: str
    path: Path
    key: str  # of its contents and the settings of fine-tuning


@dataclass(frozen=True)
class Job:
    """A run, and what is to be measured of it."""

    run: Run
    name: str  # for people: the study, the row and the seed
    tasks: bool = True
    layers: bool = False


@dataclass(frozen=True)
class Workshop:
    """Where runs are made, and what they learn from."""

    out: Path
    data: Path
    valid: Path
    tasks: tuple[TaskData, ...] = ()
    tune: FinetuneSettings = field(default_factory=FinetuneSettings)
    threads: int = 1  # of every run: another number rounds otherwise

    def folder(self, run: Run) -> Path:
        """Return the folder of a run."""
        return self.out / "rows" / run.key

    def pretrained(self, run: Run) -> Path:
        """Return the run folder of a run's pre-training."""
        return self.folder(run) / "pretrain"

    def task_folder(self, run: Run, task: TaskData) -> Path:
        """Return the run folder of a run's fine-tuning."""
        return self.folder(run) / "tasks" / f"{task.name}-{task.key}"

    def start(self, run: Run) -> str:
        """Return what a run starts from: a preset, or the model of another run."""
        return str((self.pretrained(run.start) / "model").resolve()) if run.start else run.model

    def store(self, run: Run) -> TokenStore:
        """Return the text that a run learns from; a part of the store is written when it is first asked for."""
        if run.text is None:
            return TokenStore.open(self.data)
        folder = self.out / "text" / f"{run.store[:KEY_LENGTH]}-{run.text}"
        if (folder / "manifest.json").exists():
            return TokenStore.open(folder)
        return write_part(TokenStore.open(self.data), folder, tokens=run.text)

    def failed(self, run: Run) -> bool:
        """Tell whether a run ended without a model: its loss exploded."""
        return "problem" in read_json(self.folder(run) / SCORES)

    def is_done(self, job: Job) -> bool:
        """Tell whether everything that is to be measured of a run is there."""
        folder = self.folder(job.run)
        if not (folder / SCORES).exists():
            return False
        if self.failed(job.run):
            return True
        tuned = all((self.task_folder(job.run, task) / SUMMARY).exists() for task in self.tasks) or not job.tasks
        return tuned and (not job.layers or (folder / LAYERS).exists())

    def open_task(self, task: TaskData) -> Opened:
        """Return labelled data, read once per process."""
        return _read_task(task.name, task.path, self.tune.model_dump_json())


def find_task(name: str, path: Path, tune: FinetuneSettings) -> TaskData:
    """Open labelled data before any run, so that what is wrong with it is said then."""
    path = path.resolve()
    settings = tune.model_dump_json()
    digest = hashlib.sha256(json.dumps([_read_task(name, path, settings).fingerprint, settings]).encode())
    return TaskData(name, path, digest.hexdigest()[:8])


@lru_cache(maxsize=4)
def _read_task(name: str, path: Path, tune: str) -> Opened:
    settings = FinetuneSettings.model_validate_json(tune)
    return open_data(DataRequest(path, task=name, **settings.data.model_dump()))
