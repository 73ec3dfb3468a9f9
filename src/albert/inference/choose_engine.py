"""Which engine runs a model: the one that is named, or the fastest that is installed, measured once and remembered.

Which is fastest differs by machine, shape and precision, so each is tried on a small batch of invented texts, once for
a CPU, a shape, a precision and the versions of the packages; the times are kept in the user's cache. Torch is always
there and is alone on a GPU. `ALBERT_ENGINE` names an engine for all commands.
"""

from __future__ import annotations

import copy
import importlib.util
import logging
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from albert.batch import STATES, Batch, pack
from albert.errors import AlbertError, UsageError, did_you_mean
from albert.files import read_json, write_json
from albert.hardware import cache_file, count_threads, read_cpuinfo
from albert.inference.engine import Engine
from albert.inference.int8 import has_vnni
from albert.model import Albert, AlbertConfig

log = logging.getLogger(__name__)

NEEDS = {"onnx": ("onnxruntime", "onnx"), "openvino": ("openvino", "onnx"), "torch": ("torch",)}  # torch packs: last
PRECISIONS = ("fp32", "bf16", "int8")
AUTO = "auto"
TRIED = (8, 12, 17, 23, 31, 31, 46, 60, 90, 130)  # tokens of the texts that engines are tried on
ROUNDS = 3
REMEMBERED = 64


@dataclass(frozen=True)
class Measured:
    """What trying engines gave on this machine: the texts per second of each, by what it was for."""

    shape: str  # "256 wide, 6 layers, fp32"
    texts_per_second: Mapping[str, float]

    @property
    def fastest(self) -> str:
        """Name the fastest."""
        return max(self.texts_per_second, key=lambda name: self.texts_per_second[name])


def installed(engine: str) -> bool:
    """Tell whether all that an engine needs is installed."""
    return all(importlib.util.find_spec(package) is not None for package in NEEDS[engine])


def open_engine(
    model: Albert, *, engine: str | None = None, precision: str = "fp32", cache: Path | None = None
) -> Engine:
    """Make a model ready to run by the engine named, or the fastest; the model is for use alone from now on."""
    engine = engine or os.environ.get("ALBERT_ENGINE") or AUTO
    if precision not in PRECISIONS:
        raise UsageError(f"precision {precision!r} is unknown: {did_you_mean(precision, PRECISIONS)}")
    if engine != AUTO:
        return _open(model, engine, precision)
    if model.device.type != "cpu" or not (others := [name for name in NEEDS if name != "torch" and installed(name)]):
        return _open(model, "torch", precision)
    path = cache or cache_file("engines.json")
    key = _key(model.config, precision)
    known = _recall(path)
    if key in known and set(known[key].texts_per_second) <= {*others, "torch"}:
        try:
            return _open(model, known[key].fastest, precision)
        except UsageError as problem:  # its package was damaged since
            log.warning("%s", problem)
    return _fastest(model, [*others, "torch"], precision, keep=lambda found: _remember(path, key, found))


def measured(cache: Path | None = None) -> list[Measured]:
    """List what was measured on this machine with these versions."""
    here = _machine()
    return [found for key, found in _recall(cache or cache_file("engines.json")).items() if key.startswith(here)]


def _open(model: Albert, engine: str, precision: str) -> Engine:
    if engine not in NEEDS:
        raise UsageError(f"engine {engine!r} is unknown: {did_you_mean(engine, (*NEEDS, AUTO))}")
    if not installed(engine):
        raise UsageError(f"engine {engine} is not installed: pip install 'albert-lite[{engine}]'")
    try:
        if engine == "onnx":
            from albert.inference.onnx_engine import OnnxEngine

            return OnnxEngine(model, precision=precision)
        if engine == "openvino":
            from albert.inference.openvino_engine import OpenVinoEngine

            return OpenVinoEngine(model, precision=precision)
    except (ImportError, OSError) as problem:
        why = str(problem).splitlines()[0]
        raise UsageError(
            f"engine {engine}: its package is installed and can't be loaded ({why}): install it again, or "
            "--engine torch"
        ) from problem
    from albert.inference.cpu_linear import pack_linears
    from albert.inference.torch_engine import TorchEngine

    return TorchEngine(pack_linears(model, precision=precision))


def _fastest(model: Albert, names: list[str], precision: str, *, keep: Callable[[Measured], None]) -> Engine:
    """Try engines, each opened once; one that can't run this model is passed over."""
    log.info("trying the engines %s, once for this machine and shape", ", ".join(names))
    engines: dict[str, Engine] = {}
    pace: dict[str, float] = {}
    batch = _invented(model.config)
    for name in names:
        try:
            # torch packs the model that it is given: the others compile from theirs later, too
            engines[name] = _open(copy.deepcopy(model) if name == "torch" else model, name, precision)
            pace[name] = len(batch.lengths) / _seconds(engines[name], batch)
        except Exception as reason:  # whatever another package raises: torch is always there
            if name == "torch" and not isinstance(reason, UsageError):
                raise
            log.info("%s: %s", name, reason)
    if not pace:
        return _open(model, "torch", precision)  # says why not
    found = Measured(_shape(model.config, precision), pace)
    keep(found)
    return engines[found.fastest]


def _seconds(engine: Engine, batch: Batch) -> float:
    engine.run(batch, {STATES: "class"})
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        engine.run(batch, {STATES: "class"})
        times.append(time.perf_counter() - started)
    return max(min(times), 1e-9)


def _invented(config: AlbertConfig) -> Batch:
    rng = np.random.default_rng(0)
    longest = config.max_position_embeddings
    return pack([rng.integers(0, config.vocab_size, min(length, longest)).tolist() for length in TRIED])


def _machine() -> str:
    """Name what times depend on beside the model."""
    names = re.findall(r"^model name\s*:\s*(.*)$", read_cpuinfo(), re.MULTILINE)[:1]
    packages = sorted({package for needs in NEEDS.values() for package in needs})
    versions = [f"{package} {_version(package)}" for package in packages if importlib.util.find_spec(package)]
    return ", ".join([*names, f"{count_threads()} threads", "VNNI" if has_vnni() else "no VNNI", *versions]) + "; "


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # another distribution's, such as onnxruntime-gpu
        return "of another name"


def _shape(config: AlbertConfig, precision: str) -> str:
    sharing = "" if config.sharing == "all" else f", sharing {config.sharing}"
    return f"{config.hidden_size} wide, {config.num_hidden_layers} layers{sharing}, {precision}"


def _key(config: AlbertConfig, precision: str) -> str:
    rest = f"; {config.intermediate_size} inner, {config.num_attention_heads} heads, {config.num_hidden_groups} groups"
    relaxed = ", relaxed" if config.is_relaxed else ""  # runs in torch alone
    return _machine() + _shape(config, precision) + rest + relaxed


def _recall(path: Path | None) -> dict[str, Measured]:
    if path is None or not path.exists():
        return {}
    try:
        return {key: _measured(value) for key, value in read_json(path).items()}
    except (AlbertError, TypeError, ValueError, KeyError, AttributeError):  # damaged: it will be measured anew
        return {}


def _measured(value: Any) -> Measured:
    pace = {str(name): float(number) for name, number in value["texts_per_second"].items() if name in NEEDS}
    if not pace:
        raise ValueError("nothing measured")
    return Measured(str(value["shape"]), pace)


def _remember(path: Path | None, key: str, found: Measured) -> None:
    if path is None:
        return
    facts = {"shape": found.shape, "texts_per_second": {k: round(v, 1) for k, v in found.texts_per_second.items()}}
    known = {name: {"shape": m.shape, "texts_per_second": m.texts_per_second} for name, m in _recall(path).items()}
    try:
        write_json(path, dict([*known.items(), (key, facts)][-REMEMBERED:]))
    except (AlbertError, OSError) as problem:
        log.info("what was measured could not be kept and will be measured again next time: %s", problem)
