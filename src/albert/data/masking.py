"""n-gram masking: which words are hidden, and what stands in their place (section 4.1 of the paper, and its code).

Whole words are hidden in spans of n = 1..max_ngram words with p(n) proportional to 1/n, up to a budget of 15% of a
sequence's tokens. A span stays inside its segment. A word that holds a special token is never hidden, <unk> included:
there is nothing to learn from it. Draws are made for a whole batch at once, but none depends on a neighbour: a sample's
masks are the same in any batch. Legend: B samples, T tokens, W words, P masked positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from albert.data.pieces import Flags, Pieces
from albert.data.randomness import Ints, Purpose, Words, below, hashes, uniform
from albert.data.settings import LONGEST, ExampleSettings

_MASKED, _KEPT = 0.8, 0.1  # the other tenth becomes a random piece
_WORD_BITS = LONGEST.bit_length() - 1  # a sample has at most LONGEST words
_HASH_BITS = 31
LARGEST_BATCH = 2 ** (64 - _HASH_BITS - _WORD_BITS)  # so that a sample's number fits in front of them (_trial_order)


@dataclass(frozen=True)
class Masked:
    """Corrupted tokens, and what is to be predicted."""

    token_ids: Ints  # [T]
    positions: Ints  # [P] ascending
    labels: Ints  # [P] the tokens that stood there


@dataclass(frozen=True)
class WordTable:
    """The words of a batch. [CLS] and [SEP] are words too, but barred: never hidden, never inside a span."""

    first: Ints  # [W+1] the first token of each word, and T
    sample: Ints  # [W] whose word it is
    number: Ints  # [W] its place in that sample
    barred: Flags  # [W]
    run_end: Ints  # [W] the next barred word

    def num_pieces(self, words: Ints, sizes: Ints) -> Ints:
        """Count the tokens of spans that begin at `words` and have `sizes` words."""
        return self.first[words + sizes] - self.first[words]


@dataclass(frozen=True)
class Spans:
    """Chosen runs of words, in no order."""

    words: Ints  # the first word of each
    sizes: Ints  # how many words


def mask_ngrams(
    token_ids: Ints, lengths: Ints, *, starts: Flags, keys: Words, pieces: Pieces, settings: ExampleSettings
) -> Masked:
    """Hide words of each sample: `starts` [T] marks where words begin, `keys` [B] are the samples' randomness."""
    table = find_words(token_ids, lengths, starts=starts, pieces=pieces)
    spans = choose_spans(table, budgets(lengths, settings), keys=keys, max_ngram=settings.max_ngram)
    positions = np.sort(_ranges(table.first[spans.words], table.num_pieces(spans.words, spans.sizes)))
    return Masked(
        token_ids=_corrupt(token_ids, lengths, positions=positions, keys=keys, pieces=pieces),
        positions=positions,
        labels=token_ids[positions],
    )


def find_words(token_ids: Ints, lengths: Ints, *, starts: Flags, pieces: Pieces) -> WordTable:
    """Divide a batch into words."""
    first = np.flatnonzero(starts)
    barred = np.logical_or.reduceat(pieces.special[token_ids], first)
    words_before = np.searchsorted(first, np.cumsum(lengths) - lengths)  # [B]
    words_per_sample = np.diff(words_before, append=first.size)
    sample = np.repeat(np.arange(lengths.size), words_per_sample)
    ends = np.flatnonzero(barred)
    return WordTable(
        first=np.append(first, token_ids.size),
        sample=sample,
        number=np.arange(first.size) - words_before[sample],
        barred=barred,
        run_end=np.repeat(ends, np.diff(ends, prepend=-1)),  # a sample's last word is [SEP]: barred
    )


def budgets(lengths: Ints, settings: ExampleSettings) -> Ints:
    """Return the number of tokens to hide in each sample: Google's rounding, at least one, at most the cap."""
    tokens = np.maximum(1, np.rint(lengths * settings.mask_prob).astype(np.int64))
    return tokens if settings.max_predictions is None else np.minimum(tokens, settings.max_predictions)


def draw_sizes(table: WordTable, *, keys: Words, max_ngram: int) -> Ints:
    """Draw the number of words of the span that would begin at each word: p(n) proportional to 1/n."""
    weights = 1 / np.arange(1, max_ngram + 1)
    thresholds = np.cumsum(weights / weights.sum())[:-1]
    return 1 + np.searchsorted(thresholds, uniform(keys[table.sample], Purpose.NGRAM, table.number), side="right")


def choose_spans(table: WordTable, budget: Ints, *, keys: Words, max_ngram: int) -> Spans:
    """Choose spans until each sample's budget is spent: Google's procedure.

    A sample's words are tried in random order. The span that begins at a word loses words from its end until the
    budget holds it. A single word that is still too long is passed over, and so is a span that meets one already
    chosen.
    """
    # Rounds over arrays, the k-th word of all samples at once, make batches of 256 samples twice as fast and of two
    # long ones 7x slower than this plain loop.
    order, bounds = (numbers.tolist() for numbers in _trial_order(table, keys))
    drawn = draw_sizes(table, keys=keys, max_ngram=max_ngram)
    sizes = np.minimum(drawn, table.run_end - np.arange(drawn.size)).tolist()
    first = table.first.tolist()
    hidden = bytearray(len(sizes))
    words_chosen, sizes_chosen = [], []
    for sample, left in enumerate(budget.tolist()):
        for word in order[bounds[sample] : bounds[sample + 1]]:
            size = sizes[word]
            taken = first[word + size] - first[word]
            while taken > left and size > 1:
                size -= 1
                taken = first[word + size] - first[word]
            if taken > left or 1 in hidden[word : word + size]:
                continue
            hidden[word : word + size] = b"\1" * size
            words_chosen.append(word)
            sizes_chosen.append(size)
            left -= taken
            if left == 0:
                break
    return Spans(np.array(words_chosen, dtype=np.int64), np.array(sizes_chosen, dtype=np.int64))


def _trial_order(table: WordTable, keys: Words) -> tuple[Ints, Ints]:
    """Shuffle the words of each sample; give them sample after sample, and the bounds of the samples [B+1]."""
    words = np.flatnonzero(~table.barred)
    sample, number = table.sample[words], table.number[words]
    # One sort of plain integers (sample, hash, number) is several times faster than sorting indices by keys.
    ticket = hashes(keys[sample], Purpose.ORDER, number) >> np.uint64(64 - _HASH_BITS)
    ticket |= sample.astype(np.uint64) << np.uint64(_HASH_BITS)
    ticket = np.sort((ticket << np.uint64(_WORD_BITS)) | number.astype(np.uint64))
    shuffled = (ticket & np.uint64((1 << _WORD_BITS) - 1)).astype(np.int64)
    first_words = np.searchsorted(table.sample, np.arange(keys.size))
    return shuffled + first_words[sample], np.searchsorted(sample, np.arange(keys.size + 1))


def _corrupt(token_ids: Ints, lengths: Ints, *, positions: Ints, keys: Words, pieces: Pieces) -> Ints:
    """Put [MASK] in 80% of the positions and a random piece in 10%; decided piece by piece."""
    begin = np.cumsum(lengths) - lengths
    sample = np.searchsorted(begin, positions, side="right") - 1
    keys, number = keys[sample], positions - begin[sample]
    fate = uniform(keys, Purpose.CORRUPTION, number)
    replaced = fate >= _MASKED + _KEPT
    which = below(pieces.ordinary.size, keys[replaced], Purpose.REPLACEMENT, counters=number[replaced])
    corrupted = token_ids.copy()
    corrupted[positions[fate < _MASKED]] = pieces.mask_id
    corrupted[positions[replaced]] = pieces.ordinary[which]
    return corrupted


def _ranges(begin: Ints, counts: Ints) -> Ints:
    """Return begin, begin+1, … for each count, end to end."""
    return np.arange(int(counts.sum())) + np.repeat(begin - (np.cumsum(counts) - counts), counts)
