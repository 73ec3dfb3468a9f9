"""One fine-tuning run: one seed, one folder, the one training loop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from albert.errors import ModelError
from albert.files import read_json, write_json
from albert.finetune.card import model_card, write_card
from albert.finetune.dev import DevScores
from albert.finetune.job import FinetuneJob
from albert.finetune.judge import Judge, beats
from albert.finetune.preparation import READ_BY, Prepared
from albert.finetune.scoring import score_test
from albert.finetune.settings import FinetuneSettings
from albert.model import Albert
from albert.model.folder import save_model
from albert.optim import build_optimizer
from albert.report.writing import reported
from albert.tasks.saved_task import TASK_FILE, task_json
from albert.train.checkpoint import checkpoint_path, damage, load_checkpoint
from albert.train.history import History, read_history
from albert.train.loop import BadLoss, Progress, begin_words, train
from albert.train.run import ADJUSTABLE, RunFolder, own_run
from albert.train.world import World

log = logging.getLogger(__name__)

SUMMARY = "summary.json"


@dataclass(frozen=True)
class Outcome:
    """How a run ended: what its summary.json holds."""

    folder: str
    seed: int
    lr: float
    steps: int  # done
    best_step: int
    score: float | None  # the deciding one, at the best step
    scores: dict[str, float]  # all of that step
    learnt: bool  # more than the baseline
    ended_early: bool
    problem: str | None = None  # what to know before using it
    test: dict[str, float] = field(default_factory=dict)  # scores of the kept model on test data


def run_once(
    prepared: Prepared,
    out: Path,
    *,
    settings: FinetuneSettings,
    world: World,
    one_of_several: bool = False,
    give_up: bool = False,
    observe: Callable[[Progress], None] = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Train with one seed into a run folder whose `model` is the best by dev; a finished run is only read.

    A model that somebody deleted is written again where its checkpoint is still there. For `one_of_several` a loss
    that explodes is an outcome rather than an error. With `give_up` a run that learns nothing ends early. `tell` is
    given a line about where the run begins.
    """
    with own_run(out, prepared.facts(), world, settings=settings, adjustable=ADJUSTABLE | READ_BY) as run:
        world.wait()
        prepared.words.keep(out, world=world)
        if (out / SUMMARY).exists():
            outcome = Outcome(**read_json(out / SUMMARY))
            if run:
                tell(f"{out}: has been trained before: nothing to do")
            if _is_gone(out, outcome.score, world):
                _restore(prepared, out, step=outcome.best_step, settings=settings, world=world)
            return outcome
        with reported(run, world):
            try:
                outcome = _train(
                    prepared, out, settings=settings, world=world, run=run, give_up=give_up, observe=observe, tell=tell
                )
            except BadLoss as problem:
                if not one_of_several:
                    raise
                outcome = _exploded(prepared, out, settings, str(problem), world=world)
            if not one_of_several and world.from_first(outcome.score is not None):
                outcome = replace(outcome, test=score_test(prepared, out / "model", world=world))
            if world.is_first:
                if outcome.test:
                    card = model_card(prepared, settings, scores=outcome.scores, test=outcome.test)
                    write_card(out / "model", card)
                write_json(out / SUMMARY, asdict(outcome))
        world.wait()
    return outcome


def _train(
    prepared: Prepared,
    out: Path,
    *,
    settings: FinetuneSettings,
    world: World,
    run: RunFolder | None,
    give_up: bool,
    observe: Callable[[Progress], None],
    tell: Callable[[str], None],
) -> Outcome:
    peak, warmup = settings.optimizer.lr, settings.optimizer.warmup_steps
    assert isinstance(peak, float)
    assert warmup is not None
    model = prepared.build(settings).to(world.device)
    model.encoder.checkpointing = settings.train.checkpointing
    dev = DevScores(model, prepared, world=world)
    judge = Judge(
        prepared.deciding,
        prepared.baseline,
        settings,
        config=model.config,
        keep=lambda: _keep(model, dev, prepared, settings=settings, out=out),
        give_up=give_up,
    )

    def note(progress: Progress) -> None:
        assert run is not None
        run.log(progress.step, progress.metrics)
        observe(progress)

    def begin(step: int) -> None:
        if run is not None:
            run.resume_metrics(step)
            tell(f"{out}: {begin_words(step, settings.train.steps)}")

    trained = train(
        FinetuneJob(model, prepared.task, prepared.items, settings=settings.train, world=world, score=dev.score),
        build_optimizer(settings.optimizer, model, lr=peak),
        settings=settings.train,
        rates=settings.optimizer,
        peak=peak,
        warmup=warmup,
        folder=out,
        world=world,
        observe=note,
        resumed=begin,
        judge=judge,
    )
    state = trained.state
    learnt = bool(world.from_first(judge.has_learnt(state)))
    if _is_gone(out, state.best_score, world):
        _restore(prepared, out, step=state.best_step, settings=settings, world=world)
    return Outcome(
        folder=out.name,
        seed=settings.train.seed,
        lr=peak,
        steps=state.step,
        best_step=state.best_step,
        score=state.best_score,
        scores=_scores_at(out, state.best_step) if world.is_first else {},
        learnt=learnt,
        ended_early=state.ended,
        problem=None if learnt else judge.explain(state, finished=True),
    )


def _keep(model: Albert, dev: DevScores, prepared: Prepared, *, settings: FinetuneSettings, out: Path) -> None:
    """Write the model and what it decided at the last evaluation."""
    card = model_card(prepared, settings, scores=dev.last)
    own = task_json(dev.settled, name=prepared.name, columns=prepared.columns)
    save_model(
        model,
        out / "model",
        tokenizer=prepared.start.tokenizer,
        card=card,
        extra={TASK_FILE: own} | dev.settled.files(model.config),
        max_length=prepared.task.max_length,
    )
    dev.keep_decisions(out)


def _is_gone(out: Path, score: float | None, world: World) -> bool:
    """Tell every process whether a model was kept and is no longer there: the first looks."""
    return bool(world.from_first(score is not None and not (out / "model").exists()))


def _restore(prepared: Prepared, out: Path, *, step: int, settings: FinetuneSettings, world: World) -> None:
    """Write the best model of a finished run again, from the checkpoint of its step; dev is scored once more."""
    path = checkpoint_path(out / "checkpoints", int(world.from_first(step)))
    if damage(path) is not None:
        raise ModelError(
            f"{out / 'model'}: is gone, and its checkpoint {path.name} is not kept: delete {out / 'checkpoints'} and "
            f"{out / SUMMARY} and run the same command again, which makes the same model"
        )
    model = prepared.build(settings).to(world.device)
    load_checkpoint(path, model, build_optimizer(settings.optimizer, model, lr=0.0))
    dev = DevScores(model.eval(), prepared, world=world)
    dev.score(step)
    if world.is_first:
        log.info("%s: was gone: written again from %s", out / "model", path.name)
        _keep(model, dev, prepared, settings=settings, out=out)


def _scores_at(folder: Path, step: int) -> dict[str, float]:
    """Return the dev scores that were logged at a step."""
    found: dict[str, float] = {}
    for line in read_history(folder).metrics:
        if line["step"] == step:
            found |= {name: value for name, value in line.items() if name.startswith("valid_")}
    return found


def _exploded(prepared: Prepared, out: Path, settings: FinetuneSettings, problem: str, *, world: World) -> Outcome:
    """Say how far a run came whose loss exploded: the best model up to then is kept."""
    lr, history = settings.optimizer.lr, read_history(out) if world.is_first else History(out, {}, {}, ())
    assert isinstance(lr, float)
    step, score = max(history.series(prepared.deciding), key=lambda point: point[1], default=(0, None))
    return Outcome(
        folder=out.name,
        seed=settings.train.seed,
        lr=lr,
        steps=history.last_step,
        best_step=step,
        score=score,
        scores=_scores_at(out, step) if history.metrics else {},
        learnt=beats(score, prepared.baseline),
        ended_early=True,
        problem=problem,
    )
