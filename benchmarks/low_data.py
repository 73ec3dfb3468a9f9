"""Few labelled rows, where pre-training should pay most: `python benchmarks/low_data.py --record`.

100 to 10,000 rows of SST-2 and of a topic task (which of 44 articles a question is about, from SQuAD), tuned by the
rule from `tiny-en`, from new weights of its shape, and by a bag of words. Three seeds, each with rows of its own; run
again to resume, also on another machine from what was recorded.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from tuning_runs import MADE, Cell, Job, carry_over, finished_runs, recording, run_jobs

from albert.finetune.rules import epochs_for

SIZES = (100, 300, 1_000, 3_000, 10_000)
STARTS = {"trained": "tiny-en", "random": "same shape, new weights", "words": "bag of words"}
TASKS = {
    "SST-2": {"data": "glue/SST-2"},
    "topics": {"data": f"{MADE}topics-train.jsonl", "dev": f"{MADE}topics-dev.jsonl"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=recording.ROOT / "runs" / "low-data")
    parser.add_argument("--model", default="tiny-en")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--finished", action="store_true", help="the table of the runs that are done, and no further ones"
    )
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    wanted = [
        Job(cell(task, size, seed), arguments.model, start, seed=seed)
        for seed in range(arguments.seeds)
        for task in TASKS
        for size in SIZES
        for start in STARTS
    ]
    carry_over(wanted, arguments.work, "low-data")
    if arguments.finished:
        runs = finished_runs(wanted, arguments.work)
    else:
        runs = run_jobs(wanted, arguments.work, processes=arguments.processes)
    rows = table(runs, arguments.model)
    recording.print_table(rows)
    if arguments.record:
        recording.record(
            "low-data",
            rows,
            title="Few labelled rows",
            scores="accuracy on dev at the end of each run; mean and standard deviation over the seeds",
            runs=runs,
        )


def cell(task: str, size: int, seed: int) -> Cell:
    """Return a task with some of its rows, which the seed chooses, for as long as the rule says."""
    reading = {"limit_train": size, "seed": seed}
    return Cell(f"{task} {size}", **TASKS[task], reading=reading, epochs=epochs_for(size))


def table(runs: list[dict[str, Any]], model: str) -> list[dict[str, Any]]:
    """Return a row per task and start, a column per size, in percent."""
    rows = []
    for task in TASKS:
        for start, name in (STARTS | {"trained": model}).items():
            row = {"task": task, "start": name}
            for size in SIZES:
                own = [r for r in runs if r["cell"] == f"{task} {size}" and r["start"] == start]
                scores = [100 * run["score"] for run in own]
                spread = f" ± {stdev(scores):.1f}" if len(scores) > 1 else ""
                row[f"{size:,}"] = f"{mean(scores):.1f}{spread}" if scores else "–"
            rows.append(row)
    return rows


if __name__ == "__main__":
    main()
