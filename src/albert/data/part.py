"""A part of a token store as a store of its own: what a run learns from that is to have less text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from albert.data.store import TokenStore, write_store
from albert.errors import UsageError
from albert.files import atomic_folder


def write_part(store: TokenStore, folder: Path, *, tokens: int) -> TokenStore:
    """Return a store of about `tokens` tokens: whole documents, taken evenly from all of the text."""
    if tokens >= store.num_tokens:
        raise UsageError(f"{store.folder}: has {store.num_tokens:,} tokens, and a part was to have {tokens:,}")
    with atomic_folder(folder) as temporary:
        write_store(temporary, _documents(store, tokens / store.num_tokens), tokenizer=store.tokenizer)
    return TokenStore.open(folder)


def _documents(store: TokenStore, share: float) -> Iterator[list[list[int]]]:
    number = 0
    for shard in store.shards:
        for first, end in pairwise(shard.documents):
            if number == 0 or int((number + 1) * share) > int(number * share):  # one at least
                borders = shard.sentences[first : end + 1]
                yield [shard.tokens[a:b].tolist() for a, b in pairwise(borders)]
            number += 1
