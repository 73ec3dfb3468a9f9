"""The learning rate at a step: linear warm-up from 0, then linear decay to 0 over all steps (the paper, section 4.1).

The decay is counted from step 0, as in Google's code, so the peak is a little under the nominal rate. A decay over the
last part of the steps alone leaves the rate constant until then: such a run can still be made longer or ended sooner.
"""

from __future__ import annotations


def rate_at(step: int, *, peak: float, warmup: int, steps: int, decay: float = 1.0) -> float:
    """Return the rate for step `step`, counted from 0; it falls over the last `decay` of the steps (a share)."""
    if step < warmup:
        return peak * step / warmup
    return peak * min(1.0, max(0.0, 1 - step / steps) / decay)
