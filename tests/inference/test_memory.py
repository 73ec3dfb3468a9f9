"""Memory stays flat over texts of all lengths, in every engine: runtimes keep something for each shape they meet."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest

from albert.batch import pack
from albert.inference.choose_engine import NEEDS, PRECISIONS, installed, open_engine
from albert.model import AlbertConfig, new_model

TEXTS = int(os.environ.get("ALBERT_SOAK_TEXTS", 100_000))


def resident() -> int:
    """Return the bytes that this process holds."""
    gc.collect()
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


@pytest.mark.soak
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells how much memory a process holds")
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", NEEDS)
def test_texts_of_all_lengths_leave_memory_flat(name: str, precision: str) -> None:
    if not installed(name):
        pytest.skip(f"{name} is not installed: pip install 'albert-lite[{name}]'")
    if (name, precision) == ("onnx", "bf16"):
        pytest.skip("ONNX Runtime has no bf16 on a CPU")
    config = AlbertConfig(
        vocab_size=300, embedding_size=16, hidden_size=64, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=128,
    )  # fmt: skip
    engine = open_engine(new_model(config, ("classifier",), seed=1), engine=name, precision=precision)
    rng, seen, held = np.random.default_rng(0), 0, []
    while seen < TEXTS:
        lengths = rng.integers(1, 513, int(rng.integers(1, 33)))
        engine.run(pack([rng.integers(5, 300, length).tolist() for length in lengths]), {"classifier": "class"})
        seen += len(lengths)
        if 10 * seen // TEXTS > len(held):
            held.append(resident())
    early, late = held[1], held[-1]
    print(
        f"{name}, {precision}: {early / 2**20:.0f} MB after a fifth of {seen:,} texts, {late / 2**20:.0f} MB at the end"
    )
    assert late < early * 1.1 + 2**24, held
