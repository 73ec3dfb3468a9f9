"""Several runs of one fine-tuning: other seeds, and other rates for runs that learnt nothing.

Small tasks vary by several points from seed to seed, so one run says little (the paper gives medians of 5). Every run
has a folder of its own in the common one; summary.json has them all, with median, mean and spread, and is written
after each. More seeds can be asked for later: those that are there stay.
"""

from __future__ import annotations

import filecmp
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

from albert.files import atomic_folder, read_json, write_json
from albert.finetune.card import model_card, write_card
from albert.finetune.preparation import READ_BY, Prepared
from albert.finetune.run import SUMMARY, Outcome, run_once
from albert.finetune.scoring import score_test
from albert.finetune.settings import FinetuneSettings
from albert.report.writing import reported
from albert.train.loop import BadLoss, Progress
from albert.train.run import ADJUSTABLE, own_run
from albert.train.world import World

MAX_RETRIES = 3
CARD = "README.md"
OTHER_SEED = 1_000_003  # from a seed to that of its next attempt: far from anybody's 0, 1, 2


@dataclass(frozen=True)
class Finetuned:
    """What a fine-tuning gave: all its runs, and the one whose model is kept, best by dev."""

    folder: Path
    deciding: str
    baseline: float
    runs: tuple[Outcome, ...]
    chosen: Outcome
    test: Mapping[str, float] = field(default_factory=dict)  # scores of the kept model on test data
    bag_of_words: float | None = None  # the deciding score of TF-IDF and a linear model
    was_finished: bool = field(default=False, compare=False)  # there was nothing left to train

    @property
    def is_beaten_by_words(self) -> bool:
        """Tell whether a bag of words is as good as the model."""
        score = self.chosen.score
        return self.bag_of_words is not None and score is not None and score <= self.bag_of_words

    def final_runs(self) -> list[Outcome]:
        """Return one run per seed: attempts that were given up don't count where a later one was made."""
        kept: dict[str, Outcome] = {}
        for run in self.runs:
            before = kept.get(key := run.folder.partition("-retry-")[0])
            if before is None or _rank(run) > _rank(before):
                kept[key] = run
        return list(kept.values())

    def summary(self) -> dict[str, Any]:
        """Return the contents of summary.json."""
        scores = [run.score for run in self.final_runs() if run.score is not None]
        figures: dict[str, float] = {}
        if scores:
            figures = {"median": median(scores), "mean": mean(scores), "lowest": min(scores), "highest": max(scores)}
            figures["deviation"] = stdev(scores) if len(scores) > 1 else 0.0
        return {
            "score": self.deciding.removeprefix("valid_"),
            "baseline": self.baseline,
            "bag_of_words": self.bag_of_words,
            "seeds": len(self.final_runs()),
            **figures,
            "chosen": self.chosen.folder,
            "test": dict(self.test),
            "runs": [asdict(run) for run in self.runs],
        }


def run_seeds(
    prepared: Prepared,
    out: Path,
    *,
    seeds: int,
    retry: bool,
    world: World,
    observe: Callable[[Progress], None] = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> Finetuned:
    """Run several seeds into folders `seed-N` of `out`; with `retry`, attempts that learn nothing are made again."""
    facts = prepared.facts() | {"several": True}
    adjustable = ADJUSTABLE | READ_BY
    with own_run(out, facts, world, settings=prepared.settings, adjustable=adjustable) as run, reported(run, world):
        world.wait()
        prepared.words.keep(out, world=world)
        before = _recorded(out)
        runs = dict(before)  # by folder; asking for fewer seeds takes none away
        for number in range(seeds):
            for folder, settings in _attempts(prepared.settings, number, retries=MAX_RETRIES if retry else 0):
                outcome = run_once(
                    prepared,
                    out / folder,
                    settings=settings,
                    world=world,
                    one_of_several=True,
                    give_up=retry,
                    observe=lambda progress, done=number: observe(_overall(progress, done=done, seeds=seeds)),  # type: ignore[misc]
                    tell=tell,
                )
                runs[outcome.folder] = outcome
                if world.is_first:
                    write_json(out / SUMMARY, _gather(prepared, out, runs).summary())
                if outcome.problem is None:
                    break
        result = _gather(prepared, out, runs)
        if world.is_first:
            if result.chosen.score is None:
                raise BadLoss(f"{out}: no run came to an evaluation: {result.chosen.problem}")
            _keep_best(prepared, out, result)
        world.wait()
        if prepared.test:
            result = replace(result, test=score_test(prepared, out / "model", world=world))
            if world.is_first:
                write_json(out / SUMMARY, result.summary())
                write_card(out / "model", _card(prepared, result))
    return replace(result, was_finished=runs == before)


def _recorded(out: Path) -> dict[str, Outcome]:
    path = out / SUMMARY
    return {run["folder"]: Outcome(**run) for run in read_json(path)["runs"]} if path.exists() else {}


def _attempts(settings: FinetuneSettings, number: int, *, retries: int) -> Iterator[tuple[str, FinetuneSettings]]:
    """Yield the folder and the settings of a seed, then those of its further attempts, each at half the rate."""
    first = settings.train.seed + number
    lr = settings.optimizer.lr
    assert isinstance(lr, float)
    for attempt in range(retries + 1):
        train = settings.train.model_copy(update={"seed": (first + attempt * OTHER_SEED) % 2**32})
        optimizer = settings.optimizer.model_copy(update={"lr": lr / 2**attempt})
        folder = f"seed-{first}" + (f"-retry-{attempt}" if attempt else "")
        yield folder, settings.model_copy(update={"train": train, "optimizer": optimizer})


def _overall(progress: Progress, *, done: int, seeds: int) -> Progress:
    return Progress(done * progress.steps + progress.step, seeds * progress.steps, progress.metrics)


def _rank(run: Outcome) -> tuple[bool, float]:
    return run.learnt, run.score if run.score is not None else float("-inf")


def _gather(prepared: Prepared, out: Path, runs: Mapping[str, Outcome]) -> Finetuned:
    found = tuple(runs.values())
    best = max(found, key=_rank)
    return Finetuned(out, prepared.deciding, prepared.baseline, found, chosen=best, bag_of_words=prepared.bag_of_words)


def _keep_best(prepared: Prepared, out: Path, result: Finetuned) -> None:
    """Copy the best model, unless it is there, with a card that tells of all runs and has the rate of its own."""
    source, target = out / result.chosen.folder / "model", out / "model"
    card = _card(prepared, result)
    if _holds(target, source, card):
        return
    with atomic_folder(target) as temporary:
        shutil.copytree(source, temporary, dirs_exist_ok=True)
        (temporary / CARD).write_text(card, encoding="utf-8")


def _card(prepared: Prepared, result: Finetuned) -> str:
    rates = prepared.settings.optimizer.model_copy(update={"lr": result.chosen.lr})
    settings = prepared.settings.model_copy(update={"optimizer": rates})
    return model_card(prepared, settings, scores=result.chosen.scores, test=result.test, summary=result.summary())


def _holds(target: Path, source: Path, card: str) -> bool:
    """Tell whether a folder already has the files of a model and this card."""
    if not (target / CARD).is_file() or (target / CARD).read_text(encoding="utf-8") != card:
        return False
    names = _files(source)
    others = sorted(names - {CARD})
    equal, _, _ = filecmp.cmpfiles(source, target, others, shallow=False)
    return equal == others and _files(target) == names


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
