"""Models of every task with random weights, and servers of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from servers import Running, Start, serving

if TYPE_CHECKING:
    from albert.tokenizer import Tokenizer

for name in ("fastapi", "uvicorn", "httptools", "prometheus_client", "orjson"):
    pytest.importorskip(name, reason=f"serving needs {name}: pip install 'albert-lite[serve]'")

SHAPE: dict[str, Any] = {
    "embedding_size": 8, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32,
    "max_position_embeddings": 64, "initializer_range": 0.5,
}  # fmt: skip


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> dict[str, str]:
    """Write a model folder of every kind; return them by name."""
    from albert.model import AlbertConfig, new_model
    from albert.model.folder import save_model
    from albert.tasks.choice import Choice
    from albert.tasks.classification import Classification, MultiLabel, Regression
    from albert.tasks.saved_task import TASK_FILE, task_json
    from albert.tasks.similarity import Similarity
    from albert.tasks.span import SpanTask
    from albert.tasks.tagging import Tagging

    top = tmp_path_factory.mktemp("served")
    pair = {"text": "one", "pair": "other"}
    tasks: dict[str, tuple[Any, dict[str, str]]] = {
        "plain": (None, {}),
        "film": (Classification(("bad", "good"), max_length=32), {"text": "review"}),
        "topics": (MultiLabel(("sea", "land", "air"), max_length=32), {"text": "review"}),
        "score": (Regression(max_length=32), pair),
        "reader": (SpanTask(max_length=48, max_question=12, stride=16, max_answer=8), {}),
        "exam": (Choice(max_length=48), {}),
        "names": (Tagging(("B-PER", "I-PER", "O"), max_length=32), {}),
        "alike": (Similarity(max_length=32), {}),
    }
    for name, (task, columns) in tasks.items():
        config, heads = AlbertConfig(**SHAPE, vocab_size=tokenizer.vocab_size), ("mlm", "order")
        extra = None
        if task is not None:
            config, heads = task.configure(config), task.heads
            extra = {TASK_FILE: task_json(task, columns=columns)}
        save_model(new_model(config, heads, seed=7), top / name, tokenizer=tokenizer, extra=extra)
    return {name: str(top / name) for name in tasks}


@pytest.fixture(scope="module")
def server(folders: dict[str, str]) -> Iterator[Running]:
    """Serve all models; the first is `plain`. It ends with its module: other modules patch what its thread calls."""
    with serving(folders) as running:
        yield running


@pytest.fixture
def start(folders: dict[str, str]) -> Iterator[Start]:
    """Return a function that serves some of the models with settings of its own, until the test ends."""
    with ExitStack() as stack:

        def begin(*names: str, **settings: Any) -> Running:
            return stack.enter_context(serving({name: folders[name] for name in names or ("plain",)}, **settings))

        yield begin


@pytest.fixture(scope="session")
def texts() -> list[str]:
    """Return texts of many lengths, all different."""
    words = Path(__file__).parents[1].joinpath("conftest.py").read_text().split('"""')[5].split()
    return [" ".join(words[i % 90 : i % 90 + 1 + i % 37]) + f" {i}" for i in range(120)]
