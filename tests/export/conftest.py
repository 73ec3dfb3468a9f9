"""Tiny models to export."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from albert.export.source import Source, open_source
from albert.model import AlbertConfig, new_model
from albert.model.folder import save_model
from albert.tasks.choice import Choice
from albert.tasks.classification import Classification
from albert.tasks.saved_task import TASK_FILE, task_json
from albert.tasks.span import SpanTask
from albert.tasks.tagging import Tagging
from albert.tasks.task import AnyTask
from albert.tokenizer import Tokenizer

SHAPE: dict[str, Any] = {
    "embedding_size": 16, "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 64,
    "max_position_embeddings": 64, "initializer_range": 0.2,
}  # fmt: skip
TASKS: dict[str, AnyTask] = {
    "classifier": Classification(("bad", "fair", "good"), max_length=64),
    "choice": Choice(2, max_length=64),
    "tags": Tagging(("O", "B-PER"), max_length=64),
    "span": SpanTask(max_length=64),
}


@pytest.fixture
def make_source(tmp_path: Path, tokenizer: Tokenizer) -> Any:
    """Return a function that writes and opens a model to export."""

    def make(*heads: str, task: AnyTask | None = None, columns: dict[str, str] | None = None, **config: Any) -> Source:
        shape = AlbertConfig(**SHAPE | {"vocab_size": tokenizer.vocab_size} | config)
        task = task or (TASKS.get(heads[0]) if heads else None)
        shape = task.configure(shape) if task else shape
        folder = Path(tempfile.mkdtemp(dir=tmp_path)) / "model"
        extra = {TASK_FILE: task_json(task, columns=columns)} if task else None
        save_model(new_model(shape, heads, seed=3), folder, tokenizer=tokenizer, extra=extra)
        return open_source(str(folder))

    return make
