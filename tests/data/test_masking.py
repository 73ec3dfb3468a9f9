"""n-gram masking: whole words, the right mix, the right share, nothing special, and no word of a neighbour."""

from __future__ import annotations

import numpy as np
import pytest

from albert.data.masking import budgets, choose_spans, draw_sizes, find_words, mask_ngrams
from albert.data.pieces import Pieces
from albert.data.randomness import Purpose, epoch_key, hashes, keyed, uniform
from albert.data.settings import ExampleSettings
from albert.data.stream import BatchStream

CLS, SEP, MASK, UNK = 2, 3, 4, 1
START, INNER = 5, 705


@pytest.fixture(scope="module")
def pieces(english):
    return Pieces.of(english.tokenizer)


def lay_out(texts, pieces):
    """Return tokens, lengths and word starts of texts that are whole sequences already."""
    tokens = np.array([token for text in texts for token in text])
    lengths = np.array([len(text) for text in texts])
    starts = pieces.word_starts[tokens] | np.isin(tokens, [CLS, SEP])
    starts[1:] |= np.isin(tokens[:-1], [CLS, SEP])  # a segment begins with a word, whatever its first piece
    return tokens, lengths, starts


def keys_of(count, seed=0):
    return keyed(epoch_key(seed, 0), np.arange(count))


def random_texts(rng, count, *, length, inner=0.23):
    texts = []
    for _ in range(count):
        text = np.where(rng.random(length) < inner, rng.integers(705, 1005, length), rng.integers(5, 705, length))
        text[[0, int(rng.integers(2, length - 2)), -1]] = CLS, SEP, SEP
        texts.append(text.tolist())
    return texts


def words_of(text, pieces):
    """Divide one sequence into words, the plain way: lists of positions, and None at a barrier."""
    words = []
    for position, token in enumerate(text):
        if token in (CLS, SEP) or pieces.word_starts[token] or text[position - 1] in (CLS, SEP):
            words.append([position])
        else:
            words[-1].append(position)
    return [None if any(pieces.special[text[i]] for i in word) else word for word in words]


def reference_positions(text, *, key, pieces, options):
    """Choose positions as the paper's code does, one candidate after the other."""
    words = words_of(text, pieces)
    budget = max(1, round(len(text) * options.mask_prob))
    if options.max_predictions is not None:
        budget = min(budget, options.max_predictions)
    numbers = np.arange(len(words))
    tickets = hashes(key, Purpose.ORDER, numbers) >> np.uint64(33)
    thresholds = np.cumsum([1 / n for n in range(1, options.max_ngram + 1)])
    drawn = uniform(key, Purpose.NGRAM, numbers) * thresholds[-1]
    hidden = set()
    for number in sorted(numbers.tolist(), key=lambda n: (tickets[n], n)):
        if words[number] is None:
            continue
        size = int(np.searchsorted(thresholds, drawn[number], side="right")) + 1
        span = []
        for word in words[number : number + size]:
            if word is None:
                break
            span.append(word)
        while len(span) > 1 and len(hidden) + sum(map(len, span)) > budget:
            span.pop()
        positions = {position for word in span for position in word}
        if len(hidden) + len(positions) <= budget and not positions & hidden:
            hidden |= positions
    return sorted(hidden)


@pytest.mark.parametrize("seed", range(40))
def test_the_choice_is_that_of_the_papers_code_word_by_word(pieces, seed):
    rng = np.random.default_rng(seed)
    texts = [random_texts(rng, 1, length=int(rng.integers(6, 90)), inner=rng.uniform(0, 0.6))[0] for _ in range(9)]
    for text in texts[::2]:
        text[int(rng.integers(1, len(text) - 1))] = UNK
    texts.append([CLS, 5, SEP])
    rate, max_ngram, cap = rng.choice([0.01, 0.15, 0.5, 1.0]), int(rng.integers(1, 6)), rng.choice([None, None, 1, 3])
    options = ExampleSettings(mask_prob=float(rate), max_ngram=max_ngram, max_predictions=cap)
    tokens, lengths, starts = lay_out(texts, pieces)
    keys = keys_of(len(texts), seed)
    masked = mask_ngrams(tokens, lengths, starts=starts, keys=keys, pieces=pieces, settings=options)
    begin = np.cumsum(lengths) - lengths
    expected = [
        begin[number] + position
        for number, text in enumerate(texts)
        for position in reference_positions(text, key=keys[number : number + 1], pieces=pieces, options=options)
    ]
    assert masked.positions.tolist() == expected
    assert np.array_equal(masked.labels, tokens[masked.positions])
    untouched = np.setdiff1d(np.arange(tokens.size), masked.positions)
    assert np.array_equal(masked.token_ids[untouched], tokens[untouched])


def test_a_sample_is_masked_the_same_in_any_company(pieces):
    texts = random_texts(np.random.default_rng(0), 20, length=90)
    tokens, lengths, starts = lay_out(texts, pieces)
    options, keys = ExampleSettings(), keys_of(20)
    together = mask_ngrams(tokens, lengths, starts=starts, keys=keys, pieces=pieces, settings=options)
    for number in (0, 7, 19):
        alone = mask_ngrams(
            *lay_out(texts[number : number + 1], pieces)[:2],
            starts=starts[90 * number : 90 * (number + 1)],
            keys=keys[number : number + 1],
            pieces=pieces,
            settings=options,
        )
        assert np.array_equal(alone.token_ids, together.token_ids[90 * number : 90 * (number + 1)])


@pytest.mark.parametrize(
    ("length", "cap", "paper"),
    [(512, None, (0.576, 0.263, 0.161)), (512, 20, (0.577, 0.264, 0.159)), (128, 20, (0.596, 0.265, 0.139))],
)
def test_the_accepted_spans_have_the_mix_of_the_papers_code(pieces, length, cap, paper):
    options = ExampleSettings(max_predictions=cap)
    texts = random_texts(np.random.default_rng(1), 800 if length == 512 else 2000, length=length, inner=0.0)
    tokens, lengths, starts = lay_out(texts, pieces)
    table = find_words(tokens, lengths, starts=starts, pieces=pieces)
    keys = keys_of(len(texts))
    spans = choose_spans(table, budgets(lengths, options), keys=keys, max_ngram=3)
    mix = np.bincount(spans.sizes, minlength=4)[1:] / spans.sizes.size
    # The figures are from a simulation of Google's create_pretraining_data.py, to three digits and without its word
    # lengths: 1.5 points of leeway.
    assert spans.sizes.size > 9000
    assert np.abs(mix - paper).max() < 0.015


def test_the_drawn_sizes_follow_one_over_n(pieces):
    texts = random_texts(np.random.default_rng(2), 500, length=512)
    tokens, lengths, starts = lay_out(texts, pieces)
    table = find_words(tokens, lengths, starts=starts, pieces=pieces)
    for max_ngram in (1, 3, 5):
        sizes = draw_sizes(table, keys=keys_of(500), max_ngram=max_ngram)
        expected = 1 / np.arange(1, max_ngram + 1)
        expected /= expected.sum()
        shares = np.bincount(sizes, minlength=max_ngram + 1)[1:] / sizes.size
        assert np.all(np.abs(shares - expected) <= 5 * np.sqrt(expected * (1 - expected) / sizes.size))


@pytest.fixture(scope="module", params=[128, 512])
def batches(request, english):
    stream = BatchStream(english, ExampleSettings(max_length=request.param, seed=7), batch_size=512)
    return list(stream.one_epoch())


@pytest.fixture(scope="module")
def hidden(batches):
    now = np.concatenate([batch.token_ids[batch.masked_positions] for batch in batches])
    then = np.concatenate([batch.masked_labels for batch in batches])
    assert now.size > 200_000
    return now, then


class TestStatistics:
    """At least 200,000 masked tokens of text with the lengths of English."""

    def test_the_rate_is_fifteen_percent_of_every_sample(self, batches):
        for batch in batches:
            owner = np.searchsorted(batch.starts, batch.masked_positions, side="right") - 1
            counts = np.bincount(owner, minlength=batch.lengths.size)
            budget = np.maximum(1, np.rint(batch.lengths * 0.15))
            assert (counts <= budget).all()
            # All but the last piece or two: a whole word may not fit in what is left.
            assert counts.sum() > 0.995 * budget.sum()
        total = sum(batch.token_ids.size for batch in batches)
        assert sum(batch.masked_positions.size for batch in batches) / total == pytest.approx(0.15, abs=0.001)

    def test_eighty_ten_ten(self, hidden):
        now, then = hidden
        # A random piece is the old one by chance in 1 of 1,000 draws: 10% kept + 0.01%.
        expected = {"mask": 0.8, "kept": 0.1 + 0.0001, "random": 0.1 - 0.0001}
        found = {"mask": (now == MASK).mean(), "kept": (now == then).mean(), "random": 0.0}
        found["random"] = 1 - found["mask"] - found["kept"]
        for name, share in expected.items():
            assert abs(found[name] - share) < 5 * np.sqrt(share * (1 - share) / now.size), name

    def test_the_fate_is_decided_piece_by_piece(self, batches):
        both, pairs = 0, 0
        for batch in batches:
            masked = batch.token_ids[batch.masked_positions] == MASK
            neighbours = (np.diff(batch.masked_positions) == 1) & (batch.masked_labels[1:] >= INNER)  # of one word
            both += np.count_nonzero(masked[1:] & masked[:-1] & neighbours)
            pairs += np.count_nonzero(neighbours)
        assert pairs > 20_000
        assert abs(both / pairs - 0.64) < 5 * np.sqrt(0.64 * 0.36 / pairs)

    def test_nothing_special_is_hidden_or_made(self, hidden):
        now, then = hidden
        assert then.min() >= 5
        assert now[now != MASK].min() >= 5

    def test_replacements_come_from_the_whole_vocabulary(self, hidden):
        now, then = hidden
        made = now[(now != MASK) & (now != then)]
        counts = np.bincount(made - 5, minlength=1000)
        expected = made.size / 1000
        assert abs(((counts - expected) ** 2 / expected).sum() - 999) < 5 * np.sqrt(2 * 999)

    def test_only_whole_words_are_hidden(self, batches):
        for batch in batches:
            original = batch.token_ids.copy()
            original[batch.masked_positions] = batch.masked_labels
            hidden = np.zeros(original.size, dtype=bool)
            hidden[batch.masked_positions] = True
            inner = np.flatnonzero(original >= INNER)
            inner = inner[~np.isin(original[inner - 1], [CLS, SEP])]  # a long word may be split between samples
            assert np.array_equal(hidden[inner], hidden[inner - 1])

    def test_words_of_all_lengths_and_places_are_hidden_alike(self, batches):
        seen, hidden = np.zeros(128), np.zeros(128)
        for batch in batches:
            place = np.arange(batch.token_ids.size) - np.repeat(batch.starts, batch.lengths)
            seen += np.bincount(place, minlength=128)[:128]
            hidden += np.bincount(place[batch.masked_positions], minlength=128)[:128]
        share = (hidden / np.maximum(seen, 1))[5:60]
        assert share.min() > 0.12
        assert share.max() < 0.18


def test_the_cap_of_the_papers_code_holds(english):
    options = ExampleSettings(max_length=512, max_predictions=20, short_prob=0)
    batch = BatchStream(english, options, batch_size=500).batch(0)
    owner = np.searchsorted(batch.starts, batch.masked_positions, side="right") - 1
    assert np.bincount(owner).max() == 20
    full = batch.lengths > 480
    assert np.bincount(owner)[full].mean() / batch.lengths[full].mean() == pytest.approx(0.039, abs=0.003)


def test_every_sample_hides_at_least_one_token_where_it_can(pieces):
    tokens, lengths, starts = lay_out([[CLS, 5, SEP], [CLS, 5, SEP, 6, SEP], [CLS, UNK, SEP]], pieces)
    masked = mask_ngrams(
        tokens, lengths, starts=starts, keys=keys_of(3), pieces=pieces, settings=ExampleSettings(mask_prob=0.01)
    )
    assert masked.positions.size == 2
    assert masked.positions[0] == 1
    assert masked.positions[1] in (4, 6)


def test_a_word_longer_than_the_budget_is_passed_over(pieces):
    text = [CLS, 5, *[INNER] * 9, SEP, 6, 7, SEP]
    tokens, lengths, starts = lay_out([text] * 50, pieces)
    masked = mask_ngrams(
        tokens, lengths, starts=starts, keys=keys_of(50), pieces=pieces, settings=ExampleSettings(mask_prob=0.13)
    )
    assert set((masked.positions % len(text)).tolist()) == {12, 13}


def test_where_a_language_has_no_spaces_a_piece_is_a_word(make_tokenizer, make_store):
    tokenizer = make_tokenizer(["▁我", "们", "在", "学习", "です", "カタ", "ไทย"])
    store = make_store([[[5, *[6, 7, 8, 9, 10, 11] * 3] * 1] * 200], tokenizer=tokenizer)
    batch = BatchStream(store, ExampleSettings(max_length=64, max_ngram=1), batch_size=60).batch(0)
    alone = np.diff(batch.masked_positions) > 1
    assert alone.mean() > 0.7, "single pieces are hidden, not sentences"
    owner = np.searchsorted(batch.starts, batch.masked_positions, side="right") - 1
    assert np.array_equal(np.bincount(owner), np.maximum(1, np.rint(batch.lengths * 0.15)))
