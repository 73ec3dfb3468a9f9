"""The files of a tokenizer folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from albert.errors import ModelError
from albert.tokenizer.normalisation import Normalisation

MODEL_FILE = "spiece.model"
CONFIG_FILE = "tokenizer_config.json"
SPECIAL_PIECES = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")  # ids 0..4


def read_normalisation(config: dict[str, Any], path: Path | None) -> Normalisation:
    """Take the normalisation from a tokenizer_config.json; what it doesn't say is as in the official models."""
    for key in ("do_lower_case", "keep_accents"):
        if not isinstance(config.get(key, False), bool):
            raise ModelError(f"{path}: {key} is {config[key]!r}: it must be true or false")
    return Normalisation(
        lower_case=config.get("do_lower_case", True), keep_accents=config.get("keep_accents", False)
    )
