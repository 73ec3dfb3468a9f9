"""`albert doctor`: what this machine can do, what is missing, and the fix for each red line.

Reads the requirements from the installed package's own metadata, so there is no second list of them.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import albert

if TYPE_CHECKING:
    from packaging.requirements import Requirement

GB = 2**30


@dataclass(frozen=True)
class Finding:
    """One line of the report; `note` is good to know, `bad` must be fixed."""

    name: str
    value: str
    state: Literal["ok", "note", "bad"] = "ok"
    fix: str = ""


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False) -> None:
    """Show what this machine can do, and the fix for what it can't.

    Ends with 0, or with 1 if something essential is broken (a red line).
    """
    findings = [*_machine(), *_packages(), *_torch(), *_engines()]
    broken = any(finding.state == "bad" for finding in findings)
    if as_json:
        lines = [dataclasses.asdict(finding) for finding in findings]
        print(json.dumps({"ok": not broken, "findings": lines}, indent=2))
    elif sys.stdout.isatty():
        _paint(findings)
    else:
        for finding in findings:
            print(
                f"{finding.state:5}{finding.name:11} {finding.value}" + (f"  -> {finding.fix}" if finding.fix else "")
            )
    if broken:
        raise typer.Exit(1)


def _machine() -> Iterator[Finding]:
    """Look at the machine itself: system, memory, disk, compiler."""
    from albert.hardware import measure_memory

    yield Finding("system", f"{platform.system()} {platform.machine()}")
    if memory := measure_memory():
        value = f"{memory.available / GB:.1f} GB free of {memory.total / GB:.1f}"
        if memory.available < GB:
            yield Finding("memory", value, "bad", "close other programs: 1 GB is the least to work with")
        else:
            yield Finding("memory", value)
    yield _disk(Path.cwd())
    compiler = next(filter(None, map(shutil.which, filter(None, (os.environ.get("CXX"), "c++", "g++", "clang++")))), "")
    if compiler:
        yield Finding("compiler", compiler)
    else:
        yield Finding("compiler", "no C++ compiler", "note", "only torch.compile needs one (Debian: apt install g++)")


def _disk(folder: Path) -> Finding:
    usage = shutil.disk_usage(folder)
    value = f"{usage.free / GB:.1f} GB free in {folder}"
    if usage.free < GB:
        return Finding("disk", value, "bad", "free some space: runs and checkpoints need at least 1 GB")
    if not os.access(folder, os.W_OK):
        return Finding("disk", value, "note", "this folder is read-only: give an --out elsewhere")
    return Finding("disk", value)


def _packages() -> Iterator[Finding]:
    """Compare what is installed with what the package asks for, core first, then each extra."""
    if not _installed("albert-lite"):
        yield Finding("albert", f"{albert.__version__}, not installed as a package", "bad", "pip install -e .")
        return
    yield Finding("albert", albert.__version__)
    wanted = _requirements()
    for extra in sorted(wanted):
        problems = [problem for requirement in wanted[extra] if (problem := _problem(requirement))]
        if extra == "":
            versions = ", ".join(
                f"{name} {_installed(name) or 'missing'}" for name in ("numpy", "tokenizers", "pyarrow")
            )
            value = f"Python {platform.python_version()}, {versions}"
            state: Literal["ok", "bad"] = "bad" if problems else "ok"
            yield Finding("core", "; ".join(problems) or value, state, "pip install albert-lite" if problems else "")
        elif problems:
            yield Finding(f"[{extra}]", "; ".join(problems), "note", f"pip install 'albert-lite[{extra}]'")
        else:
            yield Finding(f"[{extra}]", ", ".join(f"{item.name} {_installed(item.name)}" for item in wanted[extra]))


def _torch() -> Iterator[Finding]:
    """Load torch, with the CPU protected first, and say what it will run on."""
    from albert.hardware import advise_precision, count_threads, find_device, protect_cpu, read_cpuinfo

    amx = protect_cpu()
    try:
        device = find_device()
        import torch
    except (ImportError, OSError) as problem:
        yield Finding("torch", f"can't be loaded: {problem}", "bad", "pip install --force-reinstall torch==2.13.0")
        return
    yield Finding("torch", torch.__version__)
    model = next((line.split(":", 1)[1].strip() for line in read_cpuinfo().splitlines() if "model name" in line), "")
    named = torch.cuda.get_device_name() if device == "cuda" else model or platform.processor()
    yield Finding("device", f"{device} ({named})" if named else device)
    yield Finding("threads", f"{count_threads()} (physical cores this process may use)")
    yield Finding("precision", advise_precision(device))
    if not amx.announced:
        yield Finding("AMX", "none announced")
    elif amx.works:
        yield Finding("AMX", f"works ({amx.source})")
    else:
        ceiling = os.environ.get("ONEDNN_MAX_CPU_ISA", "")
        fix = f"nothing to do: ONEDNN_MAX_CPU_ISA={ceiling} keeps oneDNN off it (ALBERT_AMX=on would trust it)"
        yield Finding("AMX", f"announced but not used ({amx.source})", "note", fix)


def _engines() -> Iterator[Finding]:
    """Say which engines can run a model, and which was the fastest where they were measured."""
    try:
        from albert.inference.choose_engine import NEEDS, installed, measured
        from albert.inference.cpu_linear import has_bf16
        from albert.inference.int8 import has_vnni
    except (ImportError, OSError):
        return  # torch is broken, which is said above
    yield Finding("engines", ", ".join(name for name in reversed(NEEDS) if installed(name)))
    yield Finding("bf16", "the CPU multiplies in it" if has_bf16() else "no faster than fp32 on this CPU")
    yield Finding("int8", "full range (VNNI)" if has_vnni() else "weights of 7 bits: the CPU has no VNNI")
    if wish := os.environ.get("ALBERT_ENGINE"):
        yield Finding("engine", f"{wish}, by ALBERT_ENGINE")
    for found in measured():
        pace = ", ".join(f"{name} {number:,.0f}" for name, number in found.texts_per_second.items())
        yield Finding("fastest", f"{found.fastest} at {found.shape} (measured, texts/s: {pace})")


def _requirements() -> dict[str, list[Requirement]]:
    """List the requirements by extra, the core's under the empty name; `dev` is for contributors only."""
    from packaging.requirements import Requirement

    def applies(requirement: Requirement, extra: str) -> bool:
        return requirement.marker is None or requirement.marker.evaluate({"extra": extra})

    lines = [Requirement(line) for line in metadata.requires("albert-lite") or []]
    wanted = {"": [line for line in lines if applies(line, "")]}
    for extra in metadata.metadata("albert-lite").get_all("Provides-Extra") or []:
        if extra != "dev":
            wanted[extra] = [line for line in lines if applies(line, extra) and line not in wanted[""]]
    return wanted


def _problem(requirement: Requirement) -> str:
    """Say what is wrong with an installed package, or nothing."""
    installed = _installed(requirement.name)
    if not installed:
        return f"{requirement.name} is missing"
    if requirement.specifier.contains(installed, prereleases=True):
        return ""
    return f"{requirement.name} {installed} does not fit {requirement.name}{requirement.specifier}"


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _paint(findings: list[Finding]) -> None:
    """Draw the report in colour."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    marks = {"ok": ("✓", "green"), "note": ("•", "yellow"), "bad": ("✗", "bold red")}
    table = Table.grid(padding=(0, 2))
    for finding in findings:
        mark, style = marks[finding.state]
        value = Text(finding.value, style=style if finding.state == "bad" else "")
        if finding.fix:
            value.append(f"\n{finding.fix}", style="dim" if finding.state == "note" else "yellow")
        table.add_row(Text(mark, style=style), Text(finding.name, style="bold"), value)
    Console().print(table)
