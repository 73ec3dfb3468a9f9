"""A new vocabulary from text: sample, train with SentencePiece, measure on held-out text.

The same text and settings give the same bytes on every machine. SentencePiece runs in a process of its own: an
interrupt ends it at once, its log becomes progress, and a fault in it an error message. Writes nothing that stays.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from albert.errors import AlbertError, DataError, Interrupted, ResourceError, UsageError
from albert.files import resource_error
from albert.text.documents import ReadReport, read_documents
from albert.text.sources import Source, Sources, find_sources
from albert.tokenizer.normalisation import Normalisation
from albert.tokenizer.proto import round_scores
from albert.tokenizer.quality import Quality, measure
from albert.tokenizer.recipe import SYMBOLS, trainer_arguments, training_lines
from albert.tokenizer.runtime import Tokenizer
from albert.tokenizer.sampling import HELD_OUT_LIMIT, Sample

LEAST_VOCAB_SIZE = 5 + len(SYMBOLS) + 2
READ, TRAINED = 0.3, 0.95  # of the whole, when reading ends and when training ends

Progress = Callable[[float, str], None]  # what is done, 0 to 1, and a few words

_CHILD = """
import json, sys, sentencepiece
try:
    sentencepiece.SentencePieceTrainer.Train(**json.load(sys.stdin))
except (RuntimeError, ValueError, OSError) as problem:
    sys.exit(f"failed: {problem}")
"""


@dataclass(frozen=True)
class TrainSettings:
    """What decides a vocabulary, beside the text."""

    vocab_size: int = 30_000
    normalisation: Normalisation = field(default_factory=Normalisation)
    text_field: str = "text"  # of .jsonl and .parquet

    def __post_init__(self) -> None:
        if self.vocab_size < LEAST_VOCAB_SIZE:
            raise UsageError(
                f"vocab_size={self.vocab_size}: special pieces and symbols alone need {LEAST_VOCAB_SIZE - 2}: "
                "use some thousands"
            )


@dataclass(frozen=True)
class TrainResult:
    """A trained tokenizer and what is known about it."""

    tokenizer: Tokenizer
    quality: Quality
    num_documents: int
    num_held_out: int  # documents; if none, the quality is that on the training text
    num_characters: int
    num_sampled: int  # characters that were trained on
    character_coverage: float
    report: ReadReport


def train_tokenizer(inputs: Iterable[str | Path], settings: TrainSettings, *, progress: Progress) -> TrainResult:
    """Train a vocabulary on files, folders and globs of text."""
    try:
        return _train(find_sources(inputs), settings, progress)
    except KeyboardInterrupt as problem:
        raise Interrupted("interrupted: no tokenizer was written") from problem


def _train(sources: Sources, settings: TrainSettings, progress: Progress) -> TrainResult:
    report = ReadReport()
    for path in sources.duplicates:
        report.add("duplicate_path", str(path))
    sample = _read(sources.files, settings.text_field, report, progress)
    if not sample.training.size:  # a single document, held out by chance
        sample.training, sample.held_out = sample.held_out, sample.training
    lines = training_lines(sample.training, settings.normalisation)
    if not lines:
        raise DataError("the files have no text to train on: name others")
    arguments = trainer_arguments(lines, settings.vocab_size)
    model = _run_sentencepiece(lines, arguments, lambda done, words: progress(READ + done * (TRAINED - READ), words))
    tokenizer = Tokenizer(round_scores(model), settings.normalisation)
    progress(TRAINED, "measuring")
    return TrainResult(
        tokenizer=tokenizer,
        quality=measure(tokenizer, sample.held_out if sample.held_out.size else sample.training.some(HELD_OUT_LIMIT)),
        num_documents=sample.num_documents,
        num_held_out=sample.num_held_out if sample.held_out.size else 0,
        num_characters=sample.num_characters,
        num_sampled=sample.training.size,
        character_coverage=arguments["character_coverage"],
        report=report,
    )


def _read(sources: Sequence[Source], text_field: str, report: ReadReport, progress: Progress) -> Sample:
    total = sum(source.path.stat().st_size for source in sources)
    sample = Sample()
    for document in read_documents(sources, text_field=text_field, report=report):
        sample.add(document)
        progress(READ * report.bytes_read / max(total, 1), f"{sample.num_documents:,} documents read")
    return sample


def _run_sentencepiece(lines: Sequence[str], arguments: dict[str, object], progress: Progress) -> bytes:
    """Train in a child process and give the model."""
    with tempfile.TemporaryDirectory(prefix="albert-tokenizer-") as folder:
        # Relative names, because SentencePiece writes them into the model.
        arguments = arguments | {"input": "sample.txt", "model_prefix": "spiece"}
        try:
            (Path(folder) / "sample.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        except OSError as problem:
            raise resource_error(problem, folder) or problem from problem
        with subprocess.Popen(
            [sys.executable, "-c", _CHILD],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            cwd=folder,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C is ours to handle
        ) as child:
            try:
                last = _follow(child, json.dumps(arguments), progress)
            except BaseException:
                child.kill()
                raise
        if child.returncode:
            raise _failure(child.returncode, last, arguments)
        return (Path(folder) / "spiece.model").read_bytes()


def _follow(child: subprocess.Popen[str], arguments: str, progress: Progress) -> str:
    """Turn SentencePiece's log into progress; give its last line."""
    assert child.stdin is not None
    assert child.stderr is not None
    with suppress(BrokenPipeError), child.stdin as stdin:  # if the child is dead already, its exit code says why
        stdin.write(arguments)
    vocab_size = json.loads(arguments)["vocab_size"]
    last, largest = "", 0.0
    for line in child.stderr:
        last = line.strip() or last
        if "Making suffix array" in line:
            progress(0.05, "finding candidates")
        elif match := re.search(r"EM sub_iter=\d+ size=(\d+)", line):
            size = int(match[1])
            left = math.log(max(size / vocab_size, 1.1))  # they shrink by a constant factor, to 1.1 times the size
            largest = max(largest, left)
            progress(1 - 0.7 * left / largest, f"{size:,} candidates")
    return last


def _failure(code: int, last: str, arguments: dict[str, object]) -> AlbertError:
    """Say what SentencePiece's last words mean for the user."""
    vocab_size = arguments["vocab_size"]
    if match := re.search(r"too high \(\d+\)\. Please set it to a value <= (\d+)", last):
        return DataError(
            f"vocab_size={vocab_size}: there is too little text for so many pieces: "
            f"use at most {match[1]} (--vocab-size), or more text"
        )
    if match := re.search(r"smaller than required_chars\. \d+ vs (\d+)", last):
        return UsageError(f"vocab_size={vocab_size}: the text's characters alone need {match[1]}: use more")
    if code == -9:
        return ResourceError("SentencePiece was killed, probably for lack of memory: close other programs")
    return DataError(f"SentencePiece can't train on this text: {last}")
