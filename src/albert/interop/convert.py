"""From somebody's checkpoint to a model folder: find it, open it in a child process, check it, write it.

Nothing from outside is unpickled here, and there is no second way to try when the first refuses. What a user should
know but a program cannot decide (activation of the v1 models, head count of xlarge) comes back as notes.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from albert.errors import AlbertError, ModelError, ResourceError, UsageError
from albert.files import read_json, write_json
from albert.interop.google import build_from_google, read_google_config
from albert.interop.head_count import judge_head_count
from albert.interop.source import Source, find_source
from albert.model import Albert
from albert.model.config import from_json
from albert.model.folder import CONFIG_LIMIT, load_model, save_model, stored_heads
from albert.model.tensor_file import read_header
from albert.model.weights import is_ignored
from albert.tokenizer import Tokenizer

log = logging.getLogger(__name__)

PATIENCE = 180.0  # seconds to start the child and its libraries
SLOWEST = 4 * 2**20  # bytes per second: slower than any disk in use

Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Converted:
    """A model read from somebody's checkpoint, and what its user should know."""

    model: Albert
    source: Source
    tokenizer: Tokenizer | None
    new: tuple[str, ...]  # parameters drawn at random, because the checkpoint has none
    dropped: tuple[str, ...]  # tensors that no head uses
    notes: tuple[str, ...]


def read_checkpoint(
    path: Path, *, config: Path | None = None, vocab: Path | None = None, progress: Progress = lambda *_: None
) -> Converted:
    """Read a checkpoint of any known kind, strictly."""
    source = find_source(path, config=config, vocab=vocab)
    with tempfile.TemporaryDirectory(prefix="albert-convert-") as scratch:
        weights = Path(scratch) / "model.safetensors"
        progress(0.1, f"opening {source.weights.name} in a child process")
        _extract(source, weights)
        progress(0.6, "checking names and shapes")
        if source.kind == "tensorflow":
            model = build_from_google(weights, read_google_config(source.config), source=source.weights)
            new: tuple[str, ...] = ()
            dropped: tuple[str, ...] = ()
        else:
            model, new, dropped = _load_legacy(source, weights)
    tokenizer = _tokenizer(source, model.config.vocab_size)
    progress(0.8, "checking values and vocabulary")
    return Converted(model, source, tokenizer, new, dropped, tuple(_notes(source, model, tokenizer)))


def write_folder(converted: Converted, out: Path) -> None:
    """Write the model folder."""
    save_model(converted.model, out, tokenizer=converted.tokenizer)


def _extract(source: Source, target: Path) -> None:
    """Have a child process write the weights as safetensors; its time is bounded by their size."""
    if source.kind == "tensorflow" and importlib.util.find_spec("tensorflow") is None:
        raise UsageError(
            f"{source.weights}: reading TensorFlow checkpoints needs TensorFlow: pip install 'albert-lite[tf]'"
        )
    seconds = PATIENCE + source.size / SLOWEST
    command = [sys.executable, "-P", "-m", "albert.interop.reader", source.kind, str(source.weights), str(target)]
    environ = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    try:
        child = subprocess.run(
            command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ModelError(f"{source.weights}: refused: opening it took more than {seconds:.0f} s") from error
    log.debug("the reader said: %s", child.stderr.decode(errors="replace")[-2000:])
    if child.returncode != 0:
        last = (child.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        reason = f"killed by signal {-child.returncode}" if child.returncode < 0 else last[:200]
        raise ModelError(f"{source.weights}: the process that opened it failed: {reason}")
    answer = json.loads(child.stdout.splitlines()[-1])
    if answer["error"]:
        kinds: dict[int, type[AlbertError]] = {kind.exit_code: kind for kind in (ModelError, ResourceError, UsageError)}
        raise kinds.get(answer["exit_code"], ModelError)(answer["error"])


def _load_legacy(source: Source, weights: Path) -> tuple[Albert, tuple[str, ...], tuple[str, ...]]:
    """Open the extracted weights with the configuration beside them, as any model folder."""
    values = read_json(source.config, limit=CONFIG_LIMIT)
    from_json(values, source=source.config)
    heads = _heads(values, set(read_header(weights, ignore=is_ignored)), source=source)
    write_json(weights.parent / "config.json", values)
    try:
        loaded = load_model(weights.parent, heads)
    except ModelError as error:
        text = str(error).replace(str(weights), str(source.weights))
        raise ModelError(text.replace(str(weights.parent / "config.json"), str(source.config))) from error
    return loaded.model, loaded.new, loaded.dropped


def _heads(values: dict[str, Any], names: set[str], *, source: Source) -> tuple[str, ...]:
    """Name the heads: those of the architecture, or where none is named, those whose weights are there."""
    there = {"mlm": "predictions.bias", "order": "sop_classifier.classifier.weight", "span": "qa_outputs.weight"}
    found = tuple(head for head, name in there.items() if name in names)
    if not values.get("architectures"):
        return found or (("classifier",) if "classifier.weight" in names else ())
    declared = stored_heads(values, source=source.config)
    return found if declared == ("mlm",) and found == ("mlm", "order") else declared  # hub files understate theirs


def _tokenizer(source: Source, vocab_size: int) -> Tokenizer | None:
    if source.vocab is None:
        return None
    beside = source.kind == "pickle" and source.vocab == source.weights.parent / "spiece.model"
    tokenizer = Tokenizer.load(source.vocab.parent if beside else source.vocab)  # with its tokenizer_config.json
    if tokenizer.vocab_size > vocab_size:
        raise ModelError(
            f"{source.vocab}: {tokenizer.vocab_size:,} pieces, but the model has vocab_size={vocab_size:,}: "
            "give the vocabulary it was trained with by --vocab"
        )
    return tokenizer


def _notes(source: Source, model: Albert, tokenizer: Tokenizer | None) -> list[str]:
    """Say what a user should know."""
    notes = []
    config = model.config
    if tokenizer is None:
        notes.append(
            "no tokenizer written: no SentencePiece model was found (the Chinese models have a WordPiece vocabulary); "
            "give one with --vocab"
        )
    elif tokenizer.vocab_size < config.vocab_size:
        notes.append(f"the vocabulary has {tokenizer.vocab_size:,} pieces of the model's {config.vocab_size:,}")
    if source.kind == "pickle" and config.hidden_act == "gelu":
        notes.append(
            "hidden_act is 'gelu', transformers' erf form, and stays so; Google trained its v1 models with the tanh "
            "form: write gelu_new into config.json to follow Google"
        )
    if "classifier" in model.heads and len(config.labels) == 1:
        notes.append(
            "one output: read as a regression; if this is a multiple-choice model (RACE), write "
            "AlbertForMultipleChoice as architecture into config.json"
        )
    if (config.hidden_size, config.num_hidden_layers) == (2048, 24):
        notes.append(judge_head_count(model, tokenizer, candidates=(16, 32)))
    return notes
