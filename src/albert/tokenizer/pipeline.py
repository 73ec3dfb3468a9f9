"""The tokenizer.json: our ids, made of the parts that the library `tokenizers` has; and back from it to a spiece.model.

transformers' own ALBERT pipelines cut out ( ) " - . before the model and begin a new word after each. Here text is
split at white space only, and every step of the normalisation, ours and SentencePiece's, has its counterpart. Two
differences are left in vocabularies that others trained (docs/tokenizer.md): `tokenizers` adds scores in double
precision and SentencePiece in single, so where two ways to cut a word score the same they may choose differently; and
the digit-comma rule, which looks at a finished segmentation, is imitated by never choosing what it would split.
"""

from __future__ import annotations

import base64
import math
import sys
import unicodedata
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from albert.errors import ModelError
from albert.files import read_json
from albert.tokenizer.folder import SPECIAL_PIECES
from albert.tokenizer.normalisation import Normalisation
from albert.tokenizer.proto import read_charsmap, write_model

Vocabulary = Sequence[tuple[str, float]]

NEVER = -200.0  # added to the score of a piece that is never to be chosen: real scores are above -50
_PRIVATE = ("\ue0f0", "\ue0f1")  # characters that no text uses


def pipeline_json(vocabulary: Vocabulary, normalisation: Normalisation, *, model: bytes, never: set[str]) -> str:
    """Write the pipeline of a spiece.model in whose vocabulary text never gives some of the pieces."""
    _, unk, cls, sep, mask = SPECIAL_PIECES
    ids = {piece: number for number, (piece, _) in enumerate(vocabulary)}
    scores = [(piece, score + NEVER if piece in never else score) for piece, score in vocabulary]
    pipeline = Tokenizer(models.Unigram(scores, unk_id=ids[unk], byte_fallback=False))
    steps = [*_our_steps(normalisation), *_sentencepiece_steps(read_charsmap(model))]
    if "<" not in ids:  # or the characters of <pad>, made by NFKC from others, would become the piece
        steps.append(normalizers.Replace("<", _PRIVATE[1]))
    pipeline.normalizer = normalizers.Sequence(steps)
    pipeline.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always", split=False)]
    )
    pipeline.decoder = decoders.Metaspace(prepend_scheme="always", split=False)
    pipeline.post_processor = processors.TemplateProcessing(
        single=f"{cls}:0 $A:0 {sep}:0",
        pair=f"{cls}:0 $A:0 {sep}:0 $B:1 {sep}:1",
        special_tokens=[(cls, ids[cls]), (sep, ids[sep])],
    )
    pipeline.add_special_tokens(
        [AddedToken(piece, lstrip=piece == mask, normalized=False, special=True) for piece in SPECIAL_PIECES]
    )
    return pipeline.to_str(pretty=True)


def _our_steps(normalisation: Normalisation) -> list[normalizers.Normalizer]:
    steps: list[normalizers.Normalizer] = [
        normalizers.Replace(Regex("[\x0b\x1c-\x1f\x85]"), " "),  # white space to Python, not to `tokenizers`
        normalizers.Replace("``", '"'),
        normalizers.Replace("''", '"'),
    ]
    lower_case = [normalizers.Lowercase()] if normalisation.lower_case else []
    if normalisation.keep_accents:
        return [*steps, *lower_case]
    # StripAccents would also drop vowel signs and variation selectors, which the reference keeps.
    without_accents = [normalizers.NFKD(), normalizers.Replace(Regex(combining_marks()), "")]
    return [*steps, *lower_case, *without_accents, *lower_case]


def _sentencepiece_steps(charsmap: bytes) -> list[normalizers.Normalizer]:
    """Do what the model's own normaliser does, nmt_nfkc: NFKC but for ～, and its way with invisible characters."""
    if not charsmap:
        return []
    return [
        normalizers.Replace("～", _PRIVATE[0]),
        # Precompiled alone would do, but it loses the second character of pairs such as ½ and U+0E33.
        normalizers.NFKC(),
        normalizers.Precompiled(charsmap),
        normalizers.Replace(_PRIVATE[0], "～"),
    ]


def combining_marks() -> str:
    """Write a regular expression for the characters with a combining class, as ranges."""
    marks = [number for number in range(sys.maxunicode + 1) if unicodedata.combining(chr(number))]
    runs = groupby(enumerate(marks), key=lambda pair: pair[1] - pair[0])
    ranges = [[number for _, number in run] for _, run in runs]
    return "[" + "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in ranges) + "]"


def model_from_json(path: Path) -> bytes:
    """Make the spiece.model again that a tokenizer.json came from, ours or transformers' own, which saves only that."""
    contents = read_json(path)
    model = contents.get("model")
    if not isinstance(model, dict) or model.get("type") != "Unigram" or not isinstance(model.get("vocab"), list):
        raise ModelError(f"{path}: has no Unigram vocabulary: it is not a tokenizer of ALBERT")
    try:
        vocabulary = [(str(piece), score - NEVER if score < NEVER / 2 else score) for piece, score in model["vocab"]]
        if not all(math.isfinite(score) for _, score in vocabulary):
            raise ValueError("a score is not a number")
        return write_model(vocabulary, _find_charsmap(contents.get("normalizer")))
    except (TypeError, ValueError, OverflowError) as problem:
        raise ModelError(f"{path}: its vocabulary is damaged ({problem}): save it again") from problem


def _find_charsmap(normalizer: Any) -> bytes:
    if not isinstance(normalizer, dict):
        return b""
    if normalizer.get("type") == "Precompiled":
        return base64.b64decode(str(normalizer.get("precompiled_charsmap")), validate=True)
    parts = normalizer.get("normalizers")
    return next(filter(None, map(_find_charsmap, parts)), b"") if isinstance(parts, list) else b""
