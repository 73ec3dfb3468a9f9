"""What int8 means here, in every engine and export: one scale per row of a weight, one per token, found as it comes.

Each output of a weight matrix has its own scale, and each token's activations have theirs, so nothing is calibrated, an
outlier in one token costs the others nothing, and what is said of a text does not depend on its neighbours. A CPU
without VNNI adds two products in 16 bits, which full-range int8 overflows: there weights keep 7 bits.
"""

from __future__ import annotations

import os
from typing import Literal

import numpy as np
import numpy.typing as npt

from albert.hardware import CEILING, read_cpuinfo
from albert.model import Albert

MATRICES = ("query", "key", "value", "output", "up", "down")  # of a layer: what int8 makes small and fast
EXPORTED = (*MATRICES, "projection", "pooler", "word")  # … and of a file, where size counts too
WITHOUT_VNNI = ("SSE41", "AVX", "AVX2", "AVX512_CORE")  # ceilings of oneDNN
FULL, SAFE = 127, 63  # the largest weight, with VNNI and for every CPU

# How a graph holds it. rows: activations in int8 too, by standard operators; weights: stored in int8 alone, and the
# runtime scales tokens by itself.
Form = Literal["rows", "weights"]
Floats = npt.NDArray[np.float32]


def has_vnni() -> bool:
    """Tell whether the CPU adds products of int8 in 32 bits, and the kernels may use it."""
    ceiling = os.environ.get(CEILING) or os.environ.get("DNNL_MAX_CPU_ISA") or ""
    return "vnni" in read_cpuinfo() and ceiling.upper() not in WITHOUT_VNNI


def quantise(weight: Floats, *, largest: int) -> tuple[npt.NDArray[np.int8], Floats]:
    """Return a matrix [out, in] in int8, and the scale of each of its rows [out]."""
    scales = np.maximum(np.abs(weight).max(axis=1), 1e-12) / largest
    return np.rint(weight / scales[:, None]).astype(np.int8), scales.astype(np.float32)


def matrices(model: Albert) -> list[tuple[str, str]]:
    """List the matrices of all layers: the name of each among MATRICES, and its module."""
    return [
        (name.rpartition(".")[2], name)
        for name, _ in model.encoder.named_modules()
        if name.startswith(("attention.", "ffn.")) and name.rpartition(".")[2] in MATRICES
    ]
