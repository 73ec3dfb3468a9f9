"""The exact parameter counts of the paper's architectures (Tables 1, 3 and 4), by arithmetic."""

from __future__ import annotations

import pytest

from albert.model import AlbertConfig, preset
from albert.model.accounting import count_parameters, flops_per_token
from albert.study.params import parameter_rows

BACKBONES = {
    "albert-base": 11_683_584,
    "albert-large": 17_683_968,
    "albert-xlarge": 58_724_864,
    "albert-xxlarge": 222_595_584,
}
WITH_HEADS = {
    "albert-base": 11_813_810,
    "albert-large": 17_847_474,
    "albert-xlarge": 59_021_490,
    "albert-xxlarge": 223_158_450,
}


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("name", BACKBONES)
def test_table_1_is_exact(name: str, version: str) -> None:
    counts = count_parameters(preset(f"{name}-{version}"), ("mlm", "order"))
    assert (counts.backbone, counts.total) == (BACKBONES[name], WITH_HEADS[name])


def test_the_parts_of_base_are_exact() -> None:
    counts = count_parameters(preset("base"), ("mlm", "order"))
    assert (counts.embeddings, counts.projection, counts.layers, counts.pooler) == (
        3_906_048,
        99_072,
        7_087_872,
        590_592,
    )
    assert counts.heads == {"mlm": 128_688, "order": 1_538}


@pytest.mark.parametrize(
    ("name", "layer"),
    [("base", 7_087_872), ("large", 12_596_224), ("xlarge", 50_358_272), ("xxlarge", 201_379_840)],
)
def test_one_layer_is_exact(name: str, layer: int) -> None:
    assert count_parameters(preset(name)).layers == layer


@pytest.mark.parametrize(
    ("sharing", "embedding_size", "millions"),
    [
        ("all", 64, 9.68), ("all", 128, 11.68), ("all", 256, 15.69), ("all", 768, 31.11),
        ("none", 64, 87.65), ("none", 128, 89.65), ("none", 256, 93.65), ("none", 768, 109.08),
        ("attention", 128, 63.65), ("ffn", 128, 37.69), ("attention", 768, 83.08), ("ffn", 768, 57.12),
    ],
)  # fmt: skip
def test_tables_3_and_4_are_exact(sharing: str, embedding_size: int, millions: float) -> None:
    config = AlbertConfig(sharing=sharing, embedding_size=embedding_size)  # type: ignore[arg-type]
    assert round(count_parameters(config).backbone / 1e6, 2) == millions


def test_the_berts_are_exact() -> None:
    assert round(count_parameters(preset("bert-base")).backbone / 1e6, 2) == 109.08
    assert round(count_parameters(preset("bert-large")).backbone / 1e6, 2) == 334.61
    assert count_parameters(preset("bert-xlarge")).backbone > 1.2e9


@pytest.mark.parametrize(("hidden", "millions"), [(1024, 17.7), (2048, 58.7), (4096, 222.6), (6144, 495.5)])
def test_the_widths_of_table_12_are_exact(hidden: int, millions: float) -> None:
    config = AlbertConfig(
        hidden_size=hidden, num_hidden_layers=3, num_attention_heads=hidden // 64, intermediate_size=4 * hidden
    )
    assert round(count_parameters(config).backbone / 1e6, 1) == millions


def test_depth_and_sharing_of_arithmetic() -> None:
    base = preset("base")
    assert round(flops_per_token(base, length=512) / 1e9, 3) == 0.189
    assert flops_per_token(preset("bert-base"), length=512) == flops_per_token(base, length=512)
    assert flops_per_token(base, length=512, depth=6) * 2 == flops_per_token(base, length=512)


def test_the_study_has_every_row_of_the_three_tables_in_the_documented_form() -> None:
    rows = [row.to_json() for row in parameter_rows()]
    assert [sum(row["table"] == table for row in rows) for table in (1, 3, 4)] == [6, 8, 8]
    assert {"table": 1, "model": "albert-base", "paper": "12M", "parameters": 11_683_584} in rows
    four = {"table": 4, "sharing": "ffn", "embedding_size": 128, "paper": "38M", "parameters": 37_686_528}
    assert four in rows
    for row in rows:  # the printed figures, which reproduce to within a million except xxlarge
        printed = int(row["paper"].removesuffix("M"))
        off = abs(row["parameters"] / 1e6 - printed)
        assert off < 1.3 or row.get("model") == "albert-xxlarge", row
