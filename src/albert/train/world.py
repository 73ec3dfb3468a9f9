"""The processes of a run: one, or several under torchrun (gloo on CPUs, nccl on GPUs).

Gradients are summed once per step in one flat buffer, so a shared layer costs one reduction, not one per depth. Every
sum is over the global batch, because losses are already divided by its counts. A process that dies ends the others at
once; one that hangs ends them after a settable time.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import nn

from albert.errors import AlbertError
from albert.hardware import find_device, keep_memory

log = logging.getLogger(__name__)

ValueT = TypeVar("ValueT")


@dataclass(frozen=True)
class World:
    """This process among the others."""

    rank: int
    size: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """Tell whether this process writes files and prints."""
        return self.rank == 0

    def sum(self, values: Sequence[float]) -> list[float]:
        """Add up some numbers over all processes."""
        if self.size == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64, device="cpu" if self.device.type == "cpu" else self.device)
        with _named_failure(self):
            dist.all_reduce(tensor)
        return [float(value) for value in tensor]

    def sum_gradients(self, model: nn.Module) -> None:
        """Add up the gradients over all processes, in one reduction; what none has a gradient for keeps none."""
        if self.size == 1:
            return
        parameters = [p for p in model.parameters() if p.requires_grad]
        gradients = [p.grad if p.grad is not None else torch.zeros_like(p) for p in parameters]
        has = torch.tensor([float(p.grad is not None) for p in parameters], device=gradients[0].device)
        flat = torch.cat([*(gradient.reshape(-1) for gradient in gradients), has])
        with _named_failure(self):
            dist.all_reduce(flat)
        *parts, having = flat.split([*(g.numel() for g in gradients), len(parameters)])  # type: ignore[no-untyped-call]
        for parameter, part, count in zip(parameters, parts, having.tolist(), strict=True):
            parameter.grad = part.view_as(parameter) if count else None  # with zeros LAMB would decay it to nothing

    def from_first(self, value: float) -> float:
        """Return the number that the first process gives; what the others give does not matter."""
        if self.size == 1:
            return float(value)
        tensor = torch.tensor([value], dtype=torch.float64, device=self.device)
        with _named_failure(self):
            dist.broadcast(tensor, src=0)
        return float(tensor)

    def share(self, model: nn.Module) -> None:
        """Give every process the weights of the first."""
        if self.size > 1:
            with _named_failure(self), torch.no_grad():
                for parameter in model.parameters():
                    dist.broadcast(parameter, src=0)

    def gather(self, values: Sequence[ValueT]) -> list[Sequence[ValueT]]:
        """Bring what each process has to the first, by rank; the others are given nothing."""
        if self.size == 1:
            return [values]
        gathered: list[Any] | None = [None] * self.size if self.is_first else None
        with _named_failure(self):
            dist.gather_object(values, gathered)  # pickled by our own processes, which trust each other's gradients too
        return gathered or []

    def wait(self) -> None:
        """Wait until every process is here."""
        if self.size > 1:
            with _named_failure(self):
                dist.barrier()


@contextmanager
def join_world(*, timeout_minutes: float) -> Iterator[World]:
    """Meet the other processes that torchrun started; alone, there is nothing to do."""
    size, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    kind = find_device()
    keep_memory()
    device = torch.device(kind, int(os.environ.get("LOCAL_RANK", "0"))) if kind == "cuda" else torch.device(kind)
    if size == 1:
        yield World(0, 1, device)
        return
    world = World(rank, size, device)
    with _named_failure(world):
        backend = "cpu:gloo,cuda:nccl" if kind == "cuda" else "gloo"  # objects are gathered in the memory of the CPU
        dist.init_process_group(backend, timeout=timedelta(minutes=timeout_minutes))
    try:
        yield world
    finally:
        dist.destroy_process_group()


@contextmanager
def _named_failure(world: World) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        reason = str(error).splitlines()[0][:200]
        raise AlbertError(
            f"process {world.rank} of {world.size}: another process died, hung or never came ({reason}): "
            "look at its output; run the same command again to resume"
        ) from error
