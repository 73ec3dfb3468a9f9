"""ALBERT, whole: from a folder of text to a small encoder in production."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from albert.inference.model import Model

__version__ = "0.1.0"


def load(name: str | Path, *, device: str | None = None) -> Model:
    """Open a model for use: `classify`, `answer`, `choose`, `tag`, `fill`, `embed`, `similarity`, `search`.

    The name is a model folder, a run folder, or a model that comes with the package. Torch is loaded here, not before.
    """
    from albert.inference.model import load

    return load(name, device=device)
