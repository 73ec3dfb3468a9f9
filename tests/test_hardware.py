"""Device, threads, precision and memory, and the AMX trap found without dying."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from albert import hardware
from albert.errors import UsageError
from albert.hardware import Amx, judge_amx

PLAIN = "processor\t: 0\nmodel name\t: Some CPU\nmicrocode\t: 0x1\nflags\t\t: fpu avx2 avx512f avx512_bf16\n"
WITH_AMX = PLAIN.replace("avx512_bf16", "avx512_bf16 amx_bf16 amx_tile amx_int8")


class Trial:
    """Stands for the child process: dies until the ceiling is in `safe`, and counts its runs."""

    def __init__(self, *safe: str | None, unclear: bool = False) -> None:
        self.safe, self.unclear = safe, unclear
        self.tried: list[str | None] = []

    def __call__(self, ceiling: str | None) -> bool | None:
        self.tried.append(ceiling)
        return None if self.unclear else ceiling in self.safe


def judge(cpuinfo: str, trial: Trial, cache: Path | None = None, **environ: str) -> Amx:
    return judge_amx(cpuinfo, environ=environ, survives=trial, cache=cache)


def test_a_cpu_without_amx_is_never_tried(tmp_path: Path) -> None:
    trial = Trial(None)
    amx = judge(PLAIN, trial, tmp_path / "amx.json")
    assert (amx.announced, amx.works, amx.ceiling) == (False, False, None)
    assert trial.tried == []
    assert not (tmp_path / "amx.json").exists()


def test_no_cpuinfo_as_on_macos_and_windows_means_no_amx() -> None:
    assert judge("", Trial()).announced is False


def test_amx_that_works_gets_no_ceiling() -> None:
    amx = judge(WITH_AMX, Trial(None))
    assert (amx.works, amx.ceiling) == (True, None)


def test_amx_that_kills_gets_the_first_ceiling_that_survives() -> None:
    trial = Trial("AVX512_CORE_FP16", "AVX512_CORE", "AVX2")
    amx = judge(WITH_AMX, trial)
    assert (amx.announced, amx.works, amx.ceiling) == (True, False, "AVX512_CORE_FP16")
    assert trial.tried == [None, "AVX512_CORE_FP16"]
    assert judge(WITH_AMX, Trial("AVX2")).ceiling == "AVX2"
    assert judge(WITH_AMX, Trial()).ceiling == "AVX2", "when nothing survives, the lowest"


def test_the_verdict_is_tried_once_and_kept(tmp_path: Path) -> None:
    cache, trial = tmp_path / "new" / "amx.json", Trial("AVX512_CORE_FP16")
    first, second = judge(WITH_AMX, trial, cache), judge(WITH_AMX, trial, cache)
    assert (first.ceiling, second.ceiling) == ("AVX512_CORE_FP16", "AVX512_CORE_FP16")
    assert len(trial.tried) == 2
    other_cpu = WITH_AMX.replace("Some CPU", "Other CPU")
    assert judge(other_cpu, Trial(None), cache).works, "another CPU is tried anew"
    assert judge(WITH_AMX, Trial(), cache).source == "tried earlier since boot", "and both are remembered"


@pytest.mark.parametrize("content", ["", "[]", "{", '{"x": {"y": 1}}', "[" * 100_000])
def test_a_damaged_verdict_file_is_written_anew(tmp_path: Path, content: str) -> None:
    cache = tmp_path / "amx.json"
    cache.write_text(content)
    assert judge(WITH_AMX, Trial(None), cache).works
    assert list(json.loads(cache.read_text()).values())[-1] is None


def test_a_forged_ceiling_in_the_verdict_file_is_not_believed(tmp_path: Path) -> None:
    cache, trial = tmp_path / "amx.json", Trial("AVX512_CORE_FP16")
    judge(WITH_AMX, trial, cache)
    cache.write_text(cache.read_text().replace("AVX512_CORE_FP16", "AVX512_CORE_AMX"))
    assert judge(WITH_AMX, trial, cache).ceiling == "AVX512_CORE_FP16"
    assert len(trial.tried) == 4


def test_an_unwritable_cache_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert judge(WITH_AMX, Trial(None), tmp_path / "file" / "amx.json").works
    assert judge(WITH_AMX, Trial(None), None).works


def test_a_trial_without_an_answer_goes_without_amx_and_is_not_kept(tmp_path: Path) -> None:
    amx = judge(WITH_AMX, Trial(unclear=True), tmp_path / "amx.json")
    assert (amx.works, amx.ceiling) == (False, "AVX512_CORE_FP16")
    assert not (tmp_path / "amx.json").exists()


@pytest.mark.parametrize(
    ("value", "works"), [("AVX2", False), ("avx10_1_512", False), ("AVX512_CORE_AMX", True), ("DEFAULT", True)]
)
def test_a_ceiling_of_the_users_is_respected(value: str, works: bool) -> None:
    for name in ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"):
        trial = Trial()
        amx = judge(WITH_AMX, trial, None, **{name: value})
        assert (amx.works, amx.ceiling, trial.tried) == (works, None, [])


def test_albert_amx_decides_without_a_trial() -> None:
    trial = Trial()
    assert judge(WITH_AMX, trial, None, ALBERT_AMX="on").works
    assert judge(WITH_AMX, trial, None, ALBERT_AMX="off").ceiling == "AVX512_CORE_FP16"
    assert trial.tried == []
    with pytest.raises(UsageError, match="ALBERT_AMX='maybe'"):
        judge(WITH_AMX, trial, None, ALBERT_AMX="maybe")


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        (f"import os; os.kill(os.getpid(), {int(signal.SIGILL)})", False),
        (f"import os; os.kill(os.getpid(), {int(signal.SIGSEGV)})", False),
        (f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})", None),  # the memory killer, say: proves nothing
        ("raise SystemExit(0)", True),
        ("raise SystemExit(3)", False),
        ("import no_such_module", None),
    ],
)
def test_a_child_that_really_dies_is_survived(monkeypatch: pytest.MonkeyPatch, code: str, answer: bool | None) -> None:
    monkeypatch.setattr(hardware, "_TRIAL", code)
    assert hardware._try_in_child(None) is answer


def test_the_child_runs_under_the_ceiling_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "SSE41")
    monkeypatch.setattr(
        hardware, "_TRIAL", "import os; raise SystemExit(0 if os.environ.get('ONEDNN_MAX_CPU_ISA') == 'AVX2' else 3)"
    )
    assert hardware._try_in_child("AVX2") is True
    assert hardware._try_in_child(None) is False, "without a ceiling the variable is absent"


def test_the_real_trial_passes_here() -> None:
    """Holds on any machine: without AMX the kernels are others, with a broken one AVX2 is the way out."""
    assert hardware._try_in_child("AVX2") is True


def test_protection_comes_before_torch_and_survives_a_trial_that_dies(tmp_path: Path) -> None:
    script = f"""
import os, sys
from albert import hardware
hardware.read_cpuinfo = lambda: {WITH_AMX!r}
hardware._TRIAL = "import os; os.environ.get('ONEDNN_MAX_CPU_ISA') or os.kill(os.getpid(), {int(signal.SIGILL)})"
first = hardware.protect_cpu()
assert hardware.protect_cpu() is first
assert "torch" not in sys.modules and "numpy" not in sys.modules
print(os.environ["ONEDNN_MAX_CPU_ISA"], first.works, hardware.advise_precision("cpu"))
"""
    environ = {name: value for name, value in os.environ.items() if not name.endswith("DNN_MAX_CPU_ISA")}
    environ["XDG_CACHE_HOME"] = str(tmp_path)
    done = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["AVX512_CORE_FP16", "False", "fp32"]
    assert (tmp_path / "albert-lite" / "amx.json").is_file()


def machine(root: Path, files: dict[str, str]) -> Path:
    """Lay out the /proc and /sys of a machine."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def eight_cpus_on_four_cores() -> dict[str, str]:
    path = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    return {path.format(cpu): f"{cpu % 4},{cpu % 4 + 4}\n" for cpu in range(8)}


@pytest.mark.parametrize(
    ("affinity", "files", "threads"),
    [
        (range(8), {}, 4),
        ({0, 4}, {}, 1),
        ({0, 1, 5}, {}, 2),
        (range(8), {"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "250000 100000\n"}, 2),
        (range(8), {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}, 1),
        (range(8), {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, 4),
        (
            range(8),
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/job\n",
                "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "300000\n",
                "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            3,
        ),
    ],
)
def test_threads_are_physical_cores_within_affinity_and_quota(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, affinity: set[int], files: dict[str, str], threads: int
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(affinity))
    assert hardware.count_threads(machine(tmp_path, eight_cpus_on_four_cores() | files)) == threads


def test_omp_num_threads_is_obeyed_and_nonsense_in_it_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert hardware.count_threads() == 7
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert hardware.count_threads() >= 1


def test_memory_is_the_containers_where_there_is_a_limit(tmp_path: Path) -> None:
    free = {"proc/meminfo": "MemTotal:  8000 kB\nMemFree: 10 kB\nMemAvailable:  6000 kB\n"}
    memory = hardware.measure_memory(machine(tmp_path, free))
    assert memory == hardware.Memory(total=8000 * 1024, available=6000 * 1024)
    limit = {
        "proc/self/cgroup": "0::/job\n",
        "sys/fs/cgroup/job/memory.max": "1000000\n",
        "sys/fs/cgroup/job/memory.current": "400000\n",
    }
    assert hardware.measure_memory(machine(tmp_path, limit)) == hardware.Memory(total=1_000_000, available=600_000)
    assert hardware.measure_memory(tmp_path / "elsewhere") is None


def test_precision_follows_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    for works, cpuinfo, precision in (
        (True, "GenuineIntel flags: avx512_bf16 amx_tile", "bf16"),
        (False, "GenuineIntel flags: avx512_bf16 amx_tile", "fp32"),
        (False, "AuthenticAMD flags: avx512f avx512_bf16", "bf16"),
        (False, "AuthenticAMD flags: avx2", "fp32"),
    ):
        monkeypatch.setattr(hardware, "protect_cpu", lambda works=works: Amx(True, works, None, "test"))
        monkeypatch.setattr(hardware, "read_cpuinfo", lambda cpuinfo=cpuinfo: cpuinfo)
        assert hardware.advise_precision("cpu") == precision
    assert hardware.advise_precision("mps") == "fp32"
    for bf16, capability, precision in ((True, (8, 0), "bf16"), (False, (7, 5), "fp16"), (False, (6, 1), "fp32")):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation, bf16=bf16: bf16)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda capability=capability: capability)
        assert hardware.advise_precision("cuda") == precision


def test_freed_memory_is_kept_for_the_next_array() -> None:
    """Count the pages that the system hands out for a second array of 64 MB, after the first was freed."""
    program = """
import resource
from albert.hardware import keep_memory
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
kept = keep_memory()
for _ in range(2):
    before = faults()
    bytearray(64 * 2**20)
print(int(kept), faults() - before)
"""
    child = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    kept, pages = map(int, child.stdout.split())
    if not kept:
        pytest.skip("no glibc")
    assert pages < 1_000


def test_freed_memory_between_arrays_in_use_is_given_back() -> None:
    """Free every other of many arrays, and measure the process before and after."""
    program = """
from pathlib import Path
from albert.hardware import release_memory
pages = lambda: int(Path("/proc/self/statm").read_text().split()[1])
arrays = [bytearray(b"x") * 65536 for _ in range(1000)]
del arrays[::2]
before = pages()
print(int(release_memory()), before - pages())
"""
    if not Path("/proc/self/statm").exists():
        pytest.skip("no /proc")
    child = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    released, pages = map(int, child.stdout.split())
    if not released:
        pytest.skip("no glibc")
    assert pages > 4_000
