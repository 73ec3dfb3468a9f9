"""Setting a part of labelled data aside, and finding what two parts share.

Rows are held out by their content: within each class, rows are put into the order of a seeded hash of their text, and
the first tenth becomes dev. So every class is held out in proportion, copies of a row always stay on one side, and
the order of a file does not matter. A class with a single text stays in training. Knows nothing of files or tasks.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from albert.errors import DataError, UsageError

RULE = "the first share of every class in the order of blake2b(seed, text)"  # part of a data set's fingerprint


def content_key(*texts: str | None) -> str:
    """Return what makes two rows the same: their texts, without differences of case and spacing."""
    return "\x1f".join(" ".join(text.casefold().split()) if text is not None else "\x1e" for text in texts)


def held_out(
    keys: Sequence[str], strata: Sequence[Hashable] | None = None, *, share: float, seed: int
) -> tuple[list[int], list[int]]:
    """Divide rows into those to train on and those held out, both in their order; rows of one key stay together."""
    if not 0 < share < 1:
        raise UsageError(f"holdout={share} must be a share between 0 and 1, for example 0.1")
    members: dict[str, list[int]] = {}
    for place, key in enumerate(keys):
        members.setdefault(key, []).append(place)
    groups: dict[Hashable, list[str]] = {}
    for key, places in members.items():
        groups.setdefault(strata[places[0]] if strata is not None else None, []).append(key)
    chosen: list[int] = []
    for own in groups.values():
        count = round(share * len(own))
        own.sort(key=lambda key: _rank(key, seed))
        chosen += [place for key in own[: min(count, len(own) - 1)] for place in members[key]]
    if not chosen and len(members) > 1:  # all classes are small: still something to look at
        largest = max(groups.values(), key=len)
        if len(largest) > 1:
            chosen = list(members[min(largest, key=lambda key: _rank(key, seed))])
    if not chosen:
        raise DataError(
            f"{len(keys)} rows with {len(members)} different texts can't be divided into train and dev: add rows, or "
            "give a dev file (a class with a single text stays in training)"
        )
    aside = set(chosen)
    return [place for place in range(len(keys)) if place not in aside], sorted(aside)


def _rank(key: str, seed: int) -> bytes:
    return hashlib.blake2b(f"{seed}\x1f{key}".encode(), digest_size=16).digest()


def seeded_sample(keys: Sequence[str], *, limit: int | None, seed: int) -> list[int]:
    """Choose `limit` rows, in a seeded order; without a limit, or with fewer rows, all in their own order."""
    if limit is None or limit >= len(keys):
        return list(range(len(keys)))
    if limit < 1:
        raise UsageError(f"limit={limit} must be at least 1")
    return sorted(range(len(keys)), key=lambda place: (_rank(f"{keys[place]}\x1f{place}", seed), place))[:limit]


@dataclass(frozen=True)
class Copy:
    """A row that stands somewhere else too, by their places in the two sequences."""

    place: int
    earlier: int


def copies(keys: Sequence[str]) -> list[Copy]:
    """List the rows whose text has been met before."""
    first: dict[str, int] = {}
    return [Copy(place, met) for place, key in enumerate(keys) if (met := first.setdefault(key, place)) != place]


def shared(train: Sequence[str], dev: Sequence[str]) -> list[Copy]:
    """List the rows of dev that stand in train too."""
    first = {key: place for place, key in reversed(list(enumerate(train)))}
    return [Copy(place, first[key]) for place, key in enumerate(dev) if key in first]


def balanced_weights(classes: Sequence[int], *, num_classes: int) -> tuple[float, ...]:
    """Weigh classes against their frequency, with mean 1 over the rows; a class without rows weighs 1."""
    counts = Counter(classes)
    present = sum(1 for number in range(num_classes) if counts[number])
    return tuple(len(classes) / (present * counts[number]) if counts[number] else 1.0 for number in range(num_classes))
