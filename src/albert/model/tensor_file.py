"""Safetensors files: the header of one from outside is checked before anything is allocated; a full disk is named.

A header is JSON of bounded size that names tensors, their types and shapes. It is compared with what a configuration
expects (folder.py) before a single tensor is read, so that a hostile file costs nothing.
"""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from albert.errors import ModelError

HEADER_LIMIT = 100_000_000  # safetensors' own
FLOATS = ("F32", "F16", "BF16", "F64")


def read_header(path: Path, *, ignore: Callable[[str], bool]) -> dict[str, tuple[int, ...]]:
    """Read names and shapes from a safetensors file's header, leaving out the tensors to ignore."""
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            prefix = file.read(8)
            length = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else HEADER_LIMIT + 1
            if length > min(HEADER_LIMIT, size - 8):
                raise ModelError(f"{path}: not a safetensors file, or cut short")
            header = json.loads(file.read(length))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: the header is not valid JSON: damaged, or not a safetensors file") from error
    except OSError as error:
        raise ModelError(f"{path}: can't be read ({error.strerror})") from error
    if not isinstance(header, dict):
        raise ModelError(f"{path}: the header is not a JSON object: damaged, or not a safetensors file")
    shapes: dict[str, tuple[int, ...]] = {}
    for name, entry in header.items():
        if name == "__metadata__" or ignore(name):
            continue
        shape = entry.get("shape") if isinstance(entry, dict) else None
        if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
            raise ModelError(f"{path}: tensor '{name}' has no valid shape: the header is damaged")
        if entry.get("dtype") not in FLOATS:
            raise ModelError(f"{path}: tensor '{name}' has dtype {entry.get('dtype')!r}; known: {', '.join(FLOATS)}")
        shapes[name] = tuple(shape)
    return shapes


def read_tensors(path: Path, names: Sequence[str]) -> list[Tensor]:
    """Read some tensors of a file."""
    try:
        with safe_open(path, framework="pt") as file:
            return [file.get_tensor(name) for name in names]
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{path}: damaged or cut short ({error})") from error


def write_tensors(path: Path, tensors: dict[str, Tensor], *, metadata: dict[str, str] | None = None) -> None:
    """Write a file; what the system refuses is the OSError it would be from Python, so that a full disk is named."""
    try:
        save_file(tensors, path, metadata=metadata)
    except SafetensorError as error:
        refusal = re.search(r"\(os error (\d+)\)", str(error))
        if refusal is None:
            raise
        number = int(refusal[1])
        raise OSError(number, os.strerror(number), str(path)) from error
