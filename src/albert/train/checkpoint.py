"""Checkpoints: all that a resume needs, whole or absent.

A checkpoint is a folder `step-N` of safetensors and JSON with a manifest of checksums, written beside its final name,
flushed, and renamed. Reading takes the newest whose checksums hold; a damaged one is named and passed over. "If it
isn't in the state, it isn't resumed": data position, schedule and dropout are functions of the step.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from albert.errors import ModelError, ResourceError
from albert.files import atomic_folder, read_json, sha256, write_json
from albert.model.tensor_file import write_tensors

log = logging.getLogger(__name__)

FILES = ("weights.safetensors", "optimizer.safetensors", "state.json")


@dataclass
class TrainState:
    """Where a run stands, beside weights and moments."""

    step: int = 0  # optimizer steps done
    smooth_loss: float | None = None  # running mean, to notice an explosion
    best_smooth_loss: float | None = None
    skipped: int = 0  # steps skipped for a bad loss
    scale: float | None = None  # of the fp16 loss
    scale_steps: int = 0  # since it changed
    best_score: float | None = None  # of the evaluations so far, where there is a score to be best at
    best_step: int = 0
    ended: bool = False  # before its last step, because going on would not help


def save_checkpoint(
    folder: Path, state: TrainState, model: nn.Module, optimizer: torch.optim.Optimizer, *, keep: int
) -> Path:
    """Write `folder/step-N` and remove the oldest beyond `keep`, and later ones, which must be damaged."""
    path = checkpoint_path(folder, state.step)
    with atomic_folder(path) as temporary:
        write_tensors(temporary / FILES[0], _cpu(model.state_dict()))
        write_tensors(temporary / FILES[1], _moments(model, optimizer))
        write_json(temporary / FILES[2], asdict(state))
        write_json(temporary / "manifest.json", {name: sha256(temporary / name) for name in FILES})
    there = checkpoints(folder)
    kept = [other for other in there if other <= path][-keep:]
    for old in (other for other in there if other not in kept):
        shutil.rmtree(old, ignore_errors=True)
    return path


def checkpoint_path(folder: Path, step: int) -> Path:
    """Return the place of the checkpoint of a step."""
    return folder / f"step-{step:08d}"


def step_of(path: Path) -> int:
    """Return the step of a checkpoint, by its name."""
    return int(path.name.removeprefix("step-"))


def checkpoints(folder: Path) -> list[Path]:
    """List the checkpoints of a run, oldest first."""
    return sorted(path for path in folder.glob("step-*") if re.fullmatch(r"step-\d{8,}", path.name))


def newest_intact(folder: Path) -> Path | None:
    """Find the newest checkpoint whose checksums hold; say which are damaged."""
    for path in reversed(checkpoints(folder)):
        problem = damage(path)
        if problem is None:
            return path
        log.warning("%s: %s: using the checkpoint before it", path, problem)
    return None


def damage(path: Path) -> str | None:
    """Say what is wrong with a checkpoint, or None."""
    try:
        manifest = read_json(path / "manifest.json")
    except ModelError as error:
        return f"damaged: {error}"
    if set(manifest) != set(FILES):
        return "manifest.json is damaged: it does not list the files of a checkpoint"
    for name in FILES:
        if not (path / name).is_file():
            return f"{name} is missing"
        if sha256(path / name) != manifest[name]:
            return f"{name} is damaged: its checksum is not the one in manifest.json"
    if (path / "manifest.json").read_bytes() != (json.dumps(manifest, indent=2) + "\n").encode():
        return "manifest.json is damaged: it says the same in other bytes than were written"
    return None


def load_checkpoint(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> TrainState:
    """Put a checkpoint back into model and optimizer."""
    try:
        weights, moments = load_file(path / FILES[0]), load_file(path / FILES[1])
        state = TrainState(**json.loads((path / FILES[2]).read_bytes()))
        model.load_state_dict(weights)
        _restore_moments(model, optimizer, moments)
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
        raise ModelError(f"{path}: does not fit this run ({str(error).splitlines()[0]})") from error
    return state


def _cpu(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().to("cpu").contiguous() for name, tensor in tensors.items()}


def _moments(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return _cpu(
        {
            f"{name}/{key}": value if isinstance(value, Tensor) else torch.tensor(value)
            for name, parameter in model.named_parameters()
            for key, value in optimizer.state.get(parameter, {}).items()
        }
    )


def _restore_moments(model: nn.Module, optimizer: torch.optim.Optimizer, moments: dict[str, Tensor]) -> None:
    parameters = dict(model.named_parameters())
    fused = {one for group in optimizer.param_groups if group.get("fused") for one in group["params"]}
    optimizer.state.clear()
    for name, tensor in moments.items():
        parameter, _, key = name.rpartition("/")
        target = parameters[parameter]
        device = "cpu" if key == "step" and target not in fused else target.device  # a fused kernel counts there
        optimizer.state[target][key] = tensor.to(device)


def require_space(folder: Path, model: nn.Module) -> None:
    """Refuse to start where not even one checkpoint fits."""
    needed = 2 * 3 * sum(4 * parameter.numel() for parameter in model.parameters())
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ResourceError(
            f"{folder}: {free / 1e6:,.0f} MB free, but checkpoints need {needed / 1e6:,.0f} MB: make room there, or "
            "choose a folder on another disk"
        )
