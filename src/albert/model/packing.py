"""Packed batches as tensors, and attention over them.

Texts lie end to end, so linear layers, norms and GELU run on [T, H] and never see padding. Only attention needs to
know where a text ends. Texts of one length are a plain view. Mixed lengths in fp32 on a CPU are attended to one by
one, or with neighbours of the same length, which needs neither padding nor a mask (measured 1.2-1.5x faster than
padding to the longest); elsewhere, in bf16, and for torch.compile, whose graphs must not depend on the lengths, they
are padded inside attention alone.

Legend: B texts, T tokens in all, S longest, N heads, D head size, H = N·D.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from albert.batch import Batch, Ints

SHORT = 64  # tokens of a text that bf16 on a CPU attends to by the fused kernel
WHOLE_TOKENS, WHOLE_LENGTH = 64, 32  # in bf16 on a CPU T and S are made multiples of these


def _up(count: int, step: int) -> int:
    """Round up to a multiple."""
    return -(-count // step) * step


@dataclass(frozen=True)
class Rows:
    """How packed tokens are laid out as padded rows, and back."""

    gather: Tensor  # [B·S] which token stands at each place of the rows; past the end, the text's last
    scatter: Tensor  # [T + filler] the place of each token, and any place for filler
    bias: Tensor  # [B, 1, 1, S] 0 at tokens, -10000 past the end (safe in fp16; never the only keys)
    length: int  # S: the longest text, perhaps rounded up
    filler: int  # rows that `Encoder.forward` adds to the tokens, so that their number is a round one


@dataclass(frozen=True)
class Packed:
    """A batch on a device, with what every layer needs to know about its texts."""

    token_ids: Tensor  # [T]
    segment_ids: Tensor  # [T]
    position_ids: Tensor  # [T] counted from 0 in each text
    starts: Tensor  # [B]
    lengths: tuple[int, ...]  # B of them; a compiled graph that reads them is compiled anew for every batch
    longest: int  # S
    uniform: bool  # whether all texts have that length
    rows: Rows | None = None

    @classmethod
    def from_batch(cls, batch: Batch, device: torch.device | str = "cpu", *, padded: bool | None = None) -> Packed:
        """Move a batch to a device; `padded` chooses attention over padded rows (by default but for fp32 on a CPU)."""
        device = torch.device(device)
        token_ids, segment_ids = _move(batch.token_ids, device), _move(batch.segment_ids, device)
        whole = padded is None and device.type == "cpu"
        if padded is None:
            padded = device.type != "cpu" or torch.is_autocast_enabled("cpu")
        return _lay_out(token_ids, segment_ids, batch.lengths, padded=padded, whole=whole)

    def restrict(self, texts: Sequence[int]) -> tuple[Packed, Tensor]:
        """Return the batch of some of its texts, in that order, and which tokens they are.

        States follow their texts by `states.index_select(0, tokens)`.
        """
        assert len(texts), "a batch has at least one text"
        lengths = np.array(self.lengths)
        starts = np.cumsum(lengths) - lengths
        chosen = np.concatenate([np.arange(starts[text], starts[text] + lengths[text]) for text in texts])
        tokens = _move(chosen, self.token_ids.device)
        token_ids, segment_ids = self.token_ids.index_select(0, tokens), self.segment_ids.index_select(0, tokens)
        return _lay_out(token_ids, segment_ids, lengths[list(texts)], padded=self.rows is not None), tokens


def _lay_out(token_ids: Tensor, segment_ids: Tensor, lengths: Ints, *, padded: bool, whole: bool = False) -> Packed:
    """Return texts that are on a device as a batch, with what their lengths say; `whole` rounds padded rows up."""
    device = token_ids.device
    starts = np.cumsum(lengths) - lengths
    positions = np.arange(int(lengths.sum())) - np.repeat(starts, lengths)
    longest, uniform = int(lengths.max()), bool((lengths == lengths[0]).all())
    rows = None
    if padded and not uniform:
        tokens, length, filler = positions.size, longest, 0
        if whole:
            length, filler = _up(longest, WHOLE_LENGTH), _up(tokens, WHOLE_TOKENS) - tokens
        column = np.minimum(np.arange(length), lengths[:, None] - 1)  # [B, S]
        row_of_token = np.repeat(np.arange(len(lengths)), lengths)  # [T]
        bias = np.where(np.arange(length) < lengths[:, None], 0.0, -10000.0).astype(np.float32)
        rows = Rows(
            gather=_move((starts[:, None] + column).reshape(-1), device),
            scatter=_move(np.pad(row_of_token * length + positions, (0, filler)), device),
            bias=_move(bias[:, None, None, :], device),
            length=length,
            filler=filler,
        )
    return Packed(
        token_ids=token_ids,
        segment_ids=segment_ids,
        position_ids=_move(positions, device),
        starts=_move(starts, device),
        lengths=tuple(lengths.tolist()),
        longest=longest,
        uniform=uniform,
        rows=rows,
    )


def _move(array: np.ndarray, device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


def attend(query: Tensor, key: Tensor, value: Tensor, *, packed: Packed, num_heads: int, dropout: float) -> Tensor:
    """Let every token attend to the tokens of its own text: [T, H] three times in, [T, H] out.

    A query of each text's first token alone, [B, H], gives [B, H]. Rows past the last text are filler, and stay so.
    """
    rows, count = packed.rows, packed.token_ids.shape[0]
    if (filler := key.shape[0] - count) and (rows is None or filler != rows.filler):
        own = query[:count], key[:count], value[:count]
        mixed = attend(*own, packed=packed, num_heads=num_heads, dropout=dropout)
        return F.pad(mixed, (0, 0, 0, filler)) if query.shape[0] == key.shape[0] else mixed
    tokens, width = query.shape
    heads = (num_heads, width // num_heads)  # N, D
    first = tokens != key.shape[0]
    if packed.uniform:
        asked = 1 if first else packed.longest  # queries of each row
        q = query.view(-1, asked, *heads).transpose(1, 2)
        k, v = (x.view(-1, packed.longest, *heads).transpose(1, 2) for x in (key, value))  # [B, N, S, D]
        mixed = _mix(q, k, v, dropout=dropout)
        return mixed.transpose(1, 2).reshape(tokens, width)
    if rows is not None:
        # index_select, not x[idx]: the backward of x[idx] is not deterministic on CPU, and slow.
        in_rows = query if first else query.index_select(0, rows.gather)
        q = in_rows.view(-1, 1 if first else rows.length, *heads).transpose(1, 2)
        k, v = (
            x.index_select(0, rows.gather).view(-1, rows.length, *heads).transpose(1, 2) for x in (key, value)
        )  # [B, N, S, D]
        mixed = _mix(q, k, v, bias=rows.bias.to(q.dtype), dropout=dropout)
        mixed = mixed.transpose(1, 2).reshape(-1, width)
        if first:
            return mixed
        return mixed.index_select(0, rows.scatter if filler else rows.scatter[:count])
    # split and cat, not slices: the backward of a slice would fill a whole [T, H] with zeros for every text. Neighbours
    # of one length go together: prediction sorts by length, and a call for each short text costs more than its work.
    runs = [(length, len(list(own))) for length, own in groupby(packed.lengths)]
    together = [length * count for length, count in runs]
    asked_together = [count for _, count in runs] if first else together
    texts = (
        torch.split(x, own) for x, own in zip((query, key, value), (asked_together, together, together), strict=True)
    )
    mixed_texts = [
        _mix(
            q.view(count, -1, *heads).transpose(1, 2),
            k.view(count, length, *heads).transpose(1, 2),
            v.view(count, length, *heads).transpose(1, 2),
            dropout=dropout,
        )  # [count, N, length, D]
        .transpose(1, 2)
        .reshape(-1, width)
        for (length, count), q, k, v in zip(runs, *texts, strict=True)
    ]
    return torch.cat(mixed_texts)


def _mix(query: Tensor, key: Tensor, value: Tensor, *, dropout: float, bias: Tensor | None = None) -> Tensor:
    """Attend: [B, N, S, D] in and out.

    In bf16 on a CPU by plain products: with its backward, PyTorch's fused kernel takes two to five times as long there.
    Without one it is faster for short texts: 23 against 72 us for 28 tokens, 4 heads; 1.2 against 0.8 ms for 8 × 128.
    """
    short = key.shape[-2] < SHORT and not torch.is_grad_enabled()
    if query.dtype is not torch.bfloat16 or query.device.type != "cpu" or short:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=bias, dropout_p=dropout)
    scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2)
    weights = torch.softmax(scores if bias is None else scores + bias, dim=-1)
    return F.dropout(weights, dropout) @ value
