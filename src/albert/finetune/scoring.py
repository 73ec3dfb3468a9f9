"""The score on test data: once, at the end, by the model that is kept. Nothing is chosen by it.

Every process decides its share, as with dev; the first one scores. Sets without labels (GLUE's) are left out.
"""

from __future__ import annotations

from pathlib import Path

from albert.finetune.preparation import Prepared
from albert.inference.predictor import Predictor
from albert.inference.torch_engine import TorchEngine
from albert.model.folder import load_model
from albert.tasks.saved_task import read_task
from albert.train.world import World

TEST = "test_"  # before the names of scores


def score_test(prepared: Prepared, folder: Path, *, world: World) -> dict[str, float]:
    """Return the scores of a model folder on the test sets, in the first process; every process takes part."""
    if not prepared.test:
        return {}
    loaded = load_model(folder).model.to(world.device)
    remembered = read_task(folder, loaded.config, list(loaded.heads))
    assert remembered is not None, "it was tuned for a task"
    task, predictor = remembered.task, Predictor(TorchEngine(loaded), prepared.start.tokenizer)
    scores: dict[str, float] = {}
    for name, examples in prepared.test.items():
        shares = world.gather(list(predictor.predict(task, examples[world.rank :: world.size])))
        if world.is_first:
            predictions = [shares[place % len(shares)][place // len(shares)] for place in range(len(examples))]
            prefix = TEST if name == "test" else f"{TEST}{name}_"
            scores |= {f"{prefix}{key}": value for key, value in task.score(examples, predictions).items()}
    return scores
