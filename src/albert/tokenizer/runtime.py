"""Text to ids and back, with one engine: SentencePiece.

Promises the ids of transformers 4's slow AlbertTokenizer, which are the ids that the official models were trained and are used
with. Special tokens are never made from plain text: "[MASK]" in a text is five pieces of text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import sentencepiece

from albert.errors import ModelError
from albert.files import read_json
from albert.tokenizer.normalisation import Normalisation

MARKER = "\u2581"  # SentencePiece's mark of a word's beginning
MODEL_FILE = "spiece.model"
CONFIG_FILE = "tokenizer_config.json"


@dataclass(frozen=True)
class Encoding:
    """The ids of a text, and the characters of the original text that each came from."""

    ids: list[int]
    offsets: list[tuple[int, int]]


class Tokenizer:
    """An ALBERT vocabulary with its normalisation."""

    def __init__(self, model: bytes, normalisation: Normalisation) -> None:
        self._model = model
        self._sentencepiece = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.normalisation = normalisation
        self.vocab_size: int = self._sentencepiece.vocab_size()
        self.pieces: list[str] = self._sentencepiece.id_to_piece(range(self.vocab_size))
        self._ids = {piece: number for number, piece in enumerate(self.pieces)}
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            self._ids[piece] for piece in ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
        )
        self._comma_splits = self._split_commas()

    @classmethod
    def load(cls, path: Path | str) -> Tokenizer:
        """Open a tokenizer or model folder, or a bare spiece.model."""
        path = Path(path)
        file = path / MODEL_FILE if path.is_dir() else path
        config = read_json(path / CONFIG_FILE) if path.is_dir() and (path / CONFIG_FILE).exists() else {}
        normalisation = Normalisation(
            lower_case=bool(config.get("do_lower_case", True)), keep_accents=bool(config.get("keep_accents", False))
        )
        try:
            return cls(file.read_bytes(), normalisation)
        except OSError as problem:
            raise ModelError(f"{file}: can't be read ({problem.strerror}): is this a tokenizer folder?") from problem
        except (RuntimeError, KeyError) as problem:
            raise ModelError(f"{file}: is not an ALBERT vocabulary ({problem})") from problem

    @property
    def fingerprint(self) -> str:
        """Name this vocabulary and its normalisation."""
        settings = {"lower_case": self.normalisation.lower_case, "keep_accents": self.normalisation.keep_accents}
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        digest.update(hashlib.sha256(self._model).digest())
        return digest.hexdigest()

    @property
    def word_starts(self) -> npt.NDArray[np.bool_]:
        """Tell of each piece whether a word begins with it."""
        return np.array([piece.startswith(MARKER) for piece in self.pieces])

    def encode(self, text: str) -> list[int]:
        """Give the ids of one text, without special tokens."""
        return self.encode_many([text])[0]

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """Give the ids of each text, without special tokens: the fast path."""
        normalised = [self.normalisation(text) for text in texts]
        batch: list[list[int]] = self._sentencepiece.encode(normalised, out_type=int, num_threads=1)
        splits = self._comma_splits
        return [
            ids if splits.keys().isdisjoint(ids) else [new for id_ in ids for new in splits.get(id_, (id_,))]
            for ids in batch
        ]

    def decode(self, ids: Sequence[int]) -> str:
        """Give the text of the ids."""
        return self._sentencepiece.decode(list(ids))

    def _split_commas(self) -> dict[int, tuple[int, ...]]:
        splits = {}
        for number, piece in enumerate(self.pieces):
            if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
                parts = self._sentencepiece.encode(piece[:-1].replace(MARKER, ""), out_type=str)
                if not piece.startswith(MARKER) and parts[0].startswith(MARKER):
                    parts = parts[1:] if len(parts[0]) == 1 else [parts[0][1:], *parts[1:]]
                splits[number] = tuple(self._ids.get(part, self.unk_id) for part in [*parts, ","])
        return splits
