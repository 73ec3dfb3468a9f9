"""What a build will cost, from encoding the beginning of its text."""

from __future__ import annotations

import time
from dataclasses import dataclass

from albert.data.encode import Job, Part, encode_part
from albert.data.store import Manifest
from albert.text.documents import ReadReport, read_documents
from albert.text.sources import Sources
from albert.tokenizer import Tokenizer

SAMPLE = 2**20  # characters


@dataclass(frozen=True)
class Estimate:
    """The size of a store before it is built, and the time of one worker."""

    num_tokens: int
    num_bytes: int
    worker_seconds: float


def estimate_build(sources: Sources, plan: Manifest, tokenizer: Tokenizer) -> Estimate:
    """Encode the first million characters, and assume that the rest is like them."""
    report = ReadReport()
    texts: list[bytes] = []
    started = time.perf_counter()
    for document in read_documents(sources.files, text_field=plan.settings["text_field"], report=report):
        texts.append(document.text.encode())
        if sum(map(len, texts)) >= SAMPLE:
            break
    if not texts:
        return Estimate(0, 0, 0.0)
    encoded = encode_part(Part(0, tuple(texts), 0), Job(tokenizer, plan.settings["language"]))
    scale = sum(file["bytes"] for file in plan.inputs) / report.bytes_read
    seconds = (time.perf_counter() - started) * scale
    return Estimate(round(encoded.record.num_tokens * scale), round(len(encoded.contents) * scale), seconds)
