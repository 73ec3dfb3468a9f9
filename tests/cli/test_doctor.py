"""`albert doctor`: one line a finding, a fix for each red one, an exit code that scripts can use."""

from __future__ import annotations

import json
import os
import shutil
from email.message import Message
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement
from typer.testing import CliRunner

from albert import hardware
from albert.cli import app
from albert.cli import doctor as command
from albert.inference import choose_engine


def report(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["doctor", *arguments])
    return result.exit_code, result.stdout


def findings() -> dict[str, dict[str, str]]:
    return {finding["name"]: finding for finding in json.loads(report("--json")[1])["findings"]}


def test_a_sound_machine_ends_with_zero_and_one_line_a_finding() -> None:
    code, text = report()
    assert code == 0, text
    assert "\x1b" not in text
    assert all(line.startswith(("ok ", "note ")) for line in text.splitlines())
    for name in ("memory", "disk", "core", "torch", "device", "threads", "precision", "AMX", "engines", "bf16", "int8"):
        assert f" {name} " in text


def test_the_fastest_engine_is_shown_where_it_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("ALBERT_ENGINE", "onnx")
    key = choose_engine._machine() + "256 wide, 6 layers, int8"
    pace = {"torch": 1000.0, "onnx": 1234.4}
    facts = {"shape": "256 wide, 6 layers, int8", "texts_per_second": pace}
    cache = tmp_path / "albert-lite" / "engines.json"
    cache.parent.mkdir()
    cache.write_text(json.dumps({key: facts, "another machine": facts}))
    found = findings()
    assert found["engines"]["value"].startswith("torch")
    assert found["engine"]["value"] == "onnx, by ALBERT_ENGINE"
    expected = "onnx at 256 wide, 6 layers, int8 (measured, texts/s: torch 1,000, onnx 1,234)"
    assert found["fastest"]["value"] == expected
    cache.write_text("{")
    assert "fastest" not in findings()


def test_a_missing_core_package_is_red_and_ends_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version

    def version(name: str) -> str:
        if name == "sentencepiece":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    code, text = report("--json")
    core = next(finding for finding in json.loads(text)["findings"] if finding["name"] == "core")
    assert (code, json.loads(text)["ok"], core["state"]) == (1, False, "bad")
    assert core["value"] == "sentencepiece is missing"
    assert core["fix"] == "pip install albert-lite"


def test_a_missing_extra_is_a_note_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    said = Message()
    said["Provides-Extra"] = "serve"
    monkeypatch.setattr(metadata, "metadata", lambda _: said)
    wanted = ["torch==2.13.0", "no-such-package>=2.1; extra == 'serve'", "for-old-pythons; python_version < '3.0'"]
    monkeypatch.setattr(metadata, "requires", lambda _: wanted)
    assert report()[0] == 0
    assert findings()["[serve]"] == {
        "name": "[serve]",
        "value": "no-such-package is missing",
        "state": "note",
        "fix": "pip install 'albert-lite[serve]'",
    }


@pytest.mark.parametrize(
    ("requirement", "installed", "fits"),
    [
        ("torch==2.13.0", "2.13.0+cpu", True),
        ("torch==2.13.0", "2.12.1", False),
        ("numpy>=2.0", "2.4.6", True),
        ("numpy>=2.0", "10.0", True),
        ("numpy>=2.0", "1.26.4", False),
        ("numpy>=2.0", "2.0rc1", False),
        ("numpy>=2.0", "2.1rc1", True),
        ("numpy>=2.0,<3", "3.0", False),
    ],
)
def test_versions_are_compared_by_the_rules_of_pip(
    monkeypatch: pytest.MonkeyPatch, requirement: str, installed: str, fits: bool
) -> None:
    monkeypatch.setattr(metadata, "version", lambda _: installed)
    assert (command._problem(Requirement(requirement)) == "") is fits


def test_torch_that_cannot_load_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise OSError("libtorch_cpu.so: cannot open shared object file")

    monkeypatch.setattr(hardware, "find_device", broken)
    assert report()[0] == 1
    assert "libtorch_cpu.so" in findings()["torch"]["value"]
    assert findings()["torch"]["fix"].startswith("pip install")


def test_amx_that_kills_is_said_with_the_ceiling_it_led_to(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = hardware.Amx(announced=True, works=False, ceiling="AVX512_CORE_FP16", source="tried now")
    monkeypatch.setattr(hardware, "protect_cpu", lambda: verdict)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
    amx = findings()["AMX"]
    assert amx["state"] == "note"
    assert "AVX512_CORE_FP16" in amx["fix"]
    monkeypatch.setattr(hardware, "read_cpuinfo", lambda: "vendor_id : GenuineIntel\nflags : avx512_bf16 amx_tile\n")
    assert findings()["precision"]["value"] == "fp32"


def test_a_full_disk_and_little_memory_are_red(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    monkeypatch.setattr(hardware, "measure_memory", lambda: hardware.Memory(total=2**33, available=2**20))
    assert report()[0] == 1
    assert [findings()[name]["state"] for name in ("disk", "memory")] == ["bad", "bad"]


def test_without_a_compiler_only_torch_compile_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert findings()["compiler"]["state"] == "note"


def test_a_terminal_gets_colour(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    command._paint([command.Finding("disk", "[none] free", "bad", "free some")])
    text = capsys.readouterr().out
    assert "\x1b[" in text
    assert "[none] free" in text, "a value is never read as markup"


def test_it_works_without_the_folder_being_writable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert findings()["disk"]["state"] == "note"
