"""`--processes N`: the command itself in N processes that train together."""

from __future__ import annotations

import sys
from typing import NoReturn

from albert.train.launch import launch

PROCESSES_HELP = "Processes on this machine that train together; each step's batch is divided among them."
OPTION = "--processes"


class SaidElsewhere(SystemExit):
    """The end of a command whose processes have printed what there is to say."""


def run_in_processes(processes: int) -> NoReturn:
    """Run this very command line in several processes, and end as they do."""
    raise SaidElsewhere(launch(_without_option(sys.argv[1:]), processes=processes))


def _without_option(words: list[str]) -> list[str]:
    """Return a command line without `--processes N`, which is for the process that starts the others."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == OPTION:
            next(rest, None)
        elif not word.startswith(f"{OPTION}="):
            kept.append(word)
    return kept
