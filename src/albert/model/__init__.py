"""The model: configuration, encoder, heads, losses, and folders of weights."""

from albert.hardware import protect_cpu

protect_cpu()  # before torch loads: see hardware.py

from albert.model.albert import HEADS, Albert, new_model  # noqa: E402
from albert.model.config import AlbertConfig, read_config  # noqa: E402
from albert.model.packing import Packed  # noqa: E402
from albert.model.presets import PRESETS, preset  # noqa: E402

__all__ = ["HEADS", "PRESETS", "Albert", "AlbertConfig", "Packed", "new_model", "preset", "read_config"]
