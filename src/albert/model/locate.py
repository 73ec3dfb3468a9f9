"""Where a model argument points: a model folder or a run's, a name shipped with the package, or a hub id.

Hub ids (`owner/name`) are fetched only with the extra `hub` installed and only the files that a model folder has;
never code, never pickles.
"""

from __future__ import annotations

import importlib.resources
import re
from pathlib import Path

from albert.errors import ModelError, UsageError, did_you_mean
from albert.model.presets import full_name

HUB_FILES = [
    "config.json",
    "model.safetensors",
    "spiece.model",
    "tokenizer.json",
    "tokenizer_config.json",
    "task.json",
    "README.md",
]
SHIPPED = Path(str(importlib.resources.files("albert"))) / "models"


def shipped_models() -> list[str]:
    """List the models that come with the package."""
    return sorted(folder.name for folder in SHIPPED.glob("*") if (folder / "config.json").is_file())


def locate(name: str | Path) -> Path:
    """Return the folder that a model argument means."""
    path = Path(name)
    if found := model_in(path):
        return found
    if path.is_dir() and str(name) not in shipped_models() and not full_name(str(name)):
        raise ModelError(
            f"{name}: has no config.json, so it is no model folder: name one, a run that has written its model, or for "
            "Google's checkpoints what `albert convert` wrote"
        )
    if str(name) in shipped_models():
        return SHIPPED / str(name)
    is_hub_id = isinstance(name, str) and re.fullmatch(r"[\w.-]+/[\w.-]+", name) is not None  # a Path is a folder
    if is_hub_id and not path.parent.exists():
        return _fetch(str(name))
    if preset := full_name(str(name)):
        hub_id = f"albert/{preset}" if preset.startswith("albert-") else "albert/albert-base-v2"
        raise UsageError(
            f"{name}: is a preset, a shape without weights, which only pre-training starts from: give a shipped model "
            f"({', '.join(shipped_models())}), a run of `albert pretrain`, a model folder, or a hub id such as "
            f"{hub_id} (with the extra hub: pip install 'albert-lite[hub]')"
        )
    hint = did_you_mean(str(name), shipped_models()).replace("known:", "the shipped models:")
    what = "is a file, and a model is a folder" if path.is_file() else "no such model folder"
    hub = f"; to fetch that name from the hub, run this where there is no {path.parent} folder" if is_hub_id else ""
    raise ModelError(f"{name}: {what}; {hint}{hub}")


def model_in(path: Path) -> Path | None:
    """Return the model folder that a path means: itself, or a run's that has one."""
    return next((folder for folder in (path, path / "model") if (folder / "config.json").is_file()), None)


def refuse_two_meanings(name: str) -> None:
    """Refuse a name that is both a preset and a model folder here."""
    if full_name(name) and model_in(Path(name)):
        raise UsageError(
            f"--model {name}: is a preset, and a model folder of that name is here: write ./{name} for the folder; "
            "for the preset, rename the folder"
        )


def _fetch(hub_id: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise ModelError(
            f"{hub_id}: no such folder; to fetch a model of that name from the hub: pip install 'albert-lite[hub]'"
        ) from error
    try:
        return Path(snapshot_download(hub_id, allow_patterns=HUB_FILES))
    except Exception as error:  # the hub client raises dozens of types: network, names, permissions
        raise ModelError(f"{hub_id}: no such folder, and the hub did not give it ({type(error).__name__})") from error
