"""The files of a tokenizer folder: spiece.model, and what `tokenizers` and transformers read.

Their pipelines cut out ( ) " - . before the model and begin a new word after each, which gives other ids than the
official models are used with. The tokenizer.json written here does the normalisation step by step, never splits
but at white space, and so gives the ids of runtime.py but for rounding: `tokenizers` adds scores in double
precision, SentencePiece in single, and where two ways to cut a word score the same, they may choose differently.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from albert.errors import ModelError
from albert.files import atomic_write, write_json
from albert.tokenizer.normalisation import Normalisation

MODEL_FILE = "spiece.model"
CONFIG_FILE = "tokenizer_config.json"
JSON_FILE = "tokenizer.json"
SPECIAL_PIECES = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")  # ids 0..4

Vocabulary = Sequence[tuple[str, float | None]]

_NEVER = -200.0  # the score of a piece that is never to be chosen: real ones are above -30


def read_normalisation(config: dict[str, Any], path: Path | None) -> Normalisation:
    """Take the normalisation from a tokenizer_config.json; what it doesn't say is as in the official models."""
    for key in ("do_lower_case", "keep_accents"):
        if not isinstance(config.get(key, False), bool):
            raise ModelError(f"{path}: {key} is {config[key]!r}: it must be true or false")
    return Normalisation(lower_case=config.get("do_lower_case", True), keep_accents=config.get("keep_accents", False))


def write(folder: Path, model: bytes, vocabulary: Vocabulary, *, normalisation: Normalisation) -> None:
    """Write a tokenizer folder; `vocabulary` has the score None for pieces that text never gives."""
    write_json(folder / CONFIG_FILE, _config(normalisation))
    with atomic_write(folder / JSON_FILE) as file:
        file.write(_pipeline(vocabulary, normalisation).to_str(pretty=True).encode())
    with atomic_write(folder / MODEL_FILE) as file:
        file.write(model)


def _config(normalisation: Normalisation) -> dict[str, Any]:
    pad, unk, cls, sep, mask = SPECIAL_PIECES
    return {
        # AlbertTokenizer would make its own pipeline in place of tokenizer.json, with other ids.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        "do_lower_case": normalisation.lower_case,
        "keep_accents": normalisation.keep_accents,
        "remove_space": True,
        "pad_token": pad,
        "unk_token": unk,
        "bos_token": cls,
        "cls_token": cls,
        "eos_token": sep,
        "sep_token": sep,
        "mask_token": mask,
    }


def _pipeline(vocabulary: Vocabulary, normalisation: Normalisation) -> Tokenizer:
    """Build the normalisation, SentencePiece's own normaliser, and the model, of parts that `tokenizers` has."""
    pad, unk, cls, sep, mask = SPECIAL_PIECES
    ids = {piece: number for number, (piece, _) in enumerate(vocabulary)}
    scores = [(piece, _NEVER if score is None else score) for piece, score in vocabulary]
    pipeline = Tokenizer(models.Unigram(scores, unk_id=ids[unk], byte_fallback=False))
    pipeline.normalizer = normalizers.Sequence(_normalizers(normalisation, knows_angle="<" in ids))
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
        [AddedToken(piece, lstrip=piece == mask, normalized=False, special=True) for piece in (pad, unk, cls, sep, mask)]
    )
    return pipeline


def _normalizers(normalisation: Normalisation, *, knows_angle: bool) -> list[normalizers.Normalizer]:
    steps = [
        normalizers.Replace(Regex("[\x0b\x1c-\x1f\x85]"), " "),  # white space to Python, not to `tokenizers`
        normalizers.Replace("``", '"'),
        normalizers.Replace("''", '"'),
    ]
    if normalisation.lower_case:
        steps.append(normalizers.Lowercase())
    if not normalisation.keep_accents:
        # StripAccents would also drop vowel signs and variation selectors, which the reference keeps.
        steps += [normalizers.NFKD(), normalizers.Replace(Regex(_combining()), "")]
        if normalisation.lower_case:
            steps.append(normalizers.Lowercase())
    steps += [normalizers.Nmt(), normalizers.NFKC()]  # together, SentencePiece's nmt_nfkc
    if not knows_angle:  # or the characters of <pad>, made by NFKC from others, would become the piece
        steps.append(normalizers.Replace("<", "\ue000"))
    return steps


def _combining() -> str:
    """Write a regular expression for the characters with a combining class, as ranges."""
    marks = [number for number in range(sys.maxunicode + 1) if unicodedata.combining(chr(number))]
    runs = groupby(enumerate(marks), key=lambda pair: pair[1] - pair[0])
    ranges = [[number for _, number in run] for _, run in runs]
    return "[" + "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in ranges) + "]"
