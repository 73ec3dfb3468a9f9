"""Fill in the blanks: what a masked-LM model would put at each [MASK] of a text."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from albert.batch import pack
from albert.errors import DataError, UsageError
from albert.model import Albert
from albert.tokenizer import Tokenizer

MASK = "[MASK]"


@dataclass(frozen=True)
class Guess:
    """A piece for a blank, and its probability."""

    piece: str
    probability: float


@torch.inference_mode()
def fill(model: Albert, tokenizer: Tokenizer, text: str, *, top: int = 3) -> list[list[Guess]]:
    """Give the best pieces for each [MASK] of a text, best first."""
    if "mlm" not in model.heads:
        raise UsageError("the model has no masked-LM head: it can't fill in words")
    parts = [tokenizer.encode(part) for part in text.split(MASK)]
    if len(parts) == 1:
        raise DataError(f"no {MASK} in the text: write it where a word is to be filled in")
    ids = [tokenizer.cls_id]
    for number, part in enumerate(parts):
        ids += ([tokenizer.mask_id] if number else []) + part
    batch = pack([[*ids, tokenizer.sep_id]])
    blanks = torch.from_numpy((batch.token_ids == tokenizer.mask_id).nonzero()[0])
    scores = model.mlm_logits(model(batch), blanks.to(model.device)).softmax(-1)
    best = scores.topk(min(top, scores.shape[-1]))
    return [
        [Guess(tokenizer.pieces[int(i)], float(p)) for i, p in zip(row, probabilities, strict=True)]
        for row, probabilities in zip(best.indices, best.values, strict=True)
    ]
