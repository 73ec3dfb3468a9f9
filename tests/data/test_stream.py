"""The endless sequence of batches: the same from any step, for any number of processes, in any company."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import fields
from itertools import islice

import numpy as np
import pytest

from albert.batch import PretrainingBatch
from albert.data.index import epoch_index
from albert.data.settings import ExampleSettings
from albert.data.stream import BatchStream
from albert.errors import DataError, UsageError

OPTIONS = ExampleSettings(max_length=128, seed=11)


@pytest.fixture(scope="module")
def small(make_store):
    """Return a store with about 150 samples an epoch."""
    rng = np.random.default_rng(4)
    return make_store([[rng.integers(5, 1005, rng.integers(1, 40)).tolist() for _ in range(40)] for _ in range(20)])


@pytest.fixture
def stream(small):
    return BatchStream(small, OPTIONS, batch_size=24)


def same(first, second):
    return all(np.array_equal(getattr(first, f.name), getattr(second, f.name)) for f in fields(PretrainingBatch))


def samples(*batches):
    """Take batches apart: what each sample shows and asks, as bytes."""
    found = []
    for batch in batches:
        for number, (start, length) in enumerate(zip(batch.starts, batch.lengths, strict=True)):
            low, high = np.searchsorted(batch.masked_positions, [start, start + length])
            parts = (
                batch.token_ids[start : start + length],
                batch.segment_ids[start : start + length],
                batch.masked_positions[low:high] - start,
                batch.masked_labels[low:high],
                batch.order_labels[number : number + 1],
            )
            found.append(tuple(part.tobytes() for part in parts))
    return found


@pytest.mark.parametrize("step", [0, 3, 17, 200])
def test_any_step_can_be_made_at_once(small, stream, step):
    fresh = BatchStream(small, OPTIONS, batch_size=24)
    straight = next(islice(stream.batches(), step, None))
    assert same(fresh.batch(step), straight[0])
    assert same(next(fresh.batches(step))[0], straight[0])


@pytest.mark.parametrize(("ranks", "micro_batches"), [(1, 1), (2, 1), (3, 1), (1, 5), (2, 3), (24, 1)])
def test_any_number_of_processes_and_micro_batches_makes_the_same_samples(small, stream, ranks, micro_batches):
    whole = samples(*(stream.batch(step) for step in range(9)))
    processes = [
        islice(
            BatchStream(small, OPTIONS, batch_size=24).batches(rank=rank, ranks=ranks, micro_batches=micro_batches), 9
        )
        for rank in range(ranks)
    ]
    together = [
        sample
        for step in zip(*processes, strict=True)
        for share in step
        for micro in share
        for sample in samples(micro)
    ]
    assert together == whole


def test_parts_differ_by_at_most_one_sample(stream):
    sizes = [stream.batch(1, part=part, parts=5).lengths.size for part in range(5)]
    assert sum(sizes) == 24
    assert max(sizes) - min(sizes) <= 1


def test_a_batch_size_regroups_the_same_samples(small, stream):
    other = BatchStream(small, OPTIONS, batch_size=7)
    wanted = samples(*(stream.batch(step) for step in range(7)))
    assert samples(*(other.batch(step) for step in range(24))) == wanted


def test_a_sample_does_not_depend_on_its_company(stream):
    together = samples(stream.samples(2, np.arange(60)))
    for number in (0, 13, 59):
        assert samples(stream.samples(2, np.array([number]))) == [together[number]]
    assert samples(stream.samples(2, np.array([59, 0, 13]))) == [together[59], together[0], together[13]]


def test_a_batch_runs_over_the_end_of_an_epoch(stream):
    size = stream.epoch_size(0)
    step = size // 24
    assert size % 24, "the test needs an epoch that ends inside a batch"
    begins = samples(stream.samples(0, np.arange(step * 24, size)))
    ends = samples(stream.samples(1, np.arange(24 - len(begins))))
    assert samples(stream.batch(step)) == begins + ends


def test_a_batch_may_be_larger_than_an_epoch(small):
    large = BatchStream(small, OPTIONS, batch_size=1000)
    assert large.batch(0).lengths.size == 1000
    assert len(large.epoch_sizes) > 1


def test_epochs_hold_all_text_once_each_in_another_order_with_other_masks(small, stream):
    texts = []
    for epoch in range(2):
        tokens = []
        for batch in stream.one_epoch(epoch):
            original = batch.token_ids.copy()
            original[batch.masked_positions] = batch.masked_labels
            tokens.append(original[original >= 5])
        texts.append(np.concatenate(tokens))
        stored = np.concatenate([shard.tokens for shard in small.shards])
        assert np.array_equal(np.sort(texts[-1]), np.sort(stored))
    assert not np.array_equal(texts[0], texts[1])
    assert not set(samples(*stream.one_epoch(0))) & set(samples(*stream.one_epoch(1)))


def test_seeds_give_other_samples(small, stream):
    other = BatchStream(small, ExampleSettings(max_length=128, seed=12), batch_size=24)
    assert not set(samples(stream.batch(0))) & set(samples(other.batch(0)))


def test_evaluation_sees_one_epoch_once_on_any_number_of_processes(stream):
    whole = samples(*stream.one_epoch())
    assert len(whole) == stream.epoch_size(0)
    shared = [sample for rank in range(3) for sample in samples(*stream.one_epoch(rank=rank, ranks=3))]
    assert sorted(shared) == sorted(whole)


@pytest.mark.parametrize(("objective", "digest"), [("sop", "8b9be0e556b99992"), ("nsp", "2044f218a6f6ab2b")])
def test_the_samples_of_a_seed_never_change(make_store, objective, digest):
    """Resumes, caches and published runs rest on this: other bytes mean another meaning of every seed."""
    documents = [[[5 + (7 * i + j * j) % 1000 for j in range(3 + i % 37)] for i in range(n, n + 50)] for n in range(9)]
    options = ExampleSettings(max_length=128, objective=objective, seed=2019)
    stream = BatchStream(make_store(documents, per_shard=4), options, batch_size=24)
    found = hashlib.sha256(repr(samples(stream.batch(0), stream.batch(30))).encode()).hexdigest()
    assert found[:16] == digest


def test_a_resume_with_epoch_sizes_counts_nothing_again(small, stream, monkeypatch):
    late = stream.batch(40)
    built = []

    def build(store, settings, epoch, **options):
        built.append(epoch)
        return epoch_index(store, settings, epoch, **options)

    monkeypatch.setattr("albert.data.stream.epoch_index", build)
    resumed = BatchStream(small, OPTIONS, batch_size=24, epoch_sizes=stream.epoch_sizes)
    assert same(resumed.batch(40), late)
    assert len(stream.epoch_sizes) > 3
    assert built == [len(stream.epoch_sizes) - 1]


def test_epoch_sizes_of_another_run_are_refused(small, stream):
    stream.batch(0)
    wrong = BatchStream(small, OPTIONS, batch_size=24, epoch_sizes=[stream.epoch_sizes[0] + 1])
    with pytest.raises(DataError, match="another store or other settings"):
        wrong.batch(0)


def test_a_cache_folder_changes_nothing(small, stream, tmp_path):
    cached = BatchStream(small, OPTIONS, batch_size=24, cache=tmp_path / "indices")
    for step in (0, 20, 5):
        assert same(cached.batch(step), stream.batch(step))
    assert list((tmp_path / "indices").iterdir())


def test_the_thread_ends_with_its_reader(stream):
    before = threading.active_count()
    batches = stream.batches(ahead=3)
    next(batches)
    assert threading.active_count() == before + 1
    batches.close()
    assert threading.active_count() == before


def test_an_error_in_the_thread_reaches_the_reader(stream, monkeypatch):
    monkeypatch.setattr(stream, "_make", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        next(stream.batches())


def test_bad_sizes_and_empty_stores_are_refused(small, make_store):
    with pytest.raises(UsageError, match="batch_size=0 is out of range"):
        BatchStream(small, OPTIONS, batch_size=0)
    with pytest.raises(UsageError, match="can't be divided into 3 parts"):
        BatchStream(small, OPTIONS, batch_size=2).batch(0, parts=3)
    with pytest.raises(DataError, match="holds no text"):
        BatchStream(make_store([]), OPTIONS, batch_size=2)
