"""Fine-tuning: from a model and labelled examples to a model folder for a task, with one seed or several.

`finetune` prepares once (head, lengths, rates, encoded examples, the baseline, a bag of words) and runs the
one training loop for every seed. Running the same command again resumes, in the middle of a run or between two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from albert.finetune.plan import FinetunePlan, make_plan
from albert.finetune.preparation import Prepared, prepare
from albert.finetune.run import SUMMARY, Outcome, run_once
from albert.finetune.seeds import Finetuned, run_seeds
from albert.finetune.settings import FinetuneSettings
from albert.labelled.request import Opened
from albert.train.loop import Progress
from albert.train.settings import with_precision
from albert.train.world import join_world

__all__ = ["FinetunePlan", "Finetuned", "Outcome", "Prepared", "finetune"]


def finetune(
    opened: Opened,
    model: str,
    out: Path,
    *,
    settings: FinetuneSettings | None = None,
    seeds: int = 1,
    retry: bool = False,
    dry_run: bool = False,
    words_from: Path | None = None,
    observe: Callable[[Progress], None] = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> Finetuned | FinetunePlan:
    """Tune a model for a task; run again to resume.

    With several seeds, or with `retry`, every run has a folder of its own in `out`, and the best by dev becomes
    `out/model`. `retry` starts a run that learns nothing again, at half the rate and from another seed. `words_from` is
    a run folder whose bag of words is taken over if it is of the same data. `tell` is given what a user should know
    before the training, a line at a time.
    """
    prepared = prepare(opened, model, settings or FinetuneSettings())
    if words_from:
        prepared.words.recall(words_from)
    with join_world(timeout_minutes=prepared.settings.train.timeout_minutes) as world:
        train = with_precision(prepared.settings.train, world)
        prepared = replace(prepared, settings=prepared.settings.model_copy(update={"train": train}))
        if dry_run:
            prepared.words.recall(out)
            return make_plan(prepared, seeds=seeds, world=world)
        if world.is_first:
            for note in prepared.notes:
                tell(note if note.startswith("warning: ") else f"note: {note}")
        if seeds > 1 or retry:
            return run_seeds(prepared, out, seeds=seeds, retry=retry, world=world, observe=observe, tell=tell)
        finished = (out / SUMMARY).exists()
        outcome = run_once(prepared, out, settings=prepared.settings, world=world, observe=observe, tell=tell)
        return Finetuned(
            out,
            prepared.deciding,
            prepared.baseline,
            (outcome,),
            chosen=outcome,
            test=outcome.test,
            bag_of_words=prepared.bag_of_words,
            was_finished=finished,
        )
