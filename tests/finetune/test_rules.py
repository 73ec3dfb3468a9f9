"""Where values come from that nobody gave."""

from __future__ import annotations

from typing import Any

import pytest

from albert.errors import UsageError
from albert.finetune.rules import TABLE_14, resolve, resolve_length, table_row
from albert.finetune.settings import FinetuneSettings
from albert.model import preset
from albert.settings import read_settings
from albert.tasks.choice import Choice
from albert.tasks.classification import Classification
from albert.tasks.span import SpanTask

TASK = Classification(("0", "1"))


def filled(name: str, model: str, *, examples: int, task: Any = TASK, **changes: Any) -> FinetuneSettings:
    values = {key.replace("__", "."): value for key, value in changes.items()}
    given = read_settings(FinetuneSettings, defaults=values)
    row = table_row(name, task, model=model)
    return resolve(given, preset(model), row=row, examples=examples, items=examples, dev=400)


@pytest.mark.parametrize("name", TABLE_14)
def test_table_14_is_followed_for_the_papers_models_on_whole_training_sets(name: str) -> None:
    row = TABLE_14[name]
    task = SpanTask(unanswerable=name == "squad 2.0") if name.startswith("squad") else TASK
    settings = filled(name.split()[0], "albert-xxlarge-v1", examples=row.examples, task=task)
    assert settings.optimizer.lr == row.lr
    assert settings.optimizer.warmup_steps == row.warmup_steps
    assert (settings.train.steps, settings.train.batch_size) == (row.steps, row.batch_size)
    assert (settings.tune.dropout, settings.tune.classifier_dropout) == (row.dropout, 0.1)


def test_table_14_says_what_the_paper_says() -> None:
    rows = {name: (row.lr, row.batch_size, row.steps, row.max_length) for name, row in TABLE_14.items()}
    assert rows["mnli"] == (3e-5, 128, 10000, 512)
    assert rows["squad"] == (5e-5, 48, 3649, 384)
    assert rows["wnli"] == (2e-5, 16, 2000, 512)
    epochs = {name: row.steps * row.batch_size / row.examples for name, row in TABLE_14.items()}
    assert epochs["squad"] == pytest.approx(2, abs=0.01)
    assert epochs["squad 2.0"] == pytest.approx(3, abs=0.01)
    assert epochs["cola"] == pytest.approx(10, abs=0.1)


def test_race_on_v2_has_its_own_rate_and_no_dropout() -> None:
    v2 = filled("race", "albert-xxlarge-v2", examples=87_866, task=Choice())
    assert (v2.optimizer.lr, v2.tune.dropout) == (1e-5, 0.0)
    v1 = filled("race", "albert-xxlarge-v1", examples=87_866, task=Choice())
    assert (v1.optimizer.lr, v1.tune.dropout) == (2e-5, 0.1)


@pytest.mark.parametrize(
    ("model", "version"),
    [
        ("albert-xxlarge-v1", 1), ("albert_xxlarge_v1/model", 1), ("/models/V1/xxlarge", 1), ("albert-xxlarge-v2", 2),
        ("xxlarge", 2), ("/data/v1.2/albert-xxlarge-v2", 2), ("runs/squad-v1.1-xxlarge", 2), ("albert-base-v10", 2),
        ("/models/v1/albert-xxlarge-v2", 2),
    ],
)  # fmt: skip
def test_the_version_of_a_model_is_a_word_of_its_name(model: str, version: int) -> None:
    row = table_row("race", Choice(), model=model)
    assert row is not None
    assert row.lr == {1: 2e-5, 2: 1e-5}[version]


def test_a_part_of_the_training_set_gets_the_same_epochs() -> None:
    settings = filled("sst-2", "base", examples=10_000)
    assert settings.train.steps == pytest.approx(20935 * 10_000 / 67_349, abs=1)


def test_small_models_get_larger_rates_and_small_data_more_epochs() -> None:
    rates = [filled("mrpc", name, examples=3_668).optimizer.lr for name in ("tiny", "small")]
    assert rates == [5e-4, 4e-4]
    factors = [filled("classification", name, examples=900).optimizer.embedding_lr_factor for name in ("small", "base")]
    assert factors == [3, 1], "words of a small model move faster"
    given = filled("classification", "small", examples=900, optimizer__embedding_lr_factor=5.0)
    assert given.optimizer.embedding_lr_factor == 5
    assert filled("mrpc", "base", examples=900).optimizer.embedding_lr_factor == 1, "Table 14 has one rate for all"
    assert filled("mrpc", "small", examples=3_668).tune.dropout is None

    def epochs(examples: int) -> float:
        train = filled("classification", "small", examples=examples).train
        return train.steps * train.batch_size / examples

    assert [round(epochs(count)) for count in (200, 3_000, 100_000)] == [20, 4, 3]


def test_what_was_given_stands_and_the_rest_follows_it() -> None:
    settings = filled(
        "mrpc", "base", examples=3_668, train__batch_size=16, optimizer__lr=1e-4, tune__dropout=0.2, train__eval_every=7
    )
    assert (settings.train.batch_size, settings.optimizer.lr, settings.tune.dropout) == (16, 1e-4, 0.2)
    assert settings.train.steps == 1600, "as many epochs in smaller steps"
    assert settings.optimizer.warmup_steps == 400
    assert settings.train.eval_every == 7
    assert filled("mrpc", "base", examples=3_668, tune__epochs=1.0).train.steps == 115
    assert filled("mrpc", "base", examples=3_668, train__steps=10).train.steps == 10
    assert filled("mrpc", "tiny", examples=3_668, tune__rule="table14").train.steps == 800
    assert resolve(settings, preset("base"), row=None, examples=1, items=1, dev=1) == settings, "nothing is left open"


def test_a_small_models_pooler_is_new_unless_tuned_frozen_or_told() -> None:
    row, small = TABLE_14["mrpc"], preset("small")
    assert filled("mrpc", "small", examples=3_668).tune.pooler == "new"
    assert filled("mrpc", "base", examples=3_668).tune.pooler == "kept", "as in the paper"
    assert filled("mrpc", "small", examples=3_668, tune__freeze="encoder").tune.pooler == "kept"
    assert filled("mrpc", "small", examples=3_668, tune__pooler="kept").tune.pooler == "kept"
    tuned = resolve(FinetuneSettings(), small, row=row, examples=100, items=100, dev=10, tuned=True)
    assert tuned.tune.pooler == "kept"


def test_contradictions_are_refused() -> None:
    with pytest.raises(UsageError, match="no such task; it has cola"):
        filled("classification", "base", examples=100, tune__rule="table14")
    with pytest.raises(UsageError, match=r"tune\.rule='table14'"):
        filled("mrpc", "base", examples=100, optimizer__lr="paper")


def test_lengths_are_the_tables_the_tasks_or_the_models() -> None:
    given = FinetuneSettings()
    row = table_row("mrpc", TASK, model="base")
    assert resolve_length(given, TASK, preset("base"), row=row) == 512
    assert resolve_length(given, TASK, preset("small"), row=row) == 128
    short = preset("small").with_settings({"max_position_embeddings": 64})
    assert resolve_length(given, TASK, short, row=None) == 64
