"""The training speeds of Table 2 against the cost model of `albert plan`: the order, and what each ratio hangs on.

The paper trained on 64 to 512 chips of TPU v3 with batches of 4096 sequences of 512 tokens; how many for which row it
does not say. The more chips, the fewer tokens there are for each to hide a reduction of gradients behind.
"""

from __future__ import annotations

from dataclasses import dataclass

from albert.model.presets import preset
from albert.pretrain.cost import DEVICES, Assumptions, Estimate, Work, estimate

CHIPS = 512
SPEEDS = {
    "bert-base": 4.7,
    "bert-large": 1.0,
    "albert-base-v1": 5.6,
    "albert-large-v1": 1.7,
    "albert-xlarge-v1": 0.6,
    "albert-xxlarge-v1": 0.3,
}
HANGS_ON = {
    "bert-base": "arithmetic: 3.5 times fewer operations, and a third of the gradients to send",
    "bert-large": "the unit",
    "albert-base-v1": "arithmetic, and a reduction that costs next to nothing",
    "albert-large-v1": "communication alone: the same arithmetic; with fewer chips, or faster links, it goes to 1",
    "albert-xlarge-v1": "arithmetic, and wide products that lose less to memory traffic (`traffic`, `efficiency`)",
    "albert-xxlarge-v1": "arithmetic, and wide products that lose less to memory traffic (`traffic`, `efficiency`)",
}


@dataclass(frozen=True)
class Speed:
    """A row: how many times as fast as BERT-large, in the paper and by the model."""

    model: str
    paper: float
    modelled: float
    hangs_on: str
    estimate: Estimate


def modelled_speeds(assumed: Assumptions, *, chips: int = CHIPS) -> list[Speed]:
    """Return Table 2's last column by the cost model."""
    device = DEVICES["tpu-v3"]
    found = {
        name: estimate(Work(preset(name), tokens=1.0, batch=4096, length=512, count=chips), device, assumed)
        for name in SPEEDS
    }
    unit = found["bert-large"].step
    return [Speed(name, paper, unit / found[name].step, HANGS_ON[name], found[name]) for name, paper in SPEEDS.items()]
