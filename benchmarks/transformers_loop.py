"""transformers' AlbertForPreTraining in a plain training loop, in a process of its own, as its users run it.

The folder holds a model in `model/` and padded batches in `batch-N.npz`. For every number read from standard input, one
step on that batch: forward, loss, backward, clipping, AdamW. Its seconds and loss are printed. Knows nothing of albert.

    python benchmarks/transformers_loop.py FOLDER
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import torch
import transformers


def main() -> None:
    folder = Path(sys.argv[1])
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    model = transformers.AlbertForPreTraining.from_pretrained(folder / "model", attn_implementation="sdpa").train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01)
    for line in sys.stdin:
        with np.load(folder / f"batch-{int(line)}.npz") as arrays:
            batch = {name: torch.from_numpy(array) for name, array in arrays.items()}
        started = time.perf_counter()
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(time.perf_counter() - started, loss.item(), flush=True)


if __name__ == "__main__":
    main()
