"""The search behind the rule of fine-tuning small models: rates, word embeddings' rates, epochs, on four tasks.

`python benchmarks/search_rule.py --model MODEL --record`: two seeds each, scored at the end of every run; run again to
resume. The best setting of a start is the one with the highest mean over the tasks of its score less that task's best.
Dev rows are held out of the training files: the official dev sets are for what is reported.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

from tuning_runs import MADE, Cell, Job, recording, run_jobs

CELLS = (
    Cell("SST-2, 1,000 rows", "glue/SST-2/train.tsv", reading={"limit_train": 1_000, "limit_dev": 2_000}),
    Cell("STS-B, 2,000 rows", "glue/STS-B/train.tsv", task="sts-b", reading={"limit_train": 2_000, "limit_dev": 1_000}),
    Cell(
        "MNLI, 3,000 rows",
        "nli/mnli.subset-train.jsonl",
        task="mnli",
        reading={"limit_train": 3_000, "limit_dev": 2_000},
    ),
    Cell(
        "topics, 1,000 rows",
        f"{MADE}topics-train.jsonl",
        reading={"limit_train": 1_000, "limit_dev": 1_000, "max_length": 64},
    ),
)
RATES = (1.4e-4, 4e-4, 1e-3)
FACTORS = (10.0, 3.0)  # of the word embeddings' rate
EPOCHS = (3.0, 8.0)
SEEDS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=recording.ROOT / "runs" / "search-rule")
    parser.add_argument("--model", default="tiny-en")
    parser.add_argument("--start", choices=("trained", "random"), default="trained")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--rates", type=float, nargs="+", default=RATES)
    parser.add_argument("--factors", type=float, nargs="+", default=FACTORS)
    parser.add_argument("--epochs", type=float, nargs="+", default=EPOCHS)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    wanted = [
        Job(
            cell,
            arguments.model,
            arguments.start,
            seed=seed,
            lr=lr,
            embedding_lr_factor=factor,
            epochs=epochs,
            precision=arguments.precision,
        )
        for seed in range(arguments.seeds)
        for epochs, factor, lr in product(arguments.epochs, arguments.factors, arguments.rates)
        for cell in CELLS
    ]
    runs = run_jobs(wanted, arguments.work, processes=arguments.processes)
    rows = table(runs)
    recording.print_table(rows)
    if arguments.record:
        recording.record(
            f"search-rule-{arguments.start}",
            rows,
            title=f"Rates and epochs for small models ({arguments.start} weights)",
            scores="on dev at the end of each run, mean over the seeds, in percent",
            runs=runs,
        )


def table(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row per setting, the best first, and how far each is from the best of every task."""
    scores: dict[tuple[float, float, float], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if run["score"] is not None:
            scores[run["lr"], run["embedding_lr_factor"], run["epochs"]][run["cell"]].append(100 * run["score"])
    best = {cell.name: max(mean(own[cell.name]) for own in scores.values() if own[cell.name]) for cell in CELLS}
    rows = []
    for (lr, factor, epochs), own in scores.items():
        cells = {name: mean(values) for name, values in own.items() if values}
        behind = mean(best[name] - value for name, value in cells.items())
        shown = {cell.name: f"{cells[cell.name]:.1f}" if cell.name in cells else "–" for cell in CELLS}
        rows.append(
            {"rate": f"{lr:g}", "words": f"× {factor:g}", "epochs": f"{epochs:g}"} | shown | {"behind": f"{behind:.2f}"}
        )
    return sorted(rows, key=lambda row: float(row["behind"]))


if __name__ == "__main__":
    main()
