"""Configurations: presets, sharing, and refusal of hostile values before anything is allocated."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from albert.errors import ModelError, UsageError
from albert.model import PRESETS, AlbertConfig, preset, read_config
from albert.model.config import from_json, to_json

GOOD = {"model_type": "albert", "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}


def test_short_names_mean_version_2() -> None:
    assert preset("base") == preset("albert-base") == PRESETS["albert-base-v2"]


def test_an_unknown_preset_suggests_the_near_one() -> None:
    with pytest.raises(ModelError, match="did you mean 'base'"):
        preset("bsae")


def test_the_versions_differ_in_dropout_as_released() -> None:
    assert [preset(f"{size}-v1").hidden_dropout_prob for size in ("base", "large", "xlarge", "xxlarge")] == [
        0.1,
        0.1,
        0.1,
        0,
    ]
    assert all(preset(f"{size}-v2").hidden_dropout_prob == 0 for size in ("base", "large", "xlarge", "xxlarge"))


def test_xlarge_has_the_released_16_heads_and_takes_the_papers_32() -> None:
    assert preset("xlarge").num_attention_heads == 16
    assert preset("xlarge").with_settings({"num_attention_heads": 32}).num_attention_heads == 32


def test_sharing_none_is_one_group_a_layer_in_both_directions() -> None:
    config = AlbertConfig(sharing="none")
    assert config.num_hidden_groups == 12
    assert from_json(to_json(config), source="x") == config
    deeper = config.with_settings({"num_hidden_layers": 3})
    assert (deeper.sharing, deeper.num_hidden_groups) == ("none", 3)
    assert config.with_settings({"sharing": "all"}).num_blocks == (1, 1)


@pytest.mark.parametrize(
    ("sharing", "blocks"), [("all", (1, 1)), ("attention", (1, 12)), ("ffn", (12, 1)), ("none", (12, 12))]
)
def test_each_sharing_mode_has_its_blocks(sharing: Any, blocks: tuple[int, int]) -> None:
    assert AlbertConfig(sharing=sharing).num_blocks == blocks


def test_an_unknown_setting_suggests_the_near_one() -> None:
    with pytest.raises(UsageError, match="did you mean 'hidden_size'"):
        AlbertConfig().with_settings({"hiden_size": 3})


HOSTILE: list[dict[str, Any]] = [
    {"hidden_size": 10**12},
    {"hidden_size": -48},
    {"hidden_size": 48.0},
    {"hidden_size": "48"},
    {"hidden_size": True},
    {"hidden_size": None, "model_type": "albert"},
    {"hidden_size": [48] * 1000},
    {"vocab_size": 10**9},
    {"num_hidden_layers": 10**9},
    {"num_hidden_layers": 0},
    {"num_hidden_groups": 5},
    {"inner_group_num": 10**6},
    {"num_attention_heads": 5},
    {"intermediate_size": 10**10},
    {"hidden_size": 65536, "num_attention_heads": 64, "intermediate_size": 262144, "vocab_size": 4_000_000},
    {"hidden_dropout_prob": float("nan")},
    {"hidden_dropout_prob": 1.5},
    {"layer_norm_eps": float("inf")},
    {"layer_norm_eps": -1},
    {"initializer_range": 0},
    {"hidden_act": "__import__('os').system('true')"},
    {"hidden_act": ["gelu"]},
    {"model_type": "bert"},
    {"model_type": {"a": 1}},
    {"position_embedding_type": "relative_key"},
    {"num_labels": 10**10},
    {"num_labels": -1},
    {"id2label": {"0": "a", "7": "b"}},
    {"id2label": ["a", "b"]},
    {"is_decoder": True},
    {"problem_type": "evil"},
    {"model_type": "albert-lite", "sharing": "everything"},
]


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda value: json.dumps(value)[:50])
def test_a_hostile_configuration_is_refused_without_allocating(hostile: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(GOOD | hostile))
    tracemalloc.start()
    with pytest.raises(ModelError, match=r"config\.json"):
        read_config(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"a":' * 100_000, "\xff\xfe", "NaN"])
def test_a_file_that_is_no_json_object_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(ModelError, match=r"config\.json"):
        read_config(path)


def test_a_huge_configuration_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(GOOD | {"x": "y" * 9_000_000}))
    with pytest.raises(ModelError, match="bytes"):
        read_config(path)


def test_googles_and_transformers_names_of_the_tanh_gelu_are_known() -> None:
    assert from_json(GOOD | {"hidden_act": "gelu_pytorch_tanh"}, source="x").hidden_act == "gelu_new"
    assert from_json(GOOD | {"hidden_act": "gelu"}, source="x").hidden_act == "gelu"


def test_sharing_and_depth_can_change_together() -> None:
    changed = AlbertConfig(sharing="none").with_settings({"sharing": "all", "num_hidden_layers": 6})
    assert (changed.sharing, changed.num_hidden_layers, changed.num_hidden_groups) == ("all", 6, 1)
