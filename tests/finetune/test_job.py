"""Which items make which batch, and how they are divided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from albert.finetune.job import _micro_batches, batch_items, encode_items
from albert.labelled.request import Opened
from albert.tasks.choice import Choice, ChoiceExample
from albert.tasks.classification import Classification, TextFeature
from albert.tasks.span import QuestionExample, SpanTask
from albert.tasks.task import Feature
from albert.tokenizer import Tokenizer

TASK = Classification(("0", "1"))


def test_every_item_comes_once_an_epoch_in_an_order_of_its_own() -> None:
    items = [[Feature([number], [0])] for number in range(10)]
    drawn = [[item[0].token_ids[0] for item in batch_items(items, step, batch_size=4, seed=3)] for step in range(10)]
    flat = [number for batch in drawn for number in batch]
    epochs = [flat[i : i + 10] for i in range(0, 40, 10)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4
    other = [item[0].token_ids[0] for item in batch_items(items, 0, batch_size=10, seed=4)]
    assert other != epochs[0]
    large = Counter(item[0].token_ids[0] for item in batch_items(items, 0, batch_size=25, seed=3))
    assert set(large.values()) == {2, 3}


def test_choices_stay_together_and_windows_go_apart(tokenizer: Tokenizer, opened: Callable[..., Opened]) -> None:
    passage = "the cat sat " * 30
    choices = encode_items(Choice(num_choices=3), [ChoiceExample(passage, "who", ("a", "b", "c"), 1)] * 2, tokenizer)
    assert [len(item) for item in choices.items] == [3, 3]
    spans = SpanTask(max_length=32, stride=8, max_question=8)
    windows = encode_items(spans, [QuestionExample("who", passage, ())], tokenizer)
    assert len(windows.items) > 3
    assert all(len(item) == 1 for item in windows.items)
    assert (windows.examples, windows.sequences) == (1, len(windows.items))
    texts = encode_items(TASK, opened().splits.train, tokenizer)
    assert texts.longest <= TASK.max_length
    assert texts.tokens == sum(len(item[0].token_ids) for item in texts.items)


def test_micro_batches_divide_between_items_only() -> None:
    items = [[Feature([0] * 3000, [0] * 3000)] * 2 for _ in range(6)]
    assert [len(batch) for batch in _micro_batches(items, size=None)] == [4, 4, 4]
    assert [len(batch) for batch in _micro_batches(items, size=5)] == [10, 2]


def test_windows_of_long_texts_never_fill_a_micro_batch_with_more_tokens_than_fit() -> None:
    window, more = (TextFeature([0] * 3000, [0] * 3000, 0, goes_on) for goes_on in (False, True))
    texts = [[window, more]] * 6
    assert [len(batch) for batch in _micro_batches(texts, size=5)] == [4, 4, 4]
    assert [len(batch) for batch in _micro_batches(texts, size=1)] == [2] * 6
