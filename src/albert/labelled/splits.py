"""From examples to train and dev, the same way for every task.

Without dev data a part is held out; copies across are warned of; limits keep a seeded choice; a fingerprint says what
all of it came from. A reader gives its examples and says what makes two of them the same (`key`, from
holdout.content_key), which of them belong to one class (`stratum`), and which must stay on one side (`group`: questions
about one article). Knows no files but to hash them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path

from albert.errors import DataError
from albert.files import sha256
from albert.labelled.class_folders import class_files
from albert.labelled.holdout import RULE, held_out, seeded_sample, shared
from albert.labelled.request import DataRequest
from albert.tasks.task import ExampleT, Splits


def divide(
    request: DataRequest,
    train: Sequence[ExampleT],
    *,
    dev: Mapping[str, Sequence[ExampleT]],
    test: Mapping[str, Sequence[ExampleT]],
    key: Callable[[ExampleT], str],
    notes: list[str],
    stratum: Callable[[ExampleT], Hashable] | None = None,
    group: Callable[[ExampleT], str] | None = None,
) -> Splits[ExampleT]:
    """Hold dev out of the training examples where there is none, warn of copies, keep as many as are wanted.

    Rows of one `group` (by default: of one key) are held out together.
    """
    if train and not dev:
        strata = [stratum(example) for example in train] if stratum else None
        whole = [(group or key)(example) for example in train]
        try:
            kept, aside = held_out(whole, strata, share=request.holdout, seed=request.seed)
        except DataError as problem:
            raise DataError(f"{request.data}: {problem}") from problem
        notes.append(f"no dev data given: {len(aside):,} of {len(train):,} rows are held out (seed {request.seed})")
        train, dev = [train[i] for i in kept], {"dev": [train[i] for i in aside]}
    train_keys = [key(example) for example in train]
    dev_keys = {name: [key(example) for example in examples] for name, examples in dev.items()}
    sets = [(name, examples, dev_keys[name]) for name, examples in dev.items()]
    if train:
        sets += [(name, examples, [key(example) for example in examples]) for name, examples in test.items()]
    for name, examples, keys in sets:
        if found := shared(train_keys, keys):
            first = found[0]
            notes.append(
                f"warning: {len(found):,} of {len(examples):,} rows of {name} are in the training data too, the first: "
                f"{examples[first.place].place} is {train[first.earlier].place}: "
                "scores on them say little about new text"
            )
    chosen = seeded_sample(train_keys, limit=request.limit_train, seed=request.seed)
    return Splits(
        [train[i] for i in chosen],
        {
            name: [examples[i] for i in seeded_sample(dev_keys[name], limit=request.limit_dev, seed=request.seed)]
            for name, examples in dev.items()
        },
        {name: list(examples) for name, examples in test.items()},
    )


def _digests(path: Path) -> list[str]:
    if not path.is_dir():
        return [sha256(path)]
    return [f"{file.label} {sha256(file.path)}" for file in class_files(path)]


def fingerprint(files: Iterable[Path], request: DataRequest, *, rule: str | None = None) -> str:
    """Hash what decides about the examples: the files, the split (a further `rule` of it) and the choice from them."""
    parts = [digest for path in files for digest in _digests(path)]
    parts += [RULE, str(request.holdout), str(request.seed), str(request.limit_train), str(request.limit_dev)]
    parts += [rule] if rule else []
    parts += [f"{role}={name}" for role, name in sorted(request.columns.items())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
