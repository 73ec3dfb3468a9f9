"""What a model is and costs, told without loading it.

Takes a preset, a config.json or a model folder; a folder's weights are checked by their header alone.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from albert.files import read_json
from albert.model.accounting import count_parameters, flops_per_token, inference_bytes, training_bytes
from albert.model.config import AlbertConfig, from_json
from albert.model.folder import check_weights, stored_heads, transformers_opens
from albert.model.locate import locate, model_in, shipped_models
from albert.model.presets import full_name, preset


@dataclass(frozen=True)
class Inspected:
    """A model by its configuration: what `albert info` shows."""

    name: str
    config: AlbertConfig
    heads: tuple[str, ...]
    transformers_opens: bool
    bytes_on_disk: int | None  # of the weights; None for a preset


def inspect(name: str, changes: dict[str, Any] | None = None) -> Inspected:
    """Look at a preset, a config.json or a model folder; `changes` are fields to see otherwise."""
    size = None
    heads: tuple[str, ...] = ("mlm", "order")
    path = Path(name)
    is_name = not ("/" in name or path.is_file() or model_in(path) or name in shipped_models())
    if is_name:
        label, config = full_name(name) or name, preset(name)
    else:
        path = path if path.is_file() else locate(name) / "config.json"
        values = read_json(path)
        label, config, heads = str(name), from_json(values, source=path), stored_heads(values, source=path)
        weights = path.parent / "model.safetensors"
        if path.name == "config.json" and weights.is_file() and not changes:
            config = check_weights(path.parent, config, heads)
            size = weights.stat().st_size
    if changes:
        config = config.with_settings(changes)
    return Inspected(label, config, heads, transformers_opens(config, heads), size)


def describe(seen: Inspected, *, batch: int, length: int) -> dict[str, Any]:
    """Return everything `albert info` says, as JSON."""
    config = seen.config
    parts = count_parameters(config, seen.heads)
    shape = asdict(config)
    labels = shape.pop("labels")
    return {
        "name": seen.name,
        "config": shape | {"num_labels": len(labels)},
        "heads": list(seen.heads),
        "parameters": {
            "embeddings": parts.embeddings,
            "projection": parts.projection,
            "layers": parts.layers,
            "pooler": parts.pooler,
            **{f"head {name}": count for name, count in parts.heads.items()},
            "backbone": parts.backbone,
            "total": parts.total,
        },
        "bytes": {"float32": 4 * parts.total, "float16": 2 * parts.total, "on_disk": seen.bytes_on_disk},
        "flops_per_token": flops_per_token(config, length=length),
        "memory": {
            "batch": batch,
            "length": length,
            "inference": inference_bytes(config, seen.heads, batch=batch, length=length),
            "training": training_bytes(config, batch=batch, length=length),
            "training_with_checkpointing": training_bytes(config, batch=batch, length=length, checkpointing=True),
        },
        "transformers_opens_it": seen.transformers_opens,
    }
