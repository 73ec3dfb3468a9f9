"""Studies from request to report: resolve the rows, make the runs, write the report.

Running the same command again continues, and with more seeds adds to what is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from albert.files import read_json, sole_owner, write_json
from albert.model.accounting import count_parameters
from albert.settings import flatten
from albert.study.engines import Engine, merge, run_jobs
from albert.study.report import write_report
from albert.study.resolve import Request, Resolved, Run, resolve
from albert.study.results import Table, read_tables, record
from albert.study.rows import Observe, seconds_per_step
from albert.study.tables import Study
from albert.study.workshop import Job, Workshop

PACE = "pace.json"


@dataclass(frozen=True)
class PlannedRow:
    """A row of a dry run."""

    study: str
    row: str
    differences: Mapping[str, Any]
    parameters: int
    steps: int
    runs: int  # that are not made yet; 0 too where another table has the row
    seconds: float  # of pre-training, for each


class PaceBook:
    """Seconds per step, measured once: rows of equal time must have the same steps when they are resolved again."""

    def __init__(self, shop: Workshop, *, keep: bool) -> None:
        """Read what is known of a folder; `keep` writes down what is measured."""
        self._shop, self._path, self._keep = shop, shop.out / PACE, keep
        self._known: dict[str, float] = read_json(self._path) if self._path.exists() else {}

    def __call__(self, run: Run) -> float:
        """Return the seconds per step."""
        key = _pace_key(run)
        if key not in self._known:
            self._known[key] = seconds_per_step(run, self._shop)
            if self._keep:
                write_json(self._path, self._known)
        return self._known[key]


def _pace_key(run: Run) -> str:
    """Return what the pace of a run depends on, as text: not the seed, the steps, the words or where it starts."""
    values = flatten(run.from_preset().model_dump(mode="json"))
    kept = ("model.", "data.max_length", "data.mask_prob", "data.max_predictions", "grow.", "optimizer.name")
    sizes = ("train.batch_size", "train.micro_batch", "train.precision", "train.checkpointing", "train.compile")
    shown = {name: value for name, value in sorted(values.items()) if name.startswith(kept) or name in sizes}
    return f"{run.model} " + " ".join(f"{name}={value}" for name, value in shown.items() if value not in (None, []))


def jobs_of(resolved: Resolved) -> list[Job]:
    """Return the runs of a study, seed by seed, so that an interrupted study has whole tables."""
    study = resolved.study
    return [
        Job(run, f"{study.name}, {row}, seed {seed}", tasks=study.tasks, layers=study.layers)
        for (row, seed), run in resolved.runs.items()
    ]


def plan_studies(studies: Sequence[Study], request: Request, shop: Workshop, observe: Observe) -> list[PlannedRow]:
    """Return what the studies will do and how long it takes here; nothing is written."""
    pace, planned, counted = PaceBook(shop, keep=False), [], set()
    resolved = [resolve(study, request, pace=pace) for study in studies]
    rows = [(one, row) for one in resolved for row in one.study.rows]
    for number, (one, row) in enumerate(rows):
        observe(number / len(rows), f"timing {one.study.name}, {row.name}")
        runs = [one.runs[row.name, seed] for seed in range(request.seeds)]
        new = [job for job in jobs_of(one) if job.run in runs and job.run.key not in counted and not shop.is_done(job)]
        counted |= {run.key for run in runs}
        seconds = pace(runs[0]) * runs[0].settings.train.steps
        parameters = _parameters(runs[0], request)
        planned.append(
            PlannedRow(
                one.study.name,
                row.name,
                one.differences(row),
                parameters,
                runs[0].settings.train.steps,
                len(new),
                seconds,
            )
        )
    return planned


def _parameters(run: Run, request: Request) -> int:
    """Count the parameters of a run's model."""
    config = run.config.with_settings({"vocab_size": request.store.tokenizer.vocab_size})
    return count_parameters(config, ("mlm", "order")).total


def run_studies(
    studies: Sequence[Study], request: Request, shop: Workshop, *, engine: Engine, observe: Observe = lambda *_: None
) -> list[Table]:
    """Make the runs of some studies, one study after the other; give all tables of the folder."""
    request.require()
    with sole_owner(shop.out):
        pace = PaceBook(shop, keep=True)
        for resolved in [resolve(study, request, pace=pace) for study in studies]:  # all, before hours are spent on one
            jobs = jobs_of(resolved)
            for job in merge(jobs):
                if job.run.text is not None:
                    shop.store(job.run)
            record(resolved, request, shop)
            run_jobs(jobs, shop, engine, observe)
            write_report(read_tables(shop.out), shop.out)
        return read_tables(shop.out)
