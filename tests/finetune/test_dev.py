"""Dev scores: encoded once, the same decisions to the bit, in little memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from albert.finetune.dev import DevScores
from albert.finetune.preparation import prepare
from albert.inference.predictor import Predictor
from albert.tasks.classification import Classification, TextExample
from albert.tasks.finetuning import FinetuneSettings, encode_compactly
from albert.tasks.request import Opened
from albert.tokenizer import Tokenizer
from albert.train.world import World

ALONE = World(0, 1, torch.device("cpu"))


def test_dev_is_encoded_once_and_decided_as_by_prediction_to_the_bit(
    opened: Callable[..., Opened],
    model_folder: Path,
    settings: Callable[..., FinetuneSettings],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepared = prepare(opened(), str(model_folder), settings())
    model = prepared.start.build(prepared.task, prepared.settings.tune, seed=3).eval()
    examples = prepared.dev["dev"]
    plain = list(Predictor(model, prepared.start.tokenizer).predict(prepared.task, examples))
    encode, encoded = Classification.encode, list[str]()

    def count(task: Classification, example: TextExample, tokenizer: Tokenizer) -> object:
        encoded.append(example.text)
        return encode(task, example, tokenizer)

    monkeypatch.setattr(Classification, "encode", count)
    dev = DevScores(model, prepared, world=ALONE)
    scores = dev.score(1)
    assert dev.score(2) == scores
    assert scores == {f"valid_{name}": value for name, value in prepared.task.score(examples, plain).items()}
    assert dev.decided == plain, "probabilities are the same to the last bit"
    assert encoded == [example.text for example in examples]
    with torch.no_grad():
        model.heads["classifier"].linear.bias += torch.tensor([9.0, -9.0])
    dev.score(3)
    assert dev.decided != plain, "the model is read anew at every evaluation"


def test_an_encoded_example_takes_less_than_a_kilobyte(tokenizer: Tokenizer) -> None:
    task = Classification(("bad", "good"))
    examples = [TextExample(f"the cat sat {number}" + " a ship left" * 12, target=0) for number in range(2000)]
    tokens = len(task.encode(examples[0], tokenizer)[0].token_ids)
    tracemalloc.start()
    kept = [encode_compactly(task, example, tokenizer) for example in examples]
    taken = tracemalloc.get_traced_memory()[0] / len(kept)
    tracemalloc.stop()
    assert tokens > 30
    assert taken < 5 * tokens + 500
