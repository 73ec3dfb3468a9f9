"""Model folders to load: random weights, real files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from albert.model import AlbertConfig, new_model
from albert.model.folder import save_model
from albert.tasks.saved_task import TASK_FILE, task_json
from albert.tasks.task import AnyTask
from albert.tokenizer import Tokenizer

SHAPE: dict[str, Any] = {
    "embedding_size": 8, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
    "max_position_embeddings": 64, "initializer_range": 0.5,
}  # fmt: skip

MakeFolder = Callable[..., Path]


@pytest.fixture
def make_folder(tmp_path: Path, tokenizer: Tokenizer) -> MakeFolder:
    """Return a function that writes a model folder with heads, and perhaps a task."""

    def make(*heads: str, task: AnyTask | None = None, columns: dict[str, str] | None = None, **config: Any) -> Path:
        shape = AlbertConfig(**SHAPE | {"vocab_size": tokenizer.vocab_size} | config)
        if task is not None:
            shape, heads = task.configure(shape), task.heads
        extra = {TASK_FILE: task_json(task, columns=columns)} if task is not None else None
        folder = tmp_path / "models" / "-".join(heads or ("bare",))
        save_model(new_model(shape, heads, seed=7), folder, tokenizer=tokenizer, extra=extra)
        return folder

    return make
