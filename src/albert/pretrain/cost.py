"""What pre-training would cost on machines that are not here: memory, time, communication, energy, money.

A cost model, stated: matrix products at a share of the device's peak, activations and optimizer state over its memory
bandwidth, one ring all-reduce of all gradients per step, no overlap unless told. Every number that
it rests on is a field of `Device` or `Assumptions`, a flag of `albert plan`, and printed. Nothing is measured but by
`measure_here`; benchmarks/bench_plan.py compares with measured steps.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from albert.errors import UsageError
from albert.model.accounting import FLOAT, count_parameters, flops_per_token, training_bytes
from albert.model.config import AlbertConfig

GIGA = 1e9


@dataclass(frozen=True)
class Device:
    """One accelerator, as its maker describes it; the price is a guess at an hour's rent."""

    tflops: float  # dense, half precision with fp32 sums; a CPU's are in fp32
    memory: float  # GB
    bandwidth: float  # GB/s of its memory
    link: float  # GB/s to its neighbours in a node, one way
    watts: float
    price: float  # dollars per hour


DEVICES: dict[str, Device] = {
    "t4": Device(65, 16, 320, 12, 70, 0.35),
    "l4": Device(121, 24, 300, 16, 72, 0.70),
    "v100": Device(125, 32, 900, 150, 300, 2.00),
    "a100": Device(312, 80, 2039, 300, 400, 1.80),
    "h100": Device(989, 80, 3350, 450, 700, 3.00),
    "rtx4090": Device(165, 24, 1008, 16, 450, 0.50),
    "tpu-v3": Device(123, 32, 900, 70, 220, 2.00),  # a chip of two cores
}


@dataclass(frozen=True)
class Assumptions:
    """What the device's data sheet does not say."""

    efficiency: float = 0.5  # share of the peak that matrix products reach
    traffic: float = 6.0  # times that what backward keeps crosses the memory: written, read, and so its gradients
    optimizer_passes: float = 10.0  # fp32 numbers that a step of LAMB moves for each parameter
    network: float = 25.0  # GB/s between nodes, each node, one way
    overlap: float = 0.0  # share of the communication that is hidden; our loop reduces after the backward pass
    reserve: float = 1.5  # GB of a device that other software takes
    masked: float = 0.15
    pue: float = 1.2  # energy of the building for each of the devices


@dataclass(frozen=True)
class Work:
    """What is to be done, and on how many devices."""

    config: AlbertConfig
    tokens: float
    batch: int = 4096
    length: int = 512
    count: int = 8  # devices per node
    nodes: int = 1
    half: bool = True

    @property
    def devices(self) -> int:
        """Count the devices."""
        return self.count * self.nodes

    @property
    def own_batch(self) -> int:
        """Count the sequences per step of one device."""
        if self.batch % self.devices:
            raise UsageError(f"--batch {self.batch} is not a multiple of the {self.devices} devices: choose another")
        return self.batch // self.devices


@dataclass(frozen=True)
class Fit:
    """A setting of memory: sequences at once, with or without checkpointing."""

    micro_batch: int
    checkpointing: bool
    memory: float  # GB of a device
    fits: bool


@dataclass(frozen=True)
class Estimate:
    """What a run would take; seconds are those of a step."""

    parameters: int
    fit: Fit | None  # the setting that was chosen; None: nothing fits
    fits: tuple[Fit, ...]
    products: float
    activations: float
    optimizer: float
    communication: float
    reduced_bytes: int
    steps: float
    hours: float
    kilowatt_hours: float
    dollars: float

    @property
    def step(self) -> float:
        """Return the seconds of a step."""
        return self.products + self.activations + self.optimizer + self.communication


def estimate(work: Work, device: Device, assumed: Assumptions) -> Estimate:
    """Return what a run would take."""
    fits = tuple(_fits(work, device, assumed))
    plain = [fit for fit in fits if fit.fits and not fit.checkpointing]
    chosen = max(plain or [fit for fit in fits if fit.fits], key=lambda fit: fit.micro_batch, default=None)
    parameters = count_parameters(work.config, ("mlm", "order")).total
    own_tokens = work.own_batch * work.length
    checkpointing = chosen is None or chosen.checkpointing
    products = own_tokens * _step_flops(work, assumed, checkpointing=checkpointing)
    reduced = FLOAT * parameters if work.devices > 1 else 0
    seconds = (
        products / (device.tflops * 1e12 * assumed.efficiency),
        own_tokens * _moved(work, assumed) / (device.bandwidth * GIGA),
        assumed.optimizer_passes * FLOAT * parameters / (device.bandwidth * GIGA),
        (1 - assumed.overlap) * _reduction(work, device, assumed, parameters),
    )
    steps = work.tokens / (work.batch * work.length)
    hours = steps * sum(seconds) / 3600
    return Estimate(
        parameters,
        chosen,
        fits,
        *seconds,
        reduced_bytes=reduced,
        steps=steps,
        hours=hours,
        kilowatt_hours=hours * work.devices * device.watts * assumed.pue / 1000,
        dollars=hours * work.devices * device.price,
    )


def _step_flops(work: Work, assumed: Assumptions, *, checkpointing: bool) -> float:
    """Return the operations of a token, forward and backward; recomputed layers count again."""
    config = work.config
    layers = flops_per_token(config, length=work.length)
    projection = 2 * config.embedding_size * config.hidden_size if config.has_projection else 0
    head = 2 * assumed.masked * config.embedding_size * (config.hidden_size + config.vocab_size)
    return (4 if checkpointing else 3) * layers + 3 * (projection + head)


def _moved(work: Work, assumed: Assumptions) -> float:
    """Return the bytes that cross the memory for a token: what backward keeps, and the scores of the vocabulary."""
    config = work.config
    kept = config.num_hidden_layers * config.inner_group_num * (8 * config.hidden_size + 2 * config.intermediate_size)
    scores = 4 * assumed.masked * config.vocab_size
    return assumed.traffic * kept * (2 if work.half else FLOAT) + 2 * FLOAT * scores


def _reduction(work: Work, device: Device, assumed: Assumptions, parameters: int) -> float:
    """Return the seconds of a ring in each node and one between the nodes."""
    size = FLOAT * parameters / GIGA
    inside = 2 * (work.count - 1) / work.count * size / device.link
    between = 2 * (work.nodes - 1) / work.nodes * size / assumed.network
    return inside + between


def _fits(work: Work, device: Device, assumed: Assumptions) -> list[Fit]:
    """Return the memory of micro-batches of 1, 2, 4 … sequences, with and without checkpointing."""
    found = []
    parameters = count_parameters(work.config, ("mlm", "order")).total
    buffer = FLOAT * parameters if work.devices > 1 else 0  # the gradients once more, to be reduced in one piece
    sizes = [2**power for power in range(work.own_batch.bit_length()) if work.own_batch % 2**power == 0]
    for checkpointing in (False, True):
        for micro in sizes:
            needed = buffer + training_bytes(
                work.config,
                batch=micro,
                length=work.length,
                masked=assumed.masked,
                checkpointing=checkpointing,
                kept_bytes=2 if work.half else FLOAT,
            )
            memory = needed / GIGA + assumed.reserve
            found.append(Fit(micro, checkpointing, memory, memory <= device.memory))
    return found


def measure_here(seconds: float = 1.0) -> Device:
    """Return this machine's CPU as a device: the speed of a bare fp32 product, and of copying memory."""
    left, right, out = torch.ones(1024, 768), torch.ones(768, 3072), torch.empty(1024, 3072)
    source = torch.ones(16 * 2**20)
    target = torch.empty_like(source)
    flops = 2 * 1024 * 768 * 3072 / _fastest(lambda: torch.mm(left, right, out=out), seconds)
    moved = 2 * source.nbytes / _fastest(lambda: target.copy_(source), seconds)
    return Device(flops / 1e12, memory=0.0, bandwidth=moved / GIGA, link=1.0, watts=0.0, price=0.0)


def _fastest(work: object, seconds: float) -> float:
    """Return the shortest time of a call, over some seconds."""
    assert callable(work)
    best, end = float("inf"), time.monotonic() + seconds
    while time.monotonic() < end:
        before = time.monotonic()
        work()
        best = min(best, time.monotonic() - before)
    return best
