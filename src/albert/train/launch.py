"""Several processes of one command on this machine, with torchrun's own machinery.

What `torchrun --nproc-per-node N -m albert …` does, but for its end: Ctrl-C or SIGTERM lets the processes finish their
step and save, however busy the machine is, and then the command ends with 130 and no traceback; when a process fails,
its own message is the last word and its exit code that of the command. For several machines use torchrun itself.
"""

from __future__ import annotations

import logging
import os
import sys
import uuid
from collections.abc import Sequence

from albert.errors import AlbertError, Interrupted, UsageError

GRACE = 120  # seconds to finish a step and save in; torchrun's 30 are too few on a busy machine


def is_launched() -> bool:
    """Tell whether this process is one of several that were started together."""
    return "TORCHELASTIC_RUN_ID" in os.environ or int(os.environ.get("WORLD_SIZE", "1")) > 1


def is_first_process() -> bool:
    """Tell whether this process is the one that speaks."""
    return os.environ.get("RANK", "0") == "0"


def launch(words: Sequence[str], *, processes: int) -> int:
    """Run `albert WORDS` in some processes that train together; return the exit code."""
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    if is_launched():
        raise UsageError(f"--processes {processes}: torchrun has started the processes: leave the option out")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores // processes)))
    for module in ("agent.server.api", "multiprocessing.api"):  # each has a level of its own
        logging.getLogger(f"torch.distributed.elastic.{module}").setLevel(logging.ERROR)
    meeting = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",  # any free port
        run_id=str(uuid.uuid4()),
        max_restarts=0,
        shutdown_timeout=GRACE,
    )
    try:
        elastic_launch(meeting, sys.executable)("-m", "albert", *words)
    except SignalException:
        return Interrupted.exit_code
    except ChildFailedError as error:
        _, failure = error.get_first_failure()
        if failure.exitcode < 0:
            raise AlbertError(
                f"a process was killed by signal {-failure.exitcode}: run the same command again to resume"
            ) from None
        return failure.exitcode
    return 0
