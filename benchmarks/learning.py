"""What pre-training is worth: `tiny-en` against the same shape with new weights and a bag of words: `make learning`.

The trained start is tuned by the rule's rate, new weights by `--random-lr`: each by its own best of the search
(benchmarks/search_rule.py, `--start trained` and `--start random`), for the same number of epochs, with three seeds,
and scored once, at the end of each run. The search holds its dev rows out of training files: what is reported chose
nothing. Two processes of one thread each take the runs; run again to resume, also on another machine from what was
recorded (`--finished --record` records the runs that are done). The last row is the baseline: the best
decision that reads no text (majority class, mean, no answer).
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from tuning_runs import MADE, Cell, Job, carry_over, finished_runs, recording, run_jobs

MODEL = "tiny-en"
STARTS = {"trained": MODEL, "random": "same shape, new weights", "words": "bag of words"}
BASELINE = "baseline"
CELLS = (
    Cell("SST-2", "glue/SST-2"),
    Cell("STS-B", "glue/STS-B", epochs=10),
    Cell("MNLI", "nli/mnli.subset-train.jsonl", task="mnli", dev="nli/mnli.dev-matched.jsonl"),
    Cell("QNLI", f"{MADE}qnli-train.jsonl", dev=f"{MADE}qnli-dev.jsonl"),
    Cell("MRPC", "glue/MRPC", epochs=10),
    Cell("RTE", "glue/RTE", epochs=10),
    Cell(
        "SQuAD 1.1",
        "squad/train-subset-v1.1.json",
        task="squad",
        dev="squad/dev-v1.1.json",
        seeds=1,
        reading={"limit_dev": 2_000, "max_length": 192},
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=recording.ROOT / "runs" / "learning", help="folder of the runs")
    parser.add_argument("--model", default=MODEL, help="the pre-trained start")
    parser.add_argument("--random-lr", type=float, default=3e-4, help="the rate of new weights")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--finished", action="store_true", help="the table of the runs that are done, and no further ones"
    )
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    wanted = jobs(arguments.model, arguments.random_lr)
    carry_over(wanted, arguments.work, "learning")
    if arguments.finished:
        runs = finished_runs(wanted, arguments.work)
    else:
        runs = run_jobs(wanted, arguments.work, processes=arguments.processes)
    minutes = sum(run["seconds"] for run in runs) / 60 / arguments.processes
    rows = table(runs, arguments.model)
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
            runs=runs,
        )


def jobs(model: str, random_lr: float) -> list[Job]:
    """List every run, the first seed of all cells first; batches and the trained start's rate are the rule's."""
    return [
        Job(cell, model, start, seed=seed, lr=random_lr if start == "random" else None)
        for seed in range(max(cell.seeds for cell in CELLS))
        for cell in CELLS
        for start in STARTS
        if seed < (1 if start == "words" else cell.seeds)
    ]


def table(runs: list[dict[str, Any]], model: str) -> list[dict[str, Any]]:
    """Return a row per start, a column per task, and the mean over the tasks that all rows have, in percent."""
    rows: list[dict[str, Any]] = []
    shared = {run["cell"] for run in runs if run["start"] == "words" and run["score"] is not None}
    for start, name in [*(STARTS | {"trained": model}).items(), (BASELINE, BASELINE)]:
        row: dict[str, Any] = {"start": name}
        means = []
        for cell in CELLS:
            of = "trained" if start == BASELINE else start
            own = [run for run in runs if run["cell"] == cell.name and run["start"] == of]
            scores = [100 * run[BASELINE if start == BASELINE else "score"] for run in own if run["score"] is not None]
            title = f"{cell.name}, {own[0]['score_is']}" if own else cell.name
            row[title] = "–"
            if scores:
                spread = f" ± {stdev(scores):.1f}" if len(scores) > 1 and start != BASELINE else ""
                row[title] = f"{mean(scores):.1f}{spread}"
                means += [mean(scores)] if cell.name in shared else []
        rows.append(row | {f"mean of {len(shared)}": f"{mean(means):.1f}" if means else "–"})
    return rows


if __name__ == "__main__":
    main()
