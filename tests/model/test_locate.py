"""What a model argument means: a folder, a shipped name, a hub id."""

from __future__ import annotations

from pathlib import Path

import huggingface_hub
import pytest

from albert.errors import ModelError, UsageError
from albert.model import locate as module
from albert.model.locate import HUB_FILES, locate, refuse_two_meanings


def test_a_folder_is_itself(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"has no config\.json, so it is no model folder"):
        locate(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert locate(tmp_path) == tmp_path


def test_a_shipped_name_is_found_in_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHIPPED", tmp_path)
    (tmp_path / "tiny-xx").mkdir()
    (tmp_path / "tiny-xx" / "config.json").write_text("{}")
    assert locate("tiny-xx") == tmp_path / "tiny-xx"
    with pytest.raises(ModelError, match="did you mean 'tiny-xx'"):
        locate("tiny-xy")


def test_a_preset_is_said_to_have_no_weights_and_what_to_give_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"base: is a preset.*without weights.*tiny-en.*albert/albert-base-v2.*hub"):
        locate("base")
    with pytest.raises(UsageError, match=r"albert/albert-large-v1"):
        locate("large-v1")


def test_a_name_that_is_a_preset_and_a_model_folder_is_refused_and_a_path_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refuse_two_meanings("small")
    (tmp_path / "small" / "model").mkdir(parents=True)
    refuse_two_meanings("small")  # a folder of anything else
    with pytest.raises(UsageError, match=r"small: is a preset"):
        locate("small")
    with pytest.raises(ModelError, match=r"small: has no config\.json"):
        locate("./small")
    (tmp_path / "tiny-en").mkdir()
    assert (locate("tiny-en") / "config.json").is_file(), "the shipped one"
    (tmp_path / "small" / "model" / "config.json").write_text("{}")
    with pytest.raises(UsageError, match=r"write ./small for the folder"):
        refuse_two_meanings("small")
    refuse_two_meanings("./small")
    assert locate("./small") == Path("small/model")


def test_an_absent_folder_is_not_taken_for_a_hub_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test.csv").write_text("text,label\n")
    with pytest.raises(ModelError, match=r"test\.csv: is a file, and a model is a folder; the shipped models: tiny-en"):
        locate(tmp_path / "test.csv")
    with pytest.raises(ModelError, match="no such model folder"):
        locate(tmp_path / "absent")
    (tmp_path / "albert").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match="from the hub, run this where there is no albert folder"):
        locate("albert/albert-base-v2")
    monkeypatch.setattr(module, "_fetch", lambda name: pytest.fail(f"{name} was fetched"))
    with pytest.raises(ModelError, match="no such model folder"):
        locate(Path("run/model"))


def test_a_hub_id_fetches_the_files_of_a_model_folder_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(name: str, *, allow_patterns: list[str]) -> str:
        assert name == "owner/model"
        assert allow_patterns == HUB_FILES
        assert not any(pattern.endswith((".bin", ".py", ".pkl")) or "*" in pattern for pattern in allow_patterns)
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    assert locate("owner/model") == tmp_path


def test_a_hub_that_does_not_answer_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> str:
        raise ConnectionError("no network")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(ModelError, match="owner/model: no such folder, and the hub did not give it"):
        locate("owner/model")


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    with pytest.raises(ModelError, match=r"albert-lite\[hub\]"):
        locate("owner/model")
