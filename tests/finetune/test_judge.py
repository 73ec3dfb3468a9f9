"""What dev scores mean: when a run ends early, when it has learnt nothing, and what is advised."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from albert.finetune.judge import Judge
from albert.finetune.settings import FinetuneSettings
from albert.model import AlbertConfig
from albert.train.checkpoint import TrainState

MakeSettings = Callable[..., FinetuneSettings]


def judged(settings: FinetuneSettings, scores: Sequence[float], *, baseline: float = 0.0) -> int:
    """Return the step at which the scores of a run end it, or 0."""
    judge = Judge("valid_f1", baseline, settings, AlbertConfig(), keep=lambda: None, give_up=False)
    state = TrainState()
    for number, score in enumerate(scores, 1):
        state.step = number * settings.train.eval_every
        if judge(state, {"valid_f1": score}):
            return state.step
    return 0


def test_patience_begins_after_the_warm_up(settings: MakeSettings) -> None:
    chosen = settings(train__steps=100, train__eval_every=5, optimizer__warmup_steps=30, tune__patience=2)
    assert judged(chosen, [0.5] * 20) == 40, "not at 35, the first evaluation after it"
    assert judged(chosen, [0.5] * 7 + [0.6] * 13) == 50
    assert judged(chosen, [number / 100 for number in range(20)]) == 0


@pytest.mark.parametrize(("steps", "warmup", "advised"), [(60, 5, 12), (60, 20, 30), (4, 0, None), (100, 60, None)])
def test_the_advised_warm_up_is_longer_and_leaves_half_of_the_run(
    settings: MakeSettings, steps: int, warmup: int, advised: int | None
) -> None:
    chosen = settings(train__steps=steps, optimizer__warmup_steps=warmup)
    judge = Judge("valid_f1", 0.5, chosen, AlbertConfig(), keep=lambda: None, give_up=False)
    text = judge.explain(TrainState(), finished=True)
    assert ("warm-up" in text) == (advised is not None)
    assert advised is None or f"optimizer.warmup_steps={advised})" in text
    assert (f"try more steps (--set train.steps={10 * steps})" in text) == (steps < 100)
