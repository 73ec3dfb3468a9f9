"""Engines and precisions: the answers of the plain modules, whatever runs the model and whatever is beside a text."""

from __future__ import annotations

import json
import sys
from functools import cache
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from albert.batch import STATES, Batch, Said, Wanted, pack, rounded
from albert.errors import UsageError
from albert.inference import choose_engine, cpu_linear
from albert.inference.choose_engine import NEEDS, installed, measured, open_engine
from albert.inference.cpu_linear import has_bf16
from albert.inference.early_exit import EarlyExitEngine, ExitRule
from albert.inference.engine import Engine
from albert.inference.int8 import FULL, SAFE, quantise
from albert.inference.layer_engine import lay_out
from albert.inference.model import load
from albert.inference.predictor import length_batches
from albert.inference.torch_engine import TorchEngine
from albert.model import Albert, AlbertConfig, Packed, new_model
from albert.model.folder import load_model
from albert.tasks.classification import Classification
from albert.tasks.task import Feature

LENGTHS = (2, 40, 33, 7, 100)
SOME = [[0, 1], [3], [2, 5], [], [99]]
CLASS: Wanted = {"order": "class", STATES: "class"}
EVERYTHING: Wanted = {"order": "class", STATES: "tokens", "mlm": SOME}
SHAPE: dict[str, Any] = {
    "vocab_size": 300, "embedding_size": 8, "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 2,
    "intermediate_size": 128, "max_position_embeddings": 128, "initializer_range": 0.2,
}  # fmt: skip


def tiny_en() -> Albert:
    with resources.as_file(resources.files("albert") / "models" / "tiny-en") as folder:
        return load_model(folder).model


def texts() -> Batch:
    rng = np.random.default_rng(3)
    return pack([rng.integers(5, 8000, length) for length in LENGTHS])


@cache
def engine_of(name: str, precision: str) -> Engine:
    if not installed(name):
        pytest.skip(f"{name} is not installed: pip install 'albert-lite[{name}]'")
    if (name, precision) == ("openvino", "bf16") and not has_bf16():
        pytest.skip("OpenVINO has bf16 only where the CPU multiplies in it")
    return open_engine(tiny_en(), engine=name, precision=precision)


@cache
def plain() -> list[list[Said]]:
    """Return what the modules say, without any packing."""
    engine = TorchEngine(tiny_en())
    return [engine.run(texts(), wanted) for wanted in (CLASS, EVERYTHING)]


def differences(one: list[Said], other: list[Said]) -> float:
    return max(
        float(np.abs(a - b).max())
        for left, right in zip(one, other, strict=True)
        for head in right
        for a, b in zip(left[head], right[head], strict=True)
        if a.size
    )


@pytest.mark.parametrize("name", NEEDS)
def test_every_engine_says_what_torch_says(name: str) -> None:
    engine = engine_of(name, "fp32")
    for wanted, expected in zip((CLASS, EVERYTHING), plain(), strict=True):
        assert differences(engine.run(texts(), wanted), expected) < 1e-4


@pytest.mark.parametrize("name", NEEDS)
def test_texts_of_one_token_are_read_too(name: str) -> None:
    batch = pack([[5 + number] for number in range(17)])  # 17 tokens are rounded up to 18, 17 texts too
    said = engine_of(name, "fp32").run(batch, CLASS)
    assert differences(said, TorchEngine(tiny_en()).run(batch, CLASS)) < 1e-4
    assert differences(said[:1], engine_of(name, "fp32").run(pack([[5]]), CLASS)) < 1e-5


@pytest.mark.parametrize("name", NEEDS)
def test_torch_has_one_thread_beside_another_runtime_and_all_of_them_afterwards(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine_of(name, "fp32")  # skips where it is not installed
    engine = open_engine(new_model(AlbertConfig(**SHAPE), ("classifier",)), engine=name, precision="fp32")
    assert isinstance(engine, TorchEngine)
    encoder, seen, before = engine.model.encoder, [], torch.get_num_threads()
    embed = encoder.embed

    def watched(packed: Packed) -> torch.Tensor:
        seen.append(torch.get_num_threads())
        return embed(packed)

    monkeypatch.setattr(encoder, "embed", watched)
    torch.set_num_threads(2)
    try:
        for runs in (engine, EarlyExitEngine(engine, ExitRule.parse("patience=1"))):
            runs.run(pack([[5, 6], [7]]), {"classifier": "class"})
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert seen == [2 if name == "torch" else 1] * 2


@pytest.mark.parametrize(
    ("name", "precision"),
    [pair for pair in product(NEEDS, choose_engine.PRECISIONS) if pair != ("onnx", "bf16")],
)
def test_what_an_engine_says_of_a_text_does_not_depend_on_its_neighbours(name: str, precision: str) -> None:
    engine, batch = engine_of(name, precision), texts()
    together = engine.run(batch, EVERYTHING)
    for text, (start, length) in enumerate(zip(batch.starts, LENGTHS, strict=True)):
        alone = pack([batch.token_ids[start : start + length]])
        own = {head: where if isinstance(where, str) else [where[text]] for head, where in EVERYTHING.items()}
        near = 1e-5 * (1 if precision == "fp32" else 10)
        if name == "openvino" and precision != "fp32":
            # its kernels for few and for many rows add up in another order, and what lies between two numbers of bf16
            # or int8 may be rounded to either: 0.03 and 0.04 were seen in states of up to 9
            near = 0.1
        for head, values in engine.run(alone, own)[0].items():
            if (expected := together[text][head][0]).size:
                # a millionth of the largest where that is more: fp32 itself rounds a logit of 13 by 1e-6 at every sum
                assert np.abs(values[0] - expected).max() < max(near, 1e-6 * float(np.abs(expected).max())), head


@pytest.mark.parametrize("name", NEEDS)
def test_int8_is_near_and_the_same_words_are_best(name: str) -> None:
    said, expected = engine_of(name, "int8").run(texts(), EVERYTHING), plain()[1]
    for ours, theirs in zip(said, expected, strict=True):
        one, other = ours[STATES][0].ravel(), theirs[STATES][0].ravel()
        assert float(one @ other / np.linalg.norm(one) / np.linalg.norm(other)) > 0.998
        assert (ours["mlm"][0].argmax(-1) == theirs["mlm"][0].argmax(-1)).all()
    assert differences(said, expected) > 1e-4, "int8 computes in int8"


@pytest.mark.parametrize("name", ["torch", "openvino"])
def test_bf16_is_near_and_the_same_words_are_best(name: str) -> None:
    said, expected = engine_of(name, "bf16").run(texts(), EVERYTHING), plain()[1]
    for ours, theirs in zip(said, expected, strict=True):
        one, other = ours[STATES][0], theirs[STATES][0]
        assert one.dtype == np.float32
        # a number of bf16 has 8 bits: each is within 0.2% of what it stands for, and six layers round a few times each
        assert float(np.vdot(one, other) / np.linalg.norm(one) / np.linalg.norm(other)) > 0.9995
        assert (ours["mlm"][0].argmax(-1) == theirs["mlm"][0].argmax(-1)).all()
    assert differences(said, expected) > 1e-4, "bf16 computes in bf16"


def test_bf16_decides_as_fp32_nearly_always(make_folder: Any) -> None:
    folder = make_folder(task=Classification(("a", "b", "c"), max_length=64))
    words = (
        "the",
        "end",
        "of",
        "a",
        "long",
        "day",
        "Peter",
        "and",
        "Maria",
        "wrote",
        "letters",
        "to",
        "other",
        "towns",
    )
    rng = np.random.default_rng(5)
    asked = [" ".join(rng.choice(words, int(rng.integers(2, 30)))) for _ in range(60)]
    exact, near = (load(folder, engine="torch", precision=name).classify(asked) for name in ("fp32", "bf16"))
    assert sum(one.label == other.label for one, other in zip(exact, near, strict=True)) >= 57
    for one, other in zip(exact, near, strict=True):
        assert all(abs(p - other.probabilities[label]) < 0.05 for label, p in one.probabilities.items())


def test_bf16_without_such_a_cpu_is_as_near(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_linear, "has_bf16", lambda: False)
    said = open_engine(tiny_en(), engine="torch", precision="bf16").run(texts(), EVERYTHING)
    assert 1e-4 < differences(said, plain()[1]) < 0.5
    monkeypatch.setattr(cpu_linear, "_has_onednn", lambda model: False)
    said = open_engine(tiny_en(), engine="torch", precision="bf16").run(texts(), EVERYTHING)
    assert 1e-4 < differences(said, plain()[1]) < 0.5


def test_precisions_that_an_engine_has_not_are_refused_with_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_linear, "_has_onednn", lambda model: False)
    with pytest.raises(UsageError, match="int8: torch has no such kernels"):
        open_engine(tiny_en(), engine="torch", precision="int8")
    if not installed("onnx"):
        pytest.skip("onnx is not installed: pip install 'albert-lite[onnx]'")
    with pytest.raises(UsageError, match="bf16: ONNX Runtime has none on a CPU: use the engine torch"):
        open_engine(tiny_en(), engine="onnx", precision="bf16")


@pytest.mark.parametrize("precision", choose_engine.PRECISIONS)
def test_the_fastest_engine_is_one_that_has_the_precision(
    precision: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("ALBERT_ENGINE")
    engine = open_engine(tiny_en(), precision=precision, cache=tmp_path / "engines.json")
    assert engine.run(texts(), CLASS)
    assert (engine.name, precision) != ("onnx", "bf16")
    assert all(
        "onnx" not in found.texts_per_second for found in measured(tmp_path / "engines.json") if precision == "bf16"
    )


def test_an_engine_that_won_against_torch_can_still_compile_single_layers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if not installed("onnx"):
        pytest.skip("onnx is not installed: pip install 'albert-lite[onnx]'")
    monkeypatch.delenv("ALBERT_ENGINE")
    monkeypatch.setattr(choose_engine, "_seconds", lambda engine, batch: 1.0 if engine.name == "onnx" else 2.0)
    model = new_model(AlbertConfig(**SHAPE), ("classifier",), seed=1)
    engine = open_engine(model, cache=tmp_path / "engines.json")
    assert engine.name == "onnx"
    packed = Packed.from_batch(pack([range(5, 20), range(30, 37)]))
    assert engine.step(0, engine.model.encoder.embed(packed).detach(), packed).shape[1] == model.config.hidden_size


@pytest.mark.parametrize("sharing", ["none", "attention", "ffn"])
@pytest.mark.parametrize("name", NEEDS)
def test_models_that_share_less_run_in_every_engine(name: str, sharing: Any) -> None:
    if not installed(name):
        pytest.skip(f"{name} is not installed: pip install 'albert-lite[{name}]'")
    config = AlbertConfig(**SHAPE, sharing=sharing, hidden_act="gelu")
    batch = pack([range(5, 20), range(30, 37)])
    expected = TorchEngine(new_model(config, ("classifier", "tags"), seed=1)).run(batch, {"tags": "tokens"})
    engine = open_engine(new_model(config, ("classifier", "tags"), seed=1), engine=name)
    assert differences(engine.run(batch, {"tags": "tokens"}), expected) < 1e-4


def test_layers_with_parameters_of_their_own_are_for_torch() -> None:
    if not installed("onnx"):
        pytest.skip("onnx is not installed: pip install 'albert-lite[onnx]'")
    model = new_model(AlbertConfig(**SHAPE, adapter_rank=2), ("classifier",), seed=1)
    with pytest.raises(UsageError, match="use torch"):
        open_engine(model, engine="onnx")
    batch = pack([range(5, 20)])
    assert open_engine(model, engine="torch").run(batch, {"classifier": "class"})


def test_an_engine_that_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose_engine, "installed", lambda name: False)
    with pytest.raises(UsageError, match=r"pip install 'albert-lite\[openvino\]'"):
        open_engine(tiny_en(), engine="openvino")


def test_unknown_engines_and_precisions_are_refused_by_name() -> None:
    with pytest.raises(UsageError, match="did you mean 'openvino'"):
        open_engine(tiny_en(), engine="openvine")
    with pytest.raises(UsageError, match="did you mean 'int8'"):
        open_engine(tiny_en(), precision="int4")


def test_engines_are_measured_once_and_the_fastest_is_remembered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tried: list[str] = []
    pace = {"torch": 2.0, "slow": 3.0, "fast": 1.0}

    class Timed(TorchEngine):
        pass

    def opened(model: Albert, engine: str, precision: str) -> Engine:
        tried.append(f"{engine} {precision}")
        found = Timed(model)
        found.name = engine
        return found

    monkeypatch.delenv("ALBERT_ENGINE")
    monkeypatch.setattr(choose_engine, "NEEDS", {"slow": (), "fast": (), "torch": ()})
    monkeypatch.setattr(choose_engine, "_open", opened)
    monkeypatch.setattr(choose_engine, "_seconds", lambda engine, batch: pace[engine.name])
    model, cache = new_model(AlbertConfig(**SHAPE), seed=1), tmp_path / "new" / "engines.json"
    assert open_engine(model, cache=cache).name == "fast"
    assert tried == ["slow fp32", "fast fp32", "torch fp32"]
    assert open_engine(model, cache=cache).name == "fast"
    assert tried[3:] == ["fast fp32"], "remembered"
    assert open_engine(model, precision="int8", cache=cache).name == "fast"
    assert len(tried) == 7, "another precision is another question"
    assert [found.fastest for found in measured(cache)] == ["fast", "fast"]
    assert measured(cache)[0].shape == "64 wide, 3 layers, fp32"
    cache.write_text(json.dumps({"x": {"shape": 1}}))
    assert open_engine(model, cache=cache).name == "fast", "a damaged file is measured anew"


def test_an_engine_whose_package_is_damaged_is_passed_over_and_said_where_it_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("ALBERT_ENGINE")
    monkeypatch.setattr(choose_engine, "installed", lambda engine: engine != "openvino")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.delitem(sys.modules, "albert.inference.onnx_engine", raising=False)
    model = new_model(AlbertConfig(**SHAPE), seed=1)
    assert open_engine(model, cache=tmp_path / "engines.json").name == "torch"
    with pytest.raises(UsageError, match=r"engine onnx: its package is installed and can't be loaded"):
        open_engine(model, engine="onnx")


def test_a_long_text_among_short_ones_makes_no_batch_of_mostly_padding() -> None:
    features = [Feature([1] * length, [0] * length) for length in (400, *[5] * 300)]
    batches = list(length_batches(features, tokens=1024))
    assert sorted(place for batch in batches for place in batch) == list(range(301))
    for batch in batches:
        longest = max(len(features[place].token_ids) for place in batch)
        assert longest * len(batch) <= 2 * 1024
    assert len(batches) == 3


def test_shapes_are_rounded_to_a_few() -> None:
    sizes = [rounded(count) for count in range(1, 4097)]
    assert all(size >= count for count, size in enumerate(sizes, 1))
    assert max(size / count for count, size in enumerate(sizes, 1)) < 1.13
    assert len(set(sizes)) < 90


def test_a_layout_reaches_every_token_and_no_other_text() -> None:
    lengths = (3, 9, 5)
    layout = lay_out(lengths, first=False)
    tokens = sum(lengths)
    np.testing.assert_array_equal(layout.keys.ravel()[layout.back[:tokens]], np.arange(tokens))
    for text, length in enumerate(lengths):
        seen = layout.keys[text][layout.bias[text, 0, 0] == 0]
        np.testing.assert_array_equal(seen, sum(lengths[:text]) + np.arange(length))


@pytest.mark.parametrize("largest", [FULL, SAFE])
def test_int8_weights_are_within_half_a_step(largest: int) -> None:
    weight = np.random.default_rng(1).standard_normal((7, 30)).astype(np.float32)
    weight[3] = 0
    small, scales = quantise(weight, largest=largest)
    assert np.abs(small.astype(int)).max() == largest
    assert (np.abs(small * scales[:, None] - weight) <= scales[:, None] * 0.501).all()
