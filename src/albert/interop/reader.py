"""A child process that opens what is not safetensors, and writes the weights in it as safetensors.

Pickles are opened weights-only: anything but plain tensors is refused, and there is no other way to open them here.
TensorFlow lives only in this process. A pickle's memory is limited to what its size can need, and the parent limits
the time (convert.py). `python -m albert.interop.reader pickle|tensorflow SOURCE TARGET` answers with one JSON object.
"""

from __future__ import annotations

import json
import os
import re
import sys
import zipfile
from pathlib import Path

import torch
from torch import Tensor

from albert.errors import AlbertError, ModelError
from albert.files import resource_error
from albert.model.tensor_file import write_tensors
from albert.model.weights import is_ignored

HEADROOM = 2**30  # what reading needs beyond a few copies of the weights
SLOTS = ("/adam_m", "/adam_v")  # Google's AdamW and LAMB both call theirs so


def read_pickle(path: Path) -> dict[str, Tensor]:
    """Read a legacy file of weights; whatever else is in it is refused, never run."""
    try:
        # Mapped, not read: a compressed archive could be a bomb. Files from before torch 1.6 are not archives.
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except MemoryError:
        raise
    except Exception as error:  # a hostile or damaged file can fail in any way
        named = re.search(r"GLOBAL ([\w.]+)", str(error))
        if named:
            raise ModelError(f"{path}: refused: it would run {named[1]}, and weights need no code") from error
        raise ModelError(
            f"{path}: refused: not a file of plain weights, or damaged ({type(error).__name__})"
        ) from error
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        raise ModelError(f"{path}: holds a {type(content).__name__}, not tensors by name")
    tensors = {name: value for name, value in content.items() if not is_ignored(name)}
    strange = [name for name, value in tensors.items() if not _is_plain(value)]
    if strange:
        raise ModelError(f"{path}: not plain floating-point tensors: {', '.join(strange[:10])}")
    return {name: tensor.detach().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()}


def read_tensorflow(prefix: Path) -> dict[str, Tensor]:
    """Read the weights of a TensorFlow checkpoint; optimizer slots and counters are left behind."""
    import tensorflow

    try:
        checkpoint = tensorflow.train.load_checkpoint(str(prefix))
        types = checkpoint.get_variable_to_dtype_map()
        names = [name for name, dtype in types.items() if dtype.is_floating and not name.endswith(SLOTS)]
        arrays = {name: checkpoint.get_tensor(name).astype("float32") for name in sorted(names)}
    except MemoryError:
        raise
    except Exception as error:  # TensorFlow has a class of its own for each way of being damaged
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelError(f"{prefix}: TensorFlow can't read this checkpoint: {reason[:200]}") from error
    return {name: torch.from_numpy(array).clone() for name, array in arrays.items()}


def _is_plain(value: object) -> bool:
    return (
        isinstance(value, Tensor)
        and value.layout == torch.strided
        and not value.is_quantized
        and value.device.type == "cpu"
        and value.is_floating_point()
    )


def _limit_memory(extra: int) -> None:
    """Let this process take that much more memory than it has, where the system can hold it to that."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * os.sysconf("SC_PAGE_SIZE") + extra
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):
        return


def main() -> None:
    """Convert one file, and say on stdout what went wrong."""
    kind, source, target = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    failure: AlbertError | None = None
    try:
        if kind == "pickle":
            _limit_memory(4 * source.stat().st_size + HEADROOM)
        write_tensors(target, read_pickle(source) if kind == "pickle" else read_tensorflow(source))
    except AlbertError as error:
        failure = error
    except OSError as error:
        failure = resource_error(error, error.filename or target) or ModelError(f"{source}: {error}")
    except (MemoryError, RuntimeError) as error:  # torch says RuntimeError when memory ends
        if isinstance(error, RuntimeError) and "memory" not in str(error):
            raise
        failure = ModelError(f"{source}: refused: opening it takes far more memory than weights of its size")
    message = "".join(char if char.isprintable() else "?" for char in str(failure)) if failure else ""
    sys.stdout.write(json.dumps({"error": message, "exit_code": failure.exit_code if failure else 0}) + "\n")


if __name__ == "__main__":
    main()
