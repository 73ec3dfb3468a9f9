"""How texts are read where nobody said: room, windows, capitals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from albert.errors import UsageError
from albert.finetune import finetune
from albert.finetune import reading as reading_module
from albert.finetune.preparation import prepare
from albert.finetune.reading import reading, room_for, with_capitals
from albert.finetune.settings import FinetuneSettings
from albert.finetune.start import Start
from albert.labelled.request import Opened
from albert.tasks.classification import Classification, TextExample
from albert.tasks.tagging import TagExample, Tagging
from albert.tasks.task import Splits

MakeData = Callable[..., Opened]
MakeSettings = Callable[..., FinetuneSettings]


def test_nearly_all_texts_get_the_room_they_need_as_far_as_the_model_has_positions(
    opened: MakeData, model_folder: Path, settings: MakeSettings
) -> None:
    start = Start.find(str(model_folder))
    positions = start.config.max_position_embeddings
    task = replace(opened().task, max_length=16)  # type: ignore[type-var]

    def texts(words: int, count: int) -> list[TextExample]:
        return [TextExample(" ".join(["cat"] * words), target=0)] * count

    def tokens(words: int) -> int:
        return len(start.tokenizer.encode(" ".join(["cat"] * words))) + 2

    assert room_for(task, [*texts(20, 98), *texts(40, 2)], start) == tokens(20), "two of a hundred are cut"
    assert room_for(task, [*texts(20, 90), *texts(40, 10)], start) == tokens(40)
    assert room_for(task, texts(5_000, 3), start) == positions
    assert room_for(task, [], start) == 0
    data = replace(opened(), splits=Splits([*texts(5_000, 8), TextExample("ship", target=1)], {"dev": texts(3, 4)}))
    whole = prepare(data, str(model_folder), settings(tune__long="first")).task
    assert (whole.max_length, whole.long) == (positions, "first"), "by the rule by size"  # type: ignore[attr-defined]
    fixed = prepare(data, str(model_folder), settings(data__max_length=24)).task
    assert (fixed.max_length, fixed.long) == (24, "first"), "as asked for"  # type: ignore[attr-defined]


@pytest.fixture
def long_texts(opened: MakeData) -> Opened:
    """Texts of which all are longer than the task's 16 tokens."""
    rows = [TextExample("the cat sat " * 20, target=0), TextExample("the ship came " * 20, target=1)] * 8
    task = replace(opened().task, max_length=16)  # type: ignore[type-var]
    return replace(opened(), task=task, splits=Splits(rows, {"dev": rows[:4]}))


def test_a_small_model_reads_long_texts_in_windows(
    long_texts: Opened, model_folder: Path, settings: MakeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = prepare(long_texts, str(model_folder), settings())
    assert (prepared.task.long, prepared.task.max_length) == ("mean", 16)  # type: ignore[attr-defined]
    windows = prepared.task.encode(long_texts.splits.train[0], prepared.start.tokenizer)
    assert len(windows) > 1
    assert prepared.items.examples == 16
    assert len(prepared.items.items) == 16, "the windows of a text stay together"
    assert prepared.items.sequences == 16 * len(windows)
    assert {feature.target for item in prepared.items.items for feature in item} == {0, 1}  # type: ignore[attr-defined]
    (note,) = [note for note in prepared.notes if "windows" in note]
    assert note.startswith(f"16 training texts are read in {16 * len(windows)} windows of at most 16 tokens: a text")
    asked = prepare(long_texts, str(model_folder), settings(tune__long="mean"))
    assert (asked.task, asked.items) == (prepared.task, prepared.items), "what the rule says may be asked for"
    pairs = [replace(one, pair="a bird") for one in long_texts.splits.train]
    start = prepared.start
    assert reading(long_texts.task, pairs, start, settings(), row=None).long == "first"  # type: ignore[attr-defined]
    as_asked, by_rule = (
        reading(long_texts.task, pairs, start, settings(**given), row=None).max_length
        for given in ({"tune__long": "mean"}, {})
    )
    assert as_asked == by_rule > 16, "pairs have no windows, so they have room"
    monkeypatch.setattr(reading_module, "PAPER_WIDTH", 1)
    wide = prepare(long_texts, str(model_folder), settings()).task
    assert wide.long == "first", "a model of the paper reads whole texts"  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match=r"tune.long=mean: is for classification and regression, this is tagging"):
        reading(Tagging(("O",)), [], start, settings(tune__long="mean"), row=None)


def test_a_model_that_learnt_windows_decides_by_them(
    long_texts: Opened, model_folder: Path, settings: MakeSettings, tmp_path: Path
) -> None:
    import albert

    finetune(long_texts, str(model_folder), tmp_path / "run", settings=settings())
    model = albert.load(tmp_path / "run")
    texts = [one.text for one in long_texts.splits.train[:2]]
    assert [one.label for one in model.classify(texts)] == [long_texts.task.labels[0], long_texts.task.labels[1]]  # type: ignore[attr-defined]
    assert model.task is not None
    assert model.task.long == "mean"  # type: ignore[attr-defined]
    card = (tmp_path / "run" / "model" / "README.md").read_text()
    assert "read in windows of 16 tokens, and the mean of their logits decides" in card


def test_a_lower_cased_model_is_shown_which_words_have_capitals(model_folder: Path) -> None:
    start = Start.find(str(model_folder))
    task = Tagging(("O", "B-PER"))
    without, with_case = [TagExample(("peter", "sat"), (1, 0))], [TagExample(("Peter", "sat"), (1, 0))]
    assert with_capitals(task, with_case, start, wanted=None).capitals  # type: ignore[attr-defined]
    assert with_capitals(task, without, start, wanted=None) == task
    assert with_capitals(task, with_case, start, wanted=False) == task
    one_segment = replace(start, config=start.config.with_settings({"type_vocab_size": 1}))
    assert not with_capitals(task, with_case, one_segment, wanted=None).capitals  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="is for tags and models with two segments; the model has 1 segment"):
        with_capitals(task, with_case, one_segment, wanted=True)
    with pytest.raises(UsageError, match="this is classification"):
        with_capitals(Classification(("a", "b")), with_case, start, wanted=True)
