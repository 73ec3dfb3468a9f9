"""Pre-training: from a token store to a model folder."""

from albert.pretrain.plan import Plan
from albert.pretrain.run import Pretrained, pretrain
from albert.pretrain.start import settings_for

__all__ = ["Plan", "Pretrained", "pretrain", "settings_for"]
