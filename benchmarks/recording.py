"""What every benchmark shares: where the data is, how a table looks, and how a result is recorded."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def data_folder() -> Path:
    """Return the folder of real data."""
    folder = Path(os.environ.get("ALBERT_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        sys.exit(f"no real data at {folder}: set ALBERT_DATA")
    return folder


def machine() -> dict[str, Any]:
    """Describe the machine without naming it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    field = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    model = field.get("model name", platform.processor())
    flags = field.get("flags", "").split()
    widest = next((name for name in ("avx512f", "avx2", "avx") if name in flags), "")
    return {
        "cpu": f"{model} ({widest})" if widest else model,
        "int8": "VNNI" if {"avx512_vnni", "avx_vnni"} & set(flags) else "no VNNI",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def peak_memory() -> float:
    """Return the megabytes that this process held at most; getrusage would count what its parent held before exec."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def commit() -> str:
    """Name the commit, with a mark when the tree has changes."""
    run = lambda *words: subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()  # noqa: E731
    return run("rev-parse", "--short", "HEAD") + ("+changes" if run("status", "--porcelain", "--", "src") else "")


def print_table(rows: Sequence[dict[str, Any]]) -> None:
    """Print rows of the same columns."""
    print(markdown(rows), flush=True)


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Return a Markdown table; rows of other columns start a new one."""
    lines: list[str] = []
    columns: list[str] = []
    for row in rows:
        if list(row) != columns:
            columns = list(row)
            lines += [""] * bool(lines) + ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        lines.append(
            "| " + " | ".join(f"{row[c]:,}" if isinstance(row[c], int) else str(row[c]) for c in columns) + " |"
        )
    return "\n".join(lines)


def record(name: str, rows: Sequence[dict[str, Any]], *, title: str, **facts: Any) -> None:
    """Write results/<name>.json and .md with command, commit, machine and date; lists are in the .json only."""
    about = {
        "command": " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]),
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        **facts,
    }
    folder = ROOT / "benchmarks" / "results"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(about | {"rows": list(rows)}, indent=2) + "\n")
    facts_text = "\n".join(f"- {key}: {value}" for key, value in about.items() if not isinstance(value, list))
    (folder / f"{name}.md").write_text(f"# {title}\n\n{facts_text}\n\n{markdown(rows)}\n")
