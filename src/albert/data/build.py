"""Build a token store: documents → parts → shards, streaming, and again after whatever stopped it.

Same texts, tokenizer and settings give the same bytes, with any engine and number of workers, interrupted or not.
Running a build again continues it: finished shards are checked against their checksums, damaged ones are named and made
anew, a complete store is left as it is. A folder that holds anything else, or a store of another build, is refused.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from pathlib import Path

from albert.data.encode import EncodedPart, Job, Part, cut_parts
from albert.data.engines import Engine
from albert.data.journal import Journal
from albert.data.plan import (
    BuildSettings,
    is_leftover,
    plan_build,
    read_earlier,
    refuse_other_build,
    refuse_other_folder,
    refuse_other_versions,
)
from albert.data.shard import ShardRecord, damage, shard_name, write_shard
from albert.data.store import TOKENIZER, UNFINISHED, DamagedShard, Manifest, TokenStore, total
from albert.errors import DataError, Interrupted, ModelError
from albert.files import atomic_folder, sole_owner
from albert.text.documents import ReadReport, read_documents
from albert.text.sources import Sources
from albert.tokenizer import Tokenizer

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BuildProgress:
    """How far a build is."""

    bytes_done: int  # of the input files as they lie on disk
    bytes_total: int
    num_tokens: int
    num_new_tokens: int  # of this run


@dataclass(frozen=True)
class BuildResult:
    """A complete store, and what this run did for it."""

    store: TokenStore
    num_built: int  # shards; none when the store was complete before
    damaged: tuple[DamagedShard, ...]  # found and built anew


def build_store(
    inputs: Iterable[str | Path],
    folder: Path | str,
    *,
    tokenizer: Tokenizer,
    settings: BuildSettings,
    engine: Engine,
    progress: Callable[[BuildProgress], None] = lambda _: None,
) -> BuildResult:
    """Build a store in a folder, or finish or mend the one that is there."""
    folder = Path(folder)
    refuse_other_folder(folder)
    sources, plan = plan_build(inputs, tokenizer, settings)
    with sole_owner(folder):
        _remove_leftovers(folder)
        earlier = read_earlier(folder)
        if earlier is not None:
            refuse_other_build(folder, earlier.plan, plan)
        finished = dict(earlier.finished) if earlier else {}
        damaged = _take_damaged(folder, finished, vocab_size=plan.vocab_size)
        if earlier and earlier.complete:
            (folder / UNFINISHED).unlink(missing_ok=True)  # killed between the last two steps of a build
        if earlier and earlier.complete and not damaged:
            _keep_tokenizer(folder, tokenizer)
            return BuildResult(TokenStore.open(folder), 0, ())
        if earlier:
            refuse_other_versions(folder, earlier.plan, plan)
        build = _Build(folder, plan, sources, tokenizer, engine, finished, progress)
        try:
            if earlier and earlier.complete:
                build.mend(earlier.plan)
            else:
                build.make()
        except KeyboardInterrupt as problem:
            raise Interrupted(
                f"interrupted, shards finished in {folder}: {len(finished)}: run the same command again to continue"
            ) from problem
        return BuildResult(TokenStore.open(folder), build.num_built, tuple(damaged))


def _remove_leftovers(folder: Path) -> None:
    for path in filter(is_leftover, folder.iterdir()):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _take_damaged(folder: Path, finished: dict[int, ShardRecord], *, vocab_size: int) -> list[DamagedShard]:
    """Take the damaged shards out of the finished ones and name them."""
    found = []
    for index in sorted(finished):
        path = folder / shard_name(index)
        if reason := damage(path, finished[index], vocab_size=vocab_size):
            log.warning("%s: %s: building it again", path, reason)
            found.append(DamagedShard(path, reason))
            del finished[index]
    return found


@dataclass
class _Build:
    """One run: makes the shards that are not finished."""

    folder: Path
    plan: Manifest
    sources: Sources
    tokenizer: Tokenizer
    engine: Engine
    finished: dict[int, ShardRecord]
    progress: Callable[[BuildProgress], None]
    num_built: int = 0

    def make(self) -> None:
        """Make the store from its first missing shard on."""
        report = ReadReport()
        for path in self.sources.duplicates:
            report.add("duplicate_path", str(path))
        parts = self._parts(report)
        first = next(parts, None)
        if first is None:
            raise DataError(f"no text in {len(self.sources.files)} files: {'; '.join(report.lines())}")
        journal = Journal.begin(self.folder, self.plan, self.finished)

        def keep(encoded: EncodedPart) -> None:
            write_shard(self.folder / shard_name(encoded.index), encoded.contents)
            journal.add(encoded.index, encoded.record)

        self._encode(chain([first], parts), keep)
        shards = tuple(self.finished[index] for index in sorted(self.finished))
        findings = {key: asdict(found) for key, found in sorted(report.findings.items())}
        replace(self.plan, shards=shards, findings=findings).save(self.folder)
        journal.end()

    def mend(self, manifest: Manifest) -> None:
        """Make the missing shards of a complete store anew."""
        missing = max(set(range(len(manifest.shards))) - self.finished.keys())

        def keep(encoded: EncodedPart) -> None:
            path = self.folder / shard_name(encoded.index)
            if encoded.record != manifest.shards[encoded.index]:
                raise DataError(f"{path}: the same text now gives other tokens: delete {self.folder} and build again")
            write_shard(path, encoded.contents)

        parts = self._parts(ReadReport())
        self._encode(islice(parts, missing + 1), keep)

    def _parts(self, report: ReadReport) -> Iterator[Part]:
        documents = read_documents(self.sources.files, text_field=self.plan.settings["text_field"], report=report)
        return cut_parts(documents, report, part_size=self.plan.settings["part_size"])

    def _encode(self, parts: Iterable[Part], keep: Callable[[EncodedPart], None]) -> None:
        _keep_tokenizer(self.folder, self.tokenizer)
        job = Job(self.tokenizer, self.plan.settings["language"])
        bytes_total = sum(file["bytes"] for file in self.plan.inputs)
        old_tokens, new_tokens = total(self.finished.values(), "num_tokens"), 0
        missing = (part for part in parts if part.index not in self.finished)
        with closing(self.engine.encode(missing, job)) as results:
            for encoded in results:
                keep(encoded)
                self.finished[encoded.index] = encoded.record
                self.num_built += 1
                new_tokens += encoded.record.num_tokens
                self.progress(BuildProgress(encoded.bytes_read, bytes_total, old_tokens + new_tokens, new_tokens))


def _keep_tokenizer(folder: Path, tokenizer: Tokenizer) -> None:
    """Put the tokenizer beside the shards, if it isn't there."""
    try:
        if Tokenizer.load(folder / TOKENIZER).fingerprint == tokenizer.fingerprint:
            return
    except ModelError:
        pass
    with atomic_folder(folder / TOKENIZER) as copy:
        tokenizer.save(copy)
