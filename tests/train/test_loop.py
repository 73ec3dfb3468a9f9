"""When a loss is too bad to go on; the loop itself is tested by the stages that it runs."""

from __future__ import annotations

import math

from albert.train.checkpoint import TrainState
from albert.train.loop import _problem


def test_an_outlier_is_a_jump_unless_losses_have_heavy_tails() -> None:
    state = TrainState(smooth_loss=1.0, best_smooth_loss=1.0)
    assert "jumped from 1 to 50" in str(_problem(50.0, 1.0, state, heavy_tails=False))
    assert _problem(50.0, 1.0, state, heavy_tails=True) is None
    risen = TrainState(smooth_loss=9.0, best_smooth_loss=1.0)
    assert "rose from 1 to 9" in str(_problem(9.0, 1.0, risen, heavy_tails=False))
    assert _problem(9.0, 1.0, risen, heavy_tails=True) is None
    for loss, norm in ((math.nan, 1.0), (1.0, math.inf)):
        assert _problem(loss, norm, state, heavy_tails=True) is not None
