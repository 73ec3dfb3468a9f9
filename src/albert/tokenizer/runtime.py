"""Text to ids and back, with one engine: SentencePiece.

Promises the ids of transformers 4's slow AlbertTokenizer, the ids that the official models were trained and are used with, and
the same ids with and without offsets. Special tokens are never made from plain text: "[MASK]" in a text is text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import sentencepiece

from albert.errors import ModelError
from albert.files import read_json
from albert.tokenizer import formats
from albert.tokenizer.commas import comma_splits
from albert.tokenizer.formats import SPECIAL_PIECES
from albert.tokenizer.normalisation import Normalisation
from albert.tokenizer.offsets import spans
from albert.tokenizer.words import word_starts

sentencepiece.set_min_log_level(2)  # what goes wrong reaches us as an exception; its own log would go to stderr


@dataclass(frozen=True)
class Encoding:
    """The ids of a text, and the characters of the original text that each came from."""

    ids: list[int]
    offsets: list[tuple[int, int]]


class Tokenizer:
    """An ALBERT vocabulary with its normalisation."""

    def __init__(self, model: bytes, normalisation: Normalisation) -> None:
        self.model = model
        self.normalisation = normalisation
        engine = self._engine = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.vocab_size: int = engine.vocab_size()
        self.pieces: list[str] = [engine.id_to_piece(number) for number in range(self.vocab_size)]
        ids = {piece: number for number, piece in enumerate(self.pieces)}
        if missing := [piece for piece in SPECIAL_PIECES if piece not in ids]:
            raise ModelError(f"the vocabulary has no {', '.join(missing)}: it is not one of ALBERT's")
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (ids[piece] for piece in SPECIAL_PIECES)
        # Characters unknown to the vocabulary can spell a special piece: it must not become one.
        self._ids = {piece: number for piece, number in ids.items() if not engine.is_control(number)}
        self._splits = comma_splits(self.pieces, lambda text: engine.encode(text, out_type=str))
        self._split_ids = {ids[piece]: self._numbers(split.pieces) for piece, split in self._splits.items()}

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[bytes, Normalisation]]:
        return Tokenizer, (self.model, self.normalisation)

    @classmethod
    def load(cls, path: Path | str) -> Tokenizer:
        """Open a tokenizer or model folder, or a bare spiece.model (then with the official models' normalisation)."""
        path = Path(path)
        file, config_file = (path / formats.MODEL_FILE, path / formats.CONFIG_FILE) if path.is_dir() else (path, None)
        config = read_json(config_file) if config_file and config_file.exists() else {}
        normalisation = formats.read_normalisation(config, config_file)
        try:
            return cls(file.read_bytes(), normalisation)
        except OSError as problem:
            raise ModelError(
                f"{file}: can't be read ({problem.strerror}): a tokenizer is a folder with {formats.MODEL_FILE}, "
                "as `albert tokenizer train` writes it"
            ) from problem
        except RuntimeError as problem:
            raise ModelError(f"{file}: is not a SentencePiece model, or is damaged: copy or train it again") from problem
        except ModelError as problem:
            raise ModelError(f"{file}: {problem}") from problem

    def save(self, folder: Path | str) -> None:
        """Write spiece.model unchanged, and the files that `tokenizers` and transformers read."""
        engine, splits = self._engine, self._splits
        never = [piece in splits or piece not in self._ids for piece in self.pieces]
        scores = [None if never[number] else engine.get_score(number) for number in range(self.vocab_size)]
        vocabulary = list(zip(self.pieces, scores, strict=True))
        formats.write(Path(folder), self.model, vocabulary, normalisation=self.normalisation)

    @cached_property
    def fingerprint(self) -> str:
        """Name this vocabulary and its normalisation by a hash."""
        settings = f"lower_case={self.normalisation.lower_case} keep_accents={self.normalisation.keep_accents}"
        return hashlib.sha256(settings.encode() + hashlib.sha256(self.model).digest()).hexdigest()

    @cached_property
    def word_starts(self) -> npt.NDArray[np.bool_]:
        """Tell of each id whether a word begins with it."""
        return word_starts(self.pieces)

    def encode(self, text: str) -> list[int]:
        """Give the ids of one text, without special tokens."""
        return self._with_split_commas(self._engine.encode(self.normalisation(text), out_type=int))

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """Give the ids of each text, without special tokens: the fast way for many."""
        normalised = [self.normalisation(text) for text in texts]
        return [self._with_split_commas(ids) for ids in self._engine.encode(normalised, out_type=int, num_threads=1)]

    def encode_with_offsets(self, text: str) -> Encoding:
        """Give the ids of one text, and the characters of the text that each came from.

        Both ends of the offsets never decrease. They cover every character that is not white space, unless nothing
        of the text is left after normalisation. A bare word marker, as before a bracket, has an empty span.
        """
        aligned = self.normalisation.align(text)
        pieces = surfaces = self._engine.encode(aligned.text, out_type=str)
        if not self._splits.keys().isdisjoint(pieces):
            splits = self._splits
            pieces = [part for whole in surfaces for part in (splits[whole].pieces if whole in splits else (whole,))]
            surfaces = [part for whole in surfaces for part in (splits[whole].surfaces if whole in splits else (whole,))]
        return Encoding(self._numbers(pieces), spans(text, aligned, surfaces, normalise=self._normalise))

    def decode(self, ids: Sequence[int]) -> str:
        """Give the text of the ids; special tokens leave nothing."""
        return self._engine.decode([int(number) for number in ids])

    def _numbers(self, pieces: Sequence[str]) -> list[int]:
        numbers, unknown = self._ids, self.unk_id
        return [numbers.get(piece, unknown) for piece in pieces]

    def _with_split_commas(self, ids: list[int]) -> list[int]:
        splits = self._split_ids
        if splits.keys().isdisjoint(ids):
            return ids
        return [number for whole in ids for number in splits.get(whole, (whole,))]

    def _normalise(self, text: str) -> tuple[str, list[int]]:
        return self._engine.normalize(text, with_offsets=True)
