"""Fine-tunings for the tables: cells of tasks and sizes, run by two processes of one thread each, resumable.

Each run is scored at its end only: no score is the best of several. A run that diverges has the baseline's score: it is
left out of no mean. A folder of runs is of one model and one precision: a job that finds another's result there refuses
it. A table of hours may be made on several machines: what is recorded of the same model and data is not run again
(`carry_over`). What a run needs beside the shipped data (QNLI's training pairs, topics) is made from SQuAD into the
folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before torch: two such runs get a third more done than one with two threads

import recording

from albert import finetune
from albert.data.engines import end_with_parent
from albert.files import atomic_write, write_json
from albert.finetune.settings import FinetuneSettings
from albert.finetune.start import Start
from albert.finetune.words import KEPT
from albert.hardware import advise_precision
from albert.labelled.catalog import DataRequest, open_data
from albert.model.config import to_json
from albert.settings import check_settings
from albert.tasks.bag_of_words import bag_of_words
from albert.text.sentences import split_sentences
from albert.train.loop import BadLoss

ONLY_THE_LAST = 10**6  # steps between evaluations
MADE = "made:"  # a file that `make_data` writes into the folder of the runs


@dataclass(frozen=True)
class Cell:
    """A task of a table: its data below the data folder, and how it is read and tuned."""

    name: str
    data: str
    task: str | None = None
    dev: str | None = None
    seeds: int = 3
    reading: Mapping[str, Any] = field(default_factory=dict)  # settings of the section `data`
    epochs: float = 3.0


@dataclass(frozen=True)
class Job:
    """One run: a cell, a start and what is set for it."""

    cell: Cell
    model: str
    start: str  # trained, random, or words (the bag of words)
    seed: int = 0
    lr: float | None = None  # None: the rule's
    embedding_lr_factor: float | None = None
    epochs: float | None = None  # None: the cell's
    tune: tuple[tuple[str, Any], ...] = ()  # other settings of the section `tune`
    precision: str = "auto"

    @property
    def folder(self) -> str:
        """Return the name of the run's folder: what tells it from the others of a table."""
        parts = [self.cell.name, self.start, self.seed]
        parts += [f"{name}{value}" for name, value in (("lr", self.lr), ("emb", self.embedding_lr_factor)) if value]
        parts += [f"e{self.epochs or self.cell.epochs:g}", *(f"{name}-{value}" for name, value in self.tune)]
        return _as_name("-".join(map(str, parts)))

    def identity(self) -> dict[str, Any]:
        """Return what the folder's name does not say: the model, and how its data are read."""
        model = None
        if self.start != "words":
            start = Start.find(self.model)
            shape = json.dumps([to_json(start.config), start.tokenizer.fingerprint], sort_keys=True)
            model = start.fingerprint if self.start == "trained" else hashlib.sha256(shape.encode()).hexdigest()
        precision = advise_precision("cpu") if self.precision == "auto" else self.precision
        return {"model": model, "precision": precision, "reading": dict(self.cell.reading)}

    def run(self, work: Path) -> dict[str, Any]:
        """Tune one model, or read what an earlier call left."""
        out, began, identity = work / self.folder, time.monotonic(), self.identity()
        if (done := out / "job.json").exists():
            found = json.loads(done.read_text())
            if found.get("identity") != identity:
                sys.exit(f"{out}: is of {found.get('identity')}, not of {identity}: give another --work")
            return found
        values: dict[str, Any] = {
            "data": dict(self.cell.reading),
            "train": {"seed": self.seed, "eval_every": ONLY_THE_LAST, "save_every": 200, "precision": self.precision},
            "tune": {"epochs": self.epochs or self.cell.epochs, **dict(self.tune)},
            "optimizer": {},
        }
        if self.start == "random":
            values["tune"]["start"] = "random"
        if self.lr:
            values["optimizer"]["lr"] = self.lr
        if self.embedding_lr_factor:
            values["optimizer"]["embedding_lr_factor"] = self.embedding_lr_factor
        settings = check_settings(FinetuneSettings, values, source="benchmarks")
        dev = find(work, self.cell.dev) if self.cell.dev else None
        request = DataRequest(find(work, self.cell.data), task=self.cell.task, dev=dev, **settings.data.model_dump())
        opened = open_data(request)
        rows = next(iter(opened.splits.dev.values()))
        found = {
            "folder": self.folder,
            "identity": identity,
            "commit": recording.commit(),
            "cpu": recording.machine()["cpu"],
            "cell": self.cell.name,
            "start": self.start,
            "seed": self.seed,
            "lr": self.lr,
            "embedding_lr_factor": self.embedding_lr_factor,
            "epochs": self.epochs or self.cell.epochs,
            "train": len(opened.splits.train),
            "dev": len(rows),
            "score_is": opened.task.best,
        }
        if self.start == "words":
            decided = bag_of_words(opened.task, opened.splits.train, rows)
            found["score"] = opened.task.score(rows, decided)[opened.task.best] if decided else None
            out.mkdir(parents=True, exist_ok=True)
        else:
            decide = opened.task.baseline(rows)
            found["baseline"] = (
                opened.task.score(rows, [decide(row) for row in rows])[opened.task.best] if decide else 0.0
            )
            try:
                fitted = next(work.glob(f"{_as_name(self.cell.name)}-*/{KEPT}"), None)  # on the same rows, or not taken
                words = fitted.parent if fitted else None
                result = finetune.finetune(opened, self.model, out, settings=settings, words_from=words)
            except BadLoss as problem:
                found |= {"score": found["baseline"], "problem": str(problem)}
            else:
                assert isinstance(result, finetune.Finetuned)
                found |= {
                    "score": result.chosen.score,
                    "baseline": result.baseline,
                    "scores": result.chosen.scores,
                    "steps": result.chosen.steps,
                }
        found["seconds"] = round(time.monotonic() - began)
        write_json(done, found)
        return found


def _as_name(words: str) -> str:
    return re.sub(r"[^\w.-]+", "-", words)


def find(work: Path, name: str) -> Path:
    """Return the file or folder of a cell's data."""
    if name.startswith(MADE):
        return work / "data" / name.removeprefix(MADE)
    return recording.data_folder() / name


def run_jobs(jobs: Iterable[Job], work: Path, *, processes: int) -> list[dict[str, Any]]:
    """Run all jobs, those that are done excepted, and return what each gave."""
    wanted = list(jobs)
    make_data(work)
    runs = []
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_watch_parent) as pool:
        futures = [pool.submit(job.run, work) for job in wanted]
        for number, future in enumerate(as_completed(futures), start=1):
            run = future.result()
            runs.append(run)
            score = "none" if run["score"] is None else f"{run['score']:.4f}"
            where = (
                f"{run['cell']}, {run['start']}, seed {run['seed']}, rate {run['lr']}, x{run['embedding_lr_factor']}"
            )
            print(f"{number}/{len(wanted)} {where}, {run['epochs']} epochs: {score} ({run['seconds']} s)", flush=True)
    return runs


def finished_runs(jobs: Iterable[Job], work: Path) -> list[dict[str, Any]]:
    """Return what those jobs gave that are done."""
    return [job.run(work) for job in jobs if (work / job.folder / "job.json").exists()]


def carry_over(jobs: Iterable[Job], work: Path, name: str) -> None:
    """Put the runs of a recorded table into the folder of runs where they are of the same model and data."""
    path = recording.ROOT / "benchmarks" / "results" / f"{name}.json"
    runs = json.loads(path.read_text())["runs"] if path.exists() else []
    recorded = {run["folder"]: run for run in runs if "folder" in run}
    for job in jobs:
        run, done = recorded.get(job.folder), work / job.folder / "job.json"
        if run and not done.exists() and run["identity"] == job.identity():
            done.parent.mkdir(parents=True, exist_ok=True)
            write_json(done, run)


def _watch_parent() -> None:
    threading.Thread(target=end_with_parent, daemon=True).start()


def make_data(work: Path) -> None:
    """Write what the shared data has no file for: QNLI's training pairs and topics of questions, both from SQuAD."""
    squad, glue = recording.data_folder() / "squad", recording.data_folder() / "glue"
    articles = json.loads((squad / "train-subset-v1.1.json").read_text())["data"]
    _write(work / "data" / "qnli-train.jsonl", _qnli(articles))
    lines = (line.split("\t") for line in (glue / "QNLI" / "dev.tsv").read_text().splitlines()[1:])
    _write(work / "data" / "qnli-dev.jsonl", ({"text": row[1], "pair": row[2], "label": row[3]} for row in lines))
    paragraphs = [(article["title"], paragraph["qas"]) for article in articles for paragraph in article["paragraphs"]]
    random.Random(0).shuffle(paragraphs)  # questions about one paragraph stay on one side
    topics = {question["question"].strip(): title for title, questions in paragraphs for question in questions}
    rows = [{"text": text, "label": title} for text, title in topics.items()]
    dev = sum(len(questions) for _, questions in paragraphs[: len(paragraphs) // 8])
    draw = random.Random(1)
    for name, part in (("topics-dev.jsonl", rows[:dev]), ("topics-train.jsonl", rows[dev:])):
        draw.shuffle(part)
        _write(work / "data" / name, part)


def _qnli(articles: list[Any]) -> Iterator[dict[str, str]]:
    """Yield question and sentence as QNLI has them: the one with the answer, or the most alike of the others."""
    draw = random.Random(0)
    for article in articles:
        for paragraph in article["paragraphs"]:
            sentences = [" ".join(part.split()) for part in split_sentences(paragraph["context"], language="en")]
            for question in paragraph["qas"]:
                answer = " ".join(question["answers"][0]["text"].split())
                words = set(question["question"].lower().split())
                holding = [sentence for sentence in sentences if answer in sentence]
                others = [sentence for sentence in sentences if answer not in sentence]
                chosen = holding if draw.random() < 0.5 else others
                if chosen:
                    nearest = max(chosen, key=lambda sentence: len(words & set(sentence.lower().split())))
                    label = "entailment" if chosen is holding else "not_entailment"
                    yield {"text": question["question"].strip(), "pair": nearest, "label": label}


def _write(path: Path, rows: Iterable[Mapping[str, str]]) -> None:
    """Write JSON lines, unless they are there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.writelines((json.dumps(row) + "\n").encode() for row in rows)
