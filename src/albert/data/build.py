"""Build a token store: documents → parts → shards, streaming, and again after whatever stopped it.

Same texts, tokenizer and settings give the same bytes, with any engine and number of workers, interrupted or not.
Running a build again continues it: finished shards are checked against their checksums, damaged ones are named and made
anew, a complete store is left as it is. A folder that holds anything else, or a store of another build, is refused.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from albert.data.encode import EncodedPart, Job, Part, cut_parts, versions
from albert.data.engines import Engine
from albert.data.journal import Journal, read_journal
from albert.data.shard import ShardRecord, damage, shard_name, write_shard
from albert.data.store import MANIFEST, TOKENIZER, UNFINISHED, DamagedShard, Manifest, TokenStore, total
from albert.errors import DataError, Interrupted, ModelError, UsageError
from albert.files import atomic_folder, sha256, sole_owner
from albert.text.documents import DOCUMENT_LIMIT, RECORD_LIMIT, ReadReport, printable, read_documents
from albert.text.sentences import SENTENCE_LIMIT
from albert.text.sources import Sources, find_sources
from albert.tokenizer import Tokenizer

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BuildSettings:
    """What decides which sentences a text has."""

    sentences: str = "auto"  # or "lines"
    language: str = "en"  # of sentence splitting
    text_field: str = "text"  # of .jsonl and .parquet
    part_size: int = 4 * 2**20  # characters of a shard's text; a task holds some twenty bytes for each

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z]{2,3}(-[a-z0-9]+)*", self.language, re.IGNORECASE):
            raise UsageError(
                f"language '{self.language}' is not a code: use one of ISO 639, such as 'en', 'de' or 'zh'"
            )

    def resolved(self) -> dict[str, Any]:
        """Give all that decides the contents of a store, beside text, tokenizer and versions."""
        language = self.language if self.sentences == "auto" else None
        limits = {"document": DOCUMENT_LIMIT, "record": RECORD_LIMIT, "sentence": SENTENCE_LIMIT}
        return asdict(self) | {"language": language, "limits": limits}


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


@dataclass(frozen=True)
class Earlier:
    """What an earlier run left in the folder."""

    plan: Manifest  # with its shards if it is complete
    finished: dict[int, ShardRecord]
    complete: bool


def plan_build(inputs: Iterable[str | Path], tokenizer: Tokenizer, settings: BuildSettings) -> tuple[Sources, Manifest]:
    """Find the input files and name everything that the store will depend on; reads the files once for their hashes."""
    sources = find_sources(inputs)
    for source in sources.files:  # a wrong format or field shows in the first document: say so now, not after hours
        next(read_documents([source], text_field=settings.text_field, report=ReadReport()), None)
    plan = Manifest(
        tokenizer=tokenizer.fingerprint,
        vocab_size=tokenizer.vocab_size,
        shards=(),
        settings=settings.resolved(),
        inputs=tuple(_identity(source.path) for source in sources.files),
        versions=versions(),
    )
    return sources, plan


def _identity(path: Path) -> dict[str, Any]:
    try:
        return {"path": printable(str(path)), "bytes": path.stat().st_size, "sha256": sha256(path)}
    except OSError as problem:
        raise DataError(f"{path}: can't be read ({problem.strerror})") from problem


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
            _refuse_other_versions(folder, earlier.plan, plan)
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


def refuse_other_folder(folder: Path) -> None:
    """Refuse a folder that holds something, but neither a store nor the beginning of one."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is a file: name a folder for the store")
    if not folder.exists() or (folder / MANIFEST).exists() or (folder / UNFINISHED).exists():
        return
    others = [path.name for path in folder.iterdir() if path.name != ".lock" and not _leftover(path)]
    if others:
        raise UsageError(f"{folder}: holds other files ({min(others)}) and no store: name a new or empty folder")


def read_earlier(folder: Path) -> Earlier | None:
    """Read what an earlier run left."""
    if (folder / MANIFEST).exists():
        manifest = Manifest.load(folder)
        return Earlier(manifest, dict(enumerate(manifest.shards)), complete=True)
    if (folder / UNFINISHED).exists():
        return Earlier(*read_journal(folder), complete=False)
    return None


def refuse_other_build(folder: Path, old: Manifest, new: Manifest) -> None:
    """Refuse to continue a build with other text, tokenizer or settings, naming the difference."""
    differences = [
        f"{name} was {old.settings.get(name)!r}, now {value!r}"
        for name, value in new.settings.items()
        if old.settings.get(name) != value
    ]
    if old.tokenizer != new.tokenizer:
        differences.append(f"the tokenizer was {old.tokenizer[:12]}, now {new.tokenizer[:12]}")
    differences += _other_inputs(old.inputs, new.inputs)
    if differences:
        raise UsageError(f"{folder}: holds another build ({'; '.join(differences)}): name another folder or delete it")


def _other_inputs(old: tuple[dict[str, Any], ...], new: tuple[dict[str, Any], ...]) -> list[str]:
    if len(old) != len(new):
        return [f"the text was in {len(old)} files, now in {len(new)}"]
    for before, now in zip(old, new, strict=True):
        if before.get("sha256") != now["sha256"]:  # by contents: the same files may be called from another folder
            return [f"the text of {now['path']} is not what {before.get('path')} held"]
    return []


def _refuse_other_versions(folder: Path, old: Manifest, new: Manifest) -> None:
    for name, now in new.versions.items():
        if (before := old.versions.get(name)) != now:
            raise UsageError(
                f"{folder}: begun with {name} {before}, this is {now}: shards would not fit each other; "
                f"install {name} {before} or name another folder"
            )


def _leftover(path: Path) -> bool:
    """Tell a temporary of ours, left by a kill: this process owns the folder, so nobody is writing it."""
    ours = (".shard-", f".{MANIFEST}", f".{UNFINISHED}", f".{TOKENIZER}")
    return path.name.startswith(ours) and path.suffix in (".tmp", ".old")


def _remove_leftovers(folder: Path) -> None:
    for path in filter(_leftover, folder.iterdir()):
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
