"""What Prometheus reads, under the names of text-embeddings-inference: its dashboards and alerts work as they are.

prometheus_client ends the names of counters in `_total`, which those names don't have: the ending is cut off in the
text. With several workers the numbers are those of all of them (prometheus_client's multiprocess mode).
"""

from __future__ import annotations

import os
import re

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client reads it when it is imported
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The counters of one process."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        registry = self._registry = CollectorRegistry()
        requests = Counter("te_request_count", "Requests", ["method"], registry=registry)
        success = Counter("te_request_success", "Requests that were answered", ["method"], registry=registry)
        self._requests, self._success = (
            {single: each.labels(name) for single, name in ((True, "single"), (False, "batch"))}
            for each in (requests, success)
        )
        self._failure = Counter("te_request_failure", "Requests that were refused", ["err"], registry=registry)
        self._verbs = Counter("te_verb_count", "Inputs by route", ["verb"], registry=registry)
        self._duration = Histogram("te_request_duration", "Seconds", buckets=SECONDS, registry=registry)
        self._tokenization = Histogram(
            "te_request_tokenization_duration", "Seconds", buckets=SECONDS, registry=registry
        )
        self._queue = Histogram("te_request_queue_duration", "Seconds", buckets=SECONDS, registry=registry)
        self._inference = Histogram("te_request_inference_duration", "Seconds", buckets=SECONDS, registry=registry)
        self._length = Histogram("te_request_input_length", "Tokens of an input", buckets=COUNTS, registry=registry)
        self._batch_size = Histogram("te_batch_next_size", "Sequences of a batch", buckets=COUNTS, registry=registry)
        self._batch_tokens = Histogram("te_batch_next_tokens", "Tokens of a batch", buckets=COUNTS, registry=registry)
        self.queue_size = Gauge("te_queue_size", "Requests that wait", registry=registry, multiprocess_mode="livesum")

    def batch(self, *, sequences: int, tokens: int) -> None:
        """Count a batch."""
        self._batch_size.observe(sequences)
        self._batch_tokens.observe(tokens)

    def request(self, *, single: bool) -> None:
        """Count a request that was understood."""
        self._requests[single].inc()

    def inputs(self, verb: str, lengths: list[int]) -> None:
        """Count the inputs of a request."""
        self._verbs.labels(verb).inc(len(lengths))
        for length in lengths:
            self._length.observe(length)

    def success(self, *, single: bool, total: float, tokenization: float, queue: float, inference: float) -> None:
        """Count an answer and its seconds."""
        self._success[single].inc()
        self._duration.observe(total)
        self._tokenization.observe(tokenization)
        self._queue.observe(queue)
        self._inference.observe(inference)

    def failure(self, kind: str) -> None:
        """Count a refusal by its type."""
        self._failure.labels(kind.lower()).inc()

    def text(self) -> bytes:
        """Return all numbers in Prometheus' text format."""
        registry = self._registry
        if os.environ.get(SHARED_FOLDER):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return re.sub(rb"^((?:# (?:HELP|TYPE) )?te_\w+?)_total\b", rb"\1", generate_latest(registry), flags=re.M)
