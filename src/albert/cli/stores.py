"""How a store is shown: before it is built, after, and what a check found. Text for people, dicts for JSON."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from albert.cli.progress import duration

if TYPE_CHECKING:
    from albert.data.build import BuildResult
    from albert.data.check import Lengths, StoreCheck
    from albert.data.estimate import Estimate
    from albert.data.store import Manifest, TokenStore

BAR = 40  # characters of a histogram's longest bar
MANY_UNKNOWN = 0.01  # share of tokens from which the tokenizer is probably one of another language
BASE_MEMORY, WORKER_MEMORY = 130 * 10**6, 70 * 10**6  # bytes, measured with 30,000 pieces (benchmarks/bench_build.py)


def plan_facts(plan: Manifest, estimate: Estimate, *, out: Path, state: str, workers: int | None) -> dict[str, Any]:
    """Gather what a build would do; no number of workers means a cluster."""
    facts = asdict(plan) | {"out": str(out), "state": state, "workers": workers}
    del facts["shards"], facts["findings"], facts["format"]
    costs = asdict(estimate)
    if workers:
        costs |= {"seconds": estimate.worker_seconds / workers, "memory": BASE_MEMORY + WORKER_MEMORY * workers}
    return facts | {"estimate": costs}


def plan_text(facts: dict[str, Any]) -> str:
    """Write what a build would do."""
    settings, estimate = facts["settings"], facts["estimate"]
    num_bytes = sum(file["bytes"] for file in facts["inputs"])
    lines = [
        f"text       {number_of(len(facts['inputs']), 'file')}, {size_text(num_bytes)}",
        f"tokenizer  {facts['tokenizer'][:12]}, {facts['vocab_size']:,} pieces",
        f"sentences  {settings['sentences']}" + (f", language {settings['language']}" if settings["language"] else ""),
        f"store      {facts['out']} ({facts['state']})",
        f"size       about {estimate['num_tokens']:,} tokens, {size_text(estimate['num_bytes'])}",
    ]
    if facts["workers"]:
        memory = size_text(estimate["memory"])
        cost = f"{duration(estimate['seconds'])} with {number_of(facts['workers'], 'worker')}, {memory} of memory"
    else:
        cost = f"{duration(estimate['worker_seconds'])}, divided by the CPUs of the cluster"
    return "\n".join([*lines, f"cost       about {cost}"])


def build_facts(result: BuildResult, *, seconds: float) -> dict[str, Any]:
    """Gather what a build did."""
    store = result.store
    return {
        "store": str(store.folder),
        "documents": store.num_documents,
        "sentences": store.num_sentences,
        "tokens": store.num_tokens,
        "unknown": store.num_unknown,
        "shards": len(store.shards),
        "built": result.num_built,
        "damaged": [{"shard": shard.path.name, "reason": shard.reason} for shard in result.damaged],
        "bytes": store.num_bytes,
        "seconds": round(seconds, 3),
        "findings": store.manifest.findings,
        "tokenizer": store.manifest.tokenizer,
        "fingerprint": store.fingerprint,
    }


def build_text(facts: dict[str, Any]) -> str:
    """Write what a build did."""
    from albert.text.documents import MEANINGS

    lines = [_counts(facts)]
    if facts["built"]:
        kept = facts["shards"] - facts["built"]
        before = f"; finished before: {kept:,}" if kept else ""
        lines.append(f"built {number_of(facts['built'], 'shard')} in {duration(facts['seconds'])}{before}")
    else:
        lines.append("complete already, every checksum is right: nothing to do")
    lines += [
        f"note: {MEANINGS.get(key, key)}: {found['count']:,}, the first at {found['first']}"
        for key, found in facts["findings"].items()
    ]
    return "\n".join([*lines, *_unknown_note(facts)])


def check_facts(store: TokenStore, found: StoreCheck) -> dict[str, Any]:
    """Gather what a check found."""
    return {
        "store": str(store.folder),
        "documents": store.num_documents,
        "sentences": store.num_sentences,
        "tokens": store.num_tokens,
        "unknown": store.num_unknown,
        "shards": len(store.shards),
        "bytes": store.num_bytes,
        "single_sentence_documents": found.num_single,
        "duplicate_documents": len(found.duplicates),
        "duplicates": [asdict(duplicate) for duplicate in found.duplicates[:10]],
        "sentence_lengths": asdict(found.sentence_lengths),
        "document_lengths": asdict(found.document_lengths),
        "tokenizer": store.manifest.tokenizer,
        "fingerprint": store.fingerprint,
    }


def check_text(facts: dict[str, Any], found: StoreCheck) -> str:
    """Write what a check found."""
    documents = facts["documents"]
    lines = [
        _counts(facts),
        f"every checksum is right; contents {facts['fingerprint'][:12]}, tokenizer {facts['tokenizer'][:12]}",
        f"documents of one sentence: {found.num_single:,} ({_percent(found.num_single, documents)})",
        f"documents that are copies: {len(found.duplicates):,} ({_percent(len(found.duplicates), documents)})",
    ]
    lines += [f"  document {copy.document:,} is document {copy.earlier:,}" for copy in found.duplicates[:3]]
    lines += ["", *_lengths_text("sentences", found.sentence_lengths)]
    lines += ["", *_lengths_text("documents", found.document_lengths)]
    return "\n".join([*lines, *_unknown_note(facts)])


def number_of(count: int, noun: str) -> str:
    """Say a count with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def size_text(num_bytes: float) -> str:
    """Say a number of bytes."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if num_bytes < 1000:
            return f"{num_bytes:.0f} {unit}" if num_bytes >= 100 or unit == "bytes" else f"{num_bytes:.1f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.1f} TB"


def _counts(facts: dict[str, Any]) -> str:
    documents, sentences = number_of(facts["documents"], "document"), number_of(facts["sentences"], "sentence")
    tokens, shards = facts["tokens"], number_of(facts["shards"], "shard")
    unknown = _percent(facts["unknown"], tokens)
    return (
        f"{facts['store']}: {documents}, {sentences}, {number_of(tokens, 'token')} ({unknown} unknown) "
        f"in {shards}, {size_text(facts['bytes'])}"
    )


def _unknown_note(facts: dict[str, Any]) -> list[str]:
    if facts["unknown"] <= MANY_UNKNOWN * facts["tokens"]:
        return []
    return ["note: many tokens are unknown: is this tokenizer made for this language?"]


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "0%"


def _lengths_text(name: str, lengths: Lengths) -> list[str]:
    lines = [
        f"tokens of {name}: {lengths.shortest:,} to {lengths.longest:,}, "
        f"median {lengths.median:,}, mean {lengths.mean:,.1f}"
    ]
    most = max(count for _, count in lengths.histogram)
    for bound, count in lengths.histogram:
        bar = "█" * round(BAR * count / most) if count * BAR >= most else "▏" if count else ""
        lines.append(f"  up to {bound:>9,} {count:>12,} {bar}")
    return lines
