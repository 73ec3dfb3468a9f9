"""Gradient checkpointing with shared layers in several processes, under DistributedDataParallel."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from albert.batch import pack
from albert.model import Albert, AlbertConfig, Packed, new_model
from albert.model.losses import cross_entropy

SMALL = AlbertConfig(
    vocab_size=300, embedding_size=16, hidden_size=32, num_hidden_layers=4, num_attention_heads=4, intermediate_size=64
)
LENGTHS = [[9, 30], [4, 12, 7]]  # the texts of each process
POSITIONS = [[1, 4, 20], [2]]  # a different number of predictions each


class Step(nn.Module):
    """The model with its loss, as one module to wrap."""

    def __init__(self, model: Albert) -> None:
        super().__init__()
        self.model = model

    def forward(self, packed: Packed, positions: Tensor, count: float) -> Tensor:
        logits = self.model.mlm_logits(self.model(packed), positions)
        return cross_entropy(logits, torch.full_like(positions, 7), count=count)


def inputs(rank: int) -> tuple[Packed, Tensor]:
    rng = np.random.default_rng(rank)
    return Packed.from_batch(pack([rng.integers(5, 300, n) for n in LENGTHS[rank]])), torch.tensor(POSITIONS[rank])


def work(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo"}
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    model = new_model(SMALL, ("mlm",), seed=1).train()
    model.encoder.checkpointing = True
    wrapped = DistributedDataParallel(Step(model))
    packed, positions = inputs(rank)
    wrapped(packed, positions, 4 / 2).backward()  # the wrapper averages over 2 processes; 4 predictions in all
    if rank == 0:
        save_file({name: p.grad for name, p in model.named_parameters() if p.grad is not None}, f"{folder}/gradients")
    dist.destroy_process_group()
    # The wrapper keeps gloo's threads alive, and one that frees a tensor while Python shuts down aborts the process
    # (pytorch issue 190489): leave without that.
    os._exit(0)


def test_two_processes_give_the_gradient_of_the_global_batch(tmp_path: Path) -> None:
    mp.spawn(work, args=(str(tmp_path),), nprocs=2)
    model = new_model(SMALL, ("mlm",), seed=1).train()
    step = Step(model)
    sum(step(*inputs(rank), 4.0) for rank in (0, 1)).backward()  # type: ignore[union-attr]
    together = load_file(tmp_path / "gradients")
    for name, parameter in model.named_parameters():
        if parameter.grad is None or name.endswith("key.bias"):
            continue
        assert (together[name] - parameter.grad).norm() <= 1e-5 * parameter.grad.norm() + 1e-8, name
