"""What is said before a training: texts that are cut, case that is lost; and settings that can't be meant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from albert.errors import UsageError
from albert.finetune.job import encode_items
from albert.finetune.notes import case_notes, cut_notes, markup_notes
from albert.finetune.preparation import prepare
from albert.finetune.settings import FinetuneSettings
from albert.finetune.start import Start
from albert.labelled.request import Opened
from albert.optim import OptimizerSettings, warmup
from albert.tasks.classification import TextExample
from albert.tasks.tagging import TagExample, Tagging
from albert.tasks.task import Splits

MakeData = Callable[..., Opened]
MakeSettings = Callable[..., FinetuneSettings]


def test_it_is_said_how_many_texts_are_cut_and_how_much_of_them(
    opened: MakeData, model_folder: Path, settings: MakeSettings
) -> None:
    short = [TextExample("the cat sat", target=0), TextExample("the ship came", target=1)] * 6
    long = [TextExample("the cat sat " * 20, target=1)] * 4  # 60 words, of which 14 are read
    data = replace(opened(), splits=Splits([*short, *long], {"dev": short}))
    notes = prepare(data, str(model_folder), settings(data__max_length=16)).notes
    (note,) = [note for note in notes if "are cut" in note]
    tokens = len(Start.find(str(model_folder)).tokenizer.encode(long[0].text)) + 2
    assert note.startswith("4 of 16 training texts are longer than 16 tokens and are cut: ")
    assert f"{1 - 16 / tokens:.0%} of their tokens are not read (--set data.max_length=32 reads more)" in note
    whole = prepare(replace(data, splits=Splits(short, {"dev": short})), str(model_folder), settings()).notes
    assert not any("cut" in note for note in whole)


def test_a_text_that_just_fits_is_not_cut(opened: MakeData, model_folder: Path) -> None:
    start, task = Start.find(str(model_folder)), replace(opened().task, max_length=16)  # type: ignore[type-var]
    text = "cat"
    while len(start.tokenizer.encode(text)) < 14:
        text += " cat"
    text = start.tokenizer.decode(start.tokenizer.encode(text)[:14])
    example = TextExample(text, target=0)
    items = encode_items(task, [example], start.tokenizer)
    assert items.longest == 16
    assert cut_notes(task, [example], items, start) == []


def test_it_is_said_how_a_lower_cased_model_learns_of_capitals(model_folder: Path) -> None:
    start = Start.find(str(model_folder))
    task = Tagging(("O", "B-PER"))
    without, with_case = [TagExample(("peter", "sat"), (1, 0))], [TagExample(("Peter", "sat"), (1, 0))]
    (note,) = case_notes(replace(task, capitals=True), with_case, start)
    assert note.startswith("50% of the words have capitals, which the model's lower-cased vocabulary loses: they are")
    assert case_notes(task, with_case, start)[0].startswith("warning: 50% of the words have capitals")
    assert "tune.capitals=true" in case_notes(task, with_case, start)[0]
    one_segment = replace(start, config=start.config.with_settings({"type_vocab_size": 1}))
    assert "tune.capitals" not in case_notes(task, with_case, one_segment)[0], "it has nothing to mark them with"
    assert case_notes(task, without, start) == []


def test_html_tags_are_said_to_be_read_as_text() -> None:
    plain = [TextExample("if a<b and b>c, the ship is late", target=0)] * 18
    assert markup_notes(plain) == []
    (note,) = markup_notes([*plain, *[TextExample("lovely.<br /><br />Or not.", target=1)] * 2])
    assert note.startswith("2 of 20 training texts hold HTML tags such as <br />")


def test_a_warm_up_that_does_not_end_is_refused_or_fitted_and_late_evaluations_are_fitted(
    opened: MakeData, model_folder: Path, settings: MakeSettings, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(UsageError, match=r"optimizer.warmup_steps=60 does not end within the run of 60 steps: use 6"):
        prepare(opened(), str(model_folder), settings(optimizer__warmup_steps=60))
    assert warmup(OptimizerSettings(warmup_steps=500), batch_size=8, steps=100) == 50
    assert "warmup_steps=500 does not end within the run of 100 steps: 50 are taken" in caplog.text
    assert prepare(opened(), str(model_folder), settings(train__eval_every=500)).settings.train.eval_every == 60
