"""The few fields of a spiece.model that we read and write ourselves, by their numbers in sentencepiece_model.proto.

SentencePiece shows pieces and scores, but not its compiled normalisation rules, and makes no model from pieces and
scores that are known already. Knows nothing of tokenizer.json.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from albert.tokenizer.folder import SPECIAL_PIECES

_PIECES, TRAINER, NORMALIZER = 1, 2, 3  # fields of the model
NORMAL, _UNKNOWN, _CONTROL, USER_DEFINED = 1, 2, 3, 4  # types of a piece
_TEXT, _SCORE, _TYPE = 1, 2, 3  # fields of a piece
_CHARSMAP = 2  # field of the normaliser

SCORE_STEPS = 1024  # in 1


def read_charsmap(model: bytes) -> bytes:
    """Return the compiled rules of a model's normaliser; empty if it has none."""
    for field, start, stop in _fields(model, 0, len(model)):
        if field == NORMALIZER:
            found = (model[begin:end] for number, begin, end in _fields(model, start, stop) if number == _CHARSMAP)
            return next(found, b"")
    return b""


def read_number(model: bytes, spec: int, field: int, *, default: int) -> int:
    """Return a whole number or a switch among the trainer's or the normaliser's settings."""
    for number, start, stop in _fields(model, 0, len(model)):
        if number == spec:
            found = (_read_varint(model, begin)[0] for own, begin, _ in _fields(model, start, stop) if own == field)
            return next(found, default)
    return default


def read_types(model: bytes) -> list[int]:
    """Return the type of each piece."""
    types = []
    for field, start, stop in _fields(model, 0, len(model)):
        if field == _PIECES:
            found = (model[begin] for number, begin, _ in _fields(model, start, stop) if number == _TYPE)
            types.append(next(found, NORMAL))
    return types


def round_scores(model: bytes) -> bytes:
    """Round the scores of a model so that sums of them are exact, in single precision, for a few thousand pieces.

    Otherwise it depends on the engine, and on the text before a word, which of two segmentations of equal score wins.
    """
    rounded = bytearray(model)
    for field, start, stop in _fields(model, 0, len(model)):
        if field == _PIECES:
            for number, begin, end in _fields(model, start, stop):
                if number == _SCORE:
                    (score,) = struct.unpack("<f", model[begin:end])
                    rounded[begin:end] = struct.pack("<f", round(score * SCORE_STEPS) / SCORE_STEPS)
    return bytes(rounded)


def write_model(vocabulary: Iterable[tuple[str, float]], charsmap: bytes) -> bytes:
    """Make a unigram model of pieces and scores; those of score 0 are the recipe's symbols, which are never merged."""
    pieces = [_text(_PIECES, _piece(piece, score)) for piece, score in vocabulary]
    unigram, unknown, none, pad = 1, 1, -1, 0
    trainer = ((3, unigram), (4, len(pieces)), (40, unknown), (41, none), (42, none), (43, pad))
    trainer_spec = b"".join(_integer(field, value) for field, value in trainer)
    add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces = _integer(3, 1), _integer(4, 1), _integer(5, 1)
    normalizer_spec = _text(_CHARSMAP, charsmap) + add_dummy_prefix + remove_extra_whitespaces + escape_whitespaces
    return b"".join([*pieces, _text(TRAINER, trainer_spec), _text(NORMALIZER, normalizer_spec)])


def _piece(piece: str, score: float) -> bytes:
    kind = NORMAL if score else USER_DEFINED  # a learnt piece has the logarithm of a probability below 1
    if piece in SPECIAL_PIECES:
        score, kind = 0.0, _UNKNOWN if piece == SPECIAL_PIECES[1] else _CONTROL
    score_bytes = _varint(_SCORE << 3 | 5) + struct.pack("<f", score)
    return _text(_TEXT, piece.encode()) + score_bytes + _integer(_TYPE, kind)


def _fields(message: bytes, place: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """Return number, begin and end of each field of a message; SentencePiece wrote or read it, so it is well formed."""
    while place < stop:
        tag, begin = _read_varint(message, place)
        match tag & 7:
            case 0:
                _, place = _read_varint(message, begin)
            case 2:
                length, begin = _read_varint(message, begin)
                place = begin + length
            case kind:
                place = begin + (8 if kind == 1 else 4)
        yield tag >> 3, begin, place


def _read_varint(message: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[place]
        number |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return number, place


def _varint(number: int) -> bytes:
    number %= 2**64  # negative ones, too
    groups = bytearray()
    while number >= 0x80:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*groups, number])


def _integer(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value
