"""How fast a token store is built, and how much memory all processes of the build take together.

Runs the command itself on the first 20 MB and on all 260 MB of the real corpus (Wikipedia and books), as plain .txt and
as .txt.xz. Memory is the sum of the proportional set sizes (PSS) of the process and its children, ten times a second.

    python benchmarks/bench_build.py [--rounds 3] [--workers 2] [--record]
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from recording import data_folder, print_table, record

from albert.data.encode import Job, cut_parts, encode_part
from albert.text.documents import ReadReport, iter_documents
from albert.text.sentences import split_sentences
from albert.tokenizer import Tokenizer

MB = 10**6
SMALL = 20 * MB


def write_corpus(folder: Path) -> dict[str, Path]:
    """Write the corpus as plain text, whole and its beginning."""
    whole, small = folder / "260MB.txt", folder / "20MB.txt"
    with whole.open("wb") as file:
        for path in _compressed():
            with lzma.open(path) as text:
                while block := text.read(MB):
                    file.write(block)
            file.write(b"\n\n")
    with whole.open("rb") as file:
        small.write_bytes(file.read(SMALL))
    return {".txt, 20 MB": small, ".txt, 260 MB": whole}


def _compressed() -> list[Path]:
    return sorted((data_folder() / "corpus").glob("*.train.txt.xz"))


def processes(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    found = [pid]
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += processes(int(child))
    except OSError:
        pass
    return found


def memory(pid: int) -> int:
    """Return the proportional set size of a process in bytes; none if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def build(name: str, inputs: list[Path], *, num_bytes: int, workers: int, rounds: int) -> dict[str, Any]:
    """Time the command and watch its memory."""
    seconds, peaks = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            words = ["--tokenizer", data_folder() / "vocab" / "spiece.model", "--out", Path(folder) / "store"]
            command = [sys.executable, "-m", "albert", "data", "build", *inputs, *words]
            started = time.perf_counter()
            process = subprocess.Popen(
                [*map(str, command), "--workers", str(workers), "--json"],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            peak = 0
            while process.poll() is None:
                peak = max(peak, sum(map(memory, processes(process.pid))))
                time.sleep(0.1)
            seconds.append(time.perf_counter() - started)
            peaks.append(peak)
            assert process.stdout is not None
            facts = json.load(process.stdout)
    return {
        "input": name,
        "workers": workers,
        "MB": round(num_bytes / MB, 1),
        "tokens": facts["tokens"],
        "median s": round(statistics.median(seconds), 1),
        "MB/s": round(num_bytes / MB / statistics.median(seconds), 2),
        "worst MB/s": round(num_bytes / MB / max(seconds), 2),
        "peak MB": round(max(peaks) / MB),
    }


def stages(path: Path, *, rounds: int) -> list[dict[str, Any]]:
    """Time the stages of a build one after the other, on one core."""
    tokenizer = Tokenizer.load(data_folder() / "vocab" / "spiece.model")
    job = Job(tokenizer, "en")
    speeds: dict[str, list[float]] = {"read .txt": [], "split sentences": [], "split, encode, pack": []}
    for _ in range(rounds):
        times = [time.perf_counter()]
        report = ReadReport()
        parts = list(cut_parts(iter_documents([path], report=report), report, part_size=4 * 2**20))
        times.append(time.perf_counter())
        for part in parts:
            for text in part.texts:
                for _sentence in split_sentences(text.decode(), language="en"):
                    pass
        times.append(time.perf_counter())
        for part in parts:
            encode_part(part, job)
        times.append(time.perf_counter())
        for stage, (before, after) in zip(speeds, pairwise(times), strict=True):
            speeds[stage].append(path.stat().st_size / MB / (after - before))
    return [{"stage": stage, "MB/s a core": round(statistics.median(all_), 1)} for stage, all_ in speeds.items()]


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--record", action="store_true", help="write benchmarks/results/build.json and .md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        texts = write_corpus(Path(folder))
        single = stages(texts[".txt, 20 MB"], rounds=options.rounds)
        print_table(single)
        rows = [
            build(name, [path], num_bytes=path.stat().st_size, workers=options.workers, rounds=options.rounds)
            for name, path in texts.items()
        ]
        whole = texts[".txt, 260 MB"].stat().st_size
        rows.append(
            build(".txt.xz, 260 MB", _compressed(), num_bytes=whole, workers=options.workers, rounds=options.rounds)
        )
        print_table(rows)
    if options.record:
        record("build", [*single, *rows], title="Building a token store: speed and memory")


if __name__ == "__main__":
    main()
