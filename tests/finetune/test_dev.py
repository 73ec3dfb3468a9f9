"""Dev scores: encoded once, the same decisions to the bit, in little memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from albert.finetune.dev import DevScores
from albert.finetune.job import encode_compactly
from albert.finetune.preparation import prepare
from albert.finetune.settings import FinetuneSettings
from albert.inference.predictor import Predictor
from albert.inference.torch_engine import TorchEngine
from albert.labelled.request import Opened
from albert.tasks.classification import Classification, TextExample
from albert.tasks.span import AnswerText, QuestionExample, SpanTask
from albert.tasks.task import Splits
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
    plain = list(Predictor(TorchEngine(model), prepared.start.tokenizer).predict(prepared.task, examples))
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


def test_the_score_to_beat_is_that_of_the_majority_class_of_dev(
    opened: Callable[..., Opened], model_folder: Path, settings: Callable[..., FinetuneSettings]
) -> None:
    data = opened()
    dev = [TextExample(f"the cat {number}", target=int(number < 30)) for number in range(40)]
    train = [*data.splits.train, *([TextExample("a ship", target=0)] * 400)]  # in training it is the other one
    data = replace(data, splits=replace(data.splits, train=train, dev={"dev": dev}))
    assert prepare(data, str(model_folder), settings()).baseline == 0.75


def test_answers_are_decided_by_the_threshold_that_the_first_dev_set_chose(
    model_folder: Path, settings: Callable[..., FinetuneSettings]
) -> None:
    passage = "the man left the harbour and wrote a letter"
    asked = [("who left", (AnswerText("man", 4),)), ("who came", ()), ("who sat", ()), ("what", (AnswerText("a", 0),))]
    examples = [QuestionExample(question, passage, answers) for question, answers in asked]
    task = SpanTask(unanswerable=True, max_length=48, stride=16)
    data = Opened(task, Splits(examples, {"dev": examples, "other": examples[:2]}), [], "by hand", name="squad")
    prepared = prepare(data, str(model_folder), settings())
    dev = DevScores(prepared.build(prepared.settings).eval(), prepared, world=ALONE)
    scores = dev.score(1)
    assert isinstance(dev.settled, SpanTask)
    assert dev.settled.null_threshold is not None
    assert dev.decided == [dev.settled.decided(answer) for answer in dev.decided]
    assert scores["valid_f1"] == dev.settled.score(examples, dev.decided)["f1"] >= 0.5
    assert scores["valid_other_f1"] == dev.settled.score(examples[:2], dev.decided[:2])["f1"]
