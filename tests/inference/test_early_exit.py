"""Early exit in batches: each text leaves where the rule says, with that layer's answer, whoever is beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from albert.batch import Batch, pack
from albert.errors import UsageError
from albert.inference.choose_engine import installed, open_engine
from albert.inference.early_exit import SETTLED, EarlyExitEngine, ExitRule
from albert.inference.torch_engine import TorchEngine
from albert.model import Albert, AlbertConfig, Packed, new_model
from albert.tasks.classification import Classification, TextFeature

WANTED = {"classifier": "class"}
LAYERS = 6
LABELS = ("a", "b", "c")


def model_of(**config: Any) -> Albert:
    shape = {
        "vocab_size": 300, "embedding_size": 8, "hidden_size": 32, "num_hidden_layers": LAYERS,
        "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 64, "initializer_range": 0.4,
        "labels": LABELS,
    }  # fmt: skip
    return new_model(AlbertConfig(**shape | config), ("classifier",), seed=5)


def texts() -> Batch:
    rng = np.random.default_rng(1)
    return pack([rng.integers(5, 300, length).tolist() for length in rng.integers(2, 40, 24)])


def by_layer(model: Albert, batch: Batch) -> np.ndarray:
    """Return what the head says after each layer: [layers, B, labels]."""
    packed = Packed.from_batch(batch)
    with torch.inference_mode():
        layers = model(packed, all_layers=True).layers
        return np.stack([model.heads["classifier"](model.encoder.pool(x, packed)).numpy() for x in layers])


def first_settled(steady: np.ndarray, patience: int) -> int:
    """Return the layer after which a text leaves; `steady` says of each layer but the first whether nothing changed."""
    run = 0
    for layer, same in enumerate(steady, 1):
        run = run + 1 if same else 0
        if run >= patience:
            return layer
    return len(steady)


@pytest.mark.parametrize("problem", ["single_label_classification", "multi_label_classification", "regression"])
@pytest.mark.parametrize("patience", [1, 2, 3])
def test_by_patience_a_text_leaves_when_its_answer_stays(patience: int, problem: Any) -> None:
    model = model_of(problem_type=problem, labels=("value",) if problem == "regression" else LABELS)
    if problem == "regression":
        with torch.no_grad():
            model.heads["classifier"].linear.weight *= 0.2  # type: ignore[union-attr, operator]
    said = by_layer(model, texts())
    steady = {
        "single_label_classification": said[1:].argmax(-1) == said[:-1].argmax(-1),
        "multi_label_classification": ((said[1:] > 0) == (said[:-1] > 0)).all(-1),
        "regression": np.abs(said[1:] - said[:-1]).max(-1) < SETTLED,
    }[problem]
    depths = [first_settled(steady[:, text], patience) for text in range(said.shape[1])]
    engine = EarlyExitEngine(TorchEngine(model), ExitRule("patience", patience))
    found = engine.run(texts(), WANTED)
    assert len(set(depths)) > 1, "some leave early, and not all at once"
    for text, depth in enumerate(depths):
        np.testing.assert_allclose(found[text]["classifier"][0], said[depth, text], atol=1e-4)
    assert engine.mean_layers == pytest.approx(np.mean(depths) + 1)


def test_by_confidence_a_text_leaves_when_it_is_sure() -> None:
    model = model_of()
    said = by_layer(model, texts())
    sure = np.exp(said - said.max(-1, keepdims=True))
    sure = (sure / sure.sum(-1, keepdims=True)).max(-1)  # [layers, B]
    bound = float(np.quantile(sure, 0.7))
    depths = [next((d for d in range(LAYERS) if sure[d, text] >= bound), LAYERS - 1) for text in range(sure.shape[1])]
    found = EarlyExitEngine(TorchEngine(model), ExitRule("confidence", bound)).run(texts(), WANTED)
    assert len(set(depths)) > 1
    for text, depth in enumerate(depths):
        np.testing.assert_allclose(found[text]["classifier"][0], said[depth, text], atol=1e-4)


@pytest.mark.parametrize("name", ["torch", "onnx", "openvino"])
def test_neighbours_have_no_part_in_it_in_any_engine(name: str) -> None:
    if not installed(name):
        pytest.skip(f"{name} is not installed: pip install 'albert-lite[{name}]'")
    opened = open_engine(model_of(), engine=name)
    assert isinstance(opened, TorchEngine)
    engine, batch = EarlyExitEngine(opened, ExitRule("patience", 2)), texts()
    together = engine.run(batch, WANTED)
    for text in range(0, len(batch.lengths), 5):
        start = batch.starts[text]
        alone = pack([batch.token_ids[start : start + batch.lengths[text]].tolist()])
        (own,) = engine.run(alone, WANTED)
        np.testing.assert_allclose(own["classifier"][0], together[text]["classifier"][0], atol=1e-5)


def test_with_enough_patience_nobody_leaves() -> None:
    model = model_of()
    engine = EarlyExitEngine(TorchEngine(model), ExitRule("patience", LAYERS))
    for one, other in zip(engine.run(texts(), WANTED), TorchEngine(model).run(texts(), WANTED), strict=True):
        np.testing.assert_allclose(one["classifier"][0], other["classifier"][0], atol=1e-5)
    assert engine.mean_layers == LAYERS


@pytest.mark.parametrize(
    "words",
    [
        "patience",
        "patience=0",
        "patience=1.5",
        "patience=inf",
        "patience=nan",
        "confidence=2",
        "confidence=x",
        "luck=3",
    ],
)
def test_rules_that_are_none_are_refused(words: str) -> None:
    with pytest.raises(UsageError, match="patience=3"):
        ExitRule.parse(words)
    assert ExitRule.parse("confidence=0.9") == ExitRule("confidence", 0.9)


def test_a_number_has_no_confidence() -> None:
    model = model_of(problem_type="regression", labels=("value",))
    with pytest.raises(UsageError, match="use patience"):
        EarlyExitEngine(TorchEngine(model), ExitRule("confidence", 0.9))


def test_the_loss_is_that_of_all_layers_weighed_by_depth() -> None:
    model, packed = model_of(), Packed.from_batch(texts())
    count = len(packed.lengths)
    features = [TextFeature([], [], text % 3) for text in range(count)]
    task = Classification(LABELS, early_exit=True)
    loss = task.loss(model, packed, model(packed, all_layers=True), features=features, count=count)
    said, truth = by_layer(model, texts()), np.arange(count) % 3
    powers = np.exp(said - said.max(-1, keepdims=True))
    shares = powers / powers.sum(-1, keepdims=True)  # [layers, B, labels]
    losses = -np.log(shares[:, np.arange(count), truth]).mean(-1)
    assert float(loss.detach()) == pytest.approx(np.average(losses, weights=np.arange(1, LAYERS + 1)), rel=1e-4)
    assert task.remembered()["early_exit"] is True
    assert "early_exit" not in Classification(LABELS).remembered()
