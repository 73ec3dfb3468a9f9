"""Text to ids and back, with one engine: SentencePiece.

Promises the ids of transformers 4's slow AlbertTokenizer, which are those that the official models are used with, and
the same ids with and without offsets. Special tokens are never made from plain text: "[MASK]" in a text is text.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import sentencepiece

from albert.errors import ModelError
from albert.files import read_json
from albert.tokenizer.commas import comma_splits, replaced
from albert.tokenizer.folder import (
    CONFIG_FILE,
    JSON_FILE,
    MODEL_FILE,
    SPECIAL_PIECES,
    read_model,
    read_normalisation,
    write_folder,
)
from albert.tokenizer.normalisation import Normalisation
from albert.tokenizer.offsets import spans
from albert.tokenizer.pipeline import model_from_json, pipeline_json
from albert.tokenizer.words import MARKER, word_starts

log = logging.getLogger(__name__)

sentencepiece.set_min_log_level(2)  # what goes wrong reaches us as an exception; its own log would go to stderr

_PROBE = "Ａ１ ﬁ é e\u0301 각 \u200b a\u200db x"  # tells SentencePiece's normalisers apart


@dataclass(frozen=True)
class Encoding:
    """The ids of a text, and the characters of the original text that each came from."""

    ids: list[int]
    offsets: list[tuple[int, int]]


def _warn_of_damage(path: Path) -> None:
    """Name a tokenizer.json that can't be read: spiece.model is enough here, but transformers reads the other."""
    try:
        read_json(path)
    except ModelError as problem:
        log.warning("%s: spiece.model is read in its place, but transformers will fail: save the folder again", problem)


class _NotOurs(Exception):
    """A SentencePiece model without ALBERT's special pieces."""


class Tokenizer:
    """An ALBERT vocabulary with its normalisation."""

    def __init__(self, model: bytes, normalisation: Normalisation) -> None:
        self.model = model
        self.normalisation = normalisation
        engine = self._engine = sentencepiece.SentencePieceProcessor()
        engine.load_from_serialized_proto(model)
        self.vocab_size: int = engine.vocab_size()
        self.pieces: list[str] = [engine.id_to_piece(number) for number in range(self.vocab_size)]
        ids = {piece: number for number, piece in enumerate(self.pieces)}
        if missing := [piece for piece in SPECIAL_PIECES if piece not in ids]:
            raise _NotOurs(f"the vocabulary has no {', '.join(missing)}: it is not one of ALBERT's")
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (ids[piece] for piece in SPECIAL_PIECES)
        # Characters unknown to the vocabulary can spell a special piece: it must not become one.
        self._ids = {piece: number for piece, number in ids.items() if not engine.is_control(number)}
        splits = comma_splits(self.pieces, lambda text: engine.encode(text, out_type=str))
        self.split_ids = {ids[piece]: self._numbers(split.pieces) for piece, split in splits.items()}
        self._split_pieces = {piece: split.pieces for piece, split in splits.items()}
        self._split_surfaces = {piece: split.surfaces for piece, split in splits.items()}

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[bytes, Normalisation]]:
        return Tokenizer, (self.model, self.normalisation)

    @classmethod
    def load(cls, path: Path | str) -> Tokenizer:
        """Open a tokenizer or model folder, or a spiece.model; without tokenizer_config.json as the official models."""
        path = Path(path)
        file = path / MODEL_FILE if path.is_dir() else path
        if path.is_dir() and not file.exists() and (path / JSON_FILE).exists():
            file = path / JSON_FILE  # transformers saves no spiece.model
        elif path.is_dir() and (path / JSON_FILE).exists():
            _warn_of_damage(path / JSON_FILE)
        model = model_from_json(file) if file.suffix == ".json" else read_model(file)
        try:
            return cls(model, read_normalisation(file.with_name(CONFIG_FILE)))
        except RuntimeError as problem:  # SentencePiece's, which speak of its source files
            raise ModelError(
                f"{file}: is not a SentencePiece model, or is damaged: copy it again, or train one"
            ) from problem
        except _NotOurs as problem:
            raise ModelError(f"{file}: {problem}") from problem

    def save(self, folder: Path | str, *, max_length: int | None = None) -> None:
        """Write spiece.model unchanged, and the files that `tokenizers` and transformers read.

        `max_length`: tokens of the longest sequence that the model beside it takes.
        """
        never = {piece for piece in self.pieces if piece not in self._ids} | {*SPECIAL_PIECES, *self._split_pieces}
        pipeline = pipeline_json(self._vocabulary, self.normalisation, model=self.model, never=never)
        write_folder(Path(folder), self.model, pipeline, normalisation=self.normalisation, max_length=max_length)

    @cached_property
    def fingerprint(self) -> str:
        """Name this vocabulary and its normalisation by a hash."""
        normalisation = [self.normalisation.lower_case, self.normalisation.keep_accents, self.normalise(_PROBE)]
        contents = json.dumps([self._vocabulary, normalisation])
        return hashlib.sha256(contents.encode()).hexdigest()

    @cached_property
    def word_starts(self) -> npt.NDArray[np.bool_]:
        """Tell of each id whether a word begins with it."""
        return word_starts(self.pieces)

    def encode(self, text: str) -> list[int]:
        """Return the ids of one text, without special tokens."""
        return replaced(self._engine.encode(self.normalisation(text), out_type=int), self.split_ids)

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text, without special tokens: the fast way for many."""
        normalised = [self.normalisation(text) for text in texts]
        encoded = self._engine.encode(normalised, out_type=int, num_threads=1)
        return [replaced(ids, self.split_ids) for ids in encoded]

    def encode_with_offsets(self, text: str) -> Encoding:
        """Return the ids of one text, and the characters of the text that each came from.

        Both ends of the offsets never decrease. They cover every character that is not white space, unless nothing
        of the text is left after normalisation. A bare word marker, as before a bracket, has an empty span.
        """
        aligned = self.normalisation.align(text)
        found = self._engine.encode(aligned.text, out_type=str)
        ids = self._numbers(replaced(found, self._split_pieces))
        surfaces = replaced(found, self._split_surfaces)
        return Encoding(ids, spans(text, aligned, surfaces, normalise=self._aligned))

    def normalise(self, text: str) -> str:
        """Return a text as the model sees it: what the pieces are cut from, white space as single spaces."""
        return self._engine.normalize(self.normalisation(text)).replace(MARKER, " ").strip()

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of the ids; special tokens leave nothing."""
        return self._engine.decode([int(number) for number in ids])

    @property
    def scores(self) -> list[float]:
        """Return the score of each piece."""
        return [self._engine.get_score(number) for number in range(self.vocab_size)]

    @property
    def _vocabulary(self) -> list[tuple[str, float]]:
        return list(zip(self.pieces, self.scores, strict=True))

    def _numbers(self, pieces: Sequence[str]) -> list[int]:
        numbers, unknown = self._ids, self.unk_id
        return [numbers.get(piece, unknown) for piece in pieces]

    def _aligned(self, text: str) -> tuple[str, list[int]]:
        return self._engine.normalize(text, with_offsets=True)
