"""Model folders: strictness, what transformers must refuse, hostile files, and atomic writing."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from albert.batch import pack
from albert.errors import ModelError, UsageError
from albert.model import Albert, AlbertConfig, new_model
from albert.model.folder import load_model, save_model
from albert.model.inspection import describe, inspect
from albert.model.weights import expand

SMALL = AlbertConfig(
    vocab_size=300, embedding_size=16, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=64
)
BATCH = pack([[2, 50, 60, 3], [2, 7, 8, 9, 3]])


def equal(first: Albert, second: Albert) -> bool:
    a, b = first.state_dict(), second.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("sharing", ["all", "attention", "ffn", "none"])
@pytest.mark.parametrize("heads", [(), ("mlm", "order"), ("conditional_span",), ("tags",), ("classifier", "order")])
def test_every_model_comes_back_bit_for_bit(sharing: Any, heads: tuple[str, ...], tmp_path: Path) -> None:
    model = new_model(SMALL.with_settings({"sharing": sharing}), heads, seed=4)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert (loaded.new, loaded.dropped) == ((), ())
    assert loaded.model.config == model.config
    assert equal(model, loaded.model)


def test_a_run_stands_for_its_model(tmp_path: Path) -> None:
    model = new_model(SMALL, ("mlm",), seed=4)
    save_model(model, tmp_path / "run" / "model")
    assert equal(model, load_model(tmp_path / "run").model)


@pytest.mark.parametrize(
    "changes",
    [
        {"sharing": "attention"},
        {"sharing": "ffn"},
        {"num_hidden_layers": 18, "num_hidden_groups": 14},  # transformers' division rounds otherwise
    ],
)
def test_transformers_refuses_what_it_would_compute_wrongly(changes: dict[str, Any], tmp_path: Path) -> None:
    save_model(new_model(SMALL.with_settings(changes), ("mlm", "order")), tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == "albert-lite"
    with pytest.raises(ValueError, match="albert-lite"):
        transformers.AutoModel.from_pretrained(tmp_path)


def test_two_heads_of_one_name_are_not_saved_over_each_other(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="classifier, tags: two of them have one name"):
        save_model(new_model(SMALL, ("classifier", "tags")), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_the_conditional_head_is_ours_alone(tmp_path: Path) -> None:
    save_model(new_model(SMALL, ("conditional_span",)), tmp_path)
    with pytest.raises(ValueError, match="albert-lite"):
        transformers.AutoModel.from_pretrained(tmp_path)


def test_tied_and_shared_weights_are_stored_once(tmp_path: Path) -> None:
    model = new_model(SMALL, ("mlm", "order"))
    save_model(model, tmp_path)
    stored = load_file(tmp_path / "model.safetensors")
    assert sum(t.numel() for t in stored.values()) == sum(p.numel() for p in model.parameters())
    assert len([name for name in stored if "ffn.weight" in name]) == 1


def test_equal_widths_are_written_with_an_identity_and_read_without(tmp_path: Path) -> None:
    config = SMALL.with_settings({"embedding_size": 32})
    model = new_model(config)
    save_model(model, tmp_path)
    stored = load_file(tmp_path / "model.safetensors")
    assert torch.equal(stored["encoder.embedding_hidden_mapping_in.weight"], torch.eye(32))
    assert load_model(tmp_path).model.encoder.projection is None
    theirs = transformers.AlbertModel.from_pretrained(tmp_path).eval()
    ids = torch.tensor([[2, 7, 8, 9, 3]])
    with torch.no_grad():
        assert torch.allclose(theirs(ids).last_hidden_state[0], model(pack([ids[0].tolist()])).states, atol=1e-5)


def test_the_weights_may_be_read_by_whoever_may_read_the_configuration(tmp_path: Path) -> None:
    save_model(new_model(SMALL), tmp_path / "m")
    modes = {(tmp_path / "m" / name).stat().st_mode for name in ("config.json", "model.safetensors", "README.md")}
    assert len(modes) == 1


def test_half_precision_files_are_read_as_fp32(tmp_path: Path) -> None:
    model = new_model(SMALL, ("mlm",))
    save_model(model, tmp_path, dtype=torch.float16)
    loaded = load_model(tmp_path).model
    for name, parameter in loaded.named_parameters():
        assert parameter.dtype == torch.float32
        assert torch.equal(parameter, model.get_parameter(name).half().float())


def test_new_and_dropped_heads_are_listed(tmp_path: Path) -> None:
    save_model(new_model(SMALL, ("mlm",), pooler=False), tmp_path)
    loaded = load_model(tmp_path, ("classifier",))
    modules = {name.rpartition(".")[0] for name in loaded.new}
    assert modules == {"encoder.pooler", "heads.classifier.linear"}
    assert "predictions.dense.weight" in loaded.dropped
    again = load_model(tmp_path, ("classifier",))
    assert equal(loaded.model, again.model), "the same seed draws the same head"
    other = load_model(tmp_path, ("classifier",), seed=1)
    assert not torch.equal(
        loaded.model.get_parameter("heads.classifier.linear.weight"),
        other.model.get_parameter("heads.classifier.linear.weight"),
    )


def test_a_classifier_of_another_task_is_replaced_as_a_whole(tmp_path: Path) -> None:
    save_model(new_model(SMALL.with_settings({"labels": ("a", "b", "c")}), ("classifier",)), tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    values["id2label"] = {"0": "x", "1": "y"}
    (tmp_path / "config.json").write_text(json.dumps(values))
    assert set(load_model(tmp_path).new) == {"heads.classifier.linear.weight", "heads.classifier.linear.bias"}


def damaged(folder: Path, edit: Any) -> None:
    tensors = load_file(folder / "model.safetensors")
    edit(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def test_every_misfit_of_the_backbone_is_in_one_error(tmp_path: Path) -> None:
    save_model(new_model(SMALL, ("mlm", "order")), tmp_path)

    def edit(tensors: dict[str, torch.Tensor]) -> None:
        layer = "albert.encoder.albert_layer_groups.0.albert_layers.0"
        del tensors[f"{layer}.ffn.bias"]
        tensors[f"{layer}.attention.query.weight"] = torch.zeros(3, 3)
        tensors["albert.encoder.albert_layer_groups.1.albert_layers.0.ffn.bias"] = torch.zeros(64)

    damaged(tmp_path, edit)
    with pytest.raises(ModelError) as caught:
        load_model(tmp_path)
    text = str(caught.value)
    assert "missing albert.encoder.albert_layer_groups.0.albert_layers.0.ffn.bias [64]" in text
    assert "attention.query.weight is [3, 3], should be [32, 32]" in text
    assert "unexpected albert.encoder.albert_layer_groups.1.albert_layers.0.ffn.bias [64]" in text


def test_old_buffers_tied_copies_and_dropout_leftovers_are_ignored(tmp_path: Path) -> None:
    model = new_model(SMALL, ("mlm", "order"))
    save_model(model, tmp_path)

    def edit(tensors: dict[str, torch.Tensor]) -> None:
        tensors["albert.embeddings.position_ids"] = torch.arange(512).unsqueeze(0)
        tensors["predictions.decoder.weight"] = tensors["albert.embeddings.word_embeddings.weight"].clone()
        tensors["predictions.decoder.bias"] = tensors["predictions.bias"].clone()
        tensors["albert.encoder.albert_layer_groups.0.albert_layers.0.attention.attention_dropout.x"] = torch.zeros(1)

    damaged(tmp_path, edit)
    loaded = load_model(tmp_path)
    assert (loaded.new, loaded.dropped) == ((), ())
    assert equal(loaded.model, model)


def header_of(value: Any, tail: bytes = b"") -> bytes:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return struct.pack("<Q", len(text)) + text + tail


HOSTILE_FILES = {
    "empty": b"",
    "short": b"abc",
    "endless header": struct.pack("<Q", 2**63) + b"{}",
    "no json": header_of(b"not json"),
    "deep": header_of(b'{"a":' * 200_000),
    "a list": header_of([1, 2]),
    "negative shape": header_of({"albert.pooler.bias": {"dtype": "F32", "shape": [-5], "data_offsets": [0, 4]}}),
    "no shape": header_of({"albert.pooler.bias": {"dtype": "F32"}}),
    "a pickle": b"\x80\x04\x95" + b"x" * 100,
    "strange type": header_of({"albert.pooler.bias": {"dtype": "OBJ", "shape": [4], "data_offsets": [0, 4]}}),
}


@pytest.mark.parametrize("kind", HOSTILE_FILES)
def test_a_hostile_weight_file_is_refused_by_its_header(kind: str, tmp_path: Path) -> None:
    save_model(new_model(SMALL), tmp_path)
    (tmp_path / "model.safetensors").write_bytes(HOSTILE_FILES[kind])
    with pytest.raises(ModelError, match=r"model\.safetensors"):
        load_model(tmp_path)


def test_a_header_that_promises_terabytes_allocates_nothing(tmp_path: Path) -> None:
    save_model(new_model(SMALL), tmp_path)
    names = {
        entry.hf.removeprefix("albert."): {"dtype": "F32", "shape": list(entry.shape), "data_offsets": [0, 2**50]}
        for entry in expand(SMALL, (), pooler=True)
    }
    names["embeddings.word_embeddings.weight"]["shape"] = [2**40, 16]
    (tmp_path / "model.safetensors").write_bytes(header_of(names))
    with pytest.raises(ModelError, match="should be"):
        load_model(tmp_path)


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    save_model(new_model(SMALL), tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelError, match="damaged or cut short"):
        load_model(tmp_path)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "tf_model.h5"])
def test_a_folder_of_another_format_says_how_to_convert_it(name: str, tmp_path: Path) -> None:
    save_model(new_model(SMALL), tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / name)
    with pytest.raises(ModelError, match="albert convert"):
        load_model(tmp_path)


def test_unknown_classes_are_refused(tmp_path: Path) -> None:
    save_model(new_model(SMALL), tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(values | {"architectures": ["EvilModel"]}))
    with pytest.raises(ModelError, match="EvilModel"):
        load_model(tmp_path)


def test_a_failed_save_leaves_the_old_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = new_model(SMALL)
    save_model(model, tmp_path / "m")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("albert.model.folder.write_tensors", full)
    with pytest.raises(Exception, match="no space left"):
        save_model(new_model(SMALL, seed=9), tmp_path / "m")
    assert equal(load_model(tmp_path / "m").model, model)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_info_tells_of_folders_and_presets(tmp_path: Path) -> None:
    save_model(new_model(SMALL.with_settings({"sharing": "ffn"}), ("mlm",)), tmp_path / "m")
    facts = describe(inspect(str(tmp_path / "m")), batch=2, length=16)
    assert facts["transformers_opens_it"] is False
    assert facts["heads"] == ["mlm"]
    assert facts["bytes"]["on_disk"] == (tmp_path / "m/model.safetensors").stat().st_size
    assert describe(inspect("xxlarge"), batch=1, length=512)["parameters"]["total"] == 223_158_450


def test_a_shipped_name_is_a_model_too_and_a_wrong_one_is_named() -> None:
    assert load_model("tiny-en").model.config.hidden_size == 256
    with pytest.raises(ModelError, match="tiny-enn: no such model folder; did you mean 'tiny-en'"):
        load_model("tiny-enn")
