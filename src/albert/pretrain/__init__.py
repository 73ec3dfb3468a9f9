"""Pre-training: from a token store to a model folder."""

from albert.pretrain.run import Plan, Pretrained, pretrain

__all__ = ["Plan", "Pretrained", "pretrain"]
