"""Pre-training: from a token store to a model folder.

Builds or takes up a model, opens the run folder and hands the job to the training loop. Everything that a run depends
on is in its settings and its store; running the same command again resumes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from albert.data.store import TokenStore
from albert.errors import UsageError
from albert.model.folder import save_model
from albert.optim import build_optimizer, learning_rate, warmup
from albert.pretrain.job import PretrainJob
from albert.pretrain.lessons import Lessons
from albert.pretrain.plan import Plan, make_plan, with_pace
from albert.pretrain.settings import PretrainSettings
from albert.pretrain.start import is_preset, start_model, start_words
from albert.pretrain.teacher import open_teacher
from albert.report.writing import reported
from albert.train.checkpoint import newest_intact, step_of
from albert.train.loop import Progress, Trained, begin_words, train
from albert.train.run import ADJUSTABLE, own_run, planned_steps
from albert.train.settings import with_precision
from albert.train.world import join_world


@dataclass(frozen=True)
class Pretrained:
    """What a run gave."""

    folder: Path
    plan: Plan
    trained: Trained

    @property
    def was_finished(self) -> bool:
        """Tell whether there was nothing left to train."""
        return self.trained.resumed_from == self.trained.state.step


def pretrain(
    store: TokenStore,
    model: str,
    out: Path,
    *,
    settings: PretrainSettings,
    valid: TokenStore | None = None,
    dry_run: bool = False,
    observe: Callable[[Progress], None] = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> Pretrained | Plan:
    """Train a model on a store; run again to resume. `tell` is given a line about where the run begins."""
    if valid is not None:
        valid.require_tokenizer(store.tokenizer)
    with join_world(timeout_minutes=settings.train.timeout_minutes) as world:
        settings = settings.model_copy(update={"train": with_precision(settings.train, world)})
        network = start_model(model, store, settings)
        batch_size, steps = settings.train.batch_size, settings.train.steps
        peak = learning_rate(settings.optimizer, batch_size=batch_size, steps=steps, hidden=network.config.hidden_size)
        warm = warmup(settings.optimizer, batch_size=batch_size, steps=steps)
        plan = make_plan(network, store, settings, peak=peak, warm=warm, world=world)
        if dry_run:
            return with_pace(plan, network, store, settings, world=world)
        teacher = open_teacher(settings.teacher.model, world.device) if settings.teacher.model else None
        facts = {
            "stage": "pretrain",
            "model": model,
            "store": store.fingerprint,
            "valid": valid.fingerprint if valid else None,
        } | ({"teacher": teacher.fingerprint} if teacher else {})
        asked = settings.model_copy(update={"start_from": None})  # `model` says it
        adjustable = ADJUSTABLE | {"train.eval_every"}  # evaluation chooses nothing here
        if settings.is_open_ended:
            adjustable |= {"train.steps"}
        if world.is_first:
            _require_same_rates(out, settings)
        with own_run(out, facts, world, settings=asked, adjustable=adjustable) as run, reported(run, world):
            world.wait()
            network.to(world.device)
            network.encoder.checkpointing = settings.train.checkpointing
            lessons = (
                Lessons.prepare(teacher, store, settings, network, is_new=is_preset(model), folder=out, world=world)
                if teacher
                else None
            )
            job = PretrainJob(network, store, settings, world=world, valid=valid, lessons=lessons)
            optimizer = build_optimizer(settings.optimizer, network, lr=peak)

            def note(progress: Progress) -> None:
                assert run is not None
                run.log(progress.step, progress.metrics)
                observe(progress)

            def begin(step: int) -> None:
                if step > steps:
                    raise UsageError(f"{out}: has done {step:,} steps already: train.steps={steps} are too few")
                if step == 0 and settings.model_init.words != "random":
                    start_words(
                        network, store, world, teacher=teacher if settings.model_init.words == "teacher" else None
                    )
                if run:
                    run.resume_metrics(step)
                    tell(f"{out}: {begin_words(step, steps)}")

            trained = train(
                job,
                optimizer,
                settings=settings.train,
                rates=settings.optimizer,
                peak=peak,
                warmup=warm,
                folder=out,
                world=world,
                observe=note,
                resumed=begin,
            )
            result = Pretrained(out, plan, trained)
            if world.is_first and not (result.was_finished and (out / "model").exists()):
                save_model(network, out / "model", tokenizer=store.tokenizer)
        return result


def _require_same_rates(out: Path, settings: PretrainSettings) -> None:
    """Refuse another number of steps where the rate of those that are done would have been another."""
    steps, planned = settings.train.steps, planned_steps(out)
    if planned is None or planned == steps or not settings.is_open_ended:
        return
    if (newest := newest_intact(out / "checkpoints")) is None:
        return
    done, fewest = step_of(newest), min(planned, steps)
    constant = (1 - settings.optimizer.decay) * fewest
    if constant < done <= steps:
        raise UsageError(
            f"{out}: has done {done:,} steps, and with {fewest:,} in all the rate falls from step {constant:,.0f} on: "
            f"train.steps can change from {planned:,} to {steps:,} only before that"
        )
