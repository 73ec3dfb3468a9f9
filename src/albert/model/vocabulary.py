"""Another vocabulary under the same encoder: warm starts on a new domain or language.

A piece that both vocabularies have keeps its embedding. A new piece starts as the mean of the pieces that the old
tokenizer cuts it into, so the encoder meets vectors of the kind that it knows. The MLM bias moves likewise.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from albert.model.albert import Albert
from albert.tokenizer import Tokenizer
from albert.tokenizer.words import MARKER


@torch.no_grad()
def change_vocabulary(model: Albert, *, old: Tokenizer, new: Tokenizer) -> int:
    """Give a model a new vocabulary in place; return how many pieces were carried over."""
    known = {piece: number for number, piece in enumerate(old.pieces)}
    embedding = model.encoder.embeddings.word.weight
    weights = embedding.new_empty(new.vocab_size, embedding.shape[1])
    mlm = dict(model.heads.items()).get("mlm")
    bias = embedding.new_empty(new.vocab_size)
    carried = 0
    for number, piece in enumerate(new.pieces):
        if piece in known:
            sources = [known[piece]]
            carried += 1
        else:
            sources = _sub_pieces(piece, old)
        weights[number] = embedding[sources].mean(0)
        if mlm is not None:
            bias[number] = mlm.get_parameter("bias")[sources].mean()
    model.encoder.embeddings.word = nn.Embedding(weights.shape[0], weights.shape[1], _weight=weights)
    if mlm is not None:
        mlm.register_parameter("bias", nn.Parameter(bias))
    model.config = model.encoder.config = replace(model.config, vocab_size=new.vocab_size)
    return carried


def _sub_pieces(piece: str, old: Tokenizer) -> list[int]:
    """Cut a piece as the old tokenizer would; one from inside a word has no part in a word's marker."""
    surface = piece.replace(MARKER, " ")
    ids = old.encode(surface if surface.strip() else piece)
    if len(ids) > 1 and old.pieces[ids[0]] == MARKER and not piece.startswith(MARKER):
        ids = ids[1:]
    return ids or [old.unk_id]
