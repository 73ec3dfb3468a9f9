"""ALBERT's SentencePiece recipe.

Unigram, ids 0..4 for <pad> <unk> [CLS] [SEP] [MASK], then the symbols ( ) " - . – £ € as pieces of their own, character
coverage 0.99995 (google-research/albert, README). Two things differ: a digit and a comma never share a piece, because
the tokenizer would split it again (commas.py), and a script of very many characters is covered a little less, so that
half the vocabulary is left to longer pieces. (A third is done to the result: proto.round_scores.) Knows nothing of
files or processes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from albert.tokenizer.folder import SPECIAL_PIECES
from albert.tokenizer.normalisation import Normalisation

SYMBOLS = ("(", ")", '"', "-", ".", "–", "£", "€")
COVERAGE = 0.99995
LEAST_COVERAGE = 0.98  # SentencePiece takes no less
LINE_LIMIT = 1_000  # characters: SentencePiece leaves out lines of more than 4,192 bytes

_DIGIT_COMMA = re.compile(r"(?<=\d),")
_APART = '",'  # no piece crosses a symbol, so one between a digit and a comma keeps them apart


def training_lines(sample: Iterable[str], normalisation: Normalisation) -> list[str]:
    """Normalise text as it will be when it is encoded, in lines that SentencePiece takes."""
    texts = [_DIGIT_COMMA.sub(_APART, normalisation(line)) for line in sample]
    return [text[start : start + LINE_LIMIT] for text in texts for start in range(0, len(text), LINE_LIMIT)]


def character_coverage(lines: Iterable[str], vocab_size: int) -> float:
    """Choose the share of the text whose characters get a piece: at most half the pieces are single characters."""
    characters = Counter[str]()
    for line in lines:
        characters.update(line)
    del characters[" "]
    total, covered = characters.total(), 0
    for _, count in characters.most_common(vocab_size // 2):
        covered += count
        if covered >= COVERAGE * total:
            return COVERAGE
    return max(covered / total, LEAST_COVERAGE) if total else COVERAGE


def trainer_arguments(lines: Iterable[str], vocab_size: int) -> dict[str, Any]:
    """Return SentencePiece's options for these lines."""
    return {
        "vocab_size": vocab_size,
        "model_type": "unigram",
        "pad_id": 0,
        "unk_id": 1,
        "bos_id": -1,
        "eos_id": -1,
        "control_symbols": list(SPECIAL_PIECES[2:]),
        "user_defined_symbols": list(SYMBOLS),
        "character_coverage": character_coverage(lines, vocab_size),
        "shuffle_input_sentence": False,
        "num_threads": 16,  # the recipe's; not the machine's, because the sums, and so the pieces, depend on it
    }
