"""`albert serve` under load: against the same engine in bulk, and against a plain FastAPI + transformers server.

Classification with random weights (speed does not depend on them) of SST-2's sentences, over HTTP on this machine. At
saturation: the base shape in requests of 32 texts, the shape of tiny-en in single texts, by many clients at once. At
low load: one client, a text at a time; what HTTP and the queue add is its time minus that of the predictor in this
process. Rounds are interleaved: bulk, ours, peer, and again; medians are shown. The load client is this process, with
prepared requests on open connections; its CPU time and the servers' are shown beside. Run nothing beside it.

    python benchmarks/bench_serving.py [--rounds 3] [--texts 384] [--singles 2000] [--engine torch] [--precision fp32]
        [--shape base|tiny-en] [--record]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from recording import ROOT, data_folder, print_table, record

import albert
from albert.model import new_model, preset  # first: it sets the CPU up

import numpy as np  # isort: skip

from albert.hardware import count_threads, keep_memory
from albert.inference.model import Model
from albert.model.folder import load_model, save_model
from albert.model.locate import SHIPPED
from albert.tasks.classification import Classification
from albert.tasks.saved_task import TASK_FILE, task_json
from albert.tokenizer import Tokenizer

TASK = Classification(("a", "b", "c"), max_length=128)
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Load:
    """A way to ask: how many texts a request has, and how many clients ask at once."""

    shape: str
    texts: int
    clients: int


@dataclass
class Seen:
    """What the rounds of one contender gave."""

    rates: list[float] = field(default_factory=list)  # texts/s
    milliseconds: list[float] = field(default_factory=list)  # of requests
    server_cpu: float = 0.0
    client_cpu: float = 0.0
    texts: int = 0


def make_folder(shape: str, folder: Path) -> None:
    """Write a classifier of a shape, with tiny-en's tokenizer."""
    tokenizer = Tokenizer.load(SHIPPED / "tiny-en")
    config = preset("base") if shape == "base" else load_model(SHIPPED / "tiny-en").model.config
    config = TASK.configure(config.with_settings({"vocab_size": tokenizer.vocab_size}))
    extra = {TASK_FILE: task_json(TASK, columns={"text": "sentence"})}
    save_model(new_model(config, TASK.heads, seed=0), folder, tokenizer=tokenizer, extra=extra)


@contextmanager
def started(words: Sequence[str], environment: dict[str, str]) -> Iterator[tuple[str, int]]:
    """Start a server that prints its address; yield it and the process id."""
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            sys.exit(f"it did not start: {' '.join(words)}")
        yield json.loads(line)["url"], process.pid
    finally:
        process.terminate()
        process.wait()


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def request(url: str, texts: Sequence[str]) -> bytes:
    body = json.dumps({"inputs": [[text] for text in texts]}).encode()
    head = f"POST /predict HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def ask_all(url: str, requests: Sequence[bytes], clients: int) -> list[float]:
    """Send all requests over some connections; return the seconds of each."""
    left, took = list(requests), []

    async def client() -> None:
        reader, writer = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)
        while left:
            sent = left.pop()
            began = time.perf_counter()
            writer.write(sent)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n")[0]))
            took.append(time.perf_counter() - began)
            if not head.startswith(b"http/1.1 200"):
                raise SystemExit(f"{url}: {head.splitlines()[0].decode()}")
        writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return took


def measure(seen: Seen, url: str, pid: int, texts: Sequence[str], load: Load) -> None:
    """Send all texts once, and add up what is seen."""
    requests = [request(url, texts[i : i + load.texts]) for i in range(0, len(texts), load.texts)]
    server, client, began = cpu_seconds(pid), time.process_time(), time.perf_counter()
    took = asyncio.run(ask_all(url, requests, load.clients))
    seen.rates.append(len(texts) / (time.perf_counter() - began))
    seen.server_cpu += cpu_seconds(pid) - server
    seen.client_cpu += time.process_time() - client
    seen.milliseconds += [1000 * one for one in took]
    seen.texts += len(texts)


def offline(seen: Seen, model: Model, groups: Sequence[Sequence[str]]) -> None:
    """Decide groups of texts in this process, one group after the other."""
    for texts in groups:
        cpu, began = time.process_time(), time.perf_counter()
        model.classify(texts)
        seconds = time.perf_counter() - began
        seen.rates.append(len(texts) / seconds)
        seen.milliseconds.append(1000 * seconds)
        seen.server_cpu += time.process_time() - cpu
        seen.texts += len(texts)


def row(load: Load, who: str, seen: Seen, bulk: Seen) -> dict[str, Any]:
    return {
        "shape": load.shape,
        "texts a request": load.texts,
        "clients": load.clients,
        "who": who,
        "texts/s": f"{median(seen.rates):.1f}",
        "of bulk": f"{median(seen.rates) / median(bulk.rates):.0%}",
        "median ms": f"{median(seen.milliseconds):.2f}" if seen.milliseconds else "",
        "p99 ms": f"{np.quantile(seen.milliseconds, 0.99):.2f}" if seen.milliseconds else "",
        "CPU ms a text": f"{1000 * seen.server_cpu / seen.texts:.3f}",
        "client's": f"{1000 * seen.client_cpu / seen.texts:.3f}" if seen.client_cpu else "",
    }


def bench(load: Load, texts: Sequence[str], *, low: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Compare bulk, ours and the peer at saturation, then one client at a time."""
    environment = os.environ | {"OMP_NUM_THREADS": str(count_threads()), "HF_HUB_OFFLINE": "1"}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="albert-bench-"))) / "model"
        make_folder(load.shape, folder)
        model = albert.load(folder, engine=options.engine, precision=options.precision)
        engine = model.predictor.engine.name.split()[0]
        words = ["-m", "albert", "serve", str(folder), "--port", "0", "--json", "--engine", engine]
        servers = {
            f"ours, {engine} {options.precision}": [*words, "--precision", options.precision],
            "FastAPI + transformers": [str(ROOT / "benchmarks" / "serving_peer.py"), str(folder)],
        }
        running = {name: stack.enter_context(started(own, environment)) for name, own in servers.items()}
        one = Load(load.shape, 1, 1)
        bulk, alone = Seen(), Seen()
        many, single = ({name: Seen() for name in servers} for _ in range(2))
        model.classify(texts[:64])  # warm
        for name, (url, pid) in running.items():
            measure(Seen(), url, pid, texts[:64], load)
            print(f"{load.shape}: {name} is warm", file=sys.stderr, flush=True)
        for _ in range(options.rounds):
            offline(bulk, model, [texts])
            bulk.milliseconds.clear()
            for name, (url, pid) in running.items():
                measure(many[name], url, pid, texts, load)
            offline(alone, model, [[text] for text in texts[:low]])
            for name, (url, pid) in running.items():
                measure(single[name], url, pid, texts[:low], one)
        rows = [row(load, "bulk, in one process", bulk, bulk)]
        rows += [row(load, name, seen, bulk) for name, seen in many.items()]
        rows += [row(one, "a text at a time, in one process", alone, alone)]
        return rows + [row(one, name, seen, alone) for name, seen in single.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--texts", type=int, default=384, help="of the base shape, in a round")
    parser.add_argument("--singles", type=int, default=2000, help="of tiny-en's shape, in a round")
    parser.add_argument("--low", type=int, default=40, help="asked one at a time, in a round")
    parser.add_argument("--engine")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--shape", choices=["base", "tiny-en"], action="append")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    keep_memory()
    folder = data_folder() / "glue" / "SST-2"
    texts = [
        line.split("\t")[column].strip()
        for name, column in (("dev.tsv", 0), ("test.tsv", 1))
        for line in (folder / name).read_text(encoding="utf-8").splitlines()[1:]
    ]
    np.random.default_rng(0).shuffle(texts)
    loads = {"base": (Load("base", 32, 16), options.texts), "tiny-en": (Load("tiny-en", 1, 32), options.singles)}
    rows: list[dict[str, Any]] = []
    for shape in options.shape or loads:
        load, count = loads[shape]
        own = bench(load, texts[:count], low=options.low, options=options)
        print_table(own)
        rows += own
    if options.record:
        record("serving", rows, title="Serving", threads=count_threads())


if __name__ == "__main__":
    main()
