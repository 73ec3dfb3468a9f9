"""The optimizers in one table (LAMB as ALBERT's authors run it, AdamW, Muon), and the learning-rate schedule."""

from albert.optim.choose import build_optimizer, learning_rate, set_rate, warmup
from albert.optim.lamb import Lamb
from albert.optim.muon import Muon
from albert.optim.schedule import rate_at
from albert.optim.settings import OptimizerSettings

__all__ = [
    "Lamb",
    "Muon",
    "OptimizerSettings",
    "build_optimizer",
    "learning_rate",
    "rate_at",
    "set_rate",
    "warmup",
]
