"""Segment pairs as the model will see them: rebuilt from a batch and looked up in the store."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albert.data.index import epoch_index
from albert.data.pairs import TokenReader, make_pairs
from albert.data.pieces import Pieces
from albert.data.randomness import epoch_key, keyed
from albert.data.settings import ExampleSettings
from albert.data.stream import BatchStream
from albert.errors import UsageError

CLS, SEP = 2, 3
START, INNER = 5, 705


def read(batch):
    """Undo the masks and take the sequences apart: a list of (A, B or None, label)."""
    tokens = batch.token_ids.copy()
    tokens[batch.masked_positions] = batch.masked_labels
    found = []
    for start, length, label in zip(batch.starts, batch.lengths, batch.order_labels.tolist(), strict=True):
        text, segment = tokens[start : start + length], batch.segment_ids[start : start + length]
        assert text[0] == CLS
        assert text[-1] == SEP
        ends = np.flatnonzero(text == SEP)
        assert ends.size in (1, 2)
        assert np.count_nonzero(text == CLS) == 1
        assert not segment[: ends[0] + 1].any()
        assert segment[ends[0] + 1 :].all()
        found.append((text[1 : ends[0]], text[ends[0] + 1 : -1] if ends.size == 2 else None, label))
    return found


def numbered(sizes):
    """Make documents in which every token is unique, so that a text says where it comes from."""
    tokens = iter(range(5, 705))
    return [[[next(tokens) for _ in range(size)] for size in document] for document in sizes]


def everything(store, **options):
    stream = BatchStream(store, ExampleSettings(**{"max_length": 64} | options), batch_size=32)
    return [pair for batch in stream.one_epoch() for pair in read(batch)]


documents = st.lists(st.lists(st.integers(1, 23), min_size=1, max_size=6), min_size=2, max_size=5)


@settings(deadline=None, derandomize=True, max_examples=50)
@given(sizes=documents, seed=st.integers(0, 99))
def test_sop_segments_are_consecutive_and_the_label_tells_their_order(make_store, sizes, seed):
    store = make_store(numbered(sizes), per_shard=2)
    seen = []
    for first, second, label in everything(store, seed=seed):
        if second is None:
            assert label == -1
            assert first.size == 1, "every token is a word here: only a single one can't be divided"
            text = first
        else:
            assert label in (0, 1)
            text = np.concatenate([first, second] if label == 0 else [second, first])
        assert np.array_equal(text, np.arange(text[0], text[0] + text.size)), "consecutive, in the document's order"
        seen.extend(text.tolist())
    assert sorted(seen) == list(range(5, 5 + store.num_tokens)), "every token once an epoch"


@settings(deadline=None, derandomize=True, max_examples=50)
@given(sizes=documents, seed=st.integers(0, 99))
def test_nsp_segments_are_consecutive_or_of_two_documents_as_the_label_tells(make_store, sizes, seed):
    texts = numbered(sizes)
    owner = {token: number for number, document in enumerate(texts) for sentence in document for token in sentence}
    for first, second, label in everything(make_store(texts, per_shard=2), seed=seed, objective="nsp"):
        if second is None:
            assert label == -1
        elif label == 1:
            assert owner[first[0]] != owner[second[0]]
            assert owner[second[0]] == owner[second[-1]]
        else:
            assert label in (0, -1)
            assert second[0] == first[-1] + 1


def test_without_an_objective_pairs_are_in_order_and_have_no_label(english):
    sop = BatchStream(english, ExampleSettings(max_length=128), batch_size=64).batch(0)
    none = BatchStream(english, ExampleSettings(max_length=128, objective="none"), batch_size=64).batch(0)
    assert (none.order_labels == -1).all()
    assert np.array_equal(none.lengths, sop.lengths)
    for (first, second, _), (other_first, other_second, label) in zip(read(none), read(sop), strict=True):
        if label == 1:
            first, second = second, first
        assert np.array_equal(first, other_first)
        assert np.array_equal(second, other_second)


@pytest.mark.parametrize("objective", ["sop", "nsp"])
def test_half_of_the_labels_are_one(english, objective):
    stream = BatchStream(english, ExampleSettings(max_length=128, objective=objective), batch_size=1000)
    labels = np.concatenate([batch.order_labels for batch in stream.one_epoch()])
    labels = labels[labels >= 0]
    assert labels.size > 10_000
    assert abs(labels.mean() - 0.5) < 5 * 0.5 / np.sqrt(labels.size)


def test_the_order_can_not_be_told_from_lengths_or_from_broken_sentences(make_store):
    """Every sentence begins with 5 and ends with 6: swapped or not, so do the segments."""
    rng = np.random.default_rng(0)
    store = make_store([[[5, *[7] * int(size), 6] for size in rng.integers(1, 30, 200)] for _ in range(40)])
    first_lengths = {0: [], 1: []}
    for first, second, label in everything(store, max_length=128):
        ends = [first[0], first[-1], second[0], second[-1]]
        if ends == [5, 6, 5, 6]:
            first_lengths[label].append(first.size / (first.size + second.size))
        else:
            assert 6 not in first[:-1], "only a sample of one sentence is cut inside it"
            assert 6 not in second[:-1]
    shares = [np.mean(lengths) for lengths in first_lengths.values()]
    count = min(map(len, first_lengths.values()))
    assert count > 400
    assert abs(shares[0] - shares[1]) < 5 * 0.3 * np.sqrt(2 / count)


def test_one_sentence_is_cut_at_a_word_of_its_own(make_store):
    sentence = [START, INNER, INNER, START + 1, START + 2, INNER]
    pairs = everything(make_store([[sentence]] * 400), short_prob=0)
    cuts = []
    for first, second, label in pairs:
        assert label in (0, 1)
        first, second = (first, second) if label == 0 else (second, first)
        assert [*first, *second] == sentence
        cuts.append(first.size)
    counts = np.bincount(cuts, minlength=6)
    assert np.flatnonzero(counts).tolist() == [3, 4], "before the second and the third word"
    assert abs(counts[3] - 200) < 5 * 10


def test_one_word_stays_whole_and_has_no_label(make_store):
    for objective in ("sop", "none"):
        ((first, second, label),) = everything(make_store([[[START, INNER, INNER]]]), objective=objective)
        assert (first.tolist(), second, label) == ([START, INNER, INNER], None, -1)


def test_one_sentence_has_no_label_in_nsp(make_store):
    pairs = everything(make_store([[[START] * 9]] * 50), objective="nsp")
    assert len(pairs) == 50
    assert {label for _, _, label in pairs} == {-1}


def test_a_part_of_a_long_word_counts_as_a_word(make_store):
    for first, second, _ in everything(make_store([[[START] + [INNER] * 500]])):
        assert second is None
        assert first.size <= 61


@pytest.mark.parametrize("length", [64, 512, 8192])
def test_no_sequence_is_longer_than_asked(english, length):
    batch = BatchStream(english, ExampleSettings(max_length=length), batch_size=200).batch(0)
    assert batch.lengths.max() <= length
    assert batch.lengths.max() > 0.95 * length or length == 8192


def test_a_segment_begins_with_a_word_even_where_a_long_word_was_split(make_store):
    store = make_store([[[START] + [INNER] * 150, [START] * 9]] * 20)
    rows = epoch_index(store, ExampleSettings(max_length=64, short_prob=0), 0)
    pieces = Pieces.of(store.tokenizer)
    keys = keyed(epoch_key(0, 0), np.arange(rows.size))
    pairs = make_pairs(TokenReader(store), rows, keys=keys, pieces=pieces, settings=ExampleSettings())
    special = np.isin(pairs.token_ids, [CLS, SEP])
    after = np.flatnonzero(special[:-1]) + 1
    assert pairs.starts[special].all()
    assert pairs.starts[after].all()
    inner = (pairs.token_ids == INNER) & ~np.isin(np.arange(special.size), after)
    assert not pairs.starts[inner].any()
    assert (pairs.token_ids[after] == INNER).sum() > 20, "the test meets such segments, as first and as second"
    assert pairs.segment_ids[after][pairs.token_ids[after] == INNER].any()


@pytest.mark.parametrize("objective", ["sop", "none"])
def test_overlapping_segments_are_one_half_of_a_chunk_and_the_same_moved_on(make_store, objective):
    store = make_store(numbered([[9, 12, 7, 20, 11], [30, 5, 18], [14] * 6]), per_shard=2)
    plain = everything(store, short_prob=0, objective=objective)
    moves, first_is_earlier = [], []
    for (a, b, _), (first, second, label) in zip(
        plain, everything(store, short_prob=0, objective=objective, overlap=1), strict=True
    ):
        assert label == -1
        assert len(first) == len(second) == (len(a) + len(b)) // 2
        begin = min(first[0], second[0])
        assert begin == min(a[0], b[0])
        assert abs(first[0] - second[0]) <= len(first) // 2
        for segment in (first, second):
            assert (np.diff(segment) == 1).all()
            assert segment[-1] <= max(a[-1], b[-1])
        moves.append(abs(int(first[0] - second[0])))
        first_is_earlier.append(first[0] <= second[0])
    assert len(set(moves)) > 2
    assert len(set(first_is_earlier)) == 2


def test_a_share_of_the_pairs_overlaps_and_the_others_are_as_they_were(make_store):
    store = make_store([[[START] * 20] * 3] * 600)
    plain, some = everything(store, short_prob=0), everything(store, short_prob=0, overlap=0.3)
    changed = sum(label == -1 for _, _, label in some)
    assert abs(changed / len(some) - 0.3) < 0.06
    for (a, b, label), (first, second, other_label) in zip(plain, some, strict=True):
        if other_label != -1:
            assert (len(a), len(b), label) == (len(first), len(second), other_label)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"overlap": 1.5}, "overlap=1.5"), ({"overlap": 0.1, "objective": "nsp"}, "not with objective"),
     ({"alone": -0.1}, "alone=-0.1"), ({"alone": 0.1, "objective": "nsp"}, "alone=0.1 .* not with objective")],
)  # fmt: skip
def test_an_impossible_share_is_refused(options, said):
    with pytest.raises(UsageError, match=said):
        ExampleSettings(**options)


@pytest.mark.parametrize("objective", ["sop", "none"])
def test_a_text_alone_is_the_whole_chunk_in_one_segment(make_store, objective):
    store = make_store(numbered([[9, 12, 7, 20, 11], [30, 5, 18], [14] * 6]), per_shard=2)
    plain = everything(store, short_prob=0, objective=objective)
    for (a, b, _), (first, second, label) in zip(
        plain, everything(store, short_prob=0, objective=objective, alone=1), strict=True
    ):
        assert label == -1
        assert second is None
        assert first.tolist() == sorted([*a, *b])


def test_shares_of_overlapping_pairs_and_texts_alone_add_up(make_store):
    store = make_store([[[START] * 20] * 3] * 600)
    found = everything(store, short_prob=0, overlap=0.2, alone=0.5)
    alone = sum(second is None for _, second, _ in found) / len(found)
    labelled = sum(label != -1 for _, _, label in found) / len(found)
    assert abs(alone - 0.5 * 0.8) < 0.06, "of those that do not overlap"
    assert abs(labelled - 0.5 * 0.8) < 0.06
