"""`albert plan`: what pre-training would cost elsewhere."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from albert.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from albert.pretrain.cost import Assumptions, Device, Estimate, Work

DAY = 24.0


def plan(
    model: Annotated[
        str, typer.Option(help="A preset: base, large, xlarge, xxlarge, bert-base, bert-large, …")
    ] = "base",
    tokens: Annotated[float, typer.Option(min=1, help="Tokens to train on; the paper's 125,000 steps.")] = 262e9,
    gpu: Annotated[str, typer.Option(help="t4, l4, v100, a100, h100, rtx4090, tpu-v3; or `here`, measured.")] = "a100",
    count: Annotated[int, typer.Option(min=1, help="Devices per node.")] = 8,
    nodes: Annotated[int, typer.Option(min=1, help="Nodes.")] = 1,
    batch: Annotated[int, typer.Option(min=1, help="Sequences per step, over all devices.")] = 4096,
    length: Annotated[int, typer.Option(min=16, help="Tokens of a sequence.")] = 512,
    precision: Annotated[Literal["half", "fp32"], typer.Option(help="Of what backward keeps.")] = "half",
    tflops: Annotated[float | None, typer.Option(help="Peak of a device; each of these replaces its figure.")] = None,
    memory: Annotated[float | None, typer.Option(help="GB of a device.")] = None,
    bandwidth: Annotated[float | None, typer.Option(help="GB/s of a device's memory.")] = None,
    link: Annotated[float | None, typer.Option(help="GB/s between devices of a node, one way.")] = None,
    watts: Annotated[float | None, typer.Option(help="Power of a device.")] = None,
    price: Annotated[float | None, typer.Option(help="Dollars an hour of a device.")] = None,
    efficiency: Annotated[float | None, typer.Option(help="Share of the peak that products reach.")] = None,
    traffic: Annotated[float | None, typer.Option(help="Times that kept activations cross the memory.")] = None,
    optimizer_passes: Annotated[float | None, typer.Option(help="Numbers the optimizer moves per parameter.")] = None,
    network: Annotated[float | None, typer.Option(help="GB/s between nodes, one way.")] = None,
    overlap: Annotated[float | None, typer.Option(help="Share of the communication that is hidden.")] = None,
    reserve: Annotated[float | None, typer.Option(help="GB of a device that other software takes.")] = None,
    masked: Annotated[float | None, typer.Option(help="Share of the tokens that are predicted.")] = None,
    pue: Annotated[float | None, typer.Option(help="Energy of the building for each of the devices.")] = None,
    paper: Annotated[bool, typer.Option("--paper", help="The model against Table 2's speeds, and stop.")] = False,
    chips: Annotated[int, typer.Option(min=1, help="Chips of --paper: 64 to 512.")] = 512,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what pre-training would take on other machines.

    Memory, time, communication, energy and cost, by a stated model.
    """
    given = {name: value for name, value in locals().items() if value is not None}
    from dataclasses import fields, replace

    from albert.model.presets import preset
    from albert.pretrain.cost import DEVICES, Assumptions, Device, Work, estimate, measure_here

    def told(kind: Any) -> dict[str, Any]:
        return {field.name: given[field.name] for field in fields(kind) if field.name in given}

    assumed = replace(Assumptions(), **told(Assumptions))
    if paper:
        _print_paper(assumed, chips, json_=json_)
        return
    if gpu != "here" and gpu not in DEVICES:
        raise UsageError(f"--gpu {gpu}: is unknown: {did_you_mean(gpu, DEVICES)} (or `here`, or any with --tflops …)")
    for name in ("tflops", "memory", "bandwidth", "link", "efficiency", "traffic", "network"):
        if given.get(name, 1.0) <= 0:
            raise UsageError(f"--{name} {given[name]:g}: must be above 0")
    device = replace(measure_here() if gpu == "here" else DEVICES[gpu], **told(Device))
    work = Work(preset(model), tokens, batch, length, count, nodes, half=precision == "half")
    found = estimate(work, device, assumed)
    if json_:
        facts = asdict(found) | {
            "seconds_per_step": found.step,
            "device": asdict(device),
            "assumptions": asdict(assumed),
        }
        print(json.dumps(facts, indent=2))
        return
    print(_text(model, gpu, work, device, assumed, found))


def _text(model: str, gpu: str, work: Work, device: Device, assumed: Assumptions, found: Estimate) -> str:
    shares = (("products", found.products), ("activations", found.activations), ("optimizer", found.optimizer))
    parts = ", ".join(f"{name} {seconds:.3g} s" for name, seconds in (*shares, ("communication", found.communication)))
    lines = [
        f"model          {model}: {found.parameters:,} parameters",
        f"devices        {work.devices} x {gpu}, {work.own_batch:,} sequences of {work.length} per step each",
    ]
    if (fit := found.fit) is None:
        lines.append(
            "memory         nothing fits, not even one sequence with checkpointing: more memory, or a smaller model"
        )
    else:
        at_once = f"{fit.micro_batch} sequences at once, {_checkpointing(fit.checkpointing)}"
        lines.append(f"memory         {fit.memory:.1f} GB per device at {at_once}")
    total = f"{_hours(found.hours)}, {found.kilowatt_hours:,.0f} kWh, ${found.dollars:,.0f}"
    lines += [
        f"step           {found.step:.3g} s: {parts}",
        f"reduced        {found.reduced_bytes / 1e6:,.0f} MB of gradients per step",
        f"in all         {found.steps:,.0f} steps, {total}",
        f"what fits      {_fitting(found, False)}; {_fitting(found, True)} (sequences at once)",
        "assumed        " + ", ".join(f"{name} {value:g}" for name, value in (vars(device) | vars(assumed)).items()),
        "               each is a flag; none is a measurement, prices least of all",
    ]
    return "\n".join(lines)


def _fitting(found: Estimate, checkpointing: bool) -> str:
    sizes = [str(fit.micro_batch) for fit in found.fits if fit.checkpointing == checkpointing and fit.fits]
    return f"{_checkpointing(checkpointing)}: {', '.join(sizes) or 'nothing'}"


def _checkpointing(used: bool) -> str:
    return "with checkpointing" if used else "without checkpointing"


def _hours(hours: float) -> str:
    return f"{hours:,.1f} hours" if hours < 3 * DAY else f"{hours / DAY:,.1f} days"


def _print_paper(assumed: Assumptions, chips: int, *, json_: bool) -> None:
    from albert.study.table2 import modelled_speeds

    rows = modelled_speeds(assumed, chips=chips)
    if json_:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    print(f"training speed against BERT-large, {chips} chips of TPU v3, 4096 x 512 tokens per step")
    for row in rows:
        print(f"  {row.model:<18} paper {row.paper:>4}   modelled {row.modelled:>5.2f}   hangs on {row.hangs_on}")
    print("assumed: " + ", ".join(f"{name} {value:g}" for name, value in vars(assumed).items()))
