"""Folders of tuned models in transformers: the same labels, also for long texts, and heads of the right size."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

import albert
from albert.errors import UsageError
from albert.finetune.settings import TuneSettings
from albert.finetune.start import Start
from albert.labelled.request import Opened
from albert.model import AlbertConfig, new_model
from albert.model.folder import load_model, save_model
from albert.tasks.classification import Classification
from albert.tasks.saved_task import TASK_FILE, task_json
from albert.tasks.span import SpanTask
from albert.tokenizer import Tokenizer
from word_model import WORDS

LABELS = ("one", "two", "three")


def shape(tokenizer: Tokenizer, labels: tuple[str, ...] = LABELS) -> AlbertConfig:
    return AlbertConfig(
        vocab_size=tokenizer.vocab_size, embedding_size=16, hidden_size=32, num_hidden_layers=2,
        num_attention_heads=2, intermediate_size=64, max_position_embeddings=64, labels=labels, initializer_range=0.5,
    )  # fmt: skip


def texts(count: int, longest: int) -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, size=int(rng.integers(2, longest)))) for _ in range(count)]


def test_transformers_cuts_long_texts_where_the_model_was_tuned_and_gives_its_labels(
    word_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    task = Classification(LABELS, max_length=24)
    model = new_model(shape(word_tokenizer), ("classifier",), seed=2)
    extra = {TASK_FILE: task_json(task)}
    save_model(model, tmp_path / "m", tokenizer=word_tokenizer, extra=extra, max_length=task.max_length)
    asked = texts(60, 150)
    ours = [label.label for label in albert.load(tmp_path / "m").classify(asked)]
    pipeline = transformers.pipeline("text-classification", str(tmp_path / "m"), device="cpu")
    assert [found["label"] for found in pipeline(asked, truncation=True)] == ours
    assert len(set(ours)) == 3
    assert (pipeline.tokenizer.model_max_length, pipeline.tokenizer.truncation_side) == (24, "right")


def test_the_tokenizer_of_a_model_for_no_task_takes_as_much_as_the_model(
    word_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    save_model(new_model(shape(word_tokenizer), ("mlm",)), tmp_path / "m", tokenizer=word_tokenizer)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "m")
    assert tokenizer.model_max_length == 64
    assert len(tokenizer(texts(1, 400)[0] * 20, truncation=True)["input_ids"]) == 64


def test_a_span_model_that_comes_from_three_classes_opens_in_transformers_with_its_weights(
    word_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    save_model(new_model(shape(word_tokenizer), ("classifier",)), tmp_path / "mnli", tokenizer=word_tokenizer)
    span = Start.find(str(tmp_path / "mnli")).build(SpanTask(max_length=64), TuneSettings(), seed=3)
    save_model(span, tmp_path / "squad", tokenizer=word_tokenizer)
    theirs = transformers.AutoModelForQuestionAnswering.from_pretrained(tmp_path / "squad")
    assert torch.equal(theirs.qa_outputs.weight, span.get_parameter("heads.span.weight"))


def test_an_order_head_beside_three_classes_opens_in_transformers_with_its_weights(
    word_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    model = new_model(shape(word_tokenizer), ("mlm", "order"), seed=1)
    save_model(model, tmp_path / "m", tokenizer=word_tokenizer)
    theirs = transformers.AlbertForPreTraining.from_pretrained(tmp_path / "m")
    assert torch.equal(theirs.sop_classifier.classifier.weight, model.get_parameter("heads.order.weight"))


def test_a_folder_without_a_pooler_gets_none_by_being_read(word_tokenizer: Tokenizer, tmp_path: Path) -> None:
    transformers.AlbertModel(
        transformers.AlbertConfig(
            vocab_size=word_tokenizer.vocab_size,
            embedding_size=16,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
        ),
        add_pooling_layer=False,
    ).save_pretrained(tmp_path / "theirs")
    loaded = load_model(tmp_path / "theirs")
    assert loaded.new == ()
    assert loaded.model.encoder.pooler is None
    save_model(loaded.model, tmp_path / "ours")
    assert load_model(tmp_path / "ours").model.encoder.pooler is None


def test_a_new_pooler_is_never_frozen(word_tokenizer: Tokenizer, opened: Callable[..., Opened], tmp_path: Path) -> None:
    save_model(new_model(shape(word_tokenizer), ("mlm",), pooler=False), tmp_path / "m", tokenizer=word_tokenizer)
    start, task = Start.find(str(tmp_path / "m")), opened().task
    with pytest.raises(UsageError, match=r"has no pooler.*backbone"):
        start.build(task, TuneSettings(freeze="encoder"), seed=0)
    model = start.build(task, TuneSettings(freeze="backbone"), seed=0)
    assert model.encoder.pooler is not None
    assert all(parameter.requires_grad for parameter in model.encoder.pooler.parameters())
