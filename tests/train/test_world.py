"""What processes tell each other, in two real ones."""

from __future__ import annotations

import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from albert.train.world import World


def work(rank: int, folder: str) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo"}
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    world = World(rank, 2, torch.device("cpu"))
    model = torch.nn.Linear(1, 1)
    torch.nn.init.constant_(model.weight, 3.0 + rank)
    world.share(model)
    unused = torch.nn.Linear(1, 1, bias=False)
    both = torch.nn.ModuleList([model, unused])
    model.weight.grad = torch.full((1, 1), 1.0 + rank)
    model.bias.grad = torch.ones(1) if rank else None  # one process has none
    world.sum_gradients(both)
    heard = {
        "gradients": [None if p.grad is None else p.grad.item() for p in both.parameters()],
        "sum": world.sum([1.0 + rank, 10.0]),
        "from_first": [world.from_first(7 + rank), world.from_first(rank == 1), world.from_first(rank == 0)],
        "shared": model.weight.item(),
        "gathered": world.gather([rank, "x"]),
    }
    Path(folder, f"{rank}.json").write_text(json.dumps(heard))
    dist.destroy_process_group()


def test_processes_add_up_take_over_and_gather(tmp_path: Path) -> None:
    mp.spawn(work, args=(str(tmp_path),), nprocs=2)
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    assert first["sum"] == second["sum"] == [3.0, 20.0]
    assert first["gradients"] == second["gradients"] == [3.0, 1.0, None], "what nobody uses must not decay"
    assert first["from_first"] == second["from_first"] == [7.0, 0.0, 1.0]
    assert first["shared"] == second["shared"] == 3.0
    assert (first["gathered"], second["gathered"]) == ([[0, "x"], [1, "x"]], [])


def test_a_process_alone_hears_itself() -> None:
    world = World(0, 1, torch.device("cpu"))
    assert (world.sum([2.0]), world.from_first(3), world.gather([4])) == ([2.0], 3.0, [[4]])
