"""What training a vocabulary will cost, from reading the beginning of its text."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from albert.text.documents import ReadReport, read_documents
from albert.text.sources import find_sources
from albert.tokenizer.sampling import SAMPLE_LIMIT, Sample
from albert.tokenizer.training import TrainSettings

BEGINNING = 2**20  # characters
# Measured with 30,000 pieces: on 8, 16 and 32 million characters of English SentencePiece needs 17, 31 and 69 seconds
# of a core and 230, 430 and 810 MB, and we need 8 bytes more for each character.
SECONDS_PER_CHARACTER, MEMORY_PER_CHARACTER, MEMORY = 2.2e-6, 33, 80_000_000


@dataclass(frozen=True)
class Estimate:
    """The size of a corpus and of its sample in characters, and what the training takes."""

    num_files: int
    num_bytes: int
    num_characters: int
    num_sampled: int
    seconds: float
    memory: int  # bytes


def estimate_training(inputs: Iterable[str | Path], settings: TrainSettings) -> Estimate:
    """Read the first million characters, and assume that the rest is like them."""
    sources = find_sources(inputs).files
    num_bytes = sum(source.path.stat().st_size for source in sources)
    report, sample = ReadReport(), Sample()
    started = time.perf_counter()
    for document in read_documents(sources, text_field=settings.text_field, report=report):
        sample.add(document)
        if sample.num_characters >= BEGINNING:
            break
    scale = num_bytes / max(report.bytes_read, 1)
    num_characters = round(sample.num_characters * scale)
    num_sampled = min(num_characters, SAMPLE_LIMIT)
    return Estimate(
        num_files=len(sources),
        num_bytes=num_bytes,
        num_characters=num_characters,
        num_sampled=num_sampled,
        seconds=(time.perf_counter() - started) * scale + SECONDS_PER_CHARACTER * num_sampled,
        memory=MEMORY + MEMORY_PER_CHARACTER * num_sampled,
    )
