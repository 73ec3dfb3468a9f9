"""What the machine can do: device, threads, precision, memory, and one CPU trap disarmed.

Some virtual machines announce AMX but hide CPUID leaf 0x1D, and oneDNN's AMX kernels then die with SIGILL: bf16 in
PyTorch and int8 or bf16 in OpenVINO kill the process. `protect_cpu` finds out in a child process, once per boot, and
lowers oneDNN's ceiling before torch or OpenVINO load. Importing this file loads neither. Knows nothing of models.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.metadata
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from albert.errors import AlbertError, UsageError
from albert.files import read_json, write_json

log = logging.getLogger(__name__)

Device = Literal["cuda", "mps", "cpu"]
Precision = Literal["bf16", "fp16", "fp32"]

CEILING = "ONEDNN_MAX_CPU_ISA"
# None first: no ceiling. AVX512_CORE_FP16 is all but AMX, by the name that oneDNN 2.7 to 3.12 know; since 3.3 it is
# an alias of AVX10_1_512, which older ones would not recognise and therefore ignore.
CEILINGS = (None, "AVX512_CORE_FP16", "AVX512_CORE", "AVX2")
WITHOUT_AMX = "AVX512_CORE_FP16"

_WRONG = 3  # the trial's exit code when the products come out wrong
_TRIAL = f"""
import resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
import torch
torch.set_num_threads(1)
x = torch.arange(128 * 128).remainder(7).sub(3).reshape(128, 128)
exact = x.float() @ x.float()
right = torch.equal(torch._int_mm(x.to(torch.int8), x.to(torch.int8)).float(), exact)
for dtype in (torch.bfloat16, torch.float16):
    right &= torch.allclose((x.to(dtype) @ x.to(dtype)).float(), exact, rtol=0.02)
heads = x.reshape(1, 2, 128, 64).bfloat16()
right &= bool(torch.nn.functional.scaled_dot_product_attention(heads, heads, heads).isfinite().all())
raise SystemExit(0 if right else {_WRONG})
"""


@dataclass(frozen=True)
class Amx:
    """What is known of the CPU's matrix unit, and the ceiling that oneDNN gets because of it."""

    announced: bool
    works: bool
    ceiling: str | None
    source: str  # what decided: a sentence for `albert doctor`


@dataclass(frozen=True)
class Memory:
    """Bytes of main memory, within the limits of the container."""

    total: int
    available: int


@functools.cache
def protect_cpu() -> Amx:
    """Lower oneDNN's ceiling if the CPU's AMX kills; call before torch or OpenVINO load, as often as you like."""
    amx = judge_amx(read_cpuinfo(), environ=os.environ, survives=_try_in_child, cache=cache_file("amx.json"))
    if amx.ceiling is not None:
        os.environ.setdefault(CEILING, amx.ceiling)
    return amx


@functools.cache
def keep_memory() -> bool:
    """Let the C library keep freed memory for the next arrays; call before training, as often as you like.

    By default glibc gives every array above 32 MB back to the system, and the next one is zeroed page by page: a
    tenth of a training step of the small preset (docs/lab_log.md). False where there is no glibc.
    """
    largest_kept, trim_threshold, most = -3, -1, 2**31 - 1  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD of malloc.h
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # macOS, musl, Windows
        return False
    return bool(set_option(largest_kept, 2**30)) and bool(set_option(trim_threshold, most))


def release_memory() -> bool:
    """Give freed memory back to the system, what lies between arrays in use too; False where there is no glibc.

    Arrays of many sizes leave holes: 17 of the 64 MB that tiny-en's process grew by in 50 batches. It takes 3 ms.
    """
    try:
        return bool(ctypes.CDLL(None).malloc_trim(0))
    except (AttributeError, OSError, TypeError):  # macOS, musl, Windows
        return False


def judge_amx(
    cpuinfo: str, *, environ: Mapping[str, str], survives: Callable[[str | None], bool | None], cache: Path | None
) -> Amx:
    """Decide whether oneDNN may use AMX; `survives` is asked only where nothing else decides."""
    if not re.search(r"^flags\s*:.*\bamx_tile\b", cpuinfo, re.MULTILINE):
        return Amx(announced=False, works=False, ceiling=None, source="the CPU has none")
    if chosen := environ.get(CEILING) or environ.get("DNNL_MAX_CPU_ISA"):
        trusted = "AMX" in chosen.upper() or chosen.upper() in ("ALL", "DEFAULT")
        return Amx(announced=True, works=trusted, ceiling=None, source=f"{CEILING}={chosen} is set")
    wish = environ.get("ALBERT_AMX", "")
    if wish not in ("", "on", "off"):
        raise UsageError(f"ALBERT_AMX={wish!r} is neither 'on' (trust AMX) nor 'off': unset it to have AMX tried")
    if wish:
        works = wish == "on"
        return Amx(announced=True, works=works, ceiling=None if works else WITHOUT_AMX, source=f"ALBERT_AMX={wish}")

    key = _machine(cpuinfo)
    known = _recall(cache)
    if key in known:
        ceiling = known[key]
        return Amx(announced=True, works=ceiling is None, ceiling=ceiling, source="tried earlier since boot")
    log.info("the CPU announces AMX: trying it in a child process, once a boot")
    for ceiling in CEILINGS:
        answer = survives(ceiling)
        if answer is None:  # no verdict, and a wrong guess would kill: go without AMX, try again next time
            return Amx(announced=True, works=False, ceiling=WITHOUT_AMX, source="the trial gave no answer")
        if answer:
            break
    _remember(cache, known, key, ceiling)
    return Amx(announced=True, works=ceiling is None, ceiling=ceiling, source="tried now in a child process")


def read_cpuinfo() -> str:
    """Read what Linux tells of the first CPUs, or nothing elsewhere (256 of them would take a while)."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
            return file.read(8192)
    except OSError:
        return ""


def find_device() -> Device:
    """Name the best device that torch can use here."""
    protect_cpu()
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def advise_precision(device: Device) -> Precision:
    """Name the fastest precision the hardware is good at.

    On a CPU that is bf16 with AMX, and on AMD's with AVX-512 BF16 (2.4x fp32 in pre-training on Zen 5, 1.3x on Zen 4);
    Intel's without AMX multiply in it more slowly than in fp32.
    """
    if device == "cpu":
        return "bf16" if protect_cpu().works or _is_amd_with_bf16(read_cpuinfo()) else "fp32"
    if device == "mps":
        return "fp32"
    import torch

    if torch.cuda.is_bf16_supported(including_emulation=False):
        return "bf16"
    return "fp16" if torch.cuda.get_device_capability() >= (7, 0) else "fp32"


def _is_amd_with_bf16(cpuinfo: str) -> bool:
    """Tell whether an AMD CPU multiplies in bf16, and oneDNN is not told to keep off it."""
    ceiling = os.environ.get(CEILING) or os.environ.get("DNNL_MAX_CPU_ISA") or "ALL"
    allowed = ceiling.upper() in ("ALL", "DEFAULT") or "BF16" in ceiling.upper() or "FP16" in ceiling.upper()
    return "AuthenticAMD" in cpuinfo and "avx512_bf16" in cpuinfo and (allowed or ceiling.upper().startswith("AVX10"))


def count_threads(root: Path = Path("/")) -> int:
    """Count the physical cores that this process may use (affinity, container quota), or obey OMP_NUM_THREADS."""
    wish = os.environ.get("OMP_NUM_THREADS", "")
    if wish.isdecimal() and int(wish) > 0:
        return int(wish)
    try:
        cpus = sorted(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        cpus = list(range(os.cpu_count() or 1))
    topology = root / "sys/devices/system/cpu"
    cores = {_read(topology / f"cpu{cpu}/topology/thread_siblings_list") or str(cpu) for cpu in cpus}
    quota = _cpu_quota(root)
    return max(1, min(len(cores), int(quota)) if quota else len(cores))


def measure_memory(root: Path = Path("/")) -> Memory | None:
    """Measure main memory within the container's limit; None where the system does not tell."""
    fields: dict[str, str] = dict(re.findall(r"^(\w+):\s+(\d+) kB", _read(root / "proc/meminfo"), re.MULTILINE))
    if "MemTotal" not in fields:
        return None
    total, available = int(fields["MemTotal"]) * 1024, int(fields.get("MemAvailable", fields["MemTotal"])) * 1024
    for folder in _cgroup_folders(root, "memory"):
        limit = _read(folder / "memory.max") or _read(folder / "memory.limit_in_bytes")
        used = _read(folder / "memory.current") or _read(folder / "memory.usage_in_bytes")
        if limit.isdecimal() and int(limit) < total:
            total = int(limit)
            available = min(available, total - int(used or 0))
    return Memory(total=total, available=max(0, available))


def _try_in_child(ceiling: str | None) -> bool | None:
    """Run AMX kernels under a ceiling in a child: True it lives, False it died or computed wrongly, None unclear."""
    environ = {name: value for name, value in os.environ.items() if name not in (CEILING, "DNNL_MAX_CPU_ISA")}
    if ceiling is not None:
        environ[CEILING] = ceiling
    try:
        child = subprocess.run(
            [sys.executable, "-P", "-c", _TRIAL], env=environ, capture_output=True, timeout=120, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        log.warning("the AMX trial could not run: %s", problem)
        return None
    if child.returncode == 0:
        return True
    if child.returncode == _WRONG or -child.returncode in (signal.SIGILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE):
        return False
    log.warning("the AMX trial ended with %d: %s", child.returncode, child.stderr.decode(errors="replace")[-200:])
    return None


def _machine(cpuinfo: str) -> str:
    """Name CPU, boot and torch: an image may wake up on another host, and each torch has its own oneDNN."""
    fields = dict(re.findall(r"^(model name|microcode)\s*:\s*(.*)$", cpuinfo, re.MULTILINE))
    boot = _read(Path("/proc/sys/kernel/random/boot_id"))
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        torch = "none"
    return f"{fields.get('model name')}, microcode {fields.get('microcode')}, boot {boot}, torch {torch}"


def cache_file(name: str) -> Path | None:
    """Return where something that was found out about this machine is kept; None where there is no home."""
    try:
        folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        return None
    return Path(folder) / "albert-lite" / name


def _recall(cache: Path | None) -> dict[str, str | None]:
    if cache is None or not cache.exists():
        return {}
    try:
        return {key: value for key, value in read_json(cache).items() if value in CEILINGS}
    except (AlbertError, TypeError):  # damaged: the trial will write it anew
        return {}


def _remember(cache: Path | None, known: dict[str, str | None], key: str, ceiling: str | None) -> None:
    if cache is None:
        return
    try:
        write_json(cache, dict([*known.items(), (key, ceiling)][-16:]))
    except (AlbertError, OSError) as problem:
        log.info("the AMX verdict could not be kept and will be found again next time: %s", problem)


def _cpu_quota(root: Path) -> float | None:
    """Read how many CPUs the container may keep busy; the tightest limit up the tree counts."""
    quotas = []
    for folder in _cgroup_folders(root, "cpu"):
        limit, _, period = _read(folder / "cpu.max").partition(" ")
        limit = limit or _read(folder / "cpu.cfs_quota_us")
        period = period or _read(folder / "cpu.cfs_period_us")
        if limit.isdecimal() and period.isdecimal() and int(period) > 0:
            quotas.append(int(limit) / int(period))
    return min(quotas, default=None)


def _cgroup_folders(root: Path, controller: str) -> list[Path]:
    """List the control groups of this process, innermost first (version 2, or 1 with the controller's tree)."""
    folders = []
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "" or controller in controllers.split(","):
            top = root / "sys/fs/cgroup" / (controller if controllers else "")
            inner = top / path.strip("/")
            folders += [inner, *(parent for parent in inner.parents if parent.is_relative_to(top))]
    return folders


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
