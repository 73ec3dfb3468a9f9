"""How OpenMP threads should wait for each other: small models alone on the machine, and beside other programs.

After every operation torch's threads wait for the slowest. By default libgomp's wait in a loop, for some milliseconds:
quick when the other is about to finish, a waste when it isn't even running because other programs have the core.
GOMP_SPINCOUNT shortens the loop, OMP_WAIT_POLICY=passive leaves it out. Every setting runs in a process of its own,
interleaved, with no neighbours and with as many busy ones as there are cores. About 8 minutes.

    python benchmarks/bench_threads.py [--rounds 3] [--record]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from recording import print_table, record

SETTINGS = {
    "default": {},
    "GOMP_SPINCOUNT=10000": {"GOMP_SPINCOUNT": "10000"},
    "GOMP_SPINCOUNT=1000": {"GOMP_SPINCOUNT": "1000"},
    "OMP_WAIT_POLICY=passive": {"OMP_WAIT_POLICY": "passive"},
    "one thread": {"OMP_NUM_THREADS": "1"},
}
MODELS = {"tiny": (8, 64), "small": (16, 128)}  # texts and their length
SECONDS = 4.0


def train_encoder(name: str) -> float:
    """Return the tokens a second of forward and backward passes of the encoder."""
    from albert.batch import pack
    from albert.model import new_model, preset

    texts, length = MODELS[name]
    model, batch = new_model(preset(name)).train(), pack([list(range(5, 5 + length))] * texts)

    def step() -> None:
        model(batch).states.square().mean().backward()

    step()
    steps, started = 0, time.perf_counter()
    while time.perf_counter() - started < SECONDS:
        step()
        steps += 1
    return steps * texts * length / (time.perf_counter() - started)


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """Keep some cores busy meanwhile."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def speed_of(name: str, environment: dict[str, str]) -> float:
    """Measure in a process of its own: libgomp reads its settings when torch loads."""
    command = [sys.executable, __file__, "--train", name]
    child = subprocess.run(command, env=os.environ | environment, check=True, capture_output=True, text=True)
    return float(child.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--train", choices=MODELS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        print(train_encoder(options.train))
        return
    rows = []
    for count in (0, os.cpu_count() or 1):
        for name in MODELS:
            speeds = defaultdict(list)
            with neighbours(count):
                for _ in range(options.rounds):
                    for setting, environment in SETTINGS.items():
                        speeds[setting].append(speed_of(name, environment))
            rows += [
                {
                    "model": name,
                    "busy neighbours": count,
                    "setting": setting,
                    "tokens/s": round(median(found)),
                    "to default": f"{median(a / b for a, b in zip(found, speeds['default'], strict=True)):.2f}",
                }
                for setting, found in speeds.items()
            ]
            print_table(rows[-len(SETTINGS) :])
    if options.record:
        record("threads", rows, title="How threads wait for each other", rounds=options.rounds)


if __name__ == "__main__":
    main()
