"""What a build is to do, and whether the folder is fit for it: before anything is written.

A plan is a manifest without shards: text, tokenizer, settings and versions, all that the bytes of a store depend on. An
earlier run of the same plan is continued; one of any other plan is refused, naming the difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from albert.data.encode import versions
from albert.data.journal import read_journal
from albert.data.shard import ShardRecord
from albert.data.store import MANIFEST, TOKENIZER, UNFINISHED, Manifest
from albert.errors import DataError, UsageError, did_you_mean
from albert.files import sha256
from albert.text.documents import DOCUMENT_LIMIT, ReadReport, printable, read_documents
from albert.text.records import RECORD_LIMIT
from albert.text.sentences import LANGUAGES, SENTENCE_LIMIT
from albert.text.sources import Sources, find_sources
from albert.tokenizer import Tokenizer

# Of ISO 639-2, where the splitter knows the code of two letters alone.
SHORT_CODES = {
    "ara": "ar", "ben": "bn", "bul": "bg", "cat": "ca", "ces": "cs", "chi": "zh", "cze": "cs", "dan": "da", "deu": "de",
    "dut": "nl", "ell": "el", "eng": "en", "est": "et", "fas": "fa", "fin": "fi", "fra": "fr", "fre": "fr", "ger": "de",
    "gre": "el", "heb": "he", "hin": "hi", "hrv": "hr", "hun": "hu", "ind": "id", "ita": "it", "jpn": "ja", "kor": "ko",
    "lav": "lv", "lit": "lt", "nld": "nl", "nor": "no", "per": "fa", "pol": "pl", "por": "pt", "ron": "ro", "rum": "ro",
    "rus": "ru", "slk": "sk", "slo": "sk", "slv": "sl", "spa": "es", "srp": "sr", "swe": "sv", "tam": "ta", "tel": "te",
    "tha": "th", "tur": "tr", "ukr": "uk", "urd": "ur", "vie": "vi", "zho": "zh",
}  # fmt: skip


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
        code, *rest = self.language.lower().split("-")
        if len(code) == 2 and code not in LANGUAGES:
            near = did_you_mean(code, LANGUAGES)
            hint = "use a code of ISO 639, such as en, de or zh" if near.startswith("known:") else near
            raise UsageError(f"language '{self.language}' is no language: {hint}")
        object.__setattr__(self, "language", "-".join([SHORT_CODES.get(code, code), *rest]))  # as the splitter knows it

    def resolved(self) -> dict[str, Any]:
        """Return all that decides the contents of a store, beside text, tokenizer and versions."""
        language = self.language if self.sentences == "auto" else None
        limits = {"document": DOCUMENT_LIMIT, "record": RECORD_LIMIT, "sentence": SENTENCE_LIMIT}
        return asdict(self) | {"language": language, "limits": limits}


def plan_build(inputs: Iterable[str | Path], tokenizer: Tokenizer, settings: BuildSettings) -> tuple[Sources, Manifest]:
    """Find the input files and name everything that the store will depend on; reads the files once for their hashes."""
    sources = find_sources(inputs)
    if settings.text_field != "text" and all(source.format == "txt" for source in sources.files):
        raise UsageError(f"field '{settings.text_field}': only .jsonl and .parquet have fields, these files are .txt")
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


@dataclass(frozen=True)
class Earlier:
    """What an earlier run left in the folder."""

    plan: Manifest  # with its shards if it is complete
    finished: dict[int, ShardRecord]
    complete: bool


def refuse_other_folder(folder: Path) -> None:
    """Refuse a folder that holds something, but neither a store nor the beginning of one."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is a file: name a folder for the store")
    if not folder.exists() or (folder / MANIFEST).exists() or (folder / UNFINISHED).exists():
        return
    others = [path.name for path in folder.iterdir() if path.name != ".lock" and not is_leftover(path)]
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


def refuse_other_versions(folder: Path, old: Manifest, new: Manifest) -> None:
    """Refuse to add shards to those that other software made."""
    for name, now in new.versions.items():
        if (before := old.versions.get(name)) != now:
            raise UsageError(
                f"{folder}: begun with {name} {before}, this is {now}: shards would not fit each other; "
                f"install {name} {before} or name another folder"
            )


def is_leftover(path: Path) -> bool:
    """Tell a temporary of ours, left by a kill: this process owns the folder, so nobody is writing it."""
    ours = (".shard-", f".{MANIFEST}", f".{UNFINISHED}", f".{TOKENIZER}")
    return path.name.startswith(ours) and path.suffix in (".tmp", ".old")
