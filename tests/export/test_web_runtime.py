"""onnxruntime-web for the web export: from a folder or from npm, and exactly the pinned one."""

from __future__ import annotations

import sys
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

from albert.errors import UsageError
from albert.export import web_runtime


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a small package in the place of onnxruntime-web, and pin it."""
    folder = tmp_path / "package"
    pins = {}
    for name, (bundled, _) in web_runtime.FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())
        pins[name] = (bundled, sha256(name.encode()).hexdigest())
    monkeypatch.setattr(web_runtime, "FILES", pins)
    return folder


def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a program in the place of npm."""
    program = tmp_path / "bin" / "npm"
    program.parent.mkdir(exist_ok=True)
    program.write_text(
        f"#!{sys.executable}\nimport sys, shutil\nplace = sys.argv[sys.argv.index('--pack-destination') + 1]\n{script}"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))


def test_the_runtime_comes_from_a_folder_or_from_npm_and_must_be_the_pinned_one(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {bundled: name.encode() for name, (bundled, _) in web_runtime.FILES.items()}
    assert web_runtime.read_runtime(package) == expected
    archive = tmp_path / "some.tgz"
    with tarfile.open(archive, "w:gz") as file:
        file.add(package, "package")
    npm(tmp_path, monkeypatch, f"shutil.copy({str(archive)!r}, place)")
    assert web_runtime.read_runtime(None) == expected
    (package / next(iter(web_runtime.FILES))).write_bytes(b"something else")
    with pytest.raises(UsageError, match=r"is not that of onnxruntime-web \d+\.\d+\.\d+ \(SHA-256"):
        web_runtime.read_runtime(package)
    with tarfile.open(archive, "w:gz") as file:
        file.add(package, "package")
    with pytest.raises(UsageError, match=r"from npm: .* is not that of onnxruntime-web"):
        web_runtime.read_runtime(None)


@pytest.mark.usefixtures("package")
def test_a_runtime_that_cannot_be_had_is_said_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"can't be read .*unpacked, as in node_modules"):
        web_runtime.read_runtime(tmp_path / "nowhere")
    npm(tmp_path, monkeypatch, "sys.exit('npm error network request failed')")
    with pytest.raises(UsageError, match=r"network request failed.*check the network, or give .*--runtime"):
        web_runtime.read_runtime(None)
    npm(tmp_path, monkeypatch, "open(place + '/a.tgz', 'w').write('no archive')")
    with pytest.raises(UsageError, match="what npm fetched is not"):
        web_runtime.read_runtime(None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match=r"npm is missing.*install Node\.js, or give .*--runtime FOLDER"):
        web_runtime.read_runtime(None)
