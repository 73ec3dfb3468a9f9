"""The files of a tokenizer folder: spiece.model, and what `tokenizers` and transformers read beside it.

transformers is told to take tokenizer.json as it is (pipeline.py); left to itself it would make its own pipeline, with
other ids than the official models are used with.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from albert.errors import ModelError, UsageError
from albert.files import atomic_write, read_json, write_json
from albert.tokenizer.normalisation import Normalisation

MODEL_FILE = "spiece.model"
CONFIG_FILE = "tokenizer_config.json"
JSON_FILE = "tokenizer.json"
FILES = (MODEL_FILE, CONFIG_FILE, JSON_FILE)
MODEL_LIMIT = 64 * 2**20  # bytes: a million pieces are fewer
SPECIAL_PIECES = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")  # ids 0..4


def has_tokenizer(folder: Path) -> bool:
    """Tell whether a model folder has a tokenizer; transformers writes tokenizer.json alone."""
    return any((folder / name).exists() for name in (MODEL_FILE, JSON_FILE))


def read_model(path: Path) -> bytes:
    """Read a spiece.model, or say what a tokenizer is."""
    try:
        size = path.stat().st_size
        if not path.is_file() or size > MODEL_LIMIT:
            raise ModelError(f"{path}: {size:,} bytes, or no regular file: it is no {MODEL_FILE}")
        return path.read_bytes()
    except OSError as problem:
        raise ModelError(
            f"{path}: can't be read ({problem.strerror}): a tokenizer is a folder with {MODEL_FILE}, "
            "as `albert tokenizer train` writes it"
        ) from problem


def read_normalisation(path: Path) -> Normalisation:
    """Take the normalisation from a tokenizer_config.json; what it doesn't say is as in the official models."""
    config = read_json(path) if path.is_file() else {}
    for key in ("do_lower_case", "keep_accents"):
        if not isinstance(config.get(key, False), bool):
            raise ModelError(f"{path}: {key} is {config[key]!r}: it must be true or false")
    return Normalisation(lower_case=config.get("do_lower_case", True), keep_accents=config.get("keep_accents", False))


def refuse_other_folder(folder: Path) -> None:
    """Refuse a place for a tokenizer that holds something else, such as a model, whose tokenizer must not change."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is a file: name a folder for the tokenizer")
    names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    others = sorted(
        name for name in names.difference(FILES) if not name.startswith(".")
    )  # a killed writer's are hidden
    if others:
        raise UsageError(f"{folder}: holds other files ({others[0]}): name a new or empty folder")


def write_folder(
    folder: Path, model: bytes, pipeline: str, *, normalisation: Normalisation, max_length: int | None = None
) -> None:
    """Write a tokenizer's files into a folder; other files there, such as a model's, stay.

    `max_length` is where transformers cuts a text when it is asked to (`truncation=True`).
    """
    write_json(folder / CONFIG_FILE, _config(normalisation, max_length))
    for name, contents in ((JSON_FILE, pipeline.encode()), (MODEL_FILE, model)):
        with atomic_write(folder / name) as file:
            file.write(contents)


def _config(normalisation: Normalisation, max_length: int | None) -> dict[str, Any]:
    pad, unk, cls, sep, mask = SPECIAL_PIECES
    return {
        # AlbertTokenizer would make its own pipeline in place of tokenizer.json, with other ids.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        **({"model_max_length": max_length} if max_length is not None else {}),
        "truncation_side": "right",
        "padding_side": "right",
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
