"""Whether two engines say the same of real texts: what an export must pass before it is called done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from albert.batch import STATES, Batch, Said, Wanted, pack
from albert.errors import DataError, ModelError
from albert.inference.engine import Engine
from albert.inference.inputs import read_plain
from albert.model import HEADS
from albert.tasks.task import join_segments
from albert.text.documents import ReadReport
from albert.text.installed import installed_documents
from albert.tokenizer import Tokenizer

TEXTS = 64
TOGETHER = 8  # texts of a batch: padded, as other programs do
LONGEST = 256  # tokens
TOLERANCE = 1e-4


def real_texts(path: Path | None) -> list[str]:
    """Return the first texts of a file, or prose that is installed on every machine."""
    if path is None:
        documents = islice(installed_documents(), 8)
        return [paragraph for document in documents for paragraph in document.paragraphs][:TEXTS]
    texts = [one.text for one in islice(read_plain({}, path, {}, ReadReport()), TEXTS) if one.text.strip()]
    if not texts:
        raise DataError(f"{path}: no texts to run the model on")
    return texts


def batches_of(texts: Iterable[str], tokenizer: Tokenizer, *, longest: int) -> list[Batch]:
    """Return texts as batches, every other one of them a pair with what follows, so that segments count."""
    room = min(longest, LONGEST) - 3
    encoded = [tokenizer.encode(text)[:room] for text in texts]
    joined = [
        join_segments(tokenizer, ids[: room // 2], ids[room // 2 :]) if i % 2 else join_segments(tokenizer, ids)
        for i, ids in enumerate(encoded)
    ]
    groups = [joined[i : i + TOGETHER] for i in range(0, len(joined), TOGETHER)]
    return [pack([ids for ids, _ in group], [segments for _, segments in group]) for group in groups]


def wanted_of(heads: Sequence[str]) -> Wanted:
    """Return all heads, where they stand; without any, the states."""
    return {head: "class" if HEADS[head].pooled else "tokens" for head in heads} or {STATES: "tokens"}


class Recorded:
    """An engine that says again what another one said of some batches."""

    name = "recorded"

    def __init__(self, engine: Engine, batches: Sequence[Batch]) -> None:
        self.config, self.heads = engine.config, engine.heads
        wanted = wanted_of(engine.heads)
        self._said = {id(batch): engine.run(batch, wanted) for batch in batches}

    def run(self, batch: Batch, wanted: Wanted) -> list[Said]:
        """Return what was said of a batch; all heads were wanted."""
        return self._said[id(batch)]


def largest_difference(one: Engine, other: Engine, batches: Sequence[Batch]) -> float:
    """Return the largest difference of anything that two engines say, as a share of the largest number where above 1.

    Roundings grow with the numbers: logits of the vocabulary reach 20.
    """
    wanted = wanted_of(other.heads)
    worst = 0.0
    for batch in batches:
        for ours, theirs in zip(one.run(batch, wanted), other.run(batch, wanted), strict=True):
            for head in wanted:
                if not np.isfinite(ours[head][0]).all():
                    return float("inf")
                largest = max(1.0, float(np.abs(theirs[head][0]).max()))
                worst = max(worst, float(np.abs(ours[head][0] - theirs[head][0]).max()) / largest)
    return worst


def relative_error(one: Engine, other: Engine, batches: Sequence[Batch]) -> float:
    """Return how far what an engine says is from what another says: the root of mean squares, relative."""
    wanted = wanted_of(other.heads)
    squares = np.zeros(2)
    for batch in batches:
        for ours, theirs in zip(one.run(batch, wanted), other.run(batch, wanted), strict=True):
            for head in wanted:
                truth = theirs[head][0].astype(np.float64)
                squares += np.square(ours[head][0] - truth).sum(), np.square(truth).sum()
    return float(np.sqrt(squares[0] / max(squares[1], 1e-30)))


def refuse_difference(what: str, difference: float, *, tolerance: float = TOLERANCE) -> None:
    """Refuse an export that does not say what torch says."""
    if not difference <= tolerance:
        raise ModelError(
            f"{what}: says something else than torch on real texts (by {difference:.2g}, more than {tolerance:.0e}): "
            "nothing was written; this is a defect, please report it"
        )
