"""Adapting: some masked-word training on a task's own texts before it is tuned, so that its words are known.

The texts of the training examples, without their labels, and whatever unlabelled text is given, become a token store
and a pre-training run beside the run folder; fine-tuning then starts from that run's model. Each text stands alone, and
the model itself is the teacher: what its vectors meant, they go on to mean. Both runs resume, so the whole does.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from albert.data.store import TokenStore, write_store
from albert.errors import DataError, UsageError
from albert.files import atomic_folder
from albert.finetune.settings import AdaptSettings
from albert.finetune.start import Start
from albert.labelled.request import Opened
from albert.pretrain import pretrain
from albert.pretrain.settings import PretrainSettings
from albert.settings import read_settings
from albert.tasks.task import Example
from albert.text.documents import Document, iter_documents
from albert.text.sentences import split_sentences
from albert.tokenizer import Tokenizer
from albert.train.loop import Progress

FIELDS = ("text", "pair", "negative", "passage", "question", "choices", "words")  # of examples: what is text in them
LONGEST, BATCH = 128, 32
FEWEST_STEPS = 20
MANY_LINES = 50  # of a text, on average


def adapt(
    opened: Opened,
    model: str,
    out: Path,
    *,
    settings: AdaptSettings,
    more: Sequence[Path] = (),
    seed: int = 0,
    observe: Callable[[Progress], None] = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> Path:
    """Train a model on the texts of a task, and return the run folder to tune: `out` with "-adapted" at its end."""
    start = Start.find(model)
    if "mlm" not in start.heads:
        raise UsageError(f"{model}: has no masked-word head, as a tuned model has none: adapt a pre-trained one")
    folder = out.parent / f"{out.name}-adapted"
    texts = task_texts(opened, more, tell=tell)
    store = _store(folder, texts, start.tokenizer)
    length = min(LONGEST, start.config.max_position_embeddings)
    per_step = BATCH * min(length, math.ceil(store.num_tokens / len(texts)) + 2)
    steps = max(FEWEST_STEPS, math.ceil(settings.epochs * store.num_tokens / per_step))
    chosen = read_settings(
        PretrainSettings,
        defaults={
            "data.max_length": length, "data.objective": "none", "data.alone": 1.0, "train.steps": steps,
            "train.batch_size": BATCH, "train.seed": seed, "train.save_every": 200, "train.eval_every": steps,
            "train.log_every": 20, "optimizer.name": "adamw", "optimizer.lr": settings.lr,
            "optimizer.warmup_steps": min(steps - 1, max(10, steps // 10)), "teacher.model": str(start.folder),
        },
    )  # fmt: skip
    tell(f"{folder}: adapting to {len(texts):,} texts, {store.num_tokens:,} tokens, {steps:,} steps")
    pretrain(store, str(start.folder), folder, settings=chosen, observe=observe, tell=tell)
    return folder


def task_texts(opened: Opened, more: Sequence[Path], *, tell: Callable[[str], None] = lambda _: None) -> list[str]:
    """Return what a model is adapted to: the texts of the training examples and of further files, each once."""
    unlabelled = [*iter_documents(more)]
    _warn_of_undivided(unlabelled, tell)
    return _distinct([*example_texts(opened.splits.train), *(document.text for document in unlabelled)])


def example_texts(examples: Iterable[Example]) -> Iterator[str]:
    """Yield what examples say, without their labels."""
    for example in examples:
        for name in FIELDS:
            value = getattr(example, name, None)
            if isinstance(value, str):
                yield value
            elif name == "words" and value:
                yield " ".join(value)
            elif value:
                yield from value


def _warn_of_undivided(documents: Sequence[Document], tell: Callable[[str], None]) -> None:
    """Say which files have texts of many lines, as a file with a text per line has to this reader."""
    found, lines = Counter[Path](), Counter[Path]()
    for document in documents:
        if {".jsonl", ".parquet"}.isdisjoint(document.source.suffixes):
            found[document.source] += 1
            lines[document.source] += document.text.count("\n") + 1
    for path, texts in found.items():
        if lines[path] >= MANY_LINES * texts:
            are = "1 text" if texts == 1 else f"{texts:,} texts"
            how = "if each line is one, put a blank line between them, or give .jsonl"
            tell(f"{path}: {lines[path]:,} lines are {are}: {how}")


def _distinct(texts: Sequence[str]) -> list[str]:
    found = [text for text in dict.fromkeys(texts) if text.strip()]
    if not found:
        raise DataError("there is no text to adapt to: the examples have none, and no file was given")
    return found


def _store(folder: Path, texts: Sequence[str], tokenizer: Tokenizer) -> TokenStore:
    """Write the texts as a store, one document each, unless it is there already; a run folder may have hidden ones."""
    digest = hashlib.sha256("\0".join([tokenizer.fingerprint, *texts]).encode("utf-8", "surrogatepass")).hexdigest()
    place = folder / f".texts-{digest[:12]}"
    if not place.exists():
        folder.mkdir(parents=True, exist_ok=True)
        documents = (tokenizer.encode_many([*split_sentences(text, language="en")]) for text in texts)
        with atomic_folder(place) as temporary:
            write_store(temporary, documents, tokenizer=tokenizer)
    return TokenStore.open(place)
