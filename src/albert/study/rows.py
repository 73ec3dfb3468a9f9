"""One run of a study: pre-training, its scores, then the tasks; each is done once, and resumes where it was stopped.

A loss that explodes is a result too: the row has a `problem` and no scores, and is not tried again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

from albert.data.store import TokenStore
from albert.files import write_json
from albert.finetune import finetune
from albert.finetune.words import KEPT
from albert.hardware import find_device
from albert.model.accounting import parameters_of
from albert.model.folder import load_model
from albert.pretrain import Plan, pretrain
from albert.pretrain.held_out import IntrinsicEvaluation
from albert.study.layers import measure_layers
from albert.study.resolve import Run
from albert.study.speed import measure_speed
from albert.study.workshop import LAYERS, ROW, SCORES, SUMMARY, Job, TaskData, Workshop
from albert.train.history import History, read_history
from albert.train.loop import BadLoss, Progress
from albert.train.world import World

INTRINSIC = ("mlm_loss", "mlm_accuracy", "sop_accuracy", "nsp_accuracy")

Observe = Callable[[float, str], None]  # share done, a few words


def run_row(job: Job, shop: Workshop, observe: Observe = lambda *_: None) -> None:
    """Make a run, as far as it is not made yet."""
    torch.set_num_threads(shop.threads)
    run, folder = job.run, shop.folder(job.run)
    write_json(folder / ROW, {"name": job.name, "identity": run.identity, "threads": shop.threads})
    if not (folder / SCORES).exists():
        try:
            scores = _measure(run, shop) if run.processes else _train(run, shop, observe)
        except BadLoss as problem:
            scores = {"problem": str(problem)}
        write_json(folder / SCORES, scores)
        shutil.rmtree(shop.pretrained(run) / "checkpoints", ignore_errors=True)
    if shop.failed(run):
        return
    if job.layers and not (folder / LAYERS).exists():
        model = load_model(shop.pretrained(run) / "model").model
        write_json(folder / LAYERS, measure_layers(model, TokenStore.open(shop.valid)).to_json())
    for task in shop.tasks if job.tasks else ():
        _tune(run, task, shop, observe)


def _train(run: Run, shop: Workshop, observe: Observe) -> dict[str, Any]:
    """Pre-train, and score: held-out text as the run itself did at its end, the training text on fixed examples."""
    if run.start and shop.failed(run.start):
        raise BadLoss("the run that it was to go on from has no model")
    store, folder = shop.store(run), shop.pretrained(run)

    def note(progress: Progress) -> None:
        observe(progress.step / progress.steps, f"step {progress.step:,}")

    valid = TokenStore.open(shop.valid)
    pretrain(store, shop.start(run), folder, settings=run.settings, valid=valid, observe=note)
    world, history = World(0, 1, torch.device(find_device())), read_history(folder)
    scores: dict[str, Any] = {name: history.final(f"valid_{name}") for name in INTRINSIC}
    model = load_model(folder / "model").model.to(world.device)
    count, length = run.settings.evaluation.examples, run.settings.data.max_length
    known = IntrinsicEvaluation(store, max_length=length, examples=count, world=world).score(model)
    labelled = IntrinsicEvaluation(valid, max_length=length, examples=count, world=world).count_labelled()
    scores |= {"training_loss": known["mlm_loss"], "gap": scores["mlm_loss"] - known["mlm_loss"]}
    scores |= {f"{objective}_examples": number for objective, number in labelled.items()}
    return scores | {"parameters": parameters_of(model).total, "tokens": run.tokens} | _cost(history)


def _cost(history: History) -> dict[str, float]:
    """Return the pace and the time of a run of pre-training, evaluations included."""
    return {
        "tokens_per_second": median(value for _, value in history.series("tokens_per_second")),
        "minutes": sum(value for _, value in history.series("seconds")) / 60,
    }


def _measure(run: Run, shop: Workshop) -> dict[str, Any]:
    """Train for some steps in processes of their own, whose memory is theirs alone."""
    assert run.processes is not None
    folder = shop.pretrained(run)
    memory = measure_speed(
        shop.data, run.model, folder, settings=run.settings, processes=run.processes, threads=shop.threads
    )
    model = load_model(folder / "model").model
    gradients = sum(parameter.nbytes for parameter in model.parameters())  # train/world.py: each once, in one buffer
    return {
        "parameters": parameters_of(model).total,
        "memory": memory,
        "reduced_bytes": gradients if run.processes > 1 else 0,
        "tokens": run.tokens,
    } | _cost(read_history(folder))


def _tune(run: Run, task: TaskData, shop: Workshop, observe: Observe) -> None:
    folder = shop.task_folder(run, task)
    if (folder / SUMMARY).exists():
        return
    train = shop.tune.train.model_copy(update={"seed": run.seed})
    others = shop.out.glob(f"rows/*/tasks/{folder.name}/{KEPT}")
    try:
        finetune(
            shop.open_task(task),
            str((shop.pretrained(run) / "model").resolve()),
            folder,
            settings=shop.tune.model_copy(update={"train": train}),
            words_from=next((kept.parent for kept in others), None),  # fitting takes longer than tuning a tiny model
            observe=lambda progress: observe(progress.step / progress.steps, f"{task.name}, step {progress.step:,}"),
        )
    except BadLoss as problem:
        write_json(folder / SUMMARY, {"score": None, "problem": str(problem)})
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)


def seconds_per_step(run: Run, shop: Workshop) -> float:
    """Return how long a step of a run takes here on average: what `albert pretrain --dry-run` finds out."""
    torch.set_num_threads(shop.threads)
    plan = pretrain(
        TokenStore.open(shop.data), run.model, shop.folder(run), settings=run.from_preset(), dry_run=True
    )  # a run that goes on from another takes as long from new weights
    assert isinstance(plan, Plan)
    assert plan.pace is not None
    return plan.pace.seconds / run.settings.train.steps
