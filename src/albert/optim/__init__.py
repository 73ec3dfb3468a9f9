"""LAMB as ALBERT's authors run it, AdamW, and the learning-rate schedule."""

from albert.optim.choose import build_optimizer, learning_rate, warmup
from albert.optim.lamb import Lamb
from albert.optim.schedule import rate_at

__all__ = ["Lamb", "build_optimizer", "learning_rate", "rate_at", "warmup"]
