"""What a path given to `albert convert` is, and where the files that belong to it lie.

Knows three layouts: a folder with pytorch_model.bin, Google's checkpoints (`model.ckpt-best` with .index and .data
files, as in the released archives), and TF-Hub modules (`variables/variables.*` and `assets/`). Opens none of them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from albert.errors import ModelError, UsageError

Kind = Literal["pickle", "tensorflow"]

UNSUPPORTED = {
    "pytorch_model.bin.index.json": "the weights are split over several files: save them again as one",
    "tf_model.h5": "a Keras file: open it with transformers 4 and save it again",
    "flax_model.msgpack": "a Flax file: open it with transformers 4 and save it again",
    "saved_model.pb": "a SavedModel without variables/variables.index",
}


@dataclass(frozen=True)
class Source:
    """Something to convert: `weights` is a file, or the prefix of a TensorFlow checkpoint."""

    kind: Kind
    weights: Path
    config: Path
    vocab: Path | None

    @property
    def size(self) -> int:
        """Count the bytes of the weights."""
        parts = [self.weights] if self.kind == "pickle" else self.weights.parent.glob(f"{self.weights.name}.data-*")
        return sum(part.stat().st_size for part in parts)


def find_source(path: Path, *, config: Path | None = None, vocab: Path | None = None) -> Source:
    """Recognise what a path is; `config` and `vocab` override the files found beside it."""
    kind, weights = _weights(path)
    folders = [weights.parent]
    if weights.parent.name == "variables":  # a TF-Hub module
        folders = [weights.parent.parent, weights.parent.parent / "assets"]
    for given in (config, vocab):
        if given is not None and not given.is_file():
            raise UsageError(f"{given}: no such file")
    names = ("config.json",) if kind == "pickle" else ("albert_config.json", "config.json")
    config = config or next((folder / name for name in names for folder in folders if (folder / name).is_file()), None)
    if config is None:
        raise UsageError(f"{path}: no {' or '.join(names)} beside the weights: give one with --config")
    return Source(kind, weights, config, vocab or _vocabulary(folders))


def _weights(path: Path) -> tuple[Kind, Path]:
    if path.is_dir():
        return _weights_in(path)
    if prefix := re.fullmatch(r"(.+)\.(?:index|meta|data-\d{5}-of-\d{5})", path.name):
        path = path.with_name(prefix[1])
    if path.with_name(f"{path.name}.index").is_file():
        return "tensorflow", path
    if not path.is_file():
        raise ModelError(f"{path}: no such file, folder or checkpoint prefix: check the path")
    if path.suffix in (".bin", ".pt", ".pth"):
        return "pickle", path
    hint = ": unpack it first" if path.suffix in (".gz", ".tgz", ".zip", ".tar") else ""
    raise UsageError(f"{path}: neither a pytorch_model.bin nor a TensorFlow checkpoint{hint}")


def _weights_in(folder: Path) -> tuple[Kind, Path]:
    if (folder / "model.safetensors").is_file():
        raise UsageError(f"{folder}: already has a model.safetensors: every command opens it as it is")
    if (folder / "pytorch_model.bin").is_file():
        return "pickle", folder / "pytorch_model.bin"
    if (folder / "variables" / "variables.index").is_file():
        return "tensorflow", folder / "variables" / "variables"
    prefixes = sorted(index.with_suffix("") for index in folder.glob("*.index"))
    best = [prefix for prefix in prefixes if prefix.name == "model.ckpt-best"] or prefixes
    if len(best) == 1:
        return "tensorflow", best[0]
    if best:
        raise UsageError(f"{folder}: several checkpoints: give one of {', '.join(map(str, best))}")
    for name, reason in UNSUPPORTED.items():
        if (folder / name).exists():
            raise ModelError(f"{folder / name}: {reason}")
    raise ModelError(
        f"{folder}: no pytorch_model.bin, no TensorFlow checkpoint (*.index), no variables/variables.index"
    )


def _vocabulary(folders: list[Path]) -> Path | None:
    """Find the SentencePiece model beside the weights, by the names in use, or the only one there."""
    for name in ("spiece.model", "30k-clean.model"):
        for folder in folders:
            if (folder / name).is_file():
                return folder / name
    if file := next((path for folder in folders if _is_unigram(path := folder / "tokenizer.json")), None):
        return file
    models = [model for folder in folders for model in sorted(folder.glob("*.model"))]
    return models[0] if len(models) == 1 else None


def _is_unigram(path: Path) -> bool:
    """Tell whether a file is a tokenizer.json with a SentencePiece vocabulary; other models have WordPiece there."""
    try:
        return json.loads(path.read_bytes())["model"]["type"] == "Unigram"
    except (OSError, ValueError, KeyError, TypeError):
        return False
