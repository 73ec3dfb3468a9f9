"""A teacher: an encoder of sentences with its own tokenizer, from which a model in pre-training learns (lessons.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Encoding
from tokenizers import Tokenizer as WordPieces
from torch import Tensor
from torch.nn import functional as F

from albert.batch import Ints, pack
from albert.errors import ModelError
from albert.files import sha256
from albert.interop.bert import WEIGHTS, is_bert, load_bert
from albert.model import Albert, Packed
from albert.model.folder import load_model
from albert.model.heads import pool
from albert.model.locate import locate
from albert.tasks.task import join_segments
from albert.tokenizer import Tokenizer
from albert.tokenizer.words import MARKER

TOKENS = 512  # of the texts that it reads at once: texts of one length, and few enough to stay in the cache
LONGEST = 256  # tokens of a text; the rest is cut
TEACHER_WORDS = 2.0  # how much more a teacher's word vectors weigh than counted ones
ON_THE_WAY = 2 / 3  # of the layers


@dataclass(frozen=True)
class Pieces:
    """A text in a teacher's own tokens."""

    ids: list[int]
    word: Ints  # the word of each, as white space divides the text; -1: a special token


Encode = Callable[[Sequence[str]], list[Pieces]]


@dataclass(frozen=True)
class Reading:
    """What a teacher says of N texts, which have W words together, as white space divides them."""

    vectors: Tensor  # [N, D] of length 1
    words: (
        Tensor  # [W, D] what each word means in its text: the mean over its tokens, on the way; 0 where it was cut off
    )
    first: Ints  # [N + 1] where the words of each text begin


class Teacher:
    """An encoder and its own tokenizer: texts in, vectors of length 1 out."""

    def __init__(self, model: Albert, encode: Encode, *, fingerprint: str = "") -> None:
        self.model, self._encode, self.fingerprint = model, encode, fingerprint

    @property
    def width(self) -> int:
        """Return the size of its vectors."""
        return self.model.config.hidden_size

    @property
    def layer(self) -> int:
        """Return the depth at which it knows most of single words: the last layers gather the sense of the whole."""
        return on_the_way(self.model.config.num_hidden_layers)

    def vectors(self, texts: Sequence[str]) -> Tensor:
        """Return a vector of length 1 for every text, [N, D]: the mean over its tokens."""
        return self.read(texts).vectors

    @torch.no_grad()
    def read(self, texts: Sequence[str], *, words: bool = False) -> Reading:
        """Read texts; their words are left empty unless asked for."""
        encoded = self._encode(texts)
        first = np.cumsum([0, *(text.count(" ") + 1 for text in texts)])
        order = sorted(range(len(texts)), key=lambda i: len(encoded[i].ids))
        vectors = torch.empty(len(texts), self.width)
        sums = torch.zeros(int(first[-1]) if words else 0, self.width)
        counts = torch.zeros(len(sums), 1)
        for part in _parts(order, [len(own.ids) for own in encoded]):
            packed = Packed.from_batch(pack([encoded[i].ids for i in part]), self.model.device)
            states = self.model.encoder(packed, all_layers=words)
            vectors[torch.tensor(part)] = F.normalize(pool(states, packed).float(), dim=-1).cpu()
            if words:
                of_token = np.concatenate([np.where(encoded[i].word < 0, -1, encoded[i].word + first[i]) for i in part])
                add_groups(sums, states.layers[self.layer - 1].float().cpu(), of_token)
                add_groups(counts, torch.ones(len(of_token), 1), of_token)
        return Reading(vectors, sums / counts.clamp_min(1), first)


def add_groups(sums: Tensor, states: Tensor, group: Ints) -> Tensor:
    """Add states [T, H] to the sums of their groups [G, H], in place; those of group -1 are left out."""
    rows = torch.from_numpy(np.flatnonzero(group >= 0)).to(states.device)
    to = torch.from_numpy(group[group >= 0]).to(states.device)
    return sums.index_add_(0, to, states.index_select(0, rows))


def on_the_way(layers: int) -> int:
    """Return the depth, counted from 1, at which words are learnt and taught."""
    return max(1, round(ON_THE_WAY * layers))


def _parts(order: Sequence[int], lengths: Sequence[int]) -> list[list[int]]:
    """Divide texts, sorted by length, into batches of some thousand tokens."""
    parts: list[list[int]] = []
    room = 0
    for text in order:
        if lengths[text] > room:
            parts.append([])
            room = TOKENS
        parts[-1].append(text)
        room -= lengths[text]
    return parts


def open_teacher(name: str, device: torch.device) -> Teacher:
    """Open a folder of a BERT (with its tokenizer.json) or of an ALBERT."""
    folder = Path(name) if is_bert(Path(name)) else locate(name)
    fingerprint = sha256(folder / WEIGHTS) if (folder / WEIGHTS).is_file() else ""
    if not is_bert(folder):
        own = Tokenizer.load(folder)
        model = load_model(folder, ()).model.eval().to(device)
        room, begins = _longest(model) - 2, word_beginnings(own)

        def pieces(texts: Sequence[str]) -> list[Pieces]:
            joined = [np.array(join_segments(own, ids[:room])[0]) for ids in own.encode_many(texts)]
            return [Pieces(ids.tolist(), words_of(begins[ids])) for ids in joined]

        return Teacher(model, pieces, fingerprint=fingerprint)
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise ModelError(f"{folder}: no tokenizer.json: a teacher needs its tokenizer")
    model = load_bert(folder).to(device)
    words = WordPieces.from_file(str(path))
    words.no_padding()
    words.enable_truncation(_longest(model))

    def word_pieces(texts: Sequence[str]) -> list[Pieces]:
        encoded = words.encode_batch(list(texts))
        return [Pieces(one.ids, _words_at(one, text)) for one, text in zip(encoded, texts, strict=True)]

    return Teacher(model, word_pieces, fingerprint=fingerprint)


def word_beginnings(tokenizer: Tokenizer) -> Ints:
    """Tell of each piece whether it begins a word (1), goes on with one (0) or is a special token (-1)."""
    begins = np.array([piece.startswith(MARKER) for piece in tokenizer.pieces], dtype=np.int64)
    begins[[tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id]] = -1
    return begins


def words_of(begins: Ints) -> Ints:
    """Number the words of a text by what its pieces begin (`word_beginnings`): [T], -1 for a special token."""
    is_piece = begins >= 0
    number = np.cumsum(begins > 0)
    return np.where(is_piece, number - number[is_piece][:1].sum(), -1)  # the first piece is word 0, marked or not


def _words_at(encoded: Encoding, text: str) -> Ints:
    """Number the words of a text for tokens that know where they begin in it."""
    spaces = np.flatnonzero(np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32) == ord(" "))
    word = np.searchsorted(spaces, [begin for begin, _ in encoded.offsets], side="right")
    return np.where(np.array(encoded.special_tokens_mask, dtype=bool), -1, word)


def _longest(model: Albert) -> int:
    return min(LONGEST, model.config.max_position_embeddings)


def taught_words(teacher: Teacher, tokenizer: Tokenizer, counted: Tensor) -> Tensor:
    """Return vectors of all pieces: a teacher's of each alone joined with counted ones, at the width of those."""
    asked = teacher.vectors([piece.replace(MARKER, " ").strip() or "." for piece in tokenizer.pieces])
    seen = counted.norm(dim=1) > 0
    asked = asked - asked[seen].mean(dim=0)
    counted = counted / counted.norm(dim=1, keepdim=True).clamp_min(1e-9).sqrt()
    both = torch.cat([part / part[seen].pow(2).sum(1).mean().sqrt() for part in (asked, counted)], dim=1)
    both[:, : teacher.width] *= TEACHER_WORDS
    both[~seen] = 0
    left, strength, _ = torch.linalg.svd(both, full_matrices=False)
    width = counted.shape[1]
    return (left[:, :width] * strength[:width]) * seen.unsqueeze(1)
