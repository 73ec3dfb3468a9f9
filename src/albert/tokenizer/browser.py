"""A vocabulary as data for the tokenizer in JavaScript of the web export (export/web_files/tokenizer.js).

All that SentencePiece and Python know and a browser doesn't: pieces with their scores, the normaliser's compiled
rules, which characters are combining marks, and what becomes of pieces that end in a digit and a comma.
"""

from __future__ import annotations

import base64
from typing import Any

from albert.errors import UsageError
from albert.tokenizer.pipeline import combining_marks
from albert.tokenizer.proto import NORMAL, NORMALIZER, TRAINER, USER_DEFINED, read_charsmap, read_number, read_types
from albert.tokenizer.runtime import Tokenizer

# What tokenizer.js takes for granted: the settings of every ALBERT, by their numbers in sentencepiece_model.proto.
_SETTINGS = (
    ("model_type is not unigram", TRAINER, 3, 1),
    ("treat_whitespace_as_suffix", TRAINER, 24, 0),
    ("byte_fallback", TRAINER, 35, 0),
    ("no add_dummy_prefix", NORMALIZER, 3, 1),
    ("no remove_extra_whitespaces", NORMALIZER, 4, 1),
    ("no escape_whitespaces", NORMALIZER, 5, 1),
)


def browser_vocabulary(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the contents of vocabulary.json."""
    for name, spec, field, expected in _SETTINGS:
        if read_number(tokenizer.model, spec, field, default=expected) != expected:
            raise UsageError(f"spiece.model has {name}: the tokenizer in JavaScript can't do that; export onnx instead")
    types = read_types(tokenizer.model)
    return {
        "pieces": tokenizer.pieces,
        "scores": tokenizer.scores,
        "text": [number for number, kind in enumerate(types) if kind in (NORMAL, USER_DEFINED)],
        "symbols": [number for number, kind in enumerate(types) if kind == USER_DEFINED],
        "special": {
            "unk": tokenizer.unk_id, "cls": tokenizer.cls_id, "sep": tokenizer.sep_id, "mask": tokenizer.mask_id,
        },
        "commas": tokenizer.split_ids,
        "charsmap": base64.b64encode(read_charsmap(tokenizer.model)).decode(),
        "marks": combining_marks(),
        "lower_case": tokenizer.normalisation.lower_case,
        "keep_accents": tokenizer.normalisation.keep_accents,
    }  # fmt: skip
