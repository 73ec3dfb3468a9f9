"""What the dev scores of a run mean: a new best model, time to stop, or a run that learns nothing.

Large ALBERTs are known for runs that never leave the majority class (huggingface/transformers#2104,
google-research/albert#197). A run is held to have learnt nothing when, after the warm-up and a third of what follows,
its best score does not beat the baseline, the best constant prediction.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass

from albert.finetune.settings import FinetuneSettings
from albert.model.config import AlbertConfig
from albert.train.checkpoint import TrainState

log = logging.getLogger(__name__)

MARGIN = 0.01  # a correlation of 0.01 beats the constant's 0 by luck
SHORT = 100  # steps: a run of fewer may well have learnt nothing for want of them


def beats(score: float | None, baseline: float) -> bool:
    """Tell whether a score is clearly above the baseline's."""
    return score is not None and score > baseline + MARGIN


@dataclass(frozen=True)
class Judge:
    """Judges every evaluation; `keep` saves the model, and is called at each new best."""

    best: str  # the name of the score that decides
    baseline: float  # of that score
    settings: FinetuneSettings
    config: AlbertConfig
    keep: Callable[[], None]
    give_up: bool  # end a run that learns nothing, rather than only say so

    def __call__(self, state: TrainState, evaluation: dict[str, float]) -> bool:
        """Note the evaluation in the state; True ends the run."""
        if self.best not in evaluation:  # another process evaluates
            return False
        score = evaluation[self.best]
        if math.isfinite(score) and (state.best_score is None or score > state.best_score):
            state.best_score, state.best_step = score, state.step
            self.keep()
        warmup = self.settings.optimizer.warmup_steps or 0
        patience, every = self.settings.tune.patience, self.settings.train.eval_every
        since = max(state.best_step, warmup)
        if patience is not None and state.step - since >= patience * every:
            log.info("step %d: no better score since step %d: stopping early", state.step, since)
            return True
        doubt = warmup + (self.settings.train.steps - warmup) / 3
        if state.step < doubt or self.has_learnt(state):
            return False
        if state.step - every < doubt and state.step < self.settings.train.steps:  # once; the end has its own words
            log.warning("step %d: %s", state.step, self.explain(state, finished=False))
        return self.give_up

    def has_learnt(self, state: TrainState) -> bool:
        """Tell whether the best score beats the baseline."""
        return beats(state.best_score, self.baseline)

    def explain(self, state: TrainState, *, finished: bool) -> str:
        """Say that a run has learnt nothing, or nothing so far, and what to change."""
        score = "no score" if state.best_score is None else f"{state.best_score:.3f}"
        name = self.best.removeprefix("valid_")
        lr, warmup = self.settings.optimizer.lr, self.settings.optimizer.warmup_steps or 0
        assert isinstance(lr, float)
        steps = self.settings.train.steps
        longer = min(max(2 * warmup, steps // 5), steps // 2)
        advice = [f"more steps (--set train.steps={10 * steps})"] if steps < SHORT else []
        advice.append(f"a lower rate (--set optimizer.lr={lr / 2:.2g})")
        if longer > warmup:
            advice.append(f"a longer warm-up (--set optimizer.warmup_steps={longer})")
        advice.append(f"another seed (--set train.seed={self.settings.train.seed + 1})")
        if self.config.hidden_dropout_prob:
            advice.append("no dropout (--set tune.dropout=0.0; v2 models were trained without)")
        if not self.give_up:
            advice.append("--retry")
        verdict = (
            "this run has learnt nothing that dev shows. A small model may come no further on a hard task; else try"
            if finished
            else "this run has learnt nothing yet. If it stays so, try"
        )
        tries = f"{', '.join(advice[:-1])} or {advice[-1]}"
        return f"best {name} {score}, and the baseline {self.baseline:.3f}: {verdict} {tries}"
