"""How many attention heads a model was trained with: its weights fit any number, its predictions only one.

The released xlarge configurations disagree: 16 heads on the hub pages, 32 in the TF-Hub archive and by the paper's rule
(google-research/albert issue 180). A wrong number loads without an error and computes nonsense. The check: predict
masked words of a plain text with each number, and compare the losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch.nn.functional import cross_entropy

from albert.batch import pack
from albert.model import Albert
from albert.tokenizer import Tokenizer

TEXT = (
    "The river rises in the mountains in the north of the country and flows through three large cities before it "
    "reaches the sea. In the spring, when the snow melts, the water is high, and the people who live near the bank "
    "take their boats out of the harbour. Most of the towns along the river were built in the middle of the "
    "nineteenth century, when the railway had not yet come and goods were carried by ship."
)
EVERY = 7  # every n-th piece is masked
CLEAR = 0.5  # a difference in loss that no chance explains


def masked_losses(model: Albert, tokenizer: Tokenizer, *, candidates: Sequence[int]) -> dict[int, float]:
    """Return the loss of predicting masked pieces of a plain text, for each number of heads."""
    ids = [tokenizer.cls_id, *tokenizer.encode(TEXT), tokenizer.sep_id]
    ids = ids[: model.config.max_position_embeddings]
    positions = list(range(EVERY, len(ids) - 1, EVERY))
    truth = torch.tensor([ids[position] for position in positions])
    for position in positions:
        ids[position] = tokenizer.mask_id
    losses = {}
    pooler = model.encoder.pooler is not None
    for count in candidates:
        with torch.device("meta"):
            other = Albert(replace(model.config, num_attention_heads=count), list(model.heads), pooler=pooler)
        other.load_state_dict(model.state_dict(), assign=True)
        with torch.inference_mode():
            logits = other.eval().mlm_logits(other(pack([ids])), torch.tensor(positions))
        losses[count] = float(cross_entropy(logits.float(), truth))
    return losses


def judge_head_count(model: Albert, tokenizer: Tokenizer | None, *, candidates: Sequence[int]) -> str:
    """Say in a sentence which number of heads the weights were trained with, if it can be told."""
    used = model.config.num_attention_heads
    choice = " or ".join(map(str, candidates))
    known = f"num_attention_heads={used}: published configurations of this size disagree ({choice})"
    if tokenizer is None or "mlm" not in model.heads:
        return f"{known}; without a tokenizer and the masked-word head it can't be checked: compare scores with both"
    losses = masked_losses(model, tokenizer, candidates=[*candidates] if used in candidates else [*candidates, used])
    shown = ", ".join(f"{loss:.2f} with {count}" for count, loss in losses.items())
    best, second = sorted(losses, key=losses.__getitem__)[:2]
    if losses[second] - losses[best] < CLEAR:
        return f"{known}; predicting masked words does not tell them apart (loss {shown})"
    if best == used:
        return f"num_attention_heads={used} is right: the loss of predicting masked words is {shown}"
    return (
        f"num_attention_heads={used} is WRONG for these weights: the loss of predicting masked words is {shown}: "
        + (f"convert again with a --config that says {best}")
    )
