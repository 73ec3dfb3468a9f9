"""What a teacher says of a batch, as losses beside masked words and sentence order.

What a large model knows of which texts mean the same, a small one would not find in the text that it can read in a few
hours. So the teacher reads the same segments, unmasked, and the student's mean over each segment, and its [CLS] for the
whole, are pulled towards the teacher's vectors. Those are turned and cut to the student's width by the directions in
which they differ most (a truncated SVD of some thousand), or, where the student has learnt before, by those nearest to
what its own vectors mean (Procrustes), so the student needs no head for it, and its cosines are nearly the teacher's.
The directions are written to the run folder: a resumed run must have the same.

A pair may be a lesson too: how like its two segments are, the teacher's cosine, which a student that reads both at once
finds only by comparing them. The sum of the order head's two scores says it: their difference alone says the order.

And every word: what it means in its text, by the teacher's states after two thirds of its layers, is to be what the
student's say after two thirds of its own, also of words that the student does not see. The two divide words into
pieces of their own, so means over words are compared, as white space divides the text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from albert.batch import Ints, PretrainingBatch
from albert.data.store import TokenStore
from albert.data.stream import BatchStream
from albert.errors import ModelError
from albert.files import atomic_write
from albert.model import Albert, Packed
from albert.model.encoder import Encoded
from albert.pretrain.settings import PretrainSettings, TeacherSettings, example_settings
from albert.pretrain.teacher import Reading, Teacher, add_groups, on_the_way, word_beginnings, words_of
from albert.tokenizer import Tokenizer
from albert.train.world import World

DIRECTIONS, WORD_DIRECTIONS = "teacher.npy", "teacher_words.npy"
SAMPLE, SAMPLE_LENGTH = 4_096, 64  # texts from which the directions are found, and their tokens


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
        return _sums(states, self.of_token, len(self.pieces))

    def words(self, begins: Ints, first: Ints) -> Ints:
        """Return the word of each token, [T], in a reading whose texts' words begin at `first`; -1 for none.

        A segment has none where the student's pieces say another number of words than its text.
        """
        found = []
        for ids, start, end in zip(self.pieces, first, first[1:], strict=False):
            word = words_of(begins[ids])
            found.append(
                np.where(word < 0, -1, word + start) if word.max() + 1 == end - start else np.full_like(word, -1)
            )
        return np.concatenate(found)


def _sums(states: Tensor, group: Ints, groups: int) -> Tensor:
    """Add the states [T, H] of each group."""
    return add_groups(states.new_zeros(groups, states.shape[1]), states, group)


@dataclass(frozen=True)
class Directions:
    """How a teacher's vectors and states are turned and cut to the width of a student."""

    vectors: Tensor  # [D, H]
    words: Tensor | None = None  # [D + 1, H]: the last row is added

    def of_words(self, states: Tensor) -> Tensor:
        """Turn states of words."""
        assert self.words is not None, "words are not asked for"
        return states @ self.words[:-1] + self.words[-1]


@dataclass(frozen=True)
class Losses:
    """How far a student is from its teacher; what is not asked for is 0."""

    vectors: Tensor  # 1 - cosine, half for means, half for [CLS]
    pairs: Tensor  # cross-entropy above that of saying the teacher's cosine itself
    words: Tensor  # 1 - cosine

    def total(self, weights: TeacherSettings) -> Tensor:
        """Add them, weighed."""
        return weights.weight * self.vectors + weights.pairs * self.pairs + weights.words * self.words


class Lessons:
    """What a teacher says of a batch, as losses."""

    def __init__(self, teacher: Teacher, directions: Directions, tokenizer: Tokenizer, *, share: float = 1.0) -> None:
        self._teacher, self._directions, self._tokenizer, self._share = teacher, directions, tokenizer, share
        self._begins = word_beginnings(tokenizer)

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
        """Find the directions from some segments, once for a run; a new model of one width takes all of the vectors."""
        width, words = model.config.hidden_size, settings.teacher.words > 0
        shapes = {DIRECTIONS: (teacher.width, width)} | ({WORD_DIRECTIONS: (teacher.width + 1, width)} if words else {})
        if world.is_first and not all((folder / name).exists() for name in shapes):
            stream = BatchStream(store, example_settings(settings, length=SAMPLE_LENGTH), batch_size=SAMPLE // 8)
            found = _directions(teacher, model, [stream.batch(i) for i in range(8)], store.tokenizer, is_new, words)
            for name in shapes:
                with atomic_write(folder / name) as file:
                    np.save(file, found[name])
        world.wait()
        return cls(teacher, _read(folder, shapes), store.tokenizer, share=settings.teacher.share)

    @classmethod
    def to_time(cls, teacher: Teacher, tokenizer: Tokenizer, settings: PretrainSettings, model: Albert) -> Lessons:
        """Return lessons that cost what real ones do and teach nothing."""
        width = model.config.hidden_size
        words = torch.eye(teacher.width + 1, width) if settings.teacher.words else None
        directions = Directions(torch.eye(teacher.width, width), words)
        return cls(teacher, directions, tokenizer, share=settings.teacher.share)

    @property
    def with_words(self) -> bool:
        """Tell whether words are taught: the student's layers are needed then."""
        return self._directions.words is not None

    def taught(self, batch: PretrainingBatch) -> int:
        """Count the texts of a batch that the teacher reads: the first ones."""
        return math.ceil(self._share * batch.lengths.size)

    def losses(
        self, batch: PretrainingBatch, encoded: Encoded, packed: Packed, *, likeness: Tensor | None = None, count: float
    ) -> Losses:
        """Return how far the student is from the teacher; `likeness` [B] are logits."""
        segments, texts = Segments.of(batch).of_first(self.taught(batch)), self.taught(batch)
        states = encoded.states[: segments.of_token.size].float()
        device, zero = states.device, states.new_zeros(())
        reading = self._teacher.read([self._tokenizer.decode(own) for own in segments.pieces], words=self.with_words)
        vectors = reading.vectors
        targets = F.normalize(vectors @ self._directions.vectors, dim=-1).to(device)  # [N, H]
        text = torch.from_numpy(segments.text).to(device)
        whole = targets.new_zeros(texts, targets.shape[1]).index_add(0, text, targets)
        shares = 1 / torch.bincount(text, minlength=texts).index_select(0, text)  # each text counts once
        of_means = ((1 - F.cosine_similarity(segments.sums(states), targets)) * shares).sum()
        of_class = (1 - F.cosine_similarity(states.index_select(0, packed.starts[:texts]), whole)).sum()
        count = max(count, 1.0)
        return Losses(
            vectors=(of_means + of_class) / 2 / count,
            pairs=zero if likeness is None else _of_pairs(segments, vectors, likeness.float()) / count,
            words=self._of_words(segments, reading, encoded) / count if self.with_words else zero,
        )

    def _of_words(self, segments: Segments, reading: Reading, encoded: Encoded) -> Tensor:
        """Return 1 - cosine of what words mean, added over texts: each text counts once, and each word in it alike."""
        states = encoded.layers[on_the_way(len(encoded.layers)) - 1][: segments.of_token.size].float()
        of_token = segments.words(self._begins, reading.first)
        known = np.zeros(len(reading.words), dtype=bool)
        known[of_token[of_token >= 0]] = True
        known &= reading.words.any(dim=1).numpy()
        text = np.repeat(segments.text, np.diff(reading.first))[known]
        shares = torch.from_numpy(1 / np.bincount(text)[text]).to(states)
        chosen = torch.from_numpy(known)
        targets = self._directions.of_words(reading.words[chosen]).to(states.device)
        own = _sums(states, of_token, len(known))[chosen.to(states.device)]
        return ((1 - F.cosine_similarity(own, targets)) * shares).sum()


def _of_pairs(segments: Segments, vectors: Tensor, likeness: Tensor) -> Tensor:
    """Return how far what is said of pairs is from the teacher's cosines, added over pairs."""
    second = np.flatnonzero(np.diff(segments.text, prepend=-1) == 0)
    cosines = (vectors[second - 1] * vectors[second]).sum(1).clamp(0, 1).to(likeness.device)
    said = likeness.index_select(0, torch.from_numpy(segments.text[second]).to(likeness.device))
    entropy = -(torch.xlogy(cosines, cosines) + torch.xlogy(1 - cosines, 1 - cosines)).sum()
    return F.binary_cross_entropy_with_logits(said, cosines, reduction="sum") - entropy


def _read(folder: Path, shapes: dict[str, tuple[int, int]]) -> Directions:
    """Read the directions of a run, strictly."""
    found = []
    for name, shape in shapes.items():
        matrix = np.load(folder / name, allow_pickle=False)
        if matrix.shape != shape:
            raise ModelError(f"{folder / name}: is {matrix.shape}, must be {shape}: this run had another teacher")
        found.append(torch.from_numpy(matrix))
    return Directions(*found)


@torch.no_grad()
def _directions(
    teacher: Teacher,
    model: Albert,
    batches: Sequence[PretrainingBatch],
    tokenizer: Tokenizer,
    is_new: bool,
    with_words: bool,
) -> dict[str, NDArray[np.float32]]:
    """Find how to turn and cut a teacher's vectors, and its states of words, to the width of a student."""
    begins, was = word_beginnings(tokenizer), model.training
    vectors, means, words, states = [], [], [], []
    model.eval()
    for batch in batches:
        segments = Segments.of(batch)
        reading = teacher.read([tokenizer.decode(own) for own in segments.pieces], words=with_words)
        encoded = model.encoder(Packed.from_batch(batch, model.device), all_layers=with_words)
        vectors.append(reading.vectors)
        means.append(segments.sums(encoded.states.float()).cpu())
        if with_words:
            own = encoded.layers[on_the_way(len(encoded.layers)) - 1].float().cpu()
            own = _sums(own, segments.words(begins, reading.first), len(reading.words))
            known = own.any(dim=1) & reading.words.any(dim=1)
            words.append(reading.words[known])
            states.append(own[known])
    model.train(was)
    width = model.config.hidden_size
    found = {DIRECTIONS: np.eye(teacher.width, width, dtype=np.float32)}
    if teacher.width != width:
        found[DIRECTIONS] = _turn(torch.cat(vectors), None if is_new else torch.cat(means), width)
    if with_words:
        centre = torch.cat(words).mean(dim=0)
        turn = _turn(torch.cat(words) - centre, None if is_new else torch.cat(states), width)
        found[WORD_DIRECTIONS] = np.concatenate([turn, -centre.numpy()[np.newaxis] @ turn])
    return found


def _turn(asked: Tensor, own: Tensor | None, width: int) -> NDArray[np.float32]:
    """Return the directions [D, width] in which vectors [N, D] differ most, or those nearest to a student's own."""
    if own is None:
        right = torch.linalg.eigh(asked.T @ asked)[1].flip(1)  # [D, D], the greatest first
        found = right[:, :width]
    else:
        left, _, turned = torch.linalg.svd(asked.T @ F.normalize(own, dim=-1), full_matrices=False)
        found = left @ turned
    matrix = np.zeros((asked.shape[1], width), dtype=np.float32)
    matrix[:, : found.shape[1]] = found.numpy()
    return matrix
