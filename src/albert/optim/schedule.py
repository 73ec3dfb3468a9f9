"""The learning rate at a step: linear warm-up from 0, then linear decay to 0 over all steps (the paper, section 4.1).

The decay is counted from step 0, as in Google's code, so the peak is a little under the nominal rate.
"""

from __future__ import annotations


def rate_at(step: int, *, peak: float, warmup: int, steps: int) -> float:
    """Return the rate for step `step`, counted from 0."""
    if step < warmup:
        return peak * step / warmup
    return peak * max(0.0, 1 - step / steps)
