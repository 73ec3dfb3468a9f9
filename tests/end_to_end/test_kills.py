"""Kill -9 at random moments, Ctrl-C, and dead or several processes: whole commands, as a user runs them.

Three kills are in the default suite; `make soak` does thirty, ten of them inside a save, and ten more each with
accumulation and with two processes.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

STEPS = 40
BASE = {
    "model.embedding_size": 16, "model.hidden_size": 32, "model.num_attention_heads": 2, "model.intermediate_size": 64,
    "model.num_hidden_layers": 2, "data.max_length": 64, "train.steps": STEPS, "train.batch_size": 8,
    "train.log_every": 5, "train.save_every": 3, "train.eval_every": 1000, "optimizer.lr": 0.01,
}  # fmt: skip
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


def command(
    store: Path, out: Path, *, processes: int = 1, launch_with: Sequence[str] = (), **changes: Any
) -> list[str]:
    values = BASE | {name.replace("__", "."): value for name, value in changes.items()}
    launch = [sys.executable, "-m"]
    if processes > 1:
        meet = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]  # any free port
        launch += ["torch.distributed.run", "--nproc-per-node", str(processes), *meet, *launch_with, "-m"]
    words = [*launch, "albert", "pretrain", "--data", str(store), "--out", str(out), "--model", "tiny"]
    return [*words, *(word for name, value in values.items() for word in ("--set", f"{name}={value}"))]


def run(words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, timeout=300, check=False)


def start(words: list[str], *, errors: Path | None = None) -> subprocess.Popen[Any]:
    """Start a command in the background; what it says goes to the file `errors`, or nowhere."""
    with (errors or Path(os.devnull)).open("w") as file:
        return subprocess.Popen(words, env=ENVIRONMENT, stdout=file, stderr=file, start_new_session=True)


def end_state(out: Path) -> tuple[bytes, bytes]:
    folder = out / "checkpoints" / f"step-{STEPS:08d}"
    return (folder / "weights.safetensors").read_bytes(), (folder / "optimizer.safetensors").read_bytes()


def wait_until(condition: Any, process: subprocess.Popen[Any], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)


def kill_group(process: subprocess.Popen[Any]) -> None:
    """Kill a command and everything that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def kill_once(words: list[str], out: Path, rng: random.Random, *, inside_save: bool) -> None:
    """Start the command and kill it: at a random moment after it began to train, or while a save is being written."""
    saves = out / "checkpoints"
    process = start(words)
    before = {path.name for path in saves.glob("step-*")}

    def moved() -> bool:
        return {path.name for path in saves.glob("step-*")} != before

    if inside_save:
        wait_until(lambda: any(saves.glob(".step-*.tmp/*")), process)
    else:
        wait_until(moved, process)
        time.sleep(rng.random() * 0.15)
    kill_group(process)


def check_kills(store: Path, folder: Path, *, kills: int, saves: int, seed: int, **changes: Any) -> None:
    """Kill a run again and again, let it end, and compare it with one that nobody touched."""
    rng = random.Random(seed)
    whole, cut = folder / "whole", folder / "cut"
    assert run(command(store, whole, **changes)).returncode == 0
    words = command(store, cut, **changes)
    done = 0
    while done < kills:
        kill_once(words, cut, rng, inside_save=done < saves)
        done += 1
        if (cut / "model").exists():  # it had ended before the kill: begin another one
            assert end_state(cut) == end_state(whole)
            cut = folder / f"cut-{done}"
            words = command(store, cut, **changes)
    result = run(words)
    assert result.returncode == 0, result.stderr
    assert end_state(cut) == end_state(whole)


def test_a_killed_run_ends_bit_for_bit_like_an_untouched_one(store_folder: Path, tmp_path: Path) -> None:
    check_kills(store_folder, tmp_path, kills=3, saves=1, seed=0)


def test_ctrl_c_saves_and_exits_130_and_the_same_command_goes_on(store_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = command(store_folder, out, train__steps=100_000)
    process = subprocess.Popen(words, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: (out / "metrics.jsonl").exists(), process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    saved = int(errors.split("step ")[-1].split()[0])
    assert (out / "checkpoints" / f"step-{saved:08d}").exists()
    second = subprocess.Popen(words, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = len((out / "metrics.jsonl").read_text().splitlines())
    wait_until(lambda: len((out / "metrics.jsonl").read_text().splitlines()) > lines, second)
    third = run(words)
    assert third.returncode == 2, "two runs on one folder are refused"
    assert "is writing here" in third.stderr
    second.send_signal(signal.SIGTERM)
    second.communicate(timeout=60)
    assert second.returncode == 130


def test_sigterm_to_several_processes_saves_and_exits_130_without_a_traceback(
    store_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    words = [*command(store_folder, out, train__steps=100_000), "--processes", "2"]
    process = subprocess.Popen(words, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: (out / "metrics.jsonl").exists(), process, seconds=400)
    workers = workers_of(process)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 130, errors
    assert not [pid for pid in workers if is_running(pid)]
    said = [line for line in errors.splitlines() if "interrupted" in line]
    assert len(said) == 1, errors
    assert "Traceback" not in errors
    assert "death signal" not in errors
    saved = int(said[0].split("step ")[-1].split()[0])
    assert (out / "checkpoints" / f"step-{saved:08d}").exists()


def test_several_processes_end_with_the_exit_code_of_their_error(store_folder: Path, tmp_path: Path) -> None:
    words = [*command(store_folder, tmp_path / "run", train__batch_size=7), "--processes=2"]
    result = run(words)
    assert result.returncode == 2
    assert "error: train.batch_size=" in result.stderr
    assert "is not a multiple of the 2 processes" in result.stderr
    assert "Traceback" not in result.stderr


def losses(out: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (out / "metrics.jsonl").read_text().splitlines()]


def test_two_processes_have_the_losses_of_one(store_folder: Path, tmp_path: Path) -> None:
    changes = {
        "train__micro_batch": 4,
        "model_init__words": "ppmi",
        "train__precision": "fp32",
    }  # counted by the first, shared with the second
    assert run(command(store_folder, tmp_path / "one", **changes)).returncode == 0
    result = run(command(store_folder, tmp_path / "two", processes=2, **changes))
    assert result.returncode == 0, result.stderr
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), abs=2e-4)


def test_a_dead_process_ends_the_run_within_a_minute_and_leaves_no_orphan(store_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = start(command(store_folder, out, processes=2, train__steps=100_000))
    wait_until(lambda: (out / "metrics.jsonl").exists(), process)
    workers = workers_of(process)
    os.kill(workers[1], signal.SIGKILL)
    try:
        assert process.wait(timeout=60) != 0
        time.sleep(0.5)
        assert not [pid for pid in workers if is_running(pid)]
    finally:
        kill_group(process)


def test_a_hung_process_ends_the_run_after_the_time_set_with_a_clear_error_and_no_orphan(
    store_folder: Path, tmp_path: Path
) -> None:
    """The stopped process can't end itself: torchrun kills it, after a grace that is 30 seconds by default."""
    out, errors = tmp_path / "run", tmp_path / "errors"
    changes = {"train__steps": 100_000, "train__timeout_minutes": 0.5}
    words = command(store_folder, out, processes=2, launch_with=["--shutdown-timeout", "2"], **changes)
    process = start(words, errors=errors)
    workers: list[int] = []
    try:
        wait_until(lambda: (out / "metrics.jsonl").exists(), process, seconds=400)  # a starved machine is slow to start
        workers = workers_of(process)
        os.kill(workers[1], signal.SIGSTOP)
        assert process.wait(timeout=400) != 0
        time.sleep(0.5)
        assert not [pid for pid in workers if is_running(pid)]
    finally:
        kill_group(process)
        for pid in workers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    said = [line for line in errors.read_text().splitlines() if line.startswith("error: ")]
    assert len(said) == 1
    assert "process 0 of 2: another process died, hung or never came" in said[0]
    assert "30000ms" in said[0], "it was the time set that ended the run"
    assert "run the same command again to resume" in said[0]


def workers_of(process: subprocess.Popen[Any]) -> list[int]:
    """List the two processes that torchrun started."""
    children = [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    workers = [pid for pid in children if is_running(pid)]
    assert len(workers) == 2
    return workers


def is_running(pid: int) -> bool:
    try:
        return b"albert" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


@pytest.mark.soak
def test_thirty_kills_ten_of_them_inside_a_save(store_folder: Path, tmp_path: Path) -> None:
    check_kills(store_folder, tmp_path, kills=30, saves=10, seed=1)


@pytest.mark.soak
def test_ten_kills_with_accumulation(store_folder: Path, tmp_path: Path) -> None:
    check_kills(store_folder, tmp_path, kills=10, saves=3, seed=2, train__micro_batch=2)


@pytest.mark.soak
def test_ten_kills_with_two_processes(store_folder: Path, tmp_path: Path) -> None:
    check_kills(store_folder, tmp_path, kills=10, saves=3, seed=3, processes=2)
