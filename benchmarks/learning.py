"""What pre-training is worth: `tiny-en` against the same shape with new weights, tuned on nine tasks: `make learning`.

Both starts get the same examples, batches and steps, and each the rate that is better for it. Each run is scored once,
at its end: no score is the best of several. Two processes of one thread each take the runs; run again to resume. The
third row of the table is the best decision that reads no text: the majority class, no answer, always the same choice.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from statistics import mean, stdev
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before torch: two such runs get a third more done than one with two threads

import recording

from albert import finetune
from albert.files import write_json
from albert.finetune.settings import FinetuneSettings
from albert.labelled.catalog import DataRequest, open_data
from albert.settings import check_settings

MODEL = "tiny-en"
STARTS = {"trained": MODEL, "random": "same shape, new weights"}
BLIND = "without reading"
ONLY_THE_LAST = 10**6  # steps between evaluations


@dataclass(frozen=True)
class Cell:
    """A task of the table: its data below the data folder, how much of it, and how long it is trained."""

    name: str
    data: str
    epochs: float
    task: str | None = None
    dev: str | None = None
    seeds: int = 3
    reading: dict[str, Any] = field(default_factory=dict)  # settings of the section `data`

    def run(self, folder: Path, start: str, seed: int) -> dict[str, Any]:
        """Tune one model, or read what an earlier call left."""
        began, data = time.monotonic(), recording.data_folder()
        values = {
            "data": self.reading,
            "train": {"seed": seed, "batch_size": 16, "eval_every": ONLY_THE_LAST, "save_every": 200},
            "optimizer": {"lr": RATES[start]},
            "tune": {"epochs": self.epochs, "start": start},
        }
        settings = check_settings(FinetuneSettings, values, source="benchmarks/learning.py")
        dev = data / self.dev if self.dev else None
        opened = open_data(DataRequest(data / self.data, task=self.task, dev=dev, **settings.data.model_dump()))
        out = folder / f"{self.name}-{start}-{seed}".replace(" ", "-")
        result = finetune.finetune(opened, MODEL, out, settings=settings)
        assert isinstance(result, finetune.Finetuned)
        if not (spent := out / "seconds.json").exists():  # a later call reads the run, and this
            write_json(spent, round(time.monotonic() - began))
        return {
            "task": self.name,
            "start": start,
            "seed": seed,
            "score_is": result.deciding.removeprefix("valid_"),
            "score": result.chosen.score,
            BLIND: result.baseline,
            "scores": result.chosen.scores,
            "train": len(opened.splits.train),
            "dev": len(next(iter(opened.splits.dev.values()))),
            "steps": result.chosen.steps,
            "seconds": json.loads(spent.read_text()),
        }


RATES = {"trained": 1e-3, "random": 3e-4}  # the better of these two for each, by SST-2 with seed 0 (docs/lab_log.md)
CELLS = (
    Cell(
        "SQuAD 1.1",
        "squad/train-subset-v1.1.json",
        1,
        task="squad",
        dev="squad/dev-v1.1.json",
        reading={"limit_train": 2_000, "limit_dev": 1_000, "max_length": 128},
    ),
    Cell(
        "SQuAD 2.0",
        "squad/dev-half-v2.0.json",
        1,
        task="squad",
        seeds=1,
        reading={"limit_train": 1_000, "limit_dev": 500, "max_length": 128},
    ),
    Cell("RACE", "race", 1, task="race", seeds=1, reading={"limit_train": 500, "limit_dev": 500, "max_length": 128}),
    Cell("SST-2", "glue/SST-2", 1, reading={"limit_train": 10_000}),
    Cell("STS-B", "glue/STS-B", 1.5),
    Cell(
        "MNLI",
        "nli/mnli.subset-train.jsonl",
        1,
        task="mnli",
        dev="nli/mnli.subset-dev.jsonl",
        reading={"limit_train": 3_000},
    ),
    Cell("MRPC", "glue/MRPC", 1),
    Cell("CoLA", "glue/CoLA", 1),
    Cell("RTE", "glue/RTE", 1),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=recording.ROOT / "runs" / "learning", help="folder of the runs")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    runs = run_all(arguments.work, processes=arguments.processes)
    minutes = sum(run["seconds"] for run in runs) / 60 / arguments.processes
    rows = table(runs)
    recording.print_table(rows)
    print(f"{minutes:.0f} minutes of {arguments.processes} processes")
    if arguments.record:
        recording.record(
            "learning",
            rows,
            title="What pre-training is worth",
            minutes=round(minutes, 1),
            scores="on dev at the end of each run; mean and standard deviation over the seeds",
            cells=[asdict(cell) for cell in CELLS],
            rates=RATES,
            runs=runs,
        )


def run_all(work: Path, *, processes: int) -> list[dict[str, Any]]:
    """Run every cell from both starts; the first seed of all of them first."""
    wanted = [
        (cell, start, seed)
        for seed in range(max(cell.seeds for cell in CELLS))
        for cell in CELLS
        for start in STARTS
        if seed < cell.seeds
    ]
    runs = []
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(cell.run, work, start, seed) for cell, start, seed in wanted]
        for number, future in enumerate(as_completed(futures), start=1):
            run = future.result()
            runs.append(run)
            where = f"{number}/{len(wanted)} {run['task']}, {STARTS[run['start']]}, seed {run['seed']}"
            print(f"{where}: {run['score_is']} {run['score']:.4f} ({run['seconds']} s)", flush=True)
    return runs


def table(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give a row a start, a column a task, and the mean over the tasks; scores are in percent."""
    rows: list[dict[str, Any]] = []
    for start, name in [*STARTS.items(), ("", BLIND)]:
        row: dict[str, Any] = {"start": name}
        means = []
        for cell in CELLS:
            own = [run for run in runs if run["task"] == cell.name and run["start"] == (start or "trained")]
            scores = [100 * run["score" if start else BLIND] for run in own]
            means.append(mean(scores))
            spread = f" ± {stdev(scores):.1f}" if start and len(scores) > 1 else ""
            row[f"{cell.name}, {own[0]['score_is']}"] = f"{means[-1]:.1f}{spread}"
        rows.append(row | {"mean": f"{mean(means):.1f}"})
    return rows


if __name__ == "__main__":
    main()
