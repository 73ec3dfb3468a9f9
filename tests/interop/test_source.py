"""What a path given to `albert convert` is recognised as."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from albert.errors import ModelError, UsageError
from albert.interop import convert
from albert.interop.source import Source, find_source


def lay_out(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"1234")
    return root


RELEASE = (
    "model.ckpt-best.index",
    "model.ckpt-best.meta",
    "model.ckpt-best.data-00000-of-00001",
    "albert_config.json",
    "30k-clean.model",
    "30k-clean.vocab",
)


@pytest.mark.parametrize(
    "path",
    ["", "model.ckpt-best", "model.ckpt-best.index", "model.ckpt-best.meta", "model.ckpt-best.data-00000-of-00001"],
)
def test_a_released_archive_is_found_by_folder_prefix_or_any_of_its_files(tmp_path: Path, path: str) -> None:
    lay_out(tmp_path, *RELEASE)
    expected = Source(
        "tensorflow", tmp_path / "model.ckpt-best", tmp_path / "albert_config.json", tmp_path / "30k-clean.model"
    )
    assert find_source(tmp_path / path) == expected
    assert expected.size == 4


def test_a_hub_module_has_its_configuration_and_vocabulary_in_assets(tmp_path: Path) -> None:
    lay_out(
        tmp_path,
        "saved_model.pb",
        "variables/variables.index",
        "variables/variables.data-00000-of-00001",
        "assets/albert_config.json",
        "assets/30k-clean.model",
    )
    assert find_source(tmp_path) == Source(
        "tensorflow",
        tmp_path / "variables" / "variables",
        tmp_path / "assets" / "albert_config.json",
        tmp_path / "assets" / "30k-clean.model",
    )


def test_of_several_checkpoints_the_best_is_taken_and_else_one_must_be_named(tmp_path: Path) -> None:
    lay_out(tmp_path, "model.ckpt-100.index", "model.ckpt-200.index", "albert_config.json")
    with pytest.raises(UsageError, match=r"several checkpoints: give one of .*model\.ckpt-100, .*model\.ckpt-200"):
        find_source(tmp_path)
    assert find_source(tmp_path / "model.ckpt-200").weights.name == "model.ckpt-200"
    lay_out(tmp_path, "model.ckpt-best.index")
    assert find_source(tmp_path).weights.name == "model.ckpt-best"


def test_given_files_override_those_beside_the_weights(tmp_path: Path) -> None:
    lay_out(tmp_path, *RELEASE, "other/config.json", "other/my.model")
    found = find_source(tmp_path, config=tmp_path / "other" / "config.json", vocab=tmp_path / "other" / "my.model")
    assert (found.config.parent.name, found.vocab) == ("other", tmp_path / "other" / "my.model")
    with pytest.raises(UsageError, match=r"none\.json: no such file"):
        find_source(tmp_path, config=tmp_path / "none.json")


@pytest.mark.parametrize(
    ("names", "path", "error", "message"),
    [
        ((), "none", ModelError, "no such file, folder or checkpoint prefix: check the path"),
        ((), "", ModelError, r"no pytorch_model\.bin, no TensorFlow checkpoint"),
        (("albert_base_v2.tar.gz",), "albert_base_v2.tar.gz", UsageError, "unpack it first"),
        (("model.safetensors",), "", UsageError, r"already has a model\.safetensors"),
        (("tf_model.h5",), "", ModelError, "a Keras file"),
        (("pytorch_model.bin.index.json",), "", ModelError, "split over several files"),
        (("pytorch_model.bin",), "", UsageError, r"no config\.json beside the weights: give one with --config"),
        (("model.ckpt-best.index",), "", UsageError, r"no albert_config\.json or config\.json beside"),
        (("notes.txt",), "notes.txt", UsageError, "neither a pytorch_model.bin nor a TensorFlow checkpoint"),
    ],
)
def test_anything_else_is_refused_with_the_way_out(
    tmp_path: Path, names: tuple[str, ...], path: str, error: type[Exception], message: str
) -> None:
    lay_out(tmp_path, *names)
    with pytest.raises(error, match=message):
        find_source(tmp_path / path)


def test_without_tensorflow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(tmp_path, *RELEASE)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"pip install 'albert-lite\[tf\]'"):
        convert.read_checkpoint(tmp_path)
