"""Training speed and memory in processes of their own: Table 2's last column at the size of this machine."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from albert.errors import AlbertError
from albert.pretrain.settings import PretrainSettings
from albert.settings import flatten


def measure_speed(
    data: Path, model: str, out: Path, *, settings: PretrainSettings, processes: int, threads: int
) -> int:
    """Run `albert pretrain` in a number of processes; return the peak memory of the largest, in bytes.

    What it logged is in its run folder.
    """
    values = flatten(settings.model_dump(mode="json", exclude={"start_from"}, exclude_none=True))
    words = [sys.executable, "-m", "albert", "pretrain", "--data", str(data), "--out", str(out), "--model", model]
    words += ["--processes", str(processes)]
    words += [word for name, value in values.items() for word in ("--set", f"{name}={json.dumps(value)}")]
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = process.stderr.read().strip()
    _, status, usage = os.wait4(process.pid, 0)  # of the command and those that it waited for, the largest
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise AlbertError(f"{shlex.join(words[2:])}: {said.splitlines()[-1] if said else process.returncode}")
    return usage.ru_maxrss * 1024
