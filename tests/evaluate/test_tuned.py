"""`albert evaluate` on labelled data: the columns that the model was trained on, and files that are not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from albert.errors import DataError
from albert.evaluate import TaskScores, evaluate_task
from albert.inference.inputs import read_examples
from albert.inference.model import load
from albert.labelled.request import DataRequest
from albert.model import AlbertConfig, new_model
from albert.model.folder import save_model
from albert.tasks.classification import Classification
from albert.tasks.saved_task import TASK_FILE, task_json
from albert.text.documents import ReadReport
from albert.tokenizer import Tokenizer

COLUMNS = {"text": "title,body", "label": "topic"}


@pytest.fixture
def classifier(word_tokenizer: Tokenizer, tmp_path: Path) -> Path:
    config = AlbertConfig(
        vocab_size=word_tokenizer.vocab_size, embedding_size=16, hidden_size=32, num_hidden_layers=2,
        num_attention_heads=2, intermediate_size=64, max_position_embeddings=64, labels=("a", "b"),
    )  # fmt: skip
    extra = {TASK_FILE: task_json(Classification(("a", "b"), max_length=32), columns=COLUMNS)}
    save_model(new_model(config, ("classifier",)), tmp_path / "model", tokenizer=word_tokenizer, extra=extra)
    return tmp_path / "model"


def test_a_model_of_title_and_body_reads_both_again(classifier: Path, tmp_path: Path) -> None:
    rows = [{"title": f"the ship {i}", "body": "came to the town", "topic": "ab"[i % 2]} for i in range(8)]
    path = tmp_path / "news.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    scored = evaluate_task(str(classifier), DataRequest(path))
    assert isinstance(scored, TaskScores)
    assert [example.text for example in scored.sets["dev"].examples] == [f"{r['title']}\n{r['body']}" for r in rows]
    predicted = read_examples(load(classifier), path, {}, ReadReport())
    assert [example.text for example in predicted] == [f"{r['title']}\n{r['body']}" for r in rows]  # type: ignore[attr-defined]


def test_data_that_is_not_there_is_named_before_the_model_is_looked_at(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"missing.csv: no such file or folder"):
        evaluate_task("tiny-en", DataRequest(tmp_path / "missing.csv"))
