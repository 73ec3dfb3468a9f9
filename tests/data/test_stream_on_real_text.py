"""The promises of training examples, counted on real text: Wikipedia with the official vocabulary."""

from __future__ import annotations

import numpy as np
import pytest

from albert.data.build import BuildSettings, build_store
from albert.data.engines import LocalEngine
from albert.data.settings import ExampleSettings
from albert.data.stream import BatchStream
from albert.tokenizer import Tokenizer

CLS, SEP, MASK = 2, 3, 4


@pytest.fixture(scope="module")
def store(real_data, tmp_path_factory):
    built = build_store(
        [real_data / "corpus" / "wiki.valid.txt.xz"],
        tmp_path_factory.mktemp("wiki"),
        tokenizer=Tokenizer.load(real_data / "vocab" / "spiece.model"),
        settings=BuildSettings(),
        engine=LocalEngine(1),
    )
    return built.store


@pytest.fixture(scope="module")
def batches(store):
    stream = BatchStream(store, ExampleSettings(max_length=512, seed=1), batch_size=500)
    return [batch for epoch in (0, 1) for batch in stream.one_epoch(epoch)]


def unmasked(batch):
    tokens = batch.token_ids.copy()
    tokens[batch.masked_positions] = batch.masked_labels
    return tokens


def test_rate_and_eighty_ten_ten(batches, store):
    now = np.concatenate([batch.token_ids[batch.masked_positions] for batch in batches])
    then = np.concatenate([batch.masked_labels for batch in batches])
    assert then.size > 200_000
    assert then.size / sum(batch.token_ids.size for batch in batches) == pytest.approx(0.15, abs=0.001)
    by_chance = 0.1 / (store.tokenizer.vocab_size - 5)  # a random piece may be the one that stood there
    for share, found in ((0.8, (now == MASK).mean()), (0.1 + by_chance, (now == then).mean())):
        assert abs(found - share) < 5 * np.sqrt(share * (1 - share) / then.size)
    assert then.min() >= 5, "nothing special is hidden, <unk> included"
    assert now[now != MASK].min() >= 5, "nothing special is made"


def test_only_whole_words_are_hidden(batches, store):
    starts = store.tokenizer.word_starts
    for batch in batches:
        tokens = unmasked(batch)
        hidden = np.zeros(tokens.size, dtype=bool)
        hidden[batch.masked_positions] = True
        inner = np.flatnonzero(~starts[tokens] & (tokens != CLS) & (tokens != SEP))
        inner = inner[~np.isin(tokens[inner - 1], [CLS, SEP])]
        assert np.array_equal(hidden[inner], hidden[inner - 1])


@pytest.fixture(scope="module")
def text(store):
    """Return all tokens in one row, and where in it sentences and documents begin."""
    offsets = np.cumsum([0, *(shard.tokens.size for shard in store.shards)])
    shards = list(zip(store.shards, offsets, strict=False))
    sentences = np.unique(np.concatenate([offset + shard.sentences for shard, offset in shards]))
    documents = np.unique(np.concatenate([offset + shard.sentences[shard.documents] for shard, offset in shards]))
    return np.concatenate([shard.tokens for shard in store.shards]).astype(np.int64), sentences, documents


def test_every_pair_is_consecutive_text_of_one_document_and_all_text_is_seen_once_an_epoch(store, text):
    tokens, sentences, documents = text
    places_by_opening = {}
    for place in sentences[:-1].tolist():
        places_by_opening.setdefault(tokens[place : place + 3].tobytes(), []).append(place)
    seen = np.zeros(tokens.size, dtype=int)
    at_sentences, labels = 0, []
    for pair, label in _pairs(BatchStream(store, ExampleSettings(max_length=512, seed=1), batch_size=500)):
        assert len(pair) == (1 if label == -1 else 2)
        whole = np.concatenate(pair[::-1] if label == 1 else pair)
        place = next(
            place
            for place in places_by_opening.get(whole[:3].tobytes(), range(tokens.size))
            if np.array_equal(tokens[place : place + whole.size], whole) and not seen[place]
        )
        seen[place : place + whole.size] += 1
        owner = np.searchsorted(documents, [place, place + whole.size - 1], side="right")
        assert owner[0] == owner[1], "one document"
        at_sentences += place + pair[-1 if label == 1 else 0].size in sentences
        labels.append(label)
    assert (seen == 1).all()
    labels = np.array(labels)
    assert abs(labels[labels >= 0].mean() - 0.5) < 5 * 0.5 / np.sqrt(labels.size)
    assert (labels == -1).mean() < 0.002
    assert at_sentences / labels.size > 0.97, "but for samples of one sentence, segments meet at a sentence boundary"


def _pairs(stream):
    """Read an epoch as the segments and the label of each sample."""
    for batch in stream.one_epoch():
        tokens = unmasked(batch)
        for start, length, label in zip(batch.starts, batch.lengths, batch.order_labels.tolist(), strict=True):
            inside = tokens[start + 1 : start + length - 1]
            first, *second = np.split(inside, np.flatnonzero(inside == SEP))
            yield [first, *(part[1:] for part in second)], label
