"""A teacher: an encoder of sentences whose vectors a model in pre-training learns to give, beside its own objectives.

What a large model knows of which texts mean the same, a small one would not find in the text that it can read in a few
hours. So the teacher reads the same segments, unmasked, and the student's mean over each segment, and its [CLS] for the
whole, are pulled towards the teacher's vectors. Those are turned and cut to the student's width by the directions in
which they differ most (a truncated SVD of some thousand), or, where the student has learnt before, by those nearest to
what its own vectors mean (Procrustes), so the student needs no head for it, and its cosines are nearly the teacher's.
The directions are written to the run folder: a resumed run must have the same.

A pair may be a lesson too: how like its two segments are, the teacher's cosine, which a student that reads both at once
finds only by comparing them. The sum of the order head's two scores says it: their difference alone says the order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer as WordPieces
from torch import Tensor
from torch.nn import functional as F

from albert.batch import Ints, PretrainingBatch, pack
from albert.data.store import TokenStore
from albert.data.stream import BatchStream
from albert.errors import ModelError
from albert.files import atomic_write, sha256
from albert.interop.bert import WEIGHTS, is_bert, load_bert
from albert.model import Albert, Packed
from albert.model.encoder import Encoded
from albert.model.folder import load_model
from albert.model.heads import pool
from albert.model.locate import locate
from albert.pretrain.settings import PretrainSettings, example_settings
from albert.tasks.task import join_segments
from albert.tokenizer import Tokenizer
from albert.train.world import World

TOKENS = 8_192  # of the texts that it reads at once
LONGEST = 256  # tokens of a text; the rest is cut
MARKER = "\u2581"  # begins a word, in SentencePiece's pieces
TEACHER_WORDS = 2.0  # how much more a teacher's word vectors weigh than counted ones
DIRECTIONS = "teacher.npy"
SAMPLE, SAMPLE_LENGTH = 4_096, 64  # texts from which the directions are found, and their tokens
Encode = Callable[[Sequence[str]], list[list[int]]]


class Teacher:
    """An encoder and its own tokenizer: texts in, vectors of length 1 out."""

    def __init__(self, model: Albert, encode: Encode, *, fingerprint: str = "") -> None:
        self.model, self._encode, self.fingerprint = model, encode, fingerprint

    @property
    def width(self) -> int:
        """Return the size of its vectors."""
        return self.model.config.hidden_size

    @torch.no_grad()
    def vectors(self, texts: Sequence[str]) -> Tensor:
        """Return a vector of length 1 for every text, [N, D]: the mean over its tokens."""
        ids = self._encode(texts)
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        found = torch.empty(len(ids), self.width)
        for part in _parts(order, [len(own) for own in ids]):
            packed = Packed.from_batch(pack([ids[i] for i in part]), self.model.device)
            vectors = pool(self.model.encoder(packed), packed).float()
            found[torch.tensor(part)] = F.normalize(vectors, dim=-1).cpu()
        return found


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
        room = _longest(model) - 2

        def pieces(texts: Sequence[str]) -> list[list[int]]:
            return [join_segments(own, ids[:room])[0] for ids in own.encode_many(texts)]

        return Teacher(model, pieces, fingerprint=fingerprint)
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise ModelError(f"{folder}: no tokenizer.json: a teacher needs its tokenizer")
    model = load_bert(folder).to(device)
    words = WordPieces.from_file(str(path))
    words.no_padding()
    words.enable_truncation(_longest(model))

    def word_pieces(texts: Sequence[str]) -> list[list[int]]:
        return [one.ids for one in words.encode_batch(list(texts))]

    return Teacher(model, word_pieces, fingerprint=fingerprint)


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


@dataclass(frozen=True)
class Segments:
    """The segments of a batch; legend: N segments, B texts, T tokens."""

    pieces: list[list[int]]  # N of them: what each says, unmasked
    of_token: Ints  # [T] the segment of each token
    text: Ints  # [N] the text of each segment

    @classmethod
    def of(cls, batch: PretrainingBatch) -> Segments:
        """Divide a batch."""
        ids = batch.token_ids.copy()
        ids[batch.masked_positions] = batch.masked_labels
        text = np.repeat(np.arange(batch.lengths.size), batch.lengths)
        begins = np.flatnonzero(np.diff(text * 2 + batch.segment_ids, prepend=-1))
        sizes = np.diff(begins, append=ids.size)
        return cls(
            pieces=[part.tolist() for part in np.split(ids, begins[1:])],
            of_token=np.repeat(np.arange(begins.size), sizes),
            text=text[begins],
        )

    def of_first(self, texts: int) -> Segments:
        """Return those of the first texts alone."""
        count = int(np.searchsorted(self.text, texts))
        return Segments(self.pieces[:count], self.of_token[self.of_token < count], self.text[:count])

    def sums(self, states: Tensor) -> Tensor:
        """Add the states [T, H] of each segment, [N, H]: the cosine of a sum is that of the mean."""
        of_token = torch.from_numpy(self.of_token).to(states.device)
        return states.new_zeros(len(self.pieces), states.shape[1]).index_add(0, of_token, states)


class Lessons:
    """What a teacher says of a batch, as a loss."""

    def __init__(self, teacher: Teacher, matrix: Tensor, tokenizer: Tokenizer, *, share: float = 1.0) -> None:
        self._teacher, self._matrix, self._tokenizer, self._share = teacher, matrix, tokenizer, share  # [D, H]

    @classmethod
    def prepare(
        cls,
        teacher: Teacher,
        store: TokenStore,
        settings: PretrainSettings,
        model: Albert,
        *,
        is_new: bool,
        folder: Path,
        world: World,
    ) -> Lessons:
        """Find the directions from vectors of some segments, once for a run; a new model of one width takes all."""
        path, shape = folder / DIRECTIONS, (teacher.width, model.config.hidden_size)
        if world.is_first and not path.exists():
            matrix = np.eye(*shape, dtype=np.float32)
            if shape[0] != shape[1]:
                stream = BatchStream(store, example_settings(settings, length=SAMPLE_LENGTH), batch_size=SAMPLE // 8)
                matrix = _directions(teacher, model, [stream.batch(i) for i in range(8)], store.tokenizer, is_new)
            with atomic_write(path) as file:
                np.save(file, matrix)
        world.wait()
        matrix = np.load(path, allow_pickle=False)
        if matrix.shape != shape:
            raise ModelError(f"{path}: is {matrix.shape}, must be {shape}: this run had another teacher")
        return cls(teacher, torch.from_numpy(matrix), store.tokenizer, share=settings.teacher.share)

    def taught(self, batch: PretrainingBatch) -> int:
        """Count the texts of a batch that the teacher reads: the first ones."""
        return math.ceil(self._share * batch.lengths.size)

    def loss(
        self, batch: PretrainingBatch, encoded: Encoded, packed: Packed, *, likeness: Tensor | None = None, count: float
    ) -> tuple[Tensor, Tensor]:
        """Return how far the student is from the teacher: 1 - cosine, half for means, half for [CLS]; and of likeness.

        `likeness` [B] are logits. Its loss is the cross-entropy above that of saying the teacher's cosine itself.
        """
        segments, texts = Segments.of(batch).of_first(self.taught(batch)), self.taught(batch)
        states = encoded.states[: segments.of_token.size].float()
        device = states.device
        vectors = self._teacher.vectors([self._tokenizer.decode(own) for own in segments.pieces])
        targets = F.normalize(vectors @ self._matrix, dim=-1).to(device)  # [N, H]
        text = torch.from_numpy(segments.text).to(device)
        whole = targets.new_zeros(texts, targets.shape[1]).index_add(0, text, targets)
        shares = 1 / torch.bincount(text, minlength=texts).index_select(0, text)  # each text counts once
        of_means = ((1 - F.cosine_similarity(segments.sums(states), targets)) * shares).sum()
        of_class = (1 - F.cosine_similarity(states.index_select(0, packed.starts[:texts]), whole)).sum()
        loss = (of_means + of_class) / 2 / max(count, 1.0)
        if likeness is None:
            return loss, loss.new_zeros(())
        second = np.flatnonzero(np.diff(segments.text, prepend=-1) == 0)
        cosines = (vectors[second - 1] * vectors[second]).sum(1).clamp(0, 1).to(device)
        said = likeness.float().index_select(0, text[second])
        entropy = F.binary_cross_entropy(cosines, cosines, reduction="sum")
        of_pairs = F.binary_cross_entropy_with_logits(said, cosines, reduction="sum") - entropy
        return loss, of_pairs / max(count, 1.0)


@torch.no_grad()
def _directions(
    teacher: Teacher, model: Albert, batches: Sequence[PretrainingBatch], tokenizer: Tokenizer, is_new: bool
) -> NDArray[np.float32]:
    """Find how to turn and cut a teacher's vectors to the width of a student: [D, H]."""
    divided = [Segments.of(batch) for batch in batches]
    asked = torch.cat([teacher.vectors([tokenizer.decode(own) for own in part.pieces]) for part in divided])
    if is_new:
        _, _, right = torch.linalg.svd(asked, full_matrices=False)  # [min(N, D), D]
        found = right[: model.config.hidden_size].T
    else:
        was, _ = model.training, model.eval()
        packed = (Packed.from_batch(batch, model.device) for batch in batches)
        own = [part.sums(model.encoder(one).states.float()).cpu() for part, one in zip(divided, packed, strict=True)]
        model.train(was)
        left, _, right = torch.linalg.svd(asked.T @ F.normalize(torch.cat(own), dim=-1), full_matrices=False)
        found = left @ right
    matrix = np.zeros((teacher.width, model.config.hidden_size), dtype=np.float32)
    matrix[:, : found.shape[1]] = found.numpy()
    return matrix
